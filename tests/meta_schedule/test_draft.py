"""Candidates are judged before their last steps: by the same numbers as after them."""

import numpy as np
import pytest

from mlc_lab import meta_schedule as ms
from mlc_lab.meta_schedule.context import TuneContext
from mlc_lab.meta_schedule.features import WIDTH, features_of, stores_of
from mlc_lab.machine.hardware import Hardware
from mlc_lab.script import from_source

from .programs import PROGRAMS, TARGET, matmul, stochastic

HARDWARE = Hardware()


def drafts(mod, count, postprocs=None, seed=3):
    """(schedule, what it is judged by, context) of random candidates."""
    generator = ms.space_generator.PostOrderApply()
    if postprocs is not None:
        generator = ms.space_generator.ScheduleFn(stochastic, postprocs=postprocs)
    context = TuneContext(mod, target=TARGET, space_generator=generator,
                          search_strategy=ms.search_strategy.EvolutionarySearch(), rand_state=seed)
    context.initialize()
    spaces = context.generate_design_space()
    strategy = context.search_strategy
    strategy.pre_tuning(64, 64, spaces, None, None)
    for candidate in strategy._fresh(count):
        yield candidate.draft or candidate.sch, candidate.sch, context


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_judged_is_worth_what_is_measured(name):
    """The estimates rank candidates alike; those of the sum itself are the same."""
    before, after = [], []
    for sch, judged, context in drafts(from_source(PROGRAMS[name]), 24):
        row, cycles = features_of(judged.mod, HARDWARE)
        count = len(stores_of(judged.mod["main"], HARDWARE))
        assert context.postprocess(sch)
        done, finished = features_of(sch.mod, HARDWARE)
        assert count <= len(stores_of(sch.mod["main"], HARDWARE))
        assert row.shape == done.shape and cycles <= finished * 1.01
        before.append(cycles)
        after.append(finished)
    order = [np.argsort(np.argsort(x, kind="stable"), kind="stable") for x in (before, after)]
    assert len(before) < 4 or np.corrcoef(*order)[0, 1] > 0.9


def test_the_copies_into_panels_are_those_that_packing_makes():
    packed = 0
    for sch, judged, context in drafts(matmul(96), 40):
        told = {s.store.buffer.name: s for s in stores_of(judged.mod["main"], HARDWARE)}
        assert context.postprocess(sch)
        made = {}
        for store in stores_of(sch.mod["main"], HARDWARE):  # the most expensive comes first
            made.setdefault(store.store.buffer.name, store)
        assert set(told) == set(made)
        for name, store in told.items():
            np.testing.assert_allclose(store.vector_of(), made[name].vector_of(), rtol=1e-6)
            assert len(store.vector_of()) == WIDTH
        packed += any(name.endswith("_global") for name in made)
    assert packed > 5


def test_only_chosen_candidates_are_packed():
    for sch, judged, _ in drafts(matmul(48), 6):
        assert judged is not sch
        assert "EnterPostproc" not in str(sch.trace)
        assert "_init" not in judged.mod.script()  # no step of a reduction's own loops yet


class Counts(ms.Postproc):
    """Of a user, who does not say which programs need it."""

    calls = 0

    def apply(self, sch):
        self.calls += 1
        return True


def test_postprocessors_that_do_not_say_run_on_every_candidate():
    step = Counts()
    made = list(drafts(matmul(32), 5, postprocs=[step]))
    assert all(sch is judged for sch, judged, _ in made)
    assert step.calls >= len(made) > 1


class Late(ms.Postproc):
    """Rejects every second candidate that is chosen."""

    stage = "chosen"
    calls = 0

    def apply(self, sch):
        self.calls += 1
        return self.calls % 2 == 0


def test_a_candidate_that_is_rejected_when_chosen_costs_no_trial():
    step = Late()
    space = ms.space_generator.ScheduleFn(stochastic, postprocs=[step])
    database = ms.database.MemoryDatabase()
    ms.tune_tir(matmul(32), TARGET, None, 3, space=space, database=database, verbose=False, seed=1)
    records = database.records()
    assert [r["status"] for r in records] == ["ok"] * len(records) and records
    assert step.calls > len(records)


def test_a_space_that_an_earlier_search_ended_is_no_error():
    """All that is left of it are programs that are rejected; those measured are in the database."""
    mod = from_source("""
@T.prim_func
def main(A: T.Buffer((1, 128), "float32"), B: T.Buffer((128, 10), "float32"),
         C: T.Buffer((1, 10), "float32")):
    T.func_attr({"tir.noalias": True})
    for i, j, k in T.grid(1, 10, 128):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""")
    database = ms.database.MemoryDatabase()
    for _ in range(2):
        ms.tune_tir(mod, TARGET, None, 64, database=database, verbose=False, seed=1)
    counted = len(database.records())
    assert 0 < counted < 64
    ms.tune_tir(mod, TARGET, None, 64, database=database, verbose=False, seed=1)
    assert len(database.records()) == counted


class Never(ms.Postproc):
    def apply(self, sch):
        return False


def test_a_wrong_space_is_an_error_whatever_is_known_of_the_program():
    database = ms.database.MemoryDatabase()
    ms.tune_tir(matmul(32), TARGET, None, 2, database=database, verbose=False, seed=1)
    space = ms.space_generator.ScheduleFn(stochastic, postprocs=[Never()])
    with pytest.raises(ms.TuneError, match="no valid program.*Never"):
        ms.tune_tir(matmul(32), TARGET, None, 4, space=space, database=database, verbose=False)
