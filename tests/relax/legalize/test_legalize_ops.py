"""What LegalizeOps does to a module: replaced rows, symbolic shapes, what it leaves."""

import logging

import numpy as np
import pytest
from relax.evaluate import check, module_of
from topi.running import array

import mlc_lab
from mlc_lab import relax, tir, topi
from mlc_lab.relax import op
from mlc_lab.relax.transform import LegalizeOps


def test_a_row_of_ones_own():
    def add(bb, call):
        return bb.call_te(topi.subtract, *call.args, primfunc_name_hint="mine")

    x = array(3)
    mod = module_of(op.add, x, x)
    assert "mine" in LegalizeOps({"relax.add": add})(mod).script()
    assert "mine" not in LegalizeOps()(mod).script()


def test_a_row_may_give_operators_and_emit_some():
    def softmax(bb, call):
        power = bb.emit(op.exp(call.args[0]))
        return op.divide(power, bb.emit(op.sum(power, -1, True)))

    mod = LegalizeOps({"relax.nn.softmax": softmax})(module_of(op.nn.softmax, array(3, 4)))
    text = mod.script()
    assert "R.exp" not in text and "R.divide" not in text and "cls.divide" in text


def test_a_row_that_gives_the_call_back_leaves_it():
    mod = module_of(op.exp, array(3))
    assert "R.exp" in LegalizeOps({"relax.exp": lambda bb, call: call})(mod).script()


def test_rows_in_a_circle_are_found():
    mod = module_of(op.exp, array(3))
    with pytest.raises(RecursionError, match="without end"):
        LegalizeOps({"relax.exp": lambda bb, call: op.exp(call.args[0])})(mod)


def test_unknown_operators_are_refused():
    with pytest.raises(ValueError, match="no Relax operator 'relax.ad'"):
        LegalizeOps({"relax.ad": lambda bb, call: call})


def test_one_function_serves_equal_calls():
    mod = LegalizeOps()(module_of(lambda x: op.exp(op.exp(x)), array(3)))
    assert [v.name_hint for v in mod.functions] == ["exp", "main"] or len(mod.functions) == 2


def test_unknown_shapes_stay(caplog):
    info = relax.TensorStructInfo(dtype="float32", ndim=2)
    with caplog.at_level(logging.WARNING):
        mod = LegalizeOps(enable_warning=True)(module_of(op.exp, info))
    assert "R.exp" in mod.script() and "a shape is not known" in caplog.text


def test_a_module_without_operators_stays_the_same_object():
    mod = LegalizeOps()(module_of(op.exp, array(3)))
    assert LegalizeOps()(mod) is mod


@pytest.mark.parametrize("build, expected", [
    (lambda x: op.add(x, x), lambda x: x + x),
    (lambda x: op.matmul(x, op.permute_dims(x)), lambda x: x @ x.T),
    (lambda x: op.nn.softmax(x, 0), lambda x: np.exp(x) / np.exp(x).sum(0)),
    (lambda x: op.reshape(x, (-1,)), lambda x: x.ravel()),
    (lambda x: op.mean(x, 0), lambda x: x.mean(0)),
    (lambda x: op.concat([x, x], 0), lambda x: np.concatenate([x, x])),
    (lambda x: op.strided_slice(x, [0], [1], [2**31 - 1]), lambda x: x[1:]),
    (lambda x: op.strided_slice(x, [0], [-2], [2**31 - 1]), lambda x: x[-2:]),
    (lambda x: op.strided_slice(x, [1], [9], [0], [-1]), lambda x: x[:, 9:0:-1]),
    (lambda x: op.strided_slice(x, [0], [2**31 - 1], [-2**63], [-2]), lambda x: x[::-2]),
    (lambda x: op.strided_slice(x, [0], [-2], [-99], [-1]), lambda x: x[-2:-99:-1]),
    (lambda x: op.strided_slice(x, [0], [9], [1], [-3]), lambda x: x[9:1:-3]),
    (lambda x: op.strided_slice(x, [1, 0], [-9, 9], [3, 12]), lambda x: x[9:12, -9:3]),
    (lambda x: op.strided_slice(x, [0], [x.struct_info.dims[0] - 7], [9]), lambda x: x[-2:]),
    (lambda x: op.split(x, 2, 0), lambda x: [x[:3], x[3:]]),
    (lambda x: op.divide(x, op.reshape(op.nn.avg_pool2d(op.reshape(
        x, (1, 1, *x.struct_info.dims)), [1, 1], [1, 1]), x.struct_info.dims)), lambda x: x / x),
    (lambda x: op.full(x.struct_info.shape, 2.0), lambda x: x * 0 + 2),
    (lambda x: op.arange(x.struct_info.dims[0]), lambda x: np.arange(len(x))),
    (lambda x: op.broadcast_to(op.expand_dims(x, 0), (2, *x.struct_info.dims)),
     lambda x: np.stack([x, x])),
])
def test_symbolic_sizes(build, expected):
    n = tir.Var("n", "int64")
    x = array(5, 4)
    check(build, [x], expected(x), [relax.TensorStructInfo((n, 4), "float32")])


