"""Operators on `nn.Tensor`: each writes a call of the Relax operator into the function.

`name` is the name of the variable for the result. Shapes, types and refusals are those of the Relax
operators (`relax/op/`); kernels and functions of one's own are in `calls`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Sequence

import numpy as np

from .... import tir
from ... import op as R
from ...expr import Constant, Expr, const
from .calls import (
    debug_func, extern, print_, tensor_expr_op, tensor_ir_inplace_op, tensor_ir_op,
)
from .tensor import Tensor, dimensions, unwrap, wrap_nested

if TYPE_CHECKING:
    from ....tir.expr import PrimExpr


def _result(expr: Expr, name: str) -> Any:
    return wrap_nested(expr, name)


def _unary(name: str, func: Callable, doc: str) -> Callable[..., Tensor]:
    def apply(x: Tensor, name: str = name) -> Tensor:
        return _result(func(unwrap(x)), name)

    return _named(apply, name, doc)


def _binary(public: str, func: Callable, doc: str, name: str = "") -> Callable[..., Tensor]:
    def apply(a: Any, b: Any, name: str = name or public) -> Tensor:
        like = a if isinstance(a, Tensor) else b
        if not isinstance(like, Tensor):
            raise TypeError(f"nn.op.{public} needs a tensor; these are {a!r} and {b!r}")
        return _result(func(unwrap(a, like), unwrap(b, like)), name)

    return _named(apply, public, doc)


def _named(func: Callable, name: str, doc: str) -> Callable:
    func.__name__ = func.__qualname__ = name
    func.__doc__ = doc
    return func


# ------------------------------------------------------------------------------- elementwise

relu = _unary("relu", R.nn.relu, "max(x, 0).")
relu6 = _unary("relu6", R.nn.relu6, "min(max(x, 0), 6).")
silu = _unary("silu", R.nn.silu, "x * sigmoid(x).")
sigmoid = _unary("sigmoid", R.sigmoid, "1 / (1 + exp(-x)).")
tanh = _unary("tanh", R.tanh, "The hyperbolic tangent.")
exp = _unary("exp", R.exp, "e to the power of x.")
log = _unary("log", R.log, "The natural logarithm.")
floor = _unary("floor", R.floor, "The largest whole number that is not above x.")
square = _unary("square", R.square, "x * x.")
sqrt = _unary("sqrt", R.sqrt, "The square root.")
negative = _unary("neg", R.negative, "-x.")
negative.__name__ = negative.__qualname__ = "negative"

add = _binary("add", R.add, "a + b, broadcast.")
subtract = _binary("subtract", R.subtract, "a - b, broadcast.")
multiply = _binary("multiply", R.multiply, "a * b, broadcast.", "mul")
divide = _binary("divide", R.divide, "a / b, broadcast.")
maximum = _binary("maximum", R.maximum, "The larger of a and b, broadcast.")
minimum = _binary("minimum", R.minimum, "The smaller of a and b, broadcast.")
less = _binary("less", R.less, "a < b, broadcast.")
less_equal = _binary("less_equal", R.less_equal, "a <= b, broadcast.")
greater = _binary("greater", R.greater, "a > b, broadcast.")
greater_equal = _binary("greater_equal", R.greater_equal, "a >= b, broadcast.")
equal = _binary("equal", R.equal, "a == b, broadcast.")
not_equal = _binary("not_equal", R.not_equal, "a != b, broadcast.")


def where(condition: Tensor, x1: Any, x2: Any, name: str = "where") -> Tensor:
    """x1 where the condition holds, else x2; broadcast. A condition of numbers holds where they are
    not 0."""
    like = x1 if isinstance(x1, Tensor) else x2 if isinstance(x2, Tensor) else None
    if condition.dtype != "bool":
        condition = astype(condition, "bool")
    return _result(R.where(unwrap(condition), unwrap(x1, like), unwrap(x2, like)), name)


def gelu(x: Tensor, approximate: str | None = None, name: str = "gelu") -> Tensor:
    """x times the normal distribution's share below x; with "tanh" by its approximation."""
    if approximate not in (None, "none", "tanh"):
        raise ValueError(f"gelu: approximate is {approximate!r}; it can be None or 'tanh'")
    return _result((R.nn.gelu_tanh if approximate == "tanh" else R.nn.gelu)(unwrap(x)), name)


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0,
             name: str = "softplus") -> Tensor:
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x is above the threshold."""
    return _result(R.nn.softplus(unwrap(x), beta, threshold), name)


def prelu(x: Tensor, alpha: Tensor, name: str = "prelu") -> Tensor:
    """x, and alpha * x where x is negative; alpha has a number for each channel (axis 1)."""
    return _result(R.nn.prelu(unwrap(x), unwrap(alpha)), name)


def astype(x: Tensor, dtype: str, name: str = "astype") -> Tensor:
    """x in another type; x itself where it has that type."""
    return x if x.dtype == dtype else _result(R.astype(unwrap(x), dtype), name)


# ------------------------------------------------------------------------------- shapes


def unsqueeze(x: Tensor, dim: int, name: str = "unsqueeze") -> Tensor:
    """A new dimension of extent 1 at `dim`."""
    return _result(R.expand_dims(unwrap(x), dim), name)


def squeeze(x: Tensor, axis: int | Sequence[int] | None = -1, name: str = "squeeze") -> Tensor:
    """Without the dimensions of extent 1 at `axis` (None: all such)."""
    return _result(R.squeeze(unwrap(x), axis), name)


def concat(x: Sequence[Tensor], dim: int, name: str = "concat") -> Tensor:
    """Tensors one after the other along a dimension."""
    return _result(R.concat(unwrap(list(x)), dim), name)


def split(ary: Tensor, indices_or_sections: Any, axis: int = 0,
          name: str = "split") -> tuple[Tensor, ...]:
    """Equal parts, or parts that begin at these indices."""
    return _result(R.split(unwrap(ary), indices_or_sections, axis), name)


def chunk(x: Tensor, chunks: int, dim: int = 0, name: str = "chunk") -> tuple[Tensor, ...]:
    """So many equal parts."""
    return split(x, chunks, dim, name)


def broadcast_to(x: Tensor, shape: Sequence[Any], name: str = "broadcast_to") -> Tensor:
    """x repeated along dimensions of extent 1, to a shape."""
    return _result(R.broadcast_to(unwrap(x), _shape(shape)), name)


def permute_dims(x: Tensor, axes: Sequence[int] | None = None,
                 name: str | None = None) -> Tensor:
    """The dimensions in another order; None turns it around."""
    return _result(R.permute_dims(unwrap(x), axes), name or "permute_dims")


def permute(x: Tensor, axes: Sequence[int] | None, name: str = "permute") -> Tensor:
    """`permute_dims` under torch's name."""
    return permute_dims(x, axes, name)


