"""Search for a GPU: the spaces, what is dropped before it is built, times of the model."""

import math
import random

import numpy as np
import pytest
from backend.gpu_programs import missing, product

from mlc_lab import build, count_gpu, meta_schedule as ms, runtime, te, topi
from mlc_lab.backend.device.real import RealDriver
from mlc_lab.ir.structural import structural_hash
from mlc_lab.meta_schedule.context import TuneContext
from mlc_lab.meta_schedule.gpu_estimate import UNKNOWN, estimated_seconds
from mlc_lab.meta_schedule.gpu_features import WIDTH, gpu_features_of
from mlc_lab.meta_schedule.same_program import effective_decisions
from mlc_lab.meta_schedule.space_generator.post_order_apply import default_schedule
from mlc_lab.meta_schedule.trace_extents import bound_extents, drawn_tiles
from mlc_lab.meta_schedule.workload import as_workload
from mlc_lab.runtime.driver import driver_of
from mlc_lab.schedule import Trace
from mlc_lab.script import from_source
from mlc_lab.target import Target

TAG = "nvidia/geforce-rtx-2080-ti"
SUMS = """
@T.prim_func
def main(A: T.Buffer((8, 4096), "float32"), B: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 4096):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
"""
FUSED = """
@T.prim_func
def main(A: T.Buffer((64, 32), "float32"), B: T.Buffer((32, 64), "float32"),
         D: T.Buffer((64, 64), "float32")):
    E = T.alloc_buffer((64, 32))
    C = T.alloc_buffer((64, 64))
    for i, k in T.grid(64, 32):
        with T.block("E"):
            vi, vk = T.axis.remap("SS", [i, k])
            E[vi, vk] = A[vi, vk] * T.float32(2)
    for i, j, k in T.grid(64, 64, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + E[vi, vk] * B[vk, vj]
    for i, j in T.grid(64, 64):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))
"""


def context(program, target=TAG):
    return TuneContext(program, target=target, rand_state=1)


def some(made, space, count, tries=200):
    """Candidates of a space with decisions drawn anew."""
    rng, out = random.Random(0), []
    steps = made.space_generator.postprocs
    for _ in range(tries):
        trace = Trace(space.trace.insts, drawn_tiles(space.trace, rng))
        if all(step.admits(trace) for step in steps):
            sch = made.replay(trace, decisions=trace.decisions)
            if sch is not None:
                out.append(sch)
        if len(out) == count:
            return out
    raise AssertionError(f"only {len(out)} of {tries} were kept")


def outcome(mod, target, *arrays):
    where = runtime.cuda(0)
    given = [runtime.array(a, where) for a in arrays]
    build(mod, target=target)["main"](*given)
    return given[-1].numpy()


def test_products_are_tiled_and_right():
    made = context(product(64, 64, 64))
    tiled, default = made.generate_design_space()
    a, b = (np.random.rand(64, 64).astype("float32") for _ in "ab")
    for sch in some(made, tiled, 4):
        text = sch.mod.script()
        assert 'scope="shared"' in text and "vthread.x" in text and "threadIdx.x" in text
        assert "meta_schedule." not in text
        have = outcome(sch.mod, TAG, a, b, np.zeros((64, 64), "float32"))
        np.testing.assert_allclose(have, a @ b, rtol=1e-4)


def test_what_is_before_and_after_a_product_goes_into_it():
    made = context(from_source(FUSED))
    space = made.generate_design_space()[0]
    (sch,) = some(made, space, 1)
    assert len(count_gpu(sch, TAG)) == 1  # one kernel
    a, b = np.random.randn(64, 32).astype("float32"), np.random.randn(32, 64).astype("float32")
    have = outcome(sch.mod, TAG, a, b, np.zeros((64, 64), "float32"))
    np.testing.assert_allclose(have, np.maximum(2 * a @ b, 0), rtol=1e-3, atol=1e-4)


def test_long_sums_are_shared_by_threads():
    made = context(from_source(SUMS))
    spaces = made.generate_design_space()
    shared = [s for s in spaces if s.trace.as_json() and any(
        i.kind.name == "Bind" and i.args["thread_axis"] == "threadIdx.x" for i in s.trace.insts)]
    a = np.random.rand(8, 4096).astype("float32")
    times = []
    for space in shared:
        sch = made.replay(space.trace)
        have = outcome(sch.mod, TAG, a, np.zeros(8, "float32"))
        np.testing.assert_allclose(have, a.sum(1), rtol=1e-4)
        times.append(count_gpu(sch, TAG).seconds)
    assert len(times) == 3 and min(times) * 5 < max(times)


def test_what_a_trace_binds_is_known_without_replaying_it():
    made = context(product(64, 64, 64))
    tiled = made.generate_design_space()[0]
    rng = random.Random(3)
    for _ in range(5):
        trace = Trace(tiled.trace.insts, drawn_tiles(tiled.trace, rng))
        sch = made.replayer.replay(trace)
        seen = {}
        for loop in sch.get_loops("C_update"):
            stmt = sch.get(loop)
            if stmt.thread_binding is not None:
                seen[stmt.thread_binding.thread_tag] = int(stmt.extent)
        assert bound_extents(trace) == seen
        assert gpu_features_of(trace)[0].shape == (WIDTH,)


