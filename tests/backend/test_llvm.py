"""LLVM code generation, on programs written in lowered form, against numpy."""

import math
import subprocess
import sys

import numpy as np
import pytest

from mlc_lab import tir
from mlc_lab.backend import llvm
from mlc_lab.backend.interp import interpret
from mlc_lab.ir import dtype
from mlc_lab.ir.module import GlobalVar, IRModule
from mlc_lab.lower import PlaceAllocations, lower
from mlc_lab.runtime import (
    array, empty, jit, native_library, register_func, remove_global_func,
)
from mlc_lab.script import from_source
from mlc_lab.tir import (
    Allocate, AllocateConst, AssertStmt, Broadcast, BufferLoad, BufferStore, Call, Cast, Evaluate,
    FloatImm, For, IfThenElse, IntImm, LetStmt, PrimFunc, Ramp, Select, SeqStmt, StringImm, Var,
    While, const, decl_buffer,
)  # fmt: skip

SERIAL, PARALLEL = 0, 1


def module(params, body, name="f", **attrs):
    """A module of one function over buffers and variables."""
    return IRModule({name: PrimFunc(params, body, attrs={"global_symbol": name, **attrs})})


def run(params, body, *args, **attrs):
    """Compile one function and call it."""
    llvm.build(module(params, body, **attrs))["f"](*args)


def loop(n, body, kind=SERIAL, start=0):
    """for i in start .. start + n: body(i)"""
    i = Var("i", "int32")
    return For(i, start, n, kind, body(i))


