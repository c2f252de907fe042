"""auto_scheduler on a product with a sparse matrix: inputs of one's own, and sketch rules."""

import json

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import auto_scheduler, te, topi
from mlc_lab.meta_schedule.legacy import search_utils as _ffi_api
from mlc_lab.meta_schedule.legacy import task_inputs
from mlc_lab.meta_schedule.legacy.auto_scheduler import PreloadCustomSketchRule as Rule
from mlc_lab.meta_schedule.legacy.sketch_rules import CustomSketches
from mlc_lab.meta_schedule.space_generator import SpaceError

M, ROWS, COLUMNS, BS_R, BS_C = 16, 6, 8, 8, 2


@auto_scheduler.register_workload
def sparse_layer(m, columns, data, indices, indptr):
    x = te.placeholder((m, columns), name="X")
    w = [te.placeholder(shape, name=name, dtype=dtype) for name, shape, dtype in (
        ("W_data", data, "float32"), ("W_indices", indices, "int32"),
        ("W_indptr", indptr, "int32"))]
    n = (indptr[0] - 1) * data[1]
    b = te.placeholder((m, n), name="B")
    y = topi.nn.sparse_dense(topi.nn.relu(x), *w)
    y = te.compute((m, n), lambda i, j: y[i, j] + b[i, j], name="bias")
    return [x, *w, b, topi.nn.relu(y)]


@pytest.fixture
def matrix(tmp_path, monkeypatch):
    """(x, data, indices, indptr, b, result): block row 1 is empty."""
    monkeypatch.chdir(tmp_path)  # inputs are kept beside the records
    monkeypatch.setattr(task_inputs, "TASK_INPUT_BUFFER_TABLE", {})
    rng = np.random.default_rng(0)
    keep = rng.random((ROWS, COLUMNS)) < 0.4
    keep[1], keep[2, 0] = False, True
    data = rng.standard_normal((int(keep.sum()), BS_R, BS_C)).astype("float32")
    indptr = np.concatenate([[0], np.cumsum(keep.sum(1))]).astype("int32")
    dense = np.zeros((ROWS * BS_R, COLUMNS * BS_C), "float32")
    for block, (i, j) in zip(data, np.argwhere(keep)):
        dense[i * BS_R:(i + 1) * BS_R, j * BS_C:(j + 1) * BS_C] = block
    x = rng.standard_normal((M, COLUMNS * BS_C)).astype("float32")
    b = rng.standard_normal((M, ROWS * BS_R)).astype("float32")
    return (x, data, np.nonzero(keep)[1].astype("int32"), indptr, b,
            np.maximum(np.maximum(x, 0) @ dense.T + b, 0))


def task_of(matrix, **options):
    _, data, indices, indptr, *_ = matrix
    return auto_scheduler.SearchTask(
        sparse_layer, (M, COLUMNS * BS_C, data.shape, indices.shape, indptr.shape),
        target="llvm --num-cores=1", **options)


def named(matrix):
    _, data, indices, indptr, *_ = matrix
    prefix = (f"sparse_dense_bsr_{ROWS * BS_R}_{COLUMNS * BS_C}_{BS_R}_{BS_C}_{len(indices)}_"
              f"{len(indptr)}_")
    return {prefix + "W_data": tvm.nd.array(data), prefix + "W_indices": tvm.nd.array(indices),
            prefix + "W_indptr": tvm.nd.array(indptr)}


def check(func, matrix):
    *given, result = matrix
    out = np.full_like(result, 7)
    func(*given, out)
    np.testing.assert_allclose(out, result, rtol=1e-4, atol=1e-4)


def is_sparse(policy, state, stage_id):
    state = auto_scheduler.loop_state.State(state, policy.search_task.compute_dag)
    tags = ("sparse_dense_sp_rhs_bsrmm", "sparse_dense_sp_rhs_bsrmm_block")
    return Rule.APPLY_AND_SKIP_REST if state.stages[stage_id].op.tag in tags else Rule.PASS


