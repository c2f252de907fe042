"""The pipeline: stages by name, stopping, and scheduled programs that keep their meaning."""

import numpy as np
import pytest
from mlc_lab.backend.interp import interpret
from mlc_lab.build import build
from mlc_lab.ir.structural import structural_equal
from mlc_lab.ir.transform import PassContext, PassTimingInstrument
from mlc_lab.lower import LowerError, lower, stage_names, stages
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source
from mlc_lab.tir import stmt as S
from mlc_lab.tir.functor import pre_order
from .programs import (
    chain, check_stages, conv_padded, matmul, mm_relu, softmax, symbolic,
)


def kinds(mod):
    return {type(s) for s in pre_order(mod["main"].body) if isinstance(s, S.Stmt)}


@pytest.mark.parametrize("program", [matmul, mm_relu, chain, conv_padded, softmax],
                         ids=["matmul", "mm_relu", "chain", "conv_padded", "softmax"])
def test_unscheduled_programs(program):
    found = check_stages(program)
    assert not kinds(found["LowerIntrin"]) & {S.Block, S.BlockRealize}


def test_symbolic_shape():
    check_stages(symbolic, {"n": 5})
    s = Schedule(symbolic)
    i, j = s.get_loops(s.get_block("B"))
    i0, i1 = s.split(i, [None, 4])
    s.vectorize(j)
    s.parallel(i0)
    check_stages(s.mod, {"n": 10})
    check_stages(s.mod, {"n": 3})


def register_tile(program, ti, tj, v, parallel=False):
    s = Schedule(program)
    b = s.get_block("C")
    i, j, k = s.get_loops(b)
    cache = s.cache_write(b, 0, "local")
    i0, i1 = s.split(i, [None, ti])
    j0, j1, j2 = s.split(j, [None, tj, v])
    s.reorder(i0, j0, k, i1, j1, j2)
    s.reverse_compute_at(cache, j0)
    s.unroll(i1)
    s.unroll(j1)
    s.vectorize(j2)
    s.vectorize(s.split(s.get_loops(cache)[-1], [None, v])[1])
    if parallel:
        s.parallel(i0)
    s.decompose_reduction(b, k)
    return s


@pytest.mark.parametrize("parallel", [False, True])
def test_register_tile_that_does_not_divide(parallel):
    found = check_stages(register_tile(matmul, 4, 2, 4, parallel).mod)
    last = found["LowerIntrin"]
    allocs = [s for s in pre_order(last["main"].body) if type(s) is S.Allocate]
    assert {int(a.extents[0]) for a in allocs} == {32}
    # the accumulators sit inside of the loops over tiles, and the main tile has no branches
    assert all(s.kind in (S.ForKind.SERIAL, S.ForKind.PARALLEL)
               for s in pre_order(last["main"].body) if type(s) is S.For)


def test_register_tile_that_divides_has_no_branch():
    last = check_stages(register_tile(mm_relu, 4, 2, 4).mod)["LowerIntrin"]
    assert S.IfThenElse not in kinds(last)


def test_until_stops_and_unknown_stages_are_named():
    assert S.Block in kinds(lower(matmul, until="LowerInitBlock"))
    assert stage_names()[-5:] == ["LowerIntrin", "SumLanes", "LimitUnroll", "SplitVector",
                                  "PlaceAllocations"]
    with pytest.raises(ValueError, match="no lowering stage 'Nope'.*FlattenBuffer"):
        lower(matmul, until="Nope")
    with pytest.raises(TypeError, match="lower takes"):
        lower(3)


def test_simple_mode_keeps_the_loops():
    s = Schedule(chain)
    s.vectorize(s.get_loops(s.get_block("B"))[0])
    mod = lower(s.mod, simple_mode=True)
    assert any(type(x) is S.For and x.kind is S.ForKind.VECTORIZED
               for x in pre_order(mod["main"].body))


def test_stages_keep_the_module_that_did_not_change():
    found = stages(matmul)
    assert found[0][0] == "input"
    by_name = dict(found)
    assert by_name["UnrollLoop"] is by_name["VectorizeLoop"]
    assert by_name["CompactBufferAllocation"] is by_name["ConvertBlocksToOpaque"]


def test_thread_binding_on_a_cpu_is_refused_kindly():
    s = Schedule(chain)
    s.bind(s.get_loops(s.get_block("B"))[0], "threadIdx.x")
    with pytest.raises(LowerError, match=r"thread axis threadIdx.x.*sch.parallel.*lower"):
        lower(s.mod, target="llvm")


def test_a_bound_program_is_lowered_without_a_target():
    s = Schedule(chain)
    for name in ("B", "C", "D"):
        i0, i1 = s.split(s.get_loops(s.get_block(name))[0], [None, 16])
        s.bind(i0, "blockIdx.x")
        s.bind(i1, "threadIdx.x")
    check_stages(s.mod)
    assert structural_equal(lower(s.mod), lower(s.mod, target="cuda"))
    assert [name for name, _ in stages(s.mod)][-1] == "SplitHostDevice"
    assert "T.launch_thread" in lower(s.mod, simple_mode=True).script()


def test_virtual_threads_alone_are_iterations_on_a_cpu():
    s = Schedule(chain)
    s.bind(s.get_loops(s.get_block("B"))[0], "vthread.x")
    assert "launch_thread" not in lower(s.mod).script()
    check_stages(s.mod)


def test_thread_binding_on_a_gpu():
    s = Schedule(chain)
    for name in ("B", "C", "D"):
        i0, i1 = s.split(s.get_loops(s.get_block(name))[0], [None, 16])
        s.bind(i0, "blockIdx.x")
        s.bind(i1, "threadIdx.x")
    mod = check_stages(s.mod, target="cuda")["LowerIntrin"]
    extents = [x for x in pre_order(mod["main"].body)
               if type(x) is S.AttrStmt and x.attr_key == "thread_extent"]
    assert len(extents) == 6


def test_passes_are_seen_by_instruments():
    timing = PassTimingInstrument()
    with PassContext(instruments=[timing]):
        lower(matmul)
    assert "tir.FlattenBuffer" in timing.render()


def test_disable_vectorize():
    s = Schedule(chain)
    s.vectorize(s.get_loops(s.get_block("B"))[0])
    with PassContext(config={"tir.disable_vectorize": True}):
        mod = lower(s.mod)
    assert not any(getattr(x, "kind", None) is S.ForKind.VECTORIZED
                   for x in pre_order(mod["main"].body))


def test_offsets_past_int32_are_int64():
    func = from_source("""
@T.prim_func
def main(B: T.Buffer((4,), "int8")):
    A = T.alloc_buffer((70000, 40000), "int8")
    for i, j in T.grid(2, 2):
        with T.block("a"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi * 69999, vj * 39999] = T.Cast("int8", vi * 2 + vj)
    for i, j in T.grid(2, 2):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi * 2 + vj] = A[vi * 69999, vj * 39999] + T.int8(1)
""")
    lowered = lower(func)["main"]
    assert "T.int64(2800000000)" in lowered.script()
    for run in (build(func, target="llvm")["main"], lambda out: interpret(lowered, out)):
        out = np.zeros(4, "int8")
        run(out)
        assert out.tolist() == [1, 2, 3, 4]


def test_offsets_of_strides_past_int32_are_int64():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((3, 2), "int8", strides=(2000000000, 1)), B: T.Buffer((1,), "int8")):
    B[0] = A[2, 1]
""")
    assert "T.int64(4000000001)" in lower(func).script()