def unary(dtype, out_dtype, compute, values, lanes=1):
    """compute applied to every element, by scalars or vectors of ``lanes``."""
    n = len(values)
    a, b = decl_buffer((n,), dtype, "A"), decl_buffer((n,), out_dtype, "B")

    def body(i):
        at = [i] if lanes == 1 else [Ramp(i * lanes, const(1), lanes)]
        return BufferStore(b, compute(BufferLoad(a, at)), at)

    x, y = array(values) if dtype != "bfloat16" else bf16(values), empty((n,), out_dtype)
    run([a, b], loop(n // lanes, body), x, y)
    return y.numpy()


def bf16(values):
    return empty(values.shape, "bfloat16").copyfrom(values)


def binary(dtype, compute, x, y, out_dtype=None, lanes=1):
    """compute applied to pairs of elements."""
    n, out_dtype = len(x), out_dtype or dtype
    a, b, c = (decl_buffer((n,), t, s) for t, s in ((dtype, "A"), (dtype, "B"), (out_dtype, "C")))

    def body(i):
        at = [i] if lanes == 1 else [Ramp(i * lanes, const(1), lanes)]
        return BufferStore(c, compute(BufferLoad(a, at), BufferLoad(b, at)), at)

    out = empty((n,), out_dtype)
    run([a, b, c], loop(n // lanes, body), array(x), array(y), out)
    return out.numpy()


INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
LANES = [1, 4]


def int_pairs(dtype):
    low, high = (-7, 8) if dtype[0] == "i" else (0, 15)
    pairs = [(a, b) for a in range(low, high) for b in range(low, high) if b]
    pairs = pairs[: len(pairs) // 4 * 4]
    return np.array([p[0] for p in pairs], dtype), np.array([p[1] for p in pairs], dtype)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", INTS)
def test_integer_division_rounds_down_or_toward_zero(dtype, lanes):
    x, y = int_pairs(dtype)
    np.testing.assert_array_equal(binary(dtype, tir.FloorDiv, x, y, lanes=lanes), x // y)
    np.testing.assert_array_equal(binary(dtype, tir.FloorMod, x, y, lanes=lanes), x % y)
    trunc = np.trunc(x.astype("float64") / y).astype(dtype)
    np.testing.assert_array_equal(binary(dtype, tir.Div, x, y, lanes=lanes), trunc)
    np.testing.assert_array_equal(binary(dtype, tir.Mod, x, y, lanes=lanes), x - trunc * y)


@pytest.mark.parametrize("divisor", [1, 2, 3, 8, 7, -3])
@pytest.mark.parametrize("kind", [tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod])
def test_division_by_constants_in_indices_and_values(kind, divisor):
    x = np.arange(-10, 10, dtype="int32")
    got = unary("int32", "int32", lambda a: kind(a, const(divisor)), x)
    quotient = x // divisor if kind is tir.FloorDiv or kind is tir.FloorMod else np.trunc(
        x / divisor).astype("int32")
    expected = quotient if kind in (tir.FloorDiv, tir.Div) else x - quotient * divisor
    np.testing.assert_array_equal(got, expected)
    # As an index: B[(i op d) + 40] = i, over negative i too.
    b = decl_buffer((80,), "int32", "B")
    out = np.zeros(80, "int32")
    run([b], loop(20, lambda i: BufferStore(b, i, [kind(i, const(divisor)) + 40]), start=-10), out)
    want = np.zeros(80, "int32")
    for i, e in zip(x, expected, strict=True):
        want[e + 40] = i
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", [*INTS, "float16", "float32", "float64"])
def test_arithmetic_and_comparisons(dtype, lanes):
    x, y = int_pairs(dtype) if dtype in INTS else int_pairs("int32")
    x, y = x.astype(dtype), y.astype(dtype)
    for kind, expected in (
        (tir.Add, x + y), (tir.Sub, x - y), (tir.Mul, x * y), (tir.Min, np.minimum(x, y)),
        (tir.Max, np.maximum(x, y)),
    ):  # fmt: skip
        np.testing.assert_array_equal(binary(dtype, kind, x, y, lanes=lanes), expected)
    for kind, expected in (
        (tir.EQ, x == y), (tir.NE, x != y), (tir.LT, x < y), (tir.LE, x <= y), (tir.GT, x > y),
        (tir.GE, x >= y),
    ):  # fmt: skip
        np.testing.assert_array_equal(binary(dtype, kind, x, y, "bool", lanes), expected)


def test_logic_on_bools():
    x, y = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    for lanes in LANES:
        np.testing.assert_array_equal(binary("bool", tir.And, x, y, lanes=lanes), x & y)
        np.testing.assert_array_equal(binary("bool", tir.Or, x, y, lanes=lanes), x | y)
        np.testing.assert_array_equal(unary("bool", "bool", tir.Not, x, lanes), ~x)


DTYPES = [*INTS, "float16", "float32", "float64", "bool"]


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("source", DTYPES)
def test_casts(source, lanes):
    x = np.array([0, 1, 2, 100, 3, 1, 0, 7]).astype(source)
    if source[0] in "if":
        x = -x if source[0] == "i" else x + x.dtype.type(0.5)
    for target in DTYPES:
        if target[0] == "u" and (x < 0).any():
            continue
        wide = dtype.with_lanes(target, lanes)
        got = unary(source, target, lambda a, wide=wide: Cast(wide, a), x, lanes)
        np.testing.assert_array_equal(got, x.astype(target), err_msg=f"{source} to {target}")


def test_bfloat16_rounds_like_the_reference():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(64).astype("float32")
    x[:4] = [np.nan, np.inf, -np.inf, 1.00390625]
    for lanes in (1, 8):
        wide = "bfloat16" if lanes == 1 else "bfloat16x8"
        got = unary("float32", "bfloat16", lambda a, w=wide: Cast(w, a), x, lanes)
        np.testing.assert_array_equal(got.astype("float32"), bf16(x).numpy().astype("float32"))
        twice = unary("bfloat16", "bfloat16", lambda a: a + a, x[4:60], lanes)
        np.testing.assert_array_equal(
            np.asarray(twice, "float32"), 2 * bf16(x[4:60]).numpy().astype("float32")
        )


@pytest.mark.parametrize("stride", [1, 2, 3, -1, -2, 0])
def test_strided_vector_loads_and_stores(stride):
    n, lanes = 40, 4
    a, b = decl_buffer((n,), "float32", "A"), decl_buffer((n,), "float32", "B")
    at = [Ramp(const(16), const(stride), lanes)]
    x, y = np.arange(n, dtype="float32"), np.zeros(n, "float32")
    run([a, b], BufferStore(b, BufferLoad(a, at), [Ramp(const(0), const(1), lanes)]), x, y)
    np.testing.assert_array_equal(y[:4], [16 + stride * k for k in range(4)])
    y[:] = 0
    run([a, b], BufferStore(b, BufferLoad(a, [Ramp(const(0), const(1), lanes)]), at), x, y)
    want = np.zeros(n)
    for k in range(4):
        want[16 + stride * k] = k
    np.testing.assert_array_equal(y, want)


def test_gather_scatter_and_vector_index_expressions():
    n, lanes = 16, 8
    idx = decl_buffer((n,), "int32", "idx")
    a, b = decl_buffer((n,), "float32", "A"), decl_buffer((n,), "float32", "B")
    order = np.random.default_rng(1).permutation(n).astype("int32")
    x = np.arange(n, dtype="float32")

    def gather(i):
        at = Ramp(i * lanes, const(1), lanes)
        return BufferStore(b, BufferLoad(a, [BufferLoad(idx, [at])]), [at])

    y = np.zeros(n, "float32")
    run([idx, a, b], loop(2, gather), order, x, y)
    np.testing.assert_array_equal(y, x[order])

    def scatter(i):
        at = Ramp(i * lanes, const(1), lanes)
        return BufferStore(b, BufferLoad(a, [at]), [BufferLoad(idx, [at])])

    run([idx, a, b], loop(2, scatter), order, x, y)
    np.testing.assert_array_equal(y[order], x)

    def halves(i):
        at = Ramp(i * lanes, const(1), lanes)
        return BufferStore(b, BufferLoad(a, [tir.FloorDiv(at, Broadcast(const(2), lanes))]), [at])

    run([idx, a, b], loop(2, halves), order, x, y)
    np.testing.assert_array_equal(y, x[np.arange(n) // 2])


def test_predicated_accesses_touch_only_their_lanes():
    n, lanes = 10, 8
    a, b = decl_buffer((n,), "float32", "A"), decl_buffer((n,), "float32", "B")

    def body(i):
        at = Ramp(i * lanes, const(1), lanes)
        inside = tir.LT(at, Broadcast(const(n), lanes))
        one = Broadcast(FloatImm("float32", 1), lanes)
        return BufferStore(b, BufferLoad(a, [at], inside) + one, [at], inside)

    store = np.zeros(n + 6, "float32")
    x = np.arange(n, dtype="float32")
    run([a, b], loop(2, body), x, store[:n])
    np.testing.assert_array_equal(store[:n], x + 1)
    assert not store[n:].any()


def test_choices_of_scalars_and_vectors():
    n = 16
    a, b = decl_buffer((n,), "float32", "A"), decl_buffer((n,), "float32", "B")
    x = np.arange(n, dtype="float32")

    def padded(i):
        inside = tir.all(i >= 2, i < 14)
        value = Call("float32", "tir.if_then_else",
                     (inside, BufferLoad(a, [i - 2]), FloatImm("float32", -1)))
        return BufferStore(b, value, [i])

    y = np.zeros(n, "float32")
    run([a, b], loop(n, padded), x, y)
    np.testing.assert_array_equal(y, [-1, -1, *x[:12], -1, -1])

    def vector(i):
        at = Ramp(i * 8, const(1), 8)
        inside = tir.GE(at, Broadcast(const(3), 8))
        # The left side must not load before the start of A.
        load = BufferLoad(a, [at - Broadcast(const(3), 8)])
        value = Call("float32x8", "tir.if_then_else",
                     (inside, load, Broadcast(FloatImm("float32", -1), 8)))
        return BufferStore(b, value, [at])

    run([a, b], loop(2, vector), x, y)
    np.testing.assert_array_equal(y, [-1, -1, -1, *x[:13]])
    chosen = unary("float32", "float32",
                   lambda v: Select(v > 5, v, FloatImm("float32", 0)), x)
    np.testing.assert_array_equal(chosen, np.where(x > 5, x, 0))


def test_loops_lets_whiles_and_branches():
    b = decl_buffer((10,), "int32", "B")
    n = Var("n", "int32")
    count = decl_buffer((1,), "int32", "count", data=None)
    zero = [const(0)]
    body = Allocate(count.data, "int32", (const(1),), const(True), SeqStmt((
        BufferStore(count, const(0), zero),
        While(BufferLoad(count, zero) < n, SeqStmt((
            LetStmt(k := Var("k", "int32"), BufferLoad(count, zero) * 3, IfThenElse(
                tir.EQ(tir.FloorMod(BufferLoad(count, zero), const(2)), const(0)),
                BufferStore(b, k, [BufferLoad(count, zero)]),
                BufferStore(b, const(-1), [BufferLoad(count, zero)]))),
            BufferStore(count, BufferLoad(count, zero) + 1, zero)))))), {})
    out = np.zeros(10, "int32")
    run([b, n], body, out, 7)
    np.testing.assert_array_equal(out, [0, -1, 6, -1, 12, -1, 18, 0, 0, 0])


def test_loops_of_symbolic_and_empty_extents():
    n, m = Var("n", "int64"), Var("m", "int32")
    a = decl_buffer((n,), "float32", "A")
    i = Var("i", "int64")
    body = For(i, m, n - tir.cast(m, "int64"), SERIAL, BufferStore(a, FloatImm("float32", 1), [i]))
    f = llvm.build(module([a, m], body))["f"]
    for start in (0, 3, 5, 9):
        x = np.zeros(5, "float32")
        f(x, start)
        np.testing.assert_array_equal(x, np.arange(5) >= start)


@pytest.mark.parametrize("size", [100, 100000])
def test_allocations_on_the_stack_and_on_the_heap(size):
    a, t = decl_buffer((size,), "float32", "A"), decl_buffer((size,), "float32", "T")
    body = Allocate(t.data, "float32", (const(size),), const(True), SeqStmt((
        loop(size, lambda i: BufferStore(t, BufferLoad(a, [i]) * 2, [i])),
        loop(size, lambda i: BufferStore(a, BufferLoad(t, [size - 1 - i]), [i])))), {})
    x = np.arange(size, dtype="float32")
    want = (x * 2)[::-1].copy()
    mod = PlaceAllocations()(module([a], body))
    llvm.build(mod)["f"](x)
    np.testing.assert_array_equal(x, want)
    text = llvm.generate(mod, jit.host_machine())[0]
    assert ("mlc_lab_alloc" in text) == (size > 10000)


@pytest.mark.parametrize("threads", [1, 3])
def test_parallel_loops_with_captured_values(threads):
    before = native_library.num_threads()
    native_library.set_num_threads(threads)
    n, scale, shift = Var("n", "int32"), Var("scale", "float32"), Var("shift", "int64")
    a, t = decl_buffer((n, const(7)), "float32", "A"), decl_buffer((7,), "float32", "T")

    def row(i):
        fill = loop(7, lambda j: BufferStore(t, tir.cast(i * 7 + j, "float32") * scale, [j]))
        copy = loop(7, lambda j: BufferStore(
            a, BufferLoad(t, [j]) + tir.cast(shift, "float32"), [i - 2, j]))
        return Allocate(t.data, "float32", (const(7),), const(True), SeqStmt((fill, copy)), {})

    f = llvm.build(module([a, scale, shift], loop(n, row, PARALLEL, start=2)))["f"]
    for size in (0, 1, 2, 50):
        x = np.zeros((size, 7), "float32")
        f(x, 0.5, 3)
        want = (np.arange(size * 7).reshape(size, 7) + 14) * 0.5 + 3
        np.testing.assert_allclose(x, want)
    native_library.set_num_threads(before)


def test_nested_parallel_loops():
    a = decl_buffer((100,), "float32", "A")
    body = loop(10, lambda i: loop(
        10, lambda j: BufferStore(a, tir.cast(i * 10 + j, "float32"), [i * 10 + j]), PARALLEL),
        PARALLEL)
    x = np.zeros(100, "float32")
    run([a], body, x)
    np.testing.assert_array_equal(x, np.arange(100))


def test_assertions_raise_in_and_outside_of_parallel_loops():
    a, n = decl_buffer((100,), "int32", "A"), Var("n", "int32")
    f = llvm.build(module([a, n], AssertStmt(n > 3, StringImm("n is small"),
                                             BufferStore(a, n, [const(0)]))))["f"]
    x = np.zeros(100, "int32")
    f(x, 4)
    assert x[0] == 4
    with pytest.raises(AssertionError, match="f: assertion failed: n is small"):
        f(x, 3)
    body = loop(100, lambda i: AssertStmt(i < n, StringImm("too far"), BufferStore(a, i, [i])),
                PARALLEL)
    f = llvm.build(module([a, n], body))["f"]
    f(x, 100)
    with pytest.raises(RuntimeError, match="too far"):
        f(x, 50)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [
    "exp", "exp2", "log", "tanh", "erf", "sigmoid", "sqrt", "rsqrt", "floor", "ceil", "trunc",
    "round", "fabs", "sin", "cos", "tan", "atan", "log2", "log10", "log1p", "exp10", "sinh",
])  # fmt: skip
def test_mathematical_functions(name, dtype, lanes):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-r, r, n) for r, n in ((12, 400), (1, 200), (88, 200))])
    if name in ("log", "log2", "log10", "log1p", "sqrt", "rsqrt"):
        x = np.abs(x) + 1e-30
    if name in ("exp10", "sinh"):
        x /= 3
    x = x.astype(dtype)
    special = {"erf": np.vectorize(math.erf), "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
               "rsqrt": lambda v: 1 / np.sqrt(v), "round": np.rint, "atan": np.arctan,
               "exp10": lambda v: 10.0**v}
    exact = special.get(name, getattr(np, name, None))(x.astype("longdouble" if name != "erf"
                                                                else "float64"))
    kind = dtype if lanes == 1 else f"{dtype}x{lanes}"
    got = unary(dtype, dtype, lambda v: Call(kind, f"tir.{name}", (v,)), x, lanes)
    ulp = np.spacing(np.abs(exact.astype(dtype)))
    error = np.abs(got.astype("longdouble") - exact) / ulp
    limit = {"tanh": 3, "sigmoid": 3, "erf": 2, "exp10": 12, "exp": 1.6, "exp2": 2}.get(name, 1.6)
    if dtype == "float64" and name == "sigmoid":
        limit = 4
    assert error.max() <= limit, (error.max(), x[error.argmax()])


@pytest.mark.parametrize("lanes", [1, 8])
def test_mathematical_functions_at_the_edges(lanes):
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 200, -200, 1e-40] * 1, "float32")
    cases = {"exp": np.exp, "tanh": np.tanh, "log": np.log, "exp2": np.exp2,
             "sigmoid": lambda v: 1 / (1 + np.exp(-v)), "erf": np.vectorize(math.erf)}
    with np.errstate(all="ignore"):
        for dtype in ("float32", "float64"):
            for name, reference in cases.items():
                kind = dtype if lanes == 1 else f"{dtype}x{lanes}"
                values = x.astype(dtype)
                got = unary(dtype, dtype, lambda v, k=kind, n=name: Call(k, f"tir.{n}", (v,)),
                            values, lanes)
                np.testing.assert_allclose(got, reference(values).astype(dtype), rtol=1e-6,
                                           err_msg=f"{name} {dtype}")
        # Results below the normal range are kept.
        low = np.array([-87.5, -90, -95, -100, -103, -103.9, -105, 88.7], "float32")
        got = unary("float32", "float32", lambda v: Call(v.dtype, "tir.exp", (v,)), low, lanes)
        np.testing.assert_allclose(got, np.exp(low.astype("float64")).astype("float32"),
                                   rtol=1e-6, atol=1.5e-45)


def test_narrow_floats_go_through_float32():
    x = np.linspace(-4, 4, 64).astype("float16")
    for lanes in (1, 8):
        got = unary("float16", "float16", lambda v: Call(v.dtype, "tir.exp", (v,)), x, lanes)
        np.testing.assert_array_equal(got, np.exp(x.astype("float32")).astype("float16"))


def test_functions_of_two_and_three_arguments_and_bits():
    x = np.linspace(0.5, 4, 16).astype("float32")
    y = np.linspace(-3, 3, 16).astype("float32")

    def call(name):
        return lambda a, b: Call(a.dtype, f"tir.{name}", (a, b))

    for lanes in LANES:
        for name, reference in (("pow", np.power), ("atan2", np.arctan2), ("hypot", np.hypot),
                                ("copysign", np.copysign), ("fmod", np.fmod)):
            np.testing.assert_allclose(binary("float32", call(name), x, y, lanes=lanes),
                                       reference(x, y), rtol=2e-6, err_msg=name)
        fma = binary("float32", lambda a, b: Call(a.dtype, "tir.fma", (a, b, a)), x, y, lanes=lanes)
        np.testing.assert_allclose(fma, x * y + x, rtol=1e-6)
        i, j = np.arange(1, 17, dtype="int32") * 37, np.arange(16, dtype="int32") % 5
        for name, reference in (("bitwise_and", i & j), ("bitwise_or", i | j),
                                ("bitwise_xor", i ^ j), ("shift_left", i << j),
                                ("shift_right", -i >> j)):
            left = -i if name == "shift_right" else i
            np.testing.assert_array_equal(binary("int32", call(name), left, j, lanes=lanes),
                                          reference)
        bits = unary("int32", "int32", lambda v: Call(v.dtype, "tir.popcount", (v,)), i, lanes)
        np.testing.assert_array_equal(bits, [bin(v).count("1") for v in i])
    clz = unary("int32", "int32", lambda v: Call("int32", "tir.clz", (v,)), i)
    np.testing.assert_array_equal(clz, [32 - int(v).bit_length() for v in i])
    odd = np.array([1, np.nan, np.inf, -np.inf], "float32")
    for name, reference in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)):
        for lanes in LANES:
            kind = "bool" if lanes == 1 else "boolx4"
            got = unary("float32", "bool", lambda v, k=kind, n=name: Call(k, f"tir.{n}", (v,)),
                        odd, lanes)
            np.testing.assert_array_equal(got, reference(odd))


