"""LowerRuntimeBuiltin: what the virtual machine does itself becomes calls of its functions.

before::

    @R.function(pure=False)
    def main(x: R.Tensor(ndim=2)) -> R.Shape(ndim=2):
        s = R.shape_of(x)
        R.memory.kill_tensor(x)
        return s

after `LowerRuntimeBuiltin()`::

    @R.function(pure=False)
    def main(x: R.Tensor(ndim=2)) -> R.Shape(ndim=2):
        s = R.call_packed("vm.builtin.shape_of", x, sinfo_args=(R.Shape(ndim=2),))
        R.vm.kill_object(x)
        return s
"""

from __future__ import annotations

from typing import Any



from ...ir.module import IRModule
from ...ir.transform import Pass
from ..expr import Call, Expr, ExternFunc, Function, ShapeExpr
from ..op import vm
from .lowering import flat_items, map_bindings
from .rewriting import make_function_pass, op_name

#: operator -> the machine's function that does it, with the same arguments
BUILTINS = {
    "relax.shape_of": "vm.builtin.shape_of",
    "relax.tensor_to_shape": "vm.builtin.tensor_to_shape",
    "relax.shape_to_tensor": "relax.run.shape_to_tensor",
    "relax.null_value": "vm.builtin.null_value",
    "relax.print": "relax.run.print",
    "relax.assert_op": "relax.run.assert_op",
    "relax.memory.view": "runtime.TVMTensorCreateView",
    "relax.memory.ensure_zero_offset": "vm.builtin.ensure_zero_offset",
    "relax.to_vdevice": "vm.builtin.to_device",
    "relax.hint_on_device": "vm.builtin.to_device",
    "relax.builtin.stop_lift_params": "vm.builtin.copy",
}


def _extern(name: str, args: Any, call: Call) -> Call:
    return Call.from_fields(ExternFunc(name), tuple(args), None, (call.struct_info_,),
                            call.struct_info_)


def _lower(call: Expr) -> Expr:
    name = op_name(call)
    if not isinstance(call, Call):
        return call
    if name in BUILTINS:
        return _extern(BUILTINS[name], call.args, call)
    if name == "relax.memory.alloc_storage":
        size, device, scope, dtype = call.args
        return vm.alloc_storage(size, device, "uint8" if dtype is None else dtype, scope)
    if name == "relax.memory.alloc_tensor":
        return vm.alloc_tensor(*call.args)
    if name in ("relax.memory.kill_storage", "relax.memory.kill_tensor"):
        return vm.kill_object(call.args[0])
    if name == "relax.reshape":
        return _extern("vm.builtin.reshape", call.args, call)
    if name in ("relax.flatten", "relax.expand_dims", "relax.squeeze"):
        return _extern("vm.builtin.reshape", (call.args[0], _shape_of(call)), call)
    if name == "relax.make_closure":
        return _extern("vm.builtin.make_closure", (call.args[0], *flat_items(call.args[1])), call)
    if name == "relax.invoke_closure":
        return _extern("vm.builtin.invoke_closure",
                       (call.args[0], *flat_items(call.args[1])), call)
    return call


def _shape_of(call: Call) -> ShapeExpr:
    shape = getattr(call.struct_info_, "shape", None)
    if type(shape) is not ShapeExpr:
        raise ValueError(f"{op_name(call)}: the shape of the result must be known to make a view; "
                         "say it with R.match_cast, or the axes of R.squeeze with axis=")
    return shape


def _rewrite(func: Function, mod: IRModule) -> Function:
    return map_bindings(func, _lower)


def LowerRuntimeBuiltin() -> Pass:
    """What the virtual machine does itself becomes calls of its functions.

    The file's text has an example.
    """
    return make_function_pass("LowerRuntimeBuiltin", _rewrite, __doc__)
