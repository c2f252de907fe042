"""collapse_sum: the sum over what broadcasting repeats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..te.tensor import Tensor
from ..tir import op as O
from .elementwise import identity
from .reduction import sum
from .transform import reshape


def collapse_sum(data: Tensor, target_shape: Sequence[Any]) -> Tensor:
    """The sum over the dimensions that broadcasting target_shape to that of data would repeat."""
    lead = data.ndim - len(target_shape)
    over = list(range(lead)) + [
        k + lead for k, d in enumerate(target_shape)
        if O.as_int(d) == 1 and not O.is_const_int(data.shape[k + lead], 1)]
    total = sum(data, over, True) if over else identity(data)
    return reshape(total, target_shape) if lead else total


__all__ = ["collapse_sum"]
