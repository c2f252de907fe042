"""Rules of a given structure: the sketches of Ansor and TVM."""

import pytest
from schedule.common import check

from mlc_lab import meta_schedule as ms
from mlc_lab import te, topi
from mlc_lab.ir.module import IRModule
from mlc_lab.meta_schedule.schedule_rule import (
    AddRFactor, MultiLevelTiling, ParallelizeVectorizeUnroll, RandomComputeLocation, ReuseType,
)
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source


def product(n=8, m=8, k=16, relu=False):
    A, B = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), "k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return te.create_prim_func([A, B, topi.nn.relu(C) if relu else C])


def spaces(func, *rules, target="llvm -num-cores 4"):
    context = ms.TuneContext(
        func, target=target, space_generator=ms.space_generator.PostOrderApply(
            sch_rules=list(rules), postprocs=[], mutator_probs={}))
    return context.generate_design_space()


def kept(func, found):
    for sch in found:
        check(sch, IRModule({"main": func}))
    return found


def annotations(sch, name):
    return sch.get(sch.get_block(name)).annotations


def test_a_product_has_three_sketches_on_a_cpu():
    rule = MultiLevelTiling("SSRSRS", reuse_write=ReuseType("may", [1, 2], "global"))
    for relu in (False, True):
        func = product(relu=relu)
        found = kept(func, spaces(func, rule))
        assert len(found) == 3
        for sch in found:
            assert annotations(sch, "C")["meta_schedule.tiling_structure"] == "SSRSRS"
            assert len(sch.get_loops("C")) == 2 * 4 + 2
        last = "compute" if relu else "C_global"
        depth = [len(sch.get_loops(last)) for sch in found if sch.trace.insts and any(
            i.kind.name == "ReverseComputeAt" for i in sch.trace.insts)]
        assert depth == [2 + 2, 4 + 2]


def test_what_is_no_product_is_not_tiled_by_a_structure():
    A = te.placeholder((8, 8), name="A")
    func = te.create_prim_func([A, topi.sum(A, axis=1)])
    (sch,) = spaces(func, MultiLevelTiling("SRS"))
    assert not any(i.kind.name == "Split" for i in sch.trace.insts)
    asked = MultiLevelTiling("SRS", reuse_read=ReuseType("must", [1], "global"),
                             reuse_write=ReuseType("must", [1], "global"),
                             filter_fn=lambda sch, block: True)
    (sch,) = kept(func, spaces(func, asked))
    assert {b.name for b in sch.get(sch.get_block("root")).alloc_buffers} == {
        "A_global", "A_red_global"}


@pytest.mark.parametrize("given", [
    {"structure": ""}, {"structure": "SSX"},
    {"structure": "SRS", "reuse_write": ReuseType("may", [4], "global")},
    {"structure": "SRS", "reuse_read": {"req": "perhaps", "levels": [1], "scope": "global"}}])
def test_a_structure_that_makes_no_sense_is_refused(given):
    with pytest.raises(ValueError, match="structure"):
        MultiLevelTiling(**given)


def test_partial_sums_over_either_part_of_the_terms():
    func = product(2, 2, 64)
    found = kept(func, spaces(func, AddRFactor(16, 64)))
    assert [any(i.kind.name == "RFactor" for i in s.trace.insts) for s in found] == [
        False, True, True]
    assert annotations(found[1], "C") == {"meta_schedule.random_compute_producer": 1}
    func = product(16, 16, 16)  # there are elements enough
    assert len(spaces(func, AddRFactor(16, 64))) == 1


def test_partial_sums_and_their_sum_are_given_places():
    A = te.placeholder((2, 64), name="A")
    total = topi.sum(A, axis=1)
    func = te.create_prim_func([A, topi.sqrt(topi.abs(total))])
    found = kept(func, spaces(func, AddRFactor(1), RandomComputeLocation(reductions=True)))
    places = [[str(s.trace.decisions[i]) for i in s.trace.insts
               if i.kind.name == "SampleComputeLocation"] for s in found]
    assert len(found) == 3 and len(places[1]) == len(places[0]) + 1


def test_what_was_said_of_jobs_and_vectors_holds():
    func = product()
    rule = ParallelizeVectorizeUnroll(16, 32, [0, 16, 64, 512])
    (sch,) = spaces(func, rule, target="llvm -num-cores 32")
    found = annotations(sch, "root")
    assert found["meta_schedule.parallel"] == 512 and found["meta_schedule.vectorize"] == 32
    assert found["meta_schedule.unroll_explicit"] in (0, 16, 64, 512)
    A = te.placeholder((8,), name="A")
    (sch,) = spaces(te.create_prim_func([A, topi.exp(A)]), ParallelizeVectorizeUnroll(
        -1, -1, [0, 16]))
    assert not annotations(sch, "root")


def test_the_root_is_annotated_where_arguments_may_overlap():
    func = product().without_attr("tir.noalias")
    for sch in spaces(func, *ms.schedule_rule.for_cpu(None)):
        assert "meta_schedule.parallel" in annotations(sch, "root")


def test_threads_copy_tiles_into_shared_memory():
    func = product(32, 32, 32)
    rules = [r for r in ms.ScheduleRule.create("cuda") if isinstance(r, MultiLevelTiling)]
    (sch,) = kept(func, spaces(func, *rules, target="cuda"))
    scopes = {b.name: b.scope for b in sch.get(sch.get_block("root")).alloc_buffers}
    assert scopes == {"A_shared": "shared", "B_shared": "shared", "C_local": "local"}
    tags = [sch.get(lp).thread_tag for lp in sch.get_loops("C") if sch.get(lp).thread_binding]
    assert tags == ["blockIdx.x", "vthread.x", "threadIdx.x"]
    assert annotations(sch, "A_shared")["meta_schedule.cooperative_fetch"] in (1, 2, 3, 4)
    assert annotations(sch, "C")["meta_schedule.thread_extent_low_inclusive"] == 32


def test_rules_of_tvm_for_a_convolution_keep_its_meaning():
    x, w = te.placeholder((1, 6, 6, 4), name="x"), te.placeholder((3, 3, 4, 4), name="w")
    func = te.create_prim_func([x, w, topi.nn.relu(topi.nn.conv2d(
        x, w, 1, 1, 1, data_layout="NHWC", kernel_layout="HWIO"))])
    kept(func, spaces(func, *ms.ScheduleRule.create("llvm")))


def test_a_place_in_a_reduction_is_taken_where_it_is_said():
    func = from_source("""
@T.prim_func
def main(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4,), "float32")):
    P = T.alloc_buffer((4, 8))
    for i, k in T.grid(4, 8):
        with T.block("P"):
            vi, vk = T.axis.remap("SS", [i, k])
            P[vi, vk] = X[vi, vk] * T.float32(2)
    for i, k in T.grid(4, 8):
        with T.block("Y"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                Y[vi] = T.float32(0)
            Y[vi] = Y[vi] + P[vi, vk]
""")
    sch = Schedule(func)
    sch.compute_at("P", sch.sample_compute_location("P", decision=1), preserve_unit_loops=True)
    assert sch.get(sch.get_loops("P")[1]) is sch.get(sch.get_loops("Y")[1])
    check(sch, IRModule({"main": func}))
    for seed in range(8):
        sch = Schedule(func, seed=seed)
        sch.sample_compute_location("P")
        assert list(sch.trace.decisions.values())[-1] in (-2, -1, 0)
