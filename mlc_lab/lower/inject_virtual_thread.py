"""InjectVirtualThread: virtual threads become iterations, one after the other, of each real thread.

Before::

    with T.attr(T.iter_var(vthread_x, None, "ThreadIndex", "vthread.x"), "virtual_thread", 2):
        B[vthread_x * 32 + threadIdx_x] = A[vthread_x * 32 + threadIdx_x]

After::

    for vthread_x in range(2):
        B[vthread_x * 32 + threadIdx_x] = A[vthread_x * 32 + threadIdx_x]

What a virtual thread is for is the order of its accesses: threads that run in step touch
neighbouring elements, and each works on several parts of a tile that lie apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir.transform import Pass
from ..tir.expr import IterVar
from ..tir.function import PrimFunc
from ..tir.functor import Mutator
from ..tir.stmt import AttrStmt, For, ForKind, Stmt
from .common import contains, function_pass

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext


class _Inject(Mutator):
    def visit(self, node: Node) -> Any:
        """Expressions hold no threads: they are left alone."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        new = self.default(node)
        if node.attr_key != "virtual_thread" or not isinstance(node.node, IterVar):
            return new
        return For(node.node.var, 0, node.value, ForKind.SERIAL, new.body)


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """A function without virtual threads."""
    if not contains(func.body, (AttrStmt,)):
        return func
    return func.with_body(_Inject().visit(func.body))


def InjectVirtualThread() -> Pass:
    """The pass, see the file's text."""
    return function_pass("InjectVirtualThread", _rewrite)
