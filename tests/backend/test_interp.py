"""The interpreter against numpy: blocks, dtypes, control flow, arguments and its error messages."""

import numpy as np
import pytest
from mlc_lab.backend.interp import AccessLog, AssertionFailed, InterpError, OutOfBounds, interpret
from mlc_lab.backend.meaning import evaluate
from mlc_lab.ir.module import IRModule
from mlc_lab.tir import expr as E
from mlc_lab.tir import op
from mlc_lab.tir import stmt as S
from mlc_lab.tir.buffer import decl_buffer
from mlc_lab.tir.expr import IterVar, Var
from mlc_lab.tir.function import PrimFunc

RNG = np.random.default_rng(0)


def loops(body, *pairs):
    """`body` in serial loops over (var, extent) pairs, outermost first."""
    for var, extent in reversed(pairs):
        body = S.For(var, 0, extent, S.ForKind.SERIAL, body)
    return body


def elementwise(dtype, fn, n=16, out=None, inputs=1):
    """out[i] = fn(A[i], ...) as a flat program."""
    buffers = [decl_buffer((n,), dtype, f"A{x}") for x in range(inputs)]
    i = Var("i")
    value = fn(*(b[i] for b in buffers))
    result = decl_buffer((n,), out or value.dtype, "B")
    return PrimFunc([*buffers, result], loops(S.BufferStore(result, value, (i,)), (i, n)))


def matmul(n, m, k, predicate=True, reads=None):
    """C = A @ B with an init block; `reads` overrides what the block declares to read."""
    a, b = decl_buffer((n, k), "float32", "A"), decl_buffer((k, m), "float32", "B")
    c = decl_buffer((n, m), "float32", "C")
    i, j, l = Var("i"), Var("j"), Var("k")
    vi, vj, vk = Var("vi"), Var("vj"), Var("vk")
    block = S.Block(
        [IterVar(n, vi, 0), IterVar(m, vj, 0), IterVar(k, vk, 2)],
        reads or [a[vi:vi + 1, vk:vk + 1], b[vk:vk + 1, vj:vj + 1]], [c[vi:vi + 1, vj:vj + 1]],
        "C", S.BufferStore(c, c[vi, vj] + a[vi, vk] * b[vk, vj], (vi, vj)),
        S.BufferStore(c, E.FloatImm("float32", 0.0), (vi, vj)))
    body = loops(S.BlockRealize((i, j, l), predicate, block), (i, n), (j, m), (l, k))
    root = S.BlockRealize((), True, S.Block((), (), (), "root", body))
    return PrimFunc([a, b, c], root, attrs={"global_symbol": "main"})


def test_reduction_block_with_init():
    a, b = RNG.random((6, 5), np.float32), RNG.random((5, 7), np.float32)
    c = np.full((6, 7), np.nan, np.float32)
    interpret(matmul(6, 7, 5), a, b, c, check_regions=True, check_uninitialized=True)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_module_function_by_name():
    mod = IRModule({"mm": matmul(2, 2, 2)})
    a = np.eye(2, dtype="float32")
    c = np.zeros((2, 2), "float32")
    interpret(mod, a, a, c, func_name="mm")
    assert (c == a).all()
    with pytest.raises(ValueError, match="no PrimFunc 'nope'.*'mm'"):
        interpret(mod, a, a, c, func_name="nope")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_float_arithmetic_rounds_as_numpy_does(dtype):
    f = elementwise(dtype, lambda x, y: (x * y + x) / (y - x) - x, inputs=2)
    a, b = (RNG.standard_normal(16).astype(dtype) for _ in range(2))
    out = np.empty(16, dtype)
    interpret(f, a, b, out)
    np.testing.assert_array_equal(out, (a * b + a) / (b - a) - a)


