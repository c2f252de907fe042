"""Reductions of tensor expressions: `sum(A[i, k], axis=k)` and reducers of one's own."""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from ..ir.containers import is_sequence
from . import op
from .expr import CommReducer, IntImm, IterVar, PrimExpr, Reduce, Var


def comm_reducer(fcombine: Callable[..., Any], fidentity: Callable[..., Any],
                 name: str = "reduce") -> Callable[..., Any]:
    """A reducer from a combiner and its identity.

    `fcombine(x, y)` combines two values (or tuples of values); `fidentity(dtype)` (or of several
    dtypes) gives the identity. The result is called as `reducer(expr, axis=, where=, init=)`, or
    with two values and more, `reducer(x, y)`, which are combined.
    """

    def reduce(expr: Any, axis: Any, where: PrimExpr | None = None, init: Any = None, *rest: Any
               ) -> Any:
        if isinstance(axis, PrimExpr) and not isinstance(axis, IterVar):  # the second of values
            values = [e for e in (axis, where, init, *rest) if e is not None]
            return functools.reduce(fcombine, values, expr)
        if rest:
            raise TypeError(f"{name} takes an expression, axis=, where= and init=, or values")
        given: tuple[Any, ...] = (*axis,) if is_sequence(axis) else (axis,)
        axes: Any = given
        if not all(isinstance(a, IterVar) for a in given):
            raise TypeError(f"{name}: axis= takes te.reduce_axis iterators, got {axis!r}")
        _all_reduce(name, axes)
        several = is_sequence(expr)
        source = tuple(op.convert(e) for e in (expr if is_sequence(expr) else (expr,)))
        dtypes = [e.dtype for e in source]
        lhs = tuple(Var(f"x{i}" if several else "x", d) for i, d in enumerate(dtypes))
        rhs = tuple(Var(f"y{i}" if several else "y", d) for i, d in enumerate(dtypes))
        result: tuple[Any, ...]
        identity: tuple[Any, ...]
        if several:
            result, identity = fcombine(lhs, rhs), fidentity(*dtypes)
        else:
            result, identity = (fcombine(lhs[0], rhs[0]),), (fidentity(dtypes[0]),)
        combiner = CommReducer(lhs, rhs, tuple(op.convert(r) for r in result),
                               tuple(op.convert(e) for e in identity))
        condition = IntImm("bool", 1) if where is None else where
        inits = () if init is None else tuple(
            op.convert(i) for i in (init if is_sequence(init) else (init,)))
        outs = tuple(Reduce(combiner, source, axes, condition, i, inits)
                     for i in range(len(source)))
        return outs if several else outs[0]

    reduce.__name__ = name
    reduce.__doc__ = f"The {name} of `expr` over `axis`, restricted to `where` if given."
    return reduce


def _all_reduce(name: str, axes: Sequence[IterVar]) -> None:
    """Only axes made to be reduced over will do: others are looped over by something else."""
    for a in axes:
        if a.iter_type != IterVar.CommReduce:
            what = f"the thread axis {a.thread_tag}" if a.thread_tag else "an axis of a result"
            extent = getattr(a.dom, "extent", None)
            size = "n" if extent is None else getattr(extent, "value", extent)
            raise ValueError(f"{name} over {a.var.name}: that is {what}, no axis to "
                             f"reduce over. Make one: k = te.reduce_axis((0, {size}"
                             '), name="k"), and index with k')


def _zero(dtype: str) -> PrimExpr:
    return op.const(0, dtype)


def _one(dtype: str) -> PrimExpr:
    return op.const(1, dtype)


sum = comm_reducer(op.add, _zero, "sum")
min = comm_reducer(op.min_value_of, op.max_value, "min")
max = comm_reducer(op.max_value_of, op.min_value, "max")
prod = comm_reducer(op.mul, _one, "prod")

__all__: Sequence[str] = ["PrimExpr", "comm_reducer", "max", "min", "prod", "sum"]
