"""What a Relax function may do, run in bytecode and in compiled form."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.ir.diagnostics import WellFormedError
from mlc_lab.script import from_source
from mlc_lab.script import ir as I
from mlc_lab.script import relax as R
from mlc_lab.script import tir as T


def run(mod, name, *args):
    """The result in both forms, which have to agree; as numpy."""
    ex = relax.build(mod, "llvm")
    out = []
    for mode in ("compiled", "bytecode"):
        result = relax.VirtualMachine(ex, tvm.cpu(), exec_mode=mode)[name](*args)
        out.append(flat(result))
    assert len(out[0]) == len(out[1])
    for a, b in zip(*out):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    return out[0]


def flat(value):
    if hasattr(value, "numpy"):
        return [value.numpy()]
    if isinstance(value, (int, float)):
        return [value]
    return [x for item in value for x in flat(item)]


V = np.arange(8, dtype="float32")


def test_tuples_shapes_and_numbers_as_parameters():
    @I.ir_module
    class M:
        @R.function
        def main(
            t: R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32")),
            s: R.Shape(["a", "b"]), k: R.Prim("int64"),
        ):
            n, a, b = T.int64(), T.int64(), T.int64()
            x = t[0]
            y = R.add(x, t[1])
            z = R.reshape(y, (a, b))
            return (z, k)

    import tvm_ffi

    z, k = run(M, "main", (V, V), tvm_ffi.Shape((2, 4)), 7)
    np.testing.assert_array_equal(z, (2 * V).reshape(2, 4))
    assert k == 7
    vm = relax.VirtualMachine(relax.build(M, "llvm"))
    with pytest.raises(ValueError, match="has to be 8"):
        vm["main"]((V, V[:4]), tvm_ffi.Shape((2, 4)), 7)
    with pytest.raises(TypeError, match="expected a shape"):
        vm["main"]((V, V), V, 7)
    with pytest.raises(TypeError, match="expected a number"):
        vm["main"]((V, V), tvm_ffi.Shape((2, 4)), "seven")
    with pytest.raises(ValueError, match="tuple of 2"):
        vm["main"]((V,), tvm_ffi.Shape((2, 4)), 7)


def test_expressions_of_symbolic_dimensions():
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("n * m",), "float32")):
            n, m = T.int64(), T.int64()
            f = R.reshape(x, (n * m,))
            g = R.add(f, y)
            h = R.concat((g, f), axis=0)
            return R.reshape(h, (2 * n, m))

    x = V.reshape(2, 4)
    (got,) = run(M, "main", x, V)
    np.testing.assert_array_equal(got, np.concatenate([2 * V, V]).reshape(4, 4))
    vm = relax.VirtualMachine(relax.build(M, "llvm"))
    with pytest.raises(ValueError, match="dimension 0 is 7 and has to be 8"):
        vm["main"](x, V[:7])


def test_match_cast_checks_and_defines():
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor("float32", ndim=2)):
            n, m = T.int64(), T.int64()
            y = R.match_cast(x, R.Tensor((n, m), "float32"))
            z = R.add(y, y)
            w = R.match_cast(z, R.Tensor((n, 4), "float32"))
            return R.nn.relu(w)

    (got,) = run(M, "main", V.reshape(2, 4))
    np.testing.assert_array_equal(got, 2 * V.reshape(2, 4))
    vm = relax.VirtualMachine(relax.build(M, "llvm"))
    with pytest.raises(ValueError, match="match_cast.*dimension 1 is 2 and is declared as 4"):
        vm["main"](V.reshape(4, 2))


def test_constants_alone_and_returned():
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((8,), "float32")):
            c = R.const(3.0, "float32")
            return (R.add(x, c), c)

        @R.function
        def same(x: R.Tensor((8,), "float32")):
            return x

    y, c = run(M, "main", V)
    np.testing.assert_array_equal(y, V + 3)
    assert c == 3
    np.testing.assert_array_equal(run(M, "same", V)[0], V)


def test_recursion_through_branches():
    @I.ir_module
    class M:
        @R.function
        def halve(x: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
            cls = M
            big = R.greater(x, R.const(1.0, "float32"))
            if big:
                half = R.multiply(x, R.const(0.5, "float32"))
                y: R.Tensor((), "float32") = cls.halve(half)
            else:
                y = R.add(x, R.const(0.0, "float32"))
            return y

    (got,) = run(M, "halve", np.array(40, "float32"))
    assert got == np.float32(0.625)


def test_functions_within_functions_and_what_they_capture():
    @I.ir_module
    class Nested:
        @R.function
        def main(x: R.Tensor((3,), "float32"), y: R.Tensor((3,), "float32")) -> R.Tensor(
                (3,), "float32"):
            @R.function
            def twice(z: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
                s = R.add(z, z)
                t = R.multiply(s, y)
                return t
            gv = twice(x)
            gv1 = twice(gv)
            return gv1

    x, y = np.arange(3, dtype="float32"), np.array([1, 2, 3], "float32")
    (got,) = run(Nested, "main", x, y)
    np.testing.assert_allclose(got, 4 * x * y * y)


def test_a_kernel_in_place_and_one_with_scalars():
    @I.ir_module
    class M:
        @T.prim_func
        def bump(x: T.Buffer((8,), "float32")):
            for i in range(8):
                with T.block("x"):
                    vi = T.axis.spatial(8, i)
                    x[vi] = x[vi] + T.float32(1)

        @T.prim_func
        def fill(y: T.Buffer((8,), "float32"), k: T.int64):
            for i in range(8):
                with T.block("y"):
                    vi = T.axis.spatial(8, i)
                    y[vi] = T.Cast("float32", k)

        @R.function
        def main(x: R.Tensor((8,), "float32"), s: R.Shape(["k"])):
            k = T.int64()
            cls = M
            a = R.add(x, x)
            b = R.call_tir_inplace(
                cls.bump, (a,), out_sinfo=R.Tensor((8,), "float32"), inplace_indices=[0])
            c = R.call_tir(cls.fill, (), out_sinfo=R.Tensor((8,), "float32"), tir_vars=R.shape([k]))
            return R.add(b, c)

    import tvm_ffi

    (got,) = run(M, "main", V, tvm_ffi.Shape((5,)))
    np.testing.assert_array_equal(got, 2 * V + 6)


def test_printing_and_asserting(capsys):
    @I.ir_module
    class M:
        @R.function(pure=False)
        def main(c: R.Tensor((), "bool"), x: R.Tensor((2,), "float32")):
            R.print(x, format="x is {}")
            R.assert_op(c, [x], format="wrong: {}")
            return x

    vm = relax.VirtualMachine(relax.build(M, "llvm"))
    vm["main"](np.array(True), V[:2])
    assert "x is [0. 1.]" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="wrong: "):
        vm["main"](np.array(False), V[:2])


def test_dtypes():
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((8,), "int32"), y: R.Tensor((8,), "float64")):
            a = R.astype(x, "float64")
            return (R.add(a, y), R.less(a, y), R.astype(y, "float16"))

    x, y = np.arange(8, dtype="int32"), np.full(8, 3.5)
    total, less, half = run(M, "main", x, y)
    np.testing.assert_array_equal(total, x + y)
    np.testing.assert_array_equal(less, x < y)
    assert less.dtype == bool and half.dtype == np.float16


def test_a_library_function_by_its_symbol(tmp_path):
    import ctypes
    import shutil

    if shutil.which("cc") is None:
        pytest.skip("takes a C compiler")

    @T.prim_func
    def c_double(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("y"):
                vi = T.axis.spatial(8, i)
                y[vi] = x[vi] * T.float32(2)

    path = tmp_path / "double.so"
    lib = tvm.build(tvm.IRModule({"c_double_of_a_library": c_double.with_attr(
        "global_symbol", "c_double_of_a_library")}), target="llvm")
    lib.export_library(str(path))
    ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)

    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((8,), "float32")):
            y = R.call_dps_packed("c_double_of_a_library", (x,), R.Tensor((8,), "float32"))
            return y

    (got,) = run(M, "main", V)
    np.testing.assert_array_equal(got, 2 * V)


@pytest.mark.parametrize("shape", [(0,), (0, 4), ()])
def test_empty_tensors_and_scalars(shape):
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo(shape, "float32"))
    with bb.function("main", [x]):
        y = bb.emit(relax.op.add(x, x))
        bb.emit_func_output(bb.emit(relax.op.nn.relu(y)))
    value = np.ones(shape, "float32")
    (got,) = run(bb.get(), "main", value)
    np.testing.assert_array_equal(got, 2 * value)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_indices_outside_never_reach_other_memory(dtype):
    far = np.iinfo(dtype).max // 2
    x = np.arange(12, dtype="float32").reshape(3, 4)

    def given(f, *arrays):
        params = [relax.Var(f"v{i}", relax.TensorStructInfo(a.shape, str(a.dtype)))
                  for i, a in enumerate(arrays)]
        bb = relax.BlockBuilder()
        with bb.function("main", params):
            bb.emit_func_output(bb.emit(f(*params)))
        return run(bb.get(), "main", *arrays)[0]

    def index(*values):
        return np.array(values, dtype)

    o, new = relax.op, np.full((2, 4), 99, "float32")
    np.testing.assert_array_equal(
        given(lambda a, i: o.take(a, i, axis=0), x, index(0, far, -far, 1)), x[[0, 2, 0, 1]])
    np.testing.assert_array_equal(given(lambda a, i: o.gather_elements(a, i, axis=0), x,
                                        index([0, far, -far, 2])), [[0, 9, 2, 11]])
    assert given(o.gather_nd, x, index([0, far], [-1, -far])).tolist() == [3, 8]
    want = x.copy()
    want[0, 0] = want[2, 2] = 99
    np.testing.assert_array_equal(given(
        lambda a, i, u: o.scatter_elements(a, i, u, axis=0), x, index([0, far, -1, -far]),
        new[:1]), want)
    want = x.copy()
    want[1] = 99
    np.testing.assert_array_equal(given(o.scatter_nd, x, index([1], [far]), new), want)


@pytest.mark.parametrize("rows", [0, "n"])
@pytest.mark.parametrize("name, want", [
    ("sum", np.zeros(4)), ("prod", np.ones(4)), ("max", np.full(4, -np.inf)),
    ("mean", np.full(4, np.nan)), ("matmul", np.zeros((4, 4)))])
def test_sums_of_no_terms_are_what_a_sum_begins_with(name, want, rows):
    rows = tvm.tir.Var(rows, "int64") if rows else rows
    x = relax.Var("x", relax.TensorStructInfo((rows, 4), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        value = (relax.op.matmul(relax.op.permute_dims(x), x) if name == "matmul"
                 else getattr(relax.op, name)(x, axis=0))
        bb.emit_func_output(bb.emit(value))
    (got,) = run(bb.get(), "main", np.zeros((0, 4), "float32"))
    np.testing.assert_array_equal(got, want.astype("float32"))


@pytest.mark.parametrize("lines", [
    "R.call_tir_inplace(cls.inc, (R.const([1.0, 2.0]),), out, [0])",
    "R.call_tir_inplace(cls.inc, (d,), out, [0])",
])
def test_constants_are_not_written_in_place(lines):
    mod = from_source("""
