"""Operators give what torch gives for NaN, infinities, zeros, the ends of each type.

And floats of 16 bits are summed up in 32.
"""

import warnings

import numpy as np
import pytest
from fuzz.values import as_array, special

import mlc_lab
from mlc_lab import relax
from mlc_lab.ir import dtype as dt
from mlc_lab.relax import op
from mlc_lab.relax.op import nn
from mlc_lab.runtime import array, empty

torch = pytest.importorskip("torch")
F = torch.nn.functional

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTS = ["int32", "int8", "uint8", "int64"]
EPSILON = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 3e-6, "float64": 1e-13}


def run(operators, arrays, dtypes):
    """The results of operators on arrays, by name; those that are refused are left out."""
    bb, names = relax.BlockBuilder(), []
    params = [relax.Var(f"x{k}", relax.TensorStructInfo(a.shape, d))
              for k, (a, d) in enumerate(zip(arrays, dtypes))]
    with bb.function("main", params):
        outs = []
        for name, make in operators.items():
            try:
                outs.append(bb.emit(make(*params)))
            except op.StructInfoError:
                continue
            names.append(name)
        bb.emit_func_output(relax.Tuple(outs))
    vm = relax.VirtualMachine(relax.build(bb.get(), "llvm"), mlc_lab.cpu())
    args = [empty(a.shape, d).copyfrom(a) if d == "bfloat16" else array(a)
            for a, d in zip(arrays, dtypes)]
    return dict(zip(names, (r.numpy() for r in vm["main"](*args))))


def tensor(x, dtype):
    return torch.from_numpy(x.view(np.uint16)).view(torch.bfloat16) if dtype == "bfloat16" else (
        torch.from_numpy(x))


def agree(name, dtype, got, want, inputs):
    want = want.float().numpy() if want.dtype == torch.bfloat16 else want.numpy()
    got = got.astype("float32") if got.dtype.name == "bfloat16" else got
    assert got.dtype == want.dtype or dtype == "bfloat16", (name, got.dtype, want.dtype)
    if got.dtype.kind != "f":
        ok = got == want
    else:
        with np.errstate(all="ignore"):
            near = np.isfinite(want) & (
                np.abs(got.astype("f8") - want) <= EPSILON[dtype] * np.abs(want) + 1e-7)
        ok = (got == want) & ((np.signbit(got) == np.signbit(want)) | (want != 0) | (
            name in ("maximum", "minimum")))  # of which torch gives either zero
        ok |= (np.isnan(got) & np.isnan(want)) | near & (
            (np.signbit(got) == np.signbit(want)) | (np.abs(want) > 0))
    inputs = [x for x in inputs if tuple(x.shape) == got.shape]
    bad = [([x[tuple(k)].item() for x in inputs], got[tuple(k)], want[tuple(k)])
           for k in np.argwhere(~ok)[:3]]
    assert not bad, f"{name} of {dtype}: (inputs, ours, torch's) {bad}"


UNARY = {n: (getattr(op, n), getattr(torch, n)) for n in (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "cos", "cosh",
    "erf", "exp", "floor", "isfinite", "isinf", "isnan", "log", "logical_not", "negative", "round",
    "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc")}
UNARY |= {
    "relu": (nn.relu, torch.relu), "silu": (nn.silu, F.silu), "selu": (nn.selu, F.selu),
    "leakyrelu": (lambda x: nn.leakyrelu(x, 0.01), lambda x: F.leaky_relu(x, 0.01)),
    "clip": (lambda x: op.clip(x, 0.0, 2.0), lambda x: torch.clamp(x, 0, 2)),
    "gelu_tanh": (nn.gelu_tanh, lambda x: F.gelu(x, approximate="tanh"))}
BINARY = {n: (getattr(op, n), getattr(torch, t)) for n, t in {
    "add": "add", "subtract": "sub", "multiply": "mul", "power": "pow", "maximum": "maximum",
    "minimum": "minimum", "log_add_exp": "logaddexp", "atan2": "atan2",
    "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor",
    "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor",
    "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift", "equal": "eq",
    "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt",
    "greater_equal": "ge"}.items()}
DIVISIONS = {"divide": (op.divide, lambda a, b: torch.div(
    a, b, rounding_mode=None if a.dtype.is_floating_point else "trunc")),
    "floor_divide": (op.floor_divide, torch.floor_divide), "mod": (op.mod, torch.fmod),
    "floor_mod": (op.floor_mod, torch.remainder)}