def tiles(policy, state, stage_id):
    """Tiles of the product, each computed where the stage that uses it has one of its own."""
    task = policy.search_task
    s = auto_scheduler.loop_state.State(state, task.compute_dag)
    rows, blocks = s.stages[stage_id].op, s.stages[stage_id - 1].op
    user = rows
    readers = _ffi_api.SearchPolicyUtilsGetConsumers(task, s.state_object, stage_id)
    assert len(readers) == 1
    number = int(readers.items()[0][0])
    assert _ffi_api.SearchPolicyUtilsIsElementwiseMatch(task, s.state_object, stage_id, number)
    user = s.stages[number].op
    s.compute_inline(rows)
    i, nb, j, k, c = s[blocks].iters
    m, n = s[user].iters
    assert not _ffi_api.SearchPolicyUtilsIsTiled(s[blocks])
    i0, i1, i2 = s.split(blocks, i, [None, None])
    m0, m1 = s.follow_split(user, m, len(s.transform_steps) - 1, 1)
    nb0, nb1 = s.split(blocks, nb, [None])
    n0, n1 = s.follow_split(user, n, len(s.transform_steps) - 1, 1)
    assert _ffi_api.SearchPolicyUtilsIsTiled(s[blocks])
    s.reorder(blocks, [i0, nb0, i1, nb1, k, i2, j, c])
    s.reorder(user, [m0, n0, m1, n1])
    s.compute_at(blocks, user, n0)
    return [[s.state_object, stage_id - 2]]


TILES = Rule(is_sparse, tiles, "Tiles")


def tuned(task, log, trials=6, files=()):
    policy = auto_scheduler.SketchPolicy(
        task, auto_scheduler.XGBModel(seed=1), seed=1,
        init_search_callbacks=[TILES, *map(auto_scheduler.PreloadMeasuredStates, files)])
    task.tune(auto_scheduler.TuningOptions(
        trials, verbose=0, measure_callbacks=[auto_scheduler.RecordToFile(log)]), policy)
    return [json.loads(line) for line in open(log)]


def test_a_sketch_rule_makes_the_space_and_its_steps_are_recorded(matrix):
    task = task_of(matrix, task_inputs=named(matrix), task_inputs_save_to_file=True)
    lines = tuned(task, "log.json")
    good = [line for line in lines if line["status"] == "ok"]
    assert len(lines) == 6 and good and not any(line["status"] == "wrong" for line in lines)
    for line in lines:
        kinds = [inst[0] for inst in line["trace"][0]]
        assert kinds.count("SamplePerfectTile") == 2
        assert {"ComputeAt", "Blockize", "Unblockize", "Reorder", "ComputeInline"} <= set(kinds)
    sch, args = task.apply_best("log.json")
    check(tvm.build(sch, args, "llvm"), matrix)
    assert "sch.unblockize" in task.print_best("log.json")
    program = str(tvm.lower(sch, args, simple_mode=True))
    assert program.count("for ") >= 5


def test_a_search_goes_on_with_the_records_and_the_inputs_that_were_kept(matrix):
    inputs = named(matrix)
    tuned(task_of(matrix, task_inputs=inputs, task_inputs_save_to_file=True), "log.json", 4)
    task_inputs.TASK_INPUT_BUFFER_TABLE.clear()  # as in another process
    again = task_of(matrix, task_inputs=list(inputs))
    lines = tuned(again, "log.json", 3, files=["log.json"])
    assert len(lines) == 7 and len({json.dumps(line["trace"]) for line in lines}) == 7
    assert len(again.database.get_all_tuning_records()) == 7
    check(tvm.build(*again.apply_best("log.json"), "llvm"), matrix)


def test_every_draw_of_a_sketch_computes_the_same(matrix):
    task = task_of(matrix)
    policy = auto_scheduler.SketchPolicy(task, seed=1, init_search_callbacks=[TILES])
    texts = set()
    for seed in range(1, 7):
        context = tvm.meta_schedule.TuneContext(
            task.mod, target=task.target, space_generator=CustomSketches(policy, policy.rules))
        (sch,) = context.space_generator.generate_design_space(task.mod, seed)
        texts.add(sch.mod.script())
        check(tvm.build(sch.mod, target="llvm"), matrix)
    assert len(texts) > 1


def test_without_a_rule_the_search_has_its_own_space(matrix):
    task = task_of(matrix, task_inputs=named(matrix))
    task.tune(auto_scheduler.TuningOptions(
        4, verbose=0, measure_callbacks=[auto_scheduler.RecordToFile("log.json")]))
    check(tvm.build(*task.apply_best("log.json"), "llvm"), matrix)


