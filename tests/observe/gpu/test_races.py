"""Races that are there are found, with their threads; programs without any have none."""

import numpy as np
import pytest
from backend.gpu_programs import PROGRAMS, tiled

import mlc_lab as tvm
from mlc_lab.lower.thread_sync import ThreadSync
from mlc_lab.observe.measure import Unmeasurable
from mlc_lab.lower import pipeline
from mlc_lab.ir.transform import Pass, PassInfo
from mlc_lab.script import from_source

from .programs import copies, kernel, through_shared


@pytest.fixture
def no_barriers(monkeypatch):
    """Lowering that forgets them."""
    nothing = Pass(lambda mod, ctx: mod, PassInfo("tir.ThreadSync"))
    monkeypatch.setattr(pipeline, "ThreadSync", lambda: nothing)
    assert ThreadSync is not pipeline.ThreadSync


@pytest.mark.parametrize("name", PROGRAMS)
def test_lowered_programs_have_no_races(name):
    sizes = {"m": 7, "n": 53}
    if name == "scalars":
        sizes = {}
    assert str(tvm.find_races(PROGRAMS[name](), sizes=sizes)) == "no races"


def test_a_barrier_that_is_missing_is_a_race(no_barriers):
    (race,) = tvm.find_races(through_shared("t", "31 - t"))
    assert race.element.startswith("S[") and race.count == 32
    assert "threadIdx.x = " in race.first and "stores it" in race.first
    assert "loads it" in race.second
    assert race.statements[0].startswith("S[") and race.statements[1].startswith("B[")
    text = str(race)
    assert "no barrier between them (32 elements are)" in text
    # what a thread stored itself, it may load
    assert not tvm.find_races(through_shared("t", "t"))


def test_a_product_without_barriers_is_full_of_races(no_barriers):
    found = tvm.find_races(tiled())
    assert {r.element.partition("[")[0] for r in found} == {"A_shared", "B_shared"}
    # a tile is read before it is there, and written while it is read
    verbs = {(r.first.split()[-3], r.second.split()[-3]) for r in found}
    assert verbs == {("stores", "loads"), ("loads", "stores")}


def test_threads_that_store_to_one_element():
    many = kernel("B[t // 2] = A[t]",
                  'A: T.Buffer((32,), "float32"), B: T.Buffer((16,), "float32")')
    (race,) = tvm.find_races(many)
    assert race.count == 16 and race.statements[0] == race.statements[1]
    same = kernel("B[t // 2] = A[t // 2]",
                  'A: T.Buffer((32,), "float32"), B: T.Buffer((16,), "float32")')
    assert not tvm.find_races(same)


def test_blocks_have_no_barriers_between_them():
    blocks = kernel("B[(b * 32 + t) // 2] = A[b * 32 + t]\nC[b * 32 + t] = B[31 - t]",
                    'A: T.Buffer((64,), "float32"), B: T.Buffer((32,), "float32"), '
                    'C: T.Buffer((64,), "float32")', 32, 2)
    found = tvm.find_races(blocks)
    assert any("a thread of block" in r.first for r in found)
    assert not tvm.find_races(copies("b * 32 + t", 32, 2))


def test_a_barrier_that_some_threads_miss():
    program = from_source("""
@T.prim_func
def main(B: T.Buffer((32,), "float32"), n: T.int32):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        B[t] = T.float32(1)
        if t < n:
            T.evaluate(T.tvm_storage_sync("shared"))
            B[t] = T.float32(2)
""")
    import numpy as np

    (race,) = tvm.find_races(program, arrays=[np.zeros(32, "float32"), 4])
    assert not race.element
    assert "threadIdx.x = 0 waits at a barrier that the thread threadIdx.x = 4 never" in str(race)
    assert "4 of 32 threads" in str(race)
    with pytest.raises(Unmeasurable, match="wait for ever"):
        tvm.count_gpu(program, arrays=[np.zeros(32, "float32"), 4])
    assert not tvm.find_races(program, arrays=[np.zeros(32, "float32"), 40])


def test_large_launches_are_refused():
    with pytest.raises(Unmeasurable, match="take smaller shapes"):
        tvm.find_races(copies("b * 128 + t", 128, 2048, 2048 * 128))


def test_a_loop_without_end_is_reported(monkeypatch):
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "int32")):
    for t in T.thread_binding(4, thread="threadIdx.x"):
        with T.block("A"):
            v = T.axis.spatial(4, t)
            T.reads(A[0:4])
            T.writes(A[0:4])
            while A[v] > 0:
                A[v] = T.if_then_else(A[v] < 10, A[v] + 1, 1)
""")
    monkeypatch.setenv("MLC_LAB_DEVICE_LIMIT", "0.2")
    for look in (tvm.find_races, tvm.count_gpu):
        with pytest.raises(Unmeasurable, match="not ended after 0.2 s"):
            look(program, "cuda", arrays=[np.ones(4, "int32")])
