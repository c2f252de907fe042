"""Rules of operators that move elements, make tensors, or reduce them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from ....tir import op as O
from ....tir.expr import PrimExpr
from ... import op
from ...expr import PrimValue
from ...struct_info import TensorStructInfo, as_dim, same_dim
from ..common import counted_from_front, from_front, slice_bounds
from .given import Sizes
from .importer import Importer, dtype_of, rule

if TYPE_CHECKING:
    from ...expr import Expr


@rule("Constant")
def _constant(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    for name, dtype in (("value", None), ("value_float", "float32"), ("value_int", "int64"),
                        ("value_floats", "float32"), ("value_ints", "int64")):
        if name in attrs:
            return np.asarray(attrs[name], dtype)
    raise ValueError("a constant without a value that can be translated")


@rule("ConstantOfShape")
def _constant_of_shape(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    value = np.asarray(attrs.get("value", np.zeros(1, "float32"))).reshape(-1)[0]
    sizes = im.numbers(inputs[0], "the shape")
    if all(isinstance(s, int) for s in sizes) and np.prod(sizes, initial=1) < 2**16:
        return np.full(sizes, value, value.dtype)
    return im.emit(op.full(sizes, im.tensor(np.asarray(value)), str(value.dtype)))


@rule("Shape")
def _shape(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    sizes = im.shape(inputs[0])[attrs.get("start", 0):attrs.get("end")]
    return np.array(sizes, "int64") if all(isinstance(s, int) for s in sizes) else Sizes(sizes)


@rule("Size")
def _size(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    total: Any = 1
    for d in im.shape(inputs[0]):
        total = total * d
    return np.array(total) if isinstance(total, int) else Sizes([total], 0)


@rule("Reshape")
def _reshape(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, sizes = inputs[0], im.numbers(inputs[1] if len(inputs) > 1 else attrs["shape"], "the shape")
    if attrs.get("allowzero", 0) and any(isinstance(s, int) and s == 0 for s in sizes):
        return im.emit(op.zeros(sizes, im.dtype(x)))  # nothing is in it
    if im.known(x) and all(isinstance(s, int) for s in sizes):
        return x.reshape([x.shape[k] if s == 0 else s for k, s in enumerate(sizes)])
    if isinstance(x, Sizes) and len(sizes) <= 1:
        return Sizes(x, len(sizes), x.dtype)
    return im.emit(op.reshape(im.tensor(x), sizes))


@rule("Flatten")
def _flatten(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = im.tensor(inputs[0])
    sizes, axis = im.shape(x), attrs.get("axis", 1)
    axis = axis if axis >= 0 else axis + len(sizes)
    both: list[Any] = [1, 1]
    for k, d in enumerate(sizes):
        both[k >= axis] = both[k >= axis] * d
    return im.emit(op.reshape(x, both))


@rule("Transpose")
def _transpose(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, order = inputs[0], attrs.get("perm")
    return np.transpose(x, order) if im.known(x) and not im.keep else im.emit(
        op.permute_dims(im.tensor(x), order))


def _axes(im: Importer, inputs: list[Any], attrs: dict[str, Any], at: int = 1) -> Any:
    """Axes from an input (newer versions) or an attribute (older ones); None for none."""
    if len(inputs) > at and inputs[at] is not None:
        return [int(v) for v in im.numbers(inputs[at], "axes")]
    return attrs.get("axes")


@rule("Squeeze")
def _squeeze(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, axes = inputs[0], _axes(im, inputs, attrs)
    if im.known(x):
        return np.squeeze(x, None if axes is None else tuple(axes))
    if isinstance(x, Sizes) and len(x) == 1:
        return Sizes(x, 0, x.dtype)
    return im.emit(op.squeeze(im.tensor(x), axes))


@rule("Unsqueeze")
def _unsqueeze(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, axes = inputs[0], _axes(im, inputs, attrs)
    if im.known(x):
        return np.expand_dims(x, tuple(axes))
    if isinstance(x, Sizes) and x.rank == 0 and len(axes) == 1:
        return Sizes(x, 1, x.dtype)
    return im.emit(op.expand_dims(im.tensor(x), axes))


@rule("Concat")
def _concat(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    axis = attrs["axis"]
    if im.known(*inputs):
        return np.concatenate(inputs, axis)
    if all(isinstance(v, (Sizes, np.ndarray)) for v in inputs):
        return Sizes(s for v in inputs for s in im.numbers(v))
    return im.emit(op.concat([im.tensor(v) for v in inputs], axis))


@rule("Split")
def _split(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, axis = im.tensor(inputs[0]), attrs.get("axis", 0)
    parts = inputs[1] if len(inputs) > 1 and inputs[1] is not None else attrs.get("split")
    count, size = attrs.get("num_outputs", im.outputs), im.shape(x)[axis]
    if parts is None and isinstance(size, int):  # the last one may be smaller
        each = -(-size // count)
        parts = [min(each, max(size - k * each, 0)) for k in range(count)]
    if parts is None:
        out = im.emit(op.split(x, count, axis))
    else:
        sizes = im.numbers(parts, "the sizes of the parts")
        cuts = list(np.cumsum(sizes)[:-1])
        if not cuts:
            return [x]
        out, count = im.emit(op.split(x, [int(c) for c in cuts], axis)), len(sizes)
    return [im.emit(out[k]) for k in range(count)]


@rule("Slice")
def _slice(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = inputs[0]
    if len(inputs) > 1:
        begin, end = (im.numbers(v, "a bound") for v in inputs[1:3])
        axes = im.numbers(inputs[3]) if len(inputs) > 3 and inputs[3] is not None else list(
            range(len(begin)))
        steps = im.numbers(inputs[4]) if len(inputs) > 4 and inputs[4] is not None else [1] * len(
            begin)
    else:
        begin, end = attrs["starts"], attrs["ends"]
        axes, steps = attrs.get("axes", list(range(len(begin)))), [1] * len(begin)
    if im.known(x) and all(isinstance(v, int) for v in (*begin, *end)):
        at = [slice(None)] * x.ndim
        for a, b, e, s in zip(axes, begin, end, steps):
            at[a] = slice(b, None if s < 0 and e < -x.shape[a] else e, s)
        return x[tuple(at)]
    if isinstance(x, Sizes):
        return Sizes(x[begin[0]:end[0]:steps[0]], 1, x.dtype)
    x = im.tensor(x)
    sizes = im.shape(x)
    if all(isinstance(v, int) for a, b, e in zip(axes, begin, end) for v in (sizes[a], b, e)):
        low, high = ([max(min(v, 2**31 - 1), -2**31) for v in bounds] for bounds in (begin, end))
        return im.emit(op.strided_slice(x, axes, low, high, steps))
    low, high, meant = [], [], {}
    for a, b, e, step in zip(axes, begin, end, steps):
        if not isinstance(step, int):
            raise ValueError("a step must be known when the model is imported, and it is computed")
        if step < 0:
            x = im.emit(op.strided_slice(x, [a], [b], [e], [step]))
            b, e = 0, im.shape(x)[a]
        elif isinstance(b, PrimExpr) or isinstance(e, PrimExpr):
            plain = [size_from_front(v, sizes[a]) for v in (b, e)]
            b, e = slice_bounds(b, e, sizes[a])
            if step == 1 and not all(map(same_dim, map(as_dim, plain), map(as_dim, (b, e)))):
                meant[a % len(sizes)] = plain[1] - plain[0]
        else:
            b, e = slice_bounds(b, e, sizes[a])
        low.append(b)
        high.append(e)
    forward = [max(s, 1) for s in steps]
    out = im.emit(op.strided_slice(x, axes, low, high, forward, assume_inbound=True))
    if not meant:
        return out
    # bounds that the model computes are meant to be inside, and sizes that follow count on it
    dims = [meant.get(k, d) for k, d in enumerate(im.shape(out))]
    return im.builder.match_cast(out, TensorStructInfo(dims, im.dtype(out)))


def size_from_front(place: Any, size: Any) -> Any:
    """A bound of a slice, from the front."""
    if isinstance(place, int):
        return size if place >= 2**31 - 1 else size + place if place < 0 else place
    return place


@rule("Gather")
def _gather(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, i = inputs
    axis = attrs.get("axis", 0)
    if im.known(x, i) and not (im.keep and x.size > 64):
        return np.take(x, i, axis)
    if isinstance(x, Sizes) and isinstance(i, np.ndarray) and i.ndim < 2:
        picked = [x[int(k)] for k in i.ravel()]
        return np.array(picked[0] if i.ndim == 0 else picked, x.dtype) if all(
            isinstance(p, int) for p in picked) else Sizes(picked, i.ndim, x.dtype)
    x = im.tensor(x)
    size = im.shape(x)[axis]
    if isinstance(i, np.ndarray) and i.ndim == 0:
        one = im.emit(op.take(x, _from_front(im, i.reshape(1), size), axis))
        return im.emit(op.squeeze(one, [axis]))
    return im.emit(op.take(x, _from_front(im, i, size), axis))


def _from_front(im: Importer, i: Any, size: Any) -> Any:
    """Indices as a tensor of which nothing counts from the end."""
    if isinstance(i, np.ndarray):
        if not isinstance(size, int) and i.size:
            im.need_size(size, max(int(i.max()) + 1, -int(i.min())))
        values = counted_from_front(i, size)
        if values is not None:
            return im.tensor(values)
    return from_front(im, im.tensor(i), size)


@rule("GatherElements")
def _gather_elements(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, axis = im.tensor(inputs[0]), attrs.get("axis", 0)
    return im.emit(op.gather_elements(x, _from_front(im, inputs[1], im.shape(x)[axis]), axis))


@rule("GatherND")
def _gather_nd(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, i = map(im.tensor, inputs)
    return im.emit(op.gather_nd(x, i, attrs.get("batch_dims", 0)))


def _how(attrs: dict[str, Any]) -> str:
    how = str(attrs.get("reduction", "none"))
    return "update" if how == "none" else how


@rule("ScatterElements", "Scatter")
def _scatter_elements(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, i, new = map(im.tensor, inputs)
    return im.emit(op.scatter_elements(x, i, new, attrs.get("axis", 0), _how(attrs)))


@rule("ScatterND")
def _scatter_nd(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, i, new = map(im.tensor, inputs)
    return im.emit(op.scatter_nd(x, i, new, _how(attrs)))


@rule("Expand")
def _expand(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, wanted = inputs[0], im.numbers(inputs[1], "the shape")
    have = im.shape(x)
    count = max(len(have), len(wanted))
    have, wanted = ([1] * (count - len(s)) + list(s) for s in (have, wanted))
    full = [h if isinstance(w, int) and w == 1 else w for h, w in zip(have, wanted)]
    if im.known(x) and all(isinstance(s, int) for s in full):
        return np.broadcast_to(x, full)
    return im.emit(op.broadcast_to(im.tensor(x), full))


@rule("Tile")
def _tile(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    return im.emit(op.tile(im.tensor(inputs[0]), im.numbers(inputs[1], "repeats")))


@rule("Pad")
def _pad(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x = im.tensor(inputs[0])
    pads = im.numbers(inputs[1], "widths") if len(inputs) > 1 else attrs["pads"]
    value = inputs[2] if len(inputs) > 2 and inputs[2] is not None else attrs.get("value", 0.0)
    axes = _axes(im, inputs, {}, 3) or list(range(len(pads) // 2))
    before, after = [0] * im.ndim(x), [0] * im.ndim(x)
    for k, a in enumerate(axes):
        before[a], after[a] = pads[k], pads[k + len(axes)]
    widths = [w for pair in zip(before, after) for w in pair]
    mode = {"edge": "replicate", "wrap": "circular"}.get(attrs.get("mode", "constant"),
                                                         attrs.get("mode", "constant"))
    if isinstance(value, float) or im.known(value):
        return im.emit(op.nn.pad(x, widths, mode, float(im.number(value))))
    out = im.emit(op.nn.pad(x, widths, mode, 0.0))
    if mode != "constant":
        return out
    inside = im.emit(op.full(im.shape(x), im.tensor(np.ones((), "int8")), "int8"))
    inside = im.emit(op.astype(im.emit(op.nn.pad(inside, widths, mode, 0.0)), "bool"))
    return im.emit(op.where(inside, out, im.emit(op.reshape(im.tensor(value), []))))


@rule("Range")
def _range(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    start, end, step = (im.number(v, "a bound") for v in inputs)
    dtype = next((str(v.dtype) for v in inputs if isinstance(v, np.ndarray)), "int64")
    if all(isinstance(v, (int, float)) for v in (start, end, step)):
        return np.arange(start, end, step).astype(dtype)
    return im.emit(op.arange(start, end, step, dtype))


@rule("OneHot")
def _one_hot(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    depth = im.number(inputs[1], "depth")
    if not isinstance(depth, (int, float)):
        raise ValueError(f"the depth must be known when the model is imported, and it is {depth}: "
                         "give its sizes in shape_dict")
    depth = int(depth)
    off, on = im.numbers(inputs[2], "values")
    dtype = im.dtype(inputs[2])
    on, off = (PrimValue(O.const(v, dtype)) for v in (on, off))
    i = inputs[0]
    if im.known(i):
        i = np.asarray(i, "int64")
        i = np.where(i < 0, i + depth, i)  # what is outside matches nowhere
        return im.emit(op.one_hot(im.tensor(i), on, off, depth, attrs.get("axis", -1)))
    i = im.tensor(i)
    if im.dtype(i) not in ("int32", "int64"):
        i = im.emit(op.astype(i, "int64"))
    return im.emit(op.one_hot(from_front(im, i, depth), on, off, depth, attrs.get("axis", -1)))


@rule("EyeLike")
def _eye_like(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    dtype = dtype_of(attrs["dtype"]) if "dtype" in attrs else None
    return im.emit(op.eye_like(im.tensor(inputs[0]), attrs.get("k", 0), dtype))


@rule("Trilu")
def _trilu(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    k = int(im.number(inputs[1])) if len(inputs) > 1 and inputs[1] is not None else 0
    if im.known(inputs[0]):
        return (np.triu if attrs.get("upper", 1) else np.tril)(inputs[0], k)
    build = op.triu if attrs.get("upper", 1) else op.tril
    return im.emit(build(im.tensor(inputs[0]), k))


@rule("NonZero")
def _non_zero(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    if im.known(inputs[0]):
        return np.array(np.nonzero(inputs[0]), "int64")
    return im.emit(op.nonzero(im.tensor(inputs[0])))


@rule("DepthToSpace")
def _depth_to_space(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, by = im.tensor(inputs[0]), attrs["blocksize"]
    n, c, h, w = im.shape(x)
    inner = c // (by * by)
    if attrs.get("mode", "DCR") == "CRD":
        x = im.emit(op.reshape(x, [n, inner, by, by, h, w]))
        order = [0, 1, 4, 2, 5, 3]
    else:
        x = im.emit(op.reshape(x, [n, by, by, inner, h, w]))
        order = [0, 3, 4, 1, 5, 2]
    return im.emit(op.reshape(im.emit(op.permute_dims(x, order)), [n, inner, h * by, w * by]))


@rule("SpaceToDepth")
def _space_to_depth(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, by = im.tensor(inputs[0]), attrs["blocksize"]
    n, c, h, w = im.shape(x)
    x = im.emit(op.reshape(x, [n, c, h // by, by, w // by, by]))
    x = im.emit(op.permute_dims(x, [0, 3, 5, 1, 2, 4]))
    return im.emit(op.reshape(x, [n, c * by * by, h // by, w // by]))


# ------------------------------------------------------------------------------- reductions


#: what reductions of no axes do to each element
_ALONE: dict[str, Callable] = {"L1": op.abs, "L2": op.abs, "LogSum": op.log, "SumSquare": op.square}


def _reduction(name: str, build: Callable) -> None:
    @rule(f"Reduce{name}")
    def translate(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
        axes, keep = _axes(im, inputs, attrs), bool(attrs.get("keepdims", 1))
        x = inputs[0]
        if attrs.get("noop_with_empty_axes") and not axes:
            alone = _ALONE.get(name)
            return im.tensor(x) if alone is None else im.emit(alone(im.tensor(x)))
        if name == "Prod" and isinstance(x, Sizes):
            return Sizes([math.prod(x)], int(keep), x.dtype)
        if name == "Prod" and im.known(x):
            return np.asarray(np.prod(x, tuple(axes) if axes else None, keepdims=keep), x.dtype)
        x = im.tensor(x)
        return im.emit(build(im, x, axes or None, keep))


def _squares(im: Importer, x: Expr) -> Any:
    return im.emit(op.multiply(x, x))


def _log_sum_exp(im: Importer, x: Expr, axes: Any, keep: bool) -> Any:
    top = im.emit(op.max(x, axes, True))
    # what is infinite stays: inf - inf is no number
    finite = im.emit(op.where(im.emit(op.isinf(top)), im.tensor(np.zeros((), im.dtype(x))), top))
    total = im.emit(op.sum(im.emit(op.exp(im.emit(op.subtract(x, finite)))), axes, True))
    out = im.emit(op.add(im.emit(op.log(total)), finite))
    return out if keep else op.squeeze(out, axes if axes else list(range(im.ndim(x))))


for _name, _build in (
        ("Sum", lambda im, x, a, k: op.sum(x, a, k)),
        ("Mean", lambda im, x, a, k: op.mean(x, a, k)),
        ("Max", lambda im, x, a, k: op.max(x, a, k)), ("Min", lambda im, x, a, k: op.min(x, a, k)),
        ("Prod", lambda im, x, a, k: op.prod(x, a, k)),
        ("L1", lambda im, x, a, k: op.sum(im.emit(op.abs(x)), a, k)),
        ("L2", lambda im, x, a, k: op.sqrt(im.emit(op.sum(_squares(im, x), a, k)))),
        ("SumSquare", lambda im, x, a, k: op.sum(_squares(im, x), a, k)),
        ("LogSum", lambda im, x, a, k: op.log(im.emit(op.sum(x, a, k)))),
        ("LogSumExp", _log_sum_exp)):
    _reduction(_name, _build)


def _place(name: str, build: Callable) -> None:
    @rule(name)
    def translate(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
        x, axis = im.tensor(inputs[0]), attrs.get("axis", 0)
        keep = bool(attrs.get("keepdims", 1))
        if not attrs.get("select_last_index"):
            return im.emit(build(x, axis, keep))
        back = im.emit(build(im.emit(op.flip(x, axis)), axis, keep))  # the first from the end
        last = im.shape(x)[axis] - 1
        last = im.tensor(np.array(last)) if isinstance(last, int) else PrimValue(
            O.cast(last, "int64"))
        return im.emit(op.subtract(last, back))


_place("ArgMax", op.argmax)
_place("ArgMin", op.argmin)


def _running(name: str, build: Callable) -> None:
    @rule(name)
    def translate(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
        x, axis = im.tensor(inputs[0]), int(im.number(inputs[1], "the axis"))
        if attrs.get("reverse"):
            x = im.emit(op.flip(x, axis))
        out = im.emit(build(x, axis, None, bool(attrs.get("exclusive", 0))))
        return im.emit(op.flip(out, axis)) if attrs.get("reverse") else out


_running("CumSum", op.cumsum)
_running("CumProd", op.cumprod)


@rule("TopK")
def _topk(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    k = int(im.number(inputs[1], "k")) if len(inputs) > 1 else attrs["k"]
    if k < 0:
        raise ValueError(f"TopK of k={k}: it cannot be negative")
    x, axis = im.tensor(inputs[0]), attrs.get("axis", -1)
    if k == 0:  # which is all of them in R.topk
        none = im.emit(op.strided_slice(x, [axis], [0], [0]))
        return [none, im.emit(op.astype(none, "int64"))]
    out = im.emit(op.topk(x, k, axis, "both", bool(attrs.get("largest", 1)), "int64"))
    return [im.emit(out[0]), im.emit(out[1])]
