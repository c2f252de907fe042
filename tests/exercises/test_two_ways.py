"""equivalent looks at what is interpreted and at what is compiled, of small and large programs."""

import importlib

import pytest

from mlc_lab import exercises
from mlc_lab.exercises.checks.work import CODE, RUN, too_large, work
from mlc_lab.exercises.judging import marks
from mlc_lab.lower.pipeline import as_module
from mlc_lab.script import from_source

#: the module, whose name is that of its function too
checks = importlib.import_module("mlc_lab.exercises.checks.equivalent")
SMALL, LARGE = exercises.get("05.5").variant(1), exercises.get("03.2").variant(1)


def spoiled(monkeypatch, name):
    """Let one way of running programs be wrong for answers, and count how often it is asked."""
    right, asked = getattr(checks, name), []

    def run(mod, arrays):
        out = right(mod, arrays)
        asked.append(mod)
        if len(asked) % 2 == 0:  # the right program is run first
            out[-1].flat[-1] += 1
        return out

    monkeypatch.setattr(checks, name, run)
    return asked


def test_a_small_program_is_compiled_too(monkeypatch):
    asked = spoiled(monkeypatch, "run_compiled")
    found = str(marks(SMALL, SMALL.reference))
    assert asked and "(compiled; interpreted it is right)" in found, found


def test_a_small_program_is_interpreted(monkeypatch):
    asked = spoiled(monkeypatch, "_interpreted")
    found = str(marks(SMALL, SMALL.reference))
    assert asked and "should be" in found and "compiled" not in found, found


def test_the_schedule_of_a_large_program_is_interpreted_on_a_smaller_one(monkeypatch):
    asked = spoiled(monkeypatch, "_interpreted")
    found = str(marks(LARGE, LARGE.reference))
    assert len(asked) == 2 and "on a smaller shape: " in found, found
    monkeypatch.undo()
    v = LARGE.values  # what holds for the large shape alone is no mistake
    fits = f'sch.split(sch.get_loops("{v.C}")[0], [2, {v.n // 2}], disable_predication=True)'
    assert "it computes the product  (1 of 1)" in str(marks(LARGE, fits))


@pytest.mark.parametrize("id", ["01.2", "03.2", "03.3", "05.3", "05.4", "08.4"])
def test_references_fit_the_smaller_shape(id, monkeypatch):
    asked = []
    monkeypatch.setattr(checks, "_interpreted", lambda mod, arrays: asked.append(mod) or arrays)
    task = exercises.get(id).variant(3)
    assert marks(task, task.reference).rows[0].passed and len(asked) == 2


TRIANGLE = as_module(from_source("""
@T.prim_func
def main(A: T.Buffer((64,), "int32"), B: T.Buffer((64, 64), "float32")):
    for i in range(64):
        for j in range(i + 1):
            B[i, j] = 0.0
"""))
FROM_DATA = as_module(from_source("""
@T.prim_func
def main(A: T.Buffer((64,), "int32"), B: T.Buffer((64, 64), "float32")):
    for i in range(64):
        for j in range(A[i]):
            B[i, 0] = 0.0
"""))


def test_work_is_counted_in_the_program():
    assert work(TRIANGLE).statements == 64 * 64 and work(TRIANGLE).counted  # at its largest
    assert not work(FROM_DATA).counted and not too_large(TRIANGLE)
    assert "give each loop a number of iterations" in too_large(FROM_DATA)
    assert not too_large(FROM_DATA, interpreted=True)
    assert f"runs {RUN // 10**7:,} at most" in too_large(TRIANGLE, runs=10**7)
    plain = LARGE.program
    assert work(plain).statements == LARGE.values.n ** 3 and work(plain).code < CODE
