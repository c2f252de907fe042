"""CommonSubexprElimTIR: what is computed several times is computed once, and has a name.

Before::

    for i, j in T.grid(8, 16):
        B[i * 16 + j] = A[i * 16 + j] * 2.0

After::

    for i in range(8):
        cse_var_1: T.int32 = i * 16
        for j in range(16):
            cse_var_2: T.int32 = cse_var_1 + j
            B[cse_var_2] = A[cse_var_2] * 2.0

Arithmetic of variables and constants is named, outermost where all of its variables are known and
where it is computed on every way; loads and calls are not, nor divisions that might fail. With
`identify_equiv_terms=True` terms that simplify to the same count as the same. This pass is not
among those of a build, since LLVM does the same: it is for programs that are read.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Iterator

from ..ir.node import Node
from ..arith import Analyzer
from ..ir.transform import Pass
from ..tir.expr import (
    And, BinaryOp, BufferLoad, Call, Cast, CmpOp, Div, FloatImm, FloorDiv, FloorMod, IntImm, Let,
    Mod, Not, Or, PrimExpr, Select, StringImm, Var,
)
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, free_vars
from ..tir.stmt import Block, IfThenElse, LetStmt, Stmt
from .common import function_pass

if TYPE_CHECKING:
    from ..ir.transform import PassContext

_PURE = (BinaryOp, CmpOp, Not, Cast, Select)
_DIVISIONS = (Div, Mod, FloorDiv, FloorMod)


class _Eliminate:
    """The state of one function: names that were given, and what expressions are."""

    def __init__(self, equivalent: bool) -> None:
        self.equivalent, self.count = equivalent, 0
        self.analyzer = Analyzer()
        self.keys: dict[PrimExpr, Any] = {}

    def key(self, e: PrimExpr) -> Any:
        """The same for two expressions that are the same; None for what gets no name."""
        if e not in self.keys:
            self.keys[e] = self._key(e)
        return self.keys[e]

    def _key(self, e: PrimExpr) -> Any:
        if isinstance(e, Var):
            return "var", id(e)  # the table keeps it alive
        if isinstance(e, (IntImm, FloatImm)):
            return type(e), e.dtype, repr(e.value)
        if not isinstance(e, _PURE) or "x" in e.dtype:
            return None
        if isinstance(e, _DIVISIONS) and not (isinstance(e.b, (IntImm, FloatImm)) and e.b.value):
            return None  # it may divide by zero, where it is not computed before
        parts = tuple(self.key(child) for child in e.children())
        return None if None in parts else (type(e), e.dtype, *parts)

    def term(self, e: PrimExpr) -> Any:
        """What an expression with a name is known by."""
        found = self.key(e)
        if found is None or isinstance(e, (Var, IntImm, FloatImm)):
            return None
        return self.key(self.analyzer.simplify(e)) if self.equivalent else found

    # ------------------------------------------------------------------- what is computed

    def computed(self, node: Any, certain: bool = True) -> Iterator[tuple[PrimExpr, bool]]:
        """The terms under a node, each with whether it is computed whenever the node is."""
        if isinstance(node, IfThenElse) and certain:
            yield from self.computed(node.condition)
            branches = [b for b in (node.then_case, node.else_case) if b is not None]
            found = [list(self.computed(b)) for b in branches]
            sure = [{self.term(e) for e, always in terms if always} for terms in found]
            both = sure[0] & sure[1] if len(sure) == 2 else set()
            for terms in found:
                yield from ((e, self.term(e) in both) for e, _ in terms)
            return
        if isinstance(node, PrimExpr) and self.term(node) is not None:
            yield node, certain
        lazy = isinstance(node, (And, Or, Select)) or (
            isinstance(node, Call) and getattr(node.op, "name", "") == "tir.if_then_else")
        for number, child in enumerate(node.children()):
            yield from self.computed(child, certain and not (lazy and number))

    def best(self, stmt: Stmt, known: set[Var]) -> tuple[PrimExpr, Any] | None:
        """The largest term that is computed more than once, of variables that are known."""
        counts: Counter[Any] = Counter()
        first: dict[Any, PrimExpr] = {}
        sure: set[Any] = set()
        for e, always in self.computed(stmt):
            term = self.term(e)
            counts[term] += 1
            first.setdefault(term, e)
            if always:
                sure.add(term)
        fits = [t for t, n in counts.items() if n > 1 and t in sure and known.issuperset(
            free_vars(first[t]))]
        if not fits:
            return None
        term = max(fits, key=lambda t: _size(first[t]))
        return first[term], term

    # ------------------------------------------------------------------- statements

    def rewritten(self, stmt: Stmt, known: set[Var]) -> Stmt:
        """A statement where the variables in `known` have values."""
        found = self.best(stmt, known)
        if found is None:
            inside = known | _bound(stmt)
            return stmt.map_children(
                lambda child: self.rewritten(child, inside) if isinstance(child, Stmt) else child)
        value, term = found
        self.count += 1
        var = Var(f"cse_var_{self.count}", value.dtype)
        if self.equivalent:
            value = self.analyzer.simplify(value)
        body = _Named(self, term, var).visit(stmt)
        return self.rewritten(LetStmt(var, value, body), known)


def _size(e: Node) -> int:
    return 1 + sum(map(_size, e.children()))


class _Named(Mutator):
    """Puts a variable in place of a term."""

    def __init__(self, state: _Eliminate, term: object, var: Var) -> None:
        super().__init__()
        self.state, self.term, self.var = state, term, var

    def visit(self, node: Node) -> Any:
        if isinstance(node, PrimExpr) and not isinstance(node, (Let, BufferLoad, StringImm)) and (
                self.state.term(node) == self.term):
            return self.var
        return super().visit(node)


def _bound(stmt: Stmt) -> set[Var]:
    """The variables that a statement gives values to, for what is inside of it."""
    if isinstance(stmt, Block):
        return {iv.var for iv in stmt.iter_vars}
    thread = getattr(getattr(stmt, "node", None), "var", None)  # of a launch
    own = (getattr(stmt, "loop_var", None), getattr(stmt, "var", None),
           getattr(stmt, "buffer_var", None), thread)
    return {v for v in own if isinstance(v, Var)}


def CommonSubexprElimTIR(enable_cse_tir: bool = True, identify_equiv_terms: bool = False) -> Pass:
    """Compute once, and name, what is computed several times.

    `enable_cse_tir=False` makes it do nothing.
    """
    def rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        """Names for what is computed several times."""
        if not enable_cse_tir:
            return func
        held = [part for b in func.buffer_map.values()
                for part in (b.data, *b.shape, *b.strides, b.elem_offset) if part is not None]
        known = {*func.params, *(v for part in held for v in free_vars(part))}
        return func.with_body(_Eliminate(identify_equiv_terms).rewritten(func.body, known))

    return function_pass("CommonSubexprElimTIR", rewrite)