def test_calls_of_c_functions_and_llvm_intrinsics():
    x = np.linspace(1, 2, 8).astype("float32")
    got = unary("float32", "float32", lambda v: tir.call_extern("float32", "cbrtf", v), x)
    np.testing.assert_allclose(got, np.cbrt(x), rtol=1e-6)
    for name in ("llvm.sqrt.f32", "llvm.sqrt"):
        got = unary("float32", "float32",
                    lambda v, n=name: tir.call_llvm_intrin("float32", n, v), x)
        np.testing.assert_array_equal(got, np.sqrt(x))
    got = unary("float32", "float32", lambda v: tir.call_llvm_pure_intrin(
        "float32x4", "llvm.fma.v4f32", v, v, v), x, 4)
    np.testing.assert_allclose(got, x * x + x)


@pytest.mark.parametrize("name", [
    "system", "llvm.", "llvm.sqrt.f32() ret void }\ndefine void @x", 'llvm."x"', "llvm.é"])
def test_what_is_no_llvm_intrinsic_is_not_called_as_one(name):
    with pytest.raises(llvm.CodegenError, match="no LLVM intrinsic"):
        unary("float32", "float32", lambda v: tir.call_llvm_intrin("float32", name, v),
              np.zeros(1, "float32"))


def test_names_are_never_read_as_code():
    nasty = 'x"() { ret void }\ndefine void @"y\\'
    a = decl_buffer((1,), "float32", nasty)
    body = BufferStore(a, tir.call_extern("float32", nasty, const(1.0, "float32")), [const(0)])
    with pytest.raises(RuntimeError, match="no library in this process"):
        llvm.build(module([a], body))
    got = np.zeros(1, "float32")
    body = BufferStore(a, const(3.0, "float32"), [const(0)])
    llvm.build(module([a], body, nasty))[nasty](got)
    assert got[0] == 3


