"""Pyright has nothing to say: about the package, and about scripts that are written with it.

What it checks how strictly is in pyproject.toml. It comes with `npm ci`, as the other tools of
development do; where CI is set, it is fetched.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYRIGHT = ROOT / "node_modules" / "pyright" / "index.js"
SAMPLE = Path(__file__).with_name("script_sample.py")


@pytest.fixture(scope="module")
def pyright():
    """A function that checks files, or all that pyproject.toml names, and gives the reports."""
    if not PYRIGHT.exists():
        if not os.environ.get("CI"):
            pytest.skip("needs node and `npm ci`")
        sys.path.insert(0, str(ROOT))
        import dev

        assert dev.node_tools(), "CI needs npm, with node 20 or newer"

    def check(*paths):
        done = subprocess.run(
            [shutil.which("node"), str(PYRIGHT), "--outputjson", "--pythonpath", sys.executable,
             *map(str, paths)], cwd=ROOT, capture_output=True, text=True, timeout=900)
        found = json.loads(done.stdout)["generalDiagnostics"]
        return [f"{Path(d['file']).name}:{d['range']['start']['line'] + 1}: "
                f"{d.get('rule', d['severity'])}: {d['message']}" for d in found]

    return check


def test_the_package_is_clean(pyright):
    found = pyright()
    assert not found, f"{len(found)} reports:\n" + "\n".join(found[:200])


def test_scripts_are_clean(pyright):
    found = pyright(SAMPLE)
    assert not found, "\n".join(found)


def test_the_sample_is_what_it_seems():
    """It runs: what a checker is told is so."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    done = subprocess.run([sys.executable, str(SAMPLE)], capture_output=True, text=True, env=env,
                          timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_mistake_is_found(pyright, tmp_path):
    """The signatures of primitives and of nodes are seen."""
    path = ROOT / "tests" / "checker" / "mistake_of_a_test.py"
    path.write_text("from mlc_lab import tir\nfrom mlc_lab.tir import Add\n"
                    "def f(sch: tir.Schedule, a: tir.Var) -> None:\n"
                    "    sch.split(sch.get_loops(sch.get_block('C'))[0], factor=[2])\n"
                    "    Add(a)\n"
                    "    sch.no_such_primitive()\n", encoding="utf-8")
    try:
        found = pyright(path)
    finally:
        path.unlink()
    assert {line.split(":")[1] for line in found} == {"4", "5", "6"}, found


def test_the_nodes_of_relax_are_seen(pyright):
    path = ROOT / "tests" / "checker" / "relax_of_a_test.py"
    path.write_text("from mlc_lab import relax\n"
                    "def f(func: relax.Function, x: relax.Expr) -> relax.Expr:\n"
                    "    for binding in func.body.blocks[0].bindings:\n"
                    "        if isinstance(binding.value, relax.Call):\n"
                    "            x = x + binding.value.args[0]\n"
                    "    relax.Tuple(x, x, x, x)\n"
                    "    return relax.DataflowVar('y', x.struct_info.no_such_field)\n",
                    encoding="utf-8")
    try:
        found = pyright(path)
    finally:
        path.unlink()
    assert {line.split(":")[1] for line in found} == {"6", "7"}, found
