#!/usr/bin/env python3
"""Set up MLC Lab on a machine that has Python 3.10 or newer and nothing else, and run it.

    python dev.py lab     install everything into .venv and open JupyterLab on notebooks/
    python dev.py lab --torch    the same, and PyTorch, which lesson 11 needs
    python dev.py test    install everything into .venv and run every test
    python dev.py setup   only install
    python dev.py fuzz --minutes 60    look for wrong answers with random programs
    python dev.py site    run all lessons and build the site into build/site/html

For those who change it:

    python dev.py js        check the scripts of the views and bundle them anew (needs node 20)
    python dev.py texts     collect the texts that are translated, and compile the translations
    python dev.py types     write the stubs of T and R anew, and check types (needs node 20)
    python dev.py check     ruff, and the tests of style, layers and documents: half a minute
    python dev.py coverage  every test, with the lines that it ran: a table, and htmlcov/index.html
    python dev.py package   build sdist and wheel into dist/, and try each in an empty environment
    python dev.py lessons   install what Binder has into .venv-lessons, and run every lesson there
    python dev.py release v0.1.0    is this the version, and does the changelog have it?

Words after `lab` go to JupyterLab, words after `test` and `coverage` to pytest. This file uses the
standard library alone and says nothing about the compiler: look into mlc_lab/__init__.py for that.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PROGRAMS = "Scripts" if os.name == "nt" else "bin"
PYTHON = VENV / PROGRAMS / ("python.exe" if os.name == "nt" else "python")
# What is installed is a function of this file; its digest tells whether an install is current.
STAMP = VENV / "mlc-lab-installed.txt"


def make_environment() -> None:
    """Create .venv if it is not there; explain what is missing where Python cannot."""
    if PYTHON.exists():
        return
    print(f"creating {VENV}", flush=True)
    try:
        venv.create(VENV, with_pip=True, clear=VENV.exists())
    except (subprocess.CalledProcessError, OSError) as error:
        sys.exit(
            f"Python could not create a virtual environment: {error}\n"
            "On Debian and Ubuntu the part that does it is a package of its own:\n"
            "    sudo apt-get install python3-venv"
        )


def install() -> None:
    """Install the project with all its extras, editable, unless that has been done already."""
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if not STAMP.exists() or STAMP.read_text() != wanted:
        print("installing MLC Lab and all it uses (a few minutes the first time)", flush=True)
        command = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check"]
        if subprocess.call([*map(str, command), "--editable", f"{ROOT}[all]"]) != 0:
            sys.exit("pip could not install the project; its message stands above this line")
        STAMP.write_text(wanted)
    run("-m", "mlc_lab_widgets.extension")  # JupyterLab loads a copy of the scripts


def run(*words: str, **environment: str) -> int:
    """Run a command of the environment's Python from the project's root."""
    return subprocess.call([str(PYTHON), *words], cwd=ROOT, env={**os.environ, **environment})


def fetch_browser() -> None:
    """Let Playwright fetch a Chromium for the view tests where the machine has none.

    Without one those tests are skipped, except where CI is set: there it is an error.
    """
    look = "import browser, sys; sys.exit(browser.chromium_path() is None)"
    if run("-c", look, PYTHONPATH=str(ROOT / "tests")) != 0:
        print("no Chromium found: asking Playwright for one", flush=True)
        run("-m", "playwright", "install", "chromium")


def new_environment(folder: Path) -> str:
    """Make an empty environment in a folder. Returns the path of its Python."""
    venv.create(folder, with_pip=True, clear=True)
    return str(folder / PROGRAMS / PYTHON.name)


def must(*words: str, cwd: Path = ROOT) -> None:
    """Run a command; stop here with its status where it fails."""
    print("$", *words, flush=True)
    status = subprocess.call(words, cwd=cwd)
    if status:
        sys.exit(status)


def package() -> int:
    """Build sdist and wheel, install each into an empty environment, and run the README's listing
    there, away from the checkout."""
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir()
    with tempfile.TemporaryDirectory() as work:
        build = "from setuptools import build_meta; build_meta.build_sdist('dist')"
        must(str(PYTHON), "-c", build)
        (sdist,) = dist.glob("*.tar.gz")
        must(str(PYTHON), "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(dist), str(sdist))
        (wheel,) = dist.glob("*.whl")
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        listing = Path(work, "listing.py")
        listing.write_text(re.findall(r"^```python\n(.*?)^```", readme, re.M | re.S)[0],
                           encoding="utf-8")
        for made in (sdist, wheel):
            python = new_environment(Path(work, made.suffix))
            must(python, "-m", "pip", "install", "--quiet", str(made))
            must(python, "-I", str(listing), cwd=Path(work))
            must(python, "-I", "-m", "mlc_lab.cli", "--help", cwd=Path(work))
    print(f"{sdist.name} and {wheel.name} work in empty environments")
    return 0


def lessons_need() -> list[str]:
    """What Binder installs, as words for pip: the extras of binder/postBuild, and the packages of
    binder/environment.yml, which have other names there."""
    extras = re.search(r'"\.(\[[\w,]+\])"', (ROOT / "binder/postBuild").read_text("utf-8"))[1]
    text = (ROOT / "binder/environment.yml").read_text("utf-8").partition("dependencies:")[2]
    listed = re.findall(r"^  - (\S+)$", text, re.M)
    names = {"pytorch-cpu": "torch"}
    return [f"{ROOT}{extras}",
            *(names.get(n, n) for n in listed if n != "pip" and not n.startswith("python="))]


def lessons(*rest: str) -> int:
    """Every lesson in each language, in an environment that has what Binder's has, and what runs
    lessons.

    pip's own settings hold, such as PIP_CONSTRAINT for a build of PyTorch without CUDA.
    """
    python = new_environment(ROOT / ".venv-lessons")
    must(python, "-m", "pip", "install", "--quiet", *lessons_need())
    must(python, "-m", "pip", "install", "--quiet", "nbmake", "pytest-timeout")
    words = rest or ("notebooks",)
    return subprocess.call([python, "-m", "pytest", "-v", *words], cwd=ROOT,
                           env={**os.environ, "MLC_LAB_LESSONS": "all"})


def release(tag: str = "") -> int:
    """Whether a tag names the version of this checkout, with a section of the changelog."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = "(.*)"', text, re.M)[1]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    wrong = []
    if tag != f"v{version}":
        wrong.append(f"the tag is {tag or 'not given'}, the version in pyproject.toml {version}")
    if f'__version__ = "{version}"' not in (ROOT / "mlc_lab/__init__.py").read_text("utf-8"):
        wrong.append(f"mlc_lab.__version__ is not {version}")
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changes, re.M):
        wrong.append(f"CHANGELOG.md has no section with a date for {version}")
    print("\n".join(wrong) or f"{tag} can be released")
    return 1 if wrong else 0