def test_a_missing_c_function_is_named():
    a = decl_buffer((1,), "float32", "A")
    body = BufferStore(a, tir.call_extern("float32", "no_such_function"), [const(0)])
    with pytest.raises((RuntimeError, ValueError), match="no_such_function"):
        llvm.build(module([a], body))


def test_calls_of_registered_functions():
    seen = []

    @register_func("test.llvm.packed", override=True)
    def packed(tensor, number, real, text, flag):
        seen.append((tensor.shape, str(tensor.dtype), number, real, text, flag))
        tensor[0, 0] = 9
        return 42

    a, out = decl_buffer((2, 3), "float32", "A"), decl_buffer((1,), "int32", "out")
    n = Var("n", "int32")
    call = Call("int32", "tir.tvm_call_packed", (
        StringImm("test.llvm.packed"), a, n, FloatImm("float32", 0.5), StringImm("hi"),
        IntImm("bool", 1)))
    f = llvm.build(module([a, out, n], BufferStore(out, call, [const(0)])))["f"]
    x, y = np.zeros((2, 3), "float32"), np.zeros(1, "int32")
    f(x, y, 7)
    assert seen == [((2, 3), "float32", 7, 0.5, "hi", True)] and x[0, 0] == 9 and y[0] == 42
    remove_global_func("test.llvm.packed")
    with pytest.raises(ValueError, match="'test.llvm.packed', which is not registered"):
        f(x, y, 7)

    @register_func("test.llvm.packed", override=True)
    def fails(*args):
        raise KeyError("from Python")

    with pytest.raises(KeyError, match="from Python"):
        f(x, y, 7)


