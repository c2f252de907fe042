"""Borders around tensors, and zeros between elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from ... import te
from ...te.tensor import Tensor
from ...tir import op as O
from ...tir.expr import PrimExpr
from ..utils import need, number, simplify, text

if TYPE_CHECKING:
    from ...tir.expr import ExprLike


def _both(name: str, data: Tensor, before: Sequence[Any], after: Any) -> tuple[list, list]:
    low = [number(p) for p in before]
    high = [number(p) for p in after] if after is not None else low
    need(len(low) == len(high) == data.ndim,
         f"{name}: {len(low)} and {len(high)} widths for the {data.ndim} dimensions of "
         f"{text(data.shape)}")
    return low, high


def pad(data: Tensor, pad_before: Sequence[Any], pad_after: Sequence[Any] | None = None,
        pad_value: ExprLike = 0.0, name: str = "PadInput", attrs: Any = None,
        tag: str = "injective,pad", varargs_names: Sequence[str] | None = None) -> Tensor:
    """data with so many elements of pad_value before and after it along each dimension."""
    low, high = _both("pad", data, pad_before, pad_after)
    shape = [simplify(d + (b + a)) for d, b, a in zip(data.shape, low, high)]
    value = O.cast(O.convert(pad_value), data.dtype) if isinstance(
        pad_value, PrimExpr) else O.const(pad_value, data.dtype)

    def element(*i: PrimExpr) -> PrimExpr:
        at, inside = [], []
        for x, d, b, a in zip(i, data.shape, low, high):
            if b == 0 and a == 0:
                at.append(x)
                continue
            at.append(x - b)
            inside += [x >= b, x < d + b]
        return O.if_then_else(O.all(*inside), data(*at), value) if inside else data(*i)

    return te.compute(shape, element, name=name, tag=tag, attrs=attrs, varargs_names=varargs_names)


def _mirrored(name: str, data: Tensor, before: Sequence[Any], after: Any, block: str,
              where: Callable) -> Tensor:
    low, high = _both(name, data, before, after)
    shape = [simplify(d + (b + a)) for d, b, a in zip(data.shape, low, high)]

    def element(*i: PrimExpr) -> PrimExpr:
        return data(*[x if b == 0 and a == 0 else where(x, d, b)
                      for x, d, b, a in zip(i, data.shape, low, high)])

    return te.compute(shape, element, name=block, tag="injective,pad")


def mirror_pad(data: Tensor, pad_before: Sequence[Any], pad_after: Sequence[Any] | None = None,
               mode: str = "SYMMETRIC", name: str = "MirrorPadInput") -> Tensor:
    """data continued by its mirror image, whose edge is the last element ("SYMMETRIC") or lies in
    the middle of it ("REFLECT")."""
    need(mode in ("SYMMETRIC", "REFLECT"), f'mirror_pad: mode "{mode}" is none of "SYMMETRIC", '
                                           '"REFLECT"')
    edge = 1 if mode == "SYMMETRIC" else 0

    def where(x: Any, d: Any, b: Any) -> PrimExpr:
        return O.if_then_else(x >= d + b, d * 2 + (b - 2 + edge) - x, O.if_then_else(
            x < b, b - edge - x, x - b))

    return _mirrored("mirror_pad", data, pad_before, pad_after, name, where)


def reflect_pad(data: Tensor, pad_before: Sequence[Any], pad_after: Sequence[Any] | None = None,
                name: str = "ReflectPadInput") -> Tensor:
    """data continued by its mirror image without the edge itself."""
    return mirror_pad(data, pad_before, pad_after, "REFLECT", name)


def replicate_pad(data: Tensor, pad_before: Sequence[Any], pad_after: Sequence[Any] | None = None,
                  name: str = "ReplicatePadInput") -> Tensor:
    """data continued by its edge."""
    return _mirrored("replicate_pad", data, pad_before, pad_after, name, lambda x, d, b: (
        O.min_value_of(O.max_value_of(x - b, 0), d - 1)))


def circular_pad(data: Tensor, pad_before: Sequence[Any], pad_after: Sequence[Any] | None = None,
                 name: str = "CircularPadInput") -> Tensor:
    """data continued by itself."""
    return _mirrored("circular_pad", data, pad_before, pad_after, name, lambda x, d, b: (
        O.floormod(x - b, d)))


def dilate(data: Tensor, strides: Sequence[Any], dilation_value: ExprLike = 0.0,
           name: str = "DilatedInput") -> Tensor:
    """data with strides - 1 elements of dilation_value between any two along each dimension."""
    steps = [number(s) for s in strides]
    need(len(steps) == data.ndim, f"dilate: {len(steps)} strides for {text(data.shape)}")
    shape = [d if s == 1 else simplify((d - 1) * s + 1) for d, s in zip(data.shape, steps)]
    value = O.cast(O.convert(dilation_value), data.dtype) if isinstance(
        dilation_value, PrimExpr) else O.const(dilation_value, data.dtype)

    def element(*i: PrimExpr) -> PrimExpr:
        at, hit = [], []
        for x, s in zip(i, steps):
            if s == 1:
                at.append(x)
            else:
                at.append(O.floordiv(x, s))
                hit.append(O.equal(O.floormod(x, s), 0))
        return O.if_then_else(O.all(*hit), data(*at), value) if hit else data(*i)

    return te.compute(shape, element, name=name, tag="injective,dilate")


__all__ = ["circular_pad", "dilate", "mirror_pad", "pad", "reflect_pad", "replicate_pad"]
