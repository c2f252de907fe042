"""Rules of operators that move elements, join, take apart and index."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ....tir import op as O
from ... import op
from ...expr import Constant, PrimValue
from ...op import nn
from ..common import from_front
from .importer import Importer, is_tensor, rule

#: torch's way to say "to the end"
END = 2**63 - 1


def _sizes(first: Any, rest: Sequence[Any]) -> list[Any]:
    """Sizes given as one list or one by one."""
    given = list(first) if isinstance(first, (list, tuple)) else [first, *rest]
    return [g.value if isinstance(g, PrimValue) else g for g in given]


@rule("view", "reshape", "_unsafe_view", "view_copy", "_reshape_copy")
def _reshape(im: Importer, x: Any, *shape: Any, **kwargs: Any) -> Any:
    if len(shape) == 1 and type(shape[0]).__name__ == "dtype":
        raise ValueError("a view as another dtype is not translated")
    return im.emit(op.reshape(x, _sizes(kwargs.get("shape", shape[0] if shape else None),
                                        shape[1:])))


@rule("view_as", "reshape_as")
def _view_as(im: Importer, x: Any, other: Any) -> Any:
    return im.emit(op.reshape(x, im.shape(other)))


@rule("flatten")
def _flatten(im: Importer, x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    sizes = im.shape(x)
    if not sizes:
        return im.emit(op.reshape(x, [1]))
    first, last = start_dim % len(sizes), end_dim % len(sizes)
    total: Any = 1
    for d in sizes[first:last + 1]:
        total = total * d
    return im.emit(op.reshape(x, [*sizes[:first], total, *sizes[last + 1:]]))


@rule("unflatten")
def _unflatten(im: Importer, x: Any, dim: int, sizes: Any) -> Any:
    have = im.shape(x)
    dim %= len(have)
    return im.emit(op.reshape(x, [*have[:dim], *sizes, *have[dim + 1:]]))


@rule("permute")
def _permute(im: Importer, x: Any, *dims: Any, **kwargs: Any) -> Any:
    given = kwargs.get("dims", dims[0] if dims else None)
    return im.emit(op.permute_dims(x, _sizes(given, dims[1:])))


@rule("transpose", "swapaxes", "transpose_copy")
def _transpose(im: Importer, x: Any, dim0: int, dim1: int) -> Any:
    order = list(range(im.ndim(x)))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return im.emit(op.permute_dims(x, order))


@rule("movedim", "moveaxis")
def _movedim(im: Importer, x: Any, source: Any, destination: Any) -> Any:
    count = im.ndim(x)
    first, last = ([d % count for d in (v if isinstance(v, (list, tuple)) else [v])]
                   for v in (source, destination))
    order: list[Any] = [None] * count
    for a, b in zip(first, last):
        order[b] = a
    rest = (d for d in range(count) if d not in first)
    return im.emit(op.permute_dims(x, [next(rest) if d is None else d for d in order]))


@rule("t", "numpy_T", "T", "mT", "mH", "H")
def _t(im: Importer, x: Any) -> Any:
    return _transpose(im, x, -2, -1) if im.ndim(x) > 1 else x


@rule("unsqueeze")
def _unsqueeze(im: Importer, x: Any, dim: int) -> Any:
    return im.emit(op.expand_dims(x, dim))


@rule("squeeze")
def _squeeze(im: Importer, x: Any, dim: Any = None) -> Any:
    sizes = im.shape(x)
    if dim is None:
        gone = [k for k, d in enumerate(sizes) if isinstance(d, int) and d == 1]
    else:
        gone = [k % len(sizes) for k in (dim if isinstance(dim, (list, tuple)) else [dim])]
        gone = [k for k in gone if isinstance(sizes[k], int) and sizes[k] == 1]
    return im.emit(op.squeeze(x, gone)) if gone else x


@rule("expand", "broadcast_to", "expand_copy")
def _expand(im: Importer, x: Any, *sizes: Any, **kwargs: Any) -> Any:
    wanted = _sizes(kwargs.get("size", sizes[0] if sizes else None), sizes[1:])
    have = im.shape(x)
    lead = len(wanted) - len(have)
    full = [have[k - lead] if isinstance(s, int) and s == -1 else s for k, s in enumerate(wanted)]
    return im.emit(op.broadcast_to(x, full))


@rule("expand_as")
def _expand_as(im: Importer, x: Any, other: Any) -> Any:
    return im.emit(op.broadcast_to(x, im.shape(other)))


@rule("repeat")
def _repeat(im: Importer, x: Any, *times: Any, **kwargs: Any) -> Any:
    return im.emit(op.tile(x, _sizes(kwargs.get("repeats", times[0] if times else None),
                                     times[1:])))


@rule("tile")
def _tile(im: Importer, x: Any, *dims: Any) -> Any:
    return im.emit(op.tile(x, _sizes(dims[0], dims[1:])))


@rule("repeat_interleave")
def _repeat_interleave(im: Importer, x: Any, repeats: int, dim: Any = None, **kwargs: Any) -> Any:
    return im.emit(op.repeat(x, repeats, dim))


@rule("cat", "concat", "concatenate")
def _cat(im: Importer, tensors: Any, dim: int = 0, axis: Any = None) -> Any:
    tensors = [t for t in tensors if im.ndim(t) != 1 or im.shape(t) != [0]]  # torch's empty ones
    dtype = im.dtype(tensors[0])
    for t in tensors[1:]:
        dtype = im.promoted(im.cast(tensors[0], dtype), t) if im.dtype(t) != dtype else dtype
    where = dim if axis is None else axis
    return im.emit(op.concat([im.cast(t, dtype) for t in tensors], where))


@rule("stack")
def _stack(im: Importer, tensors: Any, dim: int = 0) -> Any:
    return im.emit(op.stack(list(tensors), dim))


@rule("hstack")
def _hstack(im: Importer, tensors: Any) -> Any:
    tensors = [im.emit(op.reshape(t, [1])) if im.ndim(t) == 0 else t for t in tensors]
    return _cat(im, tensors, 0 if im.ndim(tensors[0]) == 1 else 1)


@rule("vstack", "row_stack")
def _vstack(im: Importer, tensors: Any) -> Any:
    return _cat(im, [im.emit(op.reshape(t, [1, *(im.shape(t) or [1])])) if im.ndim(t) < 2 else t
                     for t in tensors], 0)


@rule("split", "split_with_sizes", "split_copy", "split_with_sizes_copy")
def _split(im: Importer, x: Any, split_size: Any, dim: int = 0) -> Any:
    size = im.shape(x)[dim]
    if isinstance(split_size, (list, tuple)):
        cuts, total = [], 0
        for s in split_size[:-1]:
            total = total + s
            cuts.append(total)
    elif isinstance(size, int):
        cuts = list(range(split_size, size, split_size))
    else:
        raise ValueError("split into parts of one size needs a dimension of known size")
    if not cuts:
        return (x,)
    return im.emit(op.split(x, cuts, dim))


@rule("chunk")
def _chunk(im: Importer, x: Any, chunks: int, dim: int = 0) -> Any:
    size = im.shape(x)[dim]
    if not isinstance(size, int):
        return im.emit(op.split(x, chunks, dim))
    each = -(-size // chunks)
    return _split(im, x, each, dim)


@rule("unbind")
def _unbind(im: Importer, x: Any, dim: int = 0) -> Any:
    return tuple(_select(im, x, dim, k) for k in range(im.shape(x)[dim]))


@rule("select", "select_copy")
def _select(im: Importer, x: Any, dim: int, index: Any) -> Any:
    size = im.shape(x)[dim]
    if is_tensor(index):
        return im.emit(op.take(x, from_front(im, index, size), dim))
    index = size + index if isinstance(index, int) and index < 0 else index
    begin, end = index, index + 1
    part = im.emit(op.strided_slice(x, [dim % im.ndim(x)], [begin], [end], assume_inbound=True))
    return im.emit(op.squeeze(part, [dim]))


@rule("slice", "slice_copy")
def _slice(im: Importer, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
           ) -> Any:
    size = im.shape(x)[dim]
    start = 0 if start is None else start
    whole = end is None or (isinstance(end, int) and end >= END // 2)
    if whole:
        end = size
    if isinstance(start, int) and start == 0 and whole and step == 1:
        return x
    if all(isinstance(v, int) for v in (size, start, end)):
        return im.emit(op.strided_slice(x, [dim % im.ndim(x)], [start], [end], [step]))

    def bound(v: Any) -> Any:
        return size + v if isinstance(v, int) and v < 0 else v

    return im.emit(op.strided_slice(x, [dim % im.ndim(x)], [bound(start)], [bound(end)], [step],
                                    assume_inbound=True))


@rule("narrow")
def _narrow(im: Importer, x: Any, dim: int, start: Any, length: Any) -> Any:
    return _slice(im, x, dim, start, start + length)


@rule("getitem")
def _getitem(im: Importer, x: Any, index: Any) -> Any:
    """An item of a tuple or list, or a part of a tensor."""
    if not is_tensor(x):
        if isinstance(x, tuple) and isinstance(index, int) and index >= len(x):
            raise ValueError(f"output {index} of this operator is not translated")
        return im.emit(x[index]) if hasattr(x, "struct_info_") else x[index]
    parts = list(index) if isinstance(index, tuple) else [index]
    named = sum(p is not None and p is not Ellipsis for p in parts)
    parts = [_listed(im, p) if isinstance(p, list) else p for p in parts]
    if any(p is Ellipsis for p in parts):
        at = next(k for k, p in enumerate(parts) if p is Ellipsis)
        parts[at:at + 1] = [slice(None)] * (im.ndim(x) - named)
    dim = 0
    tensors: list[tuple[int, Any]] = []
    for p in parts:
        if p is None:
            x = im.emit(op.expand_dims(x, dim))
            dim += 1
        elif isinstance(p, slice):
            x = _slice(im, x, dim, p.start, p.stop, 1 if p.step is None else p.step)
            dim += 1
        elif is_tensor(p):
            tensors.append((dim, p))
            dim += 1
        else:
            x = _select(im, x, dim, p)
    if not tensors:
        return x
    full: list[Any] = [None] * (tensors[-1][0] + 1)
    for d, p in tensors:
        full[d] = p
    return _index(im, x, full)


def _listed(im: Importer, given: list[Any]) -> Any:
    """A list of indices as a tensor; a list of booleans is a mask, which says as much."""
    values = np.asarray(given)
    if values.dtype.kind == "b" and values.ndim == 1:
        return im.const(values.nonzero()[0], "int64")
    if values.dtype.kind not in "iu" and values.size:
        raise ValueError("a list as an index is of whole numbers, known when the model is "
                         "imported: stack tensors with torch.stack")
    return im.const(values, "int64")


@rule("index", "_unsafe_index")
def _index(im: Importer, x: Any, indices: Any) -> Any:
    """x[i, j, ...] with tensors of integers; None takes a whole dimension."""
    given = [(d, i) for d, i in enumerate(indices) if i is not None]
    for _, i in given:
        if im.dtype(i) in ("bool", "uint8"):
            raise ValueError("indexing with a mask has a result of a size that only the run "
                             "knows: write it with torch.where")
    sizes = im.shape(x)
    if len(given) == 1 and len(sizes) > given[0][0]:
        dim, i = given[0]
        return im.emit(op.take(x, from_front(im, i, sizes[dim]), dim))
    # index_tensor counts from the end itself; constants are put right here
    given = [(d, from_front(im, i, sizes[d]) if isinstance(i, Constant) else i) for d, i in given]
    dims = [d for d, _ in given]
    if dims != list(range(dims[0], dims[0] + len(dims))):
        raise ValueError(f"indices on dimensions {dims}, with others between, are not translated")
    lead = dims[0]
    if lead:  # the indexed dimensions to the front, and the new ones back
        order = [*dims, *(d for d in range(im.ndim(x)) if d not in dims)]
        moved = im.emit(op.permute_dims(x, order))
        out = im.emit(op.index_tensor(moved, [i for _, i in given]))
        count = im.ndim(out) - (im.ndim(x) - len(dims))
        back = [*range(count, count + lead), *range(count), *range(count + lead, im.ndim(out))]
        return im.emit(op.permute_dims(out, back))
    return im.emit(op.index_tensor(x, [i for _, i in given]))


@rule("index_select")
def _index_select(im: Importer, x: Any, dim: int, index: Any) -> Any:
    return im.emit(op.take(x, index, dim))


@rule("embedding")
def _embedding(im: Importer, *args: Any, **kwargs: Any) -> Any:
    a, b = args[:2] if len(args) > 1 else (kwargs["input"], kwargs["weight"])
    # ATen takes the weight first, torch.nn.functional the indices
    weight, indices = (a, b) if im.dtype(b).startswith("int") else (b, a)
    return im.emit(op.take(weight, indices, 0))


@rule("gather")
def _gather(im: Importer, x: Any, dim: int, index: Any, **kwargs: Any) -> Any:
    return im.emit(op.gather_elements(x, index, dim))


@rule("take_along_dim")
def _take_along_dim(im: Importer, x: Any, indices: Any, dim: Any = None) -> Any:
    """gather with indices that may count from the end; other dimensions broadcast."""
    if dim is None:
        x, indices, dim = (im.emit(op.reshape(x, [-1])), im.emit(op.reshape(indices, [-1])), 0)
    dim %= im.ndim(x)
    indices = from_front(im, indices, im.shape(x)[dim])

    def wide(sizes: list[Any], others: list[Any]) -> list[Any]:
        return [o if k != dim and isinstance(s, int) and s == 1 else s
                for k, (s, o) in enumerate(zip(sizes, others))]

    sizes, at = im.shape(x), im.shape(indices)
    x, indices = (t if have == full else im.emit(op.broadcast_to(t, full)) for t, have, full in (
        (x, sizes, wide(sizes, at)), (indices, at, wide(at, sizes))))
    return im.emit(op.gather_elements(x, indices, dim))


@rule("scatter")
def _scatter(im: Importer, x: Any, dim: int, index: Any, src: Any, *, reduce: Any = None) -> Any:
    if not is_tensor(src):
        src = im.emit(op.full(im.shape(index), im.const(src, im.dtype(x))))
    how = {None: "update", "add": "add", "multiply": "mul"}[reduce]
    return im.emit(op.scatter_elements(x, index, src, dim, how))


@rule("scatter_add")
def _scatter_add(im: Importer, x: Any, dim: int, index: Any, src: Any) -> Any:
    return im.emit(op.scatter_elements(x, index, src, dim, "add"))


@rule("index_put")
def _index_put(im: Importer, x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    return im.emit(op.index_put(x, list(indices), values, accumulate))


@rule("slice_scatter")
def _slice_scatter(im: Importer, x: Any, src: Any, dim: int = 0, start: Any = None,
                   end: Any = None, step: int = 1) -> Any:
    size = im.shape(x)[dim]
    end = size if end is None or (isinstance(end, int) and end >= END // 2) else end
    return im.emit(op.slice_scatter(x, src, start or 0, end, step, dim))


@rule("select_scatter")
def _select_scatter(im: Importer, x: Any, src: Any, dim: int, index: Any) -> Any:
    if isinstance(index, int) and index < 0:
        index = im.shape(x)[dim] + index
    return im.emit(op.slice_scatter(x, im.emit(op.expand_dims(src, dim)), index, index + 1, 1, dim))


@rule("one_hot")
def _one_hot(im: Importer, x: Any, num_classes: int = -1) -> Any:
    if num_classes < 0:
        raise ValueError("one_hot needs num_classes: without it the size is known by the run only")
    hot = im.emit(op.one_hot(x, PrimValue(O.const(1, "int64")), PrimValue(O.const(0, "int64")),
                             num_classes))
    return hot


@rule("flip")
def _flip(im: Importer, x: Any, *dims: Any) -> Any:
    for d in _sizes(dims[0], dims[1:]):
        x = im.emit(op.flip(x, d))
    return x


@rule("roll")
def _roll(im: Importer, x: Any, shifts: Any, dims: Any = None) -> Any:
    shifts = [shifts] if isinstance(shifts, int) else list(shifts)
    if dims is None or dims == []:
        flat = im.emit(op.reshape(x, [-1]))
        return im.emit(op.reshape(_roll(im, flat, shifts, [0]), im.shape(x)))
    for shift, d in zip(shifts, [dims] if isinstance(dims, int) else dims):
        size = im.shape(x)[d]
        cut = (size - shift) % size
        if isinstance(cut, int) and cut == 0:
            continue
        parts = im.emit(op.split(x, [cut], d))
        x = im.emit(op.concat([im.emit(parts[1]), im.emit(parts[0])], d))
    return x


@rule("tril")
def _tril(im: Importer, x: Any, diagonal: int = 0) -> Any:
    return im.emit(op.tril(x, diagonal))


@rule("triu")
def _triu(im: Importer, x: Any, diagonal: int = 0) -> Any:
    return im.emit(op.triu(x, diagonal))


@rule("pad", "constant_pad_nd")
def _pad(im: Importer, x: Any, pad: Sequence[int], mode: Any = "constant", value: Any = None
         ) -> Any:
    if isinstance(mode, (int, float)):  # constant_pad_nd(x, pad, value)
        mode, value = "constant", mode
    widths = [0, 0] * (im.ndim(x) - len(pad) // 2)
    for k in reversed(range(len(pad) // 2)):
        widths += pad[2 * k:2 * k + 2]
    if any(w < 0 for w in widths):  # negative widths cut
        axes = [k for k in range(im.ndim(x)) if widths[2 * k] < 0 or widths[2 * k + 1] < 0]
        begin = [max(0, -widths[2 * k]) for k in axes]
        end = [im.shape(x)[k] - max(0, -widths[2 * k + 1]) for k in axes]
        x = im.emit(op.strided_slice(x, axes, begin, end, assume_inbound=True))
        widths = [max(0, w) for w in widths]
    if not any(widths):
        return x
    return im.emit(nn.pad(x, widths, mode, 0.0 if value is None else float(value)))


for _rank in ("1d", "2d", "3d"):
    rule(f"reflection_pad{_rank}")(lambda im, x, pad: _pad(im, x, pad, "reflect"))
    rule(f"replication_pad{_rank}")(lambda im, x, pad: _pad(im, x, pad, "replicate"))


@rule("pixel_shuffle")
def _pixel_shuffle(im: Importer, x: Any, upscale_factor: int) -> Any:
    return im.emit(nn.pixel_shuffle(x, upscale_factor))


@rule("meshgrid")
def _meshgrid(im: Importer, *tensors: Any, indexing: str = "ij") -> Any:
    given = list(tensors[0]) if isinstance(tensors[0], (list, tuple)) else list(tensors)
    return im.emit(op.meshgrid(given, indexing))