def test_calls_between_functions_of_a_module():
    a, b = decl_buffer((8,), "float32", "A"), decl_buffer((8,), "float32", "B")
    s = Var("s", "float32")
    scale = PrimFunc([a, s], loop(8, lambda i: BufferStore(a, BufferLoad(a, [i]) * s, [i])),
                     attrs={"global_symbol": "scale"})
    var = GlobalVar("scale")
    main = PrimFunc([b], SeqStmt((
        Evaluate(Call("int32", var, (b.data, FloatImm("float32", 3)))),
        Evaluate(Call("int32", var, (b, FloatImm("float32", 2)))))),
        attrs={"global_symbol": "main"})
    rt = llvm.build(IRModule({var: scale, GlobalVar("main"): main}))
    x = np.ones(8, "float32")
    rt["main"](x)
    assert x.tolist() == [6] * 8
    rt["scale"](x, 0.5)
    assert x.tolist() == [3] * 8


def test_returned_values():
    n = Var("n", "int64")
    f = llvm.build(module([n], Evaluate(tir.ret(n * 2))))["f"]
    assert f(21) == 42
    x = Var("x", "float32")
    assert llvm.build(module([x], Evaluate(tir.ret(x))))["f"](0.5) == 0.5


def test_symbolic_strides_offsets_and_computed_extents():
    n, s, off = Var("n", "int32"), Var("s", "int32"), Var("off", "int32")
    a = decl_buffer((n, 4), "float32", "A", strides=(s, const(1)), elem_offset=off)
    b = decl_buffer((n * 4,), "float32", "B")
    body = loop(n, lambda i: loop(4, lambda j: BufferStore(b, BufferLoad(a, [i, j]), [i * 4 + j])))
    f = llvm.build(module([a, b], body))["f"]
    base = np.arange(48, dtype="float32").reshape(6, 8)
    out = np.zeros(24, "float32")
    f(base[:, 2:6], out)
    np.testing.assert_array_equal(out.reshape(6, 4), base[:, 2:6])
    with pytest.raises(ValueError, match=r"B.shape\[0\] is not"):
        f(base[:, 2:6], np.zeros(25, "float32"))