def test_inputs_that_must_not_be_random_are_asked_for(matrix):
    with pytest.raises(ValueError, match="W_indices, W_indptr cannot be random"):
        tuned(task_of(matrix), "log.json")
    _, data, indices, indptr, *_ = matrix
    by_placeholder = {"W_data": data, "W_indices": indices, "W_indptr": indptr}
    task = task_of(matrix, task_inputs=by_placeholder)
    found = task.inputs()
    assert list(found) == [1, 2, 3] and found[3] is not indptr
    np.testing.assert_array_equal(found[3], indptr)
    with pytest.raises(ValueError, match="other data are known as task input W_indptr"):
        task_of(matrix, task_inputs={"W_indptr": indptr + 1})
    changed = task_of(matrix, task_inputs={"W_indptr": indptr[:-1]}, task_inputs_overwrite=True)
    with pytest.raises(ValueError, match=r"W_indptr is int32 of shape \(6,\)"):
        changed.inputs()
    with pytest.warns(UserWarning, match="no tensor takes the task input other"):
        task_of(matrix, task_inputs={**by_placeholder, "other": data},
                task_inputs_overwrite=True).inputs()


def test_a_function_says_which_tensor_takes_an_input(matrix, monkeypatch):
    monkeypatch.setattr(task_inputs, "TASK_INPUT_CHECK_FUNC_REGISTRY",
                        dict(task_inputs.TASK_INPUT_CHECK_FUNC_REGISTRY))

    @auto_scheduler.register_task_input_check_func
    def second(args):
        return {args[2]: "places"}

    with pytest.raises(ValueError, match="second"):
        auto_scheduler.register_task_input_check_func("second", second)
    _, _, indices, indptr, *_ = matrix
    task = task_of(matrix, task_inputs={"places": indices, "W_indptr": indptr})
    assert list(task.inputs()) == [2, 3]
    for name in ("../outside", ""):
        with pytest.raises(ValueError, match="cannot be kept in a file"):
            task_of(matrix, task_inputs={name: indices}, task_inputs_save_to_file=True)
    with pytest.raises(ValueError, match="no data for task input nothing"):
        auto_scheduler.get_task_input_buffer("key", "nothing")


def test_a_damaged_file_of_an_input_is_refused(matrix, tmp_path):
    auto_scheduler.register_task_input_buffer("key", "places", matrix[2], save_to_file=True)
    auto_scheduler.register_task_input_buffer("key", "places", matrix[3], True, save_to_file=True)
    (path,) = tmp_path.glob("places.*.npy")  # that of the other data is gone
    task_inputs.TASK_INPUT_BUFFER_TABLE.clear()
    np.testing.assert_array_equal(auto_scheduler.get_task_input_buffer("key", "places"), matrix[3])
    whole = path.read_bytes()
    huge = whole.replace(b"(7,)", b"(7777777777777777777777,)", 1)
    pickled = whole.replace(b"<i4", b"|O8", 1)
    for text in (b"", b"PK", whole[:20], whole[:-3], huge, pickled):
        path.write_bytes(text)
        task_inputs.TASK_INPUT_BUFFER_TABLE.clear()
        with pytest.raises(tvm.ir.MLCError, match="places.7_int32.npy holds no task input places"):
            auto_scheduler.get_task_input_buffer("key", "places")


@auto_scheduler.register_workload
def chain(n):
    a = te.placeholder((n, n), name="A")
    b = te.compute((n, n), lambda i, j: te.exp(a[i, j]), name="B")
    k = te.reduce_axis((0, n), name="k")
    return [a, te.compute((n,), lambda i: te.sum(b[i, k], axis=k), name="C")]


def sketches(*rules, n=12):
    task = auto_scheduler.SearchTask(chain, (n,), target="llvm --num-cores=1")
    policy = auto_scheduler.SketchPolicy(task, init_search_callbacks=list(rules))
    return task, policy


def at(name, answer):
    def meet(policy, state, stage_id):
        found = policy.search_task.compute_dag.ops[stage_id].name == name
        return answer if found else Rule.PASS

    return meet


def split_by(*lengths):
    def apply(policy, state, stage_id):
        s = auto_scheduler.loop_state.State(state, policy.search_task.compute_dag)
        s.split(stage_id, s.stages[stage_id].iters[0], lengths)
        return [[s, stage_id - 1]]

    return apply