def compare(table, arrays, dtype):
    results = run({n: ours for n, (ours, _) in table.items()}, arrays, [dtype] * len(arrays))
    tensors = [tensor(a, dtype) for a in arrays]
    compared = 0
    for name, got in results.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = table[name][1](*tensors)
        except (RuntimeError, TypeError, ValueError, NotImplementedError):
            continue  # torch has it not for this type
        agree(name, dtype, got, want, tensors)
        compared += 1
    return compared


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, "bool"])
def test_functions_of_one_tensor(dtype):
    assert compare(UNARY, [as_array(special(dtype), dtype)], dtype) >= 3


def grid(dtype):
    few = [v for v in special(dtype) if abs(v) > 1e-35 or v == 0 or v != v]  # torch flushes some
    return [as_array([(x, y)[k] for x in few for y in few], dtype) for k in (0, 1)]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, "bool"])
def test_functions_of_two_tensors(dtype):
    if dtype == "float64":
        table = {n: f for n, f in BINARY.items() if n != "log_add_exp"}  # log(1 + x) loses digits
    else:
        table = BINARY
    assert compare(table, grid(dtype), dtype) >= 8


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
def test_divisions(dtype):
    a, b = grid(dtype)
    if dt.is_float(dtype):  # torch's vector code has no digits left where the quotient is large
        x, y = (np.asarray(v, "float64") for v in (a, b))
        with np.errstate(all="ignore"):
            keep = ~(np.isfinite(x) & np.isfinite(y) & (np.abs(x) > 1e4 * np.abs(y)) & (y != 0))
        a, b = a[keep], b[keep]
    if not dt.is_float(dtype):
        keep = (b != 0) & ~((b == -1) & (a == dt.int_range(dtype)[0]) & (dtype[0] == "i"))
        a, b = a[keep], b[keep]
    assert compare(DIVISIONS, [a, b], dtype) == 4


NAN, INF = float("nan"), float("inf")
ROWS = [[1, NAN, 3, NAN], [-INF] * 4, [INF] * 4, [NAN] * 4, [INF, -INF, 1, INF], [3.0, 3, 1, 1],
        [-3.0, -1, -2, -1], [NAN, INF, -INF, 0], [0.5, 0.25, -1, 2]]


def along(name, **attrs):
    return lambda x: getattr(op, name)(x, axis=1, **attrs)


def in_order(k, part, **how):
    return lambda x: x.sort(dim=1, stable=True, **how)[part][:, :k]


REDUCTIONS = {
    **{n: (along(n), lambda x, n=n: getattr(x, n)(1)) for n in (
        "argmax", "argmin", "mean", "cumsum", "cumprod")},
    "max": (along("max"), lambda x: x.amax(1)), "min": (along("min"), lambda x: x.amin(1)),
    "max of columns": (lambda x: op.max(x, axis=0), lambda x: x.amax(0)),
    "argmax of all": (op.argmax, lambda x: x.argmax()),
    "sum": (along("sum"), lambda x: x.sum(1, dtype=x.dtype)),
    "prod": (along("prod"), lambda x: x.prod(1, dtype=x.dtype)),
    "variance": (along("variance"), lambda x: x.var(1, correction=0)),
    "std": (along("std"), lambda x: x.std(1, correction=0)),
    "softmax": (lambda x: nn.softmax(x, 1), lambda x: x.softmax(1)),
    "log_softmax": (lambda x: nn.log_softmax(x, 1), lambda x: x.log_softmax(1)),
    "sort": (along("sort"), in_order(4, 0)),
    "sort down": (along("sort", descending=True), in_order(4, 0, descending=True)),
    "topk": (lambda x: op.topk(x, 3, axis=1, ret_type="values"), in_order(3, 0, descending=True)),
    "topk at": (lambda x: op.topk(x, 3, axis=1, ret_type="indices", dtype="int64"),
                in_order(3, 1, descending=True)),
    "smallest": (lambda x: op.topk(x, 3, axis=1, ret_type="indices", largest=False, dtype="int64"),
                 in_order(3, 1))}


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
def test_reductions_and_orders(dtype):
    rows = ROWS
    if not dt.is_float(dtype):
        low, high = dt.int_range(dtype)
        rows = [[low] * 4, [high] * 4, [low, high, 0, 1], [1, 2, 2, 1], [5, 4, 5, 4]]
    x = as_array([v for row in rows for v in row], dtype).reshape(-1, 4)
    table = REDUCTIONS if dt.is_float(dtype) else {
        n: f for n, f in REDUCTIONS.items() if not n.startswith("cum")}
    assert compare(table, [x], dtype) >= 10


def images(x, rank):
    """Rows as images whose last dimensions are windows."""
    return x.reshape(x.shape[0], 1, *(1,) * (rank - 1), 4)


