"""Kernels replaced by others of other layouts: values are transformed, and back."""

import numpy as np
import pytest

from mlc_lab import relax
from mlc_lab.relax import transform as X
from mlc_lab.script import from_source

from .run import Run, same_results

SOURCE = """
from mlc_lab.script import ir as I, tir as T, relax as R

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def twice(x: T.Buffer((T.int64(8),), "float32"), y: T.Buffer((T.int64(8),), "float32")):
        T.func_attr({"operator_name": "twice"})
        for i in range(T.int64(8)):
            with T.block("y"):
                vi = T.axis.spatial(T.int64(8), i)
                y[vi] = x[vi] * T.float32(2.0)

    @T.prim_func(private=True)
    def tiled(x: T.Buffer((T.int64(2), T.int64(4)), "float32"),
              y: T.Buffer((T.int64(2), T.int64(4)), "float32")):
        for i, j in T.grid(T.int64(2), T.int64(4)):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(2.0)

    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.twice, (x,), out_sinfo=R.Tensor((8,), "float32"))
            b = R.call_tir(cls.twice, (a,), out_sinfo=R.Tensor((8,), "float32"))
            R.output(b)
        return b
"""


def tile(i):
    return i // 4, i % 4


def names(mod):
    return [b.value.op.name for block in mod["main"].body.blocks for b in block.bindings]


def test_values_are_transformed_once_in_and_once_out():
    mod = from_source(SOURCE)
    x = np.arange(8, dtype="float32")
    new = X.AlterOpImpl({"twice": mod["tiled"]}, {"twice": [tile, tile]})(mod)
    assert names(new) == ["relax.layout_transform", "relax.call_tir", "relax.call_tir",
                          "relax.layout_transform"]
    assert relax.analysis.well_formed(new)
    same_results(Run(X.LegalizeOps()(new))(x), x * 4)


def test_the_number_of_transforms_is_checked():
    mod = from_source(SOURCE)
    with pytest.raises(ValueError, match=r"'twice' has 1 input\(s\) and 1 output\(s\), 1"):
        X.AlterOpImpl({"twice": mod["tiled"]}, {"twice": [tile]})(mod)
    assert X.AlterOpImpl({"other": mod["tiled"]})(mod) is mod


def test_what_does_not_fit_the_new_kernel_is_refused():
    mod = from_source(SOURCE)
    for maps in ([None, tile], [tile, None], None):
        with pytest.raises(ValueError, match="shape.*give buffer . a transform"):
            X.AlterOpImpl({"twice": mod["tiled"]}, maps and {"twice": maps})(mod)
    assert X.AlterOpImpl({"twice": mod["tiled"]}, {"twice": [tile, tile]}, {"twice": [[], []]}, {})
    with pytest.raises(ValueError, match="leave them out"):
        X.AlterOpImpl({"twice": mod["tiled"]}, {"twice": [tile, tile]}, {"twice": [[], [1]]})
