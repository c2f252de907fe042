"""Analyzer: what is known of variables, and every question that is asked under that knowledge."""

from __future__ import annotations

from contextlib import contextmanager
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, Any, Iterator

from ..above import above
from ..ir.recursion import grows_stack
from ..tir.expr import (
    EQ, LE, LT, GE, GT, NE, CmpOp, Div, FloorDiv, FloorMod, IntImm, Mod, PrimExpr, Range, SizeVar,
    Sub, Var, const_index,
)
from ..tir.op import equal
from .canonical_simplify import CanonicalSimplifier, affine_form
from .const_int_bound import (
    NEG_INF, POS_INF, ConstIntBound, ConstIntBoundAnalyzer, constraint_bounds, range_bound,
)
from .expr_util import ARITHMETIC, INDEX_DTYPES, DoesNotFit, conjuncts, is_data, same
from .int_set import IntSet
from .linear_form import follows
from .literals import Literals
from .modular_set import ModularSet, ModularSetAnalyzer, make
from .rewrite_simplify import RewriteSimplifier

if TYPE_CHECKING:
    from ..tir.expr import ExprLike


class ProofStrength(IntEnum):
    """How hard TVM is asked to try; the proofs of this analyzer are always the strong ones."""

    DEFAULT = 0
    SYMBOLIC_BOUND = 1


class Extension(IntFlag):
    """What TVM's rewriting does only when it is asked to; see `Analyzer.enabled_extensions`."""

    NoExtensions = 0
    TransitivelyProveInequalities = 1
    ConvertBooleanToAndOfOrs = 2
    ApplyConstraintsToBooleanBranches = 4
    ComparisonOfProductAndSum = 8


#: what this analyzer can be asked for
_ASKED = Extension.TransitivelyProveInequalities


