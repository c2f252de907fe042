"""Arguments of every operator of Relax, and what numpy or torch makes of them.

A maker draws a `Sample`: arrays, the call, and the same in numpy or torch, which raises for what
does not fit. `reference` is None where there is none that is easy: then only what is inferred is
compared with what is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlc_lab.compat.early_operators import dense
from mlc_lab.relax import op

from .harness import Draw

try:
    import torch
except ImportError:  # these operators are then only checked for what is inferred
    torch = None


@dataclass
class Sample:
    """Arrays, a call of an operator on them, and what it gives in numpy."""

    arrays: list[np.ndarray]
    call: Callable[..., Any]
    reference: Callable[..., Any] | None = None
    text: str = ""


Maker = Callable[[Draw], Sample]
SAMPLES: dict[str, Maker] = {}


def sample(*names: str) -> Callable[[Maker], Maker]:
    """Decorator: the maker of the samples of operators."""
    def add(maker: Maker) -> Maker:
        for name in names:
            SAMPLES[f"relax.{name}"] = maker
        return maker

    return add


def shape_of(draw: Draw, low: int = 0, high: int = 3, most: int = 4) -> tuple[int, ...]:
    """A shape of low to high dimensions; sometimes one has no extent."""
    dims = [draw.integer(1, most) for _ in range(draw.integer(low, high))]
    if dims and draw.chance(4):
        dims[draw.integer(0, len(dims) - 1)] = 0
    return tuple(dims)


def data(draw: Draw, shape: Sequence[int], dtype: str = "float32", low: float = -2,
         high: float = 3) -> np.ndarray:
    """Random numbers."""
    rng = np.random.default_rng(draw.integer(0, 999))
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.startswith(("int", "uint")):
        return np.asarray(rng.integers(0 if dtype[0] == "u" else int(low), int(high), shape),
                          dtype)
    return np.asarray(rng.uniform(low, high, shape)).astype(dtype)


def axis_in(draw: Draw, ndim: int) -> int:
    """An axis, counted from the front or from the end; now and then one that is none."""
    if draw.chance(6):
        return draw.choice((ndim, -ndim - 1, 7))
    return draw.integer(-ndim, ndim - 1) if ndim else 0


def by_torch(fn: Callable[..., Any], wants: tuple[type, ...] = ()) -> Callable[..., Any] | None:
    """A function of arrays that computes with torch; None where there is no torch."""
    if torch is None:
        return None

    def run(*arrays: np.ndarray) -> Any:
        out = fn(*(torch.from_numpy(np.array(a)) for a in arrays))
        return [o.numpy() for o in out] if isinstance(out, (tuple, list)) else out.numpy()

    return run


FLOATS = ("float32", "float64", "float16")
NUMBERS = (*FLOATS, "int32", "int64", "int8", "uint8")
ALL = (*NUMBERS, "bool")


# ------------------------------------------------------------------------------- elementwise


def _unary(name: str, reference: Any, dtypes: Sequence[str] = FLOATS,
           build: Any = None) -> None:
    build = build or getattr(op, name)

    def make(draw: Draw) -> Sample:
        x = data(draw, shape_of(draw), draw.choice(dtypes))
        return Sample([x], build, reference)

    SAMPLES[f"relax.{name}"] = make


def _erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=["f8"])(x)


for _name, _fn in {
        "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
        "atan": np.arctan, "atanh": np.arctanh, "cos": np.cos, "cosh": np.cosh, "erf": _erf,
        "exp": np.exp, "log": np.log, "rsqrt": lambda x: 1 / np.sqrt(x),
        "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "sin": np.sin, "sinh": np.sinh,
        "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh}.items():
    _unary(_name, lambda x, fn=_fn: fn(x.astype("f8")).astype(x.dtype))
for _name, _fn in {"abs": np.abs, "ceil": np.ceil, "floor": np.floor, "negative": np.negative,
                   "round": np.round, "sign": np.sign, "square": np.square,
                   "trunc": np.trunc}.items():
    _unary(_name, lambda x, fn=_fn: fn(x).astype(x.dtype), NUMBERS)
for _name in ("isfinite", "isinf", "isnan"):
    _unary(_name, getattr(np, _name), NUMBERS)
_unary("bitwise_not", np.invert, ("int32", "int8", "uint8", "bool"))
_unary("logical_not", np.logical_not, ("bool", "int32", "float32"))
_unary("nn.relu", lambda x: np.maximum(x, np.zeros((), x.dtype)), NUMBERS, op.nn.relu)


def _with_torch(name: str, function: Any) -> None:
    _unary(f"nn.{name}", by_torch(function), ("float32", "float64"), getattr(op.nn, name))


_with_torch("gelu", lambda x: torch.nn.functional.gelu(x))
_with_torch("gelu_tanh", lambda x: torch.nn.functional.gelu(x, approximate="tanh"))
_with_torch("silu", lambda x: torch.nn.functional.silu(x))
_with_torch("selu", lambda x: torch.nn.functional.selu(x))
_with_torch("leakyrelu", lambda x: torch.nn.functional.leaky_relu(x, 0.01))
_with_torch("softplus", lambda x: torch.nn.functional.softplus(x))


def _pair_of_shapes(draw: Draw) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that broadcast."""
    whole = shape_of(draw)
    a, b = (tuple(1 if draw.chance(20) else d for d in whole) for _ in range(2))
    if draw.chance(20):
        b = b[draw.integer(0, len(b)):]
    return (a, b) if draw.chance(50) else (b, a)