def pool(rank, size, step, around):
    at = [[1] * (rank - 1) + [v] for v in (size, step)]
    edges = [[0] * (rank - 1) + [around]] * 2
    ours, theirs = getattr(nn, f"max_pool{rank}d"), getattr(F, f"max_pool{rank}d")
    return (lambda x: ours(op.reshape(x, (len(ROWS), 1, *(1,) * (rank - 1), 4)), *at,
                           edges[0] + edges[1]),
            lambda x: theirs(images(x, rank), *at, edges[0]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_max_pools(dtype):
    """A window of nothing but -inf, with and without its edges, is -inf; NaN stays."""
    x = as_array([v for row in ROWS for v in row], dtype).reshape(-1, 4)
    table = {f"max_pool{r}d {how}": pool(r, *how) for r in (1, 2, 3) for how in (
        (4, 4, 0), (2, 1, 0), (3, 2, 1))}
    assert compare(table, [x], dtype) == 9


@pytest.mark.parametrize("size", [2, 3])
def test_adaptive_max_pools(size):
    """Windows of one size and of several, through the importer."""
    from mlc_lab.relax.frontend.torch import from_fx

    x = torch.tensor(ROWS).reshape(-1, 1, 4)
    model = torch.nn.Sequential(torch.nn.AdaptiveMaxPool1d(size))
    mod = from_fx(torch.fx.symbolic_trace(model), [(list(x.shape), "float32")])
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), mlc_lab.cpu())
    np.testing.assert_array_equal(vm["main"](array(x.numpy())).numpy(), model(x).numpy())


def test_sums_of_conditions():
    x = np.array([[0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]], bool)
    got = run({"sum": along("sum"), "prod": along("prod"), "max": along("max"),
               "add": lambda x: op.add(x, x)}, [x], ["bool"])
    np.testing.assert_array_equal(got["sum"], x.any(1))
    np.testing.assert_array_equal(got["prod"], x.all(1))
    np.testing.assert_array_equal(got["max"], x.any(1))
    np.testing.assert_array_equal(got["add"], x)


# ------------------------------------------------------------------------------- 16-bit floats

RNG = np.random.default_rng(3)


def narrow(*shape, dtype, low=0.0, high=1.0):
    """Random numbers of a 16-bit type, and the same in float64."""
    x = as_array(RNG.uniform(low, high, shape).reshape(-1).tolist(), dtype).reshape(shape)
    wide = mlc_lab.tir.numbers.bfloat16_values(x.view(np.uint16)) if dtype == "bfloat16" else x
    return x, wide.astype("float64")


def relative(got, want):
    return np.abs(got.astype("float64") - want).max() / np.abs(want).max()


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


SUMS = {
    "sum": (((1, 4096),), lambda x: op.sum(x, 1), lambda x: x.sum(1)),
    "mean": (((1, 8192),), lambda x: op.mean(x, 1), lambda x: x.mean(1)),
    "variance": (((1, 8192),), lambda x: op.variance(x, 1), lambda x: x.var(1)),
    "std": (((1, 8192),), lambda x: op.std(x, 1), lambda x: x.std(1)),
    "cumsum": (((1, 4096),), lambda x: op.cumsum(x, 1), lambda x: x.cumsum(1)),
    "matmul": (((2, 4096), (4096, 3)), op.matmul, lambda a, b: a @ b),
    "matmul to 16 bits": (((2, 4096), (4096, 3)), lambda a, b: op.matmul(
        a, b, out_dtype=a.struct_info.dtype), lambda a, b: a @ b),
    "matmul of rows": (((2, 4096), (3, 4096)), lambda a, b: op.matmul(a, op.permute_dims(b)),
                       lambda a, b: a @ b.T),
    "einsum": (((2, 4096), (3, 4096)), lambda a, b: op.einsum((a, b), "ik,jk->ij"),
               lambda a, b: a @ b.T),
    "conv2d": (((1, 512, 3, 3), (2, 512, 3, 3)), nn.conv2d,
               lambda x, w: np.einsum("nchw,ochw->no", x, w)[:, :, None, None]),
    "conv1d": (((1, 1024, 4), (2, 1024, 4)), nn.conv1d,
               lambda x, w: np.einsum("ncw,ocw->no", x, w)[:, :, None]),
    "conv2d_transpose": (((1, 4096, 1, 1), (4096, 2, 1, 1)), nn.conv2d_transpose,
                         lambda x, w: np.einsum("ncij,coij->no", x, w)[:, :, None, None]),
    "avg_pool2d": (((1, 1, 64, 64),), lambda x: nn.avg_pool2d(x, (64, 64)),
                   lambda x: x.mean((2, 3), keepdims=True)),
    "adaptive_avg_pool2d": (((1, 1, 64, 64),), lambda x: nn.adaptive_avg_pool2d(x, (1, 1)),
                            lambda x: x.mean((2, 3), keepdims=True)),
    "softmax": (((1, 8192),), lambda x: nn.softmax(x, 1), softmax),
    "log_softmax": (((1, 8192),), lambda x: nn.log_softmax(x, 1), lambda x: np.log(softmax(x))),
    "layer_norm": (((1, 4096), (4096,), (4096,)), lambda x, g, b: nn.layer_norm(x, g, b, [1]),
                   lambda x, g, b: (x - x.mean(1, keepdims=True)) / np.sqrt(
                       x.var(1, keepdims=True) + 1e-5) * g + b),
    "rms_norm": (((1, 4096), (4096,)), lambda x, g: nn.rms_norm(x, g, [1]),
                 lambda x, g: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * g),
    "attention": (((1, 4, 1, 64), (1, 512, 1, 64), (1, 512, 1, 64)), nn.attention,
                  lambda q, k, v: (softmax(q[0, :, 0] @ k[0, :, 0].T / 8) @ v[0, :, 0])[
                      None, :, None]),
    "collapse_sum_to": (((4096, 2),), lambda x: op.collapse_sum_to(x, (1, 2)),
                        lambda x: x.sum(0, keepdims=True)),
}


