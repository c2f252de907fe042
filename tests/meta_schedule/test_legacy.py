"""autotvm and auto_scheduler, as tutorials and notes use them."""

import json

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import auto_scheduler, autotvm, te
from mlc_lab.meta_schedule.legacy.config_space import ConfigEntity, ConfigSpace


@autotvm.template("test/matmul")
def matmul(n, dtype):
    a = te.placeholder((n, n), name="A", dtype=dtype)
    b = te.placeholder((n, n), name="B", dtype=dtype)
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    y, x = s[c].op.axis
    k = s[c].op.reduce_axis[0]
    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2, max_factor=16)
    yo, yi = cfg["tile_y"].apply(s, c, y)
    xo, xi = cfg["tile_x"].apply(s, c, x)
    cfg.define_reorder("order", [k, yi, xi], policy="candidate",
                       candidate=[[k, yi, xi], [yi, k, xi]])
    s[c].reorder(yo, xo)
    axes = cfg["order"].apply(s, c, [k, yi, xi])
    cfg.define_annotate("how", axes[-1:], policy="try_unroll_vec")
    cfg["how"].apply(s, c, axes[-1:])
    cfg.define_knob("unused", [1, 2])
    assert cfg["unused"].val in (1, 2)
    return s, [a, b, c]


def check(func, n=16):
    a, b = (np.random.rand(n, n).astype("float32") for _ in range(2))
    c = tvm.nd.array(np.zeros((n, n), "float32"))
    func(tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4)


def test_a_template_is_a_space_of_configurations():
    task = autotvm.task.create("test/matmul", args=(16, "float32"), target="llvm")
    space = task.config_space
    assert list(space.space_map) == ["tile_y", "tile_x", "order", "how", "unused"]
    assert len(space) == 5 * 5 * 2 * 2 * 2 == np.prod(space.dims)
    assert "tile_y: Split, 5 choices" in repr(space)
    for index in (0, 17, len(space) - 1):
        assert space.index_of(space.genes(index)) == index
        config = space.get(index)
        again = ConfigEntity.from_json(json.loads(json.dumps(config.as_json())))
        assert repr(again) == repr(config)
    with pytest.raises(IndexError, match="400 configurations" if len(space) == 400 else "config"):
        space.get(len(space))
    with pytest.raises(ValueError, match="no template 'other'; there are: .*test/matmul"):
        autotvm.task.create("other", (), "llvm")


@pytest.mark.parametrize("tuner", ["RandomTuner", "GridSearchTuner", "GATuner", "XGBTuner"])
def test_every_tuner_writes_a_log_from_which_the_best_is_applied(tuner, tmp_path):
    log = str(tmp_path / "matmul.log")
    task = autotvm.task.create("test/matmul", args=(16, "float32"), target="llvm")
    option = autotvm.measure_option(builder="local", runner=autotvm.LocalRunner(number=5))
    made = getattr(autotvm.tuner, tuner)(task, seed=1)
    made.tune(n_trial=10, measure_option=option,
              callbacks=[autotvm.callback.log_to_file(log)])
    lines = [json.loads(line) for line in open(log)]
    assert len(lines) == 10 and len({x["config"]["index"] for x in lines}) == 10
    assert made.best_flops > 0
    with autotvm.apply_history_best(log), tvm.target.Target("llvm"):
        s, args = matmul(16, "float32")
    check(tvm.build(s, args, "llvm"))
    best = min((x for x in lines if x["result"][1] == 0), key=lambda x: min(x["result"][0]))
    assert made.best_config.index in {x["config"]["index"] for x in lines} and best
    check(tvm.build(*matmul(16, "float32"), "llvm"))  # without a log: the first configuration


def test_policies_of_splits_and_orders():
    space = ConfigSpace()
    space.define_split("a", 12, num_outputs=3)
    assert len(space.space_map["a"]) == 18 and space["a"].size[0] == -1
    space.define_split("b", 12, policy="power2", num_outputs=2)
    assert [e.size for e in space.space_map["b"]] == [[-1, 1], [-1, 2], [-1, 4], [-1, 8]]
    space.define_split("c", 12, policy="verbose", num_outputs=2)
    assert len(space.space_map["c"]) == 12
    space.define_reorder("d", [1, 2, 3], policy="all")
    assert len(space.space_map["d"]) == 6
    space.define_reorder("e", [1, 2, 3], policy="interval_all", interval=(1, -1))
    assert [e.perm for e in space.space_map["e"]] == [[0, 1, 2], [0, 2, 1]]
    for define in (space.define_split, space.define_reorder, space.define_annotate):
        with pytest.raises(ValueError, match="polic"):
            define("x", [1] if define != space.define_split else 4, policy="best")
    with pytest.raises(ValueError, match="nothing to choose"):
        space.define_knob("f", [])


