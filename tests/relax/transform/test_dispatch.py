"""DispatchSortScan and DispatchSampling."""

from __future__ import annotations

import numpy as np
import pytest

import mlc_lab.compat

mlc_lab.compat.install()

import tvm
from tvm import relax
from tvm.relax.backend import DispatchSampling, DispatchSortScan


def module(make, *arrays):
    bb = relax.BlockBuilder()
    params = [relax.Var(f"x{i}", relax.TensorStructInfo(a.shape, str(a.dtype)))
              for i, a in enumerate(arrays)]
    with bb.function("main", params):
        with bb.dataflow():
            first = bb.emit(make(*params))
            out = bb.emit_output(relax.op.add(first, first))
        bb.emit_func_output(out)
    return bb.get()


def operators(mod):
    return [b.value.op.name for block in mod["main"].body.blocks for b in block.bindings]


X = np.random.default_rng(0).normal(size=(3, 8)).astype("float32")
P, U = np.array([[0.2, 0.3, 0.5]] * 2, "float32"), np.array([[0.1], [0.6]], "float32")
ROWS = np.array([[0], [1]], "int64")


@pytest.mark.parametrize("make_pass, make, arrays, expected", [
    (DispatchSortScan, lambda x: relax.op.sort(x, axis=-1), [X], np.sort(X, -1)),
    (DispatchSortScan, lambda x: relax.op.argsort(x, axis=-1), [X], np.argsort(X, -1)),
    (DispatchSortScan, lambda x: relax.op.cumsum(x, axis=1), [X], np.cumsum(X, 1)),
    (DispatchSampling, relax.op.multinomial_from_uniform, [P, U, ROWS], np.array([[0], [2]]))])
def test_these_operators_alone(make_pass, make, arrays, expected):
    mod = module(make, *arrays)
    new = make_pass()(mod)
    assert operators(new) == ["relax.call_tir", "relax.add"]
    other = DispatchSampling if make_pass is DispatchSortScan else DispatchSortScan
    assert operators(other()(mod)) == operators(mod)
    vm = relax.VirtualMachine(relax.build(new, "llvm"), tvm.cpu())
    np.testing.assert_allclose(vm["main"](*map(tvm.nd.array, arrays)).numpy(), 2 * expected,
                               rtol=1e-5)
