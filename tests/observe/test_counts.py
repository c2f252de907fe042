"""Counts of whole programs: by hand, and with the machinery of real kernels in the way."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlc_lab.observe import instrument
from mlc_lab.observe.counts import count_accesses
from mlc_lab.script import tir as T
from mlc_lab.tir import Schedule

from .programs import matmul, tiled

SMALL = "1K:2:32, 4K:4:32"


def test_a_product_that_fits_misses_each_line_once():
    counts = count_accesses(matmul(16), "32K:8")
    # Each of 16^3 steps reads C, A and B and writes C; the init writes once each.
    assert (counts.reads, counts.writes) == (3 * 16**3, 16**3 + 16**2)
    level = counts.level("L1")
    assert level.misses == 3 * 16 * 16 * 4 // 64
    assert level.hits == counts.accesses - level.misses
    assert counts.bytes_read == 4 * counts.reads
    assert counts.flops == 2 * 16**3
    assert counts.intensity() == counts.flops / (3 * 16 * 16 * 4)
    assert set(counts.by_buffer()) == {"A", "B", "C"}


def test_counts_are_the_same_every_time():
    one, two = (count_accesses(matmul(48), SMALL).to_dict() for _ in range(2))
    assert one == two


def test_a_walk_down_a_column_misses_every_time():
    @T.prim_func
    def column(A: T.Buffer((64, 1024), "float32"), B: T.Buffer((64,), "float32")):
        for j, i in T.grid(1024, 64):
            with T.block("B"):
                vj, vi = T.axis.remap("RS", [j, i])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] += A[vi, vj]

    # 64 rows a power of two apart: all in one set of a cache of 8 ways.
    counts = count_accesses(column, "32K:8")
    assert counts.by_buffer()["A"]["misses"] == [64 * 1024]
    # A fully associative cache of that size keeps the 64 lines.
    counts = count_accesses(column, "32K:512")
    assert counts.by_buffer()["A"]["misses"] == [64 * 1024 * 4 // 64]


def test_a_tile_in_registers_is_no_memory():
    sch = tiled(64)
    with_registers = count_accesses(sch, "32K:8")
    assert {s.site.buffer.name for s in with_registers.sites} == {"A", "B_global", "B", "C"}
    without = count_accesses(sch, "32K:8", registers=False)
    assert without.accesses > with_registers.accesses
    assert without.flops == with_registers.flops == 2 * 64**3


def test_the_instrumented_program_computes_and_branches_on_data():
    @T.prim_func
    def gather(index: T.Buffer((64,), "int32"), table: T.Buffer((4096,), "float32"),
               out: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("out"):
                vi = T.axis.spatial(64, i)
                if index[vi] >= 0:
                    out[vi] = table[index[vi]]

    index = np.arange(64, dtype="int32") * 64
    index[10:] = -1
    table, out = np.arange(4096, dtype="float32"), np.zeros(64, "float32")
    counts = count_accesses(gather, "32K:8", arrays=[index, table, out])
    assert counts.by_buffer()["table"] == {"reads": 10, "writes": 0, "bytes": 40,
                                            "misses": [10]}
    assert counts.by_buffer()["out"]["writes"] == 10
    assert not out.any()  # the arguments are copied


def test_symbolic_sizes_are_given_by_name():
    @T.prim_func
    def copy(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi]

    assert count_accesses(copy, SMALL, sizes={"n": 256}).reads == 256


def test_parallel_loops_run_in_order_each_core_in_its_own_caches():
    sch = Schedule(matmul(32))
    plain = count_accesses(sch, "64K:8, 1M:8").to_dict()
    sch.parallel(sch.get_loops(sch.get_block("C"))[0])
    assert count_accesses(sch, "64K:8, 1M:8", threads=1).to_dict() == plain
    four = count_accesses(sch, "64K:8, 1M:8", threads=4)
    # Every core brings all of B into its first level; the second one has it already.
    assert four.by_buffer()["B"]["misses"] == [4 * 64, 64]
    assert four.by_buffer()["A"]["misses"] == [64, 64]
    assert four.to_dict() == count_accesses(sch, "64K:8, 1M:8", threads=4).to_dict()


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([8, 16]), st.booleans())
def test_every_schedule_reads_and_writes_the_lines_of_its_buffers(rows, columns, registers):
    counts = count_accesses(tiled(32, rows, columns), "64K:1024", registers=registers)
    lines = sum(1 for _ in ("A", "B", "C")) * 32 * 32 * 4 // 64
    extra = counts.level("L1").misses - lines
    # What was added: the packed columns, and the tile where it is memory.
    assert 0 < extra <= (32 * columns + rows * columns) * 4 // 64 + 1


def test_a_level_that_is_not_there_is_named():
    with pytest.raises(KeyError, match="there are L1"):
        count_accesses(matmul(4), "1K:2").level("L7")


@pytest.mark.parametrize("name", ["rows", "parallel", "masked"])
def test_short_and_long_runs_are_counted_alike(name, monkeypatch):
    """Of a short run the code is not optimised, and the simulator is not put into it."""
    sch = Schedule(matmul(30 if name == "masked" else 32))
    i, j, k = sch.get_loops("C")
    _, j1 = sch.split(j, factors=[None, 8])
    if name != "rows":
        sch.vectorize(j1)
    if name == "parallel":
        sch.parallel(i)
    caches, found = "1K:2, 4K:4:64:fifo, 16K:8:128:plru", []
    for brief in (instrument.BRIEF, 0):
        monkeypatch.setattr(instrument, "BRIEF", brief)
        found.append(count_accesses(sch.mod, caches, threads=3))
    assert found[0].to_dict() == found[1].to_dict()
    assert found[0].levels[0].misses > 100