from tvm.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def inc(A: T.Buffer((T.int64(2),), "float32")):
        for i in range(T.int64(2)):
            A[i] = A[i] + T.float32(1)

    @R.function(pure=False)
    def main():
        cls = Module
        c = R.const([1.0, 2.0])
        d = c
        y = %s
        return y
""" % lines.replace("out, [0]", 'inplace_indices=[0], out_sinfo=R.Tensor((2,), "float32")'))
    with pytest.raises(WellFormedError, match="inc would write into a constant"):
        relax.build(mod, "llvm")


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize("start", ["R.zeros((2,), 'float32')", "R.add(one, one)"])
def test_what_is_written_in_place_is_made_anew_in_every_run(start, optimized):
    mod = from_source(f"""
from tvm.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def add(A: T.Buffer((T.int64(2),), "float32"), B: T.Buffer((T.int64(2),), "float32")):
        for i in range(T.int64(2)):
            A[i] = A[i] + B[i]

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        cls = Module
        with R.dataflow():
            one = R.const([1.0, 1.0], "float32")
            a = {start}
            b = {start}
            c = R.call_tir_inplace(
                cls.add, (a, x), inplace_indices=[0], out_sinfo=R.Tensor((2,), "float32"))
            d = R.call_tir_inplace(
                cls.add, (b, c), inplace_indices=[0], out_sinfo=R.Tensor((2,), "float32"))
            R.output(c, d)
        return c, d
""")
    if optimized:
        mod = relax.transform.EliminateCommonSubexpr()(mod)
    x = np.array([1, 5], "float32")
    zero = 0 if "zeros" in start else 2
    for mode in ("bytecode", "compiled"):
        vm = relax.VirtualMachine(relax.build(mod, "llvm", exec_mode=mode), tvm.cpu())
        for _ in range(2):
            c, d = vm["main"](x)
            np.testing.assert_array_equal(c.numpy(), x + zero)
            np.testing.assert_array_equal(d.numpy(), x + 2 * zero)
