"""Patterns over Relax expressions, and how one matches.

A pattern object that stands in several places must match the same expression in all of them. Where
a pattern of a call meets a variable it looks at what the variable is bound to, if it is told the
bindings (`var2val`, see `relax.analysis.get_var2val`).
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from ...above import above
from ...ir.module import GlobalVar
from ...ir.structural import structural_equal
from ...tir import expr as E
from ..expr import (
    Call, Constant, DataflowVar, ExternFunc, Function, PrimValue, SeqExpr, ShapeExpr, StringImm,
    Tuple, TupleGetItem, Var,
)
from ..struct_info import ShapeStructInfo, StructInfo, TensorStructInfo, is_base_of, same_dim

if TYPE_CHECKING:
    from ..expr import Callee, Expr

#: the pattern contexts that are open, the innermost last
CONTEXTS: list[Any] = []


class Matching:
    """What is matched so far: pattern -> expression. Alternatives are tried on copies."""

    __slots__ = ("found", "values")

    def __init__(self, values: Mapping[Any, Any] | None) -> None:
        self.found: dict["DFPattern", Any] = {}
        self.values = values or {}

    def value_of(self, expr: Callee) -> Any:
        """What an expression is, variables followed to their values."""
        values = self.values
        while isinstance(expr, Var) and expr in values:
            expr = values[expr]
        return expr

    def match(self, pattern: "DFPattern", expr: Callee) -> bool:
        """Whether the pattern matches here, and agrees with what it matched before."""
        known = self.found.get(pattern)
        if known is not None:
            return known is expr or self.value_of(known) is self.value_of(expr) or (
                isinstance(known, (Constant, ShapeExpr, PrimValue, StringImm))
                and structural_equal(known, expr) is True)
        if not pattern._match(expr, self):
            return False
        self.found[pattern] = expr
        return True

    def attempt(self, action: Callable[[], bool]) -> bool:
        """Try an alternative; what it matched is forgotten if it fails."""
        saved = dict(self.found)
        if action():
            return True
        self.found = saved
        return False


class DFPattern:
    """Base of all patterns."""

    def _match(self, expr: Callee, m: Matching) -> bool:
        raise TypeError(f"{type(self).__name__} says not how it matches")

    def parts(self) -> tuple["DFPattern", ...]:
        """The patterns inside this one."""
        return ()

    # --------------------------------------------------------------------------- asking

    def match(self, expr: Expr, var2val: Mapping[Any, Any] | None = None) -> bool:
        """Whether the pattern matches an expression."""
        return self.extract_matched_expr(expr, var2val) is not None

    def extract_matched_expr(self, expr: Expr, var2val: Mapping[Any, Any] | None = None
                             ) -> dict["DFPattern", Any] | None:
        """What each part of the pattern matched; None where the pattern does not match."""
        m = Matching(var2val)
        return m.found if m.match(self, expr) else None

    # --------------------------------------------------------------------------- building

    def __call__(self, *args: Any, varg_default_wildcard: bool = False,
                 add_constraint: bool = True) -> "CallPattern":
        """A call of what this pattern matches. Without `varg_default_wildcard` the number of
        arguments must be that of the pattern; with it further arguments may follow."""
        made = CallPattern(self, args, varg_default_wildcard)
        if add_constraint and CONTEXTS:
            for arg in args:
                if not isinstance(arg, WildcardPattern) or arg in CONTEXTS[-1].nodes:
                    CONTEXTS[-1].add_edge(arg, made, False, -1)
        return made

    def __or__(self, other: "DFPattern") -> "OrPattern":
        return OrPattern(self, other)

    def __and__(self, other: "DFPattern") -> "AndPattern":
        return AndPattern(self, other)

    def __invert__(self) -> "NotPattern":
        return NotPattern(self)

    def has_attr(self, attrs: Mapping[str, Any]) -> "AttrPattern":
        """Only calls (or functions) with these attributes."""
        return AttrPattern(self, attrs)

    def has_dtype(self, dtype: str) -> "DataTypePattern":
        """Only values of this dtype."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[Any]) -> "ShapePattern":
        """Only tensors of this shape."""
        return ShapePattern(self, shape)

    def has_struct_info(self, struct_info: Any) -> "StructInfoPattern":
        """Only values that have this struct info."""
        return StructInfoPattern(self, struct_info)

    has_type = has_ty = has_struct_info

    def same_shape_as(self, *others: "DFPattern") -> "DFPattern":
        """Only where the matches of these patterns have one shape (checked by a PatternContext)."""
        _context("same_shape_as").same_shape.append((self, *others))
        return self

    def dup(self) -> "DFPattern":
        """A pattern of its own that matches the same things, parts and all."""
        import copy

        def doubled(value: Any) -> Any:
            if isinstance(value, DFPattern):
                return value.dup()
            return type(value)(map(doubled, value)) if type(value) in (tuple, list) else value

        made = copy.copy(self)
        for name, value in vars(self).items():
            setattr(made, name, doubled(value))
        return made

    def used_by(self, other: DFPattern, index: int = -1) -> "PatternSeq":
        """In a PatternContext: the match of this one is used by that of `other` (argument)."""
        return PatternSeq([self]).used_by(other, index)

    def only_used_by(self, other: DFPattern, index: int = -1) -> "PatternSeq":
        """In a PatternContext: the match of this one is used by that of `other` and no other."""
        return PatternSeq([self]).only_used_by(other, index)

    def __xor__(self, other: DFPattern) -> "PatternSeq":
        return self.used_by(other)

    def __rshift__(self, other: DFPattern) -> "PatternSeq":
        return self.only_used_by(other)

    def fork_to(self, *others: "DFPattern") -> None:
        """In a PatternContext: the match of this one is used by each of the others."""
        for item in others:
            self.used_by(item)

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.parts()))
        return f"{type(self).__name__}({inner})"


