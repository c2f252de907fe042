"""Measuring a recording: costs, checks, budgets, interrupts, programs that fail."""

import math

import numpy as np
import pytest

from mlc_lab.observe import measure
from mlc_lab.observe.measure import (
    Measurement, Unmeasurable, difference, random_arrays, time_program,
)
from mlc_lab.observe.session import record
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source
from mlc_lab.script import tir as T

from .schedules import module, schedule

BUILD = measure._build


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(measure, "TIME_EACH", 0.005)
    monkeypatch.setattr(measure, "_peak_of_one_core", lambda dtype: 100.0)


def test_every_step_gets_its_time_and_equals_the_original():
    recording = record(schedule()).measure()
    assert recording.flops == 2 * 16 * 32 * 24 + 16 * 32
    for number, step in enumerate(recording.steps):
        cost = recording.cost(number)
        if step.error:
            assert cost is None
            continue
        assert cost["time"] > 0 and cost["runs"] >= 3 and cost["spread"] >= 0
        assert cost["equal"] is True and cost["max_error"] < 1e-4
        assert math.isclose(cost["gflops"], recording.flops / cost["time"] / 1e9)
        top = recording.machine["peak_gflops"]  # measured again where a program is above it
        assert top >= 100.0 and math.isclose(cost["peak_fraction"], cost["gflops"] / top)
    assert recording.machine["cores"] == 1 and recording.machine["cpu"]


def test_a_wrong_program_is_reported_as_different():
    made = record(schedule())
    wrong = from_source(module().script().replace("A[vi, vk] * B[vk, vj]", "A[vi, vk]"))

    def build(mod, target):
        return BUILD(wrong if mod is made.modules[2] else mod, target)

    recording = made.measure(build=build)
    assert [p.cost["equal"] for p in recording.programs].count(False) == 1
    assert recording.programs[2].cost["equal"] is False
    assert recording.programs[2].cost["max_error"] > 0.1


def test_a_program_that_does_not_build_says_so_and_the_others_are_measured():
    made = record(schedule())

    def build(mod, target):
        if mod is made.modules[1]:
            raise ValueError("no code for this\nand more")
        return BUILD(mod, target)

    recording = made.measure(build=build)
    assert recording.programs[1].cost == {
        "message": "could not be built or run: ValueError: no code for this"
    }
    assert recording.programs[2].cost["equal"] is True


def test_an_interrupt_keeps_what_was_found():
    made = record(schedule())

    def build(mod, target):
        if mod is made.modules[2]:
            raise KeyboardInterrupt
        return BUILD(mod, target)

    recording = made.measure(build=build)
    found = [p.cost is not None for p in recording.programs]
    assert found[0] and found[-1] and not all(found)
    # Measuring again takes up where it was left.
    made.measure()
    assert all(p.cost["equal"] for p in recording.programs)


def test_the_budget_ends_measuring():
    made = record(schedule())
    recording = made.measure(budget_s=0.0)
    assert all("used up" in p.cost["message"] for p in recording.programs)
    made.measure()  # what was left is measured then
    assert all(p.cost["equal"] and "message" not in p.cost for p in recording.programs)


def test_first_and_last_are_measured_first_and_what_is_slow_at_the_end():
    """Programs get quicker from step to step; the budget must not go to those in front."""
    recording = record(schedule()).recording
    count = len(recording.programs)
    order = []

    class Known(Measurement):
        def one(self, index):
            order.append(index)
            return {"time": 1.0 if index <= count // 2 else 1e-3}

    Known(recording, recording.modules).all(progress=False)
    assert order[:2] == [0, count - 1] and sorted(order) == list(range(count))
    quick = [i for i in order[2:] if i > count // 2]
    assert order[2:2 + len(quick)] == quick


def test_a_program_that_takes_long_is_run_once():
    calls = []
    assert time_program(lambda: calls.append(1), [], 0.25, 0.5) == {"time": 0.5, "runs": 1}
    assert not calls


def test_symbolic_sizes_have_to_be_named():
    source = module().script()
    symbolic = '''
@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * T.float32(2)
'''
    assert source
    sch = Schedule(from_source(symbolic))
    sch.parallel(sch.get_loops(sch.get_block("B"))[0])
    recording = record(sch).measure()
    assert "size n is not known" in recording.programs[0].cost["message"]
    recording = record(sch).measure(sizes={"n": 100})
    assert recording.programs[1].cost["equal"] is True
    assert recording.flops == 100
    assert recording.machine["cores"] >= 1


def test_random_data_is_the_same_each_time_and_of_the_right_kind():
    (_, func), = module().functions.items()
    one, two = random_arrays(func), random_arrays(func)
    assert all(np.array_equal(a, b) for a, b in zip(one, two))
    assert [a.shape for a in one] == [(16, 24), (24, 32), (16, 32)]
    assert one[0].dtype == np.float32 and -1 <= one[0].min() < 0 < one[0].max() < 1


def test_a_parameter_that_is_no_buffer_is_refused():
    func = from_source("@T.prim_func\ndef f(n: T.int32):\n    T.evaluate(n)")
    with pytest.raises(Unmeasurable, match="n is no buffer"):
        random_arrays(func)


def test_difference_allows_rounding_and_nothing_else():
    right = np.linspace(-1, 1, 100, dtype=np.float32)
    assert difference([right * np.float32(1 + 1e-6)], [right]) == (True, pytest.approx(1e-6, 0.1))
    assert difference([right + np.float32(1e-2)], [right])[0] is False
    assert difference([np.array([1, 2])], [np.array([1, 3])]) == (False, 1.0)
    nan = np.array([np.nan, np.inf])
    assert difference([nan], [nan.copy()]) == (True, 0.0)
    assert difference([np.array([np.nan])], [np.array([1.0])])[0] is False


def test_a_function_of_another_name_than_main_is_measured_and_counted():
    @T.prim_func
    def doubled(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi] * 2.0

    sch = Schedule(doubled)
    assert sch.mod["main"].attrs["global_symbol"] == "doubled"
    assert sch.count_accesses("8K:8").level("L1").misses == 8
    bench = sch.workbench().bench
    bench.measure()
    assert bench.cost(bench.attempts[0])["equal"]