def _binary(name: str, reference: Any, dtypes: Sequence[str], positive: bool = False) -> None:
    def make(draw: Draw) -> Sample:
        first, second = _pair_of_shapes(draw)
        dtype = draw.choice(dtypes)
        x = data(draw, first, dtype, *((0, 4) if positive else ()))
        y = data(draw, second, dtype, *((1, 4) if positive else ()))
        if positive and y.dtype.kind in "iu":
            y = np.asarray(np.maximum(y, 1), dtype)
        return Sample([x, y], getattr(op, name), lambda a, b: _typed(reference, a, b))

    SAMPLES[f"relax.{name}"] = make


def _typed(reference: Any, a: Any, b: Any) -> Any:
    if a.dtype != b.dtype and not (reference in COMPARISONS and _same_order(a.dtype, b.dtype)):
        raise TypeError("two dtypes")
    with np.errstate(all="ignore"):
        out = reference(a, b)
    return out if out.dtype == bool else out.astype(a.dtype)


COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


def _same_order(a: Any, b: Any) -> bool:
    """Whether numbers of two dtypes are compared: but for truth values, and signed integers beside
    unsigned ones that have as many bits or more."""
    if "b" in (a.kind, b.kind):
        return False
    signed = {x.kind: x.itemsize for x in (a, b)}
    return set(signed) != {"i", "u"} or signed["i"] > signed["u"]


def _divide(a: Any, b: Any) -> Any:
    return np.trunc(a / b) if a.dtype.kind in "iu" else a / b


for _name, _fn in {"add": np.add, "multiply": np.multiply, "maximum": np.maximum,
                   "minimum": np.minimum}.items():
    _binary(_name, _fn, ALL)
_binary("subtract", np.subtract, NUMBERS)
for _name, _fn in {"divide": _divide, "floor_divide": np.floor_divide, "power": np.power,
                   "mod": np.fmod, "floor_mod": np.remainder}.items():
    _binary(_name, _fn, ("float32", "float64", "int32", "int64", "uint8"), positive=True)
for _name, _fn in {"log_add_exp": np.logaddexp, "atan2": np.arctan2}.items():
    _binary(_name, _fn, FLOATS)
for _name in ("logical_and", "logical_or", "logical_xor"):
    _binary(_name, getattr(np, _name), ("bool", "int32", "float32"))
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    _binary(_name, getattr(np, _name), ("int32", "uint8", "bool", "int64"))
for _name in ("left_shift", "right_shift"):
    _binary(_name, getattr(np, _name), ("int32", "uint8", "int64"), positive=True)
for _fn in COMPARISONS:
    _binary(_fn.__name__, _fn, ALL)


@sample("clip")
def _clip(draw: Draw) -> Sample:
    low, high = draw.integer(-2, 1), draw.integer(0, 3)
    x = data(draw, shape_of(draw), draw.choice(NUMBERS))
    return Sample([x], lambda x: op.clip(x, low, high), lambda x: np.minimum(np.maximum(
        x.astype("f8") if x.dtype.kind == "u" else x, low), high).astype(x.dtype)
        if low <= high else None)