def test_bfloat16_rounds_after_each_operation():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    f = elementwise("bfloat16", lambda x, y: x * y + x, inputs=2)
    a, b = (RNG.standard_normal(16).astype(ml_dtypes.bfloat16) for _ in range(2))
    out = np.empty(16, ml_dtypes.bfloat16)
    interpret(f, a, b, out)
    np.testing.assert_array_equal(out, a * b + a)
    bits = np.empty(16, np.uint16)  # the same numbers as bit patterns
    interpret(f, a.view(np.uint16), b.view(np.uint16), bits)
    np.testing.assert_array_equal(bits, (a * b + a).view(np.uint16))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_integers_wrap(dtype):
    f = elementwise(dtype, lambda x, y: (x + y) * x - y, inputs=2)
    info = np.iinfo(dtype)
    a, b = (RNG.integers(info.min, info.max, 16, dtype=dtype) for _ in range(2))
    out = np.empty(16, dtype)
    interpret(f, a, b, out)
    np.testing.assert_array_equal(out, (a + b) * a - b)


def test_the_four_integer_divisions():
    a = np.array([7, -7, 7, -7, 0, 1, -1, 9], "int32")
    b = np.array([2, 2, -2, -2, 5, -3, 3, 4], "int32")
    for fn, want in ((op.floordiv, a // b), (op.floormod, a % b),
                     (op.truncdiv, np.trunc(a / b).astype("int32")),
                     (op.truncmod, np.fmod(a, b))):
        out = np.empty(8, "int32")
        interpret(elementwise("int32", fn, 8, inputs=2), a, b, out)
        np.testing.assert_array_equal(out, want)


def test_division_by_zero_says_where():
    f = elementwise("int32", op.floordiv, 3, inputs=2)
    with pytest.raises(InterpError, match=r"division by zero.*i=1"):
        interpret(f, np.ones(3, "int32"), np.array([1, 0, 1], "int32"), np.ones(3, "int32"))


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "tanh", "sin", "cos", "floor", "ceil",
                                  "trunc", "exp2", "log1p", "atan"])
def test_math_functions(name):
    fn = getattr(op, name)
    a = np.array([0.3, 1.5, 2.5, -0.5, 0.0, 7.25, -2.5, 60.0], "float32")
    out = np.empty(8, "float32")
    interpret(elementwise("float32", fn, 8), a, out)
    with np.errstate(all="ignore"):
        want = getattr(np, {"atan": "arctan"}.get(name, name))(a.astype("float64"))
    np.testing.assert_allclose(out, want.astype("float32"), rtol=1e-6)


def test_more_intrinsics():
    x = np.array([0.5, -1.5, 2.5, 100.0], "float32")
    rows = {op.round: [0, -2, 2, 100], op.abs: [0.5, 1.5, 2.5, 100],
            op.rsqrt: [2 ** 0.5, np.nan, 2.5 ** -0.5, 0.1],
            op.sigmoid: 1 / (1 + np.exp(-x.astype("float64"))),
            op.erf: [0.5204999, -0.9661051, 0.9995930, 1.0],
            (lambda v: op.pow(v, 2.0)): x * x, (lambda v: op.fma(v, v, v)): x * x + x,
            (lambda v: op.max(op.min(v, 1.0), 0.0)): np.clip(x, 0, 1)}
    for fn, want in rows.items():
        out = np.empty(4, "float32")
        interpret(elementwise("float32", fn, 4), x, out)
        np.testing.assert_allclose(out, np.asarray(want, "float32"), rtol=1e-6)


def test_bit_operations_and_casts():
    a = np.array([5, -1, 1 << 30, 12345], "int32")
    rows = {op.popcount: [2, 32, 1, 6], op.clz: [29, 0, 1, 18], (lambda v: v & 12): a & 12,
            (lambda v: v << 3): a << 3, (lambda v: v >> 3): a >> 3, (lambda v: ~v): ~a,
            (lambda v: v.astype("int8")): a.astype("int8"),
            (lambda v: v.astype("float32")): a.astype("float32"),
            (lambda v: op.reinterpret("float32", v)): a.view("float32"),
            (lambda v: (v > 0).astype("int32")): (a > 0).astype("int32")}
    for fn, want in rows.items():
        f = elementwise("int32", fn, 4)
        out = np.zeros(4, f.buffers[-1].dtype)
        interpret(f, a, out)
        np.testing.assert_array_equal(out, np.asarray(want, out.dtype))