def reshape(x: Tensor, shape: Sequence[Any], name: str = "reshape") -> Tensor:
    """The same numbers in another shape; one extent may be -1."""
    return _result(R.reshape(unwrap(x), _shape(shape)), name)


def repeat(x: Tensor, repeats: int, axis: int | None = None, name: str = "repeat") -> Tensor:
    """Each element (along `axis`) so many times."""
    return _result(R.repeat(unwrap(x), repeats, axis), name)


def take(x: Tensor, indices: Tensor, axis: int | None = None, name: str = "take") -> Tensor:
    """The elements (rows along `axis`) at these indices."""
    return _result(R.take(unwrap(x), unwrap(indices), axis), name)


def pad(x: Tensor, pad: Sequence[int], mode: str = "constant", value: float = 0.0,
        name: str = "pad") -> Tensor:
    """x with borders: before and after the first dimension, the second, and so on. (In torch the
    last comes first.)"""
    if len(pad) != 2 * x.ndim:
        raise ValueError(f"pad: {len(pad)} widths for {x.ndim} dimensions; give two for each, "
                         "(before, after) of the first dimension, of the second, ...")
    return _result(R.nn.pad(unwrap(x), list(pad), mode, value), name)


def _shape(shape: Any) -> Any:
    if isinstance(shape, Expr):
        return shape
    return [d if isinstance(d, tir.PrimExpr) else int(d) for d in shape]


# ------------------------------------------------------------------------------- reductions


def sum(x: Tensor, axis: int | Sequence[int] | None = None, keepdims: bool = False,
        name: str = "sum") -> Tensor:
    """The sum along axes (None: all)."""
    return _result(R.sum(unwrap(x), axis, keepdims), name)


def max(x: Tensor, axis: int | Sequence[int] | None = None, keepdims: bool = False,
        name: str = "max") -> Tensor:
    """The largest along axes (None: all)."""
    return _result(R.max(unwrap(x), axis, keepdims), name)