@sample("astype", "wrap_param")
def _astype(draw: Draw) -> Sample:
    source, target = draw.choice(ALL), draw.choice(ALL)
    build = draw.choice((op.astype, op.wrap_param))
    x = data(draw, shape_of(draw), source)
    return Sample([x], lambda x: build(x, target), lambda x: (
        x if x.dtype.kind != "f" else x if target[0] == "f" or target == "bool"
        else np.trunc(x).astype("int64")).astype(target))


@sample("where")
def _where(draw: Draw) -> Sample:
    a, b = _pair_of_shapes(draw)
    cond = data(draw, draw.choice((a, b, ())), "bool")
    dtype = draw.choice(ALL)
    return Sample([cond, data(draw, a, dtype), data(draw, b, dtype)], op.where, _where_in_numpy)


def _where_in_numpy(c: Any, a: Any, b: Any) -> Any:
    if c.dtype != bool or a.dtype != b.dtype:
        raise TypeError("dtypes")
    return np.where(c, a, b)


@sample("ewise_fma")
def _fma(draw: Draw) -> Sample:
    shape, dtype = shape_of(draw), draw.choice(("float32", "float64"))
    return Sample([data(draw, shape, dtype) for _ in range(3)], op.ewise_fma,
                  lambda a, b, c: a * b + c)


# ------------------------------------------------------------------------------- making tensors


def _shape_arg(draw: Draw) -> tuple[int, ...]:
    shape = shape_of(draw)
    return (*shape, -2) if draw.chance(5) else shape


@sample("full")
def _full(draw: Draw) -> Sample:
    shape, dtype = _shape_arg(draw), draw.choice(NUMBERS)
    return Sample([], lambda: op.full(shape, 2, dtype), lambda: np.full(shape, 2, dtype))


@sample("full_like")
def _full_like(draw: Draw) -> Sample:
    x, dtype = data(draw, shape_of(draw), draw.choice(NUMBERS)), draw.choice((None, *NUMBERS))
    return Sample([x], lambda x: op.full_like(x, 1, dtype), lambda x: np.full_like(x, 1, dtype))


@sample("zeros", "ones")
def _zeros(draw: Draw) -> Sample:
    name, shape, dtype = draw.choice(("zeros", "ones")), _shape_arg(draw), draw.choice(ALL)
    return Sample([], lambda: getattr(op, name)(shape, dtype),
                  lambda: getattr(np, name)(shape, dtype))


@sample("zeros_like", "ones_like")
def _zeros_like(draw: Draw) -> Sample:
    name = draw.choice(("zeros_like", "ones_like"))
    x, dtype = data(draw, shape_of(draw), draw.choice(ALL)), draw.choice((None, *ALL))
    return Sample([x], lambda x: getattr(op, name)(x, dtype),
                  lambda x: getattr(np, name)(x, dtype))


@sample("arange")
def _arange(draw: Draw) -> Sample:
    start, end = draw.integer(-5, 5), draw.integer(-5, 9)
    step, dtype = draw.choice((1, 2, 3, -1, -2, 0)), draw.choice(("int64", "float32", "int32"))
    return Sample([], lambda: op.arange(start, end, step, dtype),
                  lambda: np.arange(start, end, step, dtype))


@sample("eye")
def _eye(draw: Draw) -> Sample:
    n, m, k = draw.integer(0, 4), draw.integer(0, 4), draw.integer(-3, 3)
    dtype = draw.choice(NUMBERS)
    return Sample([], lambda: op.eye(n, m, k, dtype), lambda: np.eye(n, m, k, dtype))


@sample("eye_like")
def _eye_like(draw: Draw) -> Sample:
    k = draw.integer(-3, 3)
    return Sample([data(draw, shape_of(draw, 2, 2))], lambda x: op.eye_like(x, k),
                  lambda x: np.eye(*_exactly(x, 2).shape, k, x.dtype))


def _exactly(x: Any, ndim: int) -> Any:
    if x.ndim != ndim:
        raise ValueError(f"{x.ndim} dimensions")
    return x


