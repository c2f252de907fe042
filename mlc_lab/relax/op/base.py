"""Calls across the border of the graph: TensorIR, packed functions, closures; and small services.

    call_tir(gv, args, out_sinfo)           a PrimFunc writes into outputs that are allocated for it
    call_tir_inplace(gv, args, indices, s)  some outputs take the place of arguments
    call_dps_packed("name", args, s)        a registered function writes into allocated outputs
    call_pure_packed("name", *args)         a registered function returns its result, no effects
"""

from __future__ import annotations

from typing import Annotated, Any

from ...ir.global_info import VDevice, find_vdevice
from ...ir.module import GlobalVar
from ...tir import expr as E
from ..expr import Call, Expr, ExternFunc, StringImm, Tuple, as_expr, as_struct_info
from ..struct_info import (
    OBJECT, ShapeExpr, ShapeStructInfo,
    StructInfo, TensorStructInfo, TupleStructInfo,
)
from .common import ints, misfit, show
from .declare import LATER, Kind, Plain, Tensor, Value, constructor, like_first, operator
from .registry import make_call

#: what a call gives that is made for its effect only
VOID = TupleStructInfo(())


def _args_tuple(args: Any) -> Expr:
    if isinstance(args, Expr):
        if isinstance(args, Tuple) or isinstance(args.struct_info_, TupleStructInfo):
            return args
        return Tuple([args])
    return Tuple(args)


def out_struct_info(out_sinfo: Any, dtype: Any = None) -> StructInfo:
    """What a call gives: one struct info or a list of them.

    `(shape, dtype)` is the form of early Relax: `call_tir(f, args, (1, 128), dtype="float32")`.
    """
    if dtype is not None:
        if isinstance(dtype, (list, tuple)):
            return TupleStructInfo([TensorStructInfo(s, d) for s, d in zip(out_sinfo, dtype)])
        return TensorStructInfo(out_sinfo, dtype)
    if isinstance(out_sinfo, (list, tuple)):
        if len(out_sinfo) == 1 and isinstance(out_sinfo, list):
            return as_struct_info(out_sinfo[0])
        return TupleStructInfo(list(map(as_struct_info, out_sinfo)))
    return as_struct_info(out_sinfo)


def _given(call: Call) -> StructInfo:
    """What a call says it gives."""
    if not call.sinfo_args:
        return OBJECT
    return call.sinfo_args[0] if len(call.sinfo_args) == 1 else TupleStructInfo(call.sinfo_args)


def _infer_call_tir(call: Call) -> StructInfo:
    if not call.sinfo_args:
        raise misfit(call, "the call needs out_sinfo, what it gives")
    out = call.sinfo_args[0]
    for info in out.fields_ if isinstance(out, TupleStructInfo) else (out,):
        if not isinstance(info, TensorStructInfo):
            raise misfit(call, f"out_sinfo must be a tensor or a tuple of tensors, not "
                               f"{show(info)}")
        if not isinstance(info.shape, ShapeExpr):
            raise misfit(call, "the shape of every output must be given, here it is "
                               f"{show(info)}")
    return out


def _infer_inplace(call: Call) -> StructInfo:
    out = _infer_call_tir(call)
    outs = out.fields_ if isinstance(out, TupleStructInfo) else (out,)
    args = call.args[1].struct_info_
    where = call.attrs.inplace_indices
    if len(where) != len(outs):
        raise misfit(call, f"there are {len(outs)} output(s) and {len(where)} inplace_indices")
    for info, k in zip(outs, where):
        if k >= 0 and isinstance(args, TupleStructInfo):
            if k >= len(args.fields_):
                raise misfit(call, f"inplace index {k}: there are {len(args.fields_)} arguments")
            if not info.is_base_of(args.fields_[k]):
                raise misfit(call, f"output {show(info)} cannot take the place of argument {k}, "
                                   f"{show(args.fields_[k])}")
    if all(k < 0 for k in where):
        raise misfit(call, "no output takes the place of an argument: use call_tir")
    return out


def _as_tuples(value: Any) -> Any:
    """An attribute with lists as tuples, as they come back from a script."""
    return tuple(map(_as_tuples, value)) if isinstance(value, (list, tuple)) else value


def _callee(func: Any) -> Any:
    return ExternFunc(func) if isinstance(func, str) else func


def _parts(gvar: Any, args: Any, tir_vars: Any) -> tuple:
    """The arguments of a call of TensorIR; `tir_vars` are scalars passed after the buffers."""
    if tir_vars is not None and not isinstance(tir_vars, Expr):
        tir_vars = ShapeExpr(tir_vars)
    return (gvar, _args_tuple(args), *([] if tir_vars is None else [tir_vars]))


