"""The layers: parameters, and a `forward` of a line or two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ...expr import Var
from ...op import null_value
from ...struct_info import ObjectStructInfo
from . import op
from .module import Effect, Module
from .tensor import Parameter, Tensor

if TYPE_CHECKING:
    from ....tir.expr import PrimExpr
    from ...block_builder import BlockBuilder


class IOEffect(Effect):
    """What was printed: it keeps the prints of a function in order, and alive."""

    def __init__(self) -> None:
        self.effect: Any = None

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[Any]:
        return [builder.emit(null_value(), f"{name_hint}_io")]

    def create(self, name_hint: str) -> list[Any]:
        self.effect = Var(f"{name_hint}_io", ObjectStructInfo())
        return [self.effect]

    def set_state(self, state_vars: list[Any]) -> None:
        (self.effect,) = state_vars

    def finalize(self) -> list[Any]:
        result, self.effect = self.effect, None
        return [result]


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, x: Tensor) -> Tensor:
        """x of any shape."""
        return op.relu(x)


class SiLU(Module):
    """x * sigmoid(x)."""

    def forward(self, x: Tensor) -> Tensor:
        """x of any shape."""
        return op.silu(x)


class GELU(Module):
    """x times the normal distribution's share below x."""

    def forward(self, x: Tensor) -> Tensor:
        """x of any shape."""
        return op.gelu(x)


