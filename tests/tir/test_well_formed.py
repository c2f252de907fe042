"""Each rule of well-formedness, broken once, and the error that shows where."""

import pytest

from mlc_lab.ir import WellFormedError
from mlc_lab.ir.module import GlobalVar, IRModule
from mlc_lab.script import from_source
from mlc_lab.tir import (
    IterVar, Range, decl_buffer, expr, op, stmt, verify_well_formed,
)
from mlc_lab.tir.function import PrimFunc

A = decl_buffer((16, 16), "float32", "A")
ZERO = op.const(0.0)


def store(*indices, value=ZERO, buffer=A):
    return stmt.BufferStore.from_fields(buffer, value, tuple(map(expr.const_index, indices)), None)


def var(name="i", dtype="int32"):
    return expr.Var(name, dtype)


def loop(body, name="i", dtype="int32", extent=16):
    v = var(name, dtype)
    return stmt.For(v, op.const(0, dtype), op.const(extent, dtype), 0, body(v))


def block(body, values=(), iters=(), **fields):
    made = stmt.Block(iters, (), (), "b", body, **fields)
    return stmt.BlockRealize(values, True, made)


def iterator(name="vi", kind=0, dtype="int32"):
    return IterVar(Range.from_min_extent(op.const(0, dtype), op.const(16, dtype)),
                   var(name, dtype), kind)


def broken_programs():
    i = var()
    vi = iterator()
    other = decl_buffer((4,), "float32", "B")
    yield "undefined_variable", store(i, 0), "i"
    yield "undefined_variable", stmt.seq(loop(lambda v: stmt.seq(
        store(v, 0), store(0, i))), store(0, 0)), "i"
    yield "bound_twice", stmt.For(i, 0, 4, 0, stmt.For(i, 0, 4, 0, store(i, 0))), "i"
    yield "undeclared_buffer", store(0, buffer=other), "B"
    yield "undeclared_buffer", stmt.seq(
        block(store(0, buffer=other), alloc_buffers=[other]), store(0, buffer=other)), "B"
    yield "wrong_rank", store(0), "A"
    yield "wrong_rank", stmt.Evaluate(expr.BufferLoad(A, [0, 0, 0])), "A"
    yield "index_type", store(op.const(0.5), 0), "A"
    yield "store_type", store(0, 0, value=op.const(1)), "A"
    yield "loop_type", stmt.For(i, 0, op.const(4, "int64"), 0, store(i, 0)), "i"
    yield "loop_type", loop(lambda v: store(0, 0), dtype="float32"), "i"
    yield "extent_type", block(store(0, 0), alloc_buffers=[
        other.replace(shape=(op.const(2.5),))]), "B"
    yield "extent_type", block(store(0, 0), alloc_buffers=[
        other.replace(strides=(op.const(1.5),))]), "B"
    yield "extent_type", stmt.Allocate(var("p", "handle"), "float32", [op.const(2.5)],
                                       op.const(True), store(0, 0), {}), "p"
    yield "iterator_type", block(store(0, 0), [op.const(0)], [
        IterVar(Range.from_min_extent(0, 16), var("vi", "int64"), 0)]), "vi"
    yield "iterator_type", block(store(0, 0), [op.const(0.5)], [vi]), "vi"
    yield "iterator_count", block(store(vi.var, 0), [], [vi]), "b"
    yield "loop_variable_inside", loop(lambda v: block(store(v, 0), [v], [vi])), "i"
    yield "init_without_reduce", loop(lambda v: block(store(vi.var, 0), [v], [vi],
                                                      init=store(vi.var, 0))), "b"
    yield "condition_type", stmt.IfThenElse(op.const(1), store(0, 0)), "if"
    yield "condition_type", stmt.While(op.const(1), store(0, 0)), "while"
    yield "condition_type", stmt.BlockRealize([], op.const(1), block(store(0, 0)).block), "b"


@pytest.mark.parametrize("rule, body, name", list(broken_programs()),
                         ids=lambda v: v if isinstance(v, str) else "")
def test_a_broken_rule_is_named_and_shown(rule, body, name):
    func = PrimFunc([A], body)
    assert verify_well_formed(func, assert_mode=False) is False
    with pytest.raises(WellFormedError) as raised:
        verify_well_formed(func)
    error = raised.value
    assert error.rule == rule and f"rule: {rule}" in str(error)
    assert name in str(error) and "^" in str(error)
    assert error.node is not None


def test_a_call_of_a_function_that_is_not_there():
    call = expr.Call("void", GlobalVar("missing"), ())
    mod = IRModule({"main": PrimFunc([], stmt.Evaluate(call))})
    with pytest.raises(WellFormedError, match="no function 'missing'"):
        verify_well_formed(mod)
    assert verify_well_formed(mod["main"])


def test_sound_programs_pass():
    for text in ("""
        @T.prim_func
        def f(a: T.handle, n: T.int32, p: T.handle("float32")):
            m = T.int64()
            A = T.match_buffer(a, (n, m), "float32", strides=("s", 1))
            P = T.Buffer((4,), data=p)
            for i, j in T.grid(n, m):
                with T.block("x"):
                    vi, vj = T.axis.remap("SR", [i, j])
                    B = T.alloc_buffer((4,))
                    M = T.match_buffer(A[vi, vj:vj + T.int64(1)], (1, 1), offset_factor=1)
                    with T.init():
                        A[vi, 0] = 0.0
                    x = A[vi, vj]
                    for k in range(4):
                        B[k] = x
                    M[0, 0] = B[0] + P[0]
    """, """
        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.block("opaque"):
                    A[i] = 0.0
            tx = T.launch_thread("threadIdx.x", 4)
            B = T.decl_buffer((4,))
            B[tx] = A[tx]
            for i in range(4):
                A[i] = B[i]
            for i in range(4):
                A[i] = B[i]
    """):
        assert verify_well_formed(from_source(text, check_well_formed=False)) is True


def test_what_is_bound_late_is_said_to_be_out_of_scope():
    i = var()
    body = stmt.seq(stmt.For(i, 0, 4, 0, store(i, 0)), store(i, 0))
    with pytest.raises(WellFormedError, match="outside of the scope"):
        verify_well_formed(PrimFunc([A], body))