def test_pass_apply_and_skip_the_rest():
    two, three = split_by(2), split_by(3)
    for answers, want in (((Rule.PASS, Rule.PASS), []), ((Rule.APPLY, Rule.PASS), [2]),
                          ((Rule.APPLY, Rule.APPLY), [2, 3]),
                          ((Rule.APPLY_AND_SKIP_REST, Rule.APPLY), [2]),
                          ((Rule.PASS, Rule.APPLY_AND_SKIP_REST), [3])):
        task, policy = sketches(Rule(at("C", answers[0]), two), Rule(at("C", answers[1]), three))
        found = [s.transform_steps[0].args[1][0] for s in policy.generate_sketches()]
        assert found == want
        space = CustomSketches(policy, policy.rules)
        context = tvm.meta_schedule.TuneContext(task.mod, target=task.target,
                                                space_generator=space)
        made = context.generate_design_space()
        assert made
        texts = [str(sch.trace) for sch in made]
        for size in want:
            assert any(f"factors=[None, {size}]" in text for text in texts)
        a = np.random.rand(12, 12).astype("float32")
        for sch in made:
            out = np.zeros(12, "float32")
            tvm.build(sch.mod, target="llvm")(a, out)
            np.testing.assert_allclose(out, np.exp(a).sum(1), rtol=1e-4)


def space_of(*rules):
    task, policy = sketches(*rules)
    context = tvm.meta_schedule.TuneContext(task.mod, target=task.target,
                                            space_generator=CustomSketches(policy, rules))
    return context.generate_design_space()


def test_a_rule_that_cannot_be_followed_is_refused_with_its_name():
    def illegal(policy, state, stage_id):
        s = auto_scheduler.loop_state.State(state, policy.search_task.compute_dag)
        i, k = s["C"].iters
        s.parallel("C", k)
        return [[s.state_object, stage_id - 1]]

    def unknown(policy, state, stage_id):
        s = auto_scheduler.loop_state.State(state, policy.search_task.compute_dag)
        s.cache_write("C", "local")

    def fails(policy, state, stage_id):
        raise KeyError("mine")

    for apply, why in (
            (illegal, "steps of sketch rule Mine are refused(.|\n)*parallel"),
            (unknown, "State.cache_write, a copy of what is written, has no step here"),
            (fails, r"Mine raised KeyError at stage 2 at line \d+ \(raise KeyError"),
            (lambda policy, state, stage_id: [[state, stage_id]], "number of a stage before"),
            (split_by(None, 2), "some are numbers and some are None"),
            (split_by(0), "positive number")):
        with pytest.raises(SpaceError, match=why):
            space_of(Rule(at("C", Rule.APPLY_AND_SKIP_REST), apply, "Mine"))
    with pytest.raises(SpaceError, match="the condition of sketch rule Mine answered 7"):
        space_of(Rule(at("C", 7), fails, "Mine"))
    with pytest.raises(TypeError, match="init_search_callbacks"):
        auto_scheduler.SketchPolicy(None, init_search_callbacks=[object()])


def test_the_loops_of_a_state_follow_its_steps():
    task, _ = sketches()
    dag = task.compute_dag
    s = dag.get_init_state()
    i, j = s["B"].iters
    (k0, k1) = s.split("C", s["C"].iters[1], [4], inner_to_outer=False)
    assert [it.extent for it in s["C"].iters] == [12, 4, 3] and k0.is_reduction
    s.compute_at("B", "C", s["C"].iters[0])
    fused = s.fuse("B", [i, j])
    assert fused.extent == 144 and s["B"].compute_at == "iter"
    again = s.copy()
    assert again == s and str(again) == str(s) and again.state_object == s.state_object
    assert "for i@j@ (0,144)" in str(s) and len(s.transform_steps) == 3
    with pytest.raises(ValueError, match="i is not a loop of B as it stands"):
        s.parallel("B", i)
    with pytest.raises(ValueError, match="reorder takes all loops of C once"):
        s.reorder("C", [k0])
    with pytest.raises(ValueError, match="B names no stage|no stage of"):
        s["D"]
    with pytest.raises(ValueError, match="is no split"):
        s.follow_split("C", s["C"].iters[0], 1, 1)
    with pytest.raises(ValueError, match="it is a reduction"):
        s.compute_inline("C")
    s.compute_root("B")
    sch, args = dag.apply_steps_from_state(s)
    a, out = np.random.rand(12, 12).astype("float32"), np.zeros(12, "float32")
    tvm.build(sch, args, "llvm")(a, out)
    np.testing.assert_allclose(out, np.exp(a).sum(1), rtol=1e-4)
    s.split("C", s["C"].iters[0], [None])
    with pytest.raises(ValueError, match="leaves its sizes to the search"):
        dag.apply_steps_from_state(s)
    assert dag.consumers(s.state_object, 0) == [1] and not dag.elementwise_match(1, 2)
