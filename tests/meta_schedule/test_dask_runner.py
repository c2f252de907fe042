"""Measuring on a cluster of local processes."""

import os

import pytest

from mlc_lab import meta_schedule as ms

from .programs import TARGET, matmul, stochastic

distributed = pytest.importorskip("distributed")


def _die(*_):
    """What a cluster worker does whose machine fails."""
    os._exit(1)


def test_without_a_cluster_it_says_what_to_do():
    from mlc_lab.ir.diagnostics import MLCError

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