def test_float_to_int_truncates():
    out = np.empty(4, "int32")
    interpret(elementwise("float32", lambda v: v.astype("int32"), 4),
              np.array([1.9, -1.9, 0.5, 7], "float32"), out)
    assert out.tolist() == [1, -1, 0, 7]


def test_if_then_else_is_lazy_and_select_is_not():
    a, b, i = decl_buffer((4,), "int32", "A"), decl_buffer((5,), "int32", "B"), Var("i")

    def program(choose):
        value = choose(i < 4, a[i], op.const(-1))
        return PrimFunc([a, b], loops(S.BufferStore(b, value, (i,)), (i, 5)))

    out = np.zeros(5, "int32")
    interpret(program(op.if_then_else), np.arange(4, dtype="int32"), out)
    assert out.tolist() == [0, 1, 2, 3, -1]
    with pytest.raises(OutOfBounds):
        interpret(program(op.select), np.arange(4, dtype="int32"), out)


def test_out_of_bounds_names_buffer_index_and_loop():
    a, i = decl_buffer((4,), "int32", "A"), Var("i")
    f = PrimFunc([a], loops(S.BufferStore(a, op.const(1), (i - 1,)), (i, 4)))
    with pytest.raises(OutOfBounds, match=r"write of A\[-1\] outside of its shape \(4,\).*i=0"):
        interpret(f, np.zeros(4, "int32"))


def test_while_let_if_and_assert():
    a, x = decl_buffer((1,), "int32", "A"), Var("x")
    body = S.seq(
        S.BufferStore(a, op.const(0), (0,)),
        S.While(a[0] < 10, S.LetStmt(x, a[0] * 2 + 1, S.IfThenElse(
            x > 5, S.BufferStore(a, x + 100, (0,)), S.BufferStore(a, x, (0,))))))
    out = np.zeros(1, "int32")
    interpret(PrimFunc([a], body), out)
    assert out[0] == 107
    failing = S.AssertStmt(a[0] > 1000, E.StringImm("A must be large"), S.Evaluate(op.const(0)))
    with pytest.raises(AssertionFailed, match="A must be large"):
        interpret(PrimFunc([a], failing), out)


def test_break_and_continue():
    a, i = decl_buffer((8,), "int32", "A"), Var("i")
    leave = S.Evaluate(E.Call("void", "tir.break_loop", ()))
    skip = S.Evaluate(E.Call("void", "tir.continue_loop", ()))
    f = PrimFunc([a], loops(S.seq(
        S.IfThenElse(i == op.const(5), leave), S.IfThenElse(i % 2 == 0, skip),
        S.BufferStore(a, op.const(1), (i,))), (i, 8)))
    out = np.zeros(8, "int32")
    interpret(f, out)
    assert out.tolist() == [0, 1, 0, 1, 0, 0, 0, 0]


def test_return_value():
    n = Var("n", "int32")
    f = PrimFunc([n], S.Evaluate(op.ret(n + 1)), ret_type="int32")
    assert interpret(f, 41) == 42


def test_symbolic_shapes_are_bound_and_checked():
    n = E.SizeVar("n", "int64")
    a, b = decl_buffer((n,), "float32", "A"), decl_buffer((n * 2,), "float32", "B")
    i = Var("i", "int64")
    f = PrimFunc([a, b], S.For(i, E.IntImm("int64", 0), n, 0,
                               S.BufferStore(b, a[i], (i * 2,))))
    out = np.zeros(6, "float32")
    interpret(f, np.ones(3, "float32"), out)
    assert out.tolist() == [1, 0, 1, 0, 1, 0]
    with pytest.raises(InterpError, match="must be 6 here, got 5"):
        interpret(f, np.ones(3, "float32"), np.zeros(5, "float32"))


