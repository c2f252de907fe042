"""Traces: text, JSON, replay, decisions, simplification, other shapes, bad input."""

import json

import pytest

from mlc_lab.ir.diagnostics import DiagnosticError
from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.reading import DataError, MLCError
from mlc_lab.schedule import Schedule, ScheduleError, Trace
from mlc_lab.script import from_source, tir as T

from .common import check, matmul


def stochastic(sch):
    block = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block)
    factors = sch.sample_perfect_tile(loop=j, n=2)
    j_0, j_1 = sch.split(loop=j, factors=factors)
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block, k)
    return sch


def test_a_trace_prints_as_in_the_course():
    sch = Schedule(matmul)
    block = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block)
    j_0, j_1 = sch.split(loop=j, factors=[None, 4])
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block, k)
    assert str(sch.trace) == """\
# from tvm import tir
def apply_trace(sch: tir.Schedule) -> None:
  b0 = sch.get_block(name="C", func_name="main")
  l1, l2, l3 = sch.get_loops(block=b0)
  l4, l5 = sch.split(loop=l2, factors=[None, 4], preserve_unit_iters=True, \
disable_predication=False)
  sch.reorder(l1, l4, l3, l5)
  b6 = sch.decompose_reduction(block=b0, loop=l3)"""


def test_a_sampled_trace_prints_its_decision():
    sch = Schedule(matmul, seed=3)
    stochastic(sch)
    lines = str(sch.trace).split("\n")
    decision = sch.trace.get_decision(sch.trace.insts[2])
    assert lines[4] == ("  v4, v5 = sch.sample_perfect_tile(loop=l2, n=2, max_innermost_factor=16, "
                        f"decision={decision})")
    assert lines[5].startswith("  l6, l7 = sch.split(loop=l2, factors=[v4, v5], ")
    check(sch, Schedule(matmul).mod)


def test_seeds_make_sampling_repeatable():
    one, two = stochastic(Schedule(matmul, seed=5)), stochastic(Schedule(matmul, seed=5))
    assert str(one.trace) == str(two.trace)
    seen = {str(stochastic(Schedule(matmul, seed=s)).trace) for s in range(12)}
    assert len(seen) > 2
    assert Schedule(matmul, seed=1).fork_seed() == Schedule(matmul, seed=1).fork_seed()


def test_sampled_values_can_be_computed_with():
    sch = Schedule(matmul, seed=0)
    _, j, _ = sch.get_loops(sch.get_block("C"))
    a, b = sch.sample_perfect_tile(j, n=2, decision=[4, 4])
    assert sch.get(a) == 4 and sch.get(a * b) == 16 and sch.get(a + 1) == 5
    sch.split(j, factors=[None, b])
    check(sch, Schedule(matmul).mod)


def test_with_decision_replays_the_other_choice():
    sch = stochastic(Schedule(matmul, seed=3))
    inst = next(i for i in sch.trace.insts if i.kind.sampling)
    other = sch.trace.with_decision(inst, [8, 2], remove_postproc=True)
    again = Schedule(matmul)
    other.apply_to_schedule(again, remove_postproc=False)
    assert "T.grid(16, 8)" in again.mod.script()
    assert again.trace.get_decision(again.trace.insts[2]) == [8, 2]
    with pytest.raises(ValueError, match="does not sample"):
        sch.trace.with_decision(sch.trace.insts[0], [8, 2])


def test_a_trace_replays_on_another_shape():
    @T.prim_func
    def larger(A: T.Buffer((24, 24), "float32"), B: T.Buffer((24, 24), "float32"),
               C: T.Buffer((24, 24), "float32")):
        for i, j, k in T.grid(24, 24, 24):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    sch = Schedule(matmul)
    block = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block)
    sch.split(j, factors=sch.sample_perfect_tile(j, n=2, decision=[2, 8]))
    sch.split(i, factors=[None, 5])
    again = Schedule(larger)
    sch.trace.apply_to_schedule(again)
    check(again, Schedule(larger).mod)


