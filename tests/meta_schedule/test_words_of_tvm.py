"""What TVM's classes of a search are printed as, and how their numbers are read."""

import pickle

import pytest

from mlc_lab import meta_schedule as ms
from mlc_lab.meta_schedule.measure.runner import RunnerResult
from mlc_lab.meta_schedule.workload import TensorInfo
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source


def test_times_have_their_numbers_as_values():
    times = RunnerResult([0.5, 1.5]).run_secs
    assert times == [0.5, 1.5] and times[0].value == 0.5 and str(times) == "[0.5, 1.5]"


def test_arguments_are_printed_as_tvm_prints_them():
    info = TensorInfo("float32", (1, 3))
    assert str(info) == 'TensorInfo("float32", [1, 3])' and info.as_json()[2] == [1, 3]


def test_times_of_parts_are_added_up():
    with ms.Profiler() as profiler:
        for _ in range(2):
            with ms.Profiler.timeit("part"):
                pass
        assert ms.Profiler.current() is profiler
    found = profiler.get()
    assert list(found) == ["part", "Total"] and 0 < found["part"] < found["Total"]
    assert profiler.table().startswith("Total")
    with ms.Profiler.timeit("nothing"):
        assert ms.Profiler.current() is None


def test_a_context_may_have_no_program():
    context = ms.TuneContext(target="llvm")
    assert context.args_info == []
    with pytest.raises(ms.SpaceError, match="has no program"):
        context.generate_design_space()


def test_a_random_model_goes_on_where_it_was_saved(tmp_path):
    from mlc_lab.meta_schedule.cost_model import RandomModel
    from mlc_lab.reading.errors import DataError

    model, context = RandomModel(seed=3), ms.TuneContext()
    model.predict(context, [None] * 5)
    model.save(str(tmp_path / "model"))
    first = model.predict(context, [None] * 7)
    model.load(str(tmp_path / "model"))
    assert (model.predict(context, [None] * 7) == first).all()
    for text in ("{}", "[1]", '{"random_model": {"bit_generator": "PCG64"}, "max_range": 1}', "x"):
        (tmp_path / "other").write_text(text)
        with pytest.raises(DataError):
            model.load(str(tmp_path / "other"))


@pytest.mark.parametrize("name", ["f_build", "f_export"])
def test_functions_that_nobody_has_registered_are_refused(name):
    with pytest.raises(ValueError, match=f"{name}='mine'.*no global function 'mine'"):
        ms.builder.LocalBuilder(**{name: "mine"})


def test_the_sets_of_a_kind_of_target():
    def names(parts):
        return {type(part).__name__ for part in parts}

    for kind in ("cuda", "cuda-tensorcore", "webgpu"):
        assert {"AutoBind", "CrossThreadReduction"} <= names(ms.ScheduleRule.create(kind))
        assert "VerifyGPUCode" in names(ms.Postproc.create(kind))
        assert "MutateThreadBinding" in names(ms.Mutator.create(kind))
    assert "MultiLevelTiling" in names(ms.schedule_rule.create("llvm"))
    assert "AutoBind" not in names(ms.ScheduleRule.create())
    with pytest.raises(ValueError, match="no default rules for 'hexagon'.*\"llvm\", \"cuda\""):
        ms.ScheduleRule.create("hexagon")


def test_a_search_whose_times_are_zero_ends_with_its_table():
    from types import SimpleNamespace

    from mlc_lab.meta_schedule.task_scheduler import table

    task = SimpleNamespace(best_time=0.0, weight=1.0, trials=2, done=True, modelled=False,
                           context=SimpleNamespace(flop=10.0, task_name="main", target="llvm"))
    assert "N/A" in table.rows([task])[0]


@ms.derived_object
class Alternating(ms.task_scheduler.PyTaskScheduler):
    """As TVM has it: the number of the next task."""

    def next_task_id(self):
        open_ = [n for n, task in enumerate(self._outer().tasks_) if not task.is_terminated]
        if not open_:
            return -1
        assert self.tasks_[open_[0]].runner_futures is None and not self.join_running_task(open_[0])
        return open_[-1]


def test_a_scheduler_may_say_the_number_of_the_next_task():
    scheduler = Alternating()
    record = ms.task_scheduler.TaskRecord
    scheduler.tasks = [record(ms.TuneContext()), record(ms.TuneContext())]
    assert scheduler.next_task() is scheduler.tasks[1]
    scheduler.tasks[1].done = True
    assert scheduler.next_task() is scheduler.tasks[0]
    scheduler.tasks[0].done = True
    assert scheduler.next_task() is None
    with pytest.raises(ValueError, match="next_task_id is not defined"):
        ms.task_scheduler.PyTaskScheduler().next_task()
    scheduler.next_task_id = lambda: 7
    with pytest.raises(ValueError, match="gave 7; the tasks are 0 to 1"):
        scheduler.next_task()


@pytest.mark.parametrize("extent, threads", [(1, {1}), (8, {8}), (40, {32}), (128, {32, 64, 128})])
def test_threads_are_chosen_among_those_that_fit(extent, threads):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer(({extent}, 4), "float32"), B: T.Buffer(({extent},), "float32")):
    for i, k in T.grid({extent}, 4):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