@sample("tril", "triu")
def _triangle(draw: Draw) -> Sample:
    name, k = draw.choice(("tril", "triu")), draw.integer(-3, 3)
    return Sample([data(draw, shape_of(draw, 2), draw.choice(NUMBERS))],
                  lambda x: getattr(op, name)(x, k),
                  lambda x: getattr(np, name)(x if x.ndim > 1 else 1 / 0, k))


# ------------------------------------------------------------------------------- reductions


def _axes(draw: Draw, ndim: int) -> Any:
    kind = draw.integer(0, 3)
    if kind == 0 or not ndim:
        return None
    if kind == 1:
        return axis_in(draw, ndim)
    return tuple(draw.sample(list(range(ndim)), draw.integer(1, ndim)))


def _reduction(name: str, reference: Any, dtypes: Sequence[str]) -> None:
    def make(draw: Draw) -> Sample:
        shape = tuple(max(d, 1) for d in shape_of(draw))
        axis, keep = _axes(draw, len(shape)), draw.chance(50)
        x = data(draw, shape, draw.choice(dtypes))
        if axis is not None and not isinstance(axis, tuple) and name.startswith("arg"):
            axis = int(axis)
        elif name.startswith("arg") and axis is not None:
            axis = int(axis[0])
        return Sample([x], lambda x: getattr(op, name)(x, axis, keep),
                      lambda x: np.asarray(reference(x, axis=axis, keepdims=keep)).astype(
                          "int64" if name.startswith("arg") else x.dtype), f"axis={axis}")

    SAMPLES[f"relax.{name}"] = make


for _name in ("sum", "prod"):
    _reduction(_name, getattr(np, _name), NUMBERS)
for _name in ("max", "min", "argmax", "argmin"):
    _reduction(_name, getattr(np, _name), NUMBERS)
for _name, _fn in {"mean": np.mean, "std": np.std, "variance": np.var}.items():
    _reduction(_name, _fn, ("float32", "float64"))


@sample("cumsum", "cumprod")
def _scan(draw: Draw) -> Sample:
    name, shape = draw.choice(("cumsum", "cumprod")), shape_of(draw, 1)
    axis = None if draw.chance(20) else axis_in(draw, len(shape))
    x = data(draw, shape, draw.choice(("float32", "int32", "int64")))
    return Sample([x], lambda x: getattr(op, name)(x, axis),
                  lambda x: getattr(np, name)(x, axis).astype(x.dtype))


# ------------------------------------------------------------------------------- products


@sample("matmul")
def _matmul(draw: Draw) -> Sample:
    n, m, k = (draw.integer(1, 4) for _ in range(3))
    first, second = _pair_of_shapes(draw)
    a = (k,) if draw.chance(15) else (*first[:2], n, k)
    b = (k,) if draw.chance(15) else (*second[:2], k, m)
    if len(first) > 2 or len(second) > 2:
        a, b = a[-2:], b[-2:]
    dtype = draw.choice(("float32", "float64", "int32", "float16"))
    return Sample([data(draw, a, dtype), data(draw, b, dtype)], op.matmul,
                  lambda a, b: _typed(np.matmul, a, b))


@sample("trilu")
def _trilu(draw: Draw) -> Sample:
    k, upper = draw.integer(-3, 3), draw.chance(50)
    return Sample([data(draw, (2, 3, 4), "float32")], lambda x: op.trilu(x, k, upper),
                  lambda x: (np.triu if upper else np.tril)(x, k), f"{k=} {upper=}")


@sample("nn.dense")
def _dense(draw: Draw) -> Sample:
    n, m, k = (draw.integer(1, 4) for _ in range(3))
    return Sample([data(draw, (n, k), "float32"), data(draw, (m, k), "float32")], dense,
                  lambda a, b: _typed(np.matmul, a, b.T))


@sample("outer")
def _outer(draw: Draw) -> Sample:
    return Sample([data(draw, shape_of(draw, 1, 1)) for _ in range(2)], op.outer,
                  lambda a, b: np.outer(_exactly(a, 1), _exactly(b, 1)))