def test_simplified_drops_what_nobody_uses_and_postprocessing():
    sch = Schedule(matmul)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    sch.sample_categorical([1, 2], [0.5, 0.5])
    sch.get_block("root")
    sch.split(i, factors=[None, 4])
    sch.enter_postproc()
    sch.parallel(j)
    names = [i.kind.name for i in sch.trace.simplified(remove_postproc=True).insts]
    assert names == ["GetBlock", "GetLoops", "Split"]
    assert len(sch.trace.simplified(remove_postproc=False).insts) == 5


def test_pop_and_append():
    sch = stochastic(Schedule(matmul, seed=1))
    trace = sch.trace.copy()
    last = trace.pop()
    assert last.kind.name == "DecomposeReduction" and len(trace) == len(sch.trace) - 1
    trace.append(last)
    again = Schedule(matmul)
    trace.apply_to_schedule(again)
    assert_structural_equal(again.mod, sch.mod)
    assert Trace().pop() is None and "pass" in str(Trace())


def test_json_survives_a_file():
    sch = stochastic(Schedule(matmul, seed=1))
    text = json.dumps(sch.trace.as_json())
    again = Schedule(matmul)
    Trace.apply_json_to_schedule(text, again)
    assert_structural_equal(again.mod, sch.mod)


@pytest.mark.parametrize("data", [
    "[]", "[[], []", "{}", '[[["NoSuch", {}, null]], []]',
    '[[["GetBlock", {"nope": 1}, "b0"]], []]',
    '[[["GetLoops", {"block": {"rv": "b7"}}, ["l1"]], []]', '[[["GetBlock", {}, "rm -rf"]], []]'])
def test_a_broken_json_trace_is_refused(data):
    with pytest.raises(ValueError):
        Trace.from_json(data)


@pytest.mark.parametrize("data", [
    "[" * 100_000, "[[], [[0, 1]]]", '[[["GetBlock", {"name": "C"}, "b0"]], [[0, [1]]]]',
    '[[["SampleCategorical", {"candidates": [1], "probs": [1.0]}, "v0"]], [[true, 0]]]',
    '[[["GetBlock", {"name": {"x": "C"}}, "b0"]], []]', f"[[], [[{10**400}, 1]]]",
    '[[["Split", {"loop": 1, "factors": {"expr": "' + "1+" * 5000 + '1"}}, "l0"]], []]',
    '[[["Split", {"loop": 1, "factors": {"expr": "a.b.c(1"}}, "l0"]], []]', "\ud800", "NaN",
    '[[["SamplePerfectTile", {"loop": 1, "n": 2}, [["v4", "v5"]]]], []]'])
def test_a_hostile_json_trace_is_refused_as_data(data):
    with pytest.raises(DataError):
        Trace.from_json(data)


@pytest.mark.parametrize("args", [
    '{"loop": 7, "factors": [1, 2]}', '{"loop": null, "factors": [1, 2]}',
    '{"loop": "x", "factors": [[]]}'])
def test_a_trace_whose_arguments_have_other_types_is_refused_when_replayed(args):
    sch = Schedule(matmul)
    before = sch.mod
    with pytest.raises(MLCError):
        Trace.from_json(f'[[["Split", {args}, ["l1", "l2"]]], []]').apply_to_schedule(sch)
    assert sch.mod is before


@pytest.mark.parametrize("text", [
    "sch.split(" + "(" * 500, "sch.split(" + "-" * 5000 + "1)", "sch.split(" + "1+" * 50_000 + "1)",
    "sch.split(l1, factors=[" + "9" * 5000 + "])", "sch.split(b'x')", "sch.split(1j)", "\0",
    "sch.\ud800()", "sch." + "a" * 100_000 + "()"])
