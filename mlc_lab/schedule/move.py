"""Taking a block out of its place and putting it elsewhere in the scope."""

from __future__ import annotations

from collections.abc import Callable

from ..tir.stmt import BlockRealize, For, IfThenElse, SeqStmt, Stmt, seq
from .error import Refusal
from .state import ScheduleState, StmtSRef, sub_statements


def without_block(state: ScheduleState, scope: StmtSRef, block: StmtSRef) -> Stmt:
    """The scope's body without the block and without loops that hold nothing else.

    Raises Refusal if nothing would be left.
    """
    realize = state.realize_of(block)
    path = {s.stmt for s in state.loops_above(block)}
    left = _remove(scope.stmt.body, realize, path)
    if left is None:
        raise Refusal("scope_is_not_emptied", f"block {block.stmt.name_hint} is the only block of "
                      f"its scope {scope.stmt.name_hint}: taking it out would leave nothing",
                      nodes=[block.stmt])
    return left


def _remove(stmt: Stmt, realize: BlockRealize, path: set[Stmt]) -> Stmt | None:
    if stmt is realize:
        return None
    if type(stmt) is SeqStmt:
        items = [_remove(s, realize, path) for s in stmt.seq]
        if all(a is b for a, b in zip(items, stmt.seq)):
            return stmt
        items = [s for s in items if s is not None]
        return seq(*items) if items else None
    if type(stmt) is For:
        if stmt not in path:
            return stmt
        body = _remove(stmt.body, realize, path)
        if body is None:
            return None
        return stmt if body is stmt.body else stmt.replace(body=body)
    if type(stmt) is BlockRealize:
        return stmt
    if type(stmt) is IfThenElse:
        then = _remove(stmt.then_case, realize, path)
        other = _remove(stmt.else_case, realize, path) if stmt.else_case is not None else None
        if then is None:
            return None
        return stmt if then is stmt.then_case and other is stmt.else_case else IfThenElse(
            stmt.condition, then, other)
    inner = sub_statements(stmt)
    if len(inner) == 1:
        body = _remove(inner[0], realize, path)
        if body is None:
            return None
        return stmt if body is inner[0] else stmt.replace(body=body)
    return stmt


def replace_loop(stmt: Stmt, loop_var: object, make: Callable[[For], Stmt]) -> Stmt:
    """`stmt` with the loop over `loop_var` replaced by `make(loop)`."""
    if type(stmt) is For and stmt.loop_var is loop_var:
        return make(stmt)
    if type(stmt) is BlockRealize:
        return stmt
    return stmt.map_children(
        lambda s: replace_loop(s, loop_var, make) if isinstance(s, Stmt) else s)


def replace_realize(stmt: Stmt, realize: BlockRealize, *new: Stmt) -> Stmt:
    """`stmt` with a BlockRealize (not inside other blocks) replaced by statements."""
    if stmt is realize:
        return seq(*new)
    if type(stmt) is BlockRealize:
        return stmt
    if type(stmt) is SeqStmt:
        return seq(*(replace_realize(s, realize, *new) for s in stmt.seq))
    return stmt.map_children(
        lambda s: replace_realize(s, realize, *new) if isinstance(s, Stmt) else s)
