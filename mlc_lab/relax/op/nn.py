"""Neural network operators under R.nn: activations, softmax, pad, pixel_shuffle, dropout.

The others of `R.nn` are in `conv.py`, `pool.py`, `norm.py`, `loss.py` and `attention.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from ...tir import op as O
from ..expr import Call, Expr, Tuple
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo, as_dim
from .common import (
    axis_of, join_dtype, misfit, need_at_least, need_multiple, need_ndim, need_same, one_of, real,
    show, tensor_of, whole_numbers,
)
from .create import ones_like
from .declare import (
    Axis, Float, FloatTensor, Kind, NumberTensor, Plain, Tensor, Whole, constructor, like_first,
    of_other_versions, operator,
)
from .elementwise import ELEMENTWISE, clip, unary
from .later import te, topi

if TYPE_CHECKING:  # for editors
    from .attention import *  # noqa: F403
    from .conv import *  # noqa: F403
    from .loss import *  # noqa: F403
    from .norm import *  # noqa: F403
    from .pool import *  # noqa: F403

relu = unary("relax.nn.relu", NumberTensor, **ELEMENTWISE)
gelu = unary("relax.nn.gelu", **ELEMENTWISE)
gelu_tanh = unary("relax.nn.gelu_tanh", **ELEMENTWISE)
silu = unary("relax.nn.silu", **ELEMENTWISE)
selu = unary("relax.nn.selu", **ELEMENTWISE)


@constructor("relax.nn.relu6")
def relu6(data: Any) -> Expr:
    """Values limited to [0, 6]: R.clip."""
    return clip(data, 0, 6)


@operator("relax.nn.leakyrelu", like_first, hint="leaky_relu", layout="elementwise")
def leakyrelu(data: FloatTensor, alpha: Float = 0.01) -> Tensor:
    """data where positive, else alpha * data."""
    return topi.nn.leaky_relu(data, alpha)


@operator("relax.nn.softplus", like_first, layout="elementwise")
def softplus(data: FloatTensor, beta: Float = 1.0, threshold: Float = 20.0) -> Tensor:
    """log(1 + exp(beta * data)) / beta; data itself above the threshold."""
    return topi.nn.softplus(data, beta, threshold)


def _infer_prelu(call: Call, info: TensorStructInfo, alpha: TensorStructInfo) -> StructInfo:
    join_dtype(call, info.dtype, alpha.dtype, ("data", "alpha"))
    need_ndim(call, alpha, 1, "alpha")
    if info.ndim != -1:
        axis = axis_of(call, call.attrs.axis, info.ndim)
        if info.dims is not None and alpha.dims is not None:
            need_same(call, info.dims[axis], alpha.dims[0], lambda: (
                f"data is {show(info)} and alpha is {show(alpha)}: dimension {axis} of data must "
                "have alpha's extent"))
    return info


@operator("relax.nn.prelu", _infer_prelu)
def prelu(data: FloatTensor, alpha: Tensor, axis: Whole = 1) -> Tensor:
    """data where positive, else alpha (one a channel) * data."""
    return topi.nn.prelu(data, alpha, axis)


@operator("relax.nn.softmax", like_first, layout="along")
def softmax(data: FloatTensor, axis: Axis = -1) -> Tensor:
    """softmax along `axis`."""
    return topi.nn.softmax(data, axis)


@operator("relax.nn.log_softmax", like_first, layout="along")
def log_softmax(data: FloatTensor, axis: Axis = -1) -> Tensor:
    """log_softmax along `axis`."""
    return topi.nn.log_softmax(data, axis)


def _infer_pad(call: Call, info: TensorStructInfo) -> StructInfo:
    widths = call.attrs.pad_width
    if info.ndim != -1 and len(widths) != 2 * info.ndim:
        raise misfit(call, f"data is {show(info)}; pad_width must have {2 * info.ndim} numbers, "
                           f"it has {len(widths)}")
    mode = call.attrs.pad_mode
    one_of(call, "pad_mode", mode, ("constant", "reflect", "replicate", "edge", "circular"))
    if info.dims is None:
        return TensorStructInfo(None, info.dtype, ndim=info.ndim)
    for k, d in enumerate(info.dims):
        around = widths[2 * k:2 * k + 2]
        most_around = max((w for w in around if isinstance(w, int)), default=0)
        if mode == "constant":
            if sum(w for w in around if isinstance(w, int)) < 0:
                need_at_least(call, d, as_dim(-sum(around)), lambda k=k, around=around: (
                    f"data is {show(info)}: {list(around)} takes more from dimension {k} than it "
                    "has"))
        elif most_around > 0:
            least = {"reflect": most_around + 1, "circular": most_around}.get(mode, 1)
            most = getattr(d, "value", 0) - least + most_around if least > 1 else 0
            need_at_least(call, d, as_dim(least), lambda k=k, around=around, most=most: (
                f"data is {show(info)}: pad_mode {mode!r} adds at most {most} element(s) along "
                f"dimension {k}, not {list(around)}"))
    return tensor_of([O.add(d, as_dim(widths[2 * k] + widths[2 * k + 1]))
                      for k, d in enumerate(info.dims)], info.dtype)


def _pairs(value: Any) -> Any:
    """Widths as one row of numbers: before and after each dimension."""
    if isinstance(value, (tuple, list)) and value and isinstance(value[0], (tuple, list)):
        value = [width for pair in value for width in pair]
    return whole_numbers("pad_width", value)


def _pad_attrs(name: str, given: dict[str, Any]) -> dict[str, Any]:
    mode, value = given["pad_mode"], given["pad_value"]
    if isinstance(mode, (int, float)):  # older order: pad_width, pad_value, pad_mode
        mode, value = "constant", mode
    value = real("pad_value", 0.0 if value is None else value)
    return {"pad_width": given["pad_width"], "pad_value": value,
            "pad_mode": str(mode)}


Widths = Annotated[Any, Kind(_pairs)]


@operator("relax.nn.pad", _infer_pad, attrs=_pad_attrs)
def pad(data: Tensor, pad_width: Widths, pad_mode: Plain = "constant",
        pad_value: Plain = 0.0) -> Tensor:
    """data with `pad_width` (before, after of each dimension, flat) elements around it."""
    before, after = pad_width[0::2], pad_width[1::2]
    if pad_mode == "constant":
        return topi.nn.pad(data, before, after, pad_value)
    modes = {"reflect": topi.nn.reflect_pad, "replicate": topi.nn.replicate_pad,
             "edge": topi.nn.replicate_pad, "circular": topi.nn.circular_pad}
    return modes[pad_mode](data, before, after)


def _infer_pixel_shuffle(call: Call, info: TensorStructInfo) -> StructInfo:
    r = call.attrs.upscale_factor
    if r < 1 or -1 < info.ndim < 3:
        raise misfit(call, f"data is {show(info)} and upscale_factor {r}: three dimensions at the "
                           "least and a positive factor are needed")
    if info.dims is None:
        return TensorStructInfo(None, info.dtype, ndim=info.ndim)
    *lead, c, h, w = info.dims
    need_multiple(call, c, r * r, lambda: (
        f"data is {show(info)}: its channels are no multiple of {r}²"))
    return tensor_of([*lead, O.floordiv(c, as_dim(r * r)), O.mul(h, as_dim(r)),
                      O.mul(w, as_dim(r))], info.dtype)


@operator("relax.nn.pixel_shuffle", _infer_pixel_shuffle)
def pixel_shuffle(data: Tensor, upscale_factor: Whole) -> Tensor:
    """Channels moved into height and width, as torch's PixelShuffle."""
    by = upscale_factor
    *lead, c, h, w = data.shape

    def element(*i: Any) -> Any:
        *before, c, y, z = i
        channel = c * (by * by) + O.floormod(y, by) * by + O.floormod(z, by)
        return data(*before, channel, O.floordiv(y, by), O.floordiv(z, by))

    return te.compute([*lead, O.floordiv(c, by * by), h * by, w * by], element,
                      name="pixel_shuffle", tag="injective")


def _infer_dropout(call: Call, data: TensorStructInfo) -> StructInfo:
    return TupleStructInfo([data, data])


def _dropout(bb: Any, call: Call) -> Expr:
    """In inference nothing is dropped: the data, and a mask of ones."""
    return Tuple([call.args[0], bb.emit(ones_like(call.args[0]))])


@operator("relax.nn.dropout", _infer_dropout, legalize=_dropout, **ELEMENTWISE)
def dropout(data: Tensor, rate: Float = 0.5) -> Any:
    """(data with a share `rate` of it zeroed, the mask): the identity in inference."""


__getattr__ = of_other_versions(__name__, "relax.nn")