def test_what_breaks_the_limits_is_dropped():
    made = context(product(128, 128, 128), "webgpu")
    tiled = made.generate_design_space()[0]
    verify = next(s for s in made.space_generator.postprocs
                  if type(s).__name__ == "VerifyGPUCode")
    tiles = [i for i, inst in enumerate(tiled.trace.insts)
             if inst.kind.name == "SamplePerfectTile"]
    for row, column, kept in (([8, 1, 16, 1], [8, 1, 16, 1], True),
                              ([4, 1, 32, 1], [8, 1, 16, 1], False),  # 512 threads, 256 at most
                              ([1, 8, 16, 1], [1, 8, 16, 1], False),  # 64 virtual threads
                              ([32, 1, 2, 2], [32, 1, 2, 2], False)):  # 4 threads of a warp
        trace = Trace(tiled.trace.insts, dict(zip(tiles, (row, column, [8, 16]))))
        assert verify.admits(trace) == kept
    # two tiles of 64 x 64, 16 kB each, of which neither is replayed before it is dropped
    large = Trace(tiled.trace.insts, dict(zip(tiles, ([2, 1, 16, 4], [2, 1, 16, 4], [2, 64]))))
    assert not verify.admits(large)
    assert made.replay(large) is None and "RewriteCooperativeFetch" in made.rejected
    many = Trace(tiled.trace.insts, dict(zip(tiles, ([1, 2, 8, 8], [1, 1, 8, 16], [32, 4]))))
    assert not verify.admits(many)  # 256 results of a thread


def test_a_search_by_the_model_finds_what_is_better_than_the_default(tmp_path, capsys):
    mod = product(64, 64, 64)
    database = ms.tune_tir(mod, target=TAG, work_dir=tmp_path, max_trials_global=12, seed=1)
    said = capsys.readouterr().out
    assert said.count("model") == 1 and f"by the model of {TAG}, not measured" in said
    board = database.board(peak_gflops=False)
    assert board.table().endswith("times are modelled, not measured: the device is simulated here")
    session = board.to_dict()["sessions"][0]
    assert "modelled times" in session["label"] and session["modelled"]
    assert session["peak_s"] is None
    # 68 multiprocessors of 64 lanes at 1545 MHz, and not this machine's processor
    (drawn,) = database.board().to_dict()["sessions"]
    assert drawn["peak_s"] == pytest.approx(2 * 64 ** 3 / (2 * 64 * 68 * 1545e6))
    chart = database.board().figure("model").axes[0]
    assert chart.get_ylabel() == "modelled speed (runs per µs)"
    records = database.get_all_tuning_records()
    assert {r.status for r in records} == {"ok"} and len(records) == 12
    assert all("modelled" in r.reason for r in records)
    sch = ms.tir_integration.compile_tir(database, mod, TAG)
    best, default = (count_gpu(s, TAG).seconds for s in (
        sch, default_schedule(as_workload(mod), TAG)))
    assert best <= default and best == pytest.approx(min(r.time for r in records))


def decided(trace, **decisions):
    """The trace with these decisions, by the kind of instruction in the order of the trace."""
    return Trace(trace.insts, {at: value for kind, values in decisions.items() for at, value in zip(
        [i for i, inst in enumerate(trace.insts) if inst.kind.name == kind], values)})


def test_decisions_that_come_to_the_same_program_have_one_key():
    made = context(product(64, 64, 64))
    tiled = made.generate_design_space()[0].trace
    keys, programs = [], []
    for fetch in (0, 1, 2):
        for unroll in range(5):
            trace = decided(tiled, SamplePerfectTile=([2, 1, 16, 2], [4, 1, 4, 4], [8, 8]),
                            SampleCategorical=(fetch, 0, unroll))
            sch = made.replay(trace, decisions=trace.decisions)
            keys.append(str(effective_decisions(trace, made.product)))
            programs.append(structural_hash(sch.mod))
    assert len(set(keys)) == len(set(programs)) == len(set(zip(keys, programs))) < len(keys)


def test_no_program_is_proposed_twice():
    made = context(from_source(SUMS))
    made.pre_tuning(64, 64, cost_model=ms.cost_model.RandomModel())
    seen = []
    while (batch := made.generate_measure_candidates()):
        seen += [structural_hash(c.sch.mod) for c in batch]
        made.notify_runner_results(batch, [ms.runner.RunnerResult((1e-6,), "ok") for _ in batch])
    assert len(seen) == len(set(seen)) > 5


