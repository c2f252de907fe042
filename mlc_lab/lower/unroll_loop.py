"""UnrollLoop: unrolled loops are written out.

Before::

    for i in T.unroll(2):
        C[i] = A[i] * 2.0

After::

    C[0] = A[0] * 2.0
    C[1] = A[1] * 2.0

Under `pragma_auto_unroll_max_step = n`, serial loops whose body, written out, has at most n steps
are unrolled too (innermost first; a loop that holds a loop that stays is not). With
`pragma_unroll_explicit = 0` such a loop is left to LLVM, which unrolls by its own rules. A loop
that is left early stays a loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir.transform import Pass
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, all_statements, leaves_loop, substitute
from ..tir.op import as_int, const
from ..tir.stmt import (
    AttrStmt, BufferStore, Evaluate, For, ForKind, IfThenElse, SeqStmt, Stmt, seq,
)
from .common import annotation_int, function_pass, start_of

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext

#: nested loops that automatic unrolling writes out at most
_MAX_DEPTH = 8


class _Unroll(Mutator):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.max_step = annotation_int(config.get("auto_max_step", 0))
        self.explicit = bool(config.get("explicit_unroll", True))
        self.steps = self.normal_depth = self.unroll_depth = 0

    def visit(self, node: Node) -> Any:
        """Only statements hold loops."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key == "pragma_auto_unroll_max_step":
            before, self.max_step = self.max_step, annotation_int(node.value)
            body = self.visit(node.body)
            self.max_step = before
            return body
        if node.attr_key == "pragma_unroll_explicit":
            before, self.explicit = self.explicit, bool(annotation_int(node.value))
            body = self.visit(node.body)
            self.explicit = before
            return body
        return super().visit_AttrStmt(node)

    def visit_For(self, node: For) -> Stmt:
        body = self.visit(node.body)
        count = as_int(node.extent) if not leaves_loop(node.body) else None
        automatic = (node.kind is ForKind.SERIAL and count is not None
                     and self.normal_depth == 0 and self.unroll_depth <= _MAX_DEPTH
                     and count * self.steps <= self.max_step)
        if (automatic or node.kind is ForKind.UNROLLED) and count is not None:
            self.steps *= count
            self.unroll_depth += 1
            if self.explicit or node.kind is ForKind.UNROLLED:
                return _written_out(node, body, count)
        else:
            self.normal_depth += 1
        kind = ForKind.SERIAL if node.kind is ForKind.UNROLLED else node.kind
        if body is node.body and kind is node.kind:
            return node
        return For.from_fields(node.loop_var, node.min, node.extent, kind, body,
                               node.thread_binding, node.annotations)

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        self.steps += 1
        return node

    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        self.steps += 1
        return node

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        return self._several(node, node.seq)

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        return self._several(node, node.children())

    def _several(self, node: Stmt, parts: Any) -> Stmt:
        """Visit the parts: the depths become the largest of theirs, the steps the sum."""
        normal, depth = self.normal_depth, self.unroll_depth
        top_normal, top_depth, new = normal, depth, []
        for part in parts:
            self.normal_depth, self.unroll_depth = normal, depth
            new.append(self.visit(part))
            top_normal = max(top_normal, self.normal_depth)
            top_depth = max(top_depth, self.unroll_depth)
        self.normal_depth, self.unroll_depth = top_normal, top_depth
        if all(a is b for a, b in zip(new, parts)):
            return node
        return seq(*new) if type(node) is SeqStmt else IfThenElse(*new)


def _written_out(node: For, body: Stmt, count: int) -> Stmt:
    if count <= 0:
        return Evaluate(const(0))
    low = as_int(node.min)
    start, around = start_of(node)
    copies = []
    for step in range(count):
        value = const(low + step, node.loop_var.dtype) if low is not None else (
            start + step if step else start)
        copies.append(substitute(body, {node.loop_var: value}))
    return around(seq(*copies))


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """No unrolled loops left."""
    config = ctx.config.get("tir.UnrollLoop") or {}
    wanted = bool(config) or any(
        (type(s) is For and s.kind is ForKind.UNROLLED)
        or (type(s) is AttrStmt and s.attr_key.startswith("pragma_"))
        for s in all_statements(func.body))
    if not wanted:
        return func
    return func.with_body(_Unroll(config).visit(func.body))


def UnrollLoop() -> Pass:
    """Write out the iterations of unrolled loops."""
    return function_pass("UnrollLoop", _rewrite)


