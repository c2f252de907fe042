"""Rules of Resize and Upsample.

Resizing goes along one axis after the other: each place of the result is a sum of places of the
input times weights, which are computed here, as numbers. The usual cases, images of which the last
two dimensions change by the ratio of their sizes, are an operator of Relax.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from ....ir.dtype import is_float
from ....tir.expr import PrimExpr
from .... import te
from ... import op
from ...op import image
from .importer import Importer, rule

if TYPE_CHECKING:
    from ...expr import Expr

#: where a place of the result lies, that the operator of Relax knows too
_KNOWN = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
          "tf_crop_and_resize")


@dataclass
class Axis:
    """How one axis is resized."""

    size: int
    wanted: int
    #: how many times larger it is meant to be, which may differ from the ratio of the sizes
    scale: float
    #: the part that is taken, of tf_crop_and_resize
    region: tuple[float, float]

    def places(self, how: str) -> np.ndarray:
        """Where each place of the result lies in the input."""
        x, n = np.arange(self.wanted, dtype="float64"), self.size
        wanted = self.scale * n  # not rounded where a scale is given
        if how == "align_corners":
            return x * 0 if wanted == 1 else x * (n - 1) / (wanted - 1)
        if how == "asymmetric":
            return x / self.scale
        if how == "tf_half_pixel_for_nn":
            return (x + 0.5) / self.scale
        if how == "tf_crop_and_resize":
            start, end = self.region
            if wanted == 1:
                return x + 0.5 * (start + end) * (n - 1)
            return start * (n - 1) + x * (end - start) * (n - 1) / (wanted - 1)
        if how == "pytorch_half_pixel" and self.wanted == 1:
            return x * 0
        out = (x + 0.5) / self.scale - 0.5
        if how == "half_pixel_symmetric":
            return out + n / 2 * (1 - self.wanted / (self.scale * n))
        if how not in ("half_pixel", "pytorch_half_pixel"):
            raise ValueError(f"coordinate_transformation_mode {how} is not translated")
        return out

    def taps(self, places: np.ndarray, mode: str, rounding: str, a: float, antialias: bool,
             inner: bool) -> tuple[np.ndarray, np.ndarray]:
        """The places of the input that each place of the result is made of, and their weights."""
        if mode == "nearest":
            at = {"round_prefer_floor": lambda v: np.ceil(v - 0.5),
                  "round_prefer_ceil": lambda v: np.floor(v + 0.5),
                  "floor": np.floor, "ceil": np.ceil}[rounding](places)
            return np.clip(at, 0, self.size - 1)[:, None], np.ones((self.wanted, 1))
        scale = min(self.scale, 1.0) if antialias else 1.0
        reach = (1 if mode == "linear" else 2) / scale
        low = np.floor(places).astype("int64")
        at = low[:, None] + np.arange(math.floor(-reach) + 1, math.ceil(reach) + 1)
        away = np.abs(at - places[:, None]) * scale
        weights = np.clip(1 - away, 0, 1) if mode == "linear" else _cubic(away, a)
        if inner:
            weights = np.where((at < 0) | (at >= self.size), 0, weights)
        if inner or antialias:
            weights = weights / weights.sum(1, keepdims=True)
        return np.clip(at, 0, self.size - 1), weights


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


@rule("Resize", "Upsample")
def _resize(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, roi, scales, sizes = _parts(im, inputs, attrs)
    have = im.shape(x)
    which = [a % len(have) for a in attrs.get("axes") or range(len(have))]
    policy = attrs.get("keep_aspect_ratio_policy", "stretch")
    how = attrs.get("coordinate_transformation_mode",
                    "half_pixel" if im.opset > 10 else "asymmetric")
    mode, rounding = attrs.get("mode", "nearest"), attrs.get(
        "nearest_mode", "round_prefer_floor" if im.opset > 10 else "floor")
    a, inner = attrs.get("cubic_coeff_a", -0.75), bool(attrs.get("exclude_outside", 0))
    outside, antialias = attrs.get("extrapolation_value", 0.0), bool(attrs.get("antialias", 0))
    factors: list[Any] = [1.0] * len(have)
    wanted = list(have)
    if sizes is not None:
        for k, s in zip(which, sizes):
            wanted[k] = s
            if isinstance(s, int) and isinstance(have[k], int):
                factors[k] = s / have[k]
        if policy != "stretch":
            pick = {"not_larger": min, "not_smaller": max}[policy]
            factor = pick(factors[k] for k in which)
            for k in which:
                factors[k], wanted[k] = factor, math.floor(factor * have[k] + 0.5)
    else:
        for k, f in zip(which, scales):
            factors[k], wanted[k] = f, _scaled(have[k], f)
    changed = [k for k, (h, w) in enumerate(zip(have, wanted))
               if how == "tf_crop_and_resize" and k in which or factors[k] != 1.0
               or isinstance(h, PrimExpr) and h is not w]
    usual = not antialias and how in _KNOWN and how != "tf_crop_and_resize" and all(
        not isinstance(have[k], int) or wanted[k] == factors[k] * have[k] for k in changed)
    if usual and len(have) == 4 and all(k > 1 for k in changed):
        method = "nearest_neighbor" if mode == "nearest" else mode
        return im.emit(image.resize2d(x, wanted[2:], None, "NCHW", method, how, rounding
                                      if mode == "nearest" else "", a, int(inner)))
    if not all(isinstance(have[k], int) and isinstance(wanted[k], int) for k in changed):
        raise ValueError(f"resizing {have} to {wanted} like this needs numbers: give the sizes in "
                         "shape_dict")
    if mode != "nearest" and not is_float(im.dtype(x)):
        raise ValueError(f"resizing numbers of {im.dtype(x)} by {mode} is not translated: cast "
                         "them to float32 before")
    for k in reversed(changed):
        at = which.index(k)
        region = (roi[at], roi[at + len(which)]) if how == "tf_crop_and_resize" else (0.0, 1.0)
        axis = Axis(have[k], wanted[k], factors[k], region)
        places = axis.places(how)
        x = _along(im, x, k, *axis.taps(places, mode, rounding, a, antialias, inner))
        if how == "tf_crop_and_resize":
            inside = ((places >= 0) & (places <= have[k] - 1)).reshape(
                [-1, *[1] * (len(have) - 1 - k)])
            x = im.emit(op.where(im.tensor(inside), x, im.tensor(
                np.asarray(outside, im.dtype(x)))))
    return x


def _parts(im: Importer, inputs: Sequence[Any], attrs: Any) -> tuple[Any, ...]:
    """The tensor, and the region, the scales and the sizes that are given."""
    x, *rest = inputs
    names = ("roi", "scales", "sizes") if im.opset > 10 else ("scales",)
    given = {n: im.numbers(v, n) for n, v in zip(names, rest)
             if v is not None and not (isinstance(v, np.ndarray) and v.size == 0)}
    if "scales" in attrs:  # of Upsample, up to version 7
        given["scales"] = attrs["scales"]
    if ("scales" in given) == ("sizes" in given):
        raise ValueError("either scales or sizes are needed")
    return im.tensor(x), given.get("roi"), given.get("scales"), given.get("sizes")


def _scaled(size: int | PrimExpr, factor: float) -> Any:
    if isinstance(size, int):
        # the scales are float32: what is meant to be a whole number is one
        return math.floor(np.float32(size) * np.float32(factor))
    if float(factor).is_integer():
        return size * int(factor)
    raise ValueError(f"a dimension of unknown size {size} is resized by {factor}, which is no "
                     "whole number: give its size in shape_dict")


def _along(im: Importer, x: Expr, axis: int, places: np.ndarray, weights: np.ndarray) -> Any:
    """Each place of an axis made of several, times their weights."""
    if places.shape[1] == 1:
        return im.emit(op.take(x, im.tensor(places[:, 0].astype("int64")), axis))
    taps = places.shape[1]

    def weighted(x: te.Tensor, at: te.Tensor, by: te.Tensor) -> Any:
        shape = [*x.shape[:axis], places.shape[0], *x.shape[axis + 1:]]
        k = te.reduce_axis((0, taps), "k")
        return te.compute(shape, lambda *i: te.sum(
            x(*i[:axis], at(i[axis], k), *i[axis + 1:]) * by(i[axis], k), axis=k), "resized")

    return im.builder.emit_te(weighted, x, im.tensor(places.astype("int64")),
                              im.tensor(weights.astype(im.dtype(x))), primfunc_name_hint="resize")