def npm(*words: str) -> int:
    """Run npm in the project's root."""
    return subprocess.call([str(shutil.which("npm")), *words], cwd=ROOT)


def node_tools() -> bool:
    """Install what checks and bundles the scripts of the views; whether that could be done."""
    if shutil.which("npm") is None:
        return False
    lock = hashlib.sha256((ROOT / "package-lock.json").read_bytes()).hexdigest()
    stamp = ROOT / "node_modules" / "mlc-lab-installed.txt"
    if stamp.exists() and stamp.read_text() == lock:
        return True
    if npm("ci", "--silent", "--no-audit", "--no-fund") != 0:
        return False
    stamp.write_text(lock)
    return True


def types() -> int:
    """Write the stubs anew and run pyright."""
    if not node_tools():
        sys.exit("this needs npm (with node 20 or newer), and npm to be able to install")
    made = run("tests/checker/make_stubs.py")
    return made or npm("exec", "--", "pyright", "--pythonpath", str(PYTHON))


def scripts() -> int:
    """Bundle the scripts of the views anew and check them."""
    if not node_tools():
        sys.exit("this needs npm (with node 20 or newer), and npm to be able to install")
    return npm("run", "build") or npm("test")


#: what runs without the environment of the checkout
ALONE = {"js": scripts, "lessons": lessons, "release": release}
VERBS = ("lab", "test", "setup", "fuzz", "site", "check", "coverage", "package", "types", "texts",
         *ALONE)


def main() -> int:
    if sys.version_info < (3, 10):
        sys.exit(f"MLC Lab needs Python 3.10 or newer; this is {sys.version.split()[0]}")
    verb, *rest = sys.argv[1:] or ["help"]
    if verb not in VERBS:
        print(__doc__)
        return 0 if verb in ("help", "-h", "--help") else 2
    if verb in ALONE:
        return ALONE[verb](*rest)
    make_environment()
    install()
    if verb == "lab" and "--torch" in rest:
        rest.remove("--torch")
        there = "import sys; from importlib.util import find_spec; sys.exit(not find_spec('torch'))"
        if run("-c", there) != 0 and run("-m", "pip", "install", "torch") != 0:
            return 1
    if verb == "lab":
        return run("-m", "mlc_lab.cli", "lab", *rest)
    # One file, one worker: tests of a file share their compiled kernels and servers.
    pytest = ("-m", "pytest", "-n", "auto", "--dist", "loadfile")
    if verb == "test":
        fetch_browser()
        checked = 0
        if node_tools():
            checked = npm("test", "--silent")
        else:
            print("no npm, or it cannot install: the scripts of the views are not checked")
        return run(*pytest, *rest) or checked
    if verb == "coverage":
        fetch_browser()
        return run(*pytest, "--cov", "--cov-report=term", "--cov-report=html", *rest)
    if verb == "check":
        return run("-m", "pytest", "-q", "-p", "no:xdist", "tests/test_style.py",
                   "tests/test_layers.py", "tests/test_docs.py", "tests/test_readme.py", *rest)
    if verb == "types":
        return types()
    if verb == "texts":
        return run("translations/build.py", *rest)
    if verb == "package":
        return package()
    if verb == "fuzz":
        path = os.pathsep.join([str(ROOT / "tests"), str(ROOT)])
        return run("-m", "fuzz", *rest, PYTHONPATH=path)
    if verb == "site":
        return run("website/build.py", *rest)
    return 0


if __name__ == "__main__":
    sys.exit(main())