def min(x: Tensor, axis: int | Sequence[int] | None = None, keepdims: bool = False,
        name: str = "min") -> Tensor:
    """The smallest along axes (None: all)."""
    return _result(R.min(unwrap(x), axis, keepdims), name)


def cumsum(data: Tensor, axis: int | None = None, dtype: str | None = None,
           exclusive: bool | None = None, name: str = "cumsum") -> Tensor:
    """Running sums along an axis (None: of all elements in a row)."""
    return _result(R.cumsum(unwrap(data), axis, dtype, bool(exclusive)), name)


def sort(x: Tensor, axis: int = -1, descending: bool = False, name: str = "sort") -> Tensor:
    """Sorted along an axis."""
    return _result(R.sort(unwrap(x), axis, descending), name)


def argsort(data: Tensor, axis: int = -1, descending: bool = False, dtype: str = "int32",
            name: str = "argsort") -> Tensor:
    """The indices that would sort along an axis."""
    return _result(R.argsort(unwrap(data), axis, descending, dtype), name)


def topk(data: Tensor, k: int = 1, axis: int = -1, ret_type: str = "both", largest: bool = True,
         dtype: str = "int32", name: str = "topk") -> Any:
    """The k largest along an axis: values and indices, or one of them."""
    return _result(R.topk(unwrap(data), k, axis, ret_type, largest, dtype), name)


def softmax(x: Tensor, axis: int = -1, name: str = "softmax") -> Tensor:
    """exp(x) over its sum along an axis."""
    return _result(R.nn.softmax(unwrap(x), axis), name)


# ------------------------------------------------------------------------------- products


def matmul(a: Tensor, b: Tensor, out_dtype: str | None = None, name: str = "matmul") -> Tensor:
    """The product of matrices, with batch dimensions broadcast."""
    return _result(R.matmul(unwrap(a), unwrap(b), out_dtype), name)


def _conv(func: Callable, x: Tensor, weight: Tensor, bias: Tensor | None,
          stride: int | Sequence[int], padding: int | Sequence[int] | str,
          dilation: int | Sequence[int], groups: int, name: str, channel: int = 1, **more: object
          ) -> Tensor:
    out = _result(func(unwrap(x), unwrap(weight), strides=stride, padding=padding,
                       dilation=dilation, groups=groups, **more), name)
    if bias is None:
        return out
    shape = [1] * out.ndim
    shape[channel] = -1
    return _result(R.add(unwrap(out), R.reshape(unwrap(bias), shape)), f"{name}_bias")


def _padding(padding: int | Sequence[int] | str, x: Tensor) -> Any:
    if padding == "valid":
        return 0
    if isinstance(padding, str):
        raise ValueError(f"padding is {padding!r}; give numbers, or 'valid'")
    return padding


def conv1d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1,
           padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1,
           groups: int = 1, name: str = "conv1d") -> Tensor:
    """Convolution of (n, c, w) with (o, c / groups, k)."""
    return _conv(R.nn.conv1d, x, weight, bias, stride, _padding(padding, x), dilation, groups,
                 name)


def conv2d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1,
           padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1,
           groups: int = 1, data_layout: str = "NCHW", name: str = "conv2d") -> Tensor:
    """Convolution of images (n, c, h, w) with (o, c / groups, kh, kw); or (n, h, w, c) with
    (o, kh, kw, c / groups) in the layout "NHWC"."""
    channels_last = _channels_last(data_layout, "NCHW", "NHWC")
    return _conv(R.nn.conv2d, x, weight, bias, stride, _padding(padding, x), dilation, groups,
                 name, data_layout.index("C"), data_layout=data_layout,
                 kernel_layout="OHWI" if channels_last else "OIHW")


def conv3d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1,
           padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1,
           groups: int = 1, data_layout: str = "NCDHW", name: str = "conv3d") -> Tensor:
    """Convolution of volumes (n, c, d, h, w) with (o, c / groups, kd, kh, kw)."""
    channels_last = _channels_last(data_layout, "NCDHW", "NDHWC")
    return _conv(R.nn.conv3d, x, weight, bias, stride, _padding(padding, x), dilation, groups,
                 name, data_layout.index("C"), data_layout=data_layout,
                 kernel_layout="ODHWI" if channels_last else "OIDHW")


