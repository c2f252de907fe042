"""Helper functions of the user's that a script calls: read from their source, never executed.

They may assign, branch and loop on Python values, and return; what they compute with expressions
is built as in the script itself.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ..tir import expr as E
from .bounded import items, truth
from .values import Pending

if TYPE_CHECKING:
    from .evaluator import Evaluator


def run(ev: Evaluator, body: list[ast.stmt]) -> tuple[bool, Any]:
    """Run statements in an evaluator of their own: (whether they returned, what).

    Raises DiagnosticError for a statement that a helper function may not have.
    """
    for stmt in body:
        if isinstance(stmt, ast.Return):
            return True, None if stmt.value is None else ev.eval(stmt.value)
        if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant):
            continue
        if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1:
            value, target = ev.eval(stmt.value), stmt.targets[0]
            if isinstance(value, Pending) and isinstance(target, ast.Name):
                value = ev.settle(value, target.id)  # one buffer, however often it is read
            ev.assign_names(target, value)
        elif isinstance(stmt, ast.If):
            test = ev.eval(stmt.test)
            if isinstance(test, E.PrimExpr) and type(test) is not E.IntImm:
                raise ev.error(stmt.test, "a helper function cannot branch on an expression",
                               "use T.if_then_else")
            done, value = run(ev, stmt.body if truth(test) else stmt.orelse)
            if done:
                return True, value
        elif isinstance(stmt, ast.For):
            for value in items(ev.eval(stmt.iter)):
                ev.budget.again(stmt)
                ev.assign_names(stmt.target, value)
                done, result = run(ev, stmt.body)
                if done:
                    return True, result
        elif isinstance(stmt, ast.AugAssign) and isinstance(stmt.target, ast.Name):
            ev.define(stmt.target.id, ev.binary(
                stmt, type(stmt.op), ev.lookup(stmt.target), ev.operand(stmt.value)))
        elif not isinstance(stmt, (ast.Pass, ast.Import, ast.ImportFrom)):
            raise ev.error(stmt, "a helper function called in a script may only assign, "
                                 "branch on Python values and return")
    return False, None


__all__ = ["run"]
