"""tune_tir from end to end: strategies, what becomes of bad candidates, stopping and going on."""

import numpy as np
import pytest

from mlc_lab import build
from mlc_lab import meta_schedule as ms
from mlc_lab.runtime import array
from mlc_lab.script import from_source

from benchmarks import programs

from .programs import TARGET, matmul, stochastic

SPACE = ms.space_generator.ScheduleFn


def tune(mod=None, trials=6, work_dir=None, **options):
    options = {"seed": 1, "verbose": False, **options}
    return ms.tune_tir(matmul() if mod is None else mod, TARGET, work_dir, trials, **options)


def check(sch, n=32):
    a, b = (np.random.rand(n, n).astype("float32") for _ in range(2))
    c = array(np.zeros((n, n), "float32"))
    build(sch.mod, target="llvm")["main"](a, b, c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4)


@pytest.mark.parametrize("strategy", ["replay-func", "replay-trace", "evolutionary", "e-greedy"])
def test_every_strategy_finds_a_schedule_that_computes_the_product(strategy):
    database = tune(space=SPACE(stochastic), strategy=strategy, trials=4)
    records = database.records()
    assert 1 <= len(records) <= 4 and {r["status"] for r in records} == {"ok"}
    check(ms.tir_integration.compile_tir(database, matmul(), TARGET))


def test_a_space_from_the_program_is_tuned_and_the_model_predicts():
    database = tune(matmul(64), trials=42)
    records = database.records()
    assert len(records) == 42
    assert {"default", "evolutionary"} <= {r["strategy"] for r in records}
    later = [r for r in records if r["round"] >= 1]
    assert all(r["predicted"] is not None for r in later)
    mutants = [r for r in later if r["parent"] is not None]
    assert mutants and all(r["generation"] >= 1 and r["mutation"] for r in mutants)
    assert {r["parent"] for r in mutants} <= {r["id"] for r in records}
    keys = [r["trace_json"] for r in records]
    assert len(set(keys)) == len(keys)  # none is measured twice
    check(ms.tir_integration.compile_tir(database, matmul(64), TARGET), 64)


def test_the_same_program_under_other_names_is_found():
    database = tune(space=SPACE(stochastic), trials=2)
    other = from_source(programs.matmul(32).replace("vi", "row").replace("i, j, k", "x, y, z"))
    check(ms.tir_integration.compile_tir(database, other, TARGET))
    with pytest.raises(ValueError, match="does not know this program"):
        ms.tir_integration.compile_tir(database, matmul(16), TARGET)


def test_each_function_of_a_module_is_a_task_and_the_table_names_them(capsys):
    from mlc_lab.ir.module import IRModule

    one, two = matmul(16), matmul(32)
    mod = IRModule({"one": one, "two": two})
    for scheduler in ("round-robin", "gradient"):
        database = ms.tune_tir(mod, TARGET, None, 4, space=SPACE(stochastic), seed=1,
                               strategy="replay-trace", num_trials_per_iter=1,
                               task_scheduler=scheduler)
        text = capsys.readouterr().out
        assert {r["task"] for r in database.records()} == {"one", "two"}
        assert "ID | Name |" in text and " one | " in text and "Total trials: 4" in text


# ------------------------------------------------------------------------- candidates that fail

SIGNATURE = programs.matmul(32).split("    T.func_attr")[0].replace("@T.prim_func", "")
HANG = """@T.prim_func
{}    for i in range(1000000000):
        for j in range(100000):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi % 32, vj % 32] = C[vi % 31, vj % 29] * T.float32(1.0001) + A[vi % 7, vj % 5]
"""
CRASH = """@T.prim_func
{}    for i in range(32):
        with T.block("C"):
            vi = T.axis.spatial(32, i)
            C[vi * 100000000, 0] = A[vi, 0]
"""
MEMORY = """@T.prim_func
{}    D = T.alloc_buffer((1000000, 1000000), "float32")
    for i, j in T.grid(1000000, 1000000):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = A[vi % 32, vj % 32]
    for i, j in T.grid(32, 32):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = D[vi, vj * 31]
"""
WRONG = """@T.prim_func
{}    for i, j in T.grid(32, 32):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]
"""
UNBUILDABLE = """@T.prim_func
{}    for i, j in T.grid(32, 32):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.call_extern("float32", "there_is_no_such_function", A[vi, vj])
"""


class Swap(ms.Postproc):
    """Puts another program into the place of the first candidate."""

    def __init__(self, text):
        self.text, self.left = text, 1

    def apply(self, sch):
        if self.left:
            self.left -= 1
            other = from_source(self.text.format(SIGNATURE.lstrip("\n")))
            mod = sch.state.mod.copy()
            mod.functions[mod.get_global_var("main")] = other
            sch.state.mod = mod
        return True


