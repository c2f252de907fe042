"""What a schedule or a computation of te is refused with."""

from __future__ import annotations

from ..ir.diagnostics import MLCError


class TensorExprError(MLCError, ValueError, RuntimeError):
    """A step of a te schedule, or a computation, that cannot be. The message says what to do."""


__all__ = ["TensorExprError"]
