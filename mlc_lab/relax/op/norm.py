"""Norms under R.nn: of batches, layers, groups, instances, by the root of the mean square."""

from __future__ import annotations

from typing import Any

from ..expr import Call
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from .common import (
    axes_of, dim_text, join_dtype, misfit, need_multiple, need_ndim, need_numbers,
    need_same, show,
)
from .declare import Axis, Flag, Float, FloatTensor, Ints, Tensor, Whole, operator
from .later import topi


def _check_affine(call: Call, data: TensorStructInfo, axes: tuple[int, ...],
                  **infos: TensorStructInfo) -> None:
    """Scales and offsets must have the extents of the axes they apply to."""
    for name, info in infos.items():
        need_ndim(call, info, len(axes), name)
        join_dtype(call, data.dtype, info.dtype, ("data", name))
        if data.dims is None or info.dims is None:
            continue
        for axis, extent in zip(axes, info.dims):
            need_same(call, data.dims[axis], extent, lambda axis=axis, name=name, info=info: (
                f"data is {show(data)} and {name} is {show(info)}: dimension {axis} of data must "
                f"have {name}'s extent"))


def _infer_batch_norm(call: Call, data: TensorStructInfo, gamma: TensorStructInfo,
                      beta: TensorStructInfo, mean: TensorStructInfo,
                      var: TensorStructInfo) -> StructInfo:
    if data.ndim != -1:
        _check_affine(call, data, (call.attrs.axis % data.ndim,), gamma=gamma, beta=beta,
                      moving_mean=mean, moving_var=var)
    return TupleStructInfo([data, mean, var])


@operator("relax.nn.batch_norm", _infer_batch_norm, layout="batch_norm")
def batch_norm(data: FloatTensor, gamma: Tensor, beta: Tensor, moving_mean: Tensor,
               moving_var: Tensor, axis: Axis, epsilon: Float = 1e-5, center: Flag = True,
               scale: Flag = True, momentum: Float = 0.1, training: Flag = True) -> Any:
    """Normalized over all axes but `axis`: (result, new moving mean, new moving variance)."""
    return topi.nn.batch_norm(data, gamma, beta, moving_mean, moving_var, axis, epsilon, center,
                              scale, training, momentum)


def _infer_layer_norm(call: Call, data: TensorStructInfo, gamma: TensorStructInfo,
                      beta: TensorStructInfo | None = None) -> StructInfo:
    if data.ndim != -1:
        axes = tuple(sorted(axes_of(call, call.attrs.axes, data.ndim)))
        infos = {"weight": gamma} if beta is None else {"gamma": gamma, "beta": beta}
        _check_affine(call, data, axes, **infos)
    return data


@operator("relax.nn.layer_norm", _infer_layer_norm)
def layer_norm(data: FloatTensor, gamma: Tensor, beta: Tensor, axes: Ints, epsilon: Float = 1e-5,
               center: Flag = True, scale: Flag = True) -> Tensor:
    """Normalized over `axes`, then scaled by gamma and moved by beta."""
    return topi.nn.layer_norm(data, gamma if scale else None, beta if center else None, axes,
                              epsilon)


@operator("relax.nn.rms_norm", _infer_layer_norm)
def rms_norm(data: FloatTensor, weight: Tensor, axes: Ints = -1, epsilon: Float = 1e-5) -> Tensor:
    """data / sqrt(mean(data**2) + epsilon) * weight over `axes`."""
    return topi.nn.rms_norm(data, weight, axes, epsilon)


def _infer_channel_norm(call: Call, data: TensorStructInfo, gamma: TensorStructInfo,
                        beta: TensorStructInfo) -> StructInfo:
    if data.ndim != -1:
        channel = call.attrs.channel_axis % data.ndim
        if channel in axes_of(call, call.attrs.axes, data.ndim):
            raise misfit(call, f"axes are {list(call.attrs.axes)}: the channels, axis {channel}, "
                               "cannot be among them")
        _check_affine(call, data, (channel,), gamma=gamma, beta=beta)
        if "num_groups" in call.attrs:
            need_numbers(call, 1, "num_groups")
            if data.dims is not None:
                extent, groups = data.dims[channel], call.attrs.num_groups
                need_multiple(call, extent, groups, lambda: (
                    f"data is {show(data)}: its {dim_text(extent)} channels do not make {groups} "
                    "groups"))
    return data


@operator("relax.nn.group_norm", _infer_channel_norm)
def group_norm(data: FloatTensor, gamma: Tensor, beta: Tensor, num_groups: Whole,
               channel_axis: Axis, axes: Ints, epsilon: Float = 1e-5, center: Flag = True,
               scale: Flag = True) -> Tensor:
    """Normalized over `axes` and each of the groups of channels."""
    return topi.nn.group_norm(data, gamma if scale else None, beta if center else None, num_groups,
                              channel_axis, axes, epsilon)


@operator("relax.nn.instance_norm", _infer_channel_norm)
def instance_norm(data: FloatTensor, gamma: Tensor, beta: Tensor, channel_axis: Axis, axes: Ints,
                  epsilon: Float = 1e-5, center: Flag = True, scale: Flag = True) -> Tensor:
    """Normalized over `axes` for each channel of each instance."""
    return topi.nn.instance_norm(data, gamma if scale else None, beta if center else None,
                                 channel_axis, axes, epsilon)
