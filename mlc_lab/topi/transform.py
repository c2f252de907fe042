"""Rearranging the elements of a tensor."""

from __future__ import annotations

from typing import Any, Sequence

from .. import te
from ..te.tensor import Tensor, extent_of
from ..tir import op as O
from ..tir.expr import IntImm


def transpose(a: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """The dimensions in the order `axes`, reversed by default."""
    order = [x % a.ndim for x in (axes if axes is not None else reversed(range(a.ndim)))]
    if sorted(order) != list(range(a.ndim)):
        raise ValueError(f"transpose: axes {list(axes or ())} is no order of {a.ndim} dimensions")
    place = {d: i for i, d in enumerate(order)}
    return te.compute([a.shape[d] for d in order],
                      lambda *i: a(*[i[place[d]] for d in range(a.ndim)]), name="T_transpose",
                      tag="injective", varargs_names=[f"ax{i}" for i in range(a.ndim)])


def reshape(a: Tensor, newshape: Sequence[Any]) -> Tensor:
    """The same elements, in row-major order, under another shape."""
    shape = [extent_of(d) for d in newshape]
    count = [1, 1]
    for which, dims in enumerate((a.shape, shape)):
        for d in dims:
            count[which] = count[which] * d
    have, want = (O.as_int(c) for c in count)
    if have is not None and want is not None and have != want:
        raise ValueError(f"reshape: {a.name} has {have} elements, the new shape holds {want}")

    def element(*i: Any) -> Any:
        flat: Any = IntImm(shape[0].dtype if shape else "int32", 0)
        for index, d in zip(i, shape):
            flat = flat * d + index
        at = []
        for d in reversed(a.shape):
            at.append(flat % d)
            flat = flat // d
        return a(*reversed(at))

    return te.compute(shape, element, name="T_reshape", tag="injective",
                      varargs_names=[f"ax{i}" for i in range(len(shape))])
