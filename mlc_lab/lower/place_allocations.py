"""PlaceAllocations: small allocations are annotated to lie on the stack.

Before::

    acc = T.allocate([64], "float32", "global")
    row = T.allocate([65536], "float32", "global")

After::

    acc = T.allocate([64], "float32", "global", annotations={"on_stack": T.bool(True)})
    row = T.allocate([65536], "float32", "global")

Memory on the stack costs nothing to allocate, and LLVM keeps it in registers where it can. A stack
is small: allocations of constant size up to 16 KiB lie there, up to 256 KiB in a function. All
others are made on the heap, and freed after use. An annotation in the input program is ignored: a
stack frame that is too large would crash the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir import dtype as dt
from ..ir.transform import Pass
from ..tir.expr import IntImm
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, all_statements
from ..tir.op import as_int
from ..tir.stmt import Allocate, Stmt
from .common import annotation_int, function_pass

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext

#: the annotation of an allocation
ON_STACK = "on_stack"

#: bytes: of one piece on the stack, and of all of a function
_PIECE, _TOGETHER = 16 * 1024, 256 * 1024


class _Place(Mutator):
    def __init__(self) -> None:
        super().__init__()
        self.taken = 0  # bytes on the stack so far

    def visit(self, node: Node) -> Any:
        """Only statements hold allocations."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_Allocate(self, node: Allocate) -> Stmt:
        size: int | None = dt.bytes_of(node.dtype)
        for extent in map(as_int, node.extents):
            size = None if size is None or extent is None else size * extent
        notes = {key: value for key, value in node.annotations.items() if key != ON_STACK}
        if size is not None and 0 <= size <= min(_PIECE, _TOGETHER - self.taken):
            self.taken += size
            notes[ON_STACK] = IntImm("bool", 1)
        body = self.visit(node.body)
        if body is node.body and (ON_STACK in notes) == is_on_stack(node):
            return node
        return node.replace(body=body, annotations=notes)


def is_on_stack(node: Allocate) -> bool:
    """Whether an allocation says that it lies on the stack."""
    return annotation_int(node.annotations.get(ON_STACK)) == 1


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Allocations that say whether they lie on the stack."""
    if not any(type(s) is Allocate for s in all_statements(func.body)):
        return func
    return func.with_body(_Place().visit(func.body))


def PlaceAllocations() -> Pass:
    """Annotate small allocations to lie on the stack."""
    return function_pass("PlaceAllocations", _rewrite)