@auto_scheduler.register_workload
def matmul_add(n, dtype):
    a = te.placeholder((n, n), name="A", dtype=dtype)
    b = te.placeholder((n, n), name="B", dtype=dtype)
    c = te.placeholder((n, n), name="C", dtype=dtype)
    k = te.reduce_axis((0, n), name="k")
    product = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="matmul")
    return [a, b, c, te.compute((n, n), lambda i, j: product[i, j] + c[i, j], name="out")]


def test_auto_scheduler_needs_no_template(tmp_path):
    log = str(tmp_path / "matmul.json")
    task = auto_scheduler.SearchTask(func=matmul_add, args=(16, "float32"), target="llvm")
    assert "matmul" in str(task.compute_dag)
    task.tune(auto_scheduler.TuningOptions(
        num_measure_trials=3, measure_callbacks=[auto_scheduler.RecordToFile(log)], verbose=0))
    sch, args = task.apply_best(log)
    func = tvm.build(sch, args, "llvm")
    a, b, c = (np.random.rand(16, 16).astype("float32") for _ in range(3))
    out = tvm.nd.array(np.zeros((16, 16), "float32"))
    func(tvm.nd.array(a), tvm.nd.array(b), tvm.nd.array(c), out)
    np.testing.assert_allclose(out.numpy(), a @ b + c, rtol=1e-4)
    assert "def apply_trace" in task.print_best(log)
    assert "for" in str(tvm.lower(sch, args, simple_mode=True))
    by_name = auto_scheduler.SearchTask("matmul_add", (8, "float32"), target="llvm")
    with pytest.raises(ValueError, match="no valid record"):
        by_name.apply_best(log)


def test_auto_scheduler_goes_on_from_a_file(tmp_path):
    """As its tutorial resumes a search: a model and a policy that know what was measured."""
    log = str(tmp_path / "matmul.json")
    task = auto_scheduler.SearchTask(func=matmul_add, args=(16, "float32"), target="llvm")
    record = auto_scheduler.RecordToFile(log)
    task.tune(auto_scheduler.TuningOptions(3, measure_callbacks=[record], verbose=0))
    model = auto_scheduler.XGBModel()
    model.update_from_file(log)
    policy = auto_scheduler.SketchPolicy(
        task, model, seed=1,
        init_search_callbacks=[auto_scheduler.PreloadMeasuredStates(log)])
    task.tune(auto_scheduler.TuningOptions(2, measure_callbacks=[record], verbose=0), policy)
    lines = [json.loads(line)["trace"] for line in open(log)]
    assert len(lines) == 5 and len({json.dumps(trace) for trace in lines}) == 5
    assert len(task.database.get_all_tuning_records()) == 5
    auto_scheduler.SketchPolicy(task)
    with pytest.raises(ValueError, match="there is no cost model 'no'"):
        auto_scheduler.SketchPolicy(task, "no")


@autotvm.template("test/brittle")
def brittle(n):
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    cfg = autotvm.get_config()
    cfg.define_knob("how", ["fine", "type", "key", "said", "also fine", "illegal"])
    how = cfg["how"].val
    if how == "type":
        raise TypeError("a template may raise anything")
    if how == "key":
        {}["missing"]
    if how == "said":
        cfg.raise_error("this one is too large")
    if how == "illegal":
        s[b].reorder(s[b].op.axis[0], s[b].op.axis[0])
    return s, [a, b]


@pytest.mark.parametrize("tuner", ["GridSearchTuner", "XGBTuner"])
def test_a_template_that_raises_is_a_line_of_the_log_and_the_search_goes_on(tuner, tmp_path):
    log = str(tmp_path / "brittle.log")
    task = autotvm.task.create("test/brittle", args=(16,), target="llvm")
    reasons = {}

    def note(_, inputs, results):
        reasons.update((i.config["how"].val, r.found.reason) for i, r in zip(inputs, results))

    made = getattr(autotvm.tuner, tuner)(task)
    made.tune(6, autotvm.measure_option(runner=autotvm.LocalRunner(number=1)),
              callbacks=[autotvm.callback.log_to_file(log), note])
    lines = [json.loads(line) for line in open(log)]
    errors = {x["config"]["entity"][0][2]: x["result"][1] for x in lines}
    assert errors == {"fine": 0, "type": 1, "key": 1, "said": 1, "also fine": 0, "illegal": 1}
    assert reasons["type"] == "TypeError: a template may raise anything"
    assert reasons["said"] == "this one is too large"
    assert "fine" in made.best_config["how"].val
    with pytest.raises(autotvm.task.space.InstantiationError, match="KeyError: 'missing'"):
        task.schedule(task.config_space.get(2))


