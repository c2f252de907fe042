"""The spaces that rules make: every program in them computes the same, and is worth a look."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import build, te, tir
from mlc_lab import meta_schedule as ms
from mlc_lab.meta_schedule.context import TuneContext
from mlc_lab.observe.measure import difference, random_arrays
from mlc_lab.runtime import array
from mlc_lab.schedule import Trace
from mlc_lab.script import from_source
from mlc_lab.script import tir as T

from .programs import PROGRAMS, TARGET, matmul, stochastic


def results(mod, arrays):
    tensors = [array(a) for a in arrays]
    build(mod, target="llvm")["main"](*tensors)
    return [t.numpy() for t in tensors]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_candidate_computes_what_the_program_computes(name):
    mod = from_source(PROGRAMS[name])
    context = TuneContext(mod, target=TARGET, search_strategy="replay-trace", rand_state=7)
    arrays = random_arrays(context.mod["main"])
    right = results(context.mod, arrays)
    made = 0
    for space in context.generate_design_space():
        for _ in range(4):
            sch = context.replay(space.trace, fresh=True)
            if sch is None:
                continue
            made += 1
            equal, worst = difference(results(sch.mod, arrays), right)
            assert equal, (worst, sch.trace)
    assert made >= 3, context.rejected


@pytest.mark.parametrize("name", ["matmul", "conv", "softmax"])
def test_a_recorded_trace_gives_the_program_again_from_text_and_json(name):
    mod = from_source(PROGRAMS[name])
    context = TuneContext(mod, target=TARGET, search_strategy="replay-trace", rand_state=3)
    space = context.generate_design_space()[0]
    sch = None
    while sch is None:
        sch = context.replay(space.trace, fresh=True)
    for form in (str(sch.trace), sch.trace.as_json()):
        again = tir.Schedule(context.mod)
        again.apply_trace(form)
        assert again.mod.script() == sch.mod.script()


def test_a_sum_is_tiled_for_registers_and_packed():
    context = TuneContext(matmul(64), target=TARGET, search_strategy="replay-trace", rand_state=1)
    texts = []
    for _ in range(60):
        sch = context.replay(context.generate_design_space()[0].trace, fresh=True)
        if sch is not None:
            texts.append(sch.mod.script())
    assert all("T.vectorized" in t and "T.unroll" in t and "C_init" in t for t in texts)
    assert any("B_global" in t for t in texts) and any("B_global" not in t for t in texts)
    assert context.rejected["VerifyRegisters"] > 0


def test_rows_of_softmax_are_fused():
    context = TuneContext(from_source(PROGRAMS["softmax"]), target=TARGET,
                          search_strategy="replay-trace", rand_state=1)
    space = context.generate_design_space()[0]
    assert str(space.trace).count("compute_at") == 5
    assert str(space.trace).count("rfactor") == 2


def test_bias_and_relu_are_computed_on_the_tile():
    context = TuneContext(from_source(PROGRAMS["dense"]), target=TARGET,
                          search_strategy="replay-trace", rand_state=1)
    text = str(context.generate_design_space()[0].trace)
    assert "compute_inline" in text and "reverse_compute_at" in text


def test_the_default_schedule_is_in_the_space():
    spaces = TuneContext(matmul(), target=TARGET).generate_design_space()
    assert not any(i.kind.sampling for i in spaces[-1].trace.insts)
    only = ms.space_generator.PostOrderApply(with_default=False)
    assert len(TuneContext(matmul(), target=TARGET, space_generator=only).generate_design_space()
               ) == len(spaces) - 1


def test_spaces_can_be_united_and_filtered():
    union = ms.space_generator.SpaceGeneratorUnion(
        [ms.space_generator.ScheduleFn(stochastic), "post-order-apply"])
    assert len(TuneContext(matmul(), target=TARGET, space_generator=union
                           ).generate_design_space()) == 3
    nothing = ms.space_generator.PostOrderApply(f_block_filter=lambda block: False,
                                                with_default=False)
    (space,) = TuneContext(matmul(), target=TARGET, space_generator=nothing).generate_design_space()
    assert len(space.trace.simplified()) == 0


def test_a_space_function_that_raises_is_explained_with_its_line():
    def broken(sch):
        sch.get_block("no such block")

    with pytest.raises(ms.SpaceError, match=r"broken\) raised ScheduleError at line \d+ .*no such"):
        ms.tune_tir(matmul(), TARGET, None, 4, space=broken, verbose=False)


def test_a_space_function_that_returns_something_else_is_refused():
    with pytest.raises(ms.SpaceError, match="returned a int"):
        ms.tune_tir(matmul(), TARGET, None, 4, space=lambda sch: 3, verbose=False)
    with pytest.raises(ms.SpaceError, match="empty"):
        ms.tune_tir(matmul(), TARGET, None, 4, space=lambda sch: [], verbose=False)


def test_a_space_without_a_valid_program_says_why():
    class Never(ms.Postproc):
        def apply(self, sch):
            return False

    space = ms.space_generator.ScheduleFn(stochastic, postprocs=[Never()])
    with pytest.raises(ms.TuneError, match=r"no valid program.*Never \(\d+ times\)"):
        ms.tune_tir(matmul(), TARGET, None, 4, space=space, verbose=False)


def test_features_are_numbers_of_one_width_and_see_the_tile():
    from mlc_lab.meta_schedule.features import STORES, WIDTH, features_of, stores_of
    from mlc_lab.machine.hardware import Hardware

    hw = Hardware()
    context = TuneContext(matmul(48), target=TARGET, search_strategy="replay-trace", rand_state=1)
    plain, slow = features_of(context.mod, hw)
    assert plain.shape == (STORES * WIDTH + 3,) and np.isfinite(plain).all()
    sch = tir.Schedule(context.mod)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i_0, i_1 = sch.split(i, [None, 4])
    j_0, j_1 = sch.split(j, [None, 16])
    sch.reorder(i_0, j_0, k, i_1, j_1)
    sch.unroll(i_1)
    sch.vectorize(j_1)
    store = stores_of(sch.mod["main"], hw)[0]
    assert (store.accumulators, store.loads, store.scalar_loads) == (8, 2, 4)
    assert store.in_registers
    assert store.registers <= hw.registers
    assert features_of(sch.mod, hw)[1] < slow / 4


def test_loops_are_parallel_where_there_are_cores_and_the_number_of_jobs_is_mutated():
    from mlc_lab.meta_schedule.mutator import MutateParallel

    context = TuneContext(matmul(64), target="llvm --num-cores=4", rand_state=1)
    trace = context.generate_design_space()[0].trace.simplified()
    made = None
    while made is None:
        made = context.draft(Trace(trace.insts))
    assert context.postprocess(made.sch) and "T.parallel" in made.sch.mod.script()
    mutator = MutateParallel()
    mutator.initialize_with_tune_context(context)
    changed = mutator.apply(trace)
    values = [[i.args["ann_val"] for i in t.insts if i.args.get("ann_key") ==
               "meta_schedule.parallel"] for t in (trace, changed)]
    assert values[0] == [16] and values[1][0] in (4, 8, 32, 64)
    again = context.replayer.replay(changed, made.decisions)
    assert int(again.get(again.get_block("root")).annotations["meta_schedule.parallel"]
               ) == values[1][0]


def test_every_mutator_changes_one_thing_and_the_program_stays_right():
    context = TuneContext(from_source(PROGRAMS["conv"]), target=TARGET, rand_state=2)
    trace = context.generate_design_space()[0].trace.simplified()
    made = None
    while made is None:
        made = context.draft(Trace(trace.insts))
    trace = Trace(trace.insts, made.decisions)
    arrays = random_arrays(context.mod["main"])
    right, seen = results(context.mod, arrays), set()
    for mutator in context.space_generator.mutator_probs:
        for _ in range(3):
            changed = mutator.apply(trace)
            if changed is None:
                continue
            differing = [i for i in trace.decisions if changed.decisions[i] != trace.decisions[i]]
            assert len(differing) <= 1
            made = context.replay(changed)
            if made is not None:
                seen.add(type(mutator).__name__)
                assert difference(results(made.mod, arrays), right)[0]
    assert {"MutateTileSize", "MutateComputeLocation"} <= seen


def test_a_block_with_two_results_is_scheduled():
    from mlc_lab import topi

    a = te.placeholder((31, 65), name="a")
    mod = tvm.IRModule({"main": te.create_prim_func([a, topi.argmax(a, axis=1)])})
    assert len(ms.tune_tir(mod, TARGET, None, 2, verbose=False, seed=1)) == 2


@pytest.mark.parametrize("strategy", ["replay-func", "replay-trace", "evolutionary"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_choices_that_are_refused_are_drawn_again(strategy, seed):
    def space(sch):
        i, _, k = sch.get_loops(sch.get_block("C"))
        choice = sch.sample_categorical([0, 1, 2, 3], [0.25] * 4)
        sch.parallel(i if int(sch.get(choice)) == 0 else k)

    a, b = (te.placeholder((16, 16), name=n) for n in "ab")
    k = te.reduce_axis((0, 16), "k")
    c = te.compute((16, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    mod = tvm.IRModule({"main": te.create_prim_func([a, b, c])})
    database = ms.tune_tir(mod, TARGET, None, 2, strategy=strategy, seed=seed, verbose=False,
                           space=ms.space_generator.ScheduleFn(space))
    assert {r.status for r in database.get_all_tuning_records()} == {"ok"}

    def never(sch):
        sch.sample_categorical([0, 1], [0.5, 0.5])
        sch.parallel(sch.get_loops(sch.get_block("C"))[2])

    with pytest.raises(ms.SpaceError, match="for each of 32 draws"):
        ms.tune_tir(mod, TARGET, None, 2, strategy=strategy, seed=seed, verbose=False,
                    space=ms.space_generator.ScheduleFn(never))


def test_a_program_without_blocks_is_refused():
    @T.prim_func
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            B[i] = A[i] * T.float32(2)

    with pytest.raises(ms.SpaceError, match="has no block"):
        ms.tune_tir(tvm.IRModule({"main": main}), TARGET, None, 2, verbose=False)


def test_a_space_of_given_rules_is_what_they_make():
    context = ms.TuneContext(matmul(), target="llvm", space_generator=(
        ms.space_generator.PostOrderApply(sch_rules=[], postprocs=[], mutator_probs={})))
    (only,) = context.space_generator.generate_design_space(context.mod)
    assert not only.trace.insts  # no rule, no default schedule


def test_a_space_for_a_gpu_without_kernels_needs_rules_of_its_own():
    own = ms.space_generator.PostOrderApply(sch_rules=[], postprocs=[], mutator_probs={})
    context = ms.TuneContext(matmul(), target="rocm", space_generator=own)
    assert len(own.generate_design_space(context.mod)) == 1
    with pytest.raises(ValueError, match="no default rules for 'rocm'"):
        ms.TuneContext(matmul(), target="rocm")
    with pytest.raises(ValueError, match="cannot be run for 'rocm'"):
        context.must_run_here()


def test_a_block_asks_for_a_function_of_ones_own():
    mod = from_source("""
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    for i, j in T.grid(16, 16):
        with T.block("B"):
            T.block_attr({"schedule_rule": "tests.in_tiles"})
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = A[v, w] * T.float32(2)
""")

    def in_tiles(sch, block):
        found = []
        for factor in (2, 4):
            other = sch.copy()
            other.split(other.get_loops(block)[1], [None, factor])
            found.append(other)
        return found

    def spaces():
        context = TuneContext(mod, target=TARGET, space_generator=ms.space_generator.PostOrderApply(
            sch_rules=[ms.schedule_rule.ApplyCustomRule()], postprocs=[], mutator_probs={}))
        return [len(s.get_loops("B")) for s in context.generate_design_space()]

    assert spaces() == [2]  # nobody has registered it
    tvm.register_func("meta_schedule.cpu.tests.in_tiles", in_tiles)
    try:
        assert spaces() == [3, 3]
    finally:
        tvm.runtime.registry.remove_global_func("meta_schedule.cpu.tests.in_tiles")


def test_a_function_says_which_blocks_are_tiled():
    def loops(asked):
        rule = ms.schedule_rule.MultiLevelTiling(filter_fn=lambda sch, block: asked(
            sch.get(block).name_hint))
        context = TuneContext(matmul(16), target=TARGET, space_generator=(
            ms.space_generator.PostOrderApply(sch_rules=[rule], postprocs=[], mutator_probs={})))
        return [len(s.get_loops("C")) for s in context.generate_design_space()]

    assert loops(lambda name: name != "C") == [3]
    assert all(number > 3 for number in loops(lambda name: name == "C"))
