"""RemoveStoreUndef: a store of a value that says nothing is left out.

Before::

    v: T.int32 = T.undef("int32")
    A[0] = v + 1
    A[1] = 2

After::

    A[1] = 2

`T.undef` may stand nowhere else: LowerError for an index or a condition that it decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir.transform import Pass
from ..tir.expr import BufferLoad, Call, PrimExpr, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, pre_order
from ..tir.stmt import BufferStore, LetStmt, Stmt
from .common import LowerError, function_pass
from .remove_no_op import without_no_ops
from .simplify import NO_OP

if TYPE_CHECKING:
    from ..ir.transform import PassContext


class _Leave(Mutator):
    def __init__(self) -> None:
        super().__init__()
        self.undefined: set[Var] = set()

    def says_nothing(self, e: Any) -> bool:
        """Whether a value hangs on one that is not defined."""
        return isinstance(e, PrimExpr) and any(
            item in self.undefined if isinstance(item, Var) else isinstance(item, Call)
            and getattr(item.op, "name", "") == "tir.undef" for item in pre_order(e))

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        if not self.says_nothing(node.value):
            return super().visit_LetStmt(node)
        self.check(node.value)
        self.undefined.add(node.var)
        return self.visit(node.body)

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        self.refuse(node.indices, f"where {node.buffer.name} is stored to")
        if not self.says_nothing(node.value):
            return node
        self.check(node.value)
        return NO_OP

    def visit_Call(self, node: Call) -> PrimExpr:
        self.refuse([node], "what is computed")
        return self.default(node)

    def visit_Var(self, node: Var) -> PrimExpr:
        self.refuse([node], "what is computed")
        return node

    def check(self, value: PrimExpr) -> None:
        """No index within a value may hang on one that is not defined."""
        for item in pre_order(value):
            if isinstance(item, BufferLoad):
                self.refuse(item.indices, f"where {item.buffer.name} is read")

    def refuse(self, parts: Any, what: str) -> None:
        """LowerError where T.undef decides something else than what is stored."""
        for part in parts:
            if self.says_nothing(part):
                raise LowerError(f"T.undef() decides {what}: {part!r}. It may be stored, which "
                                 "leaves an element as it is, and nothing else")


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Stores of T.undef() are gone."""
    body = _Leave().visit(func.body)
    return func if body is func.body else func.with_body(without_no_ops(body))


def RemoveStoreUndef() -> Pass:
    """Stores of values that say nothing are left out."""
    return function_pass("RemoveStoreUndef", _rewrite)


__all__ = ["RemoveStoreUndef"]
