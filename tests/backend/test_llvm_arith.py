"""The interpreter, scalar code and vector code give the same bits for every special value."""

import numpy as np
import pytest
from fuzz.values import as_array, special

from mlc_lab import build, te, tir
from mlc_lab.backend.interp import InterpError, interpret
from mlc_lab.ir import dtype as dt
from mlc_lab.ir.module import IRModule
from mlc_lab.runtime import array, empty
from mlc_lab.tir import (
    Add, And, BufferLoad, BufferStore, Call, Cast, Div, FloorDiv, FloorMod, For, ForKind,
    IfThenElse, IntImm, LetStmt, Max, Min, Mod, Mul, Not, Or, PrimFunc, Select, SeqStmt, Sub, Var,
    decl_buffer,
)  # fmt: skip

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64", "float16", "bfloat16"]
DTYPES = [*INTS, *FLOATS, "bool"]
KINDS = [ForKind.SERIAL, ForKind.VECTORIZED]
LANES = 16


def function(inputs, values, kind, wrap=lambda i, body: body):
    """values(i, *loads) stored to outputs, for all i; lanes of a vectorized loop."""
    n = inputs[0][1]
    ins = [decl_buffer((n,), d, f"A{k}") for k, (d, _) in enumerate(inputs)]
    i, lane = Var("i"), Var("j")
    at = i * LANES + lane
    made = values(*[BufferLoad(b, [at]) for b in ins])
    outs = [decl_buffer((n,), v.dtype, f"O{k}") for k, v in enumerate(made)]
    stores = [BufferStore(o, v, [at]) for o, v in zip(outs, made)]
    body = SeqStmt(tuple(stores)) if len(stores) > 1 else stores[0]
    inner = For(lane, 0, LANES, kind, wrap(at, body))
    return PrimFunc([*ins, *outs], For(i, 0, n // LANES, ForKind.SERIAL, inner),
                    attrs={"global_symbol": "main", "tir.noalias": True})


def results(func, arrays, count):
    dtypes = [func.buffer_map[p].dtype for p in func.params[-count:]]
    outs = [empty(arrays[0][1].shape, d) for d in dtypes]
    ins = [empty(x.shape, d).copyfrom(x) if d == "bfloat16" else array(x) for d, x in arrays]
    build(IRModule({"main": func}))["main"](*ins, *outs)
    wanted = [np.zeros(arrays[0][1].shape, dt.numpy_dtype(d)) for d in dtypes]
    interpret(func, *(x for _, x in arrays), *wanted)
    return [o.numpy() for o in outs], wanted


def check(values, arrays):
    """The engines agree on values(*loads), in scalars and in vectors; what they give."""
    whole = -(-len(arrays[0][1]) // LANES) * LANES
    arrays = [(d, np.resize(x, whole)) for d, x in arrays]
    for kind in KINDS:
        func = function([(d, len(x)) for d, x in arrays], values, kind)
        got, wanted = results(func, arrays, len(func.params) - len(arrays))
        for k, (a, b) in enumerate(zip(got, wanted)):
            name, (a, b) = f"value {k}, {kind}", (_bits(x) for x in (a, b))
            np.testing.assert_array_equal(a, b, err_msg=name)
    return wanted


def _bits(x):
    """Numbers so that 0.0 and -0.0 differ and NaN is NaN."""
    if x.dtype.kind in "fV" or x.dtype.name == "bfloat16":
        x = x.astype("float64")
        return np.where((x == 0) & np.signbit(x), -7e300, x)
    return x


def pairs(dtype):
    few = special(dtype)
    few = few if len(few) < 20 else few[:24]
    a, b = (as_array([(x, y)[k] for x in few for y in few], dtype) for k in (0, 1))
    return a, b


@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic_and_comparisons(dtype):
    a, b = pairs(dtype)
    kinds = [Add, Sub, Mul, Min, Max, tir.LT, tir.LE, tir.EQ, tir.NE, tir.GT, tir.GE]
    check(lambda x, y: [kind(x, y) for kind in kinds], [(dtype, a), (dtype, b)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_divisions(dtype):
    a, b = pairs(dtype)
    if not dt.is_float(dtype):
        a, b = a[b != 0], b[b != 0]
    kinds = [Div] if dtype == "bool" else [Div, Mod, FloorDiv, FloorMod]
    got = check(lambda x, y: [kind(x, y) for kind in kinds], [(dtype, a), (dtype, b)])
    if dtype[0] == "i":
        low = dt.int_range(dtype)[0]
        at = (a == low) & (b == -1)
        assert at.any() and (got[0][:len(a)][at] == low).all() and (got[1][:len(a)][at] == 0).all()


@pytest.mark.parametrize("dtype", [*INTS, *FLOATS])
def test_an_extremum_with_a_constant(dtype):
    few = [v for v in special(dtype) if v == v][:8]
    x = as_array(special(dtype), dtype)

    def values(e):
        constants = [tir.FloatImm(dtype, v) if dt.is_float(dtype) else IntImm(dtype, v)
                     for v in few]
        return [kind(*order) for c in constants for kind in (Min, Max) for order in (
            (e, c), (c, e))]

    check(values, [(dtype, x)])


@pytest.mark.parametrize("source", DTYPES)
def test_conversions(source):
    x = as_array(special(source), source)
    targets = [d for d in DTYPES if d != source]
    check(lambda e: [Cast(d, e) for d in targets], [(source, x)])


@pytest.mark.parametrize("dtype", INTS)
def test_bits_shifts_and_powers(dtype):
    a, b = pairs(dtype)
    names = ["shift_left", "shift_right", "pow", "bitwise_and", "bitwise_or", "bitwise_xor"]

    def values(x, y):
        out = [Call(dtype, f"tir.{n}", (x, y)) for n in names]
        out += [Call(dtype, f"tir.{n}", (x,)) for n in ("bitwise_not", "popcount")]
        return out + [Call(dtype, f"tir.{n}", (x, IntImm(dtype, c))) for c in (
            0, 3, dt.bits_of(dtype) - 1, dt.bits_of(dtype)) for n in names[:2]]

    check(values, [(dtype, a), (dtype, b)])


@pytest.mark.parametrize("dtype", FLOATS)
def test_exact_functions(dtype):
    x, y = pairs(dtype)
    powers = [0, 1, -1, 5, -20, 130, -130, 1100, -1100, 2 ** 31 - 1]
    n = np.resize(np.array(powers, "int32"), len(x))

    def values(a, b, c):
        one = ["floor", "ceil", "trunc", "round", "nearbyint", "fabs", "sqrt"]
        out = [Call(dtype, f"tir.{f}", (a,)) for f in one]
        out += [Call("bool", f"tir.{f}", (a,)) for f in ("isnan", "isinf", "isfinite")]
        return out + [Call(dtype, "tir.ldexp", (a, c)), Call(dtype, "tir.fmod", (a, b)),
                      Call(dtype, "tir.fma", (a, b, a))]

    check(values, [(dtype, x), (dtype, y), ("int32", n)])


def test_conditions_and_choices():
    a, b = pairs("bool")
    check(lambda x, y: [And(x, y), Or(x, y), Not(x), Select(x, y, Not(y)), Add(x, y), Sub(x, y),
                        Mul(x, y), Min(x, y), Max(x, y), Call("bool", "tir.bitwise_not", (x,))],
          [("bool", a), ("bool", b)])


# ------------------------------------------------------------------------------- division by zero

NUMBERS = np.array([6, -7, 5, 9] * 4, "int32")
ZEROES = np.array([2, 0, -3, 1] * 4, "int32")


def run(func, *arrays):
    build(IRModule({"main": func}))["main"](*map(array, arrays[:-1]), arrays[-1])


@pytest.mark.parametrize("dtype", [*INTS, "bool"])
@pytest.mark.parametrize("kind", [Div, Mod, FloorDiv, FloorMod])
def test_division_by_zero_raises_in_scalars_and_vectors(kind, dtype):
    x, y = (v.astype(dtype) for v in (NUMBERS, ZEROES))
    for loop in (*KINDS, ForKind.UNROLLED):
        func = function([(dtype, 16), (dtype, 16)], lambda a, b: [kind(a, b)], loop)
        out = np.zeros(16, dtype)
        with pytest.raises(ZeroDivisionError, match="main: division by zero"):
            run(func, x, y, out)
        with pytest.raises(ZeroDivisionError, match="division by zero") as info:
            interpret(func, x, y, out)
        assert isinstance(info.value, InterpError)


def test_division_by_zero_raises_in_a_parallel_loop():
    a, b, c = (decl_buffer((16,), "int32", n) for n in "ABC")
    i = Var("i")
    body = BufferStore(c, FloorMod(BufferLoad(a, [i]), BufferLoad(b, [i])), [i])
    func = PrimFunc([a, b, c], For(i, 0, 16, ForKind.PARALLEL, body),
                    attrs={"global_symbol": "main"})
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        run(func, NUMBERS, ZEROES, np.zeros(16, "int32"))


@pytest.mark.parametrize("loop", KINDS)
def test_what_is_not_chosen_divides_by_what_it_likes(loop):
    def guarded(a, b):
        zero = IntImm("int32", 0)
        test = tir.NE(b, zero)
        return [Call("int32", "tir.if_then_else", (test, FloorDiv(a, b), IntImm("int32", -1))),
                Cast("int32", And(test, tir.GT(FloorMod(a, b), zero))),
                Cast("int32", Or(tir.EQ(b, zero), tir.GT(Div(a, b), zero)))]

    check(guarded, [("int32", NUMBERS), ("int32", ZEROES)])
    func = function([("int32", 16)] * 2, lambda a, b: [Select(
        tir.NE(b, IntImm("int32", 0)), FloorDiv(a, b), a)], loop)
    with pytest.raises(ZeroDivisionError):  # both sides of Select are computed
        run(func, NUMBERS, ZEROES, np.zeros(16, "int32"))
    with pytest.raises(ZeroDivisionError):
        interpret(func, NUMBERS, ZEROES, np.zeros(16, "int32"))


def test_lanes_that_are_not_chosen_or_not_stored_divide_by_what_they_like():
    a, b, c, d = (decl_buffer((16,), "int32", n) for n in "ABCD")
    at = [tir.Ramp(IntImm("int32", 0), IntImm("int32", 1), 16)]
    x, y = BufferLoad(a, at), BufferLoad(b, at)
    zero = tir.Broadcast(IntImm("int32", 0), 16)
    chosen = Call("int32x16", "tir.if_then_else", (tir.NE(y, zero), FloorDiv(x, y), x))
    body = SeqStmt((BufferStore(c, chosen, at), BufferStore(d, Mod(x, y), at, tir.NE(y, zero))))
    func = PrimFunc([a, b, c, d], body, attrs={"global_symbol": "main"})
    outs = [[np.full(16, 77, "int32") for _ in range(2)] for _ in range(2)]
    build(IRModule({"main": func}))["main"](NUMBERS, ZEROES, *outs[0])
    interpret(func, NUMBERS, ZEROES, *outs[1])
    np.testing.assert_array_equal(outs[0], outs[1])
    safe = np.where(ZEROES == 0, 1, ZEROES)
    np.testing.assert_array_equal(outs[0][0], np.where(ZEROES == 0, NUMBERS, NUMBERS // safe))
    np.testing.assert_array_equal(outs[0][1], np.where(ZEROES == 0, 77, np.fmod(NUMBERS, safe)))


def test_nothing_is_checked_where_the_divisor_cannot_be_zero():
    n, i = Var("n"), Var("i")
    a = decl_buffer((n,), "int32", "A")

    def text(value, extent=n):
        func = PrimFunc([a], For(i, 0, extent, ForKind.SERIAL, BufferStore(a, value, [i])),
                        attrs={"global_symbol": "main"})
        return build(IRModule({"main": func})).get_source("ll")

    load = BufferLoad(a, [i])
    for value in (FloorDiv(load, IntImm("int32", 7)), FloorMod(load, IntImm("int32", -1)),
                  FloorMod(load, n), Div(load, Add(i, IntImm("int32", 1))),
                  Mod(load, Max(load, IntImm("int32", 1)))):
        assert "division by zero" not in text(value)
    assert "division by zero" in text(FloorDiv(load, load))


def test_a_condition_reads_no_further_than_it_must():
    n, i = IntImm("int32", 8), Var("i")
    a, b = decl_buffer((8,), "int32", "A"), decl_buffer((16,), "int32", "B")
    body = IfThenElse(And(tir.LT(i, n), tir.GT(BufferLoad(a, [i]), IntImm("int32", 3))),
                      BufferStore(b, i, [i]))
    func = PrimFunc([a, b], For(i, 0, 16, ForKind.SERIAL, body), attrs={"global_symbol": "main"})
    out, want = np.zeros(16, "int32"), np.zeros(16, "int32")
    build(IRModule({"main": func}))["main"](np.arange(8, dtype="int32"), out)
    interpret(func, np.arange(8, dtype="int32"), want)
    np.testing.assert_array_equal(out, want)


# ------------------------------------------------------------------------------- data that wraps

MOST = 2 ** 31 - 1


def test_data_wraps_around_in_comparisons_lets_conditions_and_indices():
    a, table, out = (decl_buffer((n,), "int32", s) for n, s in ((8, "A"), (1024, "T"), (24, "O")))
    i, named = Var("i"), Var("x")
    x, one = BufferLoad(a, [i]), IntImm("int32", 1)
    hashed = FloorMod(Add(Mul(x, IntImm("int32", 1103515245)), IntImm("int32", 12345)),
                      IntImm("int32", 1023))
    body = SeqStmt((
        IfThenElse(tir.LT(x, Add(x, one)), BufferStore(out, one, [i])),
        LetStmt(named, Add(x, one), BufferStore(out, Select(
            tir.LT(named, x), IntImm("int32", 5), IntImm("int32", 6)), [i + 8])),
        BufferStore(out, BufferLoad(table, [hashed]), [i + 16])))
    func = PrimFunc([a, table, out], For(i, 0, 8, ForKind.SERIAL, body),
                    attrs={"global_symbol": "main"})
    data = np.array([0, 1, MOST, MOST - 1, -MOST - 1, -1, 123456789, -98765432], "int32")
    lookup = np.arange(1024, dtype="int32") * 3
    got, want = np.zeros(24, "int32"), np.zeros(24, "int32")
    build(IRModule({"main": func}))["main"](data, lookup, got)
    interpret(func, data, lookup, want)
    np.testing.assert_array_equal(got, want)
    assert want[2] == 0 and want[10] == 5
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(
            want[16:], lookup[(data * np.int32(1103515245) + np.int32(12345)) % 1023])


def test_zero_and_minus_zero_are_two_constants():
    out = [decl_buffer((1,), "float32", n) for n in "AB"]
    zero = [tir.FloatImm("float32", v) for v in (0.0, -0.0)]
    func = PrimFunc(out, SeqStmt(tuple(BufferStore(b, z, [0]) for b, z in zip(out, zero))),
                    attrs={"global_symbol": "main"})
    a, b = np.ones(1, "float32"), np.ones(1, "float32")
    build(IRModule({"main": func}))["main"](a, b)
    assert not np.signbit(a) and np.signbit(b)


def test_relu_that_keeps_nan_is_one_instruction_of_vectors():
    a, b = decl_buffer((64,), "float32", "A"), decl_buffer((64,), "float32", "B")
    at = [tir.Ramp(IntImm("int32", 0), IntImm("int32", 1), 16)]
    func = PrimFunc([a, b], BufferStore(b, Max(BufferLoad(a, at), tir.Broadcast(
        tir.FloatImm("float32", 0.0), 16)), at), attrs={"global_symbol": "main"})
    text = build(IRModule({"main": func}), target="llvm -mcpu=x86-64-v4 -mtriple=x86_64-linux-gnu"
                 ).get_source("asm")
    body = text[text.index("vmaxps") - 400:text.index("vmaxps") + 400]
    assert text.count("vmaxps") == 1 and "vcmp" not in body and "vblend" not in body


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_a_reduction_keeps_nan_wherever_it_stands(name, dtype):
    rows = np.tile(np.linspace(-3, 3, 37).astype(dtype), (37, 1))
    a = te.placeholder(rows.shape, dtype, name="A")
    k = te.reduce_axis((0, 37), "k")
    func = te.create_prim_func([a, te.compute((37,), lambda i: getattr(te, name)(a[i, k], axis=k))])
    kernel, out = build(IRModule({"main": func}))["main"], np.zeros(37, dtype)
    kernel(rows, out)
    assert (out == getattr(np, name)(rows, 1)).all()
    rows[np.arange(37), np.arange(37)] = np.nan
    kernel(rows, out)
    assert np.isnan(out).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_a_power_of_infinity_is_infinite_before_a_sum(name, dtype):
    """The last product of exp may be fused with a sum after it, and must be infinite by itself."""
    x = np.array([np.inf, np.inf, 89, 177.5, 178, 1419.6, 1e30, -np.inf] * 2, dtype)
    a = te.placeholder(x.shape, dtype, name="A")
    b = te.compute(x.shape, lambda i: getattr(tir, name)(a[i]) - a[i], name="B")
    out = empty(x.shape, dtype)
    build(te.create_prim_func([a, b]), target="llvm")(array(x), out)
    with np.errstate(over="ignore", invalid="ignore"):
        np.testing.assert_allclose(out.numpy(), getattr(np, name)(x) - x, rtol=1e-6)
