"""Calls whose result is returned as it is are jumps."""

import _thread
import signal
import threading

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.script import ir as I
from mlc_lab.script import relax as R


@I.ir_module
class Counting:
    @R.function
    def down(x: R.Tensor((), "int64"), y: R.Tensor((2,), "int64")) -> R.Tensor((2,), "int64"):
        cls = Counting
        more = R.greater(x, R.const(0, "int64"))
        if more:
            z = R.add(y, R.const(1, "int64"))
            out: R.Tensor((2,), "int64") = cls.over(x, z)
        else:
            out = y
        return out

    @R.function
    def over(x: R.Tensor((), "int64"), y: R.Tensor((2,), "int64")) -> R.Tensor((2,), "int64"):
        cls = Counting
        w = R.subtract(x, R.const(1, "int64"))
        out: R.Tensor((2,), "int64") = cls.down(w, y)
        return out

    @R.function
    def twice(x: R.Tensor((), "int64"), y: R.Tensor((2,), "int64")) -> R.Tensor((2,), "int64"):
        cls = Counting
        out: R.Tensor((2,), "int64") = cls.down(x, y)
        return R.add(out, out)


Y = np.array([1, 2])


def number(value):
    return np.array(value, "int64")


@pytest.fixture(scope="module")
def executable():
    return relax.build(Counting, "llvm")


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_a_loop_by_recursion_takes_any_number_of_turns(executable, mode):
    vm = relax.VirtualMachine(executable, tvm.cpu(), exec_mode=mode)
    for turns in (0, 1, 5_000):
        np.testing.assert_array_equal(vm["down"](number(turns), Y).numpy(), Y + turns)
    np.testing.assert_array_equal(vm["twice"](number(2), Y).numpy(), 2 * (Y + 2))


def test_recordings_and_times_of_jumps(executable):
    vm = relax.VirtualMachine(executable, tvm.cpu())
    trace = vm.trace("down", number(50), Y)
    np.testing.assert_array_equal(trace.result.numpy(), Y + 50)
    assert sum(step.function == "over" and step.name == "down" for step in trace.steps) == 50
    assert {step.depth for step in trace.steps} == {0}
    counts = [c.name for c in vm.profile("down", number(500), Y).calls]
    assert counts.count("subtract") == 500 and "over" not in counts


def test_an_instrument_sees_the_begin_and_the_end_of_a_jump(executable):
    vm = relax.VirtualMachine(executable, tvm.cpu())
    seen = []

    def look(func, name, before, result, *args):
        if name in ("down", "over"):
            seen.append((name, before))
            assert before or (result.numpy() == Y + 2).all()

    vm.set_instrument(look)
    vm["twice"](number(2), Y)
    begun = ["down", "over", "down", "over", "down"]
    assert seen == [(n, True) for n in begun] + [(n, False) for n in reversed(begun)]
    vm.set_instrument(lambda func, name, before, *rest: int(before and name == "over"))
    assert vm["down"](number(2), Y) is None


def test_a_loop_without_end_can_be_interrupted(executable):
    vm = relax.VirtualMachine(executable, tvm.cpu())
    # a shell starts what it runs in the background with the signal ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, _thread.interrupt_main)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            vm["down"](number(2**60), Y)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
