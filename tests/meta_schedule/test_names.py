"""TVM's names and forms: results of a user's own builder and runner, records, modules."""

import json
import os
import re
from time import sleep

import numpy as np
import pytest

from mlc_lab import meta_schedule as ms
from mlc_lab.build import build
from mlc_lab.ir import structural_equal
from mlc_lab.meta_schedule.database import MemoryDatabase, TuningRecord
from mlc_lab.meta_schedule.measure.builder import BuilderResult
from mlc_lab.meta_schedule.measure.runner import RunnerFuture, RunnerResult
from mlc_lab.runtime.registry import register_func
from mlc_lab.schedule import Schedule
from mlc_lab.target import Target
from mlc_lab.tir.functor import pre_order
from mlc_lab.tir.stmt import For

from .programs import TARGET, matmul, stochastic


def test_results_of_a_run_in_either_form():
    for result in (RunnerResult([1e-5, 1.1e-5], None), RunnerResult(run_secs=[1e-5, 1.1e-5]),
                   RunnerResult(run_secs=[1e-5, 1.1e-5], error_msg=None),
                   RunnerResult((1e-5, 1.1e-5), "ok")):
        assert (result.status, result.run_secs, result.error_msg) == ("ok", [1e-5, 1.1e-5], None)
        assert result.time is not None
    for result in (RunnerResult(None, "it broke"), RunnerResult([], "it broke"),
                   RunnerResult(run_secs=None, error_msg="it broke"),
                   RunnerResult((), "run_error", "it broke")):
        assert (result.status, result.run_secs, result.error_msg) == ("run_error", None, "it broke")
    assert RunnerResult(None, "crash").error_msg == "crash"
    assert RunnerResult(status="timeout", reason="too slow").status == "timeout"
    for wrong in ((None, None), ()):
        with pytest.raises(ValueError, match="neither times .* nor why"):
            RunnerResult(*wrong)
    with pytest.raises(ValueError, match="no status 'it broke'"):
        RunnerResult([1e-5], "it broke")
    for wrong in (1e-5, "fast", ["fast"]):
        with pytest.raises(TypeError, match="list of seconds"):
            RunnerResult(wrong, None)
    with pytest.raises(TypeError, match="error_msg .* or status"):
        RunnerResult([1e-5], 3)


def test_results_of_a_build_in_either_form(tmp_path):
    for result in (BuilderResult("a.so", None), BuilderResult(artifact_path="a.so"),
                   BuilderResult(artifact_path="a.so", error_msg=None)):
        assert (result.artifact_path, result.error_msg, result.status) == ("a.so", None, "ok")
    assert BuilderResult(tmp_path / "a.so", None).artifact_path == str(tmp_path / "a.so")
    for result in (BuilderResult(None, "it broke"), BuilderResult(error_msg="it broke"),
                   BuilderResult(None, None, "build_error", "it broke")):
        assert (result.artifact_path, result.error_msg) == (None, "it broke")
        assert result.status == "build_error"
    own = BuilderResult(b"code", {"entry": "main"})
    assert own.status == "ok" and own.path is None and own.obj == b"code"
    with pytest.raises(ValueError, match="neither what was built"):
        BuilderResult(None, None)
    with pytest.raises(TypeError, match="obj of a BuilderResult is given as int"):
        BuilderResult(3, None)