@constructor("relax.call_tir", _infer_call_tir)
def call_tir(gvar: GlobalVar, args: Any, out_sinfo: Any, tir_vars: Any = None,
             dtype: Any = None) -> Call:
    """A call of a PrimFunc of the module: it writes into outputs of struct info `out_sinfo`.

    `tir_vars` are scalars passed after the buffers.
    """
    if isinstance(gvar, (str, ExternFunc)):  # early Relax wrote packed functions like this
        return call_dps_packed(gvar, args, out_sinfo, dtype=dtype)
    return make_call("relax.call_tir", _parts(gvar, args, tir_vars), None,
                     (out_struct_info(out_sinfo, dtype),))


@constructor("relax.call_tir_inplace", _infer_inplace)
def call_tir_inplace(gvar: GlobalVar, args: Any, inplace_indices: Any, out_sinfo: Any,
                     tir_vars: Any = None) -> Call:
    """call_tir where output k takes the place of argument inplace_indices[k] (-1: a new one)."""
    return make_call("relax.call_tir_inplace", _parts(gvar, args, tir_vars),
                     {"inplace_indices": ints(inplace_indices)}, (out_struct_info(out_sinfo),))


def _without_grad(bb: Any, call: Call) -> Expr:
    return make_call("relax.call_tir", call.args, None, call.sinfo_args)


@constructor("relax.call_tir_with_grad", _infer_call_tir, legalize=_without_grad)
def call_tir_with_grad(gvar: GlobalVar, args: Any, out_sinfo: Any, te_grad_name: str,
                       te_grad_kwargs: Any = None, tir_vars: Any = None) -> Call:
    """call_tir that names the te function of its gradient."""
    return make_call("relax.call_tir_with_grad", _parts(gvar, args, tir_vars),
                     {"te_grad_name": str(te_grad_name), "te_grad_kwargs": te_grad_kwargs or {}},
                     (out_struct_info(out_sinfo),))


@constructor("relax.call_dps_packed", _given)
def call_dps_packed(func: Any, args: Any, out_sinfo: Any, dtype: Any = None) -> Call:
    """A call of a registered function in destination-passing style: f(*args, *outputs)."""
    return make_call("relax.call_dps_packed", (_callee(func), _args_tuple(args)), None,
                     (out_struct_info(out_sinfo, dtype),))


def _sinfo_args(sinfo_args: Any) -> tuple[StructInfo, ...]:
    if sinfo_args is None:
        return ()
    if isinstance(sinfo_args, (tuple, list)):
        return tuple(map(as_struct_info, sinfo_args))
    return (as_struct_info(sinfo_args),)


@constructor("relax.call_pure_packed", _given)
def call_pure_packed(func: Any, *args: Any, sinfo_args: Any = None) -> Call:
    """A call of a packed function that is known to have no effects."""
    return make_call("relax.call_pure_packed", (_callee(func), *map(as_expr, args)), None,
                     _sinfo_args(sinfo_args))


@constructor("relax.call_inplace_packed", _given)
def call_inplace_packed(func: Any, *args: Any, inplace_indices: Any, sinfo_args: Any) -> Call:
    """A call of a packed function that changes the arguments at `inplace_indices`."""
    return make_call("relax.call_inplace_packed", (_callee(func), *map(as_expr, args)),
                     {"inplace_indices": ints(inplace_indices)}, _sinfo_args(sinfo_args))


@constructor("relax.call_packed")
def call_packed(func: Any, *args: Any, sinfo_args: Any = None, **attrs: Any) -> Call:
    """A call of a packed function that may have effects.

    `func` is its name or an ExternFunc; `attrs` are kept with the call.
    """
    if not isinstance(func, (str, ExternFunc)):
        raise TypeError("call_packed takes the name of a packed function; a function of the module "
                        "is called as it is: cls.f(x)")
    infos = _sinfo_args(attrs.pop("type_args", sinfo_args))  # their name in Relax of 2022
    attrs = {name: _as_tuples(value) for name, value in attrs.items()}
    out = OBJECT if not infos else infos[0] if len(infos) == 1 else TupleStructInfo(infos)
    return Call(_callee(func), tuple(map(as_expr, args)), attrs or None, infos, struct_info=out)


@constructor("relax.call_builtin_with_ctx", _given, pure=False)
def call_builtin_with_ctx(func: Any, args: Any, *, sinfo_args: Any = None) -> Call:
    """A call of a builtin of the virtual machine, which gets the machine as first argument."""
    return make_call("relax.call_builtin_with_ctx", (_callee(func), _args_tuple(args)), None,
                     _sinfo_args(sinfo_args))


