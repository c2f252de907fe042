"""Samples of the operators that look up, scatter, sort and choose."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc_lab.relax import op

from .harness import Draw
from .operator_samples import (
    ALL, NUMBERS, Sample, _exactly, _same_type, axis_in, data, sample, shape_of,
)

INDEX = ("int64", "int32", "int8", "uint8")


def _index(draw: Draw, shape: Any, size: int) -> np.ndarray:
    """Indices of a dimension; negative ones count from its end."""
    dtype = draw.choice(INDEX)
    return data(draw, shape, dtype, 0 if dtype == "uint8" else -size, size)


def _integers(*arrays: Any) -> None:
    if any(a.dtype.kind not in "iu" for a in arrays):
        raise TypeError("indices are no integers")


@sample("take")
def _take(draw: Draw) -> Sample:
    shape = tuple(max(d, 1) for d in shape_of(draw, 1))
    axis = axis_in(draw, len(shape)) if len(shape) > 1 else None
    size = shape[axis or 0] if axis is None or -len(shape) <= axis < len(shape) else 1

    def want(x: Any, i: Any) -> Any:
        _integers(i)
        if axis is None:
            _exactly(x, 1)
        count = x.shape[axis or 0]
        i = i.astype("int64")
        return np.take(x, np.clip(np.where(i < 0, i + count, i), 0, count - 1), axis or 0)

    return Sample([data(draw, shape, draw.choice(ALL)), _index(draw, shape_of(draw, 0, 2), size)],
                  lambda x, i: op.take(x, i, axis), want, f"axis={axis}")


@sample("gather_elements")
def _gather_elements(draw: Draw) -> Sample:
    shape = [max(d, 1) for d in shape_of(draw, 1)]
    axis = draw.integer(-len(shape), len(shape) - 1)
    which = [draw.integer(1, d) for d in shape]
    size = shape[axis]

    def want(x: Any, i: Any) -> Any:
        _integers(i)
        i = i.astype("int64")
        count = x.shape[axis]
        i = np.clip(np.where(i < 0, i + count, i), 0, count - 1)
        if any(b > a for k, (a, b) in enumerate(zip(x.shape, i.shape)) if k != axis % x.ndim):
            raise ValueError("reaches further than data")
        cut = tuple(slice(None) if k == axis % x.ndim else slice(d) for k, d in enumerate(i.shape))
        return np.take_along_axis(x[cut], i, axis)

    return Sample([data(draw, shape), _index(draw, which, size)],
                  lambda x, i: op.gather_elements(x, i, axis), want, f"axis={axis}")


@sample("gather_nd")
def _gather_nd(draw: Draw) -> Sample:
    shape = [max(d, 1) for d in shape_of(draw, 1)]
    depth = draw.integer(1, len(shape))

    def want(x: Any, i: Any) -> Any:
        _integers(i)
        parts = [np.clip(np.where(i[..., d] < 0, i[..., d].astype("int64") + x.shape[d], i[..., d]),
                         0, x.shape[d] - 1) for d in range(i.shape[-1])]
        return x[tuple(parts)] if parts else np.broadcast_to(x, (*i.shape[:-1], *x.shape))

    return Sample([data(draw, shape), _index(draw, (*shape_of(draw, 0, 2), depth), min(shape))],
                  op.gather_nd, want)


@sample("scatter_elements")
def _scatter_elements(draw: Draw) -> Sample:
    shape = [max(d, 1) for d in shape_of(draw, 1)]
    axis = draw.integer(-len(shape), len(shape) - 1)
    which = [draw.integer(1, d) for d in shape]
    kind = draw.choice(("update", "add", "mul", "max", "min"))
    meet = {"update": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum,
            "min": np.minimum}[kind]

    def want(x: Any, i: Any, u: Any) -> Any:
        _integers(i)
        if i.shape != u.shape or x.dtype != u.dtype or x.ndim != i.ndim or any(
                b > a for k, (a, b) in enumerate(zip(x.shape, i.shape)) if k != axis % x.ndim):
            raise ValueError("does not fit")
        out = x.copy()
        for place in np.ndindex(*i.shape):
            there = list(place)
            there[axis] = int(i[place]) + (x.shape[axis] if i[place] < 0 else 0)
            if 0 <= there[axis] < x.shape[axis]:
                out[tuple(there)] = meet(out[tuple(there)], u[place])
        return out

    dtype = draw.choice(("float32", "int32", "int64"))
    return Sample([data(draw, shape, dtype), _index(draw, which, shape[axis]),
                   data(draw, which, dtype)],
                  lambda x, i, u: op.scatter_elements(x, i, u, axis, kind), want,
                  f"axis={axis} {kind}")


@sample("scatter_nd")
def _scatter_nd(draw: Draw) -> Sample:
    shape = [max(d, 1) for d in shape_of(draw, 1)]
    depth, places = draw.integer(1, len(shape)), [draw.integer(1, 3)]

    def want(x: Any, i: Any, u: Any) -> Any:
        _integers(i)
        depth = i.shape[-1]
        if u.shape != (*i.shape[:-1], *x.shape[depth:]) or depth > x.ndim or x.dtype != u.dtype:
            raise ValueError("does not fit")
        out = x.copy()
        for place in np.ndindex(*i.shape[:-1]):
            at = [int(v) + (d if v < 0 else 0) for v, d in zip(i[place], x.shape)]
            if all(0 <= v < d for v, d in zip(at, x.shape)):
                out[tuple(at)] = u[place]
        return out

    return Sample([data(draw, shape), _index(draw, (*places, depth), min(shape[:depth])),
                   data(draw, (*places, *shape[depth:]))], op.scatter_nd, want)


@sample("slice_scatter")
def _slice_scatter(draw: Draw) -> Sample:
    shape = [max(d, 1) for d in shape_of(draw, 1)]
    axis = draw.integer(0, len(shape) - 1)
    start, end, step = draw.integer(0, 3), draw.integer(0, 4), draw.integer(1, 2)
    piece = list(shape)
    piece[axis] = len(range(*slice(start, end, step).indices(shape[axis])))

    def want(x: Any, src: Any) -> Any:
        at = (slice(None),) * axis + (slice(start, end, step),)
        if x[at].shape != src.shape or x.dtype != src.dtype:
            raise ValueError("does not fit")
        out = x.copy()
        out[at] = src
        return out

    return Sample([data(draw, shape), data(draw, piece)],
                  lambda x, s: op.slice_scatter(x, s, start, end, step, axis), want,
                  f"{start}:{end}:{step} axis={axis}")


@sample("one_hot")
def _one_hot(draw: Draw) -> Sample:
    shape, depth = shape_of(draw, 0, 2), draw.choice((1, 2, 3, 0))
    axis = axis_in(draw, len(shape) + 1)

    def want(i: Any) -> Any:
        _integers(i)
        if depth < 1:
            raise ValueError("no depth")
        grid = np.expand_dims(i.astype("int64"), axis)
        kinds = np.arange(depth).reshape([-1 if k == axis % grid.ndim else 1
                                          for k in range(grid.ndim)])
        return np.where(grid == kinds, 2, 1).astype("int64")

    return Sample([data(draw, shape, draw.choice(("int64", "int32")), 0, max(depth, 1))],
                  lambda i: op.one_hot(i, 2, 1, depth, axis), want, f"{depth=} {axis=}")


@sample("strided_slice")
def _strided_slice(draw: Draw) -> Sample:
    shape = shape_of(draw, 1)
    axes = draw.sample(list(range(len(shape))), draw.integer(1, len(shape)))
    bounds = [(draw.integer(-5, 5), draw.choice((draw.integer(-5, 6), 2**31 - 1)),
               draw.choice((1, 2, -1, -2, 0))) for _ in axes]
    begin, end, by = (list(b) for b in zip(*bounds))

    def want(x: Any) -> Any:
        at = [slice(None)] * x.ndim
        for k, a, b, s in zip(axes, begin, end, by):
            at[k] = slice(a, b, s)
        return x[tuple(at)]

    return Sample([data(draw, shape)], lambda x: op.strided_slice(x, axes, begin, end, by), want,
                  f"{axes=} {begin=} {end=} strides={by}")


@sample("dynamic_strided_slice")
def _dynamic_slice(draw: Draw) -> Sample:
    shape = [max(d, 1) for d in shape_of(draw, 1, 2)]
    n = len(shape)
    bounds = [np.array([draw.integer(low, high) for _ in range(n)], "int64")
              for low, high in ((-3, 3), (-3, 5), (1, 2))]

    def want(x: Any, a: Any, b: Any, s: Any) -> Any:
        _integers(a, b, s)
        if not a.shape == b.shape == s.shape == (x.ndim,):
            raise ValueError("bounds")
        return x[tuple(slice(*map(int, v)) for v in zip(a, b, s))]

    return Sample([data(draw, shape), *bounds], op.dynamic_strided_slice, want)


@sample("index_tensor", "index_put")
def _index_tensor(draw: Draw) -> Sample:
    shape = [max(d, 1) for d in shape_of(draw, 1)]
    count, places = draw.integer(1, len(shape)), tuple(max(d, 1) for d in shape_of(draw, 0, 2))
    parts = [_index(draw, places, shape[k]) for k in range(count)]
    x = data(draw, shape)
    if draw.chance(50):
        def want(x: Any, *i: Any) -> Any:
            _integers(*i)
            return x[tuple(i)]

        return Sample([x, *parts], lambda x, *i: op.index_tensor(x, list(i)), want)

    def put(x: Any, v: Any, *i: Any) -> Any:
        _integers(*i)
        _same_type([x, v])
        out = x.copy()
        np.add.at(out, tuple(i), v)
        return out

    return Sample([x, data(draw, (*places, *shape[count:])), *parts],
                  lambda x, v, *i: op.index_put(x, list(i), v, True), put)


@sample("sort", "argsort")
def _sort(draw: Draw) -> Sample:
    name, shape = draw.choice(("sort", "argsort")), shape_of(draw, 1)
    axis, down = axis_in(draw, len(shape)), draw.chance(50)
    x = data(draw, shape, draw.choice(NUMBERS))

    def want(x: Any) -> Any:
        keys = np.sort(x, axis, kind="stable") if name == "sort" else np.argsort(
            -x.astype("f8") if down else x, axis, kind="stable").astype("int32")
        return np.flip(keys, axis) if down and name == "sort" else keys

    return Sample([x], lambda x: getattr(op, name)(x, axis, down), want, f"{axis=} {down=}")


@sample("topk")
def _topk(draw: Draw) -> Sample:
    shape = [max(d, 1) for d in shape_of(draw, 1)]
    axis = draw.integer(-len(shape), len(shape) - 1)
    k, largest = draw.integer(1, shape[axis]), draw.chance(50)

    def want(x: Any) -> Any:
        values = np.sort(x, axis)
        values = np.flip(values, axis) if largest else values
        return np.take(values, range(min(k, x.shape[axis])), axis)

    return Sample([data(draw, shape, draw.choice(("float32", "int32", "int64")))],
                  lambda x: op.topk(x, k, axis, "values", largest), want, f"{k=} {axis=}")


@sample("bucketize")
def _bucketize(draw: Draw) -> Sample:
    edges = np.sort(data(draw, (draw.integer(1, 4),)))
    right = draw.chance(50)
    return Sample([data(draw, shape_of(draw)), edges], lambda x, e: op.bucketize(x, e, right=right),
                  lambda x, e: np.searchsorted(_exactly(_same_type([x, e])[1], 1), x,
                                               "right" if right else "left").astype("int64"))


@sample("nonzero")
def _nonzero(draw: Draw) -> Sample:
    x = data(draw, shape_of(draw, 1), draw.choice(("int32", "bool")))
    return Sample([x], op.nonzero, lambda x: np.argwhere(x).T.astype("int64"))


@sample("unique")
def _unique(draw: Draw) -> Sample:
    shape = shape_of(draw, 1)
    axis = None if draw.chance(50) else axis_in(draw, len(shape))
    return Sample([data(draw, shape, "int32")], lambda x: op.unique(x, axis=axis),
                  lambda x: np.unique(x, axis=axis), f"axis={axis}")


@sample("multinomial_from_uniform")
def _multinomial(draw: Draw) -> Sample:
    rows, classes, each = (draw.integer(1, 3) for _ in range(3))
    prob = np.full((rows, classes), 1 / classes, "float32")
    sample_ = data(draw, (rows * each, 1), "float32", 0, 1)
    rows_ = data(draw, (rows * each, 1), "int64", 0, rows)
    return Sample([prob, sample_, rows_], op.multinomial_from_uniform)


