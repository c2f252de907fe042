"""te.decl_tensor_intrin: tensorized stages compute what they did."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import te
from mlc_lab.backend.interp import interpret


def gemv(m, n, whole):
    """c = b a, as calls that see only buffers; `whole` gives no way to add to a sum."""
    a = te.placeholder((n,), name="a")
    b = te.placeholder((m, n), name="b")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((m,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
    strides = {a: [1], b: [te.var("s1"), 1], c: [1]}
    binds = {t: tvm.tir.decl_buffer(t.shape, t.dtype, t.op.name.upper(), offset_factor=1, strides=s)
             for t, s in strides.items()}

    def body(ins, outs):
        ib = tvm.tir.ir_builder.create()
        x, w = (ib.buffer_ptr(buffer) for buffer in ins)
        y = ib.buffer_ptr(outs[0])
        with ib.for_range(0, m, "i") as i, ib.for_range(0, n, "q") as q:
            y[i] = y[i] + x[q] * w[i, q]
        made = ib.get()
        return made if whole else (made, None, made)

    return te.decl_tensor_intrin(c.op, body, binds=binds, name="gemv")


def product(n=6, m=32, length=16):
    A = te.placeholder((n, length), name="A")
    B = te.placeholder((m, length), name="B")
    k = te.reduce_axis((0, length), name="k")
    return A, B, te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")


def right(s, args):
    a, b, c = (np.random.rand(*(int(d) for d in t.shape)).astype("float32") for t in args)
    tvm.build(s, list(args), "llvm")(a, b, c)
    np.testing.assert_allclose(c, a @ b.T, rtol=1e-5)


def test_an_intrinsic_of_a_whole_sum():
    A, B, C = product()
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[1], factor=8)
    s[C].reorder(C.op.axis[0], outer, inner, C.op.reduce_axis[0])
    s[C].tensorize(inner, gemv(8, 16, whole=True))
    right(s, (A, B, C))


def test_an_intrinsic_that_adds_to_a_sum():
    A, B, C = product()
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[1], factor=8)
    ko, ki = s[C].split(C.op.reduce_axis[0], factor=4)
    s[C].reorder(C.op.axis[0], outer, ko, inner, ki)
    with pytest.raises(ValueError, match=r"sums up \[4\], and C \[16\]"):
        s[C].tensorize(inner, gemv(8, 4, whole=True))
    s[C].tensorize(inner, gemv(8, 4, whole=False))
    right(s, (A, B, C))


def test_an_intrinsic_without_a_sum():
    x = te.placeholder((8,), name="x")
    y = te.compute((8,), lambda i: x[i] + 1.0, name="y")

    def body(ins, outs):
        ib = tvm.tir.ir_builder.create()
        source, to = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 8, "i") as i:
            to[7 - i] = source[7 - i] + 1.0
        return ib.get()

    intrin = te.decl_tensor_intrin(y.op, body, default_buffer_params={"offset_factor": 1})
    A = te.placeholder((4, 32), name="A")
    B = te.compute((4, 32), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(B.op.axis[1], factor=8)
    s[B].tensorize(inner, intrin)
    assert "7 - " in tvm.lower(s, [A, B]).script()
    a, b = np.random.rand(4, 32).astype("float32"), np.zeros((4, 32), "float32")
    tvm.build(s, [A, B], "llvm")(a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_the_last_intrinsic_of_a_loop_counts():
    A, B, C = product()
    s = te.create_schedule(C.op)
    _, inner = s[C].split(C.op.axis[1], factor=8)
    s[C].reorder(C.op.axis[0], inner)
    for whole in (False, True):
        s[C].tensorize(inner, gemv(8, 16, whole=whole))
    once = te.create_schedule(C.op)
    _, inner = once[C].split(C.op.axis[1], factor=8)
    once[C].reorder(C.op.axis[0], inner)
    once[C].tensorize(inner, gemv(8, 16, whole=True))
    assert tvm.lower(s, [A, B, C]).script() == tvm.lower(once, [A, B, C]).script()


def test_another_computation_is_refused():
    A, B, C = product()
    s = te.create_schedule(C.op)
    with pytest.raises(tvm.tir.ScheduleError):
        s[C].tensorize(C.op.axis[1], gemv(8, 16, whole=True))
        tvm.lower(s, [A, B, C])


def test_what_is_no_intrinsic_is_refused():
    _, _, C = product()
    with pytest.raises(ValueError, match="gives a statement"):
        te.decl_tensor_intrin(C.op, lambda ins, outs: None)
    with pytest.raises(ValueError, match="update"):
        te.decl_tensor_intrin(C.op, lambda ins, outs: (None, None, None))
    with pytest.raises(ValueError, match="te.compute"):
        te.decl_tensor_intrin(te.placeholder((8,)).op, lambda ins, outs: None)
    with pytest.raises(ValueError, match="scalar_params"):
        te.decl_tensor_intrin(C.op, lambda ins, outs: None, scalar_params=["n"])


def _vadd(n, scope=""):
    x, y = te.placeholder((n,), name="x"), te.placeholder((n,), name="y")
    z = te.compute((n,), lambda i: x[i] + y[i], name="z")

    def body(ins, outs):
        ib = tvm.tir.ir_builder.create()
        a, b, c = map(ib.buffer_ptr, (*ins, *outs))
        with ib.for_range(0, n) as i:
            c[i] = a[i] + b[i]
        return ib.get()

    binds = {t: tvm.tir.decl_buffer((n,), name=f"{t.op.name}_there", scope=scope, offset_factor=1)
             for t in (x, y, z)} if scope else None
    return te.decl_tensor_intrin(z.op, body, binds=binds,
                                 default_buffer_params={"offset_factor": 1})


def test_an_intrinsic_of_another_memory():
    A, B = te.placeholder((6, 16), name="A"), te.placeholder((6, 16), name="B")
    vadd = _vadd(16, "local")
    C = te.compute((6, 16), lambda i: vadd(A[i, 0:16], B[i, 0:16]), name="C")
    s = te.create_schedule(C.op)
    for tensor in (A, B):
        s.cache_read(tensor, "local", C)
    s.cache_write(C, "local")
    a, b = (np.random.default_rng(k).standard_normal((6, 16)).astype("float32") for k in (0, 1))
    out = np.zeros_like(a)
    interpret(s.to_module([A, B, C]), a, b, out)
    np.testing.assert_allclose(out, a + b, rtol=1e-6)


def test_a_computation_is_written_with_an_intrinsic():
    A, B = te.placeholder((6, 16), name="A"), te.placeholder((6, 16), name="B")
    B2 = te.compute((6, 16), lambda i, j: B[i, j] * 2, name="B2")
    vadd = _vadd(16)
    C = te.compute((6, 16), lambda i: vadd(A[i, 0:16], B2[i, 0:16]), name="C")
    assert isinstance(C.op, te.TensorComputeOp) and C.op.schedulable_ndim == 1
    s = te.create_schedule(C.op)
    s[B2].compute_at(s[C], C.op.axis[0])
    s[C].split(C.op.axis[0], factor=2)
    a, b = (np.random.default_rng(k).standard_normal((6, 16)).astype("float32") for k in (0, 1))
    out = np.zeros_like(a)
    interpret(s.to_module([A, B, C]), a, b, out)
    np.testing.assert_allclose(out, a + b * 2, rtol=1e-6)
    with pytest.raises(tvm.TVMError, match="is not a loop of C"):
        s[C].split(C.op.axis[1], factor=4)  # it is the intrinsic's
    s = te.create_schedule(C.op)  # and in memory of its own
    s.cache_write(C, "global")
    interpret(s.to_module([A, B, C]), a, b, out)
    np.testing.assert_allclose(out, a + b * 2, rtol=1e-6)


def test_a_sum_of_calls_of_an_intrinsic():
    w, x = te.placeholder((4, 8), name="w"), te.placeholder((8,), name="x")
    k = te.reduce_axis((0, 8), name="k")
    z = te.compute((4,), lambda i: te.sum(w[i, k] * x[k], axis=k), name="z")

    def body(ins, outs):
        ib = tvm.tir.ir_builder.create()
        a, b, c = map(ib.buffer_ptr, (*ins, *outs))
        with ib.for_range(0, 4) as i:
            with ib.for_range(0, 8) as j:
                c[i] = c[i] + a[i, j] * b[j]
        update = ib.get()
        return update, update, update

    gemv = te.decl_tensor_intrin(z.op, body, default_buffer_params={"offset_factor": 1})
    A, B = te.placeholder((3, 5, 4, 8), name="A"), te.placeholder((2, 5, 8), name="B")
    ko = te.reduce_axis((0, 5), name="ko")
    C = te.compute((3, 2, 4), lambda i, j: gemv(A[i, ko, 0:4, 0:8], B[j, ko, 0:8],
                                                reduce_axis=ko), name="C")
    a, b = (np.random.default_rng(0).standard_normal(s).astype("float32")
            for s in ((3, 5, 4, 8), (2, 5, 8)))
    want = np.einsum("ikmn,jkn->ijm", a, b)
    for mod in (te.create_schedule(C.op).to_module([A, B, C]),
                tvm.IRModule({"main": te.create_prim_func([A, B, C])})):
        out = np.zeros((3, 2, 4), "float32")
        interpret(mod, a, b, out)
        np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-5)
    with pytest.raises(tvm.TVMError, match="has 8 elements in a dimension"):
        te.compute((3, 2, 4), lambda i, j: gemv(A[i, ko, 0:4, 0:7], B[j, ko, 0:8],
                                                reduce_axis=ko))
