#!/usr/bin/env python3
"""Set up MLC Lab on a machine that has Python 3.10 or newer and nothing else, and run it.

    python dev.py lab     install everything into .venv and open JupyterLab on notebooks/
    python dev.py test    install everything into .venv and run every test
    python dev.py setup   only install
    python dev.py fuzz --minutes 60    look for wrong answers with random programs

Words after `lab` go to JupyterLab, words after `test` to pytest. This file uses the standard
library alone and says nothing about the compiler: look into mlc_lab/__init__.py for that.
"""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
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
    if STAMP.exists() and STAMP.read_text() == wanted:
        return
    print("installing MLC Lab and all it uses (a few minutes the first time)", flush=True)
    command = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    if subprocess.call([*map(str, command), "--editable", f"{ROOT}[all]"]) != 0:
        sys.exit("pip could not install the project; its message stands above this line")
    STAMP.write_text(wanted)


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


def main() -> int:
    if sys.version_info < (3, 10):
        sys.exit(f"MLC Lab needs Python 3.10 or newer; this is {sys.version.split()[0]}")
    verb, *rest = sys.argv[1:] or ["help"]
    if verb not in ("lab", "test", "setup", "fuzz"):
        print(__doc__)
        return 0 if verb in ("help", "-h", "--help") else 2
    make_environment()
    install()
    if verb == "lab":
        return run("-m", "mlc_lab.cli", "lab", *rest)
    if verb == "test":
        fetch_browser()
        # One file, one worker: tests of a file share their compiled kernels and servers.
        return run("-m", "pytest", "-n", "auto", "--dist", "loadfile", *rest)
    if verb == "fuzz":
        path = os.pathsep.join([str(ROOT / "tests"), str(ROOT)])
        return run("-m", "fuzz", *rest, PYTHONPATH=path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