def test_texts_that_python_stumbles_over_are_no_trace(text):
    with pytest.raises(DiagnosticError):
        Trace.from_python(text)


@pytest.mark.parametrize("text, message", [
    ("sch.splitt(l1)", "did you mean 'split'"), ("b0 = sch.get_block(", "not Python"),
    ("__import__('os').system('true')", "no primitive"), ("x = 1", "expected a call"),
    ("sch.reorder(l1)", "not defined"),
    ('[[b0]] = sch.get_block(name="C")', "plain names"), ("import os", "only calls"),
    ('b0 = sch.get_block(name=open("x"))', "cannot contain"),
    ('b0 = sch.get_block(nam="C")', "missing a required argument")])
def test_a_broken_text_trace_is_refused_with_its_place(text, message):
    with pytest.raises(DiagnosticError, match=message) as err:
        Trace.from_python(text)
    assert err.value.line == 1 and err.value.column >= 1


def test_a_copy_goes_its_own_way_with_the_same_variables():
    sch = Schedule(matmul)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    other = sch.copy()
    before = sch.mod.script()
    other.split(i, factors=[None, 4])
    other.reorder(k, j)
    assert sch.mod.script() == before
    sch.fuse(i, j)
    check(sch, Schedule(matmul).mod)
    check(other, Schedule(matmul).mod)


def test_steps_record_before_after_and_refusals():
    sch = Schedule(matmul)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    sch.split(i, factors=[None, 4])
    with pytest.raises(ScheduleError):
        sch.parallel(k)
    assert [s.instruction.kind.name for s in sch.steps] == ["GetBlock", "GetLoops", "Split",
                                                            "Parallel"]
    split, refused = sch.steps[2:]
    assert split.before is sch.steps[1].after and split.after is sch.mod and split.error is None
    assert refused.error is not None and refused.before is refused.after
    assert split.python == ("l4, l5 = sch.split(loop=l1, factors=[None, 4], "
                            "preserve_unit_iters=True, disable_predication=False)")
    assert split.instruction.kind.meaning.startswith("Split a loop")


def test_get_block_suggests_names():
    sch = Schedule(matmul)
    with pytest.raises(ScheduleError, match="its blocks are: root, C"):
        sch.get_block("c")
    with pytest.raises(ScheduleError, match="no function 'other'"):
        sch.get_block("C", func_name="other")
    with pytest.raises(TypeError, match="IRModule or a PrimFunc"):
        Schedule("matmul")


def test_remove_rv_forgets():
    sch = Schedule(matmul)
    block = sch.get_block("C")
    sch.remove_rv(block)
    with pytest.raises(ScheduleError, match="known_rv"):
        sch.get_loops(block)


def test_blocks_may_be_given_by_name_wherever_one_is_asked_for():
    sch = Schedule(matmul)
    names = [sch.get(b).name_hint for b in sch.get_output_blocks("root")]
    assert names == [sch.get(b).name_hint for b in sch.get_child_blocks(sch.get_block("root"))]
    sch.cache_read(names[0], 0, "global", consumer_blocks=[names[0]])
    again = Schedule(matmul)
    sch.trace.apply_to_schedule(again)
    assert_structural_equal(again.mod, sch.mod)