def test_an_extent_that_nothing_determines_is_refused():
    n = Var("n", "int32")
    b = decl_buffer((n * 4,), "float32", "B")
    with pytest.raises(llvm.CodegenError, match="'n', which no argument determines"):
        llvm.build(module([b], Evaluate(const(0))))


def test_constant_data():
    data = np.arange(6, dtype="float32")
    a, t = decl_buffer((6,), "float32", "A"), decl_buffer((6,), "float32", "T")
    body = AllocateConst(t.data, "float32", (const(6),), data,
                         loop(6, lambda i: BufferStore(a, BufferLoad(t, [5 - i]), [i])), {})
    x = np.zeros(6, "float32")
    run([a], body, x)
    np.testing.assert_array_equal(x, data[::-1])


def test_imported_llvm_code():
    text = "define float @triple_it(float %x) {\n  %y = fmul float %x, 3.0\n  ret float %y\n}\n"
    a = decl_buffer((1,), "float32", "A")
    zero = [const(0)]
    body = tir.AttrStmt(const(0), "pragma_import_llvm", StringImm(text), BufferStore(
        a, tir.call_extern("float32", "triple_it", BufferLoad(a, zero)), zero))
    x = np.array([2], "float32")
    run([a], body, x)
    assert x[0] == 6


def test_imported_code_may_come_twice_and_says_what_is_wrong_with_it():
    text = "define float @triple_it(float %x) {\n  %y = fmul float %x, 3.0\n  ret float %y\n}\n"
    a, zero = decl_buffer((1,), "float32", "A"), [const(0)]
    store = BufferStore(a, tir.call_extern("float32", "triple_it", BufferLoad(a, zero)), zero)

    def importing(text, body):
        return tir.AttrStmt(const(0), "pragma_import_llvm", StringImm(text), body)

    x = np.array([2], "float32")
    run([a], SeqStmt((importing(text, store), importing(text + "; again", store))), x)
    assert x[0] == 18
    with pytest.raises(ValueError, match="imported by pragma_import_llvm is not valid"):
        run([a], importing("define float @triple_it(float %x) {", store), x)