def test_a_builder_a_runner_and_a_callback_of_ones_own_in_tvms_words():
    class Paths(ms.builder.PyBuilder):
        def build(self, build_inputs):
            return [BuilderResult(artifact_path="made.so", error_msg=None) for _ in build_inputs]

    class Clock(ms.runner.PyRunner):
        seen = []

        def run(self, runner_inputs):
            self.seen += [(i.artifact_path, i.device_type, [a.as_json() for a in i.args_info])
                          for i in runner_inputs]
            times = ([1e-5, 1.1e-5], None) if len(self.seen) % 2 else (None, "no such board")
            result = RunnerResult(*times)
            return [RunnerFuture(lambda: True, lambda: result) for _ in runner_inputs]

    class Recorder(ms.MeasureCallback):
        seen = []

        def apply(self, scheduler, task_id, candidates, builds, results):
            self.seen += [(b.artifact_path, b.error_msg, r.run_secs, r.error_msg)
                          for b, r in zip(builds, results)]

    options = {"space": ms.space_generator.ScheduleFn(stochastic), "strategy": "replay-trace",
               "seed": 0, "max_trials_global": 2, "builder": Paths()}
    database = _tune(runner=Clock(), measure_callbacks=[Recorder()], **options)
    assert [r["status"] for r in database.records()] == ["ok", "run_error"]
    assert database.records()[1]["reason"] == "no such board"
    assert Clock.seen[0][:2] == ("made.so", "cpu") and Clock.seen[0][2][0][0] == "TENSOR"
    assert Recorder.seen == [("made.so", None, [1e-5, 1.1e-5], None),
                             ("made.so", None, None, "no such board")]
    with pytest.raises(ms.TuneError, match="LocalRunner runs the object code"):
        _tune(runner="local", **options)


def _tune(**options):
    return ms.tune_tir(matmul(), TARGET, None, verbose=False, **options)


def test_a_record_in_either_order():
    database = MemoryDatabase()
    workload = database.commit_workload(matmul())
    trace = Schedule(workload.mod).trace
    args = ms.arg_info.TensorInfo.from_prim_func(workload.mod["main"])
    for record in (TuningRecord(trace, workload, [2e-3, 3e-3], TARGET, args),
                   TuningRecord(trace, workload, TARGET, (2e-3, 3e-3), args),
                   TuningRecord(trace, workload, [2e-3, 3e-3], target=TARGET, args_info=args),
                   TuningRecord(trace, workload, run_secs=[2e-3, 3e-3], target=TARGET,
                                args_info=args)):
        assert (record.times, record.target, record.args_info) == ((2e-3, 3e-3), TARGET, args)
        database.commit_tuning_record(record)
    assert [r.run_secs for r in database.get_top_k(workload, 2)] == [[2e-3, 3e-3]] * 2
    unmeasured = TuningRecord(trace, workload, None, TARGET, args)
    assert unmeasured.run_secs is None and unmeasured.target == TARGET
    with pytest.raises(TypeError, match="run_secs, target, args_info"):
        TuningRecord(trace, workload, [2e-3], [3e-3])


def test_names_that_classes_written_for_tvm_import():
    from mlc_lab.meta_schedule.utils import derived_object

    class Mine(ms.runner.PyRunner):
        pass

    assert derived_object(Mine) is Mine and ms.derived_object is derived_object


def test_a_mutator_that_takes_a_seed():
    class Seeded(ms.mutator.PyMutator):
        def apply(self, trace, seed):
            assert isinstance(seed, int)
            return trace

    class Plain(ms.mutator.PyMutator):
        def apply(self, trace):
            return trace

    context = ms.TuneContext(matmul(), target=TARGET)
    for mutator in (Seeded(), Plain()):
        mutator.initialize_with_tune_context(context)
        assert mutator.changed("trace") == "trace"


def test_a_database_that_schedules():
    def tiled(sch):
        (block,) = sch.get_child_blocks(sch.get_block("root"))
        sch.split(sch.get_loops(block)[0], factors=[None, 4])
        return True

    database = ms.database.ScheduleFnDatabase(tiled)
    assert "_0" in database.query_ir_module(matmul(), TARGET).script()
    assert database.query(matmul(), TARGET, kind="record").run_secs is None
    assert ms.database.ScheduleFnDatabase(lambda sch: False).query(matmul(), TARGET) is None


def test_arguments_as_json():
    (first, *_) = ms.ArgInfo.from_entry_func(matmul())
    assert ms.ArgInfo.from_json(json.loads(json.dumps(first.as_json()))) == first
    assert ms.TensorInfo("float32", (2,)).as_json() == ["TENSOR", "float32", [2]]
    with pytest.raises(ValueError, match="TENSOR"):
        ms.ArgInfo.from_json(["int"])