def test_a_log_of_templates_that_was_cut_goes_on_and_is_read(tmp_path):
    log = tmp_path / "matmul.log"
    task = autotvm.task.create("test/brittle", args=(16,), target="llvm")
    option = autotvm.measure_option(runner=autotvm.LocalRunner(number=1))
    keep = autotvm.callback.log_to_file(log)
    autotvm.tuner.GridSearchTuner(task).tune(2, option, callbacks=[keep])
    whole = log.read_bytes()
    log.write_bytes(whole[:-30])
    autotvm.tuner.GridSearchTuner(task).tune(1, option, callbacks=[keep])
    assert log.read_bytes().startswith(whole[:-30] + b"\n{")
    with pytest.warns(UserWarning, match="1 damaged line passed over, 2 read .line 2") as caught:
        assert len(list(autotvm.record.load_from_file(log))) == 2
    assert len(caught) == 1 and caught[0].filename == __file__
    log.write_bytes(b"\xff\xfe no log\n{}\n")
    with pytest.raises(ValueError, match="no tuning log: it has no good line"):
        list(autotvm.record.load_from_file(log))


def test_a_file_of_records_that_was_cut_goes_on_and_is_read(tmp_path):
    log = tmp_path / "matmul.json"
    task = auto_scheduler.SearchTask(func=matmul_add, args=(8, "float32"), target="llvm")
    options = auto_scheduler.TuningOptions(
        num_measure_trials=2, measure_callbacks=[auto_scheduler.RecordToFile(log)], verbose=0)
    task.tune(options)
    log.write_bytes(log.read_bytes()[:-30])
    task.tune(options)
    assert len(log.read_text().splitlines()) == 4
    with pytest.warns(UserWarning, match="1 damaged line passed over, 3 read"):
        sch, args = task.apply_best(log)
    tvm.build(sch, args, "llvm")
    log.write_text("3\n[]\n")
    with pytest.raises(ValueError, match="no file of tuning records"):
        task.apply_best(log)


def test_records_are_read_in_tvms_words(tmp_path):
    log, best = tmp_path / "a.log", tmp_path / "best.log"
    task = autotvm.task.create("test/brittle", args=(16,), target="llvm")
    autotvm.tuner.GridSearchTuner(task).tune(
        6, autotvm.measure_option(runner=autotvm.LocalRunner(number=1)),
        callbacks=[autotvm.callback.log_to_file(log)])
    pairs = list(autotvm.record.load_from_file(log))
    assert [i.task.workload for i, _ in pairs] == [task.workload] * 6
    fastest = min((p for p in pairs if not p[1].error_no), key=lambda p: p[1].mean)
    autotvm.record.pick_best(log, best)
    ((inp, res),) = autotvm.record.load_from_file(best)
    assert (inp.config.index, res.costs) == (fastest[0].config.index, fastest[1].costs)
    for records in (log, [best], pairs):
        with autotvm.task.dispatcher.ApplyHistoryBest(records) as history:
            assert history.query(task.target, task.workload).index == inp.config.index
            brittle(16)
    assert task.config_space[3].index == 3 and len(list(task.config_space)) == 6


def test_files_of_auto_scheduler_are_read_in_tvms_words(tmp_path):
    log = tmp_path / "a.json"
    task = auto_scheduler.SearchTask(func=matmul_add, args=(8, "float32"), target="llvm")
    task.tune(auto_scheduler.TuningOptions(
        num_measure_trials=2, measure_callbacks=[auto_scheduler.RecordToFile(log)], verbose=0))
    inputs, results = auto_scheduler.RecordReader(log).read_lines()
    assert [i.task.workload_key for i in inputs] == [task.workload_key] * 2
    _, best = auto_scheduler.load_best_record(log, task.workload_key)
    assert min(best.costs) == min(min(r.costs) for r in results if not r.error_no)
    assert len(list(auto_scheduler.load_records(log))) == 2
    assert auto_scheduler.load_best_record(log, "another") == (None, None)
    with auto_scheduler.ApplyHistoryBest(log) as history:
        assert history.query("llvm", task.workload_key) is not None
        assert task.apply_best()[0].mod.script() == task.apply_best(log)[0].mod.script()
    with pytest.raises(ValueError, match="needs the file"):
        task.apply_best()
