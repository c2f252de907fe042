"""Products of tensors: matmul, tensordot, einsum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from .. import te
from ..te.tensor import Tensor
from ..tir import op as O
from ..tir.expr import IntImm
from .broadcast import broadcast_shape
from .utils import axes, differ, need, number, rounded, same_size, sum_type, text

if TYPE_CHECKING:
    from ..tir.expr import PrimExpr


def matmul(a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False) -> Tensor:
    """The product of two matrices, either of them transposed; leading dimensions broadcast."""
    need(a.ndim >= 2 and b.ndim >= 2, f"matmul: {text(a.shape)} and {text(b.shape)} are not both "
                                      "matrices or batches of them")
    n, k = (a.shape[-1], a.shape[-2]) if transp_a else a.shape[-2:]
    k2, m = (b.shape[-1], b.shape[-2]) if transp_b else b.shape[-2:]
    need(not differ(k, k2), f"matmul: the shapes {text(a.shape)} and {text(b.shape)} do not fit: "
                            f"the inner sizes {number(k)} and {number(k2)} differ")
    batch = broadcast_shape(a.shape[:-2], b.shape[:-2])
    r = te.reduce_axis((0, k), name="k")
    wide = sum_type(a.dtype)

    def lead(x: Tensor, i: Sequence[Any]) -> list[Any]:
        skip = len(batch) - (x.ndim - 2)
        return [IntImm(d.dtype, 0) if O.is_const_int(d, 1) else p
                for d, p in zip(x.shape[:-2], i[skip:])]

    def element(*i: PrimExpr) -> Any:
        at, (row, column) = i[:-2], i[-2:]
        x = a(*lead(a, at), *((r, row) if transp_a else (row, r)))
        y = b(*lead(b, at), *((column, r) if transp_b else (r, column)))
        return te.sum(O.cast(x, wide) * O.cast(y, wide), axis=r)

    shape = [*batch, n, m]
    return rounded(te.compute(shape, element, name="T_matmul", tag="matmul",
                              varargs_names=axes(len(shape))), a.dtype)


def tensordot(a: Tensor, b: Tensor, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2
              ) -> Tensor:
    """The sum of products over the last axes of a and first of b, or over two lists of axes."""
    if isinstance(axes, int):
        left = list(range(a.ndim - axes, a.ndim))
        right = list(range(axes))
    else:
        left, right = ([x] if isinstance(x, int) else list(x) for x in axes)
    left, right = [x % a.ndim for x in left], [x % b.ndim for x in right]
    need(len(left) == len(right) and not any(
        differ(a.shape[x], b.shape[y]) for x, y in zip(left, right)),
        f"tensordot: the axes {left} of {text(a.shape)} do not fit {right} of {text(b.shape)}")
    ks = [te.reduce_axis((0, a.shape[x]), f"k{n}") for n, x in enumerate(left)]
    free_a = [d for d in range(a.ndim) if d not in left]
    free_b = [d for d in range(b.ndim) if d not in right]
    wide = sum_type(a.dtype)

    def element(*i: Any) -> Any:
        at_a, at_b = dict(zip(left, ks)), dict(zip(right, ks))
        at_a.update(zip(free_a, i))
        at_b.update(zip(free_b, i[len(free_a):]))
        return te.sum(O.cast(a(*[at_a[d] for d in range(a.ndim)]), wide)
                      * O.cast(b(*[at_b[d] for d in range(b.ndim)]), wide), axis=ks)

    shape = [a.shape[d] for d in free_a] + [b.shape[d] for d in free_b]
    return rounded(te.compute(shape, element, name="T_tensordot", tag="matmul",
                              varargs_names=[f"ax{d}" for d in range(len(shape))]), a.dtype)


def einsum(subscripts: str, *operand: Tensor) -> Tensor:
    """The sum of products that Einstein's notation names: "ij,jk->ik", "...i,...i->...".

    Without "->" the result has the letters that stand once, in order.
    """
    tensors = list(operand[0]) if len(operand) == 1 and isinstance(
        operand[0], (list, tuple)) else list(operand)
    names, out = _subscripts(subscripts, tensors)
    sizes: dict[str, Any] = {}
    for letters, x in zip(names, tensors):
        for letter, d in zip(letters, x.shape):
            if letter not in sizes or O.is_const_int(sizes[letter], 1):
                sizes[letter] = d
            elif not O.is_const_int(d, 1):
                need(not differ(d, sizes[letter]),
                     f"einsum {subscripts}: {letter} is {number(sizes[letter])} and {number(d)} in "
                     + " and ".join(text(t.shape) for t in tensors))
                if not same_size(d, sizes[letter]):  # one of them may turn out to be 1
                    sizes[letter] = O.max_value_of(sizes[letter], d)
    summed = [c for c in sizes if c not in out]
    ks = {c: te.reduce_axis((0, sizes[c]), c if c.isalpha() else f"k{n}")
          for n, c in enumerate(summed)}

    def within(at: Any, d: PrimExpr, size: PrimExpr) -> PrimExpr:
        if same_size(d, size):
            return at
        zero = IntImm(d.dtype, 0)
        return zero if O.is_const_int(d, 1) else O.if_then_else(O.equal(d, 1), zero, at)

    def element(*i: PrimExpr) -> Any:
        place = {**dict(zip(out, i)), **ks}
        value: Any = None
        for letters, x in zip(names, tensors):
            at = [within(place[c], d, sizes[c]) for c, d in zip(letters, x.shape)]
            one = O.cast(x(*at), wide) if ks else x(*at)
            value = one if value is None else value * one
        return te.sum(value, axis=list(ks.values())) if ks else value

    shape, wide = [sizes[c] for c in out], sum_type(tensors[0].dtype)
    return rounded(te.compute(shape, element, name="T_einsum", tag="einsum",
                              varargs_names=axes(len(shape))), tensors[0].dtype)


def _subscripts(subscripts: str, tensors: Sequence[Tensor]) -> tuple[list[str], str]:
    """One letter for each dimension of each operand, and those of the result."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    parts = left.split(",")
    need(len(parts) == len(tensors), f"einsum {subscripts}: {len(parts)} terms for "
                                     f"{len(tensors)} tensors")
    rest = 0
    for part, x in zip(parts, tensors):
        named = len(part.replace("...", ""))
        need(named == x.ndim if "..." not in part else named <= x.ndim,
             f"einsum {subscripts}: {part} does not name the {x.ndim} dimensions of "
             f"{text(x.shape)}")
        rest = max(rest, x.ndim - named)
    hidden = "".join(chr(0x100 + n) for n in range(rest))  # the dimensions that "..." stands for
    names = []
    for part, x in zip(parts, tensors):
        count = x.ndim - len(part.replace("...", ""))
        names.append(part.replace("...", hidden[rest - count:]))
    if arrow:
        out = right.replace("...", hidden)
        unknown = [c for c in out if not any(c in n for n in names)]
        need(not unknown, f"einsum {subscripts}: {', '.join(unknown)} stands only in the result")
        return names, out
    letters = "".join(names)
    return names, hidden + "".join(sorted(c for c in set(letters)
                                          if letters.count(c) == 1 and c not in hidden))


__all__ = ["einsum", "matmul", "tensordot"]
