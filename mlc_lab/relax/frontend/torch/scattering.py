"""Rules of embeddings, of bags of them, and of reductions into places."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ....ir.dtype import int_range, is_float
from .... import topi
from ... import op
from .importer import Importer, rule
from .indexing import scattered
from .views import reshaped

if TYPE_CHECKING:
    from ...expr import Expr


@rule("embedding")
def embedding(im: Importer, weight: Expr, indices: Expr, padding_idx: int = -1,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Any:
    """Rows of a table. What a row is for, and how it is trained, does not matter here."""
    return im.emit(op.take(weight, indices, 0))


_MODES = {"sum": 0, "mean": 1, "max": 2}


@rule("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(im: Importer, weight: Expr, indices: Expr, offsets: Expr,
                  scale_grad_by_freq: bool = False, mode: Any = 0, sparse: bool = False,
                  per_sample_weights: Expr | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Any:
    """The sum, mean or maximum of the rows of each bag, [bags, columns]; the first result alone."""
    mode = _MODES.get(mode, mode)
    skip = -1 if padding_idx is None else padding_idx
    rows = im.shape(weight)[0]
    if padding_idx is not None and padding_idx < 0 and isinstance(rows, int):
        skip = padding_idx + rows if padding_idx > -rows - 1 and padding_idx != -1 else -1
    bags = im.shape(offsets)[0] - (1 if include_last_offset else 0)
    out = im.kernel(lambda w, i, o, *s, bags: topi.bags.embedding_bag(
        w, i, o, s[0] if s else None, mode, skip, bags), weight, im.cast(indices, "int64"),
        im.cast(offsets, "int64"), *([] if per_sample_weights is None else [per_sample_weights]),
        bags=bags, name="embedding_bag")
    return (out,)


def functional_embedding_bag(im: Importer, x: Expr, weight: Expr, offsets: Expr | None = None,
                             max_norm: float | None = None, norm_type: float = 2.0,
                             scale_grad_by_freq: bool = False, mode: str = "mean",
                             sparse: bool = False, per_sample_weights: Expr | None = None,
                             include_last_offset: bool = False, padding_idx: int | None = None
                             ) -> Any:
    """torch.nn.functional.embedding_bag: a matrix of indices is a bag a row."""
    if max_norm is not None:
        raise ValueError("embedding_bag with max_norm changes the table, which is not translated")
    if im.ndim(x) == 2:
        rows, length = im.shape(x)
        offsets = im.emit(op.arange(0, rows * length, length, "int64"))
        x = reshaped(im, x, [-1])
        if per_sample_weights is not None:
            per_sample_weights = reshaped(im, per_sample_weights, [-1])
    return embedding_bag(im, weight, x, offsets, scale_grad_by_freq, mode, sparse,
                         per_sample_weights, include_last_offset, padding_idx)[0]


# ------------------------------------------------------------------------------- reductions

_WAYS = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}


@rule("scatter_reduce")
def scatter_reduce(im: Importer, x: Expr, dim: int, index: Expr, src: Expr, reduce: str, *,
                   include_self: bool = True) -> Any:
    """Elements of src reduced into places of x; with x's own element, or without it where
    anything comes."""
    if reduce not in _WAYS:
        raise ValueError(f"scatter_reduce with reduce={reduce!r}: it is {', '.join(_WAYS)}")
    dtype = im.dtype(x)
    if not include_self:
        none = im.zeros(im.shape(x), "int8")
        there = scattered(im, none, dim, index, im.full(im.shape(index), 1, "int8"), "update")
        there = im.cast(there, "bool")
        x = im.emit(op.where(there, im.const(_neutral(reduce, dtype), dtype), x))
    out = scattered(im, x, dim, index, src, _WAYS[reduce])
    if reduce != "mean":
        return out
    counts = im.full(im.shape(x), 1 if include_self else 0, dtype)
    counts = scattered(im, counts, dim, index, im.full(im.shape(index), 1, dtype), "add")
    counts = im.emit(op.maximum(counts, im.const(1, dtype)))
    return im.emit((op.divide if is_float(dtype) else op.floor_divide)(out, counts))


def _neutral(reduce: str, dtype: str) -> Any:
    """The number that changes nothing."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if is_float(dtype):
        return -math.inf if reduce == "amax" else math.inf
    low, high = (0, 1) if dtype == "bool" else int_range(dtype)
    return low if reduce == "amax" else high


@rule("index_reduce")
def _index_reduce(im: Importer, x: Expr, dim: int, index: Expr, source: Expr, reduce: str, *,
                  include_self: bool = True) -> Any:
    """scatter_reduce of whole slices."""
    if im.ndim(x) == 0:
        line = _index_reduce(im, reshaped(im, x, [1]), 0, reshaped(im, index, [1]),
                             reshaped(im, source, [1]), reduce, include_self=include_self)
        return reshaped(im, line, [])
    dim = im.axis(dim, im.ndim(x))
    shape = [1] * im.ndim(x)
    shape[dim] = im.shape(index)[0] if im.ndim(index) else 1
    index = im.broadcast(reshaped(im, index, shape), im.shape(source))
    return scatter_reduce(im, x, dim, index, source, reduce, include_self=include_self)


