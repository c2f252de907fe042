"""Scalars that are known when the program runs are parameters of its kernels."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.script import from_source

TEXT = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 4), "float32"), y: R.Prim("float32")):
        z = R.add(x, y)
        w = R.multiply(y, R.exp(z))
        return w
"""


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_a_scalar_of_the_program_is_an_operand(mode):
    mod = from_source(TEXT)
    kernel = relax.transform.LegalizeOps()(mod)["multiply"]
    assert [p.dtype for p in kernel.params] == ["float32", "handle", "handle"]
    vm = relax.VirtualMachine(relax.build(mod, "llvm", exec_mode=mode), tvm.cpu())
    x = np.arange(12, dtype="float32").reshape(3, 4) / 12
    for y in (0.5, 2.5):
        np.testing.assert_allclose(vm["main"](tvm.nd.array(x), y).numpy(), y * np.exp(x + y),
                                   rtol=1e-5)


def test_a_function_may_say_that_a_name_is_of_the_function_around_it():
    text = TEXT.replace("        z = R", "        nonlocal dtype\n        z = R")
    assert from_source(text)["main"].script() == from_source(TEXT)["main"].script()
