"""Measuring on a cluster of local processes."""

import os

import pytest

from mlc_lab import meta_schedule as ms
from mlc_lab.ir import MLCError

from .programs import TARGET, matmul, stochastic

distributed = pytest.importorskip("distributed")


def _die(*_):
    """What a cluster worker does whose machine fails."""
    os._exit(1)


def test_without_a_cluster_it_says_what_to_do():
    with pytest.raises(MLCError, match="make a dask.distributed.Client"):
        ms.runner.DaskRunner()


@pytest.fixture(scope="module")
def client():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True,
                                  dashboard_address=None) as cluster:
        with distributed.Client(cluster) as made:
            yield made


def test_a_dying_worker_costs_one_trial(client):
    class Dying(ms.runner.DaskRunner):
        kill = True

        def run(self, runner_inputs):
            if not self.kill:
                return super().run(runner_inputs)
            self.kill = False
            return [self._begin(_die, item) for item in runner_inputs]

    database = ms.tune_tir(
        matmul(), TARGET, None, 4, strategy="replay-trace", seed=1, verbose=False,
        space=ms.space_generator.ScheduleFn(stochastic), runner=Dying(client))
    records = database.records()
    assert [r["status"] for r in records] == ["crash", "ok", "ok", "ok"], records[0]["reason"]
    assert "died" in records[0]["reason"]


class Leaving(ms.runner.DaskRunner):
    """Something happens to the cluster while the fifth trial is measured."""

    def __init__(self, client, leave):
        super().__init__(client, timeout_sec=10)
        self.leave, self.begun = leave, 0

    def run(self, runner_inputs):
        futures = super().run(runner_inputs)
        self.begun += len(runner_inputs)
        if self.leave is not None and self.begun >= 5:
            leave, self.leave = self.leave, None
            leave()
        return futures


def search(client, leave, work_dir):
    return ms.tune_tir(
        matmul(), TARGET, str(work_dir), 8, num_trials_per_iter=4, strategy="replay-trace", seed=1,
        verbose=False, space=ms.space_generator.ScheduleFn(stochastic),
        runner=Leaving(client, leave))


@pytest.fixture
def own_cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True,
                                  dashboard_address=None) as cluster:
        with distributed.Client(cluster) as made:
            yield made


def test_a_worker_that_leaves_gives_its_trials_to_the_others(own_cluster, tmp_path):
    def leave():
        first = list(own_cluster.scheduler_info()["workers"])[0]
        own_cluster.retire_workers([first], close_workers=True)

    records = search(own_cluster, leave, tmp_path).records()
    assert [r["status"] for r in records] == ["ok"] * 8


@pytest.mark.parametrize("leave, says", [
    (lambda client: client.cluster.scale(0), "no workers"),
    (lambda client: client.close(), "connection to the cluster is closed")])
def test_a_cluster_that_is_gone_ends_the_search_and_keeps_its_trials(
        own_cluster, tmp_path, leave, says, monkeypatch):
    monkeypatch.setattr("mlc_lab.meta_schedule.measure.dask_runner.WITHOUT_WORKERS", 1.0)
    with pytest.raises(MLCError, match=says) as caught:
        search(own_cluster, lambda: leave(own_cluster), tmp_path)
    assert "goes on from there" in str(caught.value)
    kept = ms.database.SQLiteDatabase(tmp_path / "database.db").records()
    assert len(kept) >= 4 and all(r["status"] == "ok" for r in kept)