def test_threads_are_bound_otherwise():
    made = context(product(64, 64, 64))
    tiled = made.generate_design_space()[0].trace
    start = decided(tiled, SamplePerfectTile=([4, 1, 8, 2], [4, 1, 8, 2], [8, 8]),
                    SampleCategorical=(0, 0, 0))
    mutate = next(m for m in made.space_generator.mutator_probs if isinstance(
        m, ms.mutator.MutateThreadBinding))
    found = set()
    for _ in range(40):
        new = mutate.apply(start)
        rows, columns, _ = (new.decisions[i] for i, inst in enumerate(tiled.insts)
                            if inst.kind.name == "SamplePerfectTile")
        assert rows[2] * columns[2] == 64 and rows[2] != 8
        assert math.prod(rows) == math.prod(columns) == 64 and max(rows[3], columns[3]) <= 16
        found.add((rows[2], columns[2]))
    assert len(found) > 2

    made = context(from_source(SUMS))
    mutate = ms.mutator.MutateThreadBinding()
    mutate.initialize_with_tune_context(made)
    for space in made.generate_design_space():
        at = [i for i, inst in enumerate(space.trace.insts)
              if inst.kind.name == "SampleCategorical" and 1024 in inst.args["candidates"]]
        if at:
            start = Trace(space.trace.insts, {**space.trace.decisions, at[0]: 3})
            assert {mutate.apply(start).decisions[at[0]] for _ in range(20)} == {2, 4}
            return
    raise AssertionError("no space has a number of threads to choose")


@pytest.mark.parametrize("seed", range(4))
def test_convolutions_are_tiled_whatever_tiles_are_drawn_first(seed):
    """With some factors, as 7 and 14 of 28, one step cannot be proved."""
    image, weight = (te.placeholder(s, name=n) for s, n in (((1, 16, 28, 28), "A"),
                                                            ((16, 16, 3, 3), "W")))
    made = TuneContext(te.create_prim_func([image, weight, topi.nn.conv2d(image, weight, 1, 1, 1)]),
                       target=TAG, rand_state=seed)
    assert "vthread.x" in str(made.generate_design_space()[0].trace)


@pytest.mark.parametrize("kind", ["webgpu", "opencl"])
def test_where_there_is_a_device_candidates_run_on_it(kind):
    if not isinstance(driver_of(kind), RealDriver):
        missing(kind, f"there is no device for {kind}")
    database = ms.tune_tir(product(32, 32, 32), target=kind, work_dir=None, max_trials_global=3,
                           seed=1, verbose=False)
    records = database.get_all_tuning_records()
    assert [r.status for r in records] == ["ok"] * 3
    assert all(r.time > 0 and r.error < 1e-4 and "modelled" not in r.reason for r in records)


def test_targets_that_cannot_be_searched_for_are_refused():
    with pytest.raises(ValueError, match="or for a GPU; they cannot be run for 'hexagon'"):
        context(product(8, 8, 8), "hexagon").must_run_here()


def test_the_estimate_orders_tiles_as_the_model_does():
    made = context(product(256, 256, 256))
    tiled = made.generate_design_space()[0]
    pairs = []
    for sch in some(made, tiled, 24, 4000):
        counted = count_gpu(sch, TAG, quick=True).seconds
        pairs.append((estimated_seconds(sch.trace, made.product), counted))
    guess, right = np.argsort(np.argsort(np.array(pairs), axis=0), axis=0).T
    assert np.corrcoef(guess, right)[0, 1] > 0.75


def test_of_other_programs_there_is_no_estimate():
    assert context(from_source(SUMS)).product is None
    made = context(product(64, 64, 64))
    tiled, default = made.generate_design_space()
    assert estimated_seconds(default.trace, made.product) == UNKNOWN
    assert estimated_seconds(tiled.trace, made.product) != UNKNOWN


def test_a_search_by_the_model_beats_the_default_schedule(tmp_path):
    program = product(512, 512, 512)
    (default,) = count_gpu(default_schedule(as_workload(program), Target(TAG)), TAG)
    database = ms.tune_tir(program, target=TAG, work_dir=str(tmp_path), max_trials_global=16,
                           seed=0)
    times = [r.time for r in database.get_all_tuning_records()]
    assert min(times) * 1.5 < default.modelled.seconds


def best_of(program, trials, mutators):
    """The best time by the model that a search finds in so many trials."""
    space = ms.space_generator.PostOrderApply(mutator_probs=mutators)
    made = TuneContext(program, target=TAG, rand_state=0, space_generator=space)
    model = ms.cost_model.TreeModel()
    made.pre_tuning(trials, trials, cost_model=model)
    times = []
    while len(times) < trials and (batch := made.generate_measure_candidates()):
        found = [count_gpu(c.sch, TAG, quick=True).seconds for c in batch]
        results = [ms.runner.RunnerResult((seconds,), "ok") for seconds in found]
        made.notify_runner_results(batch, results)
        model.update(made, batch, results)
        times += found
    return min(times)


def test_mutations_find_what_is_better_in_as_many_trials():
    program = product(512, 512, 512)
    mutated, drawn = (best_of(program, 36, m) for m in ("from-target", {}))
    assert mutated < drawn * 0.95
