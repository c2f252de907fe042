"""Rules of reductions, sorting and running totals."""

from __future__ import annotations

from typing import Any

from ....ir.dtype import is_float
from ... import op
from ...op import nn
from .importer import Importer, dtype_name, is_tensor, rule


def _axes(dim: Any) -> Any:
    """A `dim` argument: None or an empty list mean all."""
    return None if dim is None or (isinstance(dim, (list, tuple)) and not len(dim)) else dim


@rule("sum")
def _sum(im: Importer, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    have = im.dtype(x)
    wanted = dtype_name(dtype, have if is_float(have) else "int64")
    return im.emit(op.sum(im.cast(x, wanted), _axes(dim), keepdim))


@rule("mean")
def _mean(im: Importer, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
          ) -> Any:
    return im.emit(op.mean(im.cast(x, dtype_name(dtype, im.dtype(x))), _axes(dim), keepdim))


@rule("prod")
def _prod(im: Importer, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
          ) -> Any:
    return im.emit(op.prod(im.cast(x, dtype_name(dtype, im.dtype(x))), _axes(dim), keepdim))


@rule("amax")
def _amax(im: Importer, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return im.emit(op.max(x, _axes(dim), keepdim))


@rule("amin")
def _amin(im: Importer, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return im.emit(op.min(x, _axes(dim), keepdim))


def _extreme(name: str, pick: Any, place: Any, pairwise: Any) -> None:
    @rule(name)
    def translate(im: Importer, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if is_tensor(dim):  # torch.max(a, b)
            return im.emit(pairwise(*im.pair(x, dim)))
        if dim is None:
            return im.emit(pick(x))
        return im.emit(pick(x, dim, keepdim)), im.emit(place(x, dim, keepdim))


_extreme("max", op.max, op.argmax, op.maximum)
_extreme("min", op.min, op.argmin, op.minimum)


@rule("argmax")
def _argmax(im: Importer, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return im.emit(op.argmax(x, dim, keepdim))


@rule("argmin")
def _argmin(im: Importer, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return im.emit(op.argmin(x, dim, keepdim))


@rule("any")
def _any(im: Importer, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    whole = im.cast(im.cast(x, "bool"), "int32")
    return im.cast(im.emit(op.max(whole, _axes(dim), keepdim)), "bool")


@rule("all")
def _all(im: Importer, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    whole = im.cast(im.cast(x, "bool"), "int32")
    return im.cast(im.emit(op.min(whole, _axes(dim), keepdim)), "bool")


def _spread(im: Importer, x: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Any:
    """The variance, over n - correction."""
    if isinstance(dim, bool):  # torch.var(x, unbiased)
        dim, unbiased = None, dim
    less = correction if correction is not None else (1 if unbiased in (None, True) else 0)
    out = im.emit(op.variance(x, _axes(dim), keepdim))
    if not less:
        return out
    sizes, over = im.shape(x), _axes(dim)
    over = range(len(sizes)) if over is None else [over] if isinstance(over, int) else over
    count: Any = 1
    for k in over:
        count = count * sizes[k]
    dtype = im.dtype(x)
    if isinstance(count, int):
        return im.emit(op.multiply(out, im.const(count / (count - less), dtype)))
    ratio = op.divide(im.operand(count, dtype), im.operand(count - less, dtype))
    return im.emit(op.multiply(out, im.emit(ratio)))


@rule("var")
def _var(im: Importer, x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
         correction: Any = None) -> Any:
    return _spread(im, x, dim, unbiased, keepdim, correction)


@rule("std")
def _std(im: Importer, x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
         correction: Any = None) -> Any:
    return im.emit(op.sqrt(_spread(im, x, dim, unbiased, keepdim, correction)))


@rule("norm", "linalg_vector_norm")
def _norm(im: Importer, x: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, *,
          dtype: Any = None, ord: Any = None) -> Any:  # noqa: A002
    p = ord if ord is not None else p
    p = 2 if p in (None, "fro") else p
    if isinstance(p, str):
        raise ValueError(f"the norm {p!r} of matrices is not translated")
    x, dim = im.cast(x, dtype_name(dtype, im.dtype(x))), _axes(dim)
    size = im.emit(op.abs(x))
    if p in (float("inf"), -float("inf")):
        return im.emit((op.max if p > 0 else op.min)(size, dim, keepdim))
    if p == 0:  # how many are not 0
        some = im.cast(im.emit(op.not_equal(x, im.const(0, im.dtype(x)))), im.dtype(x))
        return im.emit(op.sum(some, dim, keepdim))
    if p == 1:
        return im.emit(op.sum(size, dim, keepdim))
    if p == 2:
        total = im.emit(op.sum(im.emit(op.multiply(x, x)), dim, keepdim))
        return im.emit(op.sqrt(total))
    power = im.emit(op.power(size, im.const(float(p), im.dtype(x))))
    total = im.emit(op.sum(power, dim, keepdim))
    return im.emit(op.power(total, im.const(1 / p, im.dtype(x))))


@rule("linalg_norm")
def _linalg_norm(im: Importer, x: Any, ord: Any = None, dim: Any = None,  # noqa: A002
                 keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Norms of vectors; of matrices only that of Frobenius, which is that of their elements."""
    over = im.ndim(x) if dim is None else len(dim) if isinstance(dim, (list, tuple)) else 1
    if ord not in (None, "fro") and over != 1:
        raise ValueError(f"the norm {ord} of matrices is not translated; for all elements as one "
                         "vector there is torch.linalg.vector_norm")
    return _norm(im, x, ord, dim, keepdim, dtype=dtype)


@rule("cosine_similarity")
def _cosine_similarity(im: Importer, a: Any, b: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """a . b / (max(|a|, eps) max(|b|, eps)) along `dim`."""
    dtype = im.promoted(a, b)
    both = im.emit(op.multiply(*im.pair(a, b)))
    sizes = im.shape(both)
    least = im.const(eps, dtype)
    lengths = []
    for t in (im.cast(a, dtype), im.cast(b, dtype)):
        if list(map(str, im.shape(t))) != list(map(str, sizes)):
            t = im.emit(op.broadcast_to(t, sizes))
        lengths.append(im.emit(op.maximum(_norm(im, t, 2, dim), least)))
    return im.emit(op.divide(im.emit(op.sum(both, dim)), im.emit(op.multiply(*lengths))))


@rule("logsumexp")
def _logsumexp(im: Importer, x: Any, dim: Any, keepdim: bool = False) -> Any:
    top = im.emit(op.max(x, dim, True))
    total = im.emit(op.sum(im.emit(op.exp(im.emit(op.subtract(x, top)))), dim, True))
    out = im.emit(op.add(im.emit(op.log(total)), top))
    return out if keepdim else im.emit(op.squeeze(out, dim))


@rule("softmax", "_softmax")
def _softmax(im: Importer, x: Any, dim: Any = -1, *rest: Any, dtype: Any = None, **kw: Any) -> Any:
    wanted = next((r for r in rest if type(r).__name__ == "dtype"), dtype)
    x = im.cast(x, dtype_name(wanted, im.dtype(x)))
    return im.emit(nn.softmax(x, -1 if dim is None else dim))


@rule("log_softmax", "_log_softmax")
def _log_softmax(im: Importer, x: Any, dim: Any = -1, *rest: Any, dtype: Any = None, **kw: Any
                 ) -> Any:
    wanted = next((r for r in rest if type(r).__name__ == "dtype"), dtype)
    x = im.cast(x, dtype_name(wanted, im.dtype(x)))
    return im.emit(nn.log_softmax(x, -1 if dim is None else dim))


@rule("cumsum")
def _cumsum(im: Importer, x: Any, dim: int, *, dtype: Any = None) -> Any:
    have = im.dtype(x)
    return im.emit(op.cumsum(x, dim, dtype_name(dtype, have if is_float(have) else "int64")))


@rule("cumprod")
def _cumprod(im: Importer, x: Any, dim: int, *, dtype: Any = None) -> Any:
    have = im.dtype(x)
    return im.emit(op.cumprod(x, dim, dtype_name(dtype, have if is_float(have) else "int64")))


@rule("topk")
def _topk(im: Importer, x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True  # noqa: A002
          ) -> Any:
    return im.emit(op.topk(x, k, dim, "both", largest, "int64"))


@rule("sort")
def _sort(im: Importer, x: Any, dim: int = -1, descending: bool = False, **kwargs: Any) -> Any:
    order = im.emit(op.argsort(x, dim, descending, "int64"))
    return im.emit(op.gather_elements(x, order, dim)), order


@rule("argsort")
def _argsort(im: Importer, x: Any, dim: int = -1, descending: bool = False, **kwargs: Any) -> Any:
    return im.emit(op.argsort(x, dim, descending, "int64"))
