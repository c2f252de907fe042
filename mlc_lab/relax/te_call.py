"""Calls of tensor expressions from Relax: `bb.call_te(topi.add, x, y)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..te import Tensor, create_prim_func, placeholder
from ..tir import expr as E
from ..tir.functor import free_vars, substitute
from .expr import Call, Constant, Expr, PrimValue, ShapeExpr, StringImm, Tuple
from .op.base import call_tir
from .struct_info import (
    PrimStructInfo, ShapeStructInfo, TensorStructInfo, TupleStructInfo, as_dim,
)

if TYPE_CHECKING:
    from .block_builder import BlockBuilder


class _Arguments:
    """Turns arguments of a te function, and remembers what the TensorIR function takes."""

    def __init__(self, builder: BlockBuilder) -> None:
        self.builder = builder
        self.tensors: list[Tensor] = []
        self.exprs: list[Expr] = []
        #: the same, and between them scalars that are known when the program runs: what the
        #: function takes, and the arguments
        self.params: list[Any] = []
        self.args: list[Expr] = []
        self.symbols: dict[E.Var, E.Var] = {}

    def dim(self, value: E.PrimExpr) -> E.PrimExpr:
        """A dimension over symbolic variables of the new function's own."""
        if type(value) is E.IntImm:
            return value
        for v in free_vars(value):
            if v not in self.symbols:
                self.symbols[v] = type(v)(v.name, v.dtype)
        return substitute(value, self.symbols)

    def tensor(self, expr: Expr) -> Tensor:
        """The placeholder of a Relax value; one that comes twice is one parameter."""
        for known, tensor in zip(self.exprs, self.tensors):
            if known is expr and not isinstance(expr, Constant):
                return tensor
        info = expr.struct_info
        assert isinstance(info, TensorStructInfo)
        if info.dims is None:
            raise ValueError(f"the shape of {getattr(expr, 'name_hint', 'an argument')} must be "
                             "known to make a tensor expression of it, at least symbolically: use "
                             "bb.match_cast to name its dimensions")
        if not info.dtype:
            raise ValueError("the dtype of an argument must be known to make a tensor expression "
                             "of it")
        name = getattr(expr, "name_hint", None) or _letter(len(self.tensors))
        made = placeholder([self.dim(d) for d in info.dims], info.dtype, name)
        self.tensors.append(made)
        self.exprs.append(expr)
        self.params.append(made)
        self.args.append(expr)
        return made

    def scalar(self, expr: Expr, dtype: str) -> E.Var:
        """The variable of a scalar of the program, which is a parameter."""
        for param, arg in zip(self.params, self.args):
            if arg is expr:
                return param
        made = E.Var(getattr(expr, "name_hint", None) or _letter(len(self.params)), dtype)
        self.params.append(made)
        self.args.append(expr)
        return made

    def convert(self, value: Any) -> Any:
        """An argument as the te function takes it."""
        if isinstance(value, Expr):
            return self.convert_expr(value)
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.convert, value)) if type(value) in (list, tuple) else [
                self.convert(v) for v in value]
        if isinstance(value, dict):
            return {k: self.convert(v) for k, v in value.items()}
        if isinstance(value, E.PrimExpr):
            return self.dim(value)
        return value

    def convert_expr(self, value: Expr) -> Any:
        if isinstance(value, ShapeExpr):
            return [self.dim(v) for v in value.values]
        if isinstance(value, PrimValue):
            return self.dim(value.value)
        if isinstance(value, StringImm):
            return value.value
        if isinstance(value, Tuple):
            return [self.convert(f) for f in value.fields_]
        value = self.builder.as_leaf(self.builder.normalize(value))
        info = value.struct_info
        if isinstance(info, TensorStructInfo):
            return self.tensor(value)
        if isinstance(info, TupleStructInfo):
            return [self.convert(self.builder.as_leaf(self.builder.normalize(value[k])))
                    for k in range(len(info.fields_))]
        if isinstance(info, ShapeStructInfo) and info.values is not None:
            return [self.dim(v) for v in info.values]
        if isinstance(info, PrimStructInfo) and info.value is not None:
            return self.dim(info.value)
        if isinstance(info, PrimStructInfo):
            return self.scalar(value, info.dtype)
        raise TypeError(f"an argument of {info} cannot be used in a tensor expression")


def _letter(index: int) -> str:
    return chr(ord("A") + index) if index < 26 else f"input{index}"


def _name_of(func: Callable) -> str:
    name = getattr(func, "__name__", "") or "te_func"
    return name if name.isidentifier() else "te_func"


def _unbound(own: list[E.Var], tensors: list[Tensor]) -> list[E.Var]:
    """Symbolic variables that no dimension of a tensor gives a value to."""
    given = {d for t in tensors for d in t.shape if isinstance(d, E.Var)}
    return [v for v in own if v not in given]


def call_te(builder: BlockBuilder, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Call:
    """The call of the TensorIR function made of `func(*args, **kwargs)`; see BlockBuilder."""
    hint = kwargs.pop("primfunc_name_hint", None)
    attrs = kwargs.pop("primfunc_attrs", None)
    given = _Arguments(builder)
    new_args = [given.convert(a) for a in args]
    new_kwargs = {k: given.convert(v) for k, v in kwargs.items()}
    result = func(*new_args, **new_kwargs)
    outs = list(result) if isinstance(result, (list, tuple)) else [result]
    for out in outs:
        if not isinstance(out, Tensor):
            raise TypeError(f"{_name_of(func)} must give te tensors, it gave a "
                            f"{type(out).__name__}")
    passed = [t for t in given.tensors if t in outs]
    if passed:
        raise ValueError(f"{_name_of(func)} gives back its input {passed[0].name} unchanged: "
                         "there is nothing to compute")
    used = {v for t in (*given.tensors, *outs) for d in t.shape for v in free_vars(d)} | set(
        _free_of(outs))
    # symbols of the graph that `func` mentions without being given them
    captured = {v: given.dim(v) for v in used if v in builder.symbols()}
    used.update(v for v in captured.values() if isinstance(v, E.Var))
    scalars = [v for v in _unbound(list(given.symbols.values()), given.tensors) if v in used]
    prim = create_prim_func([*given.params, *outs, *scalars], "int64")
    prim = prim.without_attr("global_symbol")
    if captured:
        prim = prim.specialize(captured)
    if attrs:
        prim = prim.with_attr(attrs)
    var = builder.add_func(prim, hint or _name_of(func))
    back = {new: old for old, new in given.symbols.items()}
    infos = [TensorStructInfo([as_dim(substitute(as_dim(d), back)) for d in out.shape], out.dtype)
             for out in outs]
    out_info = infos[0] if not isinstance(result, (list, tuple)) else infos if len(
        infos) > 1 else infos[0]
    tir_vars = ShapeExpr([back[v] for v in scalars]) if scalars else None
    return call_tir(var, Tuple(given.args), out_info, tir_vars)


def _free_of(outs: list[Tensor]) -> list[E.Var]:
    """The variables that the bodies of the operations behind `outs` mention."""
    found: dict[E.Var, None] = {}
    seen: set[Any] = set()
    stack = [t.op for t in outs]
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        body = getattr(op, "body", ()) or ()
        for item in body if isinstance(body, tuple) else (body,):  # foreign code is a statement
            found.update((v, None) for v in free_vars(item) if v.dtype != "handle")
        stack.extend(t.op for t in op.input_tensors)
    return list(found)


__all__ = ["call_te"]