def test_arguments_are_checked():
    f = matmul(2, 2, 2)
    good = np.zeros((2, 2), "float32")
    with pytest.raises(InterpError, match="takes 3 argument"):
        interpret(f, good)
    with pytest.raises(InterpError, match=r"argument 1 of main \(B\) must have dtype float32"):
        interpret(f, good, good.astype("float64"), good)
    with pytest.raises(InterpError, match="must have shape"):
        interpret(f, good, np.zeros((2, 3), "float32"), good)
    with pytest.raises(InterpError, match="must be an array"):
        interpret(f, good, 3, good)


def test_strided_argument_is_written_back():
    out = np.zeros((4, 8), "float32")[:, ::2]
    a = RNG.random((4, 4), np.float32)
    interpret(matmul(4, 4, 4), a, a.T, out)
    np.testing.assert_allclose(out, a @ a.T, rtol=1e-5)


@pytest.mark.parametrize("run", [interpret, evaluate])
@pytest.mark.parametrize("strides", [(Var("s"),), (2,), ()])
def test_what_is_written_to_strided_memory_stays(run, strides):
    """Also where the strides are the program's to know, and where two arguments are one memory."""
    a = decl_buffer((4,), "float32", "A")
    c = decl_buffer((4,), "float32", "C", strides=strides)
    i = Var("i")
    body = loops(S.BufferStore(c, a[i] + E.FloatImm("float32", 1), (i,)), (i, 4))
    for params, order in (((a, c), 1), ((c, a), -1)):
        whole = np.zeros(8, "float32")
        run(PrimFunc(params, body), *(np.arange(4, dtype="float32"), whole[::2])[::order])
        assert whole.tolist() == [1, 0, 2, 0, 3, 0, 4, 0]
        whole = np.arange(8, dtype="float32")
        run(PrimFunc(params, body), whole[::2], whole[::2])
        assert whole.tolist() == [1, 1, 3, 3, 5, 5, 7, 7]


def test_match_buffer_is_a_window():
    a, b = decl_buffer((8, 8), "float32", "A"), decl_buffer((4, 4), "float32", "B")
    s0, s1, off = Var("s0"), Var("s1"), Var("off")
    window = decl_buffer((4, 4), "float32", "W", strides=(s0, s1), elem_offset=off)
    i, j, vi, vj = Var("i"), Var("j"), Var("vi"), Var("vj")
    store = loops(S.BufferStore(b, window[i, j] + off.astype("float32"), (i, j)), (i, 4), (j, 4))
    block = S.Block((), [a[2:6, 3:7]], [b[0:4, 0:4]], "blk", store,
                    match_buffers=[S.MatchBufferRegion(window, a[2:6, 3:7])])
    f = PrimFunc([a, b], S.BlockRealize((), True, block))
    x, out = RNG.random((8, 8), np.float32), np.zeros((4, 4), "float32")
    interpret(f, x, out, check_regions=True)
    np.testing.assert_array_equal(out, x[2:6, 3:7] + np.float32(19))
    del vi, vj


def test_check_regions_finds_an_undeclared_read():
    f = matmul(2, 2, 2)
    a, b, c = f.buffers
    vi = f.body.block.body.body.body.body.block.iter_vars[0].var
    f = PrimFunc(f.params, _with_reads(f.body, [a[vi:vi + 1, 0:2]]), None, f.buffer_map)
    x = np.zeros((2, 2), "float32")
    interpret(f, x, x, x)
    with pytest.raises(InterpError, match=r"block 'C' reads B\[0, 0\].*T.reads"):
        interpret(f, x, x, x, check_regions=True)


def _with_reads(node, reads):
    if isinstance(node, S.Block) and node.name_hint == "C":
        return node.replace(reads=tuple(reads))
    return node.map_children(lambda n: _with_reads(n, reads))


