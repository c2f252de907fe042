"""Rules of images: resizing, and sampling at computed places."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from ....ir.dtype import is_float
from ....tir import op as O
from ....tir.expr import PrimExpr
from .... import topi
from ... import op
from ...op import image
from .convolutions import each
from .importer import Importer, rule
from .views import reshaped

if TYPE_CHECKING:
    from ...expr import Expr
    from .importer import Size, Sizes

_METHODS = {"nearest": "nearest", "nearest-exact": "nearest-exact", "linear": "linear",
            "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}
_RANKS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}


@rule("__interpolate")
def _scripted_interpolate(im: Importer, x: Expr, size: Sizes | None = None,
                          scale_factor: float | Sequence[float] | None = None,
                          mode: str = "nearest", align_corners: bool | None = None,
                          recompute_scale_factor: bool | None = None, antialias: bool = False
                          ) -> Any:
    """The operator of TorchScript, which recomputes the factor unless it is told not to."""
    return interpolate(im, x, size, scale_factor, mode, align_corners,
                       recompute_scale_factor is not False, antialias)


@rule("interpolate", "upsample")
def interpolate(im: Importer, x: Expr, size: Sizes | None = None,
                scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Any:
    """Images resized. With `scale_factor` torch maps places by the factor itself, not by the
    quotient of the sizes, unless it is told to recompute it."""
    spatial = im.shape(x)[2:]
    rank = len(spatial)
    if mode == "area":
        from .importer import RULES
        from .pooling import ADAPTIVE_AVERAGE

        return RULES[ADAPTIVE_AVERAGE[rank]](im, x, size or _scaled(im, spatial, scale_factor))
    if mode not in _METHODS or _RANKS.get(mode, rank) != rank:
        raise ValueError(f"interpolate with mode={mode!r} of {rank} dimension(s) is not translated")
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate takes a size or a scale_factor, one of them")
    scales: list[Any] = [None] * rank
    if size is None:
        size = _scaled(im, spatial, scale_factor)
        if not recompute_scale_factor:
            scales = each(scale_factor, rank)
    return resized(im, x, each(size, rank), scales, _METHODS[mode], bool(align_corners), antialias)


def _scaled(im: Importer, spatial: Sequence[Any], factors: Any) -> list[Any]:
    """floor(size * factor) for each dimension."""
    fake = im.fake(im.node) if im.node is not None else None
    out = []
    for k, (n, f) in enumerate(zip(spatial, each(factors, len(spatial)))):
        if isinstance(n, int) and not isinstance(f, PrimExpr):
            out.append(math.floor(n * f))
        elif isinstance(f, (int, float)) and float(f).is_integer():
            out.append(n * int(f))
        elif isinstance(f, float) and (1 / f).is_integer():
            out.append(O.floordiv(n, int(1 / f)))
        elif fake is not None:
            out.append(im.sizes.size(fake.shape[2 + k]))
        else:
            size = O.cast(O.convert(n), "float64")
            out.append(O.cast(O.floor(size * O.const(f, "float64")), "int64"))
    return out


def resized(im: Importer, x: Expr, size: list[Any], scales: list[Any], method: str, align: bool,
            antialias: bool = False) -> Any:
    """Images of a size; `scales` are None where the quotient of the sizes says how places map."""
    spatial = im.shape(x)[2:]
    kind = im.dtype(x)
    if method in ("linear", "cubic") and not is_float(kind):
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        for k in reversed(range(len(spatial))):  # as torch: rounded after each dimension
            wanted = [size[k] if d == k else n for d, n in enumerate(im.shape(x)[2:])]
            factors = [scales[k] if d == k else None for d in range(len(spatial))]
            out = resized(im, im.cast(x, "float32"), wanted, factors, method, align, antialias)
            x = im.cast(im.emit(op.clip(im.emit(op.round(out)), low, high)), kind)
        return x
    if antialias:
        return _antialiased(im, x, size, scales, method, align)
    plain = all(_is_quotient(n, s, f) for n, s, f in zip(spatial, size, scales))
    if plain and len(spatial) == 2 and im.dtype(x) in ("float32", "float16"):
        if method == "nearest":
            how, kind, rounding = "asymmetric", "nearest_neighbor", "floor"
        elif method == "nearest-exact":
            how, kind, rounding = "half_pixel", "nearest_neighbor", "round_prefer_ceil"
        else:
            how, kind, rounding = "align_corners" if align else "half_pixel", method, ""
        return im.emit(image.resize2d(x, size, None, "NCHW", kind, how, rounding))
    for k, (n, s, f) in enumerate(zip(spatial, size, scales)):
        if im.same_size(n, s) and (f is None or f == 1):
            continue
        x = im.kernel(lambda x, s, k=k, f=f: topi.resampling.resample(
            x, k + 2, s, method, None if f is None else 1 / f, align), x, s, name="resample")
    return x


def _is_quotient(have: Size, wanted: Size, scale: float) -> bool:
    """Whether a factor says no more than the sizes do."""
    if scale is None:
        return True
    if isinstance(have, int) and isinstance(wanted, int):
        return have * scale == wanted
    return isinstance(scale, (int, float)) and float(scale).is_integer()


def _antialiased(im: Importer, x: Expr, size: list[Any], scales: list[Any], method: str,
                 align: bool) -> Any:
    if method not in ("linear", "cubic"):
        raise ValueError(f"antialias with mode {method} is not known to torch either")
    for k, (n, s, f) in enumerate(zip(im.shape(x)[2:], size, scales)):
        if not all(isinstance(v, int) for v in (n, s)):
            raise ValueError(f"antialias of a dimension of size {n} to {s}: the sizes must be "
                             "known")
        weights = topi.resampling.antialias_weights(n, s, method, f, align)
        x = _weighed(im, x, k + 2, weights)
    return x


def _weighed(im: Importer, x: Expr, dim: int, weights: Any) -> Any:
    """Sums by a matrix [new, old] along a dimension, of those elements alone that have a weight:
    a NaN or an infinity stays where the filter reaches it."""
    dtype, (new, old) = im.dtype(x), weights.shape
    kind = "float64" if dtype == "float64" else "float32"
    used = weights != 0
    first = used.argmax(1)
    width = int((old - used[:, ::-1].argmax(1) - first).max())
    taps = np.minimum(first[:, None] + np.arange(width), old - 1)
    # beyond the last element, it is there again with no weight
    there = (first[:, None] + np.arange(width) < old) & np.take_along_axis(used, taps, 1)
    after = [1] * (im.ndim(x) - 1 - dim)

    def along(table: Any, dtype: str) -> Any:
        return im.const(table.reshape(new, width, *after), dtype)

    read = im.cast(im.emit(op.take(x, im.const(taps.reshape(-1), "int64"), axis=dim)), kind)
    sizes = im.shape(x)
    read = im.emit(op.reshape(read, [*sizes[:dim], new, width, *sizes[dim + 1:]]))
    parts = im.emit(op.multiply(read, along(np.take_along_axis(weights, taps, 1), kind)))
    parts = im.emit(op.where(along(there, "bool"), parts, im.const(0, kind)))
    return im.cast(im.emit(op.sum(parts, dim + 1)), dtype)


def _upsample(name: str, method: str, aligned: bool, antialias: bool = False) -> None:
    """upsample_*(x, size, [align,] scales...) and their .vec forms (x, size, [align,] factors)."""
    def run(im: Importer, x: Any, size: Any, align: bool, scales: Sequence[Any]) -> Any:
        given = list(scales[0]) if scales and isinstance(scales[0], (list, tuple)) else list(scales)
        rank = im.ndim(x) - 2
        if size is None:
            size = _scaled(im, im.shape(x)[2:], given)
        given = (given + [None] * rank)[:rank]
        return resized(im, x, list(size), given, method, align, antialias)

    if aligned:
        @rule(name, f"_{name}")
        def with_corners(im: Importer, x: Expr, size: Sizes | None, align_corners: bool,
                         *scales: float | None, scale_factors: Sequence[float] | None = None
                         ) -> Any:
            return run(im, x, size, align_corners, scales if scale_factors is None else (
                scale_factors,))
    else:
        @rule(name, f"_{name}")
        def plain(im: Importer, x: Expr, size: Sizes | None, *scales: float | None,
                  scale_factors: Sequence[float] | None = None) -> Any:
            return run(im, x, size, False, scales if scale_factors is None else (scale_factors,))


for _rank in ("1d", "2d", "3d"):
    _upsample(f"upsample_nearest{_rank}", "nearest", False)
    _upsample(f"upsample_nearest_exact{_rank}", "nearest-exact", False)
for _name, _method in (("linear1d", "linear"), ("bilinear2d", "linear"), ("trilinear3d", "linear"),
                       ("bicubic2d", "cubic")):
    _upsample(f"upsample_{_name}", _method, True)
for _name, _method in (("bilinear2d_aa", "linear"), ("bicubic2d_aa", "cubic")):
    _upsample(f"upsample_{_name}", _method, True, True)


# ------------------------------------------------------------------------------- sampling

_INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


@rule("grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "cudnn_grid_sampler",
      "_grid_sampler_2d_cpu_fallback")
def _grid_sampler(im: Importer, x: Expr, grid: Expr, interpolation_mode: int = 0,
                  padding_mode: int = 0, align_corners: bool = False) -> Any:
    return sampled(im, x, grid, _INTERPOLATIONS[interpolation_mode], _PADDINGS[padding_mode],
                   align_corners)


@rule("grid_sample")
def _grid_sample(im: Importer, x: Expr, grid: Expr, mode: str = "bilinear",
                 padding_mode: str = "zeros", align_corners: bool | None = None) -> Any:
    return sampled(im, x, grid, mode, padding_mode, bool(align_corners))


def sampled(im: Importer, x: Expr, grid: Expr, mode: str, padding: str, align: bool) -> Any:
    """x [N, C, ..] at the places of grid [N, .., dimensions], from -1 to 1."""
    return im.kernel(lambda x, grid: topi.sampling.grid_sample(x, grid, mode, padding, align), x,
                     grid, name="grid_sample")


@rule("affine_grid", "affine_grid_generator")
def _affine_grid(im: Importer, theta: Expr, size: Any, align_corners: bool | None = False
                 ) -> Any:
    """theta times the corners (x, y, .., 1) of every pixel."""
    dtype = im.dtype(theta)
    spatial = list(size)[2:]
    rank = len(spatial)
    columns = []
    for k, n in enumerate(reversed(spatial)):
        line = im.emit(op.arange(0, n, 1, dtype))
        count = im.tensor(n, dtype)
        one, two = im.const(1, dtype), im.const(2, dtype)
        if align_corners:
            steps = im.emit(op.maximum(im.emit(op.subtract(count, one)), one))
            at = im.emit(op.subtract(im.emit(op.divide(im.emit(op.multiply(line, two)), steps)),
                                     one))
            if isinstance(n, int) and n == 1:
                at = im.zeros([1], dtype)
        else:
            at = im.emit(op.add(im.emit(op.multiply(line, two)), one))
            at = im.emit(op.subtract(im.emit(op.divide(at, count)), one))
        shape = [1] * rank
        shape[rank - 1 - k] = n
        columns.append(im.broadcast(reshaped(im, at, [*shape, 1]), [*spatial, 1]))
    columns.append(im.full([*spatial, 1], 1, dtype))
    base = im.emit(op.concat(columns, rank))
    flat = reshaped(im, base, [1, -1, rank + 1])
    out = im.emit(op.matmul(flat, im.emit(op.permute_dims(theta, [0, 2, 1]))))
    return reshaped(im, out, [list(size)[0], *spatial, rank])


__all__ = ["interpolate", "resized", "sampled"]
