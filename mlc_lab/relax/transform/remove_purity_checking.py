"""RemovePurityChecking: calls say no more that they have no effects.

before::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.call_pure_packed("f", x, sinfo_args=(R.Tensor((4,), "float32"),))
        return y

after `RemovePurityChecking()`::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"relax.force_pure": True})
        y = R.call_packed("f", x, sinfo_args=(R.Tensor((4,), "float32"),))
        return y

Passes below fill memory in place; the attribute `relax.force_pure` on the function says that it
has no effects all the same, seen from outside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ir.module import IRModule
from ...ir.transform import Pass
from ..expr import Call, Function
from .lowering import map_bindings
from .rewriting import make_function_pass, op_name

if TYPE_CHECKING:
    from ..expr import Expr


def _plain_call(call: Expr) -> Any:
    name = op_name(call)
    if not isinstance(call, Call):
        return call
    if name in ("relax.call_pure_packed", "relax.call_inplace_packed"):
        return Call.from_fields(call.args[0], call.args[1:], None, call.sinfo_args,
                                call.struct_info_)
    if name == "relax.invoke_pure_closure":
        return Call("relax.invoke_closure", call.args, call.attrs, call.sinfo_args,
                    struct_info=call.struct_info_)
    return call


def _rewrite(func: Function, mod: IRModule) -> Function:
    new = map_bindings(func, _plain_call)
    return new.with_attr("relax.force_pure", True) if func.is_pure else new


def RemovePurityChecking() -> Pass:
    """Calls say no more that they have no effects.

    The file's text has an example.
    """
    return make_function_pass("RemovePurityChecking", _rewrite, __doc__)
