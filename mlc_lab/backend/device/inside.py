"""What a kernel on the simulated device reads or writes outside of its memory is reported.

A GPU with robust access gives a default there, others go on with what they find. On the CPU the
process would end. Before a statement stands an assertion for each of its accesses that cannot be
proved to be inside (`../outside.py`)::

    assert 0 <= I[i] and I[i] < 64, "A is accessed outside of its 64 elements"
    B[i] = A[I[i]]

In kernels whose indices follow from loops and threads nothing is left to check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...ir.transform import Pass
from ...lower.common import function_pass
from ...lower.split_host_device import is_kernel
from ...tir import op
from ...tir.expr import Call, StringImm
from ...tir.functor import Mutator
from ...tir.stmt import AssertStmt, Stmt, While, seq
from ..outside import Access, accesses_outside, without_lets
from .real import KernelError

if TYPE_CHECKING:
    from ...ir.transform import PassContext
    from ...tir.function import PrimFunc


_OUTSIDE = "is accessed outside of its elements, of which there are"


def accesses_stay_inside() -> Pass:
    """The pass: assertions before what may access memory outside of a buffer."""
    return function_pass("AccessesStayInside", _checked)


def reported(run: Callable[..., Any]) -> Callable[..., Any]:
    """A host's function whose kernels report an access outside of a buffer as a KernelError."""
    def call(*args: Any) -> Any:
        try:
            return run(*args)
        except (AssertionError, RuntimeError) as error:  # the latter where blocks run in parallel
            kernel, _, what = str(error).partition(": assertion failed: ")
            if _OUTSIDE not in what:
                raise
            raise KernelError(f"kernel {kernel} on the simulated device: {what}") from None

    return call


def _checked(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Assertions before what may access memory outside of a buffer."""
    if not is_kernel(func):
        return func
    plain = without_lets(func)
    asserts: dict[Stmt, list[Stmt]] = {}
    for access in accesses_outside(plain):
        asserts.setdefault(access.statement, []).append(_assertion(access))
    return plain.with_body(_Asserts(asserts).visit(plain.body)) if asserts else func


def _assertion(access: Access) -> Stmt:
    """That an access lies inside where it is made."""
    inside, buffer = access.inside, access.node.buffer
    for condition in reversed(access.under):
        inside = Call("bool", "tir.if_then_else", (condition, inside, op.const(True)))
    size = ", ".join(map(repr, buffer.shape))
    return AssertStmt(inside, StringImm(f"{buffer.name} {_OUTSIDE} ({size})"), seq())


class _Asserts(Mutator):
    """Puts assertions before the statements that they are of."""

    def __init__(self, asserts: dict[Stmt, list[Stmt]]) -> None:
        super().__init__()
        self.asserts = asserts

    def visit(self, node: Any) -> Any:
        """Expressions are left alone."""
        if not isinstance(node, Stmt):
            return node
        before = self.asserts.get(node)
        new = super().visit(node)
        if before is None:
            return new
        if type(new) is While:  # its condition is asked again after each iteration
            new = While(new.condition, seq(new.body, *before))
        return seq(*before, new)


__all__ = ["accesses_stay_inside", "reported"]
