"""`relax.testing.vm`: functions of the registry that programs of tests call ("test.vm.add"), and a
check of functions that were saved."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

import mlc_lab as tvm
from mlc_lab.relax import VirtualMachine
from mlc_lab.runtime import NDArray

from ..arrays import assert_allclose


def _of_arrays(name: str, compute: Callable[..., Any]) -> None:
    """Register what a function of numpy arrays gives."""
    def packed(*args: NDArray) -> NDArray:
        return tvm.nd.array(np.asarray(compute(*(a.numpy() for a in args))))

    tvm.register_func(f"test.vm.{name}", packed, override=True)


def _into_last(name: str, compute: Callable[..., Any]) -> None:
    """Register a function that fills its last argument."""
    def packed(*args: NDArray) -> None:
        *given, out = args
        out.copyfrom(np.asarray(compute(*(a.numpy() for a in given))))

    tvm.register_func(f"test.vm.{name}", packed, override=True)


_of_arrays("add", np.add)
_of_arrays("mul", np.multiply)
_of_arrays("equal_zero", lambda a: np.all(a == 0))
_of_arrays("subtract_one", lambda a: a - a.dtype.type(1))
_into_last("identity", lambda a: a)
_into_last("tile", lambda a: np.tile(a, (1, 2)))
tvm.register_func("test.vm.move", lambda x: x, override=True)
tvm.register_func("test.vm.add_scalar", lambda a, b: a + b, override=True)
tvm.register_func("test.vm.get_device_id", lambda device: device.device_id, override=True)
tvm.register_func("test.vm.check_if_defined", lambda x: x is not None, override=True)


def check_saved_func(vm: VirtualMachine, func_name: str, *inputs: object) -> Any:
    """What a function of the machine gives, after a look that it gives the same when it was saved
    with its arguments."""
    saved = f"{func_name}_saved"
    vm.save_function(func_name, saved, *inputs)
    out = vm[func_name](*inputs)
    assert_allclose(out.numpy(), vm[saved]().numpy(), rtol=1e-7, atol=1e-7)
    return out


__all__ = ["check_saved_func"]