@sample("einsum")
def _einsum(draw: Draw) -> Sample:
    text = draw.choice(("ij,jk->ik", "ij,j->i", "i,i->i", "i,i->", "ij->ji", "ij->", "bij,bjk->bik",
                        "ij,ij", "i,j->ij", "...i,i->...", "ij,jk,kl->il"))
    sizes = {c: draw.integer(1, 4) for c in "bijkl"}
    shapes = [[2] * ("..." in part) + [sizes[c] for c in part.replace("...", "")]
              for part in text.partition("->")[0].split(",")]
    dtype = draw.choice(("float32", "int32"))
    return Sample([data(draw, s, dtype) for s in shapes], lambda *xs: op.einsum(list(xs), text),
                  lambda *xs: np.einsum(text, *_same_type(xs)), text)


def _same_type(arrays: Any) -> Any:
    if len({a.dtype for a in arrays}) > 1:
        raise TypeError("several dtypes")
    return arrays


# ------------------------------------------------------------------------------- moving data


@sample("permute_dims")
def _permute(draw: Draw) -> Sample:
    shape = shape_of(draw)
    axes = None if draw.chance(20) else draw.permutation(list(range(len(shape))))
    return Sample([data(draw, shape, draw.choice(ALL))], lambda x: op.permute_dims(x, axes),
                  lambda x: np.transpose(x, axes), f"axes={axes}")


@sample("expand_dims")
def _expand(draw: Draw) -> Sample:
    shape = shape_of(draw, 0, 2)
    axis = [axis_in(draw, len(shape) + k + 1) for k in range(draw.integer(1, 2))]
    return Sample([data(draw, shape)], lambda x: op.expand_dims(x, axis),
                  lambda x: np.expand_dims(x, tuple(axis)), f"axis={axis}")


@sample("squeeze")
def _squeeze(draw: Draw) -> Sample:
    shape = list(shape_of(draw))
    if shape:
        shape[draw.integer(0, len(shape) - 1)] = 1
    axis = [shape.index(1)] if 1 in shape and draw.chance(60) else None
    return Sample([data(draw, shape)], lambda x: op.squeeze(x, axis),
                  lambda x: np.squeeze(x, None if axis is None else tuple(axis)))


@sample("flatten")
def _flatten(draw: Draw) -> Sample:
    return Sample([data(draw, shape_of(draw), draw.choice(ALL))], op.flatten, np.ravel)


@sample("reshape")
def _reshape(draw: Draw) -> Sample:
    shape = [max(d, 1) for d in shape_of(draw)]
    target = draw.permutation(shape)
    kind = draw.integer(0, 4)
    if kind == 1 and target:
        target[draw.integer(0, len(target) - 1)] = -1
    elif kind == 2:
        target = [-1, *shape[1:]] if shape else [-1]
    elif kind == 3:
        target = [*target, draw.choice((1, 2, -2, -3))]
    return Sample([data(draw, shape)], lambda x: op.reshape(x, target),
                  lambda x: np.reshape(x, _not_below(target)), f"shape={target}")


def _not_below(shape: Sequence[int]) -> Sequence[int]:
    if min(shape, default=0) < -1:
        raise ValueError("negative extent")
    return shape


@sample("broadcast_to")
def _broadcast_to(draw: Draw) -> Sample:
    a, b = _pair_of_shapes(draw)
    target = np.broadcast_shapes(a, b)
    return Sample([data(draw, a)], lambda x: op.broadcast_to(x, target),
                  lambda x: np.broadcast_to(x, target), f"shape={target}")


