"""The cache simulator against valgrind's, on the same kernel, addresses and caches.

Where the kernel is compiled without LLVM's optimisations, its scalar loads and stores are those of
the lowered program, one by one: reads, writes and misses agree but for what the executable does
itself (a call, a return, the stack: at most SLACK). Vectors do not agree in number (a processor's
vector may be shorter than the program's, and a value just stored need not be loaded again), and
LLVM is free to order the loads of a statement. That leaves which lines are used when nearly as it
was: the misses of a cache with some ways agree within a percent.
"""

import pytest

from mlc_lab.observe.counts import count_accesses
from mlc_lab.script import tir as T

from .cachegrind import cachegrind, needs_valgrind
from .programs import matmul, tiled

pytestmark = needs_valgrind
SLACK = 8
CACHES = ["4K:2,32K:8", "8K:8,256K:16", "2K:1:32,16K:4:32"]


@T.prim_func
def transpose(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32")):
    for i, j in T.grid(128, 128):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vj, vi] = A[vi, vj]


@T.prim_func
def blur(A: T.Buffer((66, 66), "int16"), B: T.Buffer((64, 64), "int16")):
    Y = T.alloc_buffer((66, 64), "int16")
    for i, j in T.grid(66, 64):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = A[vi, vj] + A[vi, vj + 1] + A[vi, vj + 2]
    for i, j in T.grid(64, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = Y[vi, vj] + Y[vi + 1, vj] + Y[vi + 2, vj]


@pytest.mark.parametrize("caches", CACHES)
@pytest.mark.parametrize("program", [matmul(64), matmul(48, 96, 33), transpose, blur],
                         ids=["matmul", "odd", "transpose", "blur"])
def test_scalar_accesses_agree_one_by_one(program, caches, tmp_path):
    theirs = cachegrind(program, caches, tmp_path)
    ours = count_accesses(program, caches, registers=False)
    assert 0 <= theirs.reads - ours.reads <= SLACK
    assert 0 <= theirs.writes - ours.writes <= SLACK
    assert abs(theirs.misses - ours.levels[0].misses) <= SLACK
    assert abs(theirs.last_misses - ours.levels[1].misses) <= SLACK


@pytest.mark.parametrize("caches", CACHES[:2])
def test_a_schedule_with_vectors_and_a_register_tile_agrees_within_a_percent(caches, tmp_path):
    sch = tiled(128)
    theirs = cachegrind(sch, caches, tmp_path, registers=True, optimise=True)
    ours = count_accesses(sch, caches)
    assert theirs.misses == pytest.approx(ours.levels[0].misses, rel=0.01, abs=SLACK)
    assert theirs.last_misses == pytest.approx(ours.levels[1].misses, rel=0.01, abs=SLACK)