def test_uninitialised_read_is_found():
    a, t, i = decl_buffer((4,), "float32", "A"), decl_buffer((4,), "float32", "T"), Var("i")
    body = loops(S.BufferStore(a, t[i], (i,)), (i, 4))
    f = PrimFunc([a], S.BlockRealize((), True, S.Block((), (), (), "root", body,
                                                       alloc_buffers=[t])))
    out = np.zeros(4, "float32")
    interpret(f, out)
    assert np.isnan(out).all()
    with pytest.raises(InterpError, match="never written"):
        interpret(f, out, check_uninitialized=True)


def test_access_log_in_time_order():
    log = AccessLog()
    x = np.zeros((2, 2), "float32")
    interpret(matmul(2, 2, 2), x, x, x, record=log)
    assert len(log) == 4 * (2 * 4 + 1)
    first = [(a.buffer.name, a.index, a.write) for a in log.accesses[:5]]
    assert first == [("C", 0, True), ("C", 0, False), ("A", 0, False), ("B", 0, False),
                     ("C", 0, True)]
    last = log.of("A")[-1]
    assert last.iteration == (1, 1, 1)
    assert [v.name for v in log.loops[last.site]] == ["i", "j", "k"]


def test_vectors_ramps_and_masks():
    a, b, i = decl_buffer((16,), "float32", "A"), decl_buffer((16,), "float32", "B"), Var("i")
    ramp = E.Ramp(i * 4, op.const(1), 4)
    value = op.add(E.BufferLoad(a, (ramp,)), E.Broadcast(op.const(1.0), 4))
    f = PrimFunc([a, b], loops(S.BufferStore(b, value, (ramp,)), (i, 4)))
    x, out = RNG.random(16, np.float32), np.zeros(16, "float32")
    interpret(f, x, out)
    np.testing.assert_array_equal(out, x + np.float32(1))
    mask = op.less(ramp, E.Broadcast(op.const(10), 4))
    f = PrimFunc([a, b], loops(S.BufferStore(b, value, (ramp,), mask), (i, 4)))
    out[:] = 0
    interpret(f, x, out)
    np.testing.assert_array_equal(out, np.where(np.arange(16) < 10, x + np.float32(1), 0))


def test_strided_gather_and_shuffle():
    a, b = decl_buffer((16,), "int32", "A"), decl_buffer((4,), "int32", "B")
    load = E.BufferLoad(a, (E.Ramp(op.const(1), op.const(3), 4),))
    picked = E.Shuffle((load,), tuple(map(op.const, (3, 2, 1, 0))))
    f = PrimFunc([a, b], S.BufferStore(b, picked, (E.Ramp(op.const(0), op.const(1), 4),)))
    out = np.zeros(4, "int32")
    interpret(f, np.arange(16, dtype="int32"), out)
    assert out.tolist() == [10, 7, 4, 1]


def test_extern_and_packed_calls():
    a = decl_buffer((3,), "float32", "A")
    i = Var("i")
    f = PrimFunc([a], loops(S.BufferStore(
        a, op.call_extern("float32", "sqrtf", a[i]), (i,)), (i, 3)))
    out = np.array([1, 4, 9], "float32")
    interpret(f, out)
    assert out.tolist() == [1, 2, 3]
    f = PrimFunc([a], S.Evaluate(op.call_packed("test.fill", a, 7)))
    interpret(f, out, packed={"test.fill": lambda x, v: x.fill(v)})
    assert out.tolist() == [7, 7, 7]
    f = PrimFunc([a], S.Evaluate(op.call_extern("int32", "mystery", a[0])))
    with pytest.raises(InterpError, match="does not know the C function 'mystery'"):
        interpret(f, out)


def test_call_of_another_function():
    inner = elementwise("float32", lambda v: v * 2.0, 4)
    mod = IRModule({"double": inner})
    a, b = decl_buffer((4,), "float32", "A"), decl_buffer((4,), "float32", "B")
    call = S.Evaluate(E.Call("int32", mod.get_global_var("double"), (a.data, b.data)))
    mod["main"] = PrimFunc([a, b], call)
    out = np.zeros(4, "float32")
    interpret(mod, np.arange(4, dtype="float32"), out)
    assert out.tolist() == [0, 2, 4, 6]