def test_records_and_programs_as_json():
    database = MemoryDatabase()
    workload = database.commit_workload(matmul())
    trace = Schedule(workload.mod).trace
    args = ms.arg_info.TensorInfo.from_prim_func(workload.mod["main"])
    record = TuningRecord(trace, workload, [2e-3], TARGET, args)
    program = ms.database.Workload.from_json(json.loads(json.dumps(workload.as_json())))
    again = TuningRecord.from_json(json.loads(json.dumps(record.as_json())), program)
    assert again.as_json() == record.as_json() and program.shash == workload.shash
    assert again.as_schedule().mod.script() == record.as_schedule().mod.script()
    with pytest.raises(ValueError, match="a tuning record is"):
        TuningRecord.from_json([1], workload)


def test_databases_in_an_order_and_of_ones_own():
    class Mine(ms.database.PyDatabase):
        def __init__(self):
            super().__init__()
            self.kept = []

        def commit_tuning_record(self, record):
            self.kept.append(record)

        def get_all_tuning_records(self):
            return list(self.kept)

        def get_top_k(self, workload, top_k, target=None):
            return sorted(self.kept, key=lambda r: r.time)[:top_k]

    first, second = MemoryDatabase(), Mine()
    workload = second.commit_workload(matmul())
    trace = Schedule(workload.mod).trace
    second.commit_tuning_record(TuningRecord(trace, workload, [1e-3], TARGET))
    both = ms.database.OrderedUnionDatabase(first, second)
    assert both.query_tuning_record(matmul(), TARGET).time == 1e-3
    first.commit_tuning_record(TuningRecord(trace, first.commit_workload(matmul()), [2e-3], TARGET))
    assert both.query_tuning_record(matmul(), TARGET).time == 2e-3
    assert [r.time for r in both.get_top_k(matmul(), 5)] == [2e-3]
    assert len(second) == len(second.records()) == len(second.query_all(matmul())) == 1
    assert len(both.records()) == 2


def test_a_database_of_ones_own_need_not_know_of_targets():
    class Mine(ms.database.PyDatabase):
        def __init__(self):
            super().__init__()
            self.kept = []

        def commit_tuning_record(self, record):
            self.kept.append(record)

        def get_all_tuning_records(self):
            return self.kept

        def get_top_k(self, workload, top_k):
            mine = [r for r in self.kept if structural_equal(r.workload.mod, workload.mod)]
            return sorted(mine, key=lambda r: r.time)[:top_k]

    database = Mine()
    workload = database.commit_workload(matmul())
    trace = Schedule(workload.mod).trace
    for target, time in ((TARGET, 3e-3), (TARGET, 2e-3), ("llvm -mcpu=skylake", 1e-3)):
        database.commit_tuning_record(TuningRecord(trace, workload, [time], target))
    for asked in (database, ms.database.UnionDatabase(database),
                  ms.database.OrderedUnionDatabase(MemoryDatabase(), database)):
        assert asked.query_tuning_record(matmul(), TARGET).time == 2e-3
        assert [r.time for r in asked.get_top_k(workload, 2)] == [1e-3, 2e-3]
    assert database.query_schedule(matmul(), TARGET) is not None


def test_a_cost_model_is_saved_under_the_name_that_is_given(tmp_path):
    model = ms.cost_model.TreeModel()
    model.best["main"] = 1e-3
    model.save(tmp_path / "m.bin")
    assert [p.name for p in tmp_path.iterdir()] == ["m.bin"]
    again = ms.cost_model.TreeModel()
    again.load(tmp_path / "m.bin")
    assert again.best == {"main": 1e-3}


class Extents(ms.feature_extractor.PyFeatureExtractor):
    """A row a loop: its extent."""

    def extract_from(self, context, candidates):
        return [np.array([[float(n.extent)] for n in pre_order(c.sch.mod["main"].body)
                          if type(n) is For]) for c in candidates]


def candidates_of_splits():
    out = []
    for factor in (1, 2, 4, 8):
        sch = Schedule(matmul())
        sch.split(sch.get_loops("C")[0], [None, factor])
        out.append(ms.MeasureCandidate(sch))
    return out