def _collapsed(x: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    np.broadcast_to(np.zeros(shape), x.shape)
    lead = x.ndim - len(shape)
    axes = (*range(lead), *(lead + k for k, d in enumerate(shape) if d == 1))
    return x.sum(axis=axes, keepdims=True).reshape(shape).astype(x.dtype)


@sample("collapse_sum_to", "collapse_sum_like")
def _collapse(draw: Draw) -> Sample:
    a, b = _pair_of_shapes(draw)
    whole, part = np.broadcast_shapes(a, b), a
    if draw.chance(50):
        return Sample([data(draw, whole)], lambda x: op.collapse_sum_to(x, part),
                      lambda x: _collapsed(x, part), f"shape={part}")
    return Sample([data(draw, whole), data(draw, part)], op.collapse_sum_like,
                  lambda x, y: _collapsed(x, y.shape))


@sample("concat")
def _concat(draw: Draw) -> Sample:
    shape = list(shape_of(draw, 1))
    axis = None if draw.chance(20) else axis_in(draw, len(shape))
    arrays, dtype = [], draw.choice(ALL)
    for _ in range(draw.integer(1, 3)):
        if axis is not None and -len(shape) <= axis < len(shape):
            shape[axis] = draw.integer(1, 3)
        arrays.append(data(draw, shape, dtype))
    return Sample(arrays, lambda *xs: op.concat(list(xs), axis),
                  lambda *xs: np.concatenate(_same_type(xs), axis), f"axis={axis}")


@sample("stack")
def _stack(draw: Draw) -> Sample:
    shape, dtype = shape_of(draw), draw.choice(ALL)
    axis = axis_in(draw, len(shape) + 1)
    return Sample([data(draw, shape, dtype) for _ in range(draw.integer(1, 3))],
                  lambda *xs: op.stack(list(xs), axis),
                  lambda *xs: np.stack(_same_type(xs), axis), f"axis={axis}")


@sample("split")
def _split(draw: Draw) -> Sample:
    shape = [max(d, 1) for d in shape_of(draw, 1)]
    axis = draw.integer(0, len(shape) - 1)
    if draw.chance(50):
        cuts = sorted(draw.integer(0, shape[axis]) for _ in range(draw.integer(1, 2)))
        return Sample([data(draw, shape)], lambda x: op.split(x, cuts, axis),
                      lambda x: np.split(x, cuts, axis), f"cuts={cuts} axis={axis}")
    count = draw.integer(1, 3)
    shape[axis] = count * draw.integer(1, 2)
    return Sample([data(draw, shape)], lambda x: op.split(x, count, axis), None,
                  f"sections={count} axis={axis}")


@sample("tile")
def _tile(draw: Draw) -> Sample:
    repeats = [draw.integer(0, 3) for _ in range(draw.integer(1, 3))]
    return Sample([data(draw, shape_of(draw))], lambda x: op.tile(x, repeats),
                  lambda x: np.tile(x, repeats), f"repeats={repeats}")


@sample("repeat")
def _repeat(draw: Draw) -> Sample:
    shape, times = shape_of(draw, 1), draw.choice((1, 2, 3, 0, -1))
    axis = None if draw.chance(20) else axis_in(draw, len(shape))
    return Sample([data(draw, shape)], lambda x: op.repeat(x, times, axis),
                  lambda x: np.repeat(x, times, axis), f"repeats={times} axis={axis}")


@sample("flip")
def _flip(draw: Draw) -> Sample:
    shape = shape_of(draw, 1)
    axis = axis_in(draw, len(shape))
    return Sample([data(draw, shape)], lambda x: op.flip(x, axis), lambda x: np.flip(x, axis))


@sample("meshgrid")
def _meshgrid(draw: Draw) -> Sample:
    kind = draw.choice(("ij", "xy"))
    arrays = [data(draw, shape_of(draw, 1, 1)) for _ in range(draw.integer(1, 3))]
    return Sample(arrays, lambda *xs: op.meshgrid(list(xs), kind),
                  lambda *xs: np.meshgrid(*(x if x.ndim < 2 else 1 / 0 for x in _same_type(xs)),
                                          indexing=kind), kind)


@sample("layout_transform")
def _layout_transform(draw: Draw) -> Sample:
    shape = [max(d, 1) for d in shape_of(draw, 2, 2)]
    by, above = draw.integer(1, 3), draw.integer(-1, 2)

    def want(x: np.ndarray) -> np.ndarray:
        if above < 0:
            raise ValueError("places begin at 0")
        wide = np.pad(_exactly(x, 2), [(above, 0), (0, -x.shape[1] % by)])
        return wide.reshape(wide.shape[0], -1, by).transpose(1, 0, 2)

    return Sample([data(draw, shape)], lambda x: op.layout_transform(
        x, lambda i, j: (j // by, i + above, j % by)), want, f"{by}, {above}")


from . import operator_samples_index, operator_samples_nn  # noqa: F401  (more rows)