def test_ndarray_arguments_are_written_in_place():
    from mlc_lab.runtime import ndarray

    x = ndarray.array(np.arange(4, dtype="float32"))
    out = ndarray.array(np.zeros(4, "float32"))
    interpret(elementwise("float32", lambda v: v + 1.0, 4), x, out)
    assert out.numpy().tolist() == [1, 2, 3, 4]


def _thread(tag):
    return IterVar(None, Var(tag.replace(".", "_")), IterVar.ThreadIndex, tag)


def _attr(axis, extent, body):
    return S.AttrStmt(axis, "thread_extent", op.const(extent), body)


def test_barrier_between_threads():
    """out[t] = shared[7 - t] after every thread wrote its own element of shared."""
    a, b = decl_buffer((16,), "int32", "A"), decl_buffer((16,), "int32", "B")
    pointer = Var("sh", E.PointerType("int32", "shared"))
    shared = decl_buffer((8,), "int32", "sh", data=pointer)
    block, thread = _thread("blockIdx.x"), _thread("threadIdx.x")
    t, base = thread.var, block.var * 8
    sync = S.Evaluate(op.call_intrin("int32", "tir.tvm_storage_sync", E.StringImm("shared")))
    work = S.seq(S.BufferStore(shared, a[base + t], (t,)), sync,
                 S.BufferStore(b, shared[7 - t], (base + t,)))
    body = S.Allocate(pointer, "int32", (op.const(8),), op.const(True), S.DeclBuffer(shared, work),
                      {})
    f = PrimFunc([a, b], _attr(block, 2, _attr(thread, 8, body)))
    x, out = np.arange(16, dtype="int32"), np.zeros(16, "int32")
    interpret(f, x, out)
    np.testing.assert_array_equal(out, x.reshape(2, 8)[:, ::-1].reshape(-1))


def test_barrier_in_a_branch_is_refused():
    a, thread = decl_buffer((8,), "int32", "A"), _thread("threadIdx.x")
    sync = S.Evaluate(op.call_intrin("int32", "tir.tvm_storage_sync", E.StringImm("shared")))
    body = S.seq(S.IfThenElse(thread.var < 4, sync),
                 S.BufferStore(a, thread.var, (thread.var,)))
    with pytest.raises(InterpError, match="wait for ever"):
        interpret(PrimFunc([a], _attr(thread, 8, body)), np.zeros(8, "int32"))
    with pytest.raises(InterpError, match="Lower it for a GPU"):
        interpret(PrimFunc([a], sync), np.zeros(8, "int32"))


def test_cross_thread_reduction():
    a, b, thread = decl_buffer((8,), "float32", "A"), decl_buffer((1,), "float32", "B"), _thread(
        "threadIdx.x")
    x, y = Var("x", "float32"), Var("y", "float32")
    reducer = E.CommReducer((x,), (y,), (x + y,), (op.const(0.0),))
    pointer = Var("red", E.PointerType("float32", "local"))
    result = decl_buffer((1,), "float32", "red", data=pointer)
    call = E.Call("handle", "tir.tvm_thread_allreduce", (
        op.const(1, "uint32"), a[thread.var], op.const(True), result[0], thread.var))
    body = S.seq(S.AttrStmt(reducer, "reduce_scope", op.const(0), S.Evaluate(call)),
                 S.IfThenElse(thread.var == op.const(0), S.BufferStore(b, result[0], (0,))))
    body = S.Allocate(pointer, "float32", (op.const(1),), op.const(True),
                      S.DeclBuffer(result, body), {})
    out = np.zeros(1, "float32")
    interpret(PrimFunc([a, b], _attr(thread, 8, body)), np.arange(8, dtype="float32"), out)
    assert out[0] == 28
