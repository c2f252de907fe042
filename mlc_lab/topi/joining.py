"""Putting tensors together and taking one apart: concatenate, stack, split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..te.tensor import Tensor
from ..tir import op as O
from ..tir.expr import IntImm
from .transform import injective
from .utils import axis_of, differ, need, number, simplify, text

if TYPE_CHECKING:
    from ..tir.expr import PrimExpr


def concatenate(a_tuple: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors one after the other along `axis`; the other sizes must agree."""
    tensors = list(a_tuple)
    need(bool(tensors), "concatenate needs a tensor")
    first = tensors[0]
    k = axis_of("concatenate", axis, first.ndim)
    for x in tensors[1:]:
        if x.ndim != first.ndim or any(
                differ(a, b) for i, (a, b) in enumerate(zip(first.shape, x.shape)) if i != k):
            raise ValueError(f"concatenate: the shapes {text(first.shape)} and {text(x.shape)} "
                             f"differ outside axis {k}")
    starts: list[Any] = [IntImm(first.shape[k].dtype, 0)]
    for x in tensors:
        starts.append(simplify(starts[-1] + x.shape[k]))
    shape = [starts[-1] if i == k else d for i, d in enumerate(first.shape)]

    def element(*i: PrimExpr) -> Any:
        value = first(*i)
        for x, start in zip(tensors[1:], starts[1:]):
            at = [p - start if d == k else p for d, p in enumerate(i)]
            value = O.if_then_else(O.greater_equal(i[k], start), x(*at), value)
        return value

    return injective(shape, element, "T_concat")


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors of one shape along a new dimension `axis`."""
    tensors = list(tensors)
    need(bool(tensors), "stack needs a tensor")
    first = tensors[0]
    for x in tensors[1:]:
        if x.ndim != first.ndim or any(map(differ, first.shape, x.shape)):
            raise ValueError(f"stack: the shapes {text(first.shape)} and {text(x.shape)} differ")
    k = axis_of("stack", axis, first.ndim + 1)
    count = IntImm(first.shape[0].dtype if first.ndim else "int32", len(tensors))
    shape = [*first.shape[:k], count, *first.shape[k:]]

    def element(*i: PrimExpr) -> Any:
        at = [*i[:k], *i[k + 1:]]
        value = first(*at)
        for n, x in enumerate(tensors[1:], 1):
            value = O.if_then_else(O.equal(i[k], n), x(*at), value)
        return value

    return injective(shape, element, "T_stack")


def split(ary: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Parts along `axis`: as many equal ones, or cut before the given indices."""
    k = axis_of("split", axis, ary.ndim)
    size = ary.shape[k]
    given = number(indices_or_sections)
    block = "T_split"
    if isinstance(given, int):
        block = "T_split_sections"
        sections, known = given, O.as_int(size)
        need(known is None or known % sections == 0,
             f"split: the size {known} of axis {k} of {text(ary.shape)} is not divided by "
             f"{sections}")
        part = simplify(O.floordiv(size, sections))
        starts = [simplify(part * n) for n in range(sections)]
    else:
        starts = [IntImm(size.dtype, 0), *(O.cast(O.convert(number(v)), size.dtype)
                                           for v in given)]
    ends = [*starts[1:], size]
    out = []
    for start, end in zip(starts, ends):
        count = simplify(end - start)
        need((O.as_int(count) or 0) >= 0,
             f"split: the indices {list(map(number, starts[1:]))} of a dimension of "
             f"{number(size)} do not rise")
        shape = [count if d == k else n for d, n in enumerate(ary.shape)]
        out.append(injective(shape, lambda *i, start=start: ary(
            *[p + start if d == k else p for d, p in enumerate(i)]), block))
    return out


__all__ = ["concatenate", "split", "stack"]
