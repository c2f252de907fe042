"""Binding parameters: what is refused, and what is known afterwards."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.relax.transform import BindParams, BindSymbolicVars, BundleModelParams
from mlc_lab.script import from_source

TEXT = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        y = R.exp(x)
        return y
"""


@pytest.mark.parametrize("step,says", [
    (lambda: BindSymbolicVars({"m": 3}), "no function has the symbolic"),
    (lambda: BindSymbolicVars({"m": 3}, "main"), "no symbolic dimension"),
    (lambda: BindParams("main", {"z": tvm.nd.empty((2, 4))}), "no parameter 'z'"),
    (lambda: BindParams("main", {"x": tvm.nd.empty((2, 5))}), "parameter 'x' has struct info"),
])
def test_refusals(step, says):
    mod = from_source(TEXT)
    for kind in (tvm.TVMError, ValueError):
        with pytest.raises(kind, match=says):
            step()(mod)


@pytest.mark.parametrize("known", ['ndim=1, dtype="float32"', 'dtype="float32"', '("n",)',
                                   "ndim=-1"])
def test_what_is_known_of_a_value_is_known_of_all_that_is_computed_of_it(known):
    text = f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor({known}), s: R.Shape(ndim=1)):
        y: R.Tensor({known.replace('"n"', 'n')}) = x
        z = R.add(y, y)
        t: R.Shape(ndim=1) = s
        return (z, t)
"""
    if "n" in known and "ndim" not in known:
        text = text.replace("        y:", "        n = T.int64()\n        y:", 1)
    func = from_source(text)["main"]
    after = func.bind_params({"x": np.ones(16, "float32"), "s": relax.ShapeExpr([16])})
    assert after.params == ()
    assert after.ret_struct_info == relax.TupleStructInfo(
        [relax.TensorStructInfo((16,), "float32"), relax.ShapeStructInfo((16,))])


def test_a_bundled_weight_that_is_given_back_as_it_is():
    mod = from_source("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")):
        R.func_attr({"num_input": 1})
        y = R.add(x, w)
        return (y, w)
""")
    mod = BundleModelParams()(mod)
    assert_structural_equal(from_source(mod.script()), mod)