def _context(what: str) -> Any:
    if not CONTEXTS:
        raise RuntimeError(f"{what} belongs in `with PatternContext():`")
    return CONTEXTS[-1]


class PatternSeq:
    """Patterns in a chain, each used by the next: `a ^ b >> c`."""

    def __init__(self, patterns: Sequence[DFPattern], only_use: bool = False) -> None:
        self.patterns = list(patterns)
        for a, b in zip(self.patterns, self.patterns[1:]):
            _context("a chain of patterns").add_edge(a, b, only_use, -1)

    def dup(self) -> "PatternSeq":
        """A chain of its own that matches the same things, its patterns used alike."""
        context = _context("a chain of patterns")
        made = PatternSeq([])
        made.patterns = [p.dup() for p in self.patterns]
        twins = dict(zip(self.patterns, made.patterns))
        for pattern in made.patterns:
            context.add_node(pattern)
        for used, user, only, index in list(context.edges):
            if used in twins and user in twins:
                context.add_edge(twins[used], twins[user], only, index)
        return made

    def _join(self, other: DFPattern, only: bool, index: int) -> "PatternSeq":
        rest = other.patterns if isinstance(other, PatternSeq) else [other]
        _context("used_by").add_edge(self.patterns[-1], rest[0], only, index)
        made = PatternSeq([])
        made.patterns = self.patterns + rest
        return made

    def used_by(self, other: DFPattern, index: int = -1) -> "PatternSeq":
        """The last of this chain is used by the first of the other."""
        return self._join(other, False, index)

    def only_used_by(self, other: DFPattern, index: int = -1) -> "PatternSeq":
        """The last of this chain is used by the first of the other alone."""
        return self._join(other, True, index)

    def __xor__(self, other: DFPattern) -> "PatternSeq":
        return self.used_by(other)

    def __rshift__(self, other: DFPattern) -> "PatternSeq":
        return self.only_used_by(other)

    def __getitem__(self, index: int) -> DFPattern:
        return self.patterns[index]


# ------------------------------------------------------------------------------- leaves


class WildcardPattern(DFPattern):
    """Anything."""

    def _match(self, expr: Callee, m: Matching) -> bool:
        return True


class ExprPattern(DFPattern):
    """One expression (an operator, say), up to structure."""

    def __init__(self, expr: Callee) -> None:
        self.expr = expr

    def _match(self, expr: Callee, m: Matching) -> bool:
        value = m.value_of(expr)
        return value is self.expr or (not isinstance(value, E.Op) and structural_equal(
            value, self.expr) is True)

    def __repr__(self) -> str:
        return f"ExprPattern({getattr(self.expr, 'name', self.expr)})"


class VarPattern(DFPattern):
    """A variable, of a name if one is given."""

    kinds: tuple = (Var,)

    def __init__(self, name: str = "") -> None:
        self.name = name

    def _match(self, expr: Callee, m: Matching) -> bool:
        return isinstance(expr, (Var, GlobalVar)) and isinstance(expr, self.kinds) and (
            self.name in ("", expr.name_hint))


class DataflowVarPattern(VarPattern):
    """A variable of a dataflow block."""

    kinds = (DataflowVar,)


