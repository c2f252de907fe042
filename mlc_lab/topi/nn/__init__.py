"""Operators of neural networks, one family a file."""

from ..broadcast import add
from ..joining import concatenate
from ..transform import flatten, strided_slice
from .activation import (
    elu, gelu, gelu_tanh, hard_sigmoid, hard_swish, leaky_relu, prelu, relu, relu6, selu, silu,
    softplus,
)
from .backward import nll_loss_grad, pool_grad
from .conv import (
    conv, conv1d, conv1d_ncw, conv1d_nwc, conv2d, conv2d_hwcn, conv2d_nchw, conv2d_nhwc,
    conv3d_ncdhw, conv3d_ndhwc, depthwise_conv2d_nchw, depthwise_conv2d_nhwc, get_pad_tuple,
    group_conv1d_ncw, group_conv1d_nwc, group_conv2d_nchw, group_conv2d_nhwc,
)
from .conv_transpose import (
    conv1d_transpose_ncw, conv2d_transpose_nchw, conv3d_transpose_ncdhw,
    group_conv1d_transpose_ncw, group_conv2d_transpose_nchw, group_conv3d_transpose_ncdhw,
)
from .dense import batch_matmul, dense, matmul
from .loss import nll_loss
from .norm import batch_norm, group_norm, instance_norm, layer_norm, lrn, rms_norm
from .pad import circular_pad, dilate, mirror_pad, pad, reflect_pad, replicate_pad
from .pool import (
    adaptive_pool, adaptive_pool1d, adaptive_pool3d, global_pool, pool1d, pool2d, pool3d,
)
from .rearrange import batch_to_space_nd, depth_to_space, space_to_batch_nd, space_to_depth
from .softmax import fast_softmax, log_softmax, softmax
from .sparse import (
    sparse_add, sparse_dense, sparse_dense_sp_lhs, sparse_dense_sp_rhs, sparse_transpose,
)
from .upsampling import upsampling

__all__ = [
    "adaptive_pool", "adaptive_pool1d", "adaptive_pool3d", "add", "batch_matmul", "batch_norm",
    "batch_to_space_nd", "circular_pad", "concatenate", "conv", "conv1d", "conv1d_ncw",
    "conv1d_nwc", "conv1d_transpose_ncw", "conv2d", "conv2d_hwcn", "conv2d_nchw", "conv2d_nhwc",
    "conv2d_transpose_nchw", "conv3d_ncdhw", "conv3d_ndhwc", "conv3d_transpose_ncdhw", "dense",
    "depth_to_space", "depthwise_conv2d_nchw", "depthwise_conv2d_nhwc", "dilate", "elu",
    "fast_softmax", "flatten", "gelu", "gelu_tanh", "get_pad_tuple", "global_pool",
    "group_conv1d_ncw",
    "group_conv1d_nwc", "group_conv1d_transpose_ncw", "group_conv2d_nchw", "group_conv2d_nhwc",
    "group_conv2d_transpose_nchw", "group_conv3d_transpose_ncdhw", "group_norm", "hard_sigmoid",
    "hard_swish", "instance_norm", "layer_norm", "leaky_relu", "log_softmax", "lrn", "matmul",
    "mirror_pad", "nll_loss", "nll_loss_grad", "pad", "pool1d", "pool2d", "pool3d", "pool_grad",
    "prelu", "reflect_pad", "relu", "relu6", "replicate_pad", "rms_norm", "selu", "silu", "softmax",
    "softplus", "space_to_batch_nd", "space_to_depth", "sparse_add", "sparse_dense",
    "sparse_dense_sp_lhs", "sparse_dense_sp_rhs", "sparse_transpose", "strided_slice", "upsampling",
]