def test_output_blocks_are_found_at_every_depth():
    @T.prim_func
    def nested(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
        with T.block("outer"):
            T.axis.spatial(1, 0)
            for i, j in T.grid(8, 8):
                with T.block("inner"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * T.float32(2.0)

    sch = Schedule(nested)
    assert [sch.get(b).name_hint for b in sch.get_output_blocks("root")] == ["outer", "inner"]
    assert [sch.get(b).name_hint for b in sch.get_output_blocks("outer")] == ["inner"]


def test_what_another_schedule_knows_is_an_index_error_here():
    sch = Schedule(matmul)
    i = sch.get_loops(sch.get_child_blocks(sch.get_block("root"))[0])[0]
    other = sch.copy()
    assert not sch.get_sref(i).same_as(other.get_sref(i))
    assert sch.state.get_sref(sch.get(i)).same_as(sch.get_sref(i))
    i_0, _ = sch.split(i, factors=[None, 2])
    with pytest.raises(IndexError):
        other.get_sref(i_0)
    with pytest.raises(IndexError, match="split"):
        sch.get(i)


def test_sample_perfect_tile_is_uniform_over_factorisations():
    from collections import Counter

    sch = Schedule(matmul, seed=0)
    _, j, _ = sch.get_loops(sch.get_block("C"))
    seen = Counter()
    for _ in range(2000):
        seen[tuple(sch.get(v) for v in sch.sample_perfect_tile(j, n=2))] += 1
    assert set(seen) == {(16, 1), (8, 2), (4, 4), (2, 8), (1, 16)}
    assert min(seen.values()) > 300 and max(seen.values()) < 500


def test_sample_compute_location():
    from .common import chain

    seen = set()
    for seed in range(30):
        sch = Schedule(chain, seed=seed)
        block = sch.get_block("B")
        place = sch.sample_compute_location(block)
        sch.compute_at(block, place)
        check(sch, Schedule(chain).mod)
        seen.add(sch.trace.get_decision(sch.trace.insts[1]))
    assert seen == {-2, -1, 0, 1}


def test_one_function_under_two_names_is_scheduled_apart():
    from mlc_lab.ir.module import IRModule

    sch = Schedule(IRModule({"a": matmul, "b": matmul}))
    sch.work_on("a")
    sch.split(sch.get_loops(sch.get_block("C"))[0], factors=[None, 4])
    sch.parallel(sch.get_loops(sch.get_block("C", "b"))[0])
    sch.state.verify()
    assert "i_0" in sch.mod["a"].script() and "i_0" not in sch.mod["b"].script()
    assert "T.parallel" in sch.mod["b"].script() and "T.parallel" not in sch.mod["a"].script()


def test_a_function_that_is_not_there_is_said():
    sch = Schedule(matmul)
    for look in (lambda: sch.work_on("nothing"), lambda: sch.get_block("C", "nothing")):
        with pytest.raises(ScheduleError, match="it has: main") as caught:
            look()
        assert caught.value.rule == "function_exists"


@T.prim_func
def of_any_size(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] + T.float32(1)


def test_a_size_of_the_function_in_an_argument_is_found_by_its_name():
    n = of_any_size.buffers[0].shape[0]
    sch = Schedule(of_any_size)
    block = sch.get_block("B")
    sch.split(sch.get_loops(block)[0], factors=[(n + 1) // 2, 2])
    sch.annotate_buffer_access(block, 0, "read", lambda vi: [(0, n)])
    text = str(sch.trace)
    assert 'T.Var("n", "int64")' in text
    for trace in (sch.trace, Trace.from_python(text), Trace.from_json(sch.trace.as_json())):
        for other in (of_any_size, from_source(of_any_size.script())):  # another variable n
            again = Schedule(other)
            trace.apply_to_schedule(again)
            assert_structural_equal(again.mod, sch.mod)


def test_a_variable_around_a_block_is_found_by_its_name():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")):
    for i in range(4):
        with T.block("outer"):
            vi = T.axis.spatial(4, i)
            for j in range(4):
                with T.block("C"):
                    vj = T.axis.spatial(4, j)
                    C[vi, vj] = A[vi, vj]
""")
    sch = Schedule(func)
    outer = sch.get(sch.get_block("outer")).iter_vars[0].var
    sch.annotate_buffer_access("C", 0, "read", lambda v: [(outer, outer + 1), (0, 4)])
    for trace in (Trace.from_json(sch.trace.as_json()), Trace.from_python(str(sch.trace))):
        again = Schedule(func)
        trace.apply_to_schedule(again)
        assert_structural_equal(again.mod, sch.mod)
