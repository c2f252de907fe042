"""Pooling that says where the largest elements stand."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from .. import te
from ..ir import dtype as dt
from ..te.tensor import Tensor
from ..tir import ir_builder
from ..tir import op as O
from ..tir.expr import PrimExpr
from .utils import product, ravel, simplify, unravel


def max_pool_places(data: Tensor, sizes: Sequence[Any], kernel: Sequence[int],
                    strides: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
                    ) -> list[Tensor]:
    """The largest element of every window of data [N, C, ..], and its place in the flattened
    image: the first of equal ones, the last that is not a number. `sizes` counts the windows."""
    def window(i: Sequence[Any], k: Sequence[Any]) -> list[PrimExpr]:
        return [n * s - p + w * d for n, s, p, w, d in zip(i, strides, padding, k, dilation)]

    return _places(data, sizes, lambda i: [(0, n) for n in kernel], window, "max_pool_places")


def adaptive_max_pool_places(data: Tensor, sizes: Sequence[Any]) -> list[Tensor]:
    """`max_pool_places` of windows from floor(i n / m) to ceil((i + 1) n / m)."""
    have = data.shape[2:]

    def window(i: Sequence[Any], k: Sequence[Any]) -> list[PrimExpr]:
        return list(k)

    def bounds(i: Sequence[Any]) -> list[tuple[Any, Any]]:
        out = []
        for n, size, count in zip(i, have, sizes):
            count = O.cast(O.convert(count), size.dtype)
            first = O.floordiv(n * size, count)
            out.append((first, O.floordiv((n + 1) * size + count - 1, count) - first))
        return out

    return _places(data, sizes, bounds, window, "adaptive_max_pool_places")


def _places(data: Tensor, sizes: Sequence[Any], bounds: Callable, window: Callable, name: str
            ) -> list[Tensor]:
    image = list(data.shape[2:])
    shape = [*data.shape[:2], *(O.cast(O.convert(s), d.dtype) for s, d in zip(sizes, image))]

    def body(ins: Sequence[Any], outs: Any) -> Any:
        ib = ir_builder.create()
        source = ib.buffer_ptr(ins[0])
        values, places = map(ib.buffer_ptr, outs)
        with ib.for_range(0, simplify(O.convert(product(shape))), "i", kind="parallel") as flat:
            at = unravel(flat, shape)
            lead, here = tuple(at[:2]), at[2:]
            best = ib.allocate(data.dtype, (1,), "best", scope="local")
            place = ib.allocate("int64", (1,), "place", scope="local")
            lowest = O.neg(O.infinity(data.dtype)) if dt.is_float(data.dtype) else (
                O.min_value(data.dtype))
            best[0], place[0] = lowest, O.const(-1, "int64")

            def look(k: list[Any]) -> None:
                at = window(here, k)
                inside = O.all(*(c for p, d in zip(at, image) for c in (p >= 0, p < d)))
                with ib.if_scope(inside):
                    value = source[(*lead, *at)]
                    better = O.logical_or(O.greater(value, best[0]), O.less(place[0], 0))
                    if dt.is_float(data.dtype):
                        better = O.logical_or(better, O.isnan(value))
                    with ib.if_scope(better):
                        best[0] = value
                        place[0] = O.cast(ravel(at, image), "int64")

            def loops(todo: list[tuple[Any, Any]], k: list[Any]) -> None:
                if not todo:
                    look(k)
                    return
                (first, count), *rest = todo
                with ib.for_range(0, count, "k") as n:
                    loops(rest, [*k, first + n])

            loops(bounds(here), [])
            values[tuple(at)] = best[0]
            places[tuple(at)] = place[0]
        return ib.get()

    return te.extern([shape, shape], [data], body, dtype=[data.dtype, "int64"], name=name, tag=name)


__all__ = ["adaptive_max_pool_places", "max_pool_places"]
