"""Measuring in a process of its own: programs that crash, hang or want too much memory."""

import pytest

from mlc_lab.observe import measure
from mlc_lab.observe.isolate import Isolated
from mlc_lab.observe.measure import Measurement
from mlc_lab.observe.recording import Program, Recorder
from mlc_lab.observe.session import record
from mlc_lab.script import from_source

from .schedules import module, schedule

HEAD = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
"""
GOOD = HEAD + """
    for i in range(16):
        B[i] = A[i] + T.float32(1)
"""
WRONG = GOOD.replace("T.float32(1)", "T.float32(2)")
CRASH = GOOD.replace("B[i] =", "B[i * 1000000000 + 500000000] =")
HANG = HEAD + """
    while A[0] < T.float32(100):
        B[0] = B[0] + T.float32(1)
"""
GREEDY = HEAD + """
    C = T.alloc_buffer((2000000, 1000))
    for i, j in T.grid(2000000, 1000):
        C[i, j] = A[0]
    for i in range(16):
        B[i] = C[i * 125000, 0]
"""


def program(source):
    from mlc_lab.ir.module import IRModule

    return IRModule({"main": from_source(source)})


@pytest.fixture
def apart():
    with Isolated(program(GOOD), timeout_s=4.0, memory=1 << 30) as found:
        yield found


def test_a_program_is_timed_and_checked_elsewhere(apart):
    cost = apart.cost(program(GOOD), 0.01)
    assert cost["equal"] is True and cost["time"] > 0 and cost["runs"] >= 3
    cost = apart.cost(program(WRONG), 0.01)
    assert cost["equal"] is False and cost["max_error"] == pytest.approx(1.0)


def test_a_crash_costs_only_its_own_measurement(apart):
    assert "crashed" in apart.cost(program(CRASH), 0.01)["message"]
    assert apart.cost(program(GOOD), 0.01)["equal"] is True


def test_a_hang_is_stopped(apart):
    apart.cost(program(GOOD), 0.01)
    apart.timeout_s = 1.0
    assert apart.cost(program(HANG), 0.01)["message"] == "stopped: it took more than 1 s"
    apart.timeout_s = 10.0
    assert apart.cost(program(GOOD), 0.01)["equal"] is True


def test_too_much_memory_is_refused(apart):
    told = apart.cost(program(GREEDY), 0.01)
    assert "time" not in told and told["message"]
    assert apart.cost(program(GOOD), 0.01)["equal"] is True


def test_a_reference_that_crashes_leaves_results_unchecked():
    with Isolated(program(CRASH), timeout_s=10.0) as apart:
        cost = apart.cost(program(GOOD), 0.01)
        assert cost["time"] > 0 and "equal" not in cost
        assert "crashed" in apart.unchecked


def test_a_recording_is_measured_apart(monkeypatch):
    monkeypatch.setattr(measure, "TIME_EACH", 0.005)
    monkeypatch.setattr(measure, "_peak_of_one_core", lambda dtype: 100.0)
    recording = record(schedule()).measure(isolate=True)
    for number, step in enumerate(recording.steps):
        cost = recording.cost(number)
        assert step.error or cost["equal"] is True and cost["gflops"] > 0


def test_a_program_that_calls_python_is_measured_where_the_function_is(monkeypatch):
    from mlc_lab.runtime import register_func

    monkeypatch.setattr(measure, "TIME_EACH", 0.005)
    monkeypatch.setattr(measure, "_peak_of_one_core", lambda dtype: None)
    called = []
    register_func("test_isolate.touch", lambda data: called.append(1), override=True)
    source = HEAD + """
    T.evaluate(T.call_packed("test_isolate.touch", A))
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] + T.float32(1)
"""
    recording = Recorder().recording
    recording.programs.append(Program([]))
    Measurement(recording, [program(source)], isolate=True, trusted=True).all()
    assert recording.programs[0].cost["equal"] is True and called


def test_only_the_programs_asked_for_are_measured(monkeypatch):
    monkeypatch.setattr(measure, "TIME_EACH", 0.005)
    made = record(schedule())
    Measurement(made.recording, made.modules).all(only=[0, 2])
    assert [p.cost is not None for p in made.recording.programs[:4]] == [True, False, True, False]


def test_the_child_is_gone_afterwards():
    apart = Isolated(module())
    apart.cost(module(), 0.001)
    worker = apart.worker
    apart.close()
    assert not worker.alive and apart.worker is None
