"""Scalars that are computed of the sizes of tensors, as values and as conditions."""

import numpy as np
import pytest

from mlc_lab import cpu, nd, relax
from mlc_lab.ir import IRModule
from mlc_lab.script import from_source


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
@pytest.mark.parametrize("value, want", [
    ("T.Cast('float32', n) * T.float32(0.5)", 3.5), ("n % 16", 7), ("n < 8", True),
])
def test_scalars_computed_of_sizes(mode, value, want):
    func = from_source(f"""
@R.function
def main(x: R.Tensor(("n",), "int64")):
    n = T.int64()
    out = R.prim_value({value})
    return out
""")
    vm = relax.VirtualMachine(relax.build(IRModule({"main": func}), "llvm", exec_mode=mode), cpu())
    assert vm["main"](nd.array(np.arange(7))) == want


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_a_condition_computed_of_sizes(mode):
    func = from_source("""
@R.function
def main(x: R.Tensor(("n",), "int64")):
    n = T.int64()
    if R.prim_value(n % 16 == 0):
        out = R.prim_value(5)
    else:
        out = R.prim_value(10)
    return out
""")
    vm = relax.VirtualMachine(relax.build(IRModule({"main": func}), "llvm", exec_mode=mode), cpu())
    assert [vm["main"](nd.array(np.arange(k))) for k in (16, 20, 32)] == [5, 10, 5]