class GlobalVarPattern(VarPattern):
    """A function of the module."""

    kinds = (GlobalVar,)


class ExternFuncPattern(DFPattern):
    """A registered function, of a name if one is given."""

    def __init__(self, global_symbol: str = "") -> None:
        self.global_symbol = global_symbol

    def _match(self, expr: Callee, m: Matching) -> bool:
        value = m.value_of(expr)
        return isinstance(value, ExternFunc) and self.global_symbol in ("", value.global_symbol)


class ConstantPattern(DFPattern):
    """A constant."""

    def _match(self, expr: Callee, m: Matching) -> bool:
        return isinstance(m.value_of(expr), Constant)


class PrimArrPattern(DFPattern):
    """A shape of these values."""

    def __init__(self, shape: Sequence[Any]) -> None:
        self.shape = tuple(shape)

    def __getitem__(self, index: int) -> Any:
        return self.shape[index]

    def __len__(self) -> int:
        return len(self.shape)

    def _match(self, expr: Callee, m: Matching) -> bool:
        value = m.value_of(expr)
        return isinstance(value, ShapeExpr) and _same_dims(value.values, self.shape)


def _same_dims(have: Sequence[Any], wanted: Sequence[Any]) -> bool:
    wanted = [w if isinstance(w, E.PrimExpr) else E.IntImm("int64", w) for w in wanted]
    return len(have) == len(wanted) and all(map(same_dim, have, wanted))


# ------------------------------------------------------------------------------- compound


class CallPattern(DFPattern):
    """A call of `op` with these arguments (any for None)."""

    def __init__(self, op: DFPattern, args: Sequence[DFPattern] | None,
                 varg_default_wildcard: bool = False) -> None:
        self.op, self.args = op, None if args is None else tuple(args)
        self.varg = varg_default_wildcard
        if CONTEXTS:
            CONTEXTS[-1].add_node(self)

    def parts(self) -> tuple[DFPattern, ...]:
        return (self.op, *(self.args or ()))

    def _match(self, expr: Callee, m: Matching) -> bool:
        value = m.value_of(expr)
        if not isinstance(value, Call) or not m.match(self.op, value.op):
            return False
        if self.args is None:
            return True
        given, wanted = value.args, self.args
        if len(given) != len(wanted) and not (self.varg and len(given) > len(wanted)):
            return False
        return m.attempt(lambda: all(map(m.match, wanted, given)))


class TuplePattern(DFPattern):
    """A tuple of these fields (any for None)."""

    def __init__(self, fields: Sequence[DFPattern] | None) -> None:
        self.fields = None if fields is None else tuple(fields)

    def __getitem__(self, index: int | None) -> DFPattern:
        """An item of the tuple; any for None."""
        if index is not None and self.fields is not None:
            count = len(self.fields)
            if not -count <= index < count:
                raise IndexError(f"item {index} of a tuple pattern of {count} field(s)")
            index %= count
        return TupleGetItemPattern(self, index)

    def parts(self) -> tuple[DFPattern, ...]:
        return self.fields or ()

    def _match(self, expr: Callee, m: Matching) -> bool:
        value, wanted = m.value_of(expr), self.fields
        if not isinstance(value, Tuple):
            return False
        return wanted is None or (len(wanted) == len(value.fields_) and m.attempt(
            lambda: all(map(m.match, wanted, value.fields_))))


class UnorderedTuplePattern(TuplePattern):
    """A tuple of these fields in any order."""

    def _match(self, expr: Callee, m: Matching) -> bool:
        value, wanted = m.value_of(expr), self.fields
        if wanted is None or not isinstance(value, Tuple) or len(value.fields_) != len(wanted):
            return wanted is None and isinstance(value, Tuple)
        return any(m.attempt(lambda order=order, wanted=wanted: all(map(m.match, wanted, order)))
                   for order in permutations(value.fields_))


class TupleGetItemPattern(DFPattern):
    """An item of a tuple, at an index if one is given."""

    def __init__(self, tuple_value: DFPattern, index: int | None = None) -> None:
        self.tuple, self.index = tuple_value, index

    def parts(self) -> tuple[DFPattern, ...]:
        return (self.tuple,)

    def _match(self, expr: Callee, m: Matching) -> bool:
        value = m.value_of(expr)
        return (isinstance(value, TupleGetItem) and self.index in (None, -1, value.index)
                and m.match(self.tuple, value.tuple_value))


