"""If, Loop and Scan of ONNX, and sampling of images, against its reference evaluator."""

import numpy as np
import pytest

pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

import mlc_lab as tvm
from mlc_lab import relax, tir
from mlc_lab.relax.frontend import MissingOperators, detach_params
from mlc_lab.relax.frontend.onnx import from_onnx
from tests.relax.frontend.onnx_running import (
    built, check, info, model_of, one, reference, same, uniform,
)

node = helper.make_node


def branch(*nodes, outputs=("b",)):
    return helper.make_graph(list(nodes), "branch", [], [info(o) for o in outputs])


@pytest.mark.parametrize("several", [False, True])
def test_a_branch_that_the_run_takes(several):
    outputs = ["y", "z"] if several else ["y"]
    yes = branch(node("Add", ["x", "k"], ["b"]), node("Neg", ["b"], ["c"]),
                 outputs=["b", "c"][:len(outputs)])
    no = branch(node("Mul", ["x", "k"], ["d"]), node("Relu", ["d"], ["e"]),
                outputs=["d", "e"][:len(outputs)])
    x = uniform(3, 4)
    model = model_of([node("ReduceSum", ["x"], ["s"], keepdims=0),
                      node("Greater", ["s", "zero"], ["more"]),
                      node("If", ["more"], outputs, then_branch=yes, else_branch=no)],
                     {"x": x}, outputs, {"k": uniform(3, 4), "zero": np.float32(0).reshape(())})
    run = built(model)
    for feed in (abs(x), -abs(x)):
        same(run({"x": feed}), reference(model, {"x": feed}))


def test_a_branch_that_is_known_leaves_the_other_out():
    x = uniform(3, 4)
    model = model_of(
        [node("Shape", ["x"], ["s"], start=0, end=1), node("Equal", ["s", "three"], ["is"]),
         node("If", ["is"], ["y"], then_branch=branch(node("Relu", ["x"], ["b"])),
              else_branch=branch(node("Neg", ["x"], ["b"])))],
        {"x": x}, ["y"], {"three": np.array([3], "int64")})
    check(model, {"x": x})
    assert "R.nn.relu" in from_onnx(model).script() and "negative" not in from_onnx(model).script()


def layers(*names):
    """A convolution, its norm and an activation, of the input x."""
    conv, norm, out = names
    return [node("Conv", ["x", "w"], [conv]),
            node("BatchNormalization", [conv, "g", "beta", "mean", "var"], [norm]),
            node("Relu", [norm], [out])]


def kernels(model):
    functions = relax.get_pipeline("kernels")(from_onnx(model)).functions
    return {v.name_hint for v, f in functions.items() if isinstance(f, tir.PrimFunc)}


@pytest.mark.parametrize("known", [True, False])
def test_what_is_around_a_branch_is_fused_and_all_of_it_where_it_is_known(known):
    x = uniform(1, 3, 8, 8)
    weights = {"w": uniform(4, 3, 3, 3), "g": uniform(4), "beta": uniform(4), "mean": uniform(4),
               "var": abs(uniform(4)) + 0.5}
    weights |= {"is": np.array(True)} if known else {"zero": np.float32(0).reshape(())}
    asked = [] if known else [node("ReduceSum", ["x"], ["s"], keepdims=0),
                              node("Greater", ["s", "zero"], ["is"])]
    model = model_of(
        [*layers("c", "n", "a"), *asked,
         node("If", ["is"], ["q"], then_branch=branch(*layers("d", "e", "b")),
              else_branch=branch(node("Neg", ["a"], ["b"]))),
         node("Neg", ["q"], ["r"]), node("Exp", ["r"], ["t"]), node("Add", ["t", "a"], ["y"])],
        {"x": x}, ["y"], weights)
    func = from_onnx(model)["main"]
    outer = [type(block) is relax.DataflowBlock for block in func.body.blocks]
    assert outer == ([True] if known else [True, False, True])
    found = kernels(model)
    assert any(name.startswith("fused_conv2d_add_relu") for name in found)
    assert not found & {"batch_norm", "negative", "exp", "add"} or not known
    run = built(model)
    for feed in (abs(x), -abs(x)):
        same(run({"x": feed}), reference(model, {"x": feed}))


