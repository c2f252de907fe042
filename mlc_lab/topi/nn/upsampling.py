"""Enlarging images by a factor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...te.tensor import Tensor
from ..utils import need, number, simplify

if TYPE_CHECKING:
    from collections.abc import Sequence


def upsampling(data: Tensor, scale_h: float, scale_w: float, layout: str = "NCHW",
               method: str = "nearest_neighbor", align_corners: bool = False,
               output_shape: Sequence[Any] | None = None) -> Tensor:
    """data scale_h times as high and scale_w times as wide; method as in image.resize2d."""
    from ..image import resize2d

    need(layout in ("NCHW", "NHWC"), f'upsampling: layout "{layout}" is none of "NCHW", "NHWC"')
    h, w = (data.shape[layout.index(c)] for c in "HW")

    def scaled(size: Any, by: float) -> Any:
        known = number(size)
        return round(known * by) if isinstance(known, int) else simplify(known * int(by))

    size = output_shape or [scaled(h, scale_h), scaled(w, scale_w)]
    how = "align_corners" if align_corners else (
        "asymmetric" if method == "nearest_neighbor" else "half_pixel")
    kind = {"bilinear": "linear", "bicubic": "cubic"}.get(method, method)
    return resize2d(data, [0.0] * 4, size, layout, kind, how)


__all__ = ["upsampling"]
