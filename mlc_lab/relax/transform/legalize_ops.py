"""LegalizeOps: operators become calls of TensorIR functions.

Each call of an operator is replaced by what computes it in its declaration (`relax/op`): a
`R.call_tir` of a function made from TOPI, or other operators, which are legalised in turn. What
nothing computes yet, and what has arguments of unknown shape, stays as it is. Rows by operator name
in `customize_legalize_map` go before the declarations.

before::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            gv = R.exp(x)
            R.output(gv)
        return gv

after `LegalizeOps()`::

    @T.prim_func(private=True)
    def tir_exp(x: T.Buffer((T.int64(4),), "float32"), compute: T.Buffer((T.int64(4),), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        # with T.block("root"):
        for i0 in range(T.int64(4)):
            with T.block("compute"):
                v_i0 = T.axis.spatial(T.int64(4), i0)
                T.reads(x[v_i0])
                T.writes(compute[v_i0])
                compute[v_i0] = T.exp(x[v_i0])

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        with R.dataflow():
            gv = R.call_tir(cls.tir_exp, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
            R.output(gv)
        return gv
"""

from __future__ import annotations

import logging
import operator
from typing import Any, Callable, Collection, Mapping

from ...ir.module import IRModule
from ...ir.recursion import DepthError
from ...ir.structural import structural_equal
from ...ir.transform import Pass, PassContext
from ...tir import expr as E
from ..expr import Call, Expr, Function, ShapeExpr, Tuple, TupleGetItem
from ..expr_functor import PyExprMutator
from ..op.common import same_at_run_time
from ..op.registry import OPERATORS
from ..struct_info import ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from .rewriting import make_pass, op_name

_LOG = logging.getLogger(__name__)

#: how often rows may give operators in turn before it counts as going round in circles
_DEPTH = 16


def LegalizeOps(customize_legalize_map: Mapping[str, Callable[[Any, Call], Expr]] | None = None,
                enable_warning: bool = False) -> Pass:
    """Replace operators by calls of TensorIR functions, by the table or by rows of one's own.

    `customize_legalize_map` maps operator names ("relax.add") to `(builder, call) -> Expr`; a row
    that gives the call back leaves it. With `enable_warning` operators that stay are logged.
    """
    rows = dict(customize_legalize_map or {})
    unknown = [name for name in rows if name not in OPERATORS]
    if unknown:
        raise ValueError(f"LegalizeOps: there is no Relax operator {unknown[0]!r}")

    return legalizing("LegalizeOps", LegalizeOps.__doc__, rows, enable_warning)


