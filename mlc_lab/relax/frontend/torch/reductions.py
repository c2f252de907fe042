"""Rules of reductions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ....ir.dtype import is_float
from ....topi.utils import sum_type
from ... import op
from .arithmetic import as_float
from .importer import Importer, dtype_name, is_tensor, rule
from .views import reshaped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from ...expr import Expr
    from .importer import Dims


def axes_of(im: Importer, x: Expr, dim: Dims) -> Any:
    """A `dim` argument as a list of axes from the front; None, which an empty list means too, for
    all."""
    if dim is None or (isinstance(dim, (list, tuple)) and not len(dim)):
        return None
    several = dim if isinstance(dim, (list, tuple)) else [dim]
    axes = [im.axis(d, im.ndim(x)) for d in several]
    return axes if im.ndim(x) else None


def _accumulated(im: Importer, x: Expr, dtype: object) -> Any:
    """x in the dtype that its sum has: the one asked for, or int64 for integers."""
    have = im.dtype(x)
    return im.cast(x, dtype_name(dtype, have if is_float(have) else "int64"))


@rule("sum")
def _sum(im: Importer, x: Expr, dim: Dims = None, keepdim: bool = False, *, dtype: object = None
         ) -> Any:
    return im.emit(op.sum(_accumulated(im, x, dtype), axes_of(im, x, dim), keepdim))


@rule("nansum")
def _nansum(im: Importer, x: Expr, dim: Dims = None, keepdim: bool = False, *, dtype: object = None
            ) -> Any:
    return _sum(im, _without_nan(im, x), dim, keepdim, dtype=dtype)


def _without_nan(im: Importer, x: Expr) -> Any:
    if not is_float(im.dtype(x)):
        return x
    return im.emit(op.where(im.emit(op.isnan(x)), im.const(0, im.dtype(x)), x))


@rule("mean")
def _mean(im: Importer, x: Expr, dim: Dims = None, keepdim: bool = False, *, dtype: object = None
          ) -> Any:
    return im.emit(op.mean(im.cast(x, dtype_name(dtype, im.dtype(x))), axes_of(im, x, dim),
                           keepdim))


@rule("nanmean")
def _nanmean(im: Importer, x: Expr, dim: Dims = None, keepdim: bool = False, *, dtype: object = None
             ) -> Any:
    x = im.cast(x, dtype_name(dtype, im.dtype(x)))
    some = im.cast(im.emit(op.logical_not(im.emit(op.isnan(x)))), im.dtype(x))
    axes = axes_of(im, x, dim)
    return im.emit(op.divide(im.emit(op.sum(_without_nan(im, x), axes, keepdim)),
                             im.emit(op.sum(some, axes, keepdim))))


@rule("prod")
def _prod(im: Importer, x: Expr, dim: Dims = None, keepdim: bool = False, *, dtype: object = None
          ) -> Any:
    return im.emit(op.prod(_accumulated(im, x, dtype), axes_of(im, x, dim), keepdim))


@rule("amax")
def _amax(im: Importer, x: Expr, dim: Dims = None, keepdim: bool = False) -> Any:
    return _largest(im, x, op.max, axes_of(im, x, dim), keepdim)


@rule("amin")
def _amin(im: Importer, x: Expr, dim: Dims = None, keepdim: bool = False) -> Any:
    return _largest(im, x, op.min, axes_of(im, x, dim), keepdim)


def _largest(im: Importer, x: Expr, pick: Callable[..., Expr], axes: Sequence[int] | None,
             keepdim: bool) -> Any:
    if im.dtype(x) != "bool":
        return im.emit(pick(x, axes, keepdim))
    return im.cast(im.emit(pick(im.cast(x, "int8"), axes, keepdim)), "bool")


@rule("aminmax")
def _aminmax(im: Importer, x: Expr, *, dim: Dims = None, keepdim: bool = False) -> Any:
    return _amin(im, x, dim, keepdim), _amax(im, x, dim, keepdim)


def _extreme(name: str, pick: Callable[..., Expr], place: Callable[..., Expr],
             pairwise: Callable[..., Expr]) -> None:
    @rule(name)
    def translate(im: Importer, x: Expr, dim: Any = None, keepdim: bool = False) -> Any:
        if is_tensor(dim):  # torch.max(a, b)
            return im.emit(pairwise(*im.pair(x, dim)))
        if dim is None:
            return _largest(im, x, pick, None, False)
        if im.ndim(x) == 0:
            return x, im.const(0, "int64")
        return (_largest(im, x, pick, axes_of(im, x, dim), keepdim),
                _place(im, x, place, dim, keepdim))


def _place(im: Importer, x: Expr, place: Callable[..., Expr], dim: int | None, keepdim: bool
           ) -> Any:
    x = im.cast(x, "int8") if im.dtype(x) == "bool" else x
    if dim is None:
        flat = im.emit(place(reshaped(im, x, [-1]), 0, False))
        return reshaped(im, flat, [1] * im.ndim(x)) if keepdim else flat
    if im.ndim(x) == 0:
        return im.const(0, "int64")
    return im.cast(im.emit(place(x, im.axis(dim, im.ndim(x)), keepdim)), "int64")


_extreme("max", op.max, op.argmax, op.maximum)
_extreme("min", op.min, op.argmin, op.minimum)


@rule("argmax")
def _argmax(im: Importer, x: Expr, dim: int | None = None, keepdim: bool = False) -> Any:
    return _place(im, x, op.argmax, dim, keepdim)


@rule("argmin")
def _argmin(im: Importer, x: Expr, dim: int | None = None, keepdim: bool = False) -> Any:
    return _place(im, x, op.argmin, dim, keepdim)


def _truth(name: str, pick: Callable[..., Expr]) -> None:
    @rule(name)
    def translate(im: Importer, x: Expr, dim: Any = None, keepdim: bool = False) -> Any:
        dtype = "uint8" if im.dtype(x) == "uint8" else "bool"
        truth = im.cast(im.cast(x, "bool"), "int8")
        return im.cast(im.emit(pick(truth, axes_of(im, x, dim), keepdim)), dtype)


_truth("any", op.max)
_truth("all", op.min)


@rule("count_nonzero")
def _count_nonzero(im: Importer, x: Expr, dim: Dims = None) -> Any:
    return im.emit(op.sum(im.cast(im.cast(x, "bool"), "int64"), axes_of(im, x, dim)))


# ------------------------------------------------------------------------------- spread


def spread(im: Importer, x: Expr, dim: Dims, unbiased: bool | None, keepdim: bool,
           correction: float | None) -> Any:
    """The variance: the sum of squared distances to the mean over max(n - correction, 0); in
    float32 for 16-bit floats."""
    if isinstance(dim, bool):  # torch.var(x, unbiased)
        dim, unbiased = None, dim
    less = correction if correction is not None else (1 if unbiased in (None, True) else 0)
    x = im.cast(x, sum_type(im.dtype(x)))
    axes = axes_of(im, x, dim)
    sizes = im.shape(x)
    count: Any = 1
    for k in range(len(sizes)) if axes is None else axes:
        count = count * sizes[k]
    dtype = im.dtype(x)
    if isinstance(count, int):
        if count == 0 or count <= less:
            mean = im.emit(op.mean(x, axes, True))
            away = im.emit(op.subtract(x, mean))
            total = im.emit(op.sum(im.emit(op.multiply(away, away)), axes, keepdim))
            return im.emit(op.divide(total, im.const(0.0, dtype)))
        out = im.emit(op.variance(x, axes, keepdim))
        return im.emit(op.multiply(out, im.const(count / (count - less), dtype))) if less else out
    out = im.emit(op.variance(x, axes, keepdim))
    if not less:
        return out
    ratio = op.divide(im.tensor(count, dtype), im.emit(op.maximum(
        im.tensor(count - less, dtype), im.const(0, dtype))))
    return im.emit(op.multiply(out, im.emit(ratio)))


@rule("var")
def _var(im: Importer, x: Expr, dim: Dims = None, unbiased: bool | None = None,
         keepdim: bool = False, *, correction: float | None = None) -> Any:
    return im.cast(spread(im, x, dim, unbiased, keepdim, correction), im.dtype(x))


@rule("std")
def _std(im: Importer, x: Expr, dim: Dims = None, unbiased: bool | None = None,
         keepdim: bool = False, *, correction: float | None = None) -> Any:
    out = im.emit(op.sqrt(spread(im, x, dim, unbiased, keepdim, correction)))
    return im.cast(out, im.dtype(x))


@rule("var_mean")
def _var_mean(im: Importer, x: Expr, dim: Dims = None, unbiased: bool | None = None,
              keepdim: bool = False, *, correction: float | None = None) -> Any:
    over = None if isinstance(dim, bool) else dim
    return (_var(im, x, dim, unbiased, keepdim, correction=correction),
            _mean(im, x, over, keepdim))


@rule("std_mean")
def _std_mean(im: Importer, x: Expr, dim: Dims = None, unbiased: bool | None = None,
              keepdim: bool = False, *, correction: float | None = None) -> Any:
    over = None if isinstance(dim, bool) else dim
    return (_std(im, x, dim, unbiased, keepdim, correction=correction),
            _mean(im, x, over, keepdim))


# ------------------------------------------------------------------------------- norms


@rule("norm", "linalg_vector_norm")
def norm(im: Importer, x: Expr, p: float = 2, dim: Dims = None, keepdim: bool = False, *,
         dtype: object = None) -> Any:
    """(sum |x|^p)^(1/p); the number of what is not 0 for p = 0."""
    p = 2 if p in (None, "fro") else p
    if isinstance(p, str):
        raise ValueError(f"the norm {p!r} of matrices is not translated")
    x = as_float(im, im.cast(x, dtype_name(dtype, im.dtype(x))))
    axes, own = axes_of(im, x, dim), im.dtype(x)
    if sum_type(own) != own:  # 300 * 300 is none of float16's numbers
        return im.cast(norm(im, im.cast(x, sum_type(own)), p, dim, keepdim), own)
    size = im.emit(op.abs(x))
    if p in (math.inf, -math.inf):
        return im.emit((op.max if p > 0 else op.min)(size, axes, keepdim))
    if p == 0:
        some = im.cast(im.emit(op.not_equal(x, im.const(0, im.dtype(x)))), im.dtype(x))
        return im.emit(op.sum(some, axes, keepdim))
    if p == 1:
        return im.emit(op.sum(size, axes, keepdim))
    if p == 2:
        total = im.emit(op.sum(im.emit(op.multiply(x, x)), axes, keepdim))
        return im.emit(op.sqrt(total))
    power = im.emit(op.power(size, im.const(float(p), im.dtype(x))))
    total = im.emit(op.sum(power, axes, keepdim))
    return im.emit(op.power(total, im.const(1 / p, im.dtype(x))))


@rule("linalg_norm")
def _linalg_norm(im: Importer, x: Expr, ord: float | str | None = None, dim: Dims = None,
                 keepdim: bool = False, *, dtype: object = None) -> Any:
    """Norms of vectors; of matrices only that of Frobenius, which is that of their elements."""
    over = im.ndim(x) if dim is None else len(dim) if isinstance(dim, (list, tuple)) else 1
    if ord not in (None, "fro") and over != 1:
        raise ValueError(f"the norm {ord} of matrices is not translated; for all elements as one "
                         "vector there is torch.linalg.vector_norm")
    return norm(im, x, ord, dim, keepdim, dtype=dtype)


@rule("linalg_matrix_norm")
def _matrix_norm(im: Importer, x: Expr, ord: float | str | None = "fro", dim: Dims = (-2, -1),
                 keepdim: bool = False, *, dtype: object = None) -> Any:
    if ord != "fro":
        raise ValueError(f"the norm {ord} of matrices is not translated, only that of Frobenius")
    return norm(im, x, 2, dim, keepdim, dtype=dtype)


@rule("normalize")
def _normalize(im: Importer, x: Expr, p: float = 2.0, dim: Dims = 1, eps: float = 1e-12) -> Any:
    from .arithmetic import divided
    from .casting import clamped

    return divided(im, x, clamped(im, norm(im, x, p, dim, True), eps))


@rule("dist")
def _dist(im: Importer, a: Expr, b: Expr, p: float = 2) -> Any:
    return norm(im, im.emit(op.subtract(*im.pair(a, b))), p)


@rule("cosine_similarity")
def _cosine_similarity(im: Importer, x1: Expr, x2: Expr, dim: int = 1, eps: float = 1e-8) -> Any:
    """a . b / (max(|a|, eps) max(|b|, eps)) along `dim`."""
    own = im.promoted(x1, x2)
    dtype = sum_type(own)
    x1, x2 = im.cast(x1, dtype), im.cast(x2, dtype)
    both = im.emit(op.multiply(*im.pair(x1, x2)))
    sizes = im.shape(both)
    least = im.const(eps, dtype)
    lengths = []
    for t in (x1, x2):
        lengths.append(im.emit(op.maximum(norm(im, im.broadcast(t, sizes), 2, dim), least)))
    return im.cast(im.emit(op.divide(im.emit(op.sum(both, axes_of(im, both, dim))),
                                     im.emit(op.multiply(*lengths)))), own)


@rule("logsumexp", "special_logsumexp")
def _logsumexp(im: Importer, x: Expr, dim: Dims, keepdim: bool = False) -> Any:
    """max + log(sum(exp(x - max))), where a maximum that is infinite counts as 0."""
    x = as_float(im, x)
    axes, own = axes_of(im, x, dim), im.dtype(x)
    x = im.cast(x, sum_type(own))
    top = im.emit(op.max(x, axes, True))
    finite = im.emit(op.isfinite(top))
    top = im.emit(op.where(finite, top, im.const(0, im.dtype(x))))
    total = im.emit(op.sum(im.emit(op.exp(im.emit(op.subtract(x, top)))), axes, True))
    out = im.cast(im.emit(op.add(im.emit(op.log(total)), top)), own)
    gone = list(range(im.ndim(x))) if axes is None else axes
    return out if keepdim or not gone else im.emit(op.squeeze(out, gone))


@rule("trace")
def _trace(im: Importer, x: Expr) -> Any:
    from .placing import _diagonal

    return _sum(im, _diagonal(im, x))


__all__ = ["axes_of", "norm", "spread"]
