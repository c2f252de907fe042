"""The simulated device looks for races by itself where shapes are small, and says what it finds."""

import warnings

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.backend.device.race_checks import RaceWarning
from mlc_lab.runtime import driver
from mlc_lab.script import from_source

from .gpu_programs import PROGRAMS, arguments


@pytest.fixture(autouse=True)
def simulated(monkeypatch):
    monkeypatch.setenv("MLC_LAB_DEVICE", "simulated")
    monkeypatch.delenv("MLC_LAB_RACES", raising=False)
    driver.driver_of.cache_clear()
    yield
    driver.driver_of.cache_clear()


def halves(threads):
    """Two threads store to each element."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({threads},), "float32"), B: T.Buffer(({threads // 2},), "float32")):
    for b in T.thread_binding({threads // 32}, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("B"):
                v = T.axis.spatial({threads}, b * 32 + t)
                T.reads(A[v])
                T.writes(B[v // 2])
                B[v // 2] = A[v]
""")


def called(built, *arrays):
    """What is said when a program runs, and its arrays after that."""
    there = [tvm.nd.array(a, tvm.cuda(0)) if isinstance(a, np.ndarray) else a for a in arrays]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        built["main"](*there)
    return [str(w.message) for w in said if w.category is RaceWarning], there


def arrays(threads):
    return np.arange(threads, dtype="float32"), np.zeros(threads // 2, "float32")


def test_a_race_is_shown_with_its_threads_and_the_program_runs():
    built = tvm.build(halves(64), target="cuda")
    (text,), there = called(built, *arrays(64))
    assert "main: threads access one element with nothing to order them" in text
    assert "B[0] is accessed by two threads with no barrier between them (32 elements are)" in text
    assert "threadIdx.x = " in text and "B[" in text.splitlines()[3]
    assert set(there[1].numpy() // 2) == set(range(32))
    assert called(built, *arrays(64))[0] == []  # it is said once


@pytest.mark.parametrize("when, threads, told", [
    ("small", 64, True), ("small", 4096, False), ("all", 4096, True), ("none", 64, False),
    ("", 64, True)])
def test_the_option_says_when(monkeypatch, when, threads, told):
    monkeypatch.setenv("MLC_LAB_RACES", when)
    assert bool(called(tvm.build(halves(threads), target="cuda"), *arrays(threads))[0]) == told


def test_another_value_of_the_option_is_refused(monkeypatch):
    monkeypatch.setenv("MLC_LAB_RACES", "yes")
    with pytest.raises(ValueError, match="MLC_LAB_RACES is 'yes': it is small, all or none"):
        called(tvm.build(halves(64), target="cuda"), *arrays(64))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_without_races_say_nothing_and_their_numbers_stay(name):
    mod = tvm.IRModule({"main": PROGRAMS[name]()}) if hasattr(PROGRAMS[name](), "body") else (
        PROGRAMS[name]())
    given = arguments(mod)
    said, there = called(tvm.build(mod, target="cuda"), *given)
    assert said == []
    for before, after in zip(given[:1], there[:1]):
        np.testing.assert_array_equal(after.numpy(), before)


SCATTER = """
@T.prim_func
def main(I: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("B"):
            v = T.axis.spatial(32, t)
            T.reads(I[v])
            T.writes(B[0:32])
            B[I[v]] = v
"""


def test_the_numbers_of_the_call_decide():
    for places, told in ((np.arange(32)[::-1], False), (np.arange(32) // 2, True)):
        built = tvm.build(from_source(SCATTER), target="cuda")
        said, _ = called(built, places.astype("int32"), np.zeros(32, "int32"))
        assert bool(said) == told


TWICE = """
@T.prim_func
def main(I: T.Buffer((4096,), "int32"), B: T.Buffer((4096,), "int32")):
    J = T.alloc_buffer((4096,), "int32")
    for b in T.thread_binding(128, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("J"):
                v = T.axis.spatial(4096, b * 32 + t)
                J[v] = I[v]
    for t in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("B"):
            v = T.axis.spatial(32, t)
            T.reads(J[v])
            T.writes(B[0:4096])
            B[J[v]] = v
"""


def test_what_a_large_launch_would_have_stored_is_not_guessed():
    """The second kernel is small, and its places are what the first one stores."""
    built = tvm.build(from_source(TWICE), target="cuda")
    there = np.arange(4096, dtype="int32")
    assert called(built, there, np.zeros(4096, "int32"))[0] == []
