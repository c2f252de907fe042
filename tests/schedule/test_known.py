"""What a schedule finds out about a program is kept with the program: for others, and no longer."""

import gc
import weakref

import mlc_lab as tvm
from mlc_lab.script import tir as T


@T.prim_func
def two_stages(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16, 8))
    for i, k in T.grid(16, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = A[vi, vk] * T.float32(2)
    for i, k in T.grid(16, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] += B[vi, vk]


def steps(func):
    """Steps that ask for dependences, coverage, bindings and reductions; the programs met."""
    sch = tvm.tir.Schedule(func)
    met = [sch.mod["main"].body.block]
    b, c = sch.get_block("B"), sch.get_block("C")
    sch.compute_at(b, sch.get_loops(c)[0])
    met.append(sch.mod["main"].body.block)
    sch.cache_read(c, 0, "local")
    met.append(sch.mod["main"].body.block)
    sch.decompose_reduction(c, sch.get_loops(c)[1])
    met.append(sch.mod["main"].body.block)
    sch.blockize(sch.get_loops(b)[1])
    met.append(sch.mod["main"].body.block)
    return sch, [weakref.ref(block) for block in met]


def test_programs_die_with_their_schedules():
    func = tvm.script.from_source(two_stages.script()).with_attr("global_symbol", "main")
    sch, met = steps(func)
    assert met[-1]() is not None
    del sch, func
    gc.collect()
    assert [ref() for ref in met] == [None] * len(met)


def test_a_second_schedule_of_a_program_gives_the_same():
    """Also where the first one has changed what is around a block that both have."""
    func = two_stages.with_attr("global_symbol", "main")
    first, _ = steps(func)
    second, _ = steps(func)
    tvm.ir.assert_structural_equal(first.mod, second.mod)
    assert str(first.trace) == str(second.trace)
