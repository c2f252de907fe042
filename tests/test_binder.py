"""Binder's environment has what the lessons import: that, and nothing that they do not.

`python dev.py lessons` installs it and runs every lesson there; this compares what is written.
"""

import ast
import json
import re
import sys
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parent.parent
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
LESSONS = sorted((ROOT / "notebooks").rglob("*.ipynb"))
#: import name -> name of the package, where they differ
PACKAGES = {"sklearn": "scikit-learn", "IPython": "jupyterlab"}
#: what a package brings that lessons may import
OURS = {"mlc_lab", "mlc_lab_widgets", "tvm"}


def imported(path):
    """The modules that the cells of a lesson import, outside of the standard library."""
    found = set()
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        lines = "".join(cell["source"]).splitlines()
        code = "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in lines)
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module.partition(".")[0])
    return {PACKAGES.get(n, n) for n in found - OURS if n not in sys.stdlib_module_names}


def extra(name):
    """The packages of an extra, without versions."""
    listed = re.search(rf"^{name} = \[(.*?)\]$", PROJECT, re.M | re.S)[1]
    return {re.match(r"[\w.-]+", item)[0] for item in re.findall(r'"([^"]+)"', listed)}


def extras_of_binder():
    text = (ROOT / "binder" / "postBuild").read_text(encoding="utf-8")
    return re.search(r'pip install --no-cache-dir "\.\[([\w,]+)\]"', text)[1].split(",")


def conda():
    """The packages of binder/environment.yml, under the names that pip knows."""
    found = yaml.safe_load((ROOT / "binder" / "environment.yml").read_text(encoding="utf-8"))
    names = {re.split("[=<>]", package)[0] for package in found["dependencies"]}
    return {"torch" if n == "pytorch-cpu" else n for n in names} - {"python", "pip"}


def installed():
    core = set(re.findall(r'"([\w-]+)>', re.search(r"^dependencies = (.*)$", PROJECT, re.M)[1]))
    return core.union(conda(), *map(extra, extras_of_binder()))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda p: p.stem)
def test_what_a_lesson_imports_is_installed(lesson):
    assert imported(lesson) - installed() == set()


def test_nothing_large_is_installed_that_no_lesson_imports():
    used = set().union(*map(imported, LESSONS))
    assert conda() <= used
    # what a search imports behind the lessons is of this extra, which one of them imports itself
    assert extras_of_binder() == ["lab", "tune"] and extra("tune") & used


def test_the_command_installs_what_binder_installs():
    sys.path.insert(0, str(ROOT))
    import dev

    project, *others = dev.lessons_need()
    assert project == f"{ROOT}[{','.join(extras_of_binder())}]"
    assert set(others) == conda()


def test_the_version_of_python_is_one_that_is_tested():
    found = yaml.safe_load((ROOT / "binder" / "environment.yml").read_text(encoding="utf-8"))
    (python,) = [p for p in found["dependencies"] if p.startswith("python=")]
    assert f"Python :: {python.removeprefix('python=')}" in PROJECT
    assert not (ROOT / "binder" / "runtime.txt").exists()  # environment.yml says it
