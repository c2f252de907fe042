"""`relax.backend.patterns`: what libraries take over, by name: products, convolutions, residuals.

Each gives the pattern and its parts by name, as `FuseOpsByPattern` and a check of one's own take
them: ("mylib.matmul_bias", *make_matmul_pattern(with_bias=True), check).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..relax.dpl import is_op, wildcard

#: a pattern, and the patterns of its parts by name
Parts = tuple[Any, dict[str, Any]]


def _finished(out: Any, parts: dict[str, Any], with_bias: bool, activation: str | None) -> Parts:
    if with_bias:
        parts["bias"] = wildcard()
        out = is_op("relax.add")(out, parts["bias"])
    return (out if activation is None else is_op(activation)(out)), parts


def make_fused_bias_activation_pattern(op_name: str, with_bias: bool = False,
                                       activation: str | None = None) -> Parts:
    """An operator of two operands, a bias added to it, and an activation ("relax.nn.relu")."""
    lhs, rhs = wildcard(), wildcard()
    root = is_op(op_name)(lhs, rhs)
    return _finished(root, {"lhs": lhs, "rhs": rhs, "root": root}, with_bias, activation)


def make_matmul_pattern(with_bias: bool = False, activation: str | None = None,
                        transposed_rhs: bool = False) -> Parts:
    """A product of matrices, of which the second may be transposed."""
    lhs, rhs = wildcard(), wildcard()
    root = is_op("relax.matmul")(lhs, is_op("relax.permute_dims")(rhs) if transposed_rhs else rhs)
    return _finished(root, {"lhs": lhs, "rhs": rhs, "root": root}, with_bias, activation)


def make_conv2d_pattern(with_bias: bool = False, activation: str | None = None) -> Parts:
    """A convolution of images."""
    image, weight = wildcard(), wildcard()
    root = is_op("relax.nn.conv2d")(image, weight)
    return _finished(root, {"input": image, "weight": weight, "root": root}, with_bias, activation)


def make_residual_block_pattern(node_output: Any, binary_op: str = "relax.add",
                                activation: str | None = None) -> Parts:
    """A result (a pattern, or one with its parts) combined with what went in beside it, on either
    side, and an activation."""
    out, parts = node_output if isinstance(node_output, tuple) else (node_output, {})
    residual, combine = wildcard(), is_op(binary_op)
    done = combine(out, residual) | combine(residual, out)
    known: Mapping[str, Any] = parts
    return (done if activation is None else is_op(activation)(done)), {**known,
                                                                       "residual": residual}


__all__ = ["make_conv2d_pattern", "make_fused_bias_activation_pattern", "make_matmul_pattern",
           "make_residual_block_pattern"]
