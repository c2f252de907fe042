"""Layouts of data, such as "NCHW16c": which axis comes where, and which is split by how much.

A capital letter is an axis; a number and the small letter are a split of it.
`bijective_layout("NCHW", "NCHW16c")` maps indices and shapes from one layout to another that has
the same axes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from . import op
from .expr import IntImm, IterVar, PrimExpr, Range, Var, const_index
from .op import as_int

_PART = re.compile(r"([A-Z])|([1-9][0-9]*)([a-z])")


class Layout:
    """A layout of data; made by `layout`. An undefined one has no axes.

    `layout[i]` is the letter at a place, `"c" in layout` asks for one, `axes` are iterators over
    them.
    """

    def __init__(self, name: str, dtype: str = "int32") -> None:
        self.name = name
        self.parts: list[tuple[str, int | None]] = []
        for letter, factor, small in _parts(name):
            at = small or letter
            if at in [have for have, _ in self.parts]:
                raise ValueError(f"the layout {name!r} has {at} twice")
            self.parts.append((at, int(factor) if small else None))
        letters = [at for at, _ in self.parts]
        for at, factor in self.parts:
            if factor is not None and at.upper() not in letters:
                raise ValueError(f"the layout {name!r} splits {at.upper()}, which it does not have")
        self.axes = [IterVar(Range.from_min_extent(
            IntImm(dtype, 0), Var(f"{at}_size", dtype) if factor is None else IntImm(dtype, factor)
        ), Var(at, dtype)) for at, factor in self.parts]

    def __len__(self) -> int:
        return len(self.parts)

    def __contains__(self, axis: object) -> bool:
        return any(at == axis for at, _ in self.parts)

    def __getitem__(self, index: int) -> str:
        return self.parts[index][0]

    def __repr__(self) -> str:
        return f"Layout({self.name})"

    def index_of(self, axis: str) -> int:
        """The place of an axis; -1 if it is not there."""
        return next((i for i, (at, _) in enumerate(self.parts) if at == axis), -1)

    def factor_of(self, axis: str) -> int:
        """By how much an axis is split; -1 if it is not."""
        return next((f for at, f in self.parts if f is not None and at == axis.lower()), -1)


def _parts(name: str) -> list[tuple[str, str, str]]:
    if name == "__undef__":
        return []
    found = _PART.findall(name)
    if "".join(map("".join, found)) != name:
        raise ValueError(f"{name!r} is no layout: it is made of capital letters, and of numbers "
                         "before small ones, such as NCHW16c")
    return found


class BijectiveLayout:
    """A map between two layouts of the same axes; made by `bijective_layout`."""

    def __init__(self, src: Layout, dst: Layout) -> None:
        self.src_layout, self.dst_layout = src, dst

    def forward_index(self, index: Sequence[Any]) -> list[PrimExpr]:
        """The index in the second layout of an index in the first one."""
        return _indices(self.src_layout, self.dst_layout, index)

    def backward_index(self, index: Sequence[Any]) -> list[PrimExpr]:
        """The index in the first layout of an index in the second one."""
        return _indices(self.dst_layout, self.src_layout, index)

    def forward_shape(self, shape: Sequence[Any]) -> list[PrimExpr]:
        """The shape in the second layout of data that has `shape` in the first one."""
        return _shape(self.src_layout, self.dst_layout, shape)

    def backward_shape(self, shape: Sequence[Any]) -> list[PrimExpr]:
        """The shape in the first layout of data that has `shape` in the second one."""
        return _shape(self.dst_layout, self.src_layout, shape)


def _whole(layout: Layout, values: Sequence[Any], sizes: bool) -> dict[str, PrimExpr]:
    """The value of each axis: a size is the product of its parts, an index the sum."""
    if len(values) != len(layout):
        raise ValueError(f"{layout.name} has {len(layout)} axes, and {len(values)} are given")
    given = {at: const_index(v) for (at, _), v in zip(layout.parts, values)}
    out = {at: v for at, v in given.items() if at.isupper()}
    for at, factor in layout.parts:
        if factor is not None:
            axis = at.upper()
            out[axis] = op.mul(out[axis], factor)
            if not sizes:
                out[axis] = op.add(out[axis], given[at])
    return out


def _indices(src: Layout, dst: Layout, index: Sequence[Any]) -> list[PrimExpr]:
    whole = _whole(src, index, False)
    return [op.floordiv(whole[at], dst.factor_of(at)) if factor is None and dst.factor_of(at) > 0
            else whole[at] if factor is None else op.floormod(whole[at.upper()], factor)
            for at, factor in dst.parts]


def _shape(src: Layout, dst: Layout, shape: Sequence[Any]) -> list[PrimExpr]:
    whole = _whole(src, shape, True)
    out: list[PrimExpr] = []
    for at, factor in dst.parts:
        if factor is not None:
            out.append(const_index(factor))
            continue
        by = dst.factor_of(at)
        size = as_int(whole[at])
        if by > 0 and size is not None and size % by:
            raise ValueError(f"{at} of {size} elements is no multiple of {by}, by which "
                             f"{dst.name} splits it: pad it first")
        out.append(op.floordiv(whole[at], by) if by > 0 else whole[at])
    return out


def layout(layout_str: str, dtype: str = "int32") -> Layout:
    """The layout that a text says; "__undef__" and "" are undefined. `dtype` is that of the
    iterators over its axes. Raises ValueError for a text that is none."""
    if dtype not in ("int32", "int64"):
        raise TypeError(f"the axes of a layout are int32 or int64, not {dtype!r}")
    return Layout(layout_str, dtype)


def bijective_layout(src_layout: str | Layout, dst_layout: str | Layout
                     ) -> BijectiveLayout | None:
    """The map from one layout to another; None where they do not have the same axes."""
    src, dst = (Layout(x) if isinstance(x, str) else x for x in (src_layout, dst_layout))
    axes = [{at for at, factor in x.parts if factor is None} for x in (src, dst)]
    return BijectiveLayout(src, dst) if axes[0] and axes[0] == axes[1] else None


__all__ = ["BijectiveLayout", "Layout", "bijective_layout", "layout"]
