"""Kernels and functions of one's own in a model of `nn`: tensor expressions, TensorIR, registered
functions, and what is called only to look at a model while it runs."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ....above import above
from .... import tir
from ....tir import PrimFunc
from ... import op as R
from ...expr import PrimValue, ShapeExpr, StringImm
from ...struct_info import ObjectStructInfo
from .tensor import Object, Tensor, builder, emit, unwrap, wrap_nested

if TYPE_CHECKING:
    from types import FrameType


def tensor_expr_op(tensor_expr_func: Callable, name_hint: str, args: Sequence[Any], *,
                   attrs: dict[str, Any] | None = None) -> Any:
    """A kernel made of a tensor expression: `tensor_expr_func(*te_tensors)`."""
    more = {} if attrs is None else {"primfunc_attrs": attrs}
    call = builder().call_te(tensor_expr_func, *unwrap(list(args)),
                             primfunc_name_hint=name_hint, **more)
    return wrap_nested(emit(call, ""), name_hint)


def _flat(args: Any, out: Any) -> tuple[list[Any], list[Any], bool]:
    """(tensors, numbers, whether there is one result) of the arguments of a kernel."""
    tensors, numbers = [], []
    for arg in args if isinstance(args, (tuple, list)) else [args]:
        if isinstance(arg, Tensor):
            if numbers:
                raise TypeError("the tensors of a TensorIR function come before its numbers")
            tensors.append(unwrap(arg))
        elif isinstance(arg, (int, tir.PrimExpr)):
            numbers.append(arg)
        else:
            raise TypeError(f"an argument is a tensor or a whole number, not {arg!r}")
    return tensors, numbers, isinstance(out, Tensor)


def tensor_ir_op(func: PrimFunc, name_hint: str, args: Any, out: Any) -> Any:
    """A call of a TensorIR function; `out` is a placeholder of the result, or several."""
    var = builder().add_func(func, name_hint) if isinstance(func, PrimFunc) else func
    tensors, numbers, single = _flat(args, out)
    infos = out._expr.struct_info if single else [o._expr.struct_info for o in out]
    more = {"tir_vars": ShapeExpr(numbers)} if numbers else {}
    return wrap_nested(emit(R.call_tir(var, tensors, infos, **more), name_hint), name_hint)


def tensor_ir_inplace_op(func: PrimFunc, name_hint: str, args: Any, inplace_indices: Any,
                         out: Any) -> Any:
    """`tensor_ir_op` whose results lie in some of its arguments (-1: in new memory)."""
    var = builder().add_func(func, name_hint) if isinstance(func, PrimFunc) else func
    tensors, numbers, single = _flat(args, out)
    indices = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    infos = out._expr.struct_info if single else [o._expr.struct_info for o in out]
    more = {"tir_vars": ShapeExpr(numbers)} if numbers else {}
    return wrap_nested(emit(R.call_tir_inplace(var, tensors, indices, infos, **more), name_hint),
                   name_hint)


def extern(name: str, args: Sequence[Any], out: Any) -> Any:
    """A call of a function of that name, which writes into the memory of its results: a registered
    one, or one of a C library."""
    infos = (out._expr.struct_info if isinstance(out, Tensor)
             else [o._expr.struct_info for o in out])
    values = []
    for arg in args:
        if isinstance(arg, (bool, int, float, tir.PrimExpr)):
            values.append(PrimValue(arg))
        elif isinstance(arg, str):
            values.append(StringImm(arg))
        else:
            values.append(unwrap(arg))
    return wrap_nested(emit(R.call_dps_packed(name, values, infos), name), name)


def debug_func(name: str, *args: object, _line_info: str | None = None) -> None:
    """Call a registered function, `func(line, *args)`, when the model runs.

    It takes part in what is exported with `debug=True`; raises RuntimeError without.
    """
    io = above("exporter of nn").current().io_effect
    if io is None:
        raise RuntimeError("nn.op.print_ and debug_func need an effect in every function: export "
                           "the module with export_tvm(spec, debug=True)")
    if _line_info is None:
        _line_info = _place_of(inspect.currentframe())
    values = []
    for arg in args:
        if isinstance(arg, (Tensor, Object)):
            values.append(unwrap(arg))
        elif isinstance(arg, str):
            values.append(StringImm(arg))
        elif isinstance(arg, (int, float, tir.PrimExpr)):
            values.append(PrimValue(arg))
        else:
            raise TypeError(f"debug_func: {arg!r} is no tensor, number or string")
    io.effect = emit(
        R.call_pure_packed("vm.builtin.invoke_debug_func", io.effect, StringImm(name),
                           StringImm(_line_info), *values, sinfo_args=ObjectStructInfo()),
        io.effect.name_hint)


def print_(tensor: Tensor) -> None:
    """Print a tensor when the model runs; see `debug_func`."""
    debug_func("vm.builtin.debug_print", tensor, _line_info=_place_of(inspect.currentframe()))


def _place_of(frame: FrameType | None) -> str:
    """The line of the program that called a function, by the frame of that function."""
    caller = None if frame is None else frame.f_back
    return "" if caller is None else f"{caller.f_code.co_filename}:{caller.f_lineno}"


__all__ = ["debug_func", "extern", "print_", "tensor_expr_op", "tensor_ir_inplace_op",
           "tensor_ir_op"]