def test_pointers():
    a = decl_buffer((8,), "float32", "A")
    p = Var("p", "handle")
    body = SeqStmt((
        Evaluate(tir.call_extern("handle", "memset", Call(
            "handle", "tir.address_of", (BufferLoad(a, [const(2)]),)), const(0),
            const(8, "int64"))),
        Evaluate(tir.call_extern("handle", "memset", a.access_ptr("w", offset=6), const(0),
                                 const(4, "int64"))),
        Evaluate(tir.call_extern("handle", "memset", p, const(0), const(4, "int64")))))
    x, y = np.ones(8, "float32"), np.ones(2, "float32")
    run([a, p], body, x, y)
    assert x.tolist() == [1, 1, 0, 0, 1, 1, 0, 1] and y.tolist() == [0, 1]


def test_gpu_programs_are_refused_with_advice():
    a = decl_buffer((8,), "float32", "A")
    i = Var("i", "int32")
    thread = tir.IterVar(None, "threadIdx.x", 1, "threadIdx.x")
    body = For(i, 0, 8, tir.ForKind.THREAD_BINDING, BufferStore(a, FloatImm("float32", 1), [i]),
               thread)
    with pytest.raises(llvm.CodegenError, match="bound to threadIdx.x, and machine code is made"):
        llvm.build(module([a], body))
    with pytest.raises(llvm.CodegenError, match="instruction of GPUs"):
        llvm.build(module([a], Evaluate(Call("int32", "tir.tvm_storage_sync", (StringImm("x"),)))))


@pytest.mark.parametrize("triple, cpu, words", [
    ("aarch64-linux-gnu", "", "fmadd"),
    ("wasm32-unknown-unknown", "", "f32.add"),
    ("riscv64-linux-gnu", "generic-rv64", "f"),
    ("nvptx64-nvidia-cuda", "sm_80", ".f32"),
    ("x86_64-linux-gnu", "skylake-avx512", "vfmadd"),
])  # fmt: skip
def test_code_for_other_machines_can_be_seen(triple, cpu, words):
    a, b = decl_buffer((64,), "float32", "A"), decl_buffer((64,), "float32", "B")
    body = loop(64, lambda i: BufferStore(
        b, BufferLoad(b, [i]) + BufferLoad(a, [i]) * BufferLoad(a, [i]), [i]))
    where = jit.machine(triple, cpu, "+f,+d" if "riscv" in triple else "")
    rt = llvm.build(module([a, b], body), where)
    assert "define" in rt.get_source("ll") and words in rt.get_source("asm")
    if "nvptx" not in triple:
        assert len(rt.get_source("obj")) > 100
    if not (where.is_host and not llvm.why_not_here(where)):
        with pytest.raises(RuntimeError, match="cannot be called here"):
            rt["f"]


@pytest.mark.parametrize("triple, attr, words", [
    ("aarch64-linux-gnu", "+v8.2a,+sve", "ld1w"), ("riscv64-linux-gnu", "+m,+f,+d,+v", "vlenb")])