@pytest.mark.parametrize("text, statuses", [
    (WRONG, {"wrong"}), (CRASH, {"crash"}), (HANG, {"timeout"}),
    (MEMORY, {"memory", "crash", "run_error"}), (UNBUILDABLE, {"run_error", "build_error"}),
], ids=["wrong", "crash", "hang", "memory", "unbuildable"])
def test_a_bad_candidate_costs_one_trial(text, statuses):
    space = SPACE(stochastic, postprocs=[Swap(text)])
    runner = ms.runner.LocalRunner(timeout_sec=3)
    database = tune(space=space, strategy="replay-trace", trials=3, runner=runner)
    first, *rest = database.records()
    assert first["status"] in statuses and first["reason"] and first["time"] is None
    assert "sample_perfect_tile" in first["trace"]
    assert [r["status"] for r in rest] == ["ok", "ok"]
    check(ms.tir_integration.compile_tir(database, matmul(), TARGET))


def test_a_program_that_cannot_be_built_at_all_is_an_error():
    bad = from_source(UNBUILDABLE.format(SIGNATURE.lstrip("\n")))
    with pytest.raises(ms.TuneError, match="as it is.*there_is_no_such_function"):
        tune(bad, space=SPACE(lambda sch: None), trials=2)


# ------------------------------------------------------------------------- stopping and going on

class StopAfter(ms.MeasureCallback):
    def __init__(self, count):
        self.left = count

    def apply(self, *_):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_a_search_that_is_stopped_keeps_what_it_found_and_goes_on(tmp_path):
    options = {"space": SPACE(stochastic), "strategy": "replay-trace", "work_dir": tmp_path}
    database = tune(trials=8, measure_callbacks=[StopAfter(3)], **options)
    assert len(database) == 3 and database.sessions()[0]["state"] == "stopped"
    check(ms.tir_integration.compile_tir(database, matmul(), TARGET))
    database.close()
    database = tune(trials=8, **options)
    assert len(database) == 8
    (session,) = database.sessions()
    assert session["state"] == "done" and session["trials_wanted"] == 8
    assert [r["trial"] for r in database.records()] == list(range(8))
    database = tune(trials=8, **options)  # the search was through: another one begins
    assert len(database) == 16 and len(database.sessions()) == 2


def test_callbacks_see_every_result_and_an_own_runner_measures():
    class Recorder(ms.MeasureCallback):
        seen = []

        def apply(self, scheduler, task_id, candidates, builds, results):
            self.seen.append((scheduler.tasks[task_id].context.task_name, results[0].run_secs))

    class Constant(ms.Runner):
        def run(self, runner_inputs):
            result = ms.runner.RunnerResult((1e-3,))
            return [ms.runner.RunnerFuture(lambda: True, lambda: result) for _ in runner_inputs]

    database = tune(space=SPACE(stochastic), strategy="replay-trace", trials=3,
                    runner=Constant(), measure_callbacks=[Recorder()])
    assert Recorder.seen == [("main", [1e-3])] * 3
    assert [r["time"] for r in database.records()] == [1e-3] * 3


class Lucky(ms.Runner):
    """The first program it meets seems the fastest, once; a second time one of them fails."""

    varies = True

    def __init__(self, true, fails=()):
        self.true, self.fails, self.met, self.placements = true, fails, [], set()

    def run(self, runner_inputs):
        (item,) = runner_inputs
        key = id(item.build)
        first = key not in self.met
        if first:
            self.met.append(key)
        self.placements.add(item.placement)
        at = self.met.index(key)
        result = ms.runner.RunnerResult((1e-3 - 1e-6 * (at == 0) if first else self.true[at],))
        if not first and at in self.fails:
            result = ms.runner.RunnerResult((), "wrong", "argument 2 differs")
        return [ms.runner.RunnerFuture(lambda: True, lambda: result)]


def test_the_best_programs_are_measured_again_in_turns_before_one_is_chosen():
    runner = Lucky(true=[2.4e-3, 2.2e-3, 2e-3, 2.1e-3])
    database = tune(matmul(16), trials=4, runner=runner)
    records = database.records()
    times = [r["time"] for r in records]
    assert times.index(min(times)) == 2, "the one that is fastest in the turns"
    assert times[0] / times[2] == pytest.approx(2.4 / 2), "they compare as in the turns"
    assert np.prod(times) == pytest.approx(1e-3 ** 3 * 0.999e-3), "at the level of the search"
    assert database.query_tuning_record(matmul(16), TARGET).id == records[2]["id"]
    assert 0 in runner.placements and len(runner.placements) >= 4, "the tensors lie elsewhere"


