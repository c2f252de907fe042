"""Expressions of a kernel, for all its threads at once.

A value is a number, where it is the same for all threads, or an array with one entry a thread. What
a value depends on decides how it is computed (`Kind`): what depends on the thread only is computed
once, and an index is kept as such an array plus a number, since the same array moved by a number
is what most loops access.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend.interp_math import (
    MATH, TESTS, VECTOR_BOOL, VECTOR_FLOAT, VECTOR_INT, integer_function, vector_float_to_int,
)
from ...ir import dtype as dt
from ...tir import expr as E
from ...tir.numbers import BOOL_OPS, COMPARE, DIVISIONS, FLOAT_OPS, INT_OPS, convert, fit
from ...tir.op import as_int
from ...tir.shuffles import is_shuffle, source_of
from ..measure import Unmeasurable

if TYPE_CHECKING:
    from ...tir.expr import PrimExpr
    from .watching import Mask

Code = Callable[[], Any]


class Kind(enum.IntEnum):
    """What a value depends on."""

    CONSTANT = 0  # on the launch only: one number
    UNIFORM = 1  # on loops that all threads run alike: one number
    FIXED = 2  # on the thread only: an array that stays the same
    VARYING = 3  # on both, or on memory


def joined(a: Kind, b: Kind) -> Kind:
    """The kind of what is computed from two values."""
    if a <= Kind.UNIFORM and b <= Kind.UNIFORM:
        return max(a, b)
    return Kind.FIXED if not (a & 1 or b & 1) else Kind.VARYING


class LaneExpressions:
    """Compiles expressions to closures. `Lockstep` adds statements and memory."""

    env: dict[E.Var, Any]
    kinds: dict[E.Var, Kind]
    threads: int
    block_threads: int
    lane: np.ndarray  # each thread's number in its block
    name: str
    mask: Mask
    load: Callable[[E.BufferLoad], Code]
    under: Callable[[Any, bool, bool], Any]

    def code(self, e: PrimExpr) -> tuple[Code, Kind]:
        """The closure that computes an expression, and its kind."""
        run, kind = self._make(e)
        if kind is Kind.FIXED and not isinstance(e, E.Var):
            return _once(run), kind
        if kind is Kind.CONSTANT and type(e) is not E.IntImm:
            return _once(run), kind
        return run, kind

    def _make(self, e: PrimExpr) -> tuple[Code, Kind]:
        if dt.lanes_of(e.dtype) > 1:
            raise Unmeasurable(f"{self.name}: a vector that is computed with cannot be followed "
                               f"for a GPU: {e!r}")
        if isinstance(e, E.Var):
            if e not in self.kinds:
                raise Unmeasurable(f"{self.name}: the value of {e.name} is not known")
            env = self.env
            return (lambda: env[e]), self.kinds[e]
        if type(e) in (E.IntImm, E.FloatImm):
            value = _constant(e)
            return (lambda: value), Kind.CONSTANT
        if isinstance(e, E.CmpOp):
            a, b, kind = self._two(e.a, e.b)
            compare = COMPARE[type(e)]
            return (lambda: compare(a(), b())), kind
        if isinstance(e, (E.And, E.Or)):
            a, b, kind = self._two(e.a, e.b)
            both = np.logical_and if type(e) is E.And else np.logical_or
            if kind <= Kind.UNIFORM:
                if type(e) is E.And:
                    return (lambda: a() and b()), kind
                return (lambda: a() or b()), kind
            return (lambda: both(a(), b())), kind
        if type(e) is E.Not:
            a, kind = self.code(e.a)
            return (lambda: np.logical_not(a())), kind
        if isinstance(e, E.BinaryOp):
            a, b, kind = self._two(e.a, e.b)
            return _binary(e, a, b), kind
        if type(e) is E.Cast:
            a, kind = self.code(e.value)
            return _cast(a, e.value.dtype, e.dtype), kind
        if type(e) is E.Select:
            c, kind = self.code(e.condition)
            t, f, sides = self._two(e.true_value, e.false_value)
            return (lambda: _choose(c(), t(), f())), joined(kind, sides)
        if type(e) is E.Let:
            a, self.kinds[e.var] = self.code(e.value)
            body, kind = self.code(e.body)
            env, var = self.env, e.var

            def let() -> Any:
                env[var] = a()
                return body()

            return let, Kind.VARYING if kind > Kind.UNIFORM else kind
        if type(e) is E.BufferLoad:
            return self.load(e), Kind.VARYING
        if type(e) is E.Call:
            return self._call(e)
        raise Unmeasurable(f"{self.name}: {type(e).__name__} cannot be followed for a GPU: {e!r}")

    def _two(self, x: PrimExpr, y: PrimExpr) -> tuple[Code, Code, Kind]:
        a, kind_a = self.code(x)
        b, kind_b = self.code(y)
        return a, b, joined(kind_a, kind_b)

    def _call(self, e: E.Call) -> tuple[Code, Kind]:
        name = getattr(e.op, "name", "").removeprefix("tir.")
        if is_shuffle(e):
            return self._shuffle(e), Kind.VARYING
        if name == "likely":
            return self.code(e.args[0])
        if name == "if_then_else":
            return self._if_then_else(e)
        parts = [self.code(a) for a in e.args]
        kind = Kind.CONSTANT
        for _, own in parts:
            kind = joined(kind, own)
        fn = TESTS.get(name) or (MATH.get(name) if dt.is_float(e.dtype) else None) or (
            integer_function(name, e) if not dt.is_float(e.dtype) else None)
        if fn is None:
            raise Unmeasurable(f"{self.name}: tir.{name or e.op} cannot be followed for a GPU")
        finish, target = fit(e.dtype), dt.numpy_dtype(e.dtype)
        codes = [run for run, _ in parts]

        def call() -> Any:
            values = [run() for run in codes]
            if not any(isinstance(v, np.ndarray) and v.ndim for v in values):
                return finish(fn(*(v.item() if isinstance(v, np.generic) else v for v in values)))
            rows = np.broadcast_arrays(*values)
            return np.array([finish(fn(*row)) for row in zip(*(r.tolist() for r in rows))], target)

        return call, kind

    def _shuffle(self, e: E.Call) -> Code:
        """The values that other lanes have."""
        value, by, width = (self.code(a)[0] for a in e.args[1:4])
        first = np.arange(self.threads) - self.lane  # of each thread's block

        def read() -> Any:
            source = source_of(e, self.lane, self.block_threads, by(), width(), np.where)
            return np.broadcast_to(np.asarray(value()), self.threads)[first + source]

        return read

    def _if_then_else(self, e: E.Call) -> tuple[Code, Kind]:
        """A choice, of which each thread computes its side only."""
        c, kind = self.code(e.args[0])
        (t, kind_t), (f, kind_f) = self.code(e.args[1]), self.code(e.args[2])
        stays = kind is Kind.FIXED

        def choose() -> Any:
            test = c()
            if not isinstance(test, np.ndarray):
                return t() if test else f()
            with self.under(test, False, stays):
                a = t()
            with self.under(test, True, stays):
                b = f()
            return _choose(test, a, b)

        return choose, joined(kind, joined(kind_t, kind_f))

    # -- indices ----------------------------------------------------------------------------------

    def index(self, e: PrimExpr) -> tuple[Code | None, Code, bool]:
        """An index as (what depends on the thread, the number that is added): the first is None
        where all threads have the same; the last says whether it stays the same array."""
        terms = linear_terms(e)
        moving: list[tuple[Code, int]] = []
        own: list[tuple[Code, int]] = []
        stays = True
        for term, scale in terms:
            run, kind = self.code(term)
            (moving if kind <= Kind.UNIFORM else own).append((run, scale))
            stays &= kind is not Kind.VARYING
        number = _sum(moving)
        if not own:
            return None, number, True
        array = _sum(own)
        return (_once(array) if stays else array), number, stays


def _sum(terms: list[tuple[Code, int]]) -> Code:
    if not terms:
        return lambda: 0
    if len(terms) == 1:
        run, scale = terms[0]
        return run if scale == 1 else lambda: run() * scale

    def total() -> Any:
        value = 0
        for run, scale in terms:
            value = value + run() * scale
        return value

    return total


def linear_terms(e: PrimExpr) -> list[tuple[PrimExpr, int]]:
    """An index as a sum of terms with factors."""
    terms: list[tuple[PrimExpr, int]] = []
    _linear(e, 1, terms)
    return terms


def _linear(e: PrimExpr, scale: int, out: list[tuple[PrimExpr, int]]) -> None:
    if type(e) is E.Add:
        _linear(e.a, scale, out)
        _linear(e.b, scale, out)
    elif type(e) is E.Sub:
        _linear(e.a, scale, out)
        _linear(e.b, -scale, out)
    elif type(e) is E.Mul and as_int(e.b) is not None:
        _linear(e.a, scale * (as_int(e.b) or 0), out)
    elif type(e) is E.Mul and as_int(e.a) is not None:
        _linear(e.b, scale * (as_int(e.a) or 0), out)
    else:
        out.append((e, scale))


def _once(run: Code) -> Code:
    """Computed when it is asked for first."""
    kept: list[Any] = []

    def get() -> Any:
        if not kept:
            kept.append(run())
        return kept[0]

    return get


def _constant(e: Any) -> Any:
    if type(e) is E.IntImm:
        return bool(e.value) if e.dtype == "bool" else e.value
    return dt.numpy_dtype(e.dtype).type(fit(e.dtype)(e.value))


def _choose(test: Any, a: Any, b: Any) -> Any:
    if isinstance(test, np.ndarray) and test.ndim:
        return np.where(test, a, b)
    return a if test else b


def _binary(e: E.BinaryOp, a: Code, b: Code) -> Code:
    kind, target = type(e), dt.numpy_dtype(e.dtype)
    if dt.is_float(e.dtype):
        many, one = VECTOR_FLOAT[kind], FLOAT_OPS[kind]
    elif dt.is_bool(e.dtype):
        many, one = VECTOR_BOOL.get(kind), BOOL_OPS.get(kind)
    else:
        many, one = VECTOR_INT[kind], INT_OPS[kind]
    finish = fit(e.dtype)
    divides = kind in DIVISIONS and not dt.is_float(e.dtype)

    def run() -> Any:
        x, y = a(), b()
        if not (isinstance(x, np.ndarray) and x.ndim or isinstance(y, np.ndarray) and y.ndim):
            if divides and not y:
                return 0  # what a GPU gives is not defined
            x, y = (v.item() if isinstance(v, np.generic) else v for v in (x, y))
            value = finish(one(x, y))  # type: ignore[misc]
            return value if target.kind in "iub" else target.type(value)
        if divides:
            y = np.where(np.equal(y, 0), 1, y)
        x, y = np.asarray(x, target), np.asarray(y, target)
        with np.errstate(all="ignore"):
            return many(x, y).astype(target, copy=False)  # type: ignore[misc]

    return run


def _cast(a: Code, source: str, target: str) -> Code:
    kind = dt.numpy_dtype(target)

    def run() -> Any:
        value = a()
        if not (isinstance(value, np.ndarray) and value.ndim):
            value = value.item() if isinstance(value, np.generic) else value
            value = convert(value, source, target)
            return value if kind.kind in "iub" else kind.type(value)
        if dt.is_bool(target):
            return value != 0
        if dt.is_float(source) and not dt.is_float(target):
            return vector_float_to_int(value, target)
        with np.errstate(all="ignore"):
            return value.astype(kind)

    return run


__all__ = ["Code", "Kind", "LaneExpressions", "joined", "linear_terms"]
