"""The recipes of CONTRIBUTING.md, followed word by word in a copy of the repository.

A recipe is a section under "Recipes". What it says to do stands in lines of four forms, each before
a block of code, and this file does just that:

    A new file, `PATH`:
    In `PATH`, below the line `LINE`:       (or above it)
    In `PATH`, replace the line `LINE`:
    Run:

A line is found by its text without the spaces around it, and must be there once.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
STEP = re.compile(
    r"^(?:(?P<new>A new file), `(?P<file>[^`]+)`"
    r"|In `(?P<path>[^`]+)`, (?P<how>below|above|replace) the line `(?P<line>[^`]+)`"
    r"|(?P<run>Run)):\n\n```\w*\n(?P<text>.*?)^```$", re.M | re.S)


def recipes():
    """The text of each recipe by its title."""
    sections = PAGE.partition("\n## Recipes\n")[2].split("\n### ")[1:]
    return dict(section.split("\n", 1) for section in sections)


RECIPES = recipes()


def copied(folder):
    """A copy of what the tests of a recipe need, with the widgets under the name they install as.

    That name is in a folder of its own, which is filled when all changes are made. Files keep their
    times, so that what Python has compiled already is valid in the copy.
    """
    ignore = shutil.ignore_patterns(".*")
    for name in ("mlc_lab", "widgets", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    for name in ("pyproject.toml", "conftest.py", "package.json"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def npm_run(folder, name):
    """Run a script of package.json, with esbuild from the checkout."""
    if not shutil.which("node") or not (ROOT / "node_modules" / "esbuild").exists():
        pytest.skip("needs node and `npm ci`")
    for package in ("esbuild", "@esbuild"):
        shutil.copytree(ROOT / "node_modules" / package, folder / "node_modules" / package)
    scripts = json.loads((folder / "package.json").read_text(encoding="utf-8"))["scripts"]
    done = subprocess.run(shlex.split(scripts[name]), cwd=folder, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def edit(path, how, line, text):
    """Put text below, above, or in the place of a line."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    found = [k for k, have in enumerate(lines) if have.strip() == line]
    assert len(found) == 1, f"{path} has the line {line!r} {len(found)} times"
    at = found[0]
    start, stop = {"below": (at + 1, at + 1), "above": (at, at), "replace": (at, at + 1)}[how]
    lines[start:stop] = [text]
    path.write_text("".join(lines), encoding="utf-8")


def follow(recipe, folder):
    """Do what a recipe says. Returns the files it touched and the commands it gives."""
    touched, commands = set(), []
    for step in STEP.finditer(recipe):
        path, text = step["file"] or step["path"], step["text"]
        if step["run"]:
            commands += text.splitlines()
            continue
        touched.add(path)
        if step["new"]:
            assert not (folder / path).exists(), f"{path} is not new"
            (folder / path).write_text(text, encoding="utf-8")
        else:
            edit(folder / path, step["how"], step["line"], text)
    return touched, commands


def python(folder, words, timeout=300):
    """Run Python in a copy, with the packages of the copy before those that are installed."""
    shutil.copytree(folder / "widgets", folder / "installed" / "mlc_lab_widgets",
                    dirs_exist_ok=True)
    paths = [folder, folder / "tests", folder / "installed"]
    return subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=timeout,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))})


def words_of(command):
    """The words of a command line; those in quotation marks are one."""
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', command)]


def test_every_kind_of_addition_has_its_recipe():
    assert list(RECIPES) == ["A primitive", "A pass", "An operator", "A converter",
                             "A schedule rule", "A target", "A view"]


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_works_word_by_word(title, tmp_path):
    recipe = RECIPES[title]
    folder = copied(tmp_path)
    touched, commands = follow(recipe, folder)
    said = re.search(r"^Touches (\d+) files", recipe, re.M)
    assert len(touched) == int(said[1]), sorted(touched)
    style = python(folder, ["-m", "ruff", "check", "--output-format", "concise",
                            *[p for p in sorted(touched) if p.endswith(".py")]])
    assert style.returncode == 0, style.stdout + style.stderr
    for first, *words in map(words_of, commands):
        if first == "npm":
            assert words[0] == "run"
            npm_run(folder, *words[1:])
            continue
        assert first == "python" and words[:2] == ["-m", "pytest"]
        done = python(folder, [*words, "-q", "-p", "no:cacheprovider", "-p", "no:xdist"])
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert re.search(r"\d+ passed", done.stdout)
    assert first == "python"  # the last command is a test


OUTSIDE = '''
import numpy as np
import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.build import BUILDERS
from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.relax.op.elementwise import infer_float
from mlc_lab.relax.op.registry import make_call, register_legalize, register_op
from mlc_lab.schedule import Schedule, Trace
from mlc_lab.schedule.instruction import primitive
from mlc_lab.script import from_source
from mlc_lab.target import KINDS, TargetKind
from mlc_lab.tir.stmt import ForKind

FUNC = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)
""")


@primitive("Serially")
def serially(state, loop):
    """Run a loop in order."""
    state.replace(loop, loop.stmt.replace(kind=ForKind.SERIAL))


sch = Schedule(FUNC)
(i,) = sch.get_loops(sch.get_block("B"))
sch.parallel(i)
sch.serially(i)
assert "sch.serially(loop=l1)" in str(sch.trace)
for trace in (Trace.from_python(str(sch.trace)), Trace.from_json(sch.trace.as_json())):
    again = Schedule(FUNC)
    trace.apply_to_schedule(again)
    assert_structural_equal(again.mod, Schedule(FUNC).mod)

register_op("relax.twice", infer_float)
register_legalize("relax.twice", lambda bb, call: bb.call_te(
    lambda x: tvm.topi.add(x, x), *call.args, primfunc_name_hint="twice"))
bb = relax.BlockBuilder()
x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
with bb.function("main", [x]):
    bb.emit_func_output(bb.emit(make_call("relax.twice", (x,))))
vm = relax.VirtualMachine(relax.build(bb.get(), "llvm"), tvm.cpu())
np.testing.assert_array_equal(vm["main"](tvm.nd.array(np.ones(3, "float32"))).numpy(), 2)

KINDS["mine"] = TargetKind("mine", "cpu", {}, ("mine",))
BUILDERS["mine"] = lambda mod, target: BUILDERS["llvm"](mod, tvm.target.Target("llvm"))
out = np.zeros(8, "float32")
tvm.build(FUNC, target="mine")["main"](np.ones(8, "float32"), out)
assert (out == 2).all()
print("outside")
'''


def test_a_primitive_an_operator_and_a_target_can_be_added_from_outside(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(OUTSIDE, encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.stdout == "outside\n", done.stdout + done.stderr