def test_a_cost_model_learns_from_the_features_of_an_extractor():
    model = ms.cost_model.XGBModel(extractor=Extents())
    context = ms.TuneContext(matmul(), target=TARGET)
    seconds = [4e-3, 3e-3, 2e-3, 1e-3]
    for _ in range(3):
        model.update(context, candidates_of_splits(), [
            ms.runner.RunnerResult([s], None) for s in seconds])
    assert model.trained
    scores = model.predict(context, candidates_of_splits())
    assert list(scores.argsort()) == [0, 1, 2, 3]


def test_feature_extractors_by_name():
    context = ms.TuneContext(matmul(), target=TARGET)
    made = candidates_of_splits()
    rows = ms.feature_extractor.create("per-store-feature").extract_from(context, made)
    assert [r.ndim for r in rows] == [2] * 4 and len({r.shape[1] for r in rows}) == 1
    chance = ms.feature_extractor.create("random", seed=3)
    kept = chance.random_state
    first = chance.extract_from(context, made)
    chance.random_state = kept
    for a, b in zip(first, chance.extract_from(context, made)):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="no feature extractor 'oracle'"):
        ms.feature_extractor.create("oracle")
    wrong = ms.cost_model.XGBModel(extractor=chance)
    wrong.extractor.extract_from = lambda context, candidates: [np.zeros(3) for _ in candidates]
    with pytest.raises(ValueError, match="a row for each store"):
        wrong.predict(context, candidates_of_splits())


def test_a_class_of_ones_own_is_printed_as_tvm_prints_it():
    class Mine(ms.feature_extractor.PyFeatureExtractor):
        pass

    assert re.fullmatch(r"meta_schedule\.Mine\(0x[0-9a-f]+\)", str(ms.utils.derived_object(Mine)()))


def test_a_runner_future_needs_something_to_wait_for():
    with pytest.raises(TypeError, match="f_done and f_result, or a future"):
        RunnerFuture(lambda: True)


def own(mod=None, **options):
    builder = ms.builder.LocalBuilder(max_workers=2, **options)
    return builder.build([ms.builder.BuilderInput(mod or matmul(), Target("llvm"))] * 2)


def test_functions_of_ones_own_build_and_export(tmp_path):
    def export(module):
        path = tmp_path / "made.txt"
        path.write_text(type(module).__name__)
        return path

    for result in own(f_build=lambda mod, target, params: [mod, target, params], f_export=export):
        assert (result.status, result.artifact_path) == ("ok", str(tmp_path / "made.txt"))
    assert (tmp_path / "made.txt").read_text() == "list"
    for result in own(f_build=lambda mod, target, params: build(mod, target)):
        assert result.artifact_path.endswith(".so") and result.error_msg is None


def test_functions_of_ones_own_may_be_named_by_the_initializer():
    def initializer():
        register_func("tests.own_build", lambda mod, target, params: "module", override=True)
        register_func("tests.own_export", lambda module: f"/{module}", override=True)

    names = {"f_build": "tests.own_build", "f_export": "tests.own_export"}
    assert [r.artifact_path for r in own(initializer=initializer, **names)] == ["/module"] * 2
    with pytest.raises(ValueError, match="no global function 'tests.own_build'"):
        own(**names)  # the initializer has run in processes of its own


@pytest.mark.parametrize("f_build, status, text", [
    (lambda *_: 1 // 0, "build_error", "An exception occurred.*ZeroDivisionError"),
    (lambda *_: os._exit(3), "crash", "crashed.*ended with 3"),
    (lambda *_: sleep(60), "timeout", "Timeout"),
    (lambda *_: bytearray(1 << 40), "build_error", "MemoryError")])
def test_a_build_of_ones_own_that_fails_is_told(f_build, status, text):
    for result in own(f_build=f_build, timeout_sec=2):
        assert result.status == status and re.match(f"(?s)LocalBuilder: .*{text}", result.error_msg)
    with pytest.raises(TypeError, match="f_build= takes a function or its name"):
        own(f_build=3)