def test_operators_without_a_rule_are_found_in_branches():
    x = uniform(3)
    bad = branch(node("StringNormalizer", ["x"], ["b"]))
    model = model_of([node("If", ["c"], ["y"], then_branch=bad, else_branch=bad)], {"x": x}, ["y"],
                     {"c": np.array(True)})
    with pytest.raises(MissingOperators, match="StringNormalizer"):
        from_onnx(model)


def body(*nodes, state="out"):
    """The body of a loop with a state, which it collects."""
    return helper.make_graph(list(nodes), "body", [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
        helper.make_tensor_value_info("v", TensorProto.FLOAT, [3])],
        [info("again"), info(state), info("seen")])


@pytest.mark.parametrize("turns", [1, 5])
def test_a_loop_of_known_turns(turns):
    x = uniform(3)
    graph = body(node("Cast", ["i"], ["f"], to=1), node("Mul", ["v", "k"], ["m"]),
                 node("Add", ["m", "f"], ["out"]), node("Identity", ["go"], ["again"]),
                 node("Neg", ["out"], ["seen"]))
    model = model_of([node("Loop", ["n", "t", "x"], ["y", "all"], body=graph)], {"x": x},
                     ["y", "all"], {"n": np.array(turns), "t": np.array(True), "k": uniform(3)})
    check(model, {"x": x})


def test_a_loop_that_ends_by_a_known_condition():
    x = uniform(3)
    graph = body(node("Less", ["i", "most"], ["again"]), node("Add", ["v", "v"], ["out"]),
                 node("Identity", ["v"], ["seen"]))
    model = model_of([node("Loop", ["", "t", "x"], ["y", "all"], body=graph)], {"x": x},
                     ["y", "all"], {"t": np.array(True), "most": np.array(3)})
    check(model, {"x": x})


def both_modes(model, **options):
    """Runs a model as built for either mode of the machine, whose results have to agree."""
    executable = relax.build(from_onnx(model, **options), "llvm")
    machines = [relax.VirtualMachine(executable, tvm.cpu(), exec_mode=m)
                for m in ("compiled", "bytecode")]

    def run(feeds):
        one, other = ([o.numpy() for o in ([out] if hasattr(out, "numpy") else out)]
                      for out in (vm["main"](*map(tvm.nd.array, feeds.values()))
                                  for vm in machines))
        for a, b in zip(one, other):
            np.testing.assert_array_equal(a, b)
        return one

    return run


def grows(*more, outs=("again", "out"), names=("i", "go", "v"), shape=(3,)):
    """A body that goes on as before: v + w + i, of v."""
    i, go, v = names
    return helper.make_graph(
        [node("Cast", [i], ["f"], to=1), node("Add", [v, "w"], ["a"]),
         node("Add", ["a", "f"], ["out"]), *more], "body", [
            helper.make_tensor_value_info(i, TensorProto.INT64, []),
            helper.make_tensor_value_info(go, TensorProto.BOOL, []),
            helper.make_tensor_value_info(v, TensorProto.FLOAT, shape)], [info(o) for o in outs])


SAME = node("Identity", ["go"], ["again"])
T = {"t": np.array(True)}


def test_a_loop_whose_turns_are_an_input():
    x = uniform(3)
    model = model_of([node("Exp", ["x"], ["w"]), node("Loop", ["n", "t", "x"], ["l"],
                                                      body=grows(SAME)),
                      node("Mul", ["l", "w"], ["y"])], {"x": x, "n": np.array(4)}, ["y"], T)
    run = both_modes(model)
    for turns in (-1, 0, 1, 7):
        feeds = {"x": x, "n": np.array(turns)}
        same(run(feeds), reference(model, feeds))


def small(limit):
    """The condition: the sum of what comes out is below `limit`."""
    return [node("ReduceSum", ["out"], ["s"], keepdims=0), node("Less", ["s", limit], ["again"])]