@constructor("relax.make_closure", lambda call: OBJECT)
def make_closure(func: Any, args: Any) -> Call:
    """A function of the module with its first arguments fixed."""
    return make_call("relax.make_closure", (func, _args_tuple(args)))


@constructor("relax.invoke_closure", _given, pure=False)
def invoke_closure(closure: Any, args: Any, sinfo_args: Any) -> Call:
    """A call of a closure."""
    return make_call("relax.invoke_closure", (closure, _args_tuple(args)), None,
                     _sinfo_args(sinfo_args))


@constructor("relax.invoke_pure_closure", _given)
def invoke_pure_closure(closure: Any, args: Any, sinfo_args: Any) -> Call:
    """A call of a closure that has no effects."""
    return make_call("relax.invoke_pure_closure", (closure, _args_tuple(args)), None,
                     _sinfo_args(sinfo_args))


# ------------------------------------------------------------------------------- services


@constructor("relax.null_value", lambda call: OBJECT)
def null_value() -> Call:
    """A null object: an argument that is not given."""
    return make_call("relax.null_value", ())


@constructor("relax.print", lambda call: VOID, pure=False)
def print(*values: Any, format: Any = "") -> Call:
    """Print values when the program runs; an effect."""
    form = format if isinstance(format, Expr) else StringImm(format)
    return make_call("relax.print", (form, *map(as_expr, values)))


def _infer_assert(call: Call) -> StructInfo:
    info = call.args[0].struct_info_
    dtype = getattr(info, "dtype", None)
    if dtype not in ("bool", "") or getattr(info, "ndim", 0) not in (0, -1):
        raise misfit(call, f"the condition must be a bool scalar, it is {show(info)}")
    return VOID


@constructor("relax.assert_op", _infer_assert, pure=False)
def assert_op(condition: Any, format_args: Any = None, format: Any = "") -> Call:
    """Stop the program where the condition (a bool scalar) does not hold; an effect."""
    form = format if isinstance(format, Expr) else StringImm(format)
    rest = () if format_args is None else tuple(format_args) if isinstance(
        format_args, (list, tuple)) else (format_args,)
    return make_call("relax.assert_op", (as_expr(condition), form, *map(as_expr, rest)))


def _infer_shape_of(call: Call, info: TensorStructInfo) -> StructInfo:
    return ShapeStructInfo(info.dims) if info.dims is not None else ShapeStructInfo(ndim=info.ndim)


@operator("relax.shape_of", _infer_shape_of, legalize=LATER)
def shape_of(expr: Tensor) -> Any:
    """The shape of a tensor as a value."""


def _infer_tensor_to_shape(call: Call, info: TensorStructInfo) -> StructInfo:
    if info.ndim not in (-1, 1):
        raise misfit(call, f"the argument must be a vector, it is {show(info)}")
    extent = info.dims[0] if info.dims is not None else None
    return ShapeStructInfo(ndim=extent.value if type(extent) is E.IntImm else -1)


@operator("relax.tensor_to_shape", _infer_tensor_to_shape, legalize=LATER)
def tensor_to_shape(expr: Tensor) -> Any:
    """The values of an integer vector as a shape."""


def _infer_shape_to_tensor(call: Call, info: StructInfo) -> StructInfo:
    if not isinstance(info, ShapeStructInfo):
        raise misfit(call, f"the argument must be a shape, it is {show(info)}")
    return TensorStructInfo((info.ndim,) if info.ndim >= 0 else None, "int64", ndim=1)


@operator("relax.shape_to_tensor", _infer_shape_to_tensor, legalize=LATER)
def shape_to_tensor(expr: Value) -> Tensor:
    """A shape as an int64 vector."""


#: hints: the value itself
HINT = {"infer": like_first, "legalize": lambda bb, call: call.args[0], "any_shape": True}


def _vdevice(value: Any) -> VDevice:
    """A virtual device, or the name of one ("llvm", "cuda:1")."""
    if isinstance(value, VDevice):
        return value
    return find_vdevice(value) if isinstance(value, str) else VDevice(value)


Device = Annotated[Any, Kind(_vdevice)]


def _infer_to_vdevice(call: Call, data: TensorStructInfo) -> StructInfo:
    return TensorStructInfo.from_fields(data.shape, data.dtype, data.ndim, call.attrs.dst_vdevice)


@operator("relax.to_vdevice", **{**HINT, "infer": _infer_to_vdevice})
def to_vdevice(data: Tensor, dst_vdevice: Device) -> Tensor:
    """data copied to another device."""


@operator("relax.hint_on_device", **HINT)
def hint_on_device(data: Tensor, dst_vdevice: Plain, memory_scope: Plain = "global") -> Tensor:
    """data, with the device it should live on."""