""")
    seen = set()
    for seed in range(20):
        sch = Schedule(func, seed=seed)
        (made,) = ms.schedule_rule.AutoBind().apply(sch, sch.get_block("B"))
        loops = [made.get(loop) for loop in made.get_loops(made.get_block("B_update"))]
        assert [lp.thread_tag for lp in loops if lp.thread_binding] == ["blockIdx.x", "threadIdx.x"]
        seen.add(loops[1].extent.value)
    assert seen == threads


def test_a_block_without_loops_gets_one_thread():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((), "float32"), B: T.Buffer((), "float32")):
    with T.block("B"):
        v = T.axis.spatial(1, 0)
        B[()] = A[()] + T.float32(1)
""")
    sch = Schedule(func)
    (made,) = ms.schedule_rule.AutoBind().apply(sch, sch.get_block("B"))
    assert [made.get(lp).thread_tag for lp in made.get_loops("B")] == ["blockIdx.x", "threadIdx.x"]


def test_what_was_built_is_a_file_when_it_is_asked_for(tmp_path):
    import os

    import numpy as np

    from mlc_lab.ir.module import IRModule
    from mlc_lab.runtime import load_module

    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] + T.float32(1)
""")
    (built,) = ms.builder.LocalBuilder().build([
        ms.builder.BuilderInput(IRModule({"main": func}), "llvm")])
    assert built.error_msg is None and built.path is None
    path = built.artifact_path
    assert os.path.isfile(path) and built.artifact_path == path
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    load_module(path)["main"](a, b)
    np.testing.assert_array_equal(b, a + 1)
    ms.measure_callback.RemoveBuildArtifact().apply(None, 0, [], [built], [])
    assert not os.path.exists(os.path.dirname(path)) and built.path is None
    foreign = ms.builder.BuilderResult(tmp_path / "a.so", None)
    (tmp_path / "a.so").write_text("theirs")
    foreign.discard_file()
    assert (tmp_path / "a.so").exists()


def test_the_choices_of_tvm_are_taken():
    strategy = ms.search_strategy.EvolutionarySearch(
        population_size=512, init_measured_ratio=0.25, init_min_unmeasured=50, genetic_num_iters=4,
        genetic_mutate_prob=0.85, genetic_max_fail_count=10, eps_greedy=0.05)
    assert (strategy.population_size, strategy.generations, strategy.first) == (512, 4, 50)


@pytest.mark.parametrize("option, value", [
    ("init_measured_ratio", 1.5), ("genetic_mutate_prob", -0.5), ("genetic_max_fail_count", 0),
    ("early_stopping", 0)])
def test_a_choice_that_makes_no_sense_is_refused(option, value):
    with pytest.raises(ValueError, match=f"{option} (is a share|has to be at least 1).*{value}"):
        ms.search_strategy.EvolutionarySearch(**{option: value})


@pytest.mark.parametrize("kind, arguments", [
    ("memory", ()), ("sqlite", ("a.db",)), ("json", ("a.json", "b.json")),
    ("schedule", (lambda sch: True,))])
def test_a_database_compares_programs_by_structure_alone(kind, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Database = ms.database.Database
    with pytest.raises(ValueError, match="module_equality is one of .*, not 'name'"):
        Database.create(kind, *arguments, module_equality="name")
    for equality in ("structural", "ignore-ndarray", "anchor-block"):
        Database.create(kind, *arguments, module_equality=equality)
    with pytest.raises(TypeError, match="no_such"):
        Database.create(kind, *arguments, no_such=1)


def knows_nothing(sch):
    return False


def test_a_database_of_a_function_is_copied_with_its_function():
    copy = pickle.loads(pickle.dumps(ms.database.ScheduleFnDatabase(knows_nothing)))
    assert copy.schedule_fn is knows_nothing and copy.query_tuning_record(CHAIN, "llvm") is None


def test_auto_scheduler_refuses_numbers_that_the_search_has_not():
    from mlc_lab.meta_schedule.legacy import auto_scheduler

    with pytest.raises(ValueError, match="'max_vectorize_size', which this search has not"):
        auto_scheduler.SketchPolicy(None, params={"eps_greedy": 0.1, "max_vectorize_size": 16})


CHAIN = from_source("""
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((8, 8))
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
""")


@pytest.mark.parametrize("into_producer, left", [(True, ["B"]), (False, ["B", "C"])])
def test_a_block_goes_into_its_producer_where_that_is_asked(into_producer, left):
    sch = Schedule(CHAIN)
    rule = ms.schedule_rule.AutoInline(into_producer=into_producer, into_consumer=False)
    (made,) = rule.apply(sch, sch.get_block("C"))
    blocks = [made.get(b).name_hint for b in made.get_child_blocks(made.get_block("root"))]
    assert blocks == left
    rules = [rule, ms.schedule_rule.ParallelizeVectorizeUnroll()]
    space = ms.space_generator.PostOrderApply(sch_rules=rules, with_default=False)
    context = ms.TuneContext(CHAIN, target="llvm --num-cores=1", space_generator=space)
    assert [len(s.get_child_blocks(s.get_block("root"))) for s in context.generate_design_space()
            ] == [len(left)]