class Analyzer:
    """Simplifies and proves facts about integer expressions.

    Results are remembered per expression object until a fact is added or a constraint entered, so
    one Analyzer should serve a whole job.
    """

    def __init__(self) -> None:
        self.bounds = ConstIntBoundAnalyzer(self)
        self.modular = ModularSetAnalyzer(self)
        self.literals = Literals()
        self.rewriter = RewriteSimplifier(self)
        self.canonical = CanonicalSimplifier(self)
        self.ranges: dict[Var, Range] = {}
        self._simplified: dict[PrimExpr, PrimExpr] = {}
        #: which expressions have data in them, see `may_wrap`; whether any was met
        self.data: dict[PrimExpr, bool] = {}
        self.data_met = False
        self._extensions = Extension.NoExtensions

    # ------------------------------------------------------------------- data

    def may_wrap(self, *operands: PrimExpr) -> bool:
        """Whether moving terms between these operands may change what they give.

        That is so where data is computed with (`expr_util.is_data`) that is not known to be far
        from the ends of its type: x + 1 < y is not x < y - 1 for the largest x.
        """
        if not any(type(e) in ARITHMETIC for e in operands):
            return False
        if operands[0].dtype not in INDEX_DTYPES:
            return True
        if not any(is_data(e, self.data) for e in operands):
            return False
        limit = 1 << (30 if operands[0].dtype == "int32" else 62)
        bounds = [self.bounds.of(e) for e in operands]
        return not all(-limit <= low and high <= limit for low, high in bounds)

    def name_data(self, var: Var, value: PrimExpr) -> None:
        """Say that a variable is a name for `value`: it is data if that is."""
        if is_data(value, self.data):
            self.data[var] = self.data_met = True

    @property
    def enabled_extensions(self) -> Extension:
        """The extensions that are on. With TransitivelyProveInequalities `can_prove` follows
        inequalities from one to the next: i < k where i < j and j <= k hold."""
        return self._extensions

    @enabled_extensions.setter
    def enabled_extensions(self, flags: int) -> None:
        wanted = Extension(flags)
        missing = wanted & ~_ASKED
        if missing:
            raise NotImplementedError(
                f"the analyzer has no {missing!r}: conditions are not rewritten in that way here")
        self._extensions = wanted

    # ------------------------------------------------------------------- facts

    def update(self, var: Var, info: ConstIntBound | ModularSet | IntSet,
               override: bool = False) -> None:
        """Say what is known of a variable: its bounds, its modular set, or its set of values.

        What was said of the same kind before stays if it is the same. ValueError where it differs
        and not `override`.
        """
        if isinstance(info, ConstIntBound):
            self._update(var, (int(info.min_value), int(info.max_value)), self.bounds.vars,
                         self.bounds.bind, override)
        elif isinstance(info, ModularSet):
            self._update(var, make(int(info.coeff), int(info.base)), self.modular.vars,
                         self.modular.bind, override)
        elif isinstance(info, IntSet):
            low = self.bounds.of(info.min_value)[0] if info.has_lower_bound() else NEG_INF
            high = self.bounds.of(info.max_value)[1] if info.has_upper_bound() else POS_INF
            if info.has_lower_bound() and info.has_upper_bound():
                self.bind(var, info.cover_range(), allow_override=override)
            else:
                self._update(var, (low, high), self.bounds.vars, self.bounds.bind, override)
        else:
            raise TypeError("what is known of a variable is a ConstIntBound, a ModularSet or an "
                            f"IntSet, not {info!r}")
        self._forget()

    @staticmethod
    def _update(var: Var, info: Any, known: dict[Any, Any], bind: Any, override: bool) -> None:
        if not override and known.get(var, info) != info:
            raise ValueError(f"{var.name} is known to be in {known[var]} already, not in {info}; "
                             "pass override=True to replace that")
        known.pop(var, None)
        bind(var, info)

    def bind(self, var: Var, value: Any, allow_override: bool = False) -> None:
        """Say that `var` runs over a Range, or equals an expression (or int).

        Raises ValueError if the variable is bound otherwise already and not `allow_override`.
        """
        if var in self.ranges:
            if not allow_override:
                self._check_rebind(var, value)
            elif value is not self.ranges[var]:
                self.unbind(var)
        elif type(value) is Range:  # the most common case, made fast
            low, extent = value.min, value.extent
            if type(extent) is IntImm and type(low) is IntImm and extent.value > 1:
                self.ranges[var] = value
                self.bounds.vars[var] = (low.value, low.value + extent.value - 1)
                self.bounds.memo.clear()
                self._forget()
                return
        if isinstance(value, Range):
            extent = value.extent
            if type(extent) is IntImm and extent.value == 1:
                self._bind_expr(var, value.min)
                return
            self.rewriter.var_map.pop(var, None)
            self.canonical.var_map.pop(var, None)
            self.ranges[var] = value
            self.bounds.bind(var, range_bound(self.bounds, value))
            self._forget()
            if type(extent) is not IntImm:
                self._learn_symbolic(var, value)
            return
        self._bind_expr(var, const_index(value))

    def unbind(self, var: Var) -> None:
        """Nothing is known of `var` any more."""
        self.ranges.pop(var, None)
        self.rewriter.var_map.pop(var, None)
        self.canonical.var_map.pop(var, None)
        self.modular.vars.pop(var, None)
        self.bounds.vars.pop(var, None)
        self.bounds.memo.clear()
        if self.bounds.known:
            self.bounds.unlearn(var)
        self._forget()

    def _check_rebind(self, var: Var, value: Any) -> None:
        old = self.ranges.get(var)
        if isinstance(value, Range) and not (
                type(value.extent) is IntImm and value.extent.value == 1):
            if old is not None and (old is value or (
                    self.can_prove_equal(old.min, value.min)
                    and self.can_prove_equal(old.extent, value.extent))):
                return
        else:
            fixed = value.min if isinstance(value, Range) else const_index(value)
            known = self.rewriter.var_map.get(var)
            if known is not None and self.can_prove_equal(known, fixed):
                return
        raise ValueError(
            f"{var.name} is bound to something else already; pass allow_override=True to rebind it")

    def _bind_expr(self, var: Var, value: PrimExpr) -> None:
        value = self.rewriter.visit(self.canonical.visit(value))
        if value.dtype != var.dtype:
            value = value.astype(var.dtype)
        self.ranges[var] = Range.from_min_extent(value, IntImm(var.dtype, 1))
        self.bounds.bind(var, self.bounds.of(value))
        self.modular.bind(var, self.modular.of(value))
        self.rewriter.var_map[var] = value
        self.canonical.var_map[var] = value
        self._forget()

    def _learn_symbolic(self, var: Var, rng: Range) -> None:
        """A variable in [lo, lo + n) with symbolic ends is below lo + n and not below lo."""
        facts = []
        end = rng.min + rng.extent
        facts += self._difference_facts(var, end, -1)
        if type(rng.min) is not IntImm:
            facts += self._difference_facts(rng.min, var, 0)
        self.bounds.learn(facts)
        self._forget()

    def _difference_facts(self, a: PrimExpr, b: PrimExpr, limit: int) -> list:
        """Bounds of a - b and b - a from a - b <= limit, in the forms the simplifiers give them."""
        facts = []
        for e, bound in ((Sub(a, b), (NEG_INF, limit)), (Sub(b, a), (-limit, POS_INF))):
            first = self.rewriter.visit(e)
            second = self.canonical.visit(e)
            facts.append((first, bound))
            if not same(first, second):
                facts.append((second, bound))
        return [f for f in facts if type(f[0]) is not IntImm]

    def _forget(self) -> None:
        self.rewriter.memo.clear()
        self.canonical.memo.clear()
        self._simplified.clear()
        self.modular.memo.clear()

    @contextmanager
    def constraint_scope(self, cond: PrimExpr) -> Iterator[None]:
        """Within the `with` block, `cond` (and each part of a conjunction) is taken for true."""
        leave = self.enter_constraint(cond)
        try:
            yield
        finally:
            leave()

    def enter_constraint(self, cond: PrimExpr) -> Any:
        """Take `cond` for true until the function returned is called."""
        if type(cond) is IntImm:
            return _nothing
        parts = conjuncts(cond)
        facts = constraint_bounds(cond, self.may_wrap)
        for part in parts:
            kind = type(part)
            if isinstance(part, _ORDERED) and part.a.dtype in INDEX_DTYPES and (
                    type(part.a) is not IntImm and type(part.b) is not IntImm):
                a, b = (part.a, part.b) if kind in (LT, LE) else (part.b, part.a)
                if self.may_wrap(a, b):
                    continue
                facts += self._difference_facts(a, b, -1 if kind in (LT, GT) else 0)
        for e, bound in list(facts):  # the same fact of the simplified form
            form = self.canonical.visit(e)
            if form is not e and not same(form, e):
                facts.append((form, bound))
        leave_bounds = self.bounds.enter(facts)
        leave_modular = self.modular.enter(cond)
        rewriter, canonical = self.rewriter, self.canonical
        saved = rewriter.memo, canonical.memo, self._simplified
        rewriter.memo, canonical.memo, self._simplified = {}, {}, {}
        known = self.literals.enter(parts)

        def leave() -> None:
            leave_bounds()
            leave_modular()
            self.literals.leave(known)
            rewriter.memo, canonical.memo, self._simplified = saved

        return leave

    def clone(self) -> "Analyzer":
        """An independent Analyzer that knows the same."""
        other = Analyzer()
        other.ranges = dict(self.ranges)
        other.bounds.vars = dict(self.bounds.vars)
        other.bounds.known = dict(self.bounds.known)
        other.modular.vars = dict(self.modular.vars)
        for mine, theirs in ((self.rewriter, other.rewriter), (self.canonical, other.canonical)):
            theirs.var_map = dict(mine.var_map)
        other.literals.enter([*self.literals])
        return other

    # ------------------------------------------------------------------- simplifying

    def simplify(self, e: Any, steps: int = 2) -> PrimExpr:
        """The simplest form: canonical, then by turns rewritten and canonical, `steps` times.

        The same object comes back if nothing changes.
        """
        kind = type(e)
        if kind is IntImm:
            return e
        if kind is Var or kind is SizeVar:
            found = self.canonical.var_map.get(e)
            return e if found is None else found
        if not isinstance(e, PrimExpr):
            return const_index(e)
        found = self._simplified.get(e)
        return self._simplest(e, steps) if found is None else found

    @grows_stack
    def _simplest(self, e: PrimExpr, steps: int) -> PrimExpr:
        out = affine_form(e, self.canonical.var_map) if e.dtype in INDEX_DTYPES else None
        if out is None:
            out = self.canonical.visit(e)
            for step in range(steps):
                if type(out) is IntImm:
                    break
                if step % 2:
                    out = self.canonical.visit(out)
                else:
                    new = self.rewriter.visit(out)
                    if new is out:
                        break
                    out = new
        if out is not e and same(out, e):
            out = e
        self._simplified[e] = out
        self._simplified[out] = out
        return out

    @grows_stack
    def rewrite_simplify(self, e: PrimExpr) -> PrimExpr:
        """Simplified by the rules only."""
        return self.rewriter.visit(const_index(e))

    @grows_stack
    def canonical_simplify(self, e: PrimExpr) -> PrimExpr:
        """In canonical form only."""
        return self.canonical.visit(const_index(e))

    # ------------------------------------------------------------------- proving

    def can_prove(self, cond: PrimExpr, strength: ProofStrength = ProofStrength.DEFAULT) -> bool:
        """Whether a condition holds for all values that the variables can take."""
        if isinstance(cond, bool):
            return cond
        if type(cond) is IntImm:
            return cond.value != 0
        result = self.simplify(cond)
        if type(result) is not IntImm and self._extensions & (
                Extension.TransitivelyProveInequalities):
            return self._follows(result)
        return type(result) is IntImm and result.value != 0

    def _follows(self, cond: PrimExpr) -> bool:
        """Whether a comparison follows from all that is taken for true at once, and from the ranges
        of variables."""
        facts = [e for e in self.literals if isinstance(e, CmpOp) and (
            e.a.dtype in INDEX_DTYPES and not self.may_wrap(e.a, e.b))]
        if not (facts or any(type(r.extent) is not IntImm for r in self.ranges.values())) or (
                not isinstance(cond, CmpOp) or cond.a.dtype not in INDEX_DTYPES
                or self.may_wrap(cond.a, cond.b)):
            return False
        if type(cond) is NE:
            return self._follows(LT(cond.a, cond.b)) or self._follows(LT(cond.b, cond.a))
        loops = [(v, self.floored(r.min), self.floored(r.extent)) for v, r in self.ranges.items()]
        return follows(self.floored(cond), loops, [self.floored(e) for e in facts])

    def floored(self, e: Any) -> Any:
        """An expression with floor division where truncation gives the same."""
        new = e.map_children(self.floored)
        if type(e) in (Div, Mod) and self.can_prove_greater_equal(e.a, 0) and (
                self.can_prove_greater_equal(e.b, 1)):
            return (FloorDiv if type(e) is Div else FloorMod)(new.a, new.b)
        return new

    def can_prove_equal(self, a: ExprLike, b: ExprLike) -> bool:
        """Whether a == b always."""
        if a is b:
            return True
        a, b = const_index(a), const_index(b)
        if type(a) is IntImm and type(b) is IntImm:
            return a.value == b.value
        return self._equal(a, b)

    @grows_stack
    def _equal(self, a: PrimExpr, b: PrimExpr) -> bool:
        if same(a, b):
            return True
        if a.dtype == b.dtype and a.dtype in INDEX_DTYPES:
            diff = self.simplify(Sub(a, b))
            return (type(diff) is IntImm and diff.value == 0) or self.bounds.of(diff) == (0, 0)
        return self.can_prove(equal(a, b))

    def can_prove_greater_equal(self, e: ExprLike, lower: int) -> bool:
        """Whether e >= lower always."""
        e = const_index(e)
        return self.bounds.of(e)[0] >= lower or self.bounds.of(self.simplify(e))[0] >= lower

    def can_prove_less(self, e: PrimExpr, upper: int) -> bool:
        """Whether e < upper always."""
        e = const_index(e)
        return self.bounds.of(e)[1] < upper or self.bounds.of(self.simplify(e))[1] < upper

    # ------------------------------------------------------------------- bounds and sets

    def const_int_bound_tuple(self, e: PrimExpr) -> tuple[int, int]:
        """(min, max) as a plain tuple, see `const_int_bound`."""
        return self.bounds.of(e)

    @grows_stack
    def const_int_bound(self, e: PrimExpr) -> ConstIntBound:
        """The smallest and largest value; `ConstIntBound.POS_INF`/`NEG_INF` if unbounded."""
        return ConstIntBound(*self.bounds.of(const_index(e)))

    @grows_stack
    def modular_set(self, e: PrimExpr) -> ModularSet:
        """(coeff, base) such that e = coeff * k + base."""
        return self.modular.of(const_index(e))

    @grows_stack
    def int_set(self, e: PrimExpr, dom_map: Any = None) -> Any:
        """The set of values of `e` as the variables of `dom_map` (by default: all bound ones)
        run over their domains; see `eval_set`."""
        return above("eval_set")(const_index(e), self.ranges if dom_map is None else dom_map, self)


_ORDERED = (LT, LE, GT, GE)


def _nothing() -> None:
    pass


__all__ = ["Analyzer", "ConstIntBound", "DoesNotFit", "EQ", "Extension", "ModularSet",
           "ProofStrength"]