@pytest.mark.parametrize("seed", range(6))
def test_random_loops_whose_turns_the_run_counts(seed):
    rng = np.random.default_rng(seed)
    x, w = (np.abs(rng.uniform(0.1, 1, 3)).astype("float32") for _ in range(2))
    turns, going = rng.choice(["n", "const", ""]), rng.choice(["c", "t", ""])
    ends = turns != "n" or rng.random() < 0.5
    collects = turns == "const"
    graph = grows(*(small("limit") if ends else [SAME]),
                  *([node("Neg", ["out"], ["seen"])] if collects else []),
                  outs=["again", "out", *["seen"] * collects])
    outs = ["y", *["all"] * collects]
    feeds = {"x": x, "w": w, "n": np.array(5), "c": np.array(True),
             "limit": np.float32(15).reshape(())}
    held = {**T, "const": np.array(8)}

    def model(going):
        return model_of([node("Loop", [turns, going, "x"], outs, body=graph)], feeds, outs, held)

    run = both_modes(model(going))
    for n, c, limit in [(5, True, 15), (2, True, 1000), (9, True, 3), (0, False, 15)]:
        feeds |= {"n": np.array(n), "c": np.array(c), "limit": np.float32(limit).reshape(())}
        if going == "c" and not c:
            want = [x, np.zeros((0, 3), "float32")][:len(outs)]
        elif turns == "n" and n == 0:
            want = [x]
        else:  # the reference takes no turn where no condition is given
            want = reference(model(going or "t"), feeds)
        same(run(feeds), want)


def test_rows_of_several_axes_are_collected_up_to_the_end():
    x = uniform(2, 3)
    graph = grows(*small("ten"), outs=("again", "out", "out", "f"), shape=(2, 3))
    model = model_of([node("Loop", ["n", "", "x"], ["y", "all", "fs"], body=graph),
                      node("ReduceSum", ["all", "k"], ["z"], keepdims=0)],
                     {"x": x}, ["y", "all", "fs", "z"],
                     {"n": np.array(9), "ten": np.float32(20).reshape(()), "w": uniform(2, 3),
                      "k": np.array([0])})
    values, turn = [x], 0
    w = next(np.frombuffer(t.raw_data, "float32").reshape(2, 3)
             for t in model.graph.initializer if t.name == "w")
    while turn < 9 and (not turn or values[-1].sum() < 20):
        values.append(values[-1] + w + turn)
        turn += 1
    assert 1 < turn < 9
    want = [values[-1], np.stack(values[1:]), np.arange(turn).astype("float32"),
            np.sum(values[1:], axis=0)]
    same(both_modes(model)({"x": x}), [np.float32(v) for v in want])


def stacked(model, feeds):
    """The reference's results. It makes a column of numbers that a loop collects, not a vector."""
    return [r.reshape(-1) if r.ndim == 2 and r.shape[1] == 1 else r
            for r in reference(model, feeds)]


@pytest.mark.parametrize("turns", ["n", "", "large"])
@pytest.mark.parametrize("ends", [False, True])
def test_what_a_loop_collects_has_as_many_rows_as_the_run_makes(turns, ends):
    """Where their number is not known, or is too large to have room for all of them at once."""
    ends = ends or turns != "n"
    x = np.abs(uniform(3))
    graph = grows(*(small("limit") if ends else [SAME]), node("Neg", ["out"], ["seen"]),
                  outs=("again", "out", "seen", "f"), shape=(3,))
    feeds = {"x": x, "n": np.array(4), "limit": np.float32(20).reshape(())}
    model = model_of([node("Loop", [turns, "t", "x"], ["l", "all", "fs"], body=graph),
                      node("ReduceSum", ["all", "k"], ["z"], keepdims=0),
                      node("Mul", ["l", "z"], ["y"])],
                     feeds, ["y", "all", "fs"],
                     {**T, "w": np.abs(uniform(3)), "k": np.array([0]),
                      "large": np.array(10**9)})
    run = both_modes(model)
    collected = from_onnx(model)["main"].ret_struct_info.fields[1]
    assert (collected.ndim, collected.dtype) == (2, "float32")
    for n, limit in ((4, 20), (1, 20), (9, 100), (30, 3)) + ((0, 20),) * (turns == "n"):
        feeds |= {"n": np.array(n), "limit": np.float32(limit).reshape(())}
        want = stacked(model, feeds) if n else [
            np.zeros_like(x), np.zeros((0, 3), "float32"), np.zeros(0, "float32")]
        same(run(feeds), want)