def _machine(build, *infos):
    bb = relax.BlockBuilder()
    params = [relax.Var(f"x{k}", relax.TensorStructInfo(*i)) for k, i in enumerate(infos)]
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(build(*params)))
    return relax.VirtualMachine(relax.build(bb.get(), "llvm"), mlc_lab.cpu())["main"]


N, M = tir.Var("n", "int64"), tir.Var("m", "int64")


@pytest.mark.parametrize("build, first, second, fits, misfits, expected", [
    (lambda a, b: op.einsum([a, b], "i,i->i"), (N,), (M,), [(3,), (3,)], [(3,), (1,)],
     lambda a, b: a * b),
    (lambda a, b: op.einsum([a, b], "i,i->i"), (N,), (3,), [(3,), (3,)], [(1,), (3,)],
     lambda a, b: a * b),
    (op.matmul, (2, N), (M, 2), [(2, 3), (3, 2)], [(2, 3), (2, 2)], lambda a, b: a @ b),
    (lambda a, b: op.concat([a, b], 0), (2, N), (2, M), [(2, 3), (2, 3)], [(2, 3), (2, 2)],
     lambda a, b: np.concatenate([a, b])),
    (lambda a, b: op.stack([a, b], 0), (N,), (M,), [(3,), (3,)], [(3,), (4,)],
     lambda a, b: np.stack([a, b])),
    (op.nn.prelu, (2, N), (M,), [(2, 3), (3,)], [(2, 3), (1,)],
     lambda a, b: np.where(a > 0, a, a * b)),
])
def test_sizes_that_must_agree_are_compared_when_the_program_runs(build, first, second, fits,
                                                                  misfits, expected):
    main = _machine(build, (first, "float32"), (second, "float32"))
    good, bad = ([array(*shape) for shape in shapes] for shapes in (fits, misfits))
    np.testing.assert_allclose(main(*good).numpy(), expected(*good), rtol=1e-5)
    with pytest.raises(ValueError, match="dimension . is . and has to be ."):
        main(*bad)


@pytest.mark.parametrize("build", [
    lambda x: op.nn.max_pool1d(x, 3), lambda x: op.nn.avg_pool1d(x, 3),
    lambda x: op.nn.conv1d(x, relax.const(np.ones((1, 2, 3), "float32")))])
def test_a_window_that_does_not_fit_is_refused_when_the_program_runs(build):
    main = _machine(build, ((M, 2, N), "float32"))
    assert main(array(1, 2, 3)).shape[2] == 1
    assert main(array(0, 2, 3)).shape[0] == 0
    for size in (1, 2):
        with pytest.raises(ValueError, match="has to be 1"):
            main(array(1, 2, size))


def test_a_target_that_is_no_class_is_refused_when_the_program_runs():
    main = _machine(op.nn.nll_loss, ((3, 4), "float32"), ((3,), "int64"))
    x = array(3, 4)
    good = np.array([3, 0, -100])
    np.testing.assert_allclose(main(x, good).numpy(), -(x[0, 3] + x[1, 0]) / 2, rtol=1e-5)
    for bad in ([0, 4, 1], [0, 1, -1]):
        with pytest.raises(ValueError, match="is no class: there are the classes 0 to 3"):
            main(x, np.array(bad))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_indices_of_few_bits_reach_every_place(dtype):
    """The extent is no number of the type of the indices; negative ones count from the end."""
    x = array(300)
    i = np.array([0, 5, 127] + [-1, -128] * (dtype[0] == "i")).astype(dtype)
    for build in (lambda x, i: op.take(x, i, 0), op.gather_elements,
                  lambda x, i: op.index_tensor(x, [i])):
        np.testing.assert_array_equal(
            _machine(build, ((300,), "float32"), (i.shape, dtype))(x, i).numpy(), x[i])
    put = _machine(lambda x, i, v: op.index_put(x, [i], v), ((300,), "float32"), (i.shape, dtype),
                   (i.shape, "float32"))
    want = x.copy()
    want[i] = 7
    np.testing.assert_array_equal(put(x, i, np.full(i.shape, 7, "float32")).numpy(), want)


def test_attention_of_a_head_size_that_only_the_run_knows():
    d = tir.Var("d", "int64")
    infos = [((1, 3, 1, d), "float32")] * 3
    q, k, v = (array(1, 3, 1, 4) for _ in range(3))
    scores = np.exp(q[0, :, 0] @ k[0, :, 0].T / 2)
    want = scores / scores.sum(1, keepdims=True) @ v[0, :, 0]
    np.testing.assert_allclose(_machine(op.nn.attention, *infos)(q, k, v).numpy()[0, :, 0], want,
                               rtol=1e-4)


def test_the_place_of_the_largest_of_one_number_is_0():
    assert _machine(op.argmax, ((), "float32"))(np.array(3, "float32")).numpy() == 0


def test_one_grid_is_a_tuple_too():
    (grid,) = _machine(lambda x: op.meshgrid([x]), ((3,), "float32"))(array(3))
    assert grid.shape == (3,)


def test_no_repeats_give_no_elements():
    assert _machine(lambda x: op.repeat(x, 0, 0), ((3, 2), "float32"))(array(3, 2)).shape == (0, 2)
