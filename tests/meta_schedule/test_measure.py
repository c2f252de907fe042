"""What is measured, model by model: references, placements, the rank of predictions."""

import numpy as np
import pytest

from mlc_lab import meta_schedule as ms
from mlc_lab.meta_schedule.context import TuneContext
from mlc_lab.meta_schedule.cost_model import TreeModel
from mlc_lab.meta_schedule.measure.runner import Reference, RunnerResult
from mlc_lab.meta_schedule.measure.service import _Task, difference, robust
from mlc_lab.meta_schedule.search_strategy import MeasureCandidate
from mlc_lab.meta_schedule.workload import arguments, as_workload

from .programs import TARGET, matmul


def test_results_are_compared_with_the_tolerance_of_their_type():
    right = np.array([1.0, -100.0], "float32")
    assert difference(right + np.float32(1e-3), right)[0] == ""
    assert "differs by" in difference(right + 1, right)[0]
    assert "differs" in difference(np.array([np.nan, 0], "float32"), right)[0]
    same = np.array([np.nan, np.inf], "float32")
    assert difference(same, same.copy()) == ("", 0.0)
    assert "1 wrong elements of 2" in difference(np.array([1, 2]), np.array([1, 3]))[0]


def test_a_time_is_the_median_of_the_lower_half():
    assert robust([3.0]) == 3.0
    assert robust([9.0, 1.0, 2.0, 8.0, 3.0]) == 2.0


def test_exact_numbers_of_calls_and_a_flushed_cache():
    mod = as_workload(matmul())
    build = ms.builder.LocalBuilder().build([ms.builder.BuilderInput(mod, TARGET)])[0]
    reference = Reference("exact", arguments(mod["main"]), build)
    for config, repeats in ((ms.runner.EvaluatorConfig(number=2, repeat=3), 3),
                            (ms.runner.EvaluatorConfig(repeat=2, min_repeat_ms=1), 2),
                            (ms.runner.EvaluatorConfig(enable_cpu_cache_flush=True), None)):
        runner = ms.runner.LocalRunner(evaluator_config=config)
        assert runner.prepare(reference).result() == ""
        result = runner.run([ms.runner.RunnerInput(build, reference)])[0].result()
        assert result.status == "ok" and result.time > 0, result
        assert repeats is None or len(result.times) == repeats


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_tensors_can_be_placed_elsewhere(dtype):
    given = {"seed": 0, "args": [((5, 3), dtype, False), ((0,), dtype, False), ((7,), dtype, True)]}
    task = _Task(given)
    before = [t.numpy().copy() for t in task.tensors]
    places = set()
    for placement in (1, 2, 3, 0):
        task.place(placement)
        task.reset()
        for tensor, old in zip(task.tensors, before):
            assert tensor.shape == old.shape and tensor.numpy().tobytes() == old.tobytes()
            assert str(tensor.dtype) == dtype
        places.add(task.tensors[0].data_ptr() % 4096)
        assert task.tensors[0].data_ptr() % 128 == 0
    assert len(places) >= 3


def test_a_runner_measures_where_and_as_often_as_it_is_asked():
    mod = as_workload(matmul())
    build = ms.builder.LocalBuilder().build([ms.builder.BuilderInput(mod, TARGET)])[0]
    reference = Reference("placed", arguments(mod["main"]), build)
    runner = ms.runner.LocalRunner()
    item = ms.runner.RunnerInput(build, reference, placement=3, exactly=(5, 4))
    result = runner.run([item])[0].result()
    assert result.status == "ok" and len(result.times) == 4 and result.calls == 20
    own = ms.runner.LocalRunner(evaluator_config=ms.runner.EvaluatorConfig(number=2, repeat=3))
    assert len(own.run([item])[0].result().times) == 3, "what the user chose stays"


def test_an_argument_that_is_only_read_must_stay():
    mod = as_workload(matmul())
    shapes = arguments(mod["main"])
    assert [written for _, _, written in shapes] == [False, False, True]


def candidates(context, count):
    space, out = context.generate_design_space()[0], []
    while len(out) < count:
        sch = context.replay(space.trace, fresh=True)
        if sch is not None:
            out.append(MeasureCandidate(sch))
    return out


def test_the_model_learns_to_rank(tmp_path):
    def seconds(candidate):  # a machine that dislikes packing and loves wide tiles
        text = candidate.sch.mod.script()
        return 1e-3 * (1 + 3 * ("B_global" in text) + text.count("T.unroll") / 4
                       + 1 / (1 + text.count("vectorized(32)")))

    learned = []
    for seed in (5, 6, 7):  # of one processor, so that all machines meet the same candidates
        context = TuneContext(matmul(64), target="llvm -mcpu=skylake-avx512 -num-cores=1",
                              rand_state=seed)
        pool = candidates(context, 70)
        model = TreeModel()
        assert model.predict(context, pool[:3]).shape == (3,) and not model.trained
        model.update(context, pool[:40], [RunnerResult((seconds(c),)) for c in pool[:40]])
        guess = -model.log_time(context, pool[40:])
        truth = [-np.log2(seconds(c)) for c in pool[40:]]
        ranks = [np.argsort(np.argsort(x)) for x in (guess, truth)]
        learned.append(np.corrcoef(*ranks)[0, 1])
    assert np.median(learned) > 0.6, learned
    model.save(str(tmp_path / "model.npz"))
    again = TreeModel()
    again.load(str(tmp_path / "model.npz"))
    np.testing.assert_allclose(again.predict(context, pool[:5]), model.predict(context, pool[:5]))