def test_a_loop_collects_rows_of_sizes_that_the_run_knows():
    x = uniform(3)
    graph = grows(SAME, outs=("again", "out", "a"), shape=None)
    model = model_of([node("Loop", ["n", "t", "x"], ["y", "all"], body=graph)],
                     {"x": x, "w": x, "n": np.array(2)}, ["y", "all"], T)
    m = tir.SizeVar("m", "int64")
    run = both_modes(model, shape_dict={"x": [m], "w": [m]})
    for size, turns in ((5, 3), (2, 1), (4, 9)):
        feeds = {"x": uniform(size), "w": uniform(size), "n": np.array(turns)}
        same(run(feeds), stacked(model, feeds), rtol=1e-5)


@pytest.mark.parametrize("grown", ["x", "twice"])
def test_the_state_of_a_loop_may_grow(grown):
    """As the tokens do that a model writes: of each turn comes another one."""
    x = uniform(2, 3)
    step = [node("ReduceSum", ["v", "axis"], ["s"], keepdims=1), node("Concat", [
        "v", "s" if grown == "x" else "v"], ["out"], axis=1)]
    graph = body(*step, SAME, node("ReduceMax", ["out"], ["seen"], keepdims=0))
    model = model_of([node("Loop", ["n", "t", "x"], ["l", "all"], body=graph),
                      node("Exp", ["l"], ["y"])],
                     {"x": x, "n": np.array(2)}, ["y", "all"], {**T, "axis": np.array([1])})
    run = both_modes(model)
    for turns in (1, 2, 4):
        feeds = {"x": x / 100, "n": np.array(turns)}
        same(run(feeds), stacked(model, feeds), rtol=1e-5)


def test_many_turns_of_a_known_number_are_not_written_out():
    x = np.zeros(3, "float32")
    graph = grows(SAME, outs=("again", "out", "f"))
    model = model_of([node("Loop", ["n", "t", "x"], ["y", "all"], body=graph)], {"x": x},
                     ["y", "all"], {**T, "n": np.array(2000), "w": np.ones(3, "float32")})
    mod = from_onnx(model)
    assert len(mod.functions) == 2
    assert [int(d) for d in mod["main"].ret_struct_info.fields[1].shape] == [2000]
    y, seen = both_modes(model)({"x": x})
    np.testing.assert_array_equal(seen, np.arange(2000))
    np.testing.assert_array_equal(y, [2000 + 1999 * 1000] * 3)


def test_loops_and_branches_within_one_another():
    x = uniform(3)
    inner = grows(node("Identity", ["go2"], ["again"]), names=("i2", "go2", "v2"))
    yes = branch(node("Loop", ["i", "t", "v"], ["b"], body=inner))
    no = branch(node("Neg", ["v"], ["b"]))
    outer = body(node("Mod", ["i", "two"], ["odd"]), node("Cast", ["odd"], ["is"], to=9),
                 node("If", ["is"], ["out"], then_branch=yes, else_branch=no), SAME)
    del outer.output[2:]
    model = model_of([node("Loop", ["n", "t", "x"], ["y"], body=outer)],
                     {"x": x, "n": np.array(4)}, ["y"], {**T, "two": np.array(2), "w": uniform(3)})
    for keep in (False, True):
        mod, params = detach_params(from_onnx(model, keep_params_in_input=keep))
        vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
        for turns in (0, 5):
            feeds = {"x": x, "n": np.array(turns)}
            got = vm["main"](*feeds.values(), *params.get("main", []))
            same([got.numpy()], reference(model, feeds))


def test_initializers_of_branches_that_share_a_name_are_parameters_of_their_own():
    sides = []
    for value in (2, 3):
        sides.append(branch(node("Mul", ["x", "k"], ["b"])))
        sides[-1].initializer.append(numpy_helper.from_array(np.float32([value] * 3), "k"))
    model = model_of([node("If", ["c"], ["y"], then_branch=sides[0], else_branch=sides[1])],
                     {"x": uniform(3), "c": np.array(True)}, ["y"])
    mod, params = detach_params(from_onnx(model, keep_params_in_input=True))
    assert len(params["main"]) == 2
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    for condition in (True, False):
        feeds = {"x": uniform(3), "c": np.array(condition)}
        got = vm["main"](*map(tvm.nd.array, feeds.values()), *params["main"])
        same([got.numpy()], reference(model, feeds))


