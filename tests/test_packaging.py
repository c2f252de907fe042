"""What an installed MLC Lab contains: both packages, the scripts of the views, the lessons."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("setuptools", "68")
    folder = tmp_path_factory.mktemp("wheel")
    # Built from a copy: setuptools writes a build/ folder beside what it builds.
    source = folder / "source"
    ignore = shutil.ignore_patterns(".*", "build", "node_modules", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, source, ignore=ignore)
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    command = [*pip, "--wheel-dir", str(folder), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_the_wheel_has_every_source_file(wheel):
    names = set(wheel.namelist())
    for path in (ROOT / "mlc_lab").rglob("*.py"):
        assert path.relative_to(ROOT).as_posix() in names
    for path in (ROOT / "widgets").rglob("*"):
        if path.suffix in (".py", ".js", ".css", ".html"):
            assert f"mlc_lab_widgets/{path.relative_to(ROOT / 'widgets').as_posix()}" in names


def test_the_wheel_brings_the_lessons_and_nothing_else_of_the_checkout(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top.split("-")[0] for top in tops} == {"mlc_lab", "mlc_lab_widgets"}
    lessons = [n for n in wheel.namelist() if "/share/mlc-lab/notebooks/" in n]
    assert len(lessons) >= len(list((ROOT / "notebooks").glob("*.ipynb")))


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
