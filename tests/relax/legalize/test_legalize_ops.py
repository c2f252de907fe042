"""What LegalizeOps does to a module: replaced rows, symbolic shapes, what it leaves."""

import logging

import numpy as np
import pytest
from relax.evaluate import check, module_of
from topi.running import array

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
    (lambda x: op.split(x, 2, 0), lambda x: [x[:3], x[3:]]),
    (lambda x: op.full(x.struct_info.shape, 2.0), lambda x: x * 0 + 2),
    (lambda x: op.arange(x.struct_info.dims[0]), lambda x: np.arange(len(x))),
    (lambda x: op.broadcast_to(op.expand_dims(x, 0), (2, *x.struct_info.dims)),
     lambda x: np.stack([x, x])),
])
def test_symbolic_sizes(build, expected):
    n = tir.Var("n", "int64")
    x = array(5, 4)
    check(build, [x], expected(x), [relax.TensorStructInfo((n, 4), "float32")])
