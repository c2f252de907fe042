"""Operators of random graphs: how each is written, and what it means in numpy.

A row is a function `(draw, x, pool) -> (expression, array)`, or None where it does not apply to x.
It may draw other operands from the pool. Arrays hold what the expression has to compute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlc_lab import relax, tir
from mlc_lab.relax import op as R

from .harness import Draw


@dataclass
class Value:
    """A variable of the graph and what it holds. `exact`: it has no rounding errors, so that
    comparing or rounding it gives the same everywhere."""

    var: Any
    array: Any
    exact: bool

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.array.ndim

    @property
    def fixed(self) -> list[bool]:
        """For each dimension whether its size is a known number."""
        return [not isinstance(d, relax.PrimExpr) if not hasattr(d, "value") else True
                for d in self.var.struct_info.dims]

    @property
    def floats(self) -> bool:
        """Whether it holds float32, float64 or float16."""
        return self.array.dtype.kind == "f"


Pool = list[Value]
Row = Callable[[Draw, Value, Pool], Any]

ROWS: dict[str, Row] = {}
#: the names of the rows, as often as each should be drawn
DRAWN: list[str] = []
#: rows whose result has no rounding errors where their operands have none
EXACT: set[str] = set()


def row(name: str, exact: bool = False, often: int = 1) -> Callable[[Row], Row]:
    """Decorator: a row of the table; `often` says how often it is drawn, compared to others."""
    def add(fn: Row) -> Row:
        ROWS[name] = fn
        DRAWN.extend([name] * often)
        if exact:
            EXACT.add(name)
        return fn

    return add


def any_axis(draw: Draw, x: Value) -> int:
    """An axis of x, from the front or from the end."""
    axis = draw.integer(0, x.ndim - 1)
    return axis - x.ndim if draw.chance(30) else axis


def fixed_axis(draw: Draw, x: Value) -> int | None:
    """An axis of known size."""
    axes = [i for i, fixed in enumerate(x.fixed) if fixed]
    return draw.choice(axes) if axes else None


def like(draw: Draw, x: Value, pool: Pool, same_type: bool = True) -> Value | None:
    """A value of the pool that broadcasts with x."""
    def fits(v: Value) -> bool:
        if same_type and v.array.dtype != x.array.dtype:
            return False
        pairs = zip(v.var.struct_info.dims[::-1], x.var.struct_info.dims[::-1])
        return all(a is b or as_int(a) == as_int(b) is not None or 1 in (as_int(a), as_int(b))
                   for a, b in pairs)

    found = [v for v in pool if fits(v)]
    return draw.choice(found) if found else None


def as_int(dim: Any) -> int | None:
    """The number that a dimension is, if it is known."""
    value = getattr(dim, "value", None)
    return value if isinstance(value, int) else None


# ------------------------------------------------------------------------------- element by element

FLOATS = {
    "exp": (R.exp, np.exp), "tanh": (R.tanh, np.tanh), "sin": (R.sin, np.sin),
    "cos": (R.cos, np.cos), "atan": (R.atan, np.arctan), "sinh": (R.sinh, np.sinh),
    "sigmoid": (R.sigmoid, lambda a: 1 / (1 + np.exp(-a))),
    "silu": (R.nn.silu, lambda a: a / (1 + np.exp(-a))),
    "softplus": (R.nn.softplus, lambda a: np.log1p(np.exp(a))),
    "leakyrelu": (lambda e: R.nn.leakyrelu(e, 0.25), lambda a: np.where(a > 0, a, a * 0.25)),
    "root of square": (lambda e: R.sqrt(R.square(e)), np.abs),
    "log of more than one": (lambda e: R.log(R.add(R.abs(e), relax.const(1, dtype_of(e)))),
                             lambda a: np.log1p(np.abs(a))),
}
EXACTLY = {
    "negative": (R.negative, np.negative), "abs": (R.abs, np.abs),
    "relu": (R.nn.relu, lambda a: np.maximum(a, a.dtype.type(0))),
    "square": (R.square, np.square), "sign": (R.sign, np.sign),
    "floor": (R.floor, np.floor), "ceil": (R.ceil, np.ceil), "round": (R.round, np.round),
    "trunc": (R.trunc, np.trunc),
    "relu6": (R.nn.relu6, lambda a: np.clip(a, 0, 6)),
}


def dtype_of(e: Any) -> str:
    """The element type of an expression."""
    return e.struct_info.dtype


@row("float")
def _float(draw: Draw, x: Value, pool: Pool) -> Any:
    if not x.floats:
        return None
    op, meaning = FLOATS[draw.choice([*FLOATS])]
    return op(x.var), meaning(x.array)


@row("unary", exact=True)
def _unary(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.array.dtype == bool or not (x.floats or x.array.dtype.kind == "i"):
        return None
    names = [n for n in EXACTLY if x.floats or n in ("negative", "abs", "relu", "square", "sign")]
    if not x.exact:
        names = ["negative", "abs", "relu", "square", "relu6"]
    name = draw.choice(names)
    if name == "relu6" and not x.floats:
        return None
    op, meaning = EXACTLY[name]
    return op(x.var), meaning(x.array)


BINARY = {
    "add": (R.add, np.add), "subtract": (R.subtract, np.subtract),
    "multiply": (R.multiply, np.multiply), "maximum": (R.maximum, np.maximum),
    "minimum": (R.minimum, np.minimum),
}
COMPARE = {
    "less": (R.less, np.less), "less_equal": (R.less_equal, np.less_equal),
    "greater": (R.greater, np.greater), "greater_equal": (R.greater_equal, np.greater_equal),
    "equal": (R.equal, np.equal), "not_equal": (R.not_equal, np.not_equal),
}
LOGIC = {
    "and": (R.logical_and, np.logical_and), "or": (R.logical_or, np.logical_or),
    "xor": (R.logical_xor, np.logical_xor),
}


@row("binary", exact=True, often=3)
def _binary(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.array.dtype == bool:
        return None
    y = like(draw, x, pool)
    if y is None:
        return None
    op, meaning = BINARY[draw.choice([*BINARY])]
    exact = y.exact
    if draw.chance(30):
        x, y = y, x
    return op(x.var, y.var), meaning(x.array, y.array), exact


@row("scalar", exact=True)
def _scalar(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.array.dtype == bool:
        return None
    op, meaning = BINARY[draw.choice([*BINARY])]
    number = draw.integer(0, 3) if x.array.dtype.kind == "u" else draw.integer(-2, 3)
    const = relax.const(number, str(x.array.dtype))
    return op(x.var, const), meaning(x.array, x.array.dtype.type(number))


@row("divide")
def _divide(draw: Draw, x: Value, pool: Pool) -> Any:
    y = like(draw, x, pool)
    if y is None or not x.floats:
        return None
    one = relax.const(1, str(x.array.dtype))
    return R.divide(x.var, R.add(R.abs(y.var), one)), x.array / (np.abs(y.array) + 1)


@row("compare", exact=True)
def _compare(draw: Draw, x: Value, pool: Pool) -> Any:
    y = like(draw, x, [v for v in pool if v.exact])
    if y is None or not x.exact or x.array.dtype == bool:
        return None
    op, meaning = COMPARE[draw.choice([*COMPARE])]
    return op(x.var, y.var), meaning(x.array, y.array)


@row("logic", exact=True)
def _logic(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.array.dtype != bool:
        return None
    if draw.chance(25):
        return R.logical_not(x.var), ~x.array
    y = like(draw, x, pool)
    if y is None:
        return None
    op, meaning = LOGIC[draw.choice([*LOGIC])]
    return op(x.var, y.var), meaning(x.array, y.array)


@row("where", exact=True, often=2)
def _where(draw: Draw, x: Value, pool: Pool) -> Any:
    y = like(draw, x, pool)
    if y is None:
        return None
    c = like(draw, x, [v for v in pool if v.array.dtype == bool], same_type=False)
    if c is None or np.broadcast_shapes(c.array.shape, x.array.shape) != x.array.shape:
        if not x.exact or x.array.dtype == bool:
            return None
        zero = relax.const(0, str(x.array.dtype))
        return R.where(R.greater(x.var, zero), x.var, y.var), np.where(
            x.array > 0, x.array, y.array), y.exact
    return R.where(c.var, x.var, y.var), np.where(c.array, x.array, y.array), y.exact


@row("astype", exact=True)
def _astype(draw: Draw, x: Value, pool: Pool) -> Any:
    to = draw.choice(["float32", "float64", "int32", "int64"] if x.exact else
                     ["float32", "float64"])
    return R.astype(x.var, to), x.array.astype(to)


@row("clip", exact=True)
def _clip(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.array.dtype == bool:
        return None
    low = draw.integer(0, 2)
    return R.clip(x.var, low, low + 5), np.clip(x.array, low, low + 5)


# ------------------------------------------------------------------------------- reductions


@row("reduce", exact=True, often=3)
def _reduce(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.array.dtype == bool or x.ndim == 0:
        return None
    name = draw.choice(["sum", "max", "min", "mean", "variance", "std"])
    if name in ("mean", "variance", "std") and not (x.floats and 0 not in x.array.shape):
        return None
    axes = sorted(draw.sample(range(x.ndim), draw.integer(1, x.ndim)))
    keep = draw.chance(50)
    given: Any = axes[0] if len(axes) == 1 and draw.chance(50) else axes
    if len(axes) == x.ndim and draw.chance(50):
        given = None
    meaning = {"sum": np.sum, "max": np.max, "min": np.min, "mean": np.mean,
               "variance": np.var, "std": np.std}[name]
    wide = x.array.astype("float64") if x.floats else x.array
    result = meaning(wide, axis=tuple(axes), keepdims=keep).astype(x.array.dtype)
    return getattr(R, name)(x.var, given, keepdims=keep), np.asarray(result), name in (
        "sum", "max", "min")


@row("argmax", exact=True)
def _argmax(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.array.dtype == bool or x.ndim == 0 or not x.exact:
        return None
    axis, keep = any_axis(draw, x), draw.chance(50)
    name = draw.choice(["argmax", "argmin"])
    found = getattr(np, name)(x.array, axis=axis, keepdims=keep)
    return getattr(R, name)(x.var, axis, keep), np.asarray(found).astype("int64")


@row("cumsum", exact=True)
def _cumsum(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.array.dtype == bool or x.ndim == 0:
        return None
    axis = any_axis(draw, x)
    return R.cumsum(x.var, axis), np.cumsum(x.array, axis=axis, dtype=x.array.dtype)


# ------------------------------------------------------------------------------- other shapes


@row("permute", exact=True)
def _permute(draw: Draw, x: Value, pool: Pool) -> Any:
    axes = draw.permutation(range(x.ndim))
    return R.permute_dims(x.var, axes), np.transpose(x.array, axes)


@row("reshape", exact=True)
def _reshape(draw: Draw, x: Value, pool: Pool) -> Any:
    if not all(x.fixed):
        if draw.chance(50):
            return R.flatten(x.var), x.array.reshape(-1)
        tail = x.array.shape[1:]
        if not all(x.fixed[1:]) or 0 in tail:
            return None
        return R.reshape(x.var, (-1, int(np.prod(tail, dtype=int)))), x.array.reshape(
            x.array.shape[0], -1)
    size = x.array.size
    divisors = [d for d in range(1, size + 1) if size % d == 0]
    if not divisors:
        return None
    first = draw.choice(divisors)
    shape = draw.choice([(first, size // first), (size // first, 1, first), (size,)])
    return R.reshape(x.var, shape), x.array.reshape(shape)


@row("expand", exact=True)
def _expand(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.ndim > 4:
        return None
    axis = draw.integer(0, x.ndim)
    return R.expand_dims(x.var, axis), np.expand_dims(x.array, axis)


@row("squeeze", exact=True)
def _squeeze(draw: Draw, x: Value, pool: Pool) -> Any:
    axes = [i for i, d in enumerate(x.array.shape) if d == 1 and x.fixed[i]]
    if not axes:
        return None
    axis = draw.choice(axes)
    return R.squeeze(x.var, axis), np.squeeze(x.array, axis)


@row("broadcast", exact=True)
def _broadcast(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.ndim > 3:
        return None
    shape = (draw.integer(1, 3), *x.var.struct_info.dims)
    return R.broadcast_to(x.var, shape), np.broadcast_to(
        x.array, (as_int(shape[0]) or shape[0], *x.array.shape))


@row("concat", exact=True)
def _concat(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.ndim == 0:
        return None
    axis = any_axis(draw, x)
    at = axis % x.ndim

    def fits(v: Value) -> bool:
        return v.array.dtype == x.array.dtype and v.ndim == x.ndim and all(
            i == at or a is b or as_int(a) == as_int(b) is not None for i, (a, b) in enumerate(
                zip(v.var.struct_info.dims, x.var.struct_info.dims)))

    parts = [draw.choice([v for v in pool if fits(v)]) for _ in range(draw.integer(1, 2))]
    return R.concat([x.var, *(p.var for p in parts)], axis), np.concatenate(
        [x.array, *(p.array for p in parts)], axis), all(p.exact for p in parts)


@row("split", exact=True)
def _split(draw: Draw, x: Value, pool: Pool) -> Any:
    axis = fixed_axis(draw, x)
    if axis is None or x.array.shape[axis] < 2:
        return None
    extent = x.array.shape[axis]
    if draw.chance(50):
        parts = draw.choice([n for n in range(2, extent + 1) if extent % n == 0])
        given, arrays = parts, np.split(x.array, parts, axis)
    else:
        given = sorted({draw.integer(1, extent - 1) for _ in range(2)})
        arrays = np.split(x.array, given, axis)
    at = draw.integer(0, len(arrays) - 1)
    return relax.TupleGetItem(R.split(x.var, given, axis), at), arrays[at]


@row("stack", exact=True)
def _stack(draw: Draw, x: Value, pool: Pool) -> Any:
    same = [v for v in pool if v.array.dtype == x.array.dtype and v.ndim == x.ndim < 4 and all(
        a is b or as_int(a) == as_int(b) is not None
        for a, b in zip(v.var.struct_info.dims, x.var.struct_info.dims))]
    if not same:
        return None
    y, axis = draw.choice(same), draw.integer(0, x.ndim)
    return R.stack([x.var, y.var], axis), np.stack([x.array, y.array], axis), y.exact


@row("slice", exact=True)
def _slice(draw: Draw, x: Value, pool: Pool) -> Any:
    axis = fixed_axis(draw, x)
    if axis is None:
        return None
    extent = x.array.shape[axis]
    begin, end = draw.integer(-extent, extent), draw.integer(-extent, extent + 2)
    stride = draw.choice([1, 2, -1])
    index = [slice(None)] * x.ndim
    index[axis] = slice(begin, end, stride)
    result = x.array[tuple(index)]
    if 0 in result.shape:
        return None
    return R.strided_slice(x.var, [axis], [begin], [end], [stride]), result


@row("take", exact=True)
def _take(draw: Draw, x: Value, pool: Pool) -> Any:
    axis = fixed_axis(draw, x)
    if axis is None or x.array.shape[axis] == 0:
        return None
    picks = [draw.integer(0, x.array.shape[axis] - 1) for _ in range(draw.integer(1, 4))]
    return R.take(x.var, relax.const(np.array(picks, "int64")), axis), np.take(
        x.array, picks, axis)


@row("flip", exact=True)
def _flip(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.ndim == 0:
        return None
    axis = any_axis(draw, x)
    return R.flip(x.var, axis), np.flip(x.array, axis)


@row("repeat", exact=True)
def _repeat(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.ndim == 0 or x.array.size > 200:
        return None
    axis, times = any_axis(draw, x), draw.integer(1, 3)
    if draw.chance(50):
        return R.repeat(x.var, times, axis), np.repeat(x.array, times, axis)
    times = [draw.integer(1, 2) for _ in range(x.ndim)]
    return R.tile(x.var, times), np.tile(x.array, times)


@row("pad", exact=True)
def _pad(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.array.dtype == bool or x.ndim == 0:
        return None
    widths = [draw.integer(0, 2) for _ in range(2 * x.ndim)]
    return R.nn.pad(x.var, widths, "constant", 2.0), np.pad(
        x.array, list(zip(widths[::2], widths[1::2])), constant_values=2)


@row("triangle", exact=True)
def _triangle(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.ndim < 2:
        return None
    k = draw.integer(-2, 2)
    if draw.chance(50):
        return R.tril(x.var, k), np.tril(x.array, k)
    return R.triu(x.var, k), np.triu(x.array, k)


@row("topk", exact=True)
def _topk(draw: Draw, x: Value, pool: Pool) -> Any:
    axis = fixed_axis(draw, x)
    if axis is None or not x.exact or x.array.dtype == bool or x.array.shape[axis] == 0:
        return None
    k, largest = draw.integer(1, x.array.shape[axis]), draw.chance(50)
    # a stable order: the first of equal values comes first
    keys = x.array.astype("float64") * (-1 if largest else 1)
    order = np.take(np.argsort(keys, axis, kind="stable"), range(k), axis)
    both = R.topk(x.var, k, axis, "both", largest, "int32")
    if draw.chance(50):
        return relax.TupleGetItem(both, 1), order.astype("int32")
    return relax.TupleGetItem(both, 0), np.take_along_axis(x.array, order, axis)


@row("one_hot", exact=True)
def _one_hot(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.array.dtype.kind != "i" or x.ndim > 3:
        return None
    depth = draw.integer(1, 4)
    on, off = relax.PrimValue(tir.FloatImm("float32", 2.0)), relax.PrimValue(
        tir.FloatImm("float32", -1.0))
    hit = x.array[..., None] == np.arange(depth)
    return R.one_hot(x.var, on, off, depth, -1), np.where(hit, 2, -1).astype("float32")


@row("scatter", exact=True)
def _scatter(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.ndim == 0 or not all(x.fixed) or x.array.dtype == bool or x.array.size == 0:
        return None
    axis = draw.integer(0, x.ndim - 1)
    rng = np.random.default_rng(draw.integer(0, 99))
    places = np.argsort(rng.random(x.array.shape), axis)  # no element twice
    places = np.take(places, range(draw.integer(1, x.array.shape[axis])), axis)
    new = rng.integers(-2, 3, places.shape).astype(x.array.dtype)
    result, how = x.array.copy(), draw.choice(["update", "add", "max"])
    at = np.take_along_axis(x.array, places, axis)
    np.put_along_axis(result, places, {"update": new, "add": at + new,
                                       "max": np.maximum(at, new)}[how], axis)
    return R.scatter_elements(x.var, relax.const(places), relax.const(new), axis, how), result


@row("sort", exact=True)
def _sort(draw: Draw, x: Value, pool: Pool) -> Any:
    if x.ndim == 0 or x.array.dtype == bool:
        return None
    axis = any_axis(draw, x)
    return R.sort(x.var, axis), np.sort(x.array, axis)


@row("gather", exact=True)
def _gather(draw: Draw, x: Value, pool: Pool) -> Any:
    axis = fixed_axis(draw, x)
    if axis is None or x.array.size == 0 or not all(x.fixed):
        return None
    rng = np.random.default_rng(draw.integer(0, 99))
    picks = rng.integers(0, x.array.shape[axis], x.array.shape)
    return R.gather_elements(x.var, relax.const(picks), axis), np.take_along_axis(
        x.array, picks, axis)
