"""Rules of pooling: largest and mean of windows, with places, of windows that fit a size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ....ir.dtype import is_float
from .... import topi
from ... import op
from ...op.pool import ADAPTIVE_AVG_POOLS, AVG_POOLS, MAX_POOLS
from ..common import ceil_pool
from .convolutions import each
from .importer import Importer, rule
from .views import reshaped

if TYPE_CHECKING:
    from collections.abc import Callable
    from ...expr import Expr
    from .importer import Sizes, Steps


def _steps(stride: Steps | None, kernel: list[Any], rank: int) -> list[Any]:
    return kernel if stride in (None, [], ()) else each(stride, rank)


def _batched(im: Importer, x: Expr, rank: int, fn: Callable[..., Expr]) -> Any:
    """`fn` of a batch, for channels without one too."""
    if im.ndim(x) != rank + 1:
        return fn(x)
    out = fn(im.emit(op.expand_dims(x, 0)))
    if isinstance(out, tuple):
        return tuple(im.emit(op.squeeze(o, [0])) for o in out)
    return im.emit(op.squeeze(out, [0]))


#: torch's names by the number of spatial dimensions
MAX = {1: "max_pool1d", 2: "max_pool2d", 3: "max_pool3d"}
MAX_WITH_INDICES = {1: "max_pool1d_with_indices", 2: "max_pool2d_with_indices",
                    3: "max_pool3d_with_indices"}
AVERAGE = {1: "avg_pool1d", 2: "avg_pool2d", 3: "avg_pool3d"}
ADAPTIVE_AVERAGE = {1: "adaptive_avg_pool1d", 2: "adaptive_avg_pool2d", 3: "adaptive_avg_pool3d"}
ADAPTIVE_MAX = {1: "adaptive_max_pool1d", 2: "adaptive_max_pool2d", 3: "adaptive_max_pool3d"}
_UNPOOL = {2: "max_unpool2d", 3: "max_unpool3d"}
_ADAPTIVE_KERNELS = {1: topi.nn.adaptive_pool1d, 2: topi.nn.adaptive_pool,
                     3: topi.nn.adaptive_pool3d}


def _pool(rank: int) -> None:
    largest, mean, adaptive = MAX_POOLS[rank], AVG_POOLS[rank], ADAPTIVE_AVG_POOLS[rank]

    def pooled(im: Importer, build: Callable[..., Expr], x: Expr, kernel: Any,
               stride: Any, padding: Steps, dilation: Steps, ceil_mode: bool,
               include: bool) -> Any:
        kernel, spread = each(kernel, rank), each(dilation, rank)
        steps, widths = _steps(stride, kernel, rank), each(padding, rank) * 2
        if any(2 * p > k for p, k in zip(widths, kernel)):
            raise ValueError(f"padding {widths[:rank]} is more than half of the window {kernel}")

        def run(x: Expr) -> Any:
            if ceil_mode:
                return ceil_pool(im, build, x, kernel, steps, widths, spread, include)
            return im.emit(build(x, kernel, steps, widths, spread, False, include))

        return _batched(im, x, rank, run)

    @rule(MAX[rank])
    def maximum(im: Importer, x: Expr, kernel_size: Steps, stride: Steps | None = None,
                padding: Steps = 0, dilation: Steps = 1, ceil_mode: bool = False,
                return_indices: bool = False) -> Any:
        if return_indices:
            return with_indices(im, x, kernel_size, stride, padding, dilation, ceil_mode)
        return pooled(im, largest, x, kernel_size, stride, padding, dilation, ceil_mode, False)

    @rule(MAX_WITH_INDICES[rank])
    def with_indices(im: Importer, x: Expr, kernel_size: Steps, stride: Steps | None = None,
                     padding: Steps = 0, dilation: Steps = 1, ceil_mode: bool = False,
                     return_indices: bool = True) -> Any:
        """Values, and their places in the flattened image; the places only where they are used."""
        if not _second_used(im):
            return (maximum(im, x, kernel_size, stride, padding, dilation, ceil_mode), None)
        kernel = each(kernel_size, rank)
        steps, around, spread = _steps(stride, kernel, rank), each(padding, rank), each(
            dilation, rank)

        def run(x: Expr) -> Any:
            sizes = [_windows(n, k, s, p, d, ceil_mode) for n, k, s, p, d in zip(
                im.shape(x)[2:], kernel, steps, around, spread)]
            out = im.kernel(topi.windows.max_pool_places, x, sizes, kernel, steps, around, spread,
                            name=MAX_WITH_INDICES[rank])
            return im.emit(out[0]), im.emit(out[1])

        return _batched(im, x, rank, run)

    @rule(AVERAGE[rank])
    def average(im: Importer, x: Expr, kernel_size: Steps, stride: Steps | None = None,
                padding: Steps = 0, ceil_mode: bool = False, count_include_pad: bool = True,
                divisor_override: int | None = None) -> Any:
        if not is_float(im.dtype(x)):
            return _of_integers(im, average, x, rank, kernel_size, stride, padding, ceil_mode,
                                count_include_pad, divisor_override)
        if divisor_override is None:
            return pooled(im, mean, x, kernel_size, stride, padding, 1, ceil_mode,
                          count_include_pad)
        # a sum over a number: the mean of whole windows, padded with zeros by hand
        sizes, around = each(kernel_size, rank), each(padding, rank)
        steps = _steps(stride, sizes, rank)

        behind = [min(k - 1, p + s - 1) if ceil_mode else p
                  for k, p, s in zip(sizes, around, steps)]
        out = _batched(im, x, rank, lambda x: im.emit(mean(
            x, sizes, steps, [*around, *behind], 1, False, True)))
        count = math.prod(sizes)
        return im.emit(op.multiply(out, im.const(count / divisor_override, im.dtype(x))))

    @rule(ADAPTIVE_AVERAGE[rank], "_" + ADAPTIVE_AVERAGE[rank])
    def fitted(im: Importer, x: Expr, output_size: Sizes | None) -> Any:
        have = im.shape(x)[-rank:]
        sizes = [h if s is None else s for s, h in zip(each(output_size, rank), have)]
        return _batched(im, x, rank, lambda x: im.emit(adaptive(x, sizes)))


def _of_integers(im: Importer, average: Callable[..., Expr], x: Expr, rank: int, kernel_size: Steps,
                 stride: Steps | None, padding: Steps, ceil_mode: bool, include: bool,
                 divisor: int | None) -> Any:
    """Means of whole numbers: computed in float64, and rounded towards 0."""
    wide = im.cast(x, "float64")
    if divisor is None:
        out = average(im, wide, kernel_size, stride, padding, ceil_mode, include)
    else:
        total = im.emit(op.round(average(im, wide, kernel_size, stride, padding, ceil_mode, True,
                                         1)))
        out = im.emit(op.divide(total, im.const(float(divisor), "float64")))
    return im.cast(im.emit(op.trunc(out)), im.dtype(x))


def _second_used(im: Importer) -> bool:
    """Whether the second result of the node that is translated is asked for."""
    if im.node is None:
        return True
    return any(not (getattr(u.target, "__name__", "") == "getitem" and u.args[1] == 0)
               for u in im.node.users)


def _windows(size: Any, kernel: int, step: int, around: int, dilation: int, ceil_mode: bool
             ) -> Any:
    """How many windows there are along a dimension: rounded up, a window begins inside or in the
    padding before."""
    room = size + 2 * around - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return room // step + 1
    count = (room + step - 1) // step + 1
    if isinstance(count, int):
        return count - 1 if (count - 1) * step >= size + around else count
    raise ValueError(f"ceil_mode with places, along a dimension of size {size}, which is not known")


for _rank in (1, 2, 3):
    _pool(_rank)


def _adaptive_max(rank: int) -> None:
    compiled, own_name = _ADAPTIVE_KERNELS[rank], ADAPTIVE_MAX[rank]

    def sizes_of(im: Importer, x: Expr, output_size: Sizes | None) -> tuple[list[Any], list[Any]]:
        have = im.shape(x)[2:]
        return have, [h if s is None else s for s, h in zip(each(output_size, rank), have)]

    @rule(own_name)
    def fitted(im: Importer, x: Expr, output_size: Sizes | None, return_indices: bool = False
               ) -> Any:
        """Windows of one size where the sizes divide, else TOPI's, which Relax has no name for."""
        if return_indices:
            return with_indices(im, x, output_size)

        def run(x: Expr) -> Any:
            have, sizes = sizes_of(im, x, output_size)
            if all(isinstance(h, int) and isinstance(s, int) and s and h % s == 0
                   for h, s in zip(have, sizes)):
                steps = [h // s for h, s in zip(have, sizes)]
                return im.emit(MAX_POOLS[rank](x, steps, steps))
            return im.kernel(lambda data, sizes: compiled(data, sizes, "max", exact=True), x,
                             sizes, name=own_name)

        return _batched(im, x, rank, run)

    @rule(own_name + ".default")
    def with_indices(im: Importer, x: Expr, output_size: Sizes | None) -> Any:
        if not _second_used(im):
            return (fitted(im, x, output_size), None)

        def run(x: Expr) -> Any:
            _, sizes = sizes_of(im, x, output_size)
            out = im.kernel(topi.windows.adaptive_max_pool_places, x, sizes,
                            name=own_name + "_with_indices")
            return im.emit(out[0]), im.emit(out[1])

        return _batched(im, x, rank, run)


def _unpool(rank: int) -> None:
    @rule(_UNPOOL[rank])
    def translate(im: Importer, x: Expr, indices: Expr, output_size: Sizes | None, *rest: object,
                  stride: Steps | None = None, padding: Steps = 0) -> Any:
        """Values put at their places in an image of zeros."""
        sizes = each(output_size, rank)[-rank:]
        lead = im.shape(x)[:-rank]
        rows: Any = 1
        for d in lead:
            rows = rows * d
        flat, at = reshaped(im, x, [rows, -1]), reshaped(im, indices, [rows, -1])
        out = im.emit(op.scatter_elements(im.zeros([rows, math.prod(sizes)], im.dtype(x)), at,
                                          flat, 1))
        return reshaped(im, out, [*lead, *sizes])


for _rank in (1, 2, 3):
    _adaptive_max(_rank)
for _rank in (2, 3):
    _unpool(_rank)
