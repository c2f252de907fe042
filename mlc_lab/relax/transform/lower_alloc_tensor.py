"""LowerAllocTensor: a tensor that the plan left alone gets storage of its own.

before::

    @R.function(pure=False)
    def main() -> R.Tensor((8,), "float32"):
        a = R.builtin.alloc_tensor(R.shape([8]), R.dtype("float32"), R.prim_value(0))
        return a

after `LowerAllocTensor()`::

    @R.function(pure=False)
    def main() -> R.Tensor((8,), "float32"):
        storage = R.memory.alloc_storage(
            R.shape([32]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
        a = R.memory.alloc_tensor(
            storage, R.prim_value(0), R.shape([8]), R.dtype("float32"), R.prim_value(0))
        return a
"""

from __future__ import annotations

from ...ir.module import IRModule
from ...ir.transform import Pass
from ..expr import Binding, Function, Var, VarBinding
from ..op import memory
from ..struct_info import OBJECT
from .lowering import byte_size, expand_bindings
from .rewriting import is_call_of, make_function_pass


def _lower(binding: Binding) -> list[Binding]:
    call = binding.value
    if not is_call_of(call, "relax.builtin.alloc_tensor"):
        return [binding]
    shape, dtype = call.args[:2]
    storage = Var("storage", OBJECT)
    size = byte_size(shape, dtype.value)
    return [VarBinding(storage, memory.alloc_storage([size], 0, "global", "uint8")),
            VarBinding(binding.var, memory.alloc_tensor(storage, 0, shape, dtype, 0))]


def _rewrite(func: Function, mod: IRModule) -> Function:
    return expand_bindings(func, _lower)


def LowerAllocTensor() -> Pass:
    """A tensor that the plan left alone gets storage of its own.

    The file's text has an example.
    """
    return make_function_pass("LowerAllocTensor", _rewrite, __doc__)