def test_lanes_of_a_scalable_vector_are_asked_of_the_machine(triple, attr, words):
    """`T.vectorized(T.vscale() * 4)`: as many lanes as a register of the machine has."""
    func = from_source("""
@T.prim_func
def f(A: T.Buffer((64,), "float32")):
    T.func_attr({"global_symbol": "f"})
    for i in range(64 // (T.vscale() * 4)):
        for j in T.vectorized(T.vscale() * 4):
            A[i * (T.vscale() * 4) + j] = A[i * (T.vscale() * 4) + j] + T.float32(1)
""")
    assert "T.vscale() * 4" in func.script()
    mod = lower(IRModule({"f": func}))
    where = jit.machine(triple, "", attr)
    asm = llvm.build(mod, where).get_source("asm")
    assert words in asm
    values = np.arange(64, dtype="float32")
    given = array(values)
    interpret(func, given)  # on a machine of four lanes
    np.testing.assert_array_equal(given.numpy(), values + 1)
    with pytest.raises(llvm.CodegenError, match=r"-mattr=\+sve"):
        llvm.build(mod, jit.machine("aarch64-linux-gnu", "", "+v8.2a"))


def test_exported_kernels_load_again(tmp_path):
    from mlc_lab.runtime import load_module

    a = decl_buffer((100,), "float32", "A")
    body = loop(100, lambda i: BufferStore(a, Call("float32", "tir.exp", (
        BufferLoad(a, [i]),)), [i]), PARALLEL)
    rt = llvm.build(module([a], body))
    for ending in ("o", "so"):
        x = np.zeros(100, "float32")
        load_module(rt.export_library(tmp_path / f"k.{ending}"))["f"](x)
        assert (x == 1).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "bool"])
@pytest.mark.parametrize("first", [0, 1])
def test_every_other_element_is_loaded_without_reading_past_the_last(dtype, first):
    for lanes in (4, 6, 8, 24):
        n = 2 * lanes - 1 + first
        a, b = decl_buffer((n,), dtype, "A"), decl_buffer((lanes,), dtype, "B")
        x = (np.random.default_rng(lanes).random(n) * 100).astype(dtype)
        y = np.zeros(lanes, dtype)
        run([a, b], BufferStore(b, BufferLoad(a, [Ramp(const(first), const(2), lanes)]),
                                [Ramp(const(0), const(1), lanes)]), x, y)
        np.testing.assert_array_equal(y, x[first::2])


@pytest.mark.parametrize("loop", ["while T.bool(True):", "while B[0] < 4:"])
def test_a_loop_without_end_and_effect_does_not_run_into_other_code(loop):
    code = f"""
import numpy as np
from mlc_lab import build
from mlc_lab.script import from_source

run = build(from_source('''
@T.prim_func
def main(B: T.Buffer((4,), "int32")):
    B[0] = 0
    {loop}
        T.evaluate(0)
    B[1] = 1
'''), target="llvm")["main"]
print("built", flush=True)
run(np.zeros(4, "int32"))
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "built\n"
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(2)
    finally:
        child.kill()
        child.wait()


def test_two_functions_of_one_symbol_are_refused():
    func = module([], Evaluate(IntImm("int32", 0)))["f"]
    with pytest.raises(llvm.CodegenError, match=r'with_attr\("global_symbol", "again"\)'):
        llvm.generate(IRModule({"f": func, "again": func}), jit.host_machine())


@pytest.mark.parametrize("name, said", [
    ("a\0b", "can be called 'a.x00b'"), ("\ud800", "can be called '.ud800'")])
def test_a_name_that_object_code_cannot_have(name, said):
    for mod in (module([], Evaluate(tir.call_extern("int32", name))),
                module([], Evaluate(const(0)), name)):
        with pytest.raises(llvm.CodegenError, match=said):
            llvm.build(mod)


@pytest.mark.parametrize("name", [StringImm(""), const(5), Var("n", "int32")])
def test_a_c_function_is_called_by_its_name(name):
    with pytest.raises(llvm.CodegenError, match="needs the function's name first"):
        llvm.build(module([name] if isinstance(name, Var) else [], Evaluate(
            Call("int32", "tir.call_extern", [name]))))


def test_a_name_may_begin_with_a_digit():
    llvm.build(module([], Evaluate(const(0)), "5"))["5"]()


def test_a_text_that_is_no_text():
    n = Var("n", "int32")
    body = AssertStmt(n > 0, StringImm("\ud800"), Evaluate(const(0)))
    with pytest.raises(llvm.CodegenError, match="cannot be written as UTF-8"):
        llvm.build(module([n], body))


def test_an_intrinsic_with_other_types_than_it_has():
    with pytest.raises(llvm.CodegenError, match="LLVM refuses the program, which calls llvm.trap"):
        llvm.build(module([], Evaluate(tir.call_llvm_intrin("int32", "llvm.trap"))))
