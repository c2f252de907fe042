"""`topi.testing`: what operators compute, in plain numpy, and the schedules that tests use.

`layers.py` has convolutions, poolings and norms, `arrays.py` the moving of elements. All take and
give numpy arrays, and are written to be read, not to be fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import mlc_lab as tvm

from ..arrays import assert_allclose
from .arrays import (
    batch_to_space_nd_python, depth_to_space_python, dilate_python, gather_nd_python,
    gather_python, matrix_set_diag, one_hot, searchsorted_ref, sequence_mask, slice_axis_python,
    space_to_batch_nd_python, space_to_depth_python, strided_set_python, strided_slice_python,
)
from .layers import (
    adaptive_pool, batch_matmul, batch_norm, conv1d_ncw_python, conv1d_transpose_ncw_python,
    conv2d_hwcn_python, conv2d_nchw_python, conv2d_nhwc_python, conv2d_transpose_nchw_python,
    conv2d_transpose_nhwc_python, conv3d_ncdhw_python, conv3d_ndhwc_python,
    conv3d_transpose_ncdhw_python, dense, depthwise_conv2d_python_nchw,
    depthwise_conv2d_python_nhwc, group_conv1d_ncw_python, group_conv1d_transpose_ncw_python,
    group_norm_python, instance_norm_python, l2_normalize_python, layer_norm_python,
    log_softmax_python, lrn_python, nll_loss, poolnd_python, rms_norm_python, softmax_python,
)

if TYPE_CHECKING:
    from mlc_lab.runtime.device import Device
    from mlc_lab.target.target import TargetLike


def dispatch(target: TargetLike, dispatch_map: Mapping[str, Any]) -> Any:
    """What a table has for a target: by the target's keys, and else by "generic"."""
    for key in tvm.target.Target(target).keys:
        if key in dispatch_map:
            return dispatch_map[key]
    return dispatch_map["generic"]


def _schedule(name: str) -> Callable[[Any], Any]:
    def of_target(target: TargetLike) -> Any:
        topi = tvm.topi
        return getattr(dispatch(target, {"generic": topi.generic, "cpu": topi.x86,
                                         "arm_cpu": topi.arm_cpu, "gpu": topi.cuda}), name)

    of_target.__doc__ = f"The function {name} of a target."
    return of_target


get_injective_schedule = get_broadcast_schedule = get_elemwise_schedule = _schedule(
    "schedule_injective")
get_reduce_schedule = _schedule("schedule_reduce")
get_softmax_schedule = _schedule("schedule_softmax")


def get_conv2d_nchw_implement(target: TargetLike) -> tuple[Any, Any]:
    """The operator conv2d_nchw, and its schedule for a target."""
    return tvm.topi.nn.conv2d_nchw, _schedule("schedule_conv2d_nchw")(target)


def compare_numpy_tvm(inputs: Sequence[np.ndarray], output: np.ndarray, target: TargetLike,
                      device: Device, compute: Callable[..., Any], schedule: Callable[..., Any]
                      ) -> None:
    """AssertionError unless an operator, scheduled and run on a device, computes `output`."""
    tensors = [tvm.te.placeholder(a.shape, str(a.dtype)) for a in inputs]
    with tvm.target.Target(target):
        made = compute(*tensors)
        kernel = tvm.build(schedule([made]), [*tensors, made], target)
    arrays = [tvm.nd.array(a, device) for a in (*inputs, np.zeros_like(output))]
    kernel(*arrays)
    assert_allclose(arrays[-1], output, rtol=1e-4, atol=1e-4)


__all__ = [
    "adaptive_pool", "batch_matmul", "batch_norm", "batch_to_space_nd_python", "compare_numpy_tvm",
    "conv1d_ncw_python", "conv1d_transpose_ncw_python", "conv2d_hwcn_python", "conv2d_nchw_python",
    "conv2d_nhwc_python", "conv2d_transpose_nchw_python", "conv2d_transpose_nhwc_python",
    "conv3d_ncdhw_python", "conv3d_ndhwc_python", "conv3d_transpose_ncdhw_python", "dense",
    "depth_to_space_python", "depthwise_conv2d_python_nchw", "depthwise_conv2d_python_nhwc",
    "dilate_python", "dispatch", "gather_nd_python", "gather_python", "get_broadcast_schedule",
    "get_conv2d_nchw_implement", "get_elemwise_schedule", "get_injective_schedule",
    "get_reduce_schedule", "get_softmax_schedule", "group_conv1d_ncw_python",
    "group_conv1d_transpose_ncw_python", "group_norm_python", "instance_norm_python",
    "l2_normalize_python", "layer_norm_python", "log_softmax_python", "lrn_python",
    "matrix_set_diag", "nll_loss", "one_hot", "poolnd_python", "rms_norm_python",
    "searchsorted_ref", "sequence_mask", "slice_axis_python", "softmax_python",
    "space_to_batch_nd_python", "space_to_depth_python", "strided_set_python",
    "strided_slice_python",
]
