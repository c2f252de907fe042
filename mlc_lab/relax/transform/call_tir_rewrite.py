"""CallTIRRewrite: outputs are allocated, and functions called to fill them.

before::

    @T.prim_func(private=True)
    def twice(x: T.Buffer((4, 2), "float32"), y: T.Buffer((4, 2), "float32")):
        for i, j in T.grid(4, 2):
            y[i, j] = x[i, j] + x[i, j]

    @R.function(pure=False)
    def main(x: R.Tensor((4, 2), "float32")) -> R.Tensor((4, 2), "float32"):
        cls = Module
        y = R.call_tir(cls.twice, (x,), out_sinfo=R.Tensor((4, 2), "float32"))
        return y

after `CallTIRRewrite()`::

    @T.prim_func(private=True)
    def twice(x: T.Buffer((4, 2), "float32"), y: T.Buffer((4, 2), "float32")):
        for i, j in T.grid(4, 2):
            y[i, j] = x[i, j] + x[i, j]

    @R.function(pure=False)
    def main(x: R.Tensor((4, 2), "float32")) -> R.Tensor((4, 2), "float32"):
        cls = Module
        alloc = R.builtin.alloc_tensor(R.shape([4, 2]), R.dtype("float32"), R.prim_value(0))
        cls.twice(x, alloc)
        y = alloc
        return y

An output that takes the place of an argument (`call_tir_inplace`) is that argument. Functions that
take scalars after their tensors are called through `R.vm.call_tir_dyn`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ir.diagnostics import WellFormedError
from ...ir.module import IRModule
from ...ir.transform import Pass
from ..expr import Binding, Constant, Function, Tuple, TupleGetItem, Var, VarBinding
from ..op import builtin
from ..op.vm import call_tir_dyn
from ..struct_info import ShapeExpr
from .lowering import expand_bindings, flat_items, for_effect, tensors_of, void_call
from .rewriting import (
    CALL_DPS_PACKED, CALL_TIR, CALL_TIR_INPLACE, is_call_of, make_function_pass, op_name,
)

if TYPE_CHECKING:
    from ..expr import Call, Expr


class _Rewrite:
    """Rewrites the bindings of one function."""

    def __init__(self) -> None:
        #: variables that are constants by another name
        self.constants: set[Var] = set()

    def binding(self, binding: Binding) -> list[Binding]:
        """A binding of a destination-passing call, taken apart."""
        call = binding.value
        if type(binding) is VarBinding and self.is_constant(call):
            self.constants.add(binding.var)
        if type(binding) is not VarBinding or not is_call_of(
                call, CALL_TIR, CALL_TIR_INPLACE, CALL_DPS_PACKED):
            return [binding]
        out: list[Binding] = []
        args = []
        for item in flat_items(call.args[1]):
            if type(item) is TupleGetItem:
                var = Var("item", item.struct_info_)
                out.append(VarBinding(var, item))
                item = var
            args.append(item)
        places = call.attrs.inplace_indices if op_name(call) == CALL_TIR_INPLACE else ()
        info = call.sinfo_args[0] if len(call.sinfo_args) == 1 else call.struct_info
        made = []
        for k, tensor in enumerate(tensors_of(info)):
            if k < len(places) and places[k] >= 0:
                if self.is_constant(args[places[k]]):
                    raise WellFormedError(
                        f"call_tir_inplace of {_callee(call)} would write into a constant, and "
                        f"change what later calls compute: argument {places[k]} must be a tensor "
                        "that is computed, such as R.add(constant, zeros), or use call_tir",
                        "constant_in_place", call)
                made.append(args[places[k]])
                continue
            var = Var("alloc", tensor)
            if not isinstance(tensor.shape, ShapeExpr):
                raise ValueError(f"{_callee(call)}: the shape of its output {tensor} is not "
                                 "written out, so it cannot be allocated")
            out.append(VarBinding(var, builtin.alloc_tensor(tensor.shape, tensor.dtype, 0)))
            made.append(var)
        written = [v for k, v in enumerate(made) if not (k < len(places) and places[k] >= 0)]
        callee, *rest = call.args[0], *call.args[2:]
        out.append(for_effect(call_tir_dyn(callee, [*args, *written, *rest]) if rest else
                              void_call(callee, [*args, *written])))
        value: Any = made[0] if len(made) == 1 and not _is_tuple(call) else Tuple(made)
        out.append(VarBinding(binding.var, value))
        return out


    def is_constant(self, value: Expr) -> bool:
        """Whether a value is the memory of a constant, as far as its names tell."""
        return type(value) is Constant or isinstance(value, Var) and value in self.constants


def _callee(call: Call) -> str:
    return getattr(call.args[0], "name_hint", None) or getattr(call.args[0], "global_symbol", "?")


def _is_tuple(call: Call) -> bool:
    return type(call.struct_info_).__name__ == "TupleStructInfo"


def _rewrite(func: Function, mod: IRModule) -> Function:
    return expand_bindings(func, _Rewrite().binding)


def CallTIRRewrite() -> Pass:
    """Outputs are allocated, and functions called to fill them.

    The file's text has an example.
    """
    return make_function_pass("CallTIRRewrite", _rewrite, __doc__)
