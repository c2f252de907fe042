"""gpu_counts: bounds on what the kernels of an answer do, and what is told of a broken one."""

import random

import pytest

from mlc_lab import exercises
from mlc_lab.exercises.answers import Answer, read
from mlc_lab.exercises.catalogue import ex_13_2, ex_15_1
from mlc_lab.exercises.checks.equivalent import INTERPRETED, equivalent
from mlc_lab.exercises.checks.gpu_counts import gpu_counts
from mlc_lab.exercises.exercise import Exercise, Values, Variant
from mlc_lab.observe.inner_loop import statements_run
from mlc_lab.script import from_source

TURN = exercises.get("14.2").variant(1)
LONG_SUM = exercises.get("15.1").variant(1)


def found(variant, answer, **asked):
    return gpu_counts(read(variant, answer), variant, **asked)


@pytest.mark.parametrize(("asked", "says"), [
    ({"sectors": 10}, "sectors of global memory; 10 are asked for at most"),
    ({"shared": 10}, "requests of shared memory; 10 are"),
    ({"shared_bytes": 10}, "4,224 bytes of shared memory in a block; 10 are"),
    ({"barriers": 0}, "1 barriers in a block; 0 are"),
    ({"kernels": 0}, "1 launched kernels; 0 are"),
    ({"threads": 10**6}, "threads at once; 1,000,000 are asked for at least"),
    ({"target": "nvidia/nvidia-a100", "occupancy": 1.1}, "limited by warps, with blocks of 256"),
])
def test_a_bound_that_is_broken_is_named(asked, says):
    said = found(TURN, TURN.reference, **asked)
    assert not said.passed and says in said.says


def test_bounds_that_are_kept_are_passed_and_counted():
    said = found(TURN, TURN.reference, conflicts=0, barriers=1, kernels=1, occupancy=1.0,
                 threads=1024, races=True)
    assert said.passed and "0 bank conflicts, 1 barriers a block" in said.says


def test_two_threads_that_clash_are_shown():
    racing = from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((32,), "float32"), B: T.Buffer((16,), "float32")):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            B[t // 2] = A[t]
""")
    said = gpu_counts(Answer("program", mod=racing), TURN, races=True)
    assert not said.passed and said.says.startswith("two threads clash: main_kernel: B[")


def test_a_program_without_threads_is_told_what_to_bind():
    said = found(LONG_SUM, f'sch.get_loops("{LONG_SUM.values.S}")', sectors=10)
    assert not said.passed and "it cannot run on nvidia/geforce-rtx-2080-ti" in said.says


def test_kernels_too_large_to_interpret_are_run_as_kernels():
    """They were refused, as programs that a CPU cannot run."""
    values = {"S": "S", "n": 1 << 17, "parts": 32, "threads": 4096, "most": 1 << 16}
    large = Exercise(**{**vars(ex_15_1.EXERCISE), "draw": lambda rng: values})
    variant = Variant(large, "0")
    right = read(variant, ex_15_1.answer(Values(**values)))
    assert statements_run(right.mod, {}) > INTERPRETED
    said = equivalent(right, variant, cases=1, nasty=False)
    assert said.passed, said.says


def test_wrong_kernels_too_large_to_interpret_are_found():
    values = ex_13_2.draw(random.Random(0)) | {"n": 64, "c": 40, "w": 128}
    large = Exercise(**{**vars(ex_13_2.EXERCISE), "draw": lambda rng: values})
    variant = Variant(large, "0")
    answer = read(variant, ex_13_2.answer(variant.values))
    assert answer.mod is not None
    wrong = answer.mod.script().replace("* S[", "+ S[")
    answer.mod = from_source(wrong)
    said = equivalent(answer, variant, cases=1, nasty=False)
    assert not said.passed and "should be" in said.says