def test_sizes_that_only_the_body_of_a_loop_uses():
    x = uniform(3)
    graph = body(node("Shape", ["u"], ["dims"]), node("ReduceProd", ["dims"], ["p"], keepdims=0),
                 node("Cast", ["p"], ["q"], to=1), node("Add", ["v", "q"], ["out"]), SAME)
    del graph.output[2:]
    model = model_of([node("Loop", ["n", "t", "x"], ["y"], body=graph)],
                     {"x": x, "u": x, "n": np.array(4)}, ["y"], T)
    run = both_modes(model, shape_dict={"u": [tir.SizeVar("m", "int64")],
                                        "x": [tir.SizeVar("k", "int64")]})
    for size, turns in ((5, 0), (4, 3)):
        feeds = {"x": x, "u": uniform(size), "n": np.array(turns)}
        same(run(feeds), reference(model, feeds))


def test_loops_within_one_another_of_sizes_that_the_run_knows(tmp_path):
    x = uniform(3)
    inner = grows(node("Identity", ["go2"], ["again"]), names=("i2", "go2", "v2"), shape=None)
    outer = body(node("Shape", ["w"], ["dims"]), node("ConstantOfShape", ["dims"], ["zeros"]),
                 node("Loop", ["i", "t", "zeros"], ["b"], body=inner),
                 node("ReduceMax", ["b"], ["m"], keepdims=0), node("Add", ["m", "v"], ["out"]),
                 SAME)
    del outer.output[2:]
    model = model_of([node("Loop", ["n", "t", "x"], ["y"], body=outer)],
                     {"x": x, "w": x, "n": np.array(4)}, ["y"], T)
    mod = from_onnx(model, shape_dict={"w": [tir.SizeVar("m", "int64")]})
    path = relax.build(mod, "llvm").export_library(str(tmp_path / "loops.so"))
    vm = relax.VirtualMachine(path, tvm.cpu())
    for size, turns in ((5, 3), (2, 20)):
        feeds = {"x": x, "w": uniform(size) / 100, "n": np.array(turns)}
        got = vm["main"](*map(tvm.nd.array, feeds.values()))
        if turns < 10:
            same([got.numpy()], reference(model, feeds))
        else:
            top = sum(i * feeds["w"].max() + i * (i - 1) / 2 for i in range(turns))
            same([got.numpy()], [np.float32(x + top)], rtol=1e-3)