@pytest.mark.parametrize("dtype, bound", [("float16", 1e-3), ("bfloat16", 6e-3)])
@pytest.mark.parametrize("name", SUMS)
def test_sums_are_kept_in_float32(name, dtype, bound):
    shapes, ours, reference = SUMS[name]
    made = [narrow(*s, dtype=dtype) for s in shapes]
    got = run({name: ours}, [x for x, _ in made], [dtype] * len(made))[name]
    assert dt.canonical(str(got.dtype)) == dtype
    want = reference(*(w for _, w in made))
    assert got.shape == want.shape and relative(got, want) < bound


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_stay_wide_through_a_schedule(dtype):
    """A dot product that is split, decomposed and rfactored keeps its digits."""
    from mlc_lab import te, tir, topi

    a, b = (te.placeholder((1, 4096), dtype, name=n) for n in "ab")
    sch = tir.Schedule(te.create_prim_func([a, b, topi.nn.dense(a, b)]))
    block = sch.get_block("T_matmul_NT")
    *_, k = sch.get_loops(block)
    outer, inner = sch.split(k, [None, 16])
    sch.rfactor(inner, 0)
    assert "rf = T.alloc_buffer((16, 1, 1))" in sch.mod.script().replace(', "float32"', "")
    (x, wx), (y, wy) = (narrow(1, 4096, dtype=dtype) for _ in range(2))
    out = empty((1, 1), dtype)
    ins = [empty(v.shape, dtype).copyfrom(v) for v in (x, y)]
    mlc_lab.build(sch.mod)["main"](*ins, out)
    assert relative(np.asarray(out, "float32"), wx @ wy.T) < 6e-3


def test_a_program_of_ones_own_keeps_its_types():
    from mlc_lab import te

    a = te.placeholder((4096,), "float16", name="a")
    k = te.reduce_axis((0, 4096), "k")
    func = te.create_prim_func([a, te.compute((1,), lambda i: te.sum(a[k], axis=k), name="s")])
    out = np.zeros(1, "float16")
    mlc_lab.build(func)(np.ones(4096, "float16"), out)
    assert out[0] == 2048  # in float16, 2048 + 1 is 2048


def test_mixed_precision_sums_in_float32():
    bb = relax.BlockBuilder()
    x, w = (relax.Var(n, relax.TensorStructInfo(s, "float32")) for n, s in (
        ("x", (2, 4096)), ("w", (4096, 3))))
    with bb.function("main", [x, w]):
        with bb.dataflow():
            out = bb.emit_output(op.matmul(bb.emit(op.matmul(x, w)), op.ones((3, 3), "float32")))
        bb.emit_func_output(out)
    (a, wide_a), (b, wide_b) = (narrow(*s, dtype="float16") for s in ((2, 4096), (4096, 3)))
    want = wide_a @ wide_b @ np.ones((3, 3))
    for kind in ("float32", "float16"):
        mod = relax.transform.ToMixedPrecision(kind)(bb.get())
        vm = relax.VirtualMachine(relax.build(mod, "llvm"), mlc_lab.cpu())
        got = vm["main"](*(array(v.astype("float32")) for v in (a, b))).numpy()
        assert relative(got, want) < 2e-3