def _channels_last(layout: str, first: str, last: str) -> bool:
    if layout not in (first, last):
        raise ValueError(f"data_layout is {layout!r}; it can be {first!r} or {last!r}")
    return layout == last


def conv1d_transpose(x: Tensor, weight: Tensor, bias: Tensor | None = None,
                     stride: int | Sequence[int] = 1, padding: int | Sequence[int] | str = 0,
                     output_padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1,
                     groups: int = 1, name: str = "conv1d_transpose") -> Tensor:
    """Transposed convolution of (n, c, w) with (c, o / groups, k)."""
    return _conv(R.nn.conv1d_transpose, x, weight, bias, stride, _padding(padding, x), dilation,
                 groups, name, output_padding=output_padding)


# ------------------------------------------------------------------------------- norms, attention


def _ones(shape: Sequence[int], dtype: str) -> Constant:
    return const(np.ones([int(d) for d in shape], dtype))


def _zeros(shape: Sequence[int], dtype: str) -> Constant:
    return const(np.zeros([int(d) for d in shape], dtype))


def layer_norm(x: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5, name: str = "layer_norm") -> Tensor:
    """Mean 0 and variance 1 along the last dimensions, then times weight plus bias."""
    if isinstance(normalized_shape, (int, tir.PrimExpr)):
        normalized_shape = (normalized_shape,)
    count = len(normalized_shape)
    gamma = unwrap(weight) if weight is not None else _ones(normalized_shape, x.dtype)
    beta = unwrap(bias) if bias is not None else _zeros(normalized_shape, x.dtype)
    return _result(R.nn.layer_norm(unwrap(x), gamma, beta, list(range(-count, 0)), eps), name)


def rms_norm(x: Tensor, weight: Tensor, axes: int | Sequence[int], epsilon: float = 1e-5,
             name: str = "rms_norm") -> Tensor:
    """x over its root mean square along axes, times weight."""
    return _result(R.nn.rms_norm(unwrap(x), unwrap(weight), axes, epsilon), name)


def group_norm(x: Tensor, num_groups: int, weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5, channel_axis: int = 1,
               axes: Sequence[int] | None = None, name: str = "group_norm") -> Tensor:
    """Mean 0 and variance 1 over groups of channels and `axes` (None: all behind the channels)."""
    channels = x.shape[channel_axis]
    gamma = unwrap(weight) if weight is not None else _ones([channels], x.dtype)
    beta = unwrap(bias) if bias is not None else _zeros([channels], x.dtype)
    if axes is None:
        axes = [a for a in range(1, x.ndim) if a != channel_axis]
    return _result(R.nn.group_norm(unwrap(x), gamma, beta, num_groups, channel_axis, list(axes),
                                   eps), name)


def scaled_dot_product_attention(
        query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
        is_causal: bool = False, scale: float | None = None,
        name: str = "scaled_dot_product_attention") -> Tensor:
    """softmax(query keys^T * scale + mask) values, of (batch, position, head, number)."""
    mask = None if attn_mask is None else unwrap(attn_mask)
    causal = "TopLeft" if is_causal else None
    return _result(R.nn.attention(unwrap(query), unwrap(key), unwrap(value), mask, scale, causal),
                   name)


def interpolate(x: Tensor, size: int | Sequence[int] | None = None,
                scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool | None = None, data_layout: str | None = "NCHW",
                name: str = "interpolate") -> Tensor:
    """Images in another size: "nearest", "bilinear" or "bicubic"."""
    if recompute_scale_factor is not None:
        raise ValueError("interpolate: recompute_scale_factor is not supported; give `size`")
    if antialias:
        raise ValueError("interpolate: antialias is not supported")
    layout = data_layout or "NCHW"
    if size is None:
        if scale_factor is None:
            raise ValueError("interpolate needs a size or a scale_factor")
        at = [layout.index("H"), layout.index("W")]
        factors = scale_factor if isinstance(scale_factor, Sequence) else [scale_factor] * 2
        size = [int(math.floor(x.shape[a] * f)) if isinstance(x.shape[a], int)
                else x.shape[a] * int(f) for a, f in zip(at, factors)]
    elif isinstance(size, int):
        size = [size, size]
    methods = {"nearest": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}
    if mode not in methods:
        raise ValueError(f"interpolate: mode is {mode!r}; it can be {', '.join(methods)}")
    corners = ("align_corners" if align_corners else
               "asymmetric" if mode == "nearest" else "half_pixel")
    rounding = "floor" if mode == "nearest" else "round"
    return _result(R.image.resize2d(unwrap(x), list(size), layout=layout, method=methods[mode],
                                    coordinate_transformation_mode=corners,
                                    rounding_method=rounding), name)


