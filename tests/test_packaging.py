"""What an installed MLC Lab contains: both packages, the scripts of the views, the lessons.

Sdist and wheel are built here without a network, with the packages of this environment.
`python dev.py package` does it in empty environments.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def must(*command, cwd=None):
    """What a command printed; an error where it failed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """Path of the source distribution."""
    pytest.importorskip("setuptools", "68")
    folder = tmp_path_factory.mktemp("sdist")
    # Built from a copy: setuptools writes a build/ folder beside what it builds.
    source = folder / "source"
    ignore = shutil.ignore_patterns(".git", ".venv*", ".*_cache", ".hypothesis", "build", "dist",
                                    "node_modules", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, source, ignore=ignore)
    build = "from setuptools import build_meta; build_meta.build_sdist('..')"
    must(sys.executable, "-c", build, cwd=source)
    return next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(sdist):
    """The wheel, built from the source distribution."""
    folder = sdist.parent
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    must(*pip, "--wheel-dir", str(folder), str(sdist))
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_the_sdist_has_what_tests_and_builds_need(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("dev.py", "conftest.py", "README.md", "CONTRIBUTING.md", "CITATION.cff", "LICENSE",
                 "pyproject.toml", "binder/postBuild", ".github/workflows/test.yml",
                 ".pre-commit-config.yaml", "tests/conftest.py",
                 "tests/widgets/golden_recording.json", "benchmarks/kernels.py",
                 "docs/architecture.md", "docs/images/stepper-light.png"):
        assert name in names, name
    wanted = {f"translations/{p.relative_to(ROOT / 'translations').as_posix()}"
              for p in (ROOT / "translations").rglob("*.p[oy]")} | {".ci/run"}
    assert wanted - names == set()
    assert not [name for name in names if name.endswith(".pyc") or ".venv" in name]


def test_the_wheel_has_every_source_file(wheel):
    names = set(wheel.namelist())
    for path in (ROOT / "mlc_lab").rglob("*.py*"):
        if path.suffix in (".py", ".pyi", ".typed"):
            assert path.relative_to(ROOT).as_posix() in names
    assert {"mlc_lab/py.typed", "mlc_lab/script/tir.pyi"} <= names
    for path in (ROOT / "widgets").rglob("*"):
        if path.suffix in (".py", ".js", ".css", ".html"):
            assert f"mlc_lab_widgets/{path.relative_to(ROOT / 'widgets').as_posix()}" in names


def test_the_wheel_brings_the_lessons_and_nothing_else_of_the_checkout(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top.split("-")[0] for top in tops} == {"mlc_lab", "mlc_lab_widgets"}
    lessons = [n for n in wheel.namelist() if "/share/mlc-lab/notebooks/" in n]
    assert len(lessons) >= len(list((ROOT / "notebooks").glob("*.ipynb")))


def test_the_wheel_brings_what_jupyterlab_loads(wheel, tmp_path):
    """Its files in the place where JupyterLab looks, of the version of the package."""
    pytest.importorskip("jupyterlab")
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--quiet"]
    must(*pip, "--target", str(tmp_path / "installed"), wheel.filename)
    share = tmp_path / "installed" / "share" / "jupyter"
    extension = share / "labextensions" / "mlc-lab"
    static = {path.name for path in (extension / "static").iterdir()}
    assert "remoteEntry.js" in static
    assert static > {path.name for path in (ROOT / "widgets" / "bundles").iterdir()}
    assert static > {path.name for path in (ROOT / "widgets" / "js").glob("*.css")}
    environment = {**os.environ, "JUPYTER_PATH": str(share),
                   "JUPYTER_DATA_DIR": str(tmp_path / "data"),
                   "JUPYTER_CONFIG_DIR": str(tmp_path / "config")}
    done = subprocess.run([sys.executable, "-m", "jupyter", "labextension", "list"],
                          capture_output=True, text=True, timeout=120, env=environment)
    said = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (version,) = re.findall(r'^version = "(.*)"', project, re.M)
    assert re.search(rf"^ *mlc-lab v{re.escape(version)} enabled +OK \(python, mlc-lab\)", said,
                     re.M), said


def test_the_core_needs_three_packages(wheel):
    metadata = next(n for n in wheel.namelist() if n.endswith("METADATA"))
    text = wheel.read(metadata).decode()
    needs = [line for line in text.splitlines() if line.startswith("Requires-Dist")]
    core = [line for line in needs if "extra" not in line]
    assert sorted(line.split()[1].split(">")[0] for line in core) == [
        "apache-tvm-ffi", "llvmlite", "numpy",
    ]  # fmt: skip
    entry = next(n for n in wheel.namelist() if n.endswith("entry_points.txt"))
    assert "mlc-lab = mlc_lab.cli:main" in wheel.read(entry).decode()


def test_pictures_and_links_of_the_description_are_addresses(wheel):
    metadata = next(n for n in wheel.namelist() if n.endswith("METADATA"))
    head, _, text = wheel.read(metadata).decode().partition("\n\n")
    assert "Description-Content-Type: text/markdown" in head
    (repository,) = re.findall(r"^Project-URL: Repository, (.*)$", head, re.M)
    (version,) = re.findall(r"^Version: (.*)$", head, re.M)
    raw = repository.replace("github.com", "raw.githubusercontent.com")
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    links = re.findall(r"(!?)\[[^]]*\]\(([^)]+)\)", text)
    pictures = [link for sign, link in links if sign]
    assert len(pictures) >= 10
    for link in pictures:
        assert (ROOT / link.removeprefix(f"{raw}/v{version}/")).is_file(), link
    for link in (link for sign, link in links if not sign):
        assert link.startswith("https://"), link
        if link.startswith(repository):
            path = link.removeprefix(f"{repository}/blob/v{version}/").partition("#")[0]
            assert (ROOT / path).exists(), link


def test_what_is_installed_runs_without_the_checkout(wheel, tmp_path):
    target = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--quiet"]
    must(*pip, "--target", str(target), wheel.filename)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listing = re.findall(r"^```python\n(.*?)^```", readme, re.M | re.S)[0]
    # -S leaves out .pth files, by which a checkout may be installed in this environment
    paths = [str(target), sysconfig.get_path("platlib"), sysconfig.get_path("purelib")]
    code = (f"import sys; sys.path += {paths!r}\n{listing}\nimport mlc_lab, mlc_lab_widgets\n"
            "print(mlc_lab.__file__, mlc_lab_widgets.__file__)")
    (tmp_path / "listing.py").write_text(code, encoding="utf-8")
    out = must(sys.executable, "-I", "-S", str(tmp_path / "listing.py"), cwd=tmp_path)
    assert all(path.startswith(str(target)) for path in out.split())