def legalizing(title: str, doc: str | None, rows: Mapping[str, Callable], warn: bool = False,
               only: Collection[str] | None = None) -> Pass:
    """The pass over all operators, or over those of `only`."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        mutator = _Legalizer(mod, rows, warn, only)
        changed = False
        for var, func in list(mod.functions.items()):
            if isinstance(func, Function):
                new = mutator.visit_expr(func)
                if new is not func:
                    mutator.builder_.update_func(var, new)
                    changed = True
        return mutator.builder_.get() if changed else mod

    return make_pass(title, run, doc)


class _Legalizer(PyExprMutator):
    """Applies the rows to the calls of a module."""

    def __init__(self, mod: IRModule, rows: Mapping[str, Callable], warn: bool,
                 only: Collection[str] | None = None) -> None:
        super().__init__(mod)
        self.rows, self.warn, self.only = rows, warn, only

    def visit_call_(self, call: Call) -> Expr:
        return self.legal(self.builder_.normalize(super().visit_call_(call)), 0)

    def legal(self, expr: Expr, depth: int) -> Expr:
        """A call without operators that have a row."""
        if not (type(expr) is Call and isinstance(expr.op, E.Op)):
            return expr
        name = expr.op.name
        if self.only is not None and depth == 0 and name not in self.only:
            return expr
        row = self.rows.get(name)
        if row is None:
            known = OPERATORS.get(name)
            row = known.legalize if known is not None else None
        if row is None or not _known(expr):
            if self.warn and name not in _LOWERED_LATER:
                why = "there is no row for it" if row is None else "a shape is not known"
                _LOG.warning("LegalizeOps leaves %s as it is: %s", name, why)
            return expr
        if depth > _DEPTH:
            raise DepthError(f"LegalizeOps: the row of {name} gives operators without end")
        expr = self.compared(expr)
        new = row(_RowBuilder(self, depth + 1), expr)
        return new if new is expr else self.settled(new, depth + 1)

    def compared(self, call: Call) -> Call:
        """A call whose arguments were compared at run time (R.match_cast) where their symbolic
        sizes must agree, and may not."""
        if not any(_is_symbolic(a.struct_info_) for a in call.args if isinstance(a, Expr)):
            return call
        pairs, args = same_at_run_time(call), list(call.args)
        for k, (wanted, given, named) in enumerate(pairs):
            new = [self.cast(a, given, wanted) for a in args] if named else args
            if all(map(operator.is_, new, args)):  # not a dimension, but computed from some
                wanted, given = given, wanted
                new = [self.cast(a, given, wanted) for a in args] if named else args
            if all(map(operator.is_, new, args)):  # neither is
                self.builder_.match_cast(ShapeExpr([wanted]), ShapeStructInfo([given]))
                continue
            args = new
            pairs[k + 1:] = [(*(wanted if structural_equal(d, given) else d for d in pair), by_name)
                             for *pair, by_name in pairs[k + 1:]]
        if not pairs:
            return call
        return self.builder_.normalize(Call(call.op, tuple(args), call.attrs, call.sinfo_args))

    def cast(self, arg: Any, given: E.PrimExpr, wanted: E.PrimExpr) -> Any:
        """An argument for which `wanted` is known to be the size that was called `given`."""
        info = getattr(arg, "struct_info_", None)
        if isinstance(info, TupleStructInfo):
            fields = arg.fields_ if isinstance(arg, Tuple) else [
                self.builder_.emit(TupleGetItem(arg, k)) for k in range(len(info.fields_))]
            new = [self.cast(f, given, wanted) for f in fields]
            return arg if all(map(operator.is_, new, fields)) else Tuple(new)
        if not isinstance(info, TensorStructInfo) or info.dims is None:
            return arg
        dims = [wanted if structural_equal(d, given) else d for d in info.dims]
        if all(map(operator.is_, dims, info.dims)):
            return arg
        return self.builder_.match_cast(arg, TensorStructInfo(dims, info.dtype))

    def settled(self, expr: Expr, depth: int) -> Expr:
        """What a row gave, in normal form, its own operators legalised."""
        made = self.builder_.normalize(expr)
        return self.legal(made, depth)


class _RowBuilder:
    """The builder as rows see it: operators that they emit are legalised too."""

    def __init__(self, legalizer: _Legalizer, depth: int) -> None:
        self._legalizer, self._depth = legalizer, depth

    def emit(self, expr: Expr, name_hint: str = "") -> Any:
        """Bind a value to a new variable."""
        made = self._legalizer.settled(expr, self._depth)
        return self._legalizer.builder_.emit(made, name_hint)

    def emit_te(self, func: Callable, *args: object, **kwargs: object) -> Any:
        """Bind what a TensorIR function made of a te function gives."""
        return self.emit(self.call_te(func, *args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._legalizer.builder_, name)


#: what later stages lower
_LOWERED_LATER = {"relax.call_tir", "relax.call_tir_inplace", "relax.call_dps_packed",
                  "relax.call_pure_packed", "relax.call_inplace_packed", "relax.shape_of",
                  "relax.tensor_to_shape", "relax.shape_to_tensor", "relax.null_value",
                  "relax.print", "relax.assert_op"}


def _known(call: Call) -> bool:
    """Whether the shapes of all tensors are known, at least by symbols."""
    if not all(_shaped(a.struct_info_) for a in call.args if isinstance(a, Expr)):
        return False
    row = OPERATORS.get(op_name(call))
    return (row is not None and row.any_shape) or _shaped(call.struct_info_)


def _is_symbolic(info: StructInfo | None) -> bool:
    """Whether a size is no number."""
    if isinstance(info, TensorStructInfo):
        return any(type(d) is not E.IntImm for d in info.dims or ())
    if isinstance(info, TupleStructInfo):
        return any(map(_is_symbolic, info.fields_))
    return isinstance(info, ShapeStructInfo) and any(
        type(d) is not E.IntImm for d in info.values or ())


def _shaped(info: StructInfo | None) -> bool:
    if isinstance(info, TensorStructInfo):
        return info.dims is not None and bool(info.dtype)
    if isinstance(info, TupleStructInfo):
        return all(map(_shaped, info.fields_))
    return not isinstance(info, ShapeStructInfo) or info.values is not None


__all__ = ["LegalizeOps"]