# ------------------------------------------------------------------------------- making tensors


def full(shape: Sequence[Any], fill_value: object, dtype: str = "float32",
         name: str = "full") -> Tensor:
    """One number everywhere."""
    value = unwrap(fill_value) if isinstance(fill_value, Tensor) else const(fill_value, dtype)
    return _result(R.full(dimensions(shape), value, dtype), name)


def zeros(shape: Sequence[Any], dtype: str = "float32", name: str = "zeros") -> Tensor:
    """0 everywhere."""
    return _result(R.zeros(dimensions(shape), dtype), name)


def ones(shape: Sequence[Any], dtype: str = "float32", name: str = "ones") -> Tensor:
    """1 everywhere."""
    return _result(R.ones(dimensions(shape), dtype), name)


def empty(shape: Sequence[Any], dtype: str = "float32", name: str = "empty") -> Tensor:
    """Any numbers: they are 0 here."""
    return zeros(shape, dtype, name)


def arange(start: int | PrimExpr, end: int | PrimExpr | None = None, step: int | PrimExpr = 1,
           dtype: str | None = "float32", name: str = "arange") -> Tensor:
    """start, start + step, ... below `end`."""
    return _result(R.arange(start, end, step, dtype), name)


def triu(x: Tensor, diagonal: int = 0, name: str = "triu") -> Tensor:
    """0 below a diagonal."""
    return _result(R.triu(unwrap(x), diagonal), name)


# ------------------------------------------------------------------------------- on the tensors


def _methods() -> None:
    """Arithmetic and the like on tensors: `a + b` is `add(a, b)`."""
    for symbol, func in (("add", add), ("sub", subtract), ("mul", multiply),
                         ("truediv", divide)):
        setattr(Tensor, f"__{symbol}__", lambda a, b, f=func: f(a, b))
        setattr(Tensor, f"__r{symbol}__", lambda a, b, f=func: f(b, a))
    for symbol, func in (("lt", less), ("le", less_equal), ("gt", greater), ("ge", greater_equal),
                         ("matmul", matmul)):
        setattr(Tensor, f"__{symbol}__", lambda a, b, f=func: f(a, b))
    for name, method in (
            ("__neg__", lambda a: negative(a)), ("astype", lambda a, dtype: astype(a, dtype)),
            ("maximum", lambda a, other: maximum(a, other)),
            ("minimum", lambda a, other: minimum(a, other)),
            ("permute_dims", lambda a, *axes: permute_dims(a, _given(axes) or None)),
            ("permute", lambda a, *axes: permute(a, _given(axes) or None)),
            ("reshape", lambda a, *shape: reshape(a, _given(shape))),
            ("repeat", lambda a, repeats, axis=None: repeat(a, repeats, axis)),
            ("unsqueeze", lambda a, dim: unsqueeze(a, dim)),
            ("squeeze", lambda a, axis=-1: squeeze(a, axis))):
        setattr(Tensor, name, method)


def _given(items: tuple) -> Any:
    """`x.reshape(2, 3)` as `x.reshape((2, 3))`."""
    return list(items[0]) if len(items) == 1 and isinstance(items[0], (tuple, list)) else items


_methods()

__all__ = [
    "add", "arange", "argsort", "astype", "broadcast_to", "chunk", "concat", "conv1d",
    "conv1d_transpose", "conv2d", "conv3d", "cumsum", "debug_func", "divide", "empty", "equal",
    "exp", "extern", "floor", "full", "gelu", "greater", "greater_equal", "group_norm",
    "interpolate", "layer_norm", "less", "less_equal", "log", "matmul", "max", "maximum", "min",
    "minimum", "multiply", "negative", "not_equal", "ones", "pad", "permute", "permute_dims",
    "prelu", "print_", "relu", "relu6", "repeat", "reshape", "rms_norm",
    "scaled_dot_product_attention", "sigmoid", "silu", "softmax", "softplus", "sort", "split",
    "sqrt", "square", "squeeze", "subtract", "sum", "take", "tanh", "tensor_expr_op",
    "tensor_ir_inplace_op", "tensor_ir_op", "topk", "triu", "unsqueeze", "where", "zeros",
]
