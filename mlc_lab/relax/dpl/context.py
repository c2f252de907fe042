"""Several patterns that must hang together: a PatternContext, matched on a dataflow block.

    with PatternContext() as ctx:
        a = is_op("relax.matmul")(x, wildcard())
        b = is_op("relax.nn.relu")(wildcard())
        a >> b                      # relu is the only user of the product
    found = ctx.match_dfb(block)    # {pattern: Var} or None
"""

from __future__ import annotations

from typing import Any

from ..expr import BindingBlock, Call, Expr, Tuple, TupleGetItem, Var, VarBinding
from ..struct_info import TensorStructInfo, same_shape
from .pattern import CONTEXTS, DFPattern, Matching


class PatternContext:
    """Patterns and the uses between them; see the head of the file."""

    def __init__(self, incremental: bool = False) -> None:
        self.nodes: dict[DFPattern, None] = {}
        #: (used pattern, using pattern, nothing else may use it, at this argument or -1)
        self.edges: list[tuple[DFPattern, DFPattern, bool, int]] = []
        self.same_shape: list[tuple[DFPattern, ...]] = []
        if incremental and CONTEXTS:  # what the context around demands is demanded too
            outer = CONTEXTS[-1]
            self.nodes.update(outer.nodes)
            self.edges += outer.edges
            self.same_shape += outer.same_shape

    def __enter__(self) -> "PatternContext":
        CONTEXTS.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        CONTEXTS.remove(self)

    @staticmethod
    def current() -> "PatternContext":
        """The innermost open context."""
        if not CONTEXTS:
            raise RuntimeError("no PatternContext is open")
        return CONTEXTS[-1]

    def add_node(self, pattern: DFPattern) -> None:
        """A pattern that must match."""
        self.nodes.setdefault(pattern)

    def add_edge(self, used: DFPattern, user: DFPattern, only: bool, index: int) -> None:
        """`used` must be used by `user`."""
        self.add_node(used)
        self.add_node(user)
        self.edges.append((used, user, only, index))

    def match_dfb(self, dfb: BindingBlock) -> dict[DFPattern, Var] | None:
        """The variable that each pattern matched in a dataflow block; None where there is none."""
        return _Search(self, dfb).run()


def arguments(value: Expr | None) -> tuple:
    """What a value uses directly, tuples inside calls opened."""
    if isinstance(value, Call):
        out: list[Any] = []
        for arg in value.args:
            out += arg.fields_ if isinstance(arg, Tuple) else [arg]
        return tuple(out)
    if isinstance(value, Tuple):
        return value.fields_
    if isinstance(value, TupleGetItem):
        return (value.tuple_value,)
    return (value,) if isinstance(value, Var) else ()


class _Search:
    """Tries variables for patterns, the last bound first, and takes back what does not fit."""

    def __init__(self, ctx: PatternContext, dfb: BindingBlock) -> None:
        self.ctx = ctx
        self.values = {b.var: b.value for b in dfb.bindings if isinstance(b, VarBinding)}
        self.users: dict[Any, list[Var]] = {}
        for var, value in self.values.items():
            for arg in dict.fromkeys(arguments(value)):
                self.users.setdefault(arg, []).append(var)
        self.outputs = {b.var for b in dfb.bindings if type(b.var) is Var}
        inputs = [a for a in self.users if isinstance(a, Var) and a not in self.values]
        self.candidates = [*reversed(self.values), *inputs]
        inner = {p for n in ctx.nodes for p in _inside(n)}
        tops = [n for n in ctx.nodes if n not in inner]
        self.order = [*reversed(tops), *(n for n in ctx.nodes if n in inner)]

    def run(self) -> dict[DFPattern, Var] | None:
        m = Matching(self.values)
        if not self.order or not self.assign(0, m):
            return None
        return {p: e for p, e in m.found.items() if isinstance(e, Var)}

    def assign(self, index: int, m: Matching) -> bool:
        """Match the patterns from `index` on."""
        if index == len(self.order):
            return self.consistent(m, complete=True)
        pattern = self.order[index]
        if pattern in m.found:
            return self.assign(index + 1, m)
        for var in self.candidates:
            saved = dict(m.found)
            taken = {id(e) for p, e in saved.items() if p in self.ctx.nodes}
            if id(var) not in taken and m.match(pattern, var) and self.consistent(m) and (
                    self.assign(index + 1, m)):
                return True
            m.found = saved
        return False

    def consistent(self, m: Matching, complete: bool = False) -> bool:
        """Whether the uses between what is matched are as demanded."""
        for used, user, only, index in self.ctx.edges:
            a, b = m.found.get(used), m.found.get(user)
            if a is None or b is None:
                continue
            args = arguments(self.values.get(b, b))
            if not (any(x is a for x in args) if index < 0 else
                    index < len(args) and args[index] is a):
                return False
            if only and (self.users.get(a, []) != [b] or a in self.outputs):
                return False
        for group in self.ctx.same_shape:
            dims = [_dims(m.found.get(p)) for p in group]
            if complete and (None in dims or not all(same_shape(dims[0], d) for d in dims)):
                return False
        return True


def _dims(expr: Expr | None) -> Any:
    info = getattr(expr, "struct_info_", None)
    return info.dims if isinstance(info, TensorStructInfo) else None


def _inside(pattern: DFPattern) -> set[DFPattern]:
    found: set[DFPattern] = set()
    stack = list(pattern.parts())
    while stack:
        item = stack.pop()
        if item not in found:
            found.add(item)
            stack.extend(item.parts())
    return found


__all__ = ["PatternContext", "arguments"]