@pytest.mark.parametrize("turns, kinds, words", [
    ("n", ["Identity", "Concat"], "'all' is not there.*its size differs from turn to turn: pad"),
    ("n", ["Identity", "Unsqueeze"],
     r"'v' of a loop is .*\(3,\).* before a turn and .*\(3, 1\).* after it.*dimensions"),
    ("", ["Identity", "Identity"], "Loop that makes y, all: this Loop never ends"),
    ("large", ["Less", "Compress"], "its size differs from turn to turn|not known"),
])
def test_what_a_loop_cannot_be_is_said(turns, kinds, words):
    x = uniform(3)
    ends = SAME if kinds[0] == "Identity" else node("Less", ["sum", "ten"], ["again"])
    step = {"Concat": node("Concat", ["v", "v"], ["out"], axis=0),
            "Unsqueeze": node("Unsqueeze", ["v", "one"], ["out"])}.get(
                kinds[1], node("Add", ["v", "v"], ["out"]))
    seen = node("NonZero", ["v"], ["seen"]) if kinds[1] == "Compress" else node(
        "Neg", ["v"], ["seen"])
    graph = body(node("ReduceSum", ["v"], ["sum"], keepdims=0), ends, step, seen)
    model = model_of([node("Loop", [turns, "t", "x"], ["y", "all"], body=graph)],
                     {"x": x, "n": np.array(3)}, ["y", "all"],
                     {**T, "large": np.array(10**9), "ten": np.float32(10).reshape(()),
                      "one": np.array([1])})
    with pytest.raises(ValueError, match=words):
        from_onnx(model)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("around", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_grid_sample(mode, around, align):
    check(*one("GridSample", [uniform(1, 2, 4, 5), uniform(1, 3, 2, 2) * 1.4], mode=mode,
               padding_mode=around, align_corners=align))


# ------------------------------------------------------------------------------- Scan


@pytest.mark.parametrize("attrs", [
    {}, {"scan_input_directions": [1, 0]}, {"scan_input_axes": [1, 0]},
    {"scan_output_directions": [1, 0]}, {"scan_output_axes": [1, 0]}])
def test_scan(attrs):
    """Sums that go on, of two sequences; the body sees a constant around it."""
    x = np.arange(12, dtype="float32").reshape(4, 3)
    other = uniform(4, 3)
    state, factor = np.ones(3, "float32"), np.float32(2)
    nodes = [node("Add", ["s", "a"], ["s1"]), node("Mul", ["s1", "f"], ["p"]),
             node("Add", ["p", "b"], ["q"]), node("Identity", ["s1"], ["s2"])]
    infos = {n: helper.make_tensor_value_info(n, TensorProto.FLOAT, [3])
             for n in ("s", "a", "b", "s2", "p", "q")}
    body = helper.make_graph(nodes, "body", [infos["s"], infos["a"], infos["b"]],
                             [infos["s2"], infos["p"], infos["q"]])
    scan = helper.make_node("Scan", ["state", "x", "other"], ["last", "ps", "qs"], body=body,
                            num_scan_inputs=2, **attrs)
    turned = attrs.get("scan_input_axes", [0])[0]
    feeds = {"state": state, "x": x.T.copy() if turned else x, "other": other}
    model = model_of([scan], feeds, ["last", "ps", "qs"], {"f": factor})
    sums, ps, qs = state, [], []
    for a, b in zip(x[::-1] if "scan_input_directions" in attrs else x, other):
        sums = sums + a
        ps.append(sums * factor)
        qs.append(sums * factor + b)
    ps = ps[::-1] if "scan_output_directions" in attrs else ps
    same(built(model)(feeds), [sums, np.stack(ps, attrs.get("scan_output_axes", [0])[0]),
                               np.stack(qs)])


# ------------------------------------------------------------------------------- sequences


@pytest.mark.parametrize("nodes", [
    [node("SequenceConstruct", ["x", "z"], ["s"]), node("SequenceAt", ["s", "last"], ["y"])],
    [node("SequenceConstruct", ["x", "z"], ["s"]), node("SequenceLength", ["s"], ["y"])],
    [node("SequenceConstruct", ["x", "z"], ["s"]),
     node("ConcatFromSequence", ["s"], ["y"], axis=1)],
    [node("SequenceConstruct", ["x", "z"], ["s"]),
     node("ConcatFromSequence", ["s"], ["y"], axis=-1, new_axis=1)],
    [node("SequenceEmpty", [], ["e"]), node("SequenceInsert", ["e", "x"], ["f"]),
     node("SequenceInsert", ["f", "z", "zero"], ["g"]), node("SequenceErase", ["g", "zero"], ["h"]),
     node("SequenceInsert", ["h", "z"], ["i"]),
     node("ConcatFromSequence", ["i"], ["y"], axis=0)],
    [node("SplitToSequence", ["x", "two"], ["s"], axis=1),
     node("SequenceAt", ["s", "last"], ["y"])],
    [node("SplitToSequence", ["x", "sizes"], ["s"], axis=1),
     node("SequenceAt", ["s", "zero"], ["y"])],
    [node("SplitToSequence", ["x"], ["s"], keepdims=0), node("SequenceAt", ["s", "last"], ["y"])]])
def test_sequences(nodes):
    feeds = {"x": uniform(3, 5), "z": uniform(3, 5)}
    numbers = {"last": -1, "zero": 0, "two": 2, "sizes": [1, 4]}
    model = model_of(nodes, feeds, ["y"], {n: np.array(v, "int64") for n, v in numbers.items()})
    same(built(model)(feeds), reference(model, feeds))


def test_a_sequence_is_no_result():
    model = model_of([node("SequenceConstruct", ["x"], ["y"])], {"x": uniform(2)}, ["y"])
    with pytest.raises(ValueError, match="use its tensors"):
        from_onnx(model)
