"""Operators of Relax of 2022 by the names they had."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import mlc_lab.compat
from mlc_lab.ir import assert_structural_equal
from mlc_lab.script import from_source

mlc_lab.compat.install()

import tvm
from tvm import relax
from tvm.script import relax as R

A = np.random.default_rng(0).normal(size=(2, 3, 4, 4)).astype("float32")
M = np.random.default_rng(1).uniform(0.1, 1, size=(4, 4)).astype("float32")
V = np.random.default_rng(2).uniform(0.1, 1, size=(4, 4)).astype("float32")


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


#: name of the operator then -> (its arguments, what the constructor takes beside, the result)
CALLS = {
    "relax.transpose": ([A], {"axes": [0, 2, 3, 1]}, A.transpose(0, 2, 3, 1)),
    "relax.concatenate": ([(M, V)], {"axis": 1}, np.concatenate([M, V], 1)),
    "relax.cast": ([M], {"dtype": "float64"}, M.astype("float64")),
    "relax.trilu": ([M], {"k": 1, "is_upper": False}, np.tril(M, 1)),
    "relax.nn.dense": ([M, V], {}, M @ V.T),
    "relax.nn.matmul": ([M, V], {}, M @ V),
    "relax.nn.flatten": ([A], {}, A.reshape(2, 48)),
    "relax.nn.sigmoid": ([M], {}, 1 / (1 + np.exp(-M))),
    "relax.nn.cross_entropy": ([M, V], {}, -(V * np.log(M)).sum()),
    "relax.nn.softmax_cross_entropy": ([M, V], {}, -(V * np.log(softmax(M))).sum()),
    "relax.nn.adaptive_max_pool2d": ([A], {"output_size": [2, 2]},
                                     A.reshape(2, 3, 2, 2, 2, 2).max((3, 5))),
}
#: what the operator itself gives where a call of it says no attributes
PLAIN = {
    "relax.transpose": A.transpose(3, 2, 1, 0), "relax.concatenate": np.concatenate([M, V]),
    "relax.trilu": np.triu(M), "relax.nn.adaptive_max_pool2d": A,
}


def built(args, make):
    """A module with one function of arrays (or of a tuple of them), and its arguments."""
    bb = relax.BlockBuilder()
    flat = [a for arg in args for a in (arg if isinstance(arg, tuple) else (arg,))]
    params = [relax.Var(f"x{i}", a.shape, relax.DynTensorType(a.ndim, "float32"))
              for i, a in enumerate(flat)]
    rest = iter(params)
    given = [relax.Tuple([next(rest) for _ in arg]) if isinstance(arg, tuple) else next(rest)
             for arg in args]
    with bb.function("main", params):
        with bb.dataflow():
            gv = bb.emit_output(make(*given))
        bb.emit_func_output(gv)
    return bb.get(), [tvm.nd.array(a) for a in flat]


def ran(mod, arrays):
    vm = relax.VirtualMachine(relax.vm.build(mod, "llvm"), tvm.cpu())
    return vm["main"](*arrays).numpy()


@pytest.mark.parametrize("name", CALLS)
def test_a_constructor_of_that_year(name):
    args, options, expected = CALLS[name]
    space = relax.op.nn if ".nn." in name else relax.op
    constructor = getattr(space, name.rpartition(".")[2])
    mod, arrays = built(args, lambda *given: constructor(*given, **options))
    out = ran(mod, arrays)
    assert out.dtype == expected.dtype
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
    assert_structural_equal(from_source(mod.script()), mod)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "relax.cast"])
def test_a_call_of_the_operator_itself(name):
    op = tvm.ir.Op.get(name)
    args, _, expected = CALLS[name]
    mod, arrays = built(args, lambda *given: relax.Call(op, list(given)))
    np.testing.assert_allclose(ran(mod, arrays), PLAIN.get(name, expected), rtol=1e-5, atol=1e-5)


def test_an_operator_that_is_called_otherwise_now_is_that_operator():
    assert tvm.ir.Op.get("relax.nn.matmul") is tvm.ir.Op.get("relax.matmul")
    assert tvm.ir.Op.get("relax.cast") == tvm.ir.Op.get("relax.astype")
    with pytest.raises(ValueError, match="relax.nn.loom"):
        tvm.ir.Op.get("relax.nn.loom")
    x = relax.Var("x", relax.TensorStructInfo((2, 3), "float32"))
    with pytest.raises(ValueError, match="the call has no attributes, and takes dtype"):
        relax.BlockBuilder().normalize(relax.Call(tvm.ir.Op.get("relax.cast"), [x]))


def test_in_a_function_of_that_year():
    @tvm.script.ir_module
    class Model:
        @R.function
        def main(x: Tensor((2, 3, 4), "float32"), w: Tensor((3, 12), "float32")) -> Tensor:
            with relax.dataflow():
                a = relax.nn.flatten(x)
                b = relax.nn.matmul(a, relax.transpose(w))
                c = relax.concatenate((b, b), axis=1)
                d = relax.cast(c, "float64")
                relax.output(d)
            return d

    x, w = A[:, :, 0].copy(), np.arange(36, dtype="float32").reshape(3, 12)
    b = x.reshape(2, 12) @ w.T
    np.testing.assert_allclose(ran(Model, [tvm.nd.array(x), tvm.nd.array(w)]),
                               np.concatenate([b, b], 1), rtol=1e-4, atol=1e-4)
    assert "R.matmul" in Model.script()


@pytest.mark.parametrize("line", [
    "relax.op.nn.dense", "relax.op.transpose", "relax.op.nn.adaptive_max_pool2d",
    "R.trilu", "R.nn.matmul", "relax.op.cast", "tvm.ir.Op.get('relax.nn.flatten')"])
def test_each_is_there_whatever_was_asked_for_before(line):
    code = ("import mlc_lab.compat; mlc_lab.compat.install(); import tvm; from tvm import relax\n"
            f"from tvm.script import relax as R\nassert {line} is not None")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
