"""The numbers of an evolutionary search do what they say: shares, stopping, TVM's names of them."""

import pytest

from mlc_lab import meta_schedule as ms
from mlc_lab.meta_schedule.context import TuneContext
from mlc_lab.meta_schedule.legacy import auto_scheduler
from mlc_lab.meta_schedule.measure.runner import RunnerResult

from .programs import TARGET, matmul


def search(trials=64, **options):
    """A search of a product's space that has begun."""
    context = TuneContext(matmul(64), target=TARGET, rand_state=3,
                          space_generator=ms.space_generator.PostOrderApply(),
                          search_strategy=ms.search_strategy.EvolutionarySearch(**options))
    context.initialize()
    strategy = context.search_strategy
    strategy.pre_tuning(trials, trials, context.generate_design_space(), None,
                        ms.cost_model.RandomModel())
    return strategy


def run(strategy, seconds):
    """Measure to the end; `seconds(n)` is the time of the nth candidate. All candidates."""
    out = []
    while batch := strategy.generate_measure_candidates():
        results = [RunnerResult((seconds(len(out) + n),)) for n in range(len(batch))]
        strategy.notify_runner_results(batch, results)
        out += batch
    return out


def test_a_search_ends_where_nothing_better_is_found():
    strategy = search(batch=4, early_stopping=8)
    found = run(strategy, lambda n: 1.0 + abs(n - 5))  # the sixth is the best
    assert 14 <= len(found) < 14 + 4  # batches are not cut
    assert "measurements (early_stopping)" in strategy.ending


def test_a_search_that_gets_better_is_not_stopped():
    assert len(run(search(24, batch=4, early_stopping=5), lambda n: 1 / (n + 1))) == 24


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_share_that_is_mutated(share, monkeypatch):
    strategy = search(population_size=20, batch=8, genetic_mutate_prob=share)
    asked = []
    mutating = strategy._mutating
    monkeypatch.setattr(strategy, "_mutating", lambda parents, count: asked.append(count) or
                        mutating(parents, count))
    found = run(strategy, lambda n: 1.0 + n % 7)
    assert set(asked) <= {n * strategy._times for n in (20 * share,)} | {20 * share}
    assert any(c.generation for c in found) == (share > 0)


def test_so_many_misses_end_a_generation(monkeypatch):
    strategy = search(genetic_max_fail_count=3)
    tries = []
    for mutator in strategy.context.space_generator.mutator_probs:
        monkeypatch.setattr(type(mutator), "changed", lambda self, trace: tries.append(1))
    strategy._mutants(strategy._fresh(4), 40)
    assert 3 <= len(tries) <= 6  # one or two a miss


def test_the_least_that_are_not_measured_and_those_that_are():
    strategy = search(population_size=10, batch=8, init_min_unmeasured=30, init_measured_ratio=0.3)
    batch = strategy.generate_measure_candidates()
    assert len(strategy.pool) + len(batch) >= 30
    strategy.notify_runner_results(batch, [RunnerResult((1.0 + n,)) for n in range(8)])
    measured = {id(c) for _, c in strategy.measured}
    parents = [c for c in strategy._parents(list(strategy.pool.values())) if id(c) in measured]
    best = [c for _, c in strategy.measured[:3] if c.space in strategy.open]  # 3 of 10
    assert parents == best and len(best) >= 2


def test_numbers_of_auto_scheduler_reach_the_search(tmp_path):
    @auto_scheduler.register_workload
    def doubled(n):
        from mlc_lab import te

        A = te.placeholder((n, n), name="A")
        return [A, te.compute((n, n), lambda i, j: A[i, j] * 2, name="B")]

    log = str(tmp_path / "log.json")
    task = auto_scheduler.SearchTask(func=doubled, args=(64,), target=TARGET)
    policy = auto_scheduler.SketchPolicy(task, params={"evolutionary_search_population": 8,
                                                       "evolutionary_search_mutation_prob": 0.5})
    assert policy.options == {"population_size": 8, "genetic_mutate_prob": 0.5}
    task.tune(auto_scheduler.TuningOptions(
        4, early_stopping=4, verbose=0, measure_callbacks=[auto_scheduler.RecordToFile(log)]),
        search_policy=policy)
    lines = len(open(log).read().splitlines())
    assert lines == 4
    model = auto_scheduler.XGBModel()
    model.update_from_file(log, n_lines=2)
    policy = auto_scheduler.SketchPolicy(task, program_cost_model=model)
    assert len(task._recorded(policy.files).query_all(task.mod, str(task.target))) == 2