class FunctionPattern(DFPattern):
    """A function of these parameters and body."""

    def __init__(self, params: Sequence[DFPattern] | None, body: DFPattern) -> None:
        self.params, self.body = params, body

    def parts(self) -> tuple[DFPattern, ...]:
        return (*(self.params or ()), self.body)

    def _match(self, expr: Callee, m: Matching) -> bool:
        value = m.value_of(expr)
        if not isinstance(value, Function):
            return False
        if self.params is not None and (len(self.params) != len(value.params) or not all(
                map(m.match, self.params, value.params))):
            return False
        inner = value.body
        if isinstance(inner, SeqExpr):
            m.values = {**m.values, **{b.var: b.value for block in inner.blocks
                                       for b in block.bindings}}
            inner = inner.body
        return m.match(self.body, inner)


class OrPattern(DFPattern):
    """One or the other."""

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left, self.right = left, right

    def parts(self) -> tuple[DFPattern, ...]:
        return (self.left, self.right)

    def _match(self, expr: Callee, m: Matching) -> bool:
        return m.attempt(lambda: m.match(self.left, expr)) or m.attempt(
            lambda: m.match(self.right, expr))


class AndPattern(DFPattern):
    """Both."""

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left, self.right = left, right

    def parts(self) -> tuple[DFPattern, ...]:
        return (self.left, self.right)

    def _match(self, expr: Callee, m: Matching) -> bool:
        return m.attempt(lambda: m.match(self.left, expr) and m.match(self.right, expr))


class NotPattern(DFPattern):
    """Anything but this."""

    def __init__(self, to_reject: DFPattern) -> None:
        self.reject = to_reject

    def _match(self, expr: Callee, m: Matching) -> bool:
        saved = dict(m.found)
        matched = m.match(self.reject, expr)
        m.found = saved
        return not matched


class _Restricted(DFPattern):
    """A pattern with a condition on what it matches."""

    def __init__(self, pattern: DFPattern, wanted: Any) -> None:
        self.pattern, self.wanted = pattern, wanted

    def parts(self) -> tuple[DFPattern, ...]:
        return (self.pattern,)

    def _match(self, expr: Callee, m: Matching) -> bool:
        return m.match(self.pattern, expr) and self.holds(expr, m)

    def holds(self, expr: Callee, m: Matching) -> bool:
        """Whether the condition holds."""
        return True


class AttrPattern(_Restricted):
    """A call or function with these attributes."""

    def holds(self, expr: Callee, m: Matching) -> bool:
        value = m.value_of(expr)
        have = (getattr(value, "attrs", None) or {}) if not isinstance(value, E.Op) else {}
        return all(k in have and _same_attr(have[k], v) for k, v in self.wanted.items())


def _same_attr(have: Any, wanted: Any) -> bool:
    if isinstance(have, (tuple, list)) and isinstance(wanted, (tuple, list)):
        return len(have) == len(wanted) and all(map(_same_attr, have, wanted))
    have = have.value if isinstance(have, (E.IntImm, E.FloatImm, E.StringImm)) else have
    wanted = wanted.value if isinstance(wanted, (E.IntImm, E.FloatImm, E.StringImm)) else wanted
    return structural_equal(have, wanted) is True


def _info(expr: Callee) -> StructInfo | None:
    """What is known of a value; an operator is none."""
    return None if isinstance(expr, E.Op) else expr.struct_info_


class DataTypePattern(_Restricted):
    """A value of one dtype."""

    @property
    def dtype(self) -> str:
        """That dtype."""
        return str(self.wanted)

    def holds(self, expr: Callee, m: Matching) -> bool:
        return getattr(_info(expr), "dtype", None) == str(self.wanted)


class ShapePattern(_Restricted):
    """A tensor or shape of these dimensions."""

    @property
    def shape(self) -> tuple:
        """Those dimensions."""
        return tuple(self.wanted)

    def holds(self, expr: Callee, m: Matching) -> bool:
        info = _info(expr)
        dims = info.dims if isinstance(info, TensorStructInfo) else (
            info.values if isinstance(info, ShapeStructInfo) else None)
        return dims is not None and _same_dims(dims, tuple(self.wanted))


class StructInfoPattern(_Restricted):
    """A value that has a struct info (that one, or a more precise one)."""

    def holds(self, expr: Callee, m: Matching) -> bool:
        info = _info(expr)
        return info is not None and is_base_of(self.wanted, info)


def __getattr__(name: str) -> Any:
    """The constructors of `make.py`, which TVM has in this module."""
    make = above("constructors of patterns")
    if name in make.__all__:
        return getattr(make, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [n for n, v in list(globals().items()) if not n.startswith("_") and (
    getattr(v, "__module__", None) == __name__ and callable(v))]