class Identity(Module):
    """x; other arguments have no meaning."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        """x of any shape."""
        return x


class Linear(Module):
    """x W^T + b, with W of (out_features, in_features). `out_dtype`: the type of the sums."""

    def __init__(self, in_features: int | str | PrimExpr, out_features: int | str | PrimExpr | None,
                 bias: bool = True, dtype: str | None = None, out_dtype: str | None = None) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.out_dtype = out_dtype
        self.weight = Parameter((out_features, in_features), dtype)
        self.bias = Parameter((out_features,), dtype or out_dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """x of (..., in_features); gives (..., out_features)."""
        y = op.matmul(x, op.permute_dims(self.weight), self.out_dtype)
        return y if self.bias is None else y + self.bias


def _tuple(value: Any, count: int) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


class _Conv(Module):
    def __init__(self, dims: int, in_channels: int, out_channels: int,
                 kernel_size: int | Sequence[int], stride: Any,
                 padding: int | Sequence[int] | str, dilation: Any, groups: int,
                 bias: bool, dtype: str | None, channels_last: bool = False) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = _tuple(kernel_size, dims)
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.groups = groups
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{type(self).__name__}: {groups} groups divide neither or only one "
                             f"of {in_channels} and {out_channels} channels")
        inner = in_channels // groups
        self.weight = Parameter(
            (out_channels, *self.kernel_size, inner) if channels_last
            else (out_channels, inner, *self.kernel_size), dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None


class Conv1D(_Conv):
    """Convolution of (n, in_channels, w)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int,
                 stride: Any = 1, padding: int | Sequence[int] | str = 0,
                 dilation: Any = 1, groups: int = 1, bias: bool = True,
                 dtype: str | None = None) -> None:
        super().__init__(1, in_channels, out_channels, kernel_size, stride, padding, dilation,
                         groups, bias, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Gives (n, out_channels, w')."""
        return op.conv1d(x, self.weight, self.bias, self.stride, self.padding, self.dilation,
                         self.groups)


class Conv2D(_Conv):
    """Convolution of (n, in_channels, h, w), or of (n, h, w, in_channels) in "NHWC"."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int],
                 stride: Any = 1, padding: int | Sequence[int] | str = 0,
                 dilation: Any = 1, groups: int = 1, bias: bool = True,
                 dtype: str | None = None, data_layout: str = "NCHW") -> None:
        super().__init__(2, in_channels, out_channels, kernel_size, stride, padding, dilation,
                         groups, bias, dtype, data_layout == "NHWC")
        self.data_layout = data_layout

    def forward(self, x: Tensor) -> Tensor:
        """Gives (n, out_channels, h', w'), or the layout that was asked for."""
        return op.conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation,
                         self.groups, self.data_layout)


class Conv3D(_Conv):
    """Convolution of (n, in_channels, d, h, w), or of (n, d, h, w, in_channels) in "NDHWC"."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int],
                 stride: Any = 1, padding: int | Sequence[int] | str = 0,
                 dilation: Any = 1, groups: int = 1, bias: bool = True,
                 dtype: str | None = None, data_layout: str = "NCDHW") -> None:
        super().__init__(3, in_channels, out_channels, kernel_size, stride, padding, dilation,
                         groups, bias, dtype, data_layout == "NDHWC")
        self.data_layout = data_layout

    def forward(self, x: Tensor) -> Tensor:
        """Gives (n, out_channels, d', h', w'), or the layout that was asked for."""
        return op.conv3d(x, self.weight, self.bias, self.stride, self.padding, self.dilation,
                         self.groups, self.data_layout)


class ConvTranspose1D(Module):
    """Transposed convolution of (n, in_channels, w)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int,
                 stride: Any = 1, padding: int | Sequence[int] | str = 0,
                 output_padding: int | Sequence[int] = 0, dilation: Any = 1,
                 groups: int = 1, bias: bool = True, dtype: str | None = None) -> None:
        super().__init__()
        self.stride, self.padding, self.output_padding = stride, padding, output_padding
        self.dilation, self.groups = dilation, groups
        self.weight = Parameter((in_channels, out_channels // groups, kernel_size), dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Gives (n, out_channels, w')."""
        return op.conv1d_transpose(x, self.weight, self.bias, self.stride, self.padding,
                                   self.output_padding, self.dilation, self.groups)


class LayerNorm(Module):
    """Mean 0 and variance 1 along the last dimensions, then times a weight plus a bias."""

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5,
                 elementwise_affine: bool = True, dtype: str | None = None) -> None:
        super().__init__()
        self.normalized_shape, self.eps = _tuple(normalized_shape, 1), eps
        self.weight = Parameter(self.normalized_shape, dtype) if elementwise_affine else None
        self.bias = Parameter(self.normalized_shape, dtype) if elementwise_affine else None

    def forward(self, x: Tensor) -> Tensor:
        """x whose last dimensions are `normalized_shape`."""
        return op.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """x over its root mean square along axes, times a weight, and plus a bias where asked for."""

    def __init__(self, hidden_size: int | str | PrimExpr, axes: int | Sequence[int],
                 epsilon: float = 1e-5, bias: bool = True, dtype: str | None = None) -> None:
        super().__init__()
        self.epsilon, self.axes = epsilon, axes
        self.weight = Parameter((hidden_size,), dtype)
        self.bias = Parameter((hidden_size,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """x whose last dimension is `hidden_size`."""
        y = op.rms_norm(x, self.weight, self.axes, self.epsilon)
        return y if self.bias is None else op.add(y, self.bias)


class GroupNorm(Module):
    """Mean 0 and variance 1 over groups of channels, then times a weight plus a bias."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
                 dtype: str | None = None) -> None:
        super().__init__()
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = Parameter((num_channels,), dtype) if affine else None
        self.bias = Parameter((num_channels,), dtype) if affine else None

    def forward(self, x: Tensor, channel_axis: int = 1,
                axes: Sequence[int] | None = None) -> Tensor:
        """x of (n, num_channels, ...)."""
        return op.group_norm(x, self.num_groups, self.weight, self.bias, self.eps, channel_axis,
                             axes)


class Embedding(Module):
    """A row of numbers for each index."""

    def __init__(self, num: int | str | PrimExpr, dim: int | str | PrimExpr,
                 dtype: str | None = None) -> None:
        super().__init__()
        self.num, self.dim = num, dim
        self.weight = Parameter((num, dim), dtype)

    def forward(self, x: Tensor) -> Tensor:
        """x of whole numbers below `num`, of any shape; gives (*x.shape, dim)."""
        if x.ndim == 1:
            return op.take(self.weight, x, axis=0)
        return op.reshape(op.take(self.weight, op.reshape(x, (-1,)), axis=0),
                          [*x.shape, self.weight.shape[1]])


__all__ = ["GELU", "Conv1D", "Conv2D", "Conv3D", "ConvTranspose1D", "Embedding", "GroupNorm",
           "IOEffect", "Identity", "LayerNorm", "Linear", "RMSNorm", "ReLU", "SiLU"]
