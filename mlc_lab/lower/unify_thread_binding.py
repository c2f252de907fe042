"""UnifyThreadBinding: a kernel names each axis of its threads once, around all that it does.

Before::

    blockIdx_x = T.launch_thread("blockIdx.x", 4)
    with T.launch_thread("threadIdx.x", 8) as threadIdx_x:
        S[threadIdx_x] = A[blockIdx_x * 8 + threadIdx_x]
    threadIdx_x_1 = T.launch_thread("threadIdx.x", 8)
    B[blockIdx_x * 8 + threadIdx_x_1] = S[7 - threadIdx_x_1]

After::

    blockIdx_x = T.launch_thread("blockIdx.x", 4)
    threadIdx_x = T.launch_thread("threadIdx.x", 8)
    S[threadIdx_x] = A[blockIdx_x * 8 + threadIdx_x]
    B[blockIdx_x * 8 + threadIdx_x] = S[7 - threadIdx_x]

A kernel is the outermost statement on an axis with all in it. What stood outside of an axis is done
by each of its threads, as before (VerifyKernels has made sure that this changes nothing). How many
threads there are must be known before the kernel starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir.transform import Pass
from ..tir import op
from ..tir.expr import IterVar, PrimExpr, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, all_statements, free_vars, pre_order
from ..tir.stmt import Allocate, AttrStmt, For, LetStmt, Stmt
from .common import LowerError, contains, function_pass

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext


def is_axis(s: object) -> bool:
    """Whether a statement names an axis of threads."""
    return type(s) is AttrStmt and s.attr_key == "thread_extent" and isinstance(s.node, IterVar)


class _Inside(Mutator):
    """The body of a kernel without the names of axes; variables of one axis become one."""

    def __init__(self, names: dict[Var, PrimExpr]) -> None:
        super().__init__()
        self.names = names

    def visit_Var(self, node: Var) -> PrimExpr:
        return self.names.get(node, node)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        return self.visit(node.body) if is_axis(node) else self.default(node)


class _Unify(Mutator):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def visit(self, node: Node) -> Any:
        """Expressions hold no kernels: they are left alone."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if not is_axis(node):
            return self.default(node)
        axes: dict[str, AttrStmt] = {}
        names: dict[Var, PrimExpr] = {}
        chain: Any = node
        leading = []
        for s in pre_order(node):
            if not is_axis(s):
                continue
            first = axes.setdefault(s.node.thread_tag, s)
            if s is not first:
                names[s.node.var] = op.cast(first.node.var, s.node.var.dtype)
        while is_axis(chain):
            leading.append(chain)
            chain = chain.body
        if leading == list(axes.values()) and not names:
            return node  # as it should be
        self._known_before(node, axes)
        body = _Inside(names).visit(node)
        for first in reversed(axes.values()):
            body = AttrStmt(first.node, first.attr_key, first.value, body)
        return body

    def _known_before(self, kernel: Stmt, axes: dict[str, AttrStmt]) -> None:
        """The numbers of threads do not depend on what the kernel computes."""
        own = {s.loop_var for s in all_statements(kernel) if type(s) is For}
        own |= {s.var for s in all_statements(kernel) if type(s) is LetStmt}
        own |= {s.buffer_var for s in all_statements(kernel) if type(s) is Allocate}
        own |= {s.node.var for s in axes.values()}
        for tag, s in axes.items():
            inner = [v.name for v in free_vars(s.value) if v in own]
            if inner:
                raise LowerError(
                    f"{self.name}: a kernel has {s.value!r} threads on {tag}, which depends on "
                    f"{inner[0]} inside of the kernel; how many threads run is decided before it "
                    "starts. Bind a loop of fixed extent, with sch.split(loop, [None, threads])")


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Kernels that name each axis once."""
    if not contains(func.body, (AttrStmt,)):
        return func
    name = str(func.attrs.get("global_symbol", "main"))
    return func.with_body(_Unify(name).visit(func.body))


def UnifyThreadBinding() -> Pass:
    """Name each axis of a kernel's threads once, around all that it does."""
    return function_pass("UnifyThreadBinding", _rewrite)
