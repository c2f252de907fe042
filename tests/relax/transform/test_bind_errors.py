"""What cannot be bound is refused with an error that is TVM's and Python's."""

import pytest

import mlc_lab as tvm
from mlc_lab.relax.transform import BindParams, BindSymbolicVars
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
