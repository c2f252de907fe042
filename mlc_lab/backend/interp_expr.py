"""The interpreter's expressions: each becomes a Python closure `f(env) -> value`.

`env` is the list of all variables' values; a variable is a slot in it. A scalar is a Python
number, a vector a numpy array. What an operation on numbers gives is in `tir/numbers.py`: the
value is computed exactly (integers) or in double precision (floats) and then fitted to its type.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from ..ir import dtype as dt
from ..tir import expr as E
from ..tir.buffer import Buffer
from ..tir.numbers import (
    BOOL_OPS, COMPARE, DIVISIONS, FLOAT_OPS, INT_OPS, convert, fit,
)
from .interp_math import (
    MATH, TESTS, VECTOR_BOOL, VECTOR_FLOAT, VECTOR_INT, c_function, fused, integer_function,
    vector_float_to_int,
)
from .interp_memory import DivisionByZero, InterpError, vector_dtype, vector_fit

if TYPE_CHECKING:
    from ..tir.expr import PrimExpr
    from .interp_access import Options

Code = Callable[[list], Any]


# ----------------------------------------------------------------------------- the compiler


class ExprCompiler:
    """Turns expressions into closures. `InterpCompiler` adds the statements."""

    slots: dict[E.Var, int]
    options: Options
    # what the classes that it is the base of have
    define: Callable[[E.Var], int]
    new_slot: Callable[[], int]
    view: Callable[[Buffer], Callable]
    where: Callable[[list], str]
    call_function: Callable[[E.Call], Code]
    #: inside a choice by a vector, or a masked store: the slot of the lane mask, and its width
    mask: tuple[int, int] | None = None

    def slot(self, var: E.Var) -> int:
        """Where in `env` the value of `var` is."""
        raise TypeError("abstract")  # overridden

    def expr(self, e: E.PrimExpr) -> Code:
        """The closure that computes `e`."""
        method = _TABLE.get(type(e))
        if method is None:
            raise InterpError(f"the interpreter cannot evaluate {type(e).__name__}: {e!r}")
        return method(self, e)

    # leaves

    def _var(self, e: E.Var) -> Code:
        slot = self.slot(e)
        return lambda env: env[slot]

    def _constant(self, e: E.IntImm | E.FloatImm) -> Code:
        value = bool(e.value) if e.dtype == "bool" else e.value
        if type(e) is E.FloatImm:
            value = fit(e.dtype)(value)
        return lambda env: value

    def _string(self, e: E.StringImm) -> Code:
        value = e.value
        return lambda env: value

    # arithmetic

    def _binary(self, e: E.BinaryOp) -> Code:
        if dt.lanes_of(e.dtype) > 1:
            return self._vector_binary(e)
        a, b = self.expr(e.a), self.expr(e.b)
        cls = type(e)
        if dt.is_float(e.dtype):
            return _float_code(cls, a, b, e.dtype)
        if cls in DIVISIONS:
            return self._int_division(e, a, b)
        if dt.is_bool(e.dtype):
            fn = BOOL_OPS[cls]
            return lambda env: fn(a(env), b(env))
        return self._int_code(e, cls, a, b)

    def _int_code(self, e: E.BinaryOp, cls: type, a: Code, b: Code) -> Code:
        low, high = dt.int_range(e.dtype)
        wrap = fit(e.dtype)
        if type(e) is E.Add:
            return _add_code(self, e, a, b, low, high, wrap)
        if type(e) is E.Mul:
            return _mul_code(self, e, a, b, low, high, wrap)
        if cls is E.Sub:
            def sub(env: list) -> int:
                v = a(env) - b(env)
                return v if low <= v <= high else wrap(v)

            return sub
        fn = INT_OPS[cls]
        return lambda env: fn(a(env), b(env))

    def _int_division(self, e: E.BinaryOp, a: Code, b: Code) -> Code:
        fn, wrap, kind = INT_OPS[type(e)], fit(e.dtype), type(e)
        if type(e.b) is E.IntImm and e.b.value > 0:
            divisor = e.b.value
            if kind is E.FloorDiv:
                return lambda env: a(env) // divisor
            if kind is E.FloorMod:
                return lambda env: a(env) % divisor

        def divide(env: list) -> int:
            divisor = b(env)
            if divisor == 0:
                raise DivisionByZero(f"division by zero in {e!r}{self.where(env)}")
            return wrap(fn(a(env), divisor))

        return divide

    def _vector_binary(self, e: E.BinaryOp) -> Code:
        a, b = self.expr(e.a), self.expr(e.b)
        if dt.is_float(e.dtype):
            fn, finish = VECTOR_FLOAT[type(e)], vector_fit(e.dtype)
            return lambda env: finish(fn(a(env), b(env)))
        if dt.is_bool(e.dtype):
            if type(e) in DIVISIONS:
                return self._vector_division(e, lambda x, y: x & (type(e) not in (
                    E.Mod, E.FloorMod)), a, b)
            fn = VECTOR_BOOL[type(e)]
            return lambda env: fn(a(env), b(env))
        fn, finish = VECTOR_INT[type(e)], vector_fit(e.dtype)
        if type(e) in DIVISIONS:
            return self._vector_division(e, lambda x, y: finish(fn(x, y)), a, b)
        return lambda env: finish(fn(a(env), b(env)))

    def _vector_division(self, e: E.BinaryOp, fn: Callable, a: Code, b: Code) -> Code:
        counts = self.active_lanes(dt.lanes_of(e.dtype))

        def divide(env: list) -> np.ndarray:
            divisor = b(env)
            zero = divisor == 0
            if zero.any():
                if (zero if counts is None else zero & counts(env)).any():
                    raise DivisionByZero(f"division by zero in {e!r}{self.where(env)}")
                divisor = np.where(zero, divisor.dtype.type(1), divisor)
            return fn(a(env), divisor)

        return divide

    def active_lanes(self, lanes: int) -> Code | None:
        """The mask of active lanes, None where all are active. Inactive lanes must not fail."""
        if self.mask is None or self.mask[1] != lanes:
            return None
        slot = self.mask[0]
        return lambda env: env[slot]

    def masked(self, e: E.PrimExpr, slot: int, lanes: int) -> Code:
        """The closure of `e`, whose active lanes are those set in `env[slot]`."""
        outer, self.mask = self.mask, (slot, lanes)
        try:
            return self.expr(e)
        finally:
            self.mask = outer

    # conditions

    def _compare(self, e: E.CmpOp) -> Code:
        fn = COMPARE[type(e)]
        a, b = self.expr(e.a), self.expr(e.b)
        if type(e.b) is E.IntImm:
            constant = e.b.value
            return lambda env: fn(a(env), constant)
        return lambda env: fn(a(env), b(env))

    def _and(self, e: E.And) -> Code:
        if dt.lanes_of(e.dtype) > 1:
            return self._vector_logic(e, np.logical_and, lambda a: a)
        a, b = self.expr(e.a), self.expr(e.b)
        return lambda env: a(env) and b(env)

    def _or(self, e: E.Or) -> Code:
        if dt.lanes_of(e.dtype) > 1:
            return self._vector_logic(e, np.logical_or, np.logical_not)
        a, b = self.expr(e.a), self.expr(e.b)
        return lambda env: a(env) or b(env)

    def _vector_logic(self, e: E.And | E.Or, fn: Callable, undecided: Callable) -> Code:
        """Lane by lane; b is computed where a does not decide."""
        lanes = dt.lanes_of(e.dtype)
        a, slot, outer = self.expr(e.a), self.new_slot(), self.active_lanes(lanes)
        b = self.masked(e.b, slot, lanes)

        def logic(env: list) -> np.ndarray:
            first = a(env)
            env[slot] = undecided(first) & (True if outer is None else outer(env))
            return fn(first, b(env))

        return logic

    def _not(self, e: E.Not) -> Code:
        a = self.expr(e.a)
        if dt.lanes_of(e.dtype) > 1:
            return lambda env: np.logical_not(a(env))
        return lambda env: not a(env)

    def _select(self, e: E.Select) -> Code:
        c, t, f = self.expr(e.condition), self.expr(e.true_value), self.expr(e.false_value)
        if dt.lanes_of(e.condition.dtype) > 1:
            return lambda env: np.where(c(env), t(env), f(env))

        def select(env: list) -> Any:
            a, b = t(env), f(env)  # both sides are evaluated, as the machine may
            return a if c(env) else b

        return select

    # types

    def _cast(self, e: E.Cast) -> Code:
        value = self.expr(e.value)
        source, target = e.value.dtype, e.dtype
        if dt.lanes_of(target) > 1:
            return _vector_cast(value, source, target)
        finish = fit(target)
        if dt.is_handle(target) or dt.is_handle(source):
            return value
        if dt.is_float(source) and dt.is_float(target):
            return lambda env: finish(value(env))
        if dt.is_float(source) or dt.is_float(target):
            return lambda env: convert(value(env), source, target)
        if dt.is_bool(target):
            return lambda env: value(env) != 0
        return lambda env: finish(int(value(env)))

    # vectors

    def _ramp(self, e: E.Ramp) -> Code:
        base, stride = self.expr(e.base), self.expr(e.stride)
        kind, lanes, width = vector_dtype(e.dtype), e.lanes, dt.lanes_of(e.base.dtype)
        steps = np.arange(lanes, dtype=np.int64 if kind.kind in "iub" else kind)
        if width == 1:
            return lambda env: (base(env) + stride(env) * steps).astype(kind)
        return lambda env: (base(env)[None, :] + stride(env)[None, :] * steps[:, None]).reshape(
            -1).astype(kind)

    def _broadcast(self, e: E.Broadcast) -> Code:
        value, lanes, kind = self.expr(e.value), e.lanes, vector_dtype(e.dtype)
        if dt.lanes_of(e.value.dtype) > 1:
            return lambda env: np.tile(value(env), lanes)
        return lambda env: np.full(lanes, value(env), kind)

    def _shuffle(self, e: E.Shuffle) -> Code:
        vectors = [self.expr(v) for v in e.vectors]
        picks = [int(i) for i in e.indices]
        kind = vector_dtype(e.dtype)
        if len(picks) == 1:
            return lambda env: np.concatenate(
                [np.atleast_1d(v(env)) for v in vectors])[picks[0]].item()
        return lambda env: np.concatenate(
            [np.atleast_1d(np.asarray(v(env), kind)) for v in vectors])[picks]

    def _let(self, e: E.Let) -> Code:
        value, slot = self.expr(e.value), self.define(e.var)
        body = self.expr(e.body)

        def let(env: list) -> Any:
            env[slot] = value(env)
            return body(env)

        return let

    def _te_only(self, e: PrimExpr) -> Code:
        raise InterpError(f"{type(e).__name__} belongs to a tensor expression: make a PrimFunc of "
                          "it first, with te.create_prim_func")

    # calls

    def _call(self, e: E.Call) -> Code:
        if not isinstance(e.op, E.Op):
            return self.call_function(e)
        name = e.op.name[4:] if e.op.name.startswith("tir.") else e.op.name
        special = _CALLS.get(name)
        if special is not None:
            return special(self, e)
        args = [self.expr(a) for a in e.args]
        if name in MATH and dt.is_float(e.dtype):
            fn = fused(dt.element_of(e.dtype)) if name == "fma" else MATH[name]
            return _math_code(fn, args, e.dtype)
        if name in TESTS:
            return _test_code(TESTS[name], args[0], dt.lanes_of(e.dtype) > 1)
        fn = integer_function(name, e)
        if fn is not None:
            return _elementwise(fn, args, e.dtype)
        raise InterpError(
            f"the interpreter has no meaning for the intrinsic tir.{name} (in {e!r}): it belongs "
            "to a machine it does not model; run the program before it was lowered to that machine")

    def _if_then_else(self, e: E.Call) -> Code:
        lanes = dt.lanes_of(e.args[0].dtype)
        if lanes > 1:
            return self._choose_lanes(e, lanes)
        c, t, f = (self.expr(a) for a in e.args)
        return lambda env: t(env) if c(env) else f(env)

    def _choose_lanes(self, e: E.Call, lanes: int) -> Code:
        """A choice lane by lane: the sides are computed where their lane is chosen."""
        condition, outer = self.expr(e.args[0]), self.active_lanes(lanes)
        slot = self.new_slot()
        t, f = (self.masked(a, slot, lanes) for a in e.args[1:])

        def choose(env: list) -> np.ndarray:
            test = condition(env)
            within = True if outer is None else outer(env)
            env[slot] = test & within
            a = t(env)
            env[slot] = ~test & within
            return np.where(test, a, f(env))

        return choose

    def _first_argument(self, e: E.Call) -> Code:
        return self.expr(e.args[0])

    def _reinterpret(self, e: E.Call) -> Code:
        value = self.expr(e.args[0])
        if dt.is_handle(e.dtype) or dt.is_handle(e.args[0].dtype):
            return value
        source = dt.numpy_dtype(dt.element_of(e.args[0].dtype))
        target = dt.numpy_dtype(dt.element_of(e.dtype))
        lanes = dt.lanes_of(e.dtype)

        def reinterpret(env: list) -> Any:
            bits = np.atleast_1d(np.asarray(value(env)).astype(source)).view(target)
            return bits.astype(vector_dtype(e.dtype)) if lanes > 1 else bits[0].item() if (
                bits.dtype.kind != "V") else float(bits[0])

        return reinterpret

    def _extern(self, e: E.Call) -> Code:
        name = e.args[0].value
        args = [self.expr(a) for a in e.args[1:]]
        fn = self.options.extern.get(name) or c_function(name)
        if fn is None:
            raise InterpError(f"the interpreter does not know the C function {name!r}; pass what "
                              f"it does: interpret(..., extern={{{name!r}: lambda ...: ...}})")
        if e.dtype in ("void", "handle") or name in self.options.extern:
            return lambda env: fn(*(a(env) for a in args))
        return _elementwise(fn, args, e.dtype)

    def _llvm_intrinsic(self, e: E.Call) -> Code:
        name = e.args[0]
        text = name.value if isinstance(name, E.StringImm) else ""
        parts = text.split(".")
        if parts[:4] == _SUM_OF_LANES:
            return self._sum_of_lanes(e)
        fn = MATH.get(parts[1]) if len(parts) > 1 and parts[0] == "llvm" else None
        if fn is None:
            raise InterpError(f"the interpreter has no meaning for the LLVM intrinsic {name!r}")
        rest = e.args[1:]
        if len(rest) and type(rest[0]) is E.IntImm and dt.is_uint(rest[0].dtype):
            rest = rest[1:]  # TVM counts the signature's types first
        return _math_code(fn, [self.expr(a) for a in rest], e.dtype)

    def _sum_of_lanes(self, e: E.Call) -> Code:
        """A number and the lanes of a vector, added one after the other."""
        start, vector, finish = self.expr(e.args[1]), self.expr(e.args[2]), fit(e.dtype)

        def total(env: list) -> float:
            value = start(env)
            for lane in vector(env).tolist():
                value = finish(value + lane)
            return value

        return total

    def _packed(self, e: E.Call) -> Code:
        name = e.args[0].value
        args = [self.argument(a) for a in e.args[1:]]
        lookup = self.options.packed

        def call(env: list) -> Any:
            fn = lookup.get(name) if hasattr(lookup, "get") else lookup(name)
            if fn is None:
                raise InterpError(f"no function {name!r} is registered for T.call_packed")
            return fn(*(a(env) for a in args))

        return call

    def argument(self, e: PrimExpr) -> Code:
        """An argument of a packed call: buffers become arrays, the rest values."""
        if isinstance(e, Buffer):
            view = self.view(e)
            return lambda env: view(env).ndarray()
        return self.expr(e)

    def _make_array(self, e: E.Call) -> Code:
        pointer, shape = self.expr(e.args[0]), self.expr(e.args[1])
        offset = self.expr(e.args[5]) if len(e.args) > 5 else (lambda env: 0)

        def make(env: list) -> np.ndarray:
            extents = tuple(shape(env))
            start = offset(env)
            return pointer(env)[start:start + math.prod(extents)].reshape(extents)

        return make

    def _tuple(self, e: E.Call) -> Code:
        args = [self.expr(a) for a in e.args]
        return lambda env: tuple(a(env) for a in args)

    def _access_ptr(self, e: E.Call) -> Code:
        data, offset = self.expr(e.args[1]), self.expr(e.args[2])
        return lambda env: data(env)[offset(env):]

    def _address_of(self, e: E.Call) -> Code:
        load = e.args[0]
        if not isinstance(load, E.BufferLoad):
            return self.expr(load)
        view, indices = self.view(load.buffer), [self.expr(i) for i in load.indices]

        def address(env: list) -> np.ndarray:
            v = view(env)
            flat = v.offset + sum(i(env) * s for i, s in zip(indices, v.strides))
            return v.array[flat * v.lanes:]

        return address

    def _vector_half(self, e: E.Call, half: int) -> Code:
        value = self.expr(e.args[0])
        return lambda env: np.split(value(env), 2)[half]

    def _combine(self, e: E.Call) -> Code:
        a, b = self.expr(e.args[0]), self.expr(e.args[1])
        return lambda env: np.concatenate([a(env), b(env)])

    def _undef(self, e: E.Call) -> Code:
        return lambda env: 0

    def _nothing(self, e: E.Call) -> Code:
        return lambda env: 0

    def _is_null(self, e: E.Call) -> Code:
        value = self.expr(e.args[0])
        return lambda env: value(env) is None


_SUM_OF_LANES = ["llvm", "vector", "reduce", "fadd"]


def _vector_cast(value: Code, source: str, target: str) -> Code:
    finish = vector_fit(target)
    if dt.is_bool(target):
        return lambda env: value(env) != 0
    if dt.is_float(source) and not dt.is_float(target):
        return lambda env: vector_float_to_int(value(env), target)
    return lambda env: finish(value(env))


def _math_code(fn: Callable, args: list[Code], dtype: str) -> Code:
    """A function of floats; that of 16 bits is computed in float32 and rounded again."""
    if dt.lanes_of(dtype) > 1:
        return _elementwise(fn, args, dtype)
    finish = _finish_math(dtype)
    if len(args) == 1:
        a = args[0]
        return lambda env: finish(fn(a(env)))
    if len(args) == 2:
        a, b = args
        return lambda env: finish(fn(a(env), b(env)))
    return lambda env: finish(fn(*(a(env) for a in args)))


def _finish_math(dtype: str) -> Callable[[Any], Any]:
    finish = fit(dt.element_of(dtype))
    if not dt.is_float(dtype) or dt.bits_of(dtype) > 16:
        return finish
    first = fit("float32")
    return lambda v: finish(first(v))


def _test_code(fn: Callable, arg: Code, vector: bool) -> Code:
    if vector:
        return lambda env: np.array([fn(x) for x in arg(env).tolist()])
    return lambda env: fn(arg(env))


def _elementwise(fn: Callable, args: list[Code], dtype: str) -> Code:
    """`fn` on Python numbers, lane by lane for vectors."""
    finish = _finish_math(dtype)
    lanes = dt.lanes_of(dtype)
    if lanes == 1:
        return lambda env: finish(fn(*(a(env) for a in args)))
    kind = vector_dtype(dtype)

    def vector(env: list) -> np.ndarray:
        columns = [np.broadcast_to(a(env), lanes).tolist() for a in args]
        return np.array([finish(fn(*row)) for row in zip(*columns)], dtype=kind)

    return vector


def _float_code(cls: type, a: Code, b: Code, dtype: str) -> Code:
    """Float arithmetic; the common cases have closures of their own, which are faster."""
    if dtype == "float32" and cls in (E.Add, E.Sub, E.Mul):
        from array import array

        cell = array("f", [0.0])
        if cls is E.Add:
            def add(env: list) -> float:
                v = a(env) + b(env)
                cell[0] = v
                return cell[0]

            return add
        if cls is E.Mul:
            def mul(env: list) -> float:
                v = a(env) * b(env)
                cell[0] = v
                return cell[0]

            return mul

        def sub(env: list) -> float:
            v = a(env) - b(env)
            cell[0] = v
            return cell[0]

        return sub
    fn = FLOAT_OPS[cls]
    if dtype == "float64" or cls is E.Min or cls is E.Max:
        return lambda env: fn(a(env), b(env))
    finish = fit(dtype)
    return lambda env: finish(fn(a(env), b(env)))


def _add_code(self: Any, e: E.Add, a: Code, b: Code, low: int, high: int, wrap: Any) -> Code:
    if type(e.b) is E.IntImm:
        constant = e.b.value
        if isinstance(e.a, E.Var):
            slot = self.slot(e.a)

            def add_var_constant(env: list) -> int:
                v = env[slot] + constant
                return v if low <= v <= high else wrap(v)

            return add_var_constant

        def add_constant(env: list) -> int:
            v = a(env) + constant
            return v if low <= v <= high else wrap(v)

        return add_constant
    if isinstance(e.b, E.Var):
        slot = self.slot(e.b)

        def add_var(env: list) -> int:
            v = a(env) + env[slot]
            return v if low <= v <= high else wrap(v)

        return add_var

    def add(env: list) -> int:
        v = a(env) + b(env)
        return v if low <= v <= high else wrap(v)

    return add


def _mul_code(self: Any, e: E.Mul, a: Code, b: Code, low: int, high: int, wrap: Any) -> Code:
    if type(e.b) is E.IntImm:
        constant = e.b.value
        if isinstance(e.a, E.Var):
            slot = self.slot(e.a)

            def mul_var_constant(env: list) -> int:
                v = env[slot] * constant
                return v if low <= v <= high else wrap(v)

            return mul_var_constant

    def mul(env: list) -> int:
        v = a(env) * b(env)
        return v if low <= v <= high else wrap(v)

    return mul


_CALLS: dict[str, Callable] = {
    "if_then_else": ExprCompiler._if_then_else, "likely": ExprCompiler._first_argument,
    "reinterpret": ExprCompiler._reinterpret, "call_extern": ExprCompiler._extern,
    "call_pure_extern": ExprCompiler._extern, "call_llvm_intrin": ExprCompiler._llvm_intrinsic,
    "call_llvm_pure_intrin": ExprCompiler._llvm_intrinsic, "tvm_call_packed": ExprCompiler._packed,
    "tvm_stack_make_array": ExprCompiler._make_array, "tvm_stack_make_shape": ExprCompiler._tuple,
    "tvm_tuple": ExprCompiler._tuple, "tvm_access_ptr": ExprCompiler._access_ptr,
    "address_of": ExprCompiler._address_of, "vectorcombine": ExprCompiler._combine,
    "vectorlow": lambda self, e: self._vector_half(e, 0),
    "vectorhigh": lambda self, e: self._vector_half(e, 1),
    "undef": ExprCompiler._undef, "assume": ExprCompiler._nothing,
    "vscale": lambda self, e: lambda env: 1,  # registers of 128 bits
    "prefetch": ExprCompiler._nothing, "start_profile_intrinsic": ExprCompiler._nothing,
    "end_profile_intrinsic": ExprCompiler._nothing, "isnullptr": ExprCompiler._is_null,
}

_TABLE: dict[type, Callable] = {
    E.Var: ExprCompiler._var, E.SizeVar: ExprCompiler._var, E.IntImm: ExprCompiler._constant,
    E.FloatImm: ExprCompiler._constant, E.StringImm: ExprCompiler._string,
    E.And: ExprCompiler._and, E.Or: ExprCompiler._or, E.Not: ExprCompiler._not,
    E.Select: ExprCompiler._select, E.Cast: ExprCompiler._cast, E.Ramp: ExprCompiler._ramp,
    E.Broadcast: ExprCompiler._broadcast, E.Shuffle: ExprCompiler._shuffle,
    E.Let: ExprCompiler._let, E.Call: ExprCompiler._call, E.Reduce: ExprCompiler._te_only,
    E.ProducerLoad: ExprCompiler._te_only,
    E.BufferLoad: lambda self, e: self.load(e),
    **dict.fromkeys(INT_OPS, ExprCompiler._binary),
    **dict.fromkeys(COMPARE, ExprCompiler._compare),
}
