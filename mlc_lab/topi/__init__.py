"""TOPI: tensor operators as tensor expressions, under TVM's names and with its block names.

One family a file: `broadcast`, `elementwise`, `reduction`, `transform`, `joining`, `indexing`,
`creation`, `scan`, `sort`, `linalg`, `image`, and the layers of networks in `nn`. Every operator
takes te tensors and gives te tensors, works on symbolic shapes where it can, and refuses shapes
that do not fit with a ValueError that names both.
"""

from ..above import name_above
from . import bags, image, nn, resampling, running, sampling, sparse, special, tag, windows
from .broadcast import (
    add, atan2, bitwise_and, bitwise_or, bitwise_xor, broadcast_to, divide, equal, floor_divide,
    floor_mod, greater, greater_equal, left_shift, less, less_equal, log_add_exp, logical_and,
    logical_or, logical_xor, maximum, minimum, mod, multiply, not_equal, power, right_shift,
    subtract, where,
)
from .collapse import collapse_sum
from .creation import arange, eye, full, full_like, matrix_set_diag, tril, trilu, triu
from .elementwise import (
    abs, acos, acosh, asin, asinh, atan, atanh, bitwise_not, cast, ceil, clip, cos, cosh,
    elemwise_sum, erf, exp, fast_erf, fast_exp, fast_tanh, floor, identity, isfinite, isinf,
    isnan, log, log2, log10, logical_not, negative, reciprocal, reinterpret, round, rsqrt,
    sigmoid, sign, sin, sinh, sqrt, square, tan, tanh, trunc,
)
from .indexing import (
    adv_index, gather, gather_nd, index_put, index_tensor, one_hot, scatter_elements, scatter_nd,
    sequence_mask, slice_scatter, strided_set, take,
)
from .joining import concatenate, split, stack
from .linalg import einsum, matmul, tensordot
from .reduction import all, any, argmax, argmin, max, min, prod, sum
from .scan import cumprod, cumsum, scanop
from .schedules import arm_cpu, cuda, generic, hls, x86
from .sort import argsort, searchsorted, sort, topk
from .transform import (
    dynamic_strided_slice, expand_dims, expand_like, flip, layout_transform, meshgrid, ndarray_size,
    repeat, reshape, reverse_sequence, shape, sliding_window, squeeze, strided_slice, tensor_size,
    tile, transpose, unravel_index,
)


def __getattr__(name: str) -> object:
    """A name of TVM's `topi` that stands above."""
    return name_above("topi", name)


__all__ = [
    "abs", "acos", "acosh", "add", "adv_index", "all", "any", "arange", "argmax", "argmin",
    "argsort", "arm_cpu", "asin", "asinh", "atan", "atan2", "atanh", "bags", "bitwise_and",
    "bitwise_not", "bitwise_or", "bitwise_xor", "broadcast_to", "cast", "ceil", "clip",
    "collapse_sum", "concatenate", "cos", "cosh", "cuda", "cumprod", "cumsum", "divide",
    "dynamic_strided_slice", "einsum", "elemwise_sum", "equal", "erf", "exp", "expand_dims",
    "expand_like", "eye", "fast_erf", "fast_exp", "fast_tanh", "flip", "floor", "floor_divide",
    "floor_mod", "full", "full_like", "gather", "gather_nd", "generic", "greater", "greater_equal",
    "hls", "identity", "image", "index_put", "index_tensor", "isfinite", "isinf", "isnan",
    "layout_transform", "left_shift", "less", "less_equal", "log", "log10", "log2", "log_add_exp",
    "logical_and", "logical_not", "logical_or", "logical_xor", "matmul", "matrix_set_diag", "max",
    "maximum", "meshgrid", "min", "minimum", "mod", "multiply", "ndarray_size", "negative", "nn",
    "not_equal", "one_hot", "power", "prod", "reciprocal", "reinterpret", "repeat", "resampling",
    "reshape", "reverse_sequence", "right_shift", "round", "rsqrt", "running", "sampling", "scanop",
    "scatter_elements", "scatter_nd", "searchsorted", "sequence_mask", "shape", "sigmoid", "sign",
    "sin", "sinh", "slice_scatter", "sliding_window", "sort", "sparse", "special", "split", "sqrt",
    "square", "squeeze", "stack", "strided_set", "strided_slice", "subtract", "sum", "tag", "take",
    "tan", "tanh", "tensor_size", "tensordot", "tile", "topk", "transpose", "tril", "trilu", "triu",
    "trunc", "unravel_index", "where", "windows", "x86",
]