def test_a_leading_program_that_fails_when_it_is_measured_again_has_failed():
    runner = Lucky(true=[1e-3, 2e-3, 3e-3, 4e-3], fails=(0, 1))
    database = tune(matmul(16), trials=4, runner=runner)
    records = database.records()
    assert [r["status"] for r in records] == ["wrong", "wrong", "ok", "ok"]
    assert records[0]["time"] is None and records[0]["reason"] == "argument 2 differs"
    assert database.query_tuning_record(matmul(16), TARGET).id == records[2]["id"]


def test_a_cost_model_of_ones_own_chooses():
    class Last(ms.CostModel):
        asked = 0

        def predict(self, context, candidates):
            Last.asked += len(candidates)
            return np.arange(len(candidates), dtype=float)

    database = tune(matmul(16), trials=4, cost_model=Last())
    assert len(database) == 4 and Last.asked > 4
    for name in ("random", "none"):
        assert len(tune(matmul(16), trials=2, cost_model=name)) == 2


@pytest.mark.parametrize("options, text", [
    ({"strategy": "simulated"}, "no search strategy 'simulated'.*evolutionary"),
    ({"space": "everything"}, "no space generator 'everything'"),
    ({"cost_model": "oracle"}, "no cost model 'oracle'"),
    ({"runner": "remote"}, "no runner 'remote'"), ({"builder": "remote"}, "no builder 'remote'"),
    ({"task_scheduler": "fair"}, "no task scheduler 'fair'"),
    ({"trials": 0}, "max_trials_global has to be at least 1"),
    ({"module_equality": "anchor-block"}, "module_equality='anchor-block'.*only"),
    ({"post_optimization": True}, "droplet"),
    ({"num_tuning_cores": 0}, "num_tuning_cores is"), ({"num_tuning_cores": "all"}, "'all'"),
])
def test_what_does_not_exist_is_named(options, text):
    with pytest.raises(ValueError, match=text):
        tune(**options)


def test_a_task_may_have_a_space_of_its_own():
    asked = []

    def own(sch):
        asked.append(sch)
        stochastic(sch)

    tune(trials=2, special_space={"main": SPACE(own)}, num_tuning_cores=1)
    assert asked
    asked.clear()
    tune(trials=2, special_space={"another": SPACE(own)})
    assert not asked


def test_a_target_that_cannot_be_measured_is_refused():
    with pytest.raises(ValueError, match="cannot be run for 'hexagon'"):
        ms.tune_tir(matmul(), "hexagon", None, 2)
    with pytest.raises(ValueError):
        ms.tune_tir(matmul(), "llvmm", None, 2)


def test_symbolic_shapes_are_refused_with_advice():
    text = """
@T.prim_func
def main(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    for i in range(n):
        with T.block("A"):
            vi = T.axis.spatial(n, i)
            A[vi] = T.float32(1)
"""
    with pytest.raises(ValueError, match="specialize"):
        tune(from_source(text))


SCRIPT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from mlc_lab import meta_schedule as ms
from meta_schedule.programs import TARGET, matmul, stochastic
database = ms.tune_tir(matmul(), TARGET, {path!r}, 2000, strategy="replay-trace", seed=1,
                       space=ms.space_generator.ScheduleFn(stochastic), num_trials_per_iter=8)
print("kept", len(database), database.sessions()[0]["state"])
"""


@pytest.mark.parametrize("how", ["SIGINT", "SIGKILL"])
def test_ctrl_c_and_a_kill_lose_nothing(how, tmp_path):
    import os
    import signal
    import subprocess
    import sys
    import time

    here = os.path.dirname(os.path.dirname(__file__))
    path = os.pathsep.join([os.path.dirname(here), here])
    process = subprocess.Popen([sys.executable, "-c", SCRIPT.format(path=str(tmp_path))],
                               env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE,
                               text=True)
    database, end = None, time.time() + 120
    while time.time() < end and (database is None or len(database) < 5):
        time.sleep(0.2)
        if database is None and (tmp_path / "database.db").exists():
            database = ms.database.SQLiteDatabase(work_dir=tmp_path)
    process.send_signal(getattr(signal, how))
    text, _ = process.communicate(timeout=60)
    assert len(database) >= 5
    if how == "SIGINT":
        assert process.returncode == 0
        assert f"kept {len(database)} stopped" in text and "Stopped: what was found" in text
    else:
        assert process.returncode == -9
        assert database.interrupted_session(
            "main", database.commit_workload(matmul()), database.sessions()[0]["target"],
            database.sessions()[0]["space"], 2000) is not None
