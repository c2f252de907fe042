"""Simplify: indices and conditions."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlc_lab.ir import structural_equal
from mlc_lab.ir.module import IRModule
from mlc_lab.ir.transform import PassContext
from mlc_lab.lower import RemoveNoOp, Simplify, VectorizeLoop
from mlc_lab.script import from_source
from mlc_lab.script import tir as T
from mlc_lab.tir import PrimFunc, Var, const, decl_buffer
from mlc_lab.tir import stmt as S
from .programs import arguments, run


def same_meaning(before, after):
    args = arguments(before)
    for a, b in zip(run(IRModule({"main": before}), args), run(IRModule({"main": after}), args)):
        assert (a == b).all()


def apply(step, func):
    after = step(IRModule({"main": func}))["main"]
    same_meaning(func, after)
    return after


@T.prim_func
def before(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    T.func_attr({"global_symbol": "main"})
    for i, j in T.grid(8, 16):
        if i * 16 + j < 128:
            B[(i * 16 + j) // 16 * 16 + (i * 16 + j) % 16] = A[i * 16 + j]
        if i > 8:
            B[0] = T.float32(0)
    for i in range(1):
        B[i] = T.if_then_else(i < 1, A[i] + 1.0, T.float32(3))


@T.prim_func
def after(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    T.func_attr({"global_symbol": "main"})
    for i, j in T.grid(8, 16):
        B[i * 16 + j] = A[i * 16 + j]
    B[0] = A[0] + 1.0


def test_decided_conditions_and_plain_indices():
    assert structural_equal(apply(Simplify(), before), after) is True


@T.prim_func
def data(A: T.Buffer((8,), "int8"), B: T.Buffer((8,), "int8")):
    for i in range(8):
        B[i] = (A[i] * T.int8(2) + T.int8(100)) // T.int8(2) * T.int8(2)


def test_values_of_data_are_left_alone():
    mod = IRModule({"main": data})
    assert Simplify()(mod) is mod


@T.prim_func
def nested(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        if i < 8:
            if i < 10:
                B[i] = A[i % 8]
        else:
            if i < 8:
                B[i] = T.float32(0)
            B[i] = T.Select(i >= 8, A[i], T.float32(9))


def test_a_condition_is_known_inside_of_its_branch():
    found = apply(Simplify(), nested)
    branch = found.body.body
    assert type(branch.then_case) is S.BufferStore
    assert type(branch.else_case) is S.BufferStore
    assert branch.then_case.value.indices[0] is branch.then_case.indices[0]


@T.prim_func
def idle(A: T.Buffer((8,), "float32")):
    for i in range(8):
        T.evaluate(0)
    for i in range(8):
        if i < 4:
            T.evaluate(1)
    for i in range(0):
        A[i] = T.float32(1)
    B = T.allocate([8], "float32", "global")
    A[0] = T.float32(2)


def test_statements_that_do_nothing_are_removed():
    found = RemoveNoOp()(IRModule({"main": idle}))["main"]
    assert type(found.body) is S.BufferStore


@T.prim_func
def never(A: T.Buffer((16,), "float32")):
    for i in range(16):
        for j in range(i - 20):
            A[i] = T.float32(j)


def test_a_loop_that_never_has_an_iteration_is_removed():
    found = RemoveNoOp()(IRModule({"main": never}))["main"]
    assert type(found.body) is S.Evaluate


@T.prim_func
def back(A: T.Buffer((16,), "float32")):
    for i, j in T.grid(4, 4):
        k = i * 4 + j
        A[i * 4 + j] = A[k]
    for i in range(16):
        if i != 0:
            A[i] = A[i - 1]
        else:
            A[i] = A[0]


def test_a_store_of_what_is_there_under_a_condition_or_by_another_name_is_removed():
    found = RemoveNoOp()(IRModule({"main": back}))["main"].body
    assert type(found) is S.For and type(found.body) is S.IfThenElse
    assert found.body.else_case is None


def random_index(rng, depth):
    """Text of an integer expression of i and j."""
    if depth == 0:
        return rng.choice(["i", "j", "j", str(rng.randint(1, 9))])
    a, b = random_index(rng, depth - 1), random_index(rng, rng.randint(0, depth - 1))
    kind = rng.randint(0, 8)
    if kind < 3:
        return f"({a} {rng.choice('+-*')} {b})"
    if kind < 5:
        return f"({a} {rng.choice(['//', '%'])} {rng.randint(1, 9)})"
    if kind < 7:
        return f"T.{rng.choice(['min', 'max'])}({a}, {b})"
    if kind == 7:
        return f"T.Select({a} < {b}, {b}, {a})"
    scale = rng.choice([0.5, 2.0, 1.25])  # as resize does it: sums of floats are not those of ints
    return (f"T.Cast(\"int32\", T.floor(T.Cast(\"float32\", {a}) * T.float32({scale})"
            f" - T.float32({scale})))")


@pytest.mark.parametrize("seed", range(60))
def test_indices_of_vectors_mean_the_same(seed):
    rng = random.Random(seed)
    index = random_index(rng, 4)
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((32,), "float32")):
    for i in range(4):
        for j in T.vectorized(8):
            B[i * 8 + j] = A[{index} % 64]
""")
    vectors = VectorizeLoop()(IRModule({"main": func}))["main"]
    same_meaning(func, vectors)
    apply(Simplify(), vectors)


def reused(*loops):
    """Loops that follow each other with one variable, and a store of it to places of their own."""
    out = decl_buffer((64,), "int32", "B")
    var, parts, start = Var("i", "int32"), [], 0
    for low, extent, value in loops:
        y = Var("y", "int32") if value is None else REUSED
        store = S.BufferStore(out, var * 2 + (0 if value is None else y), (var + start,))
        body = store if value is None else S.LetStmt(y, value(var), store)
        parts.append(S.For(var, low, extent, S.ForKind.SERIAL, body))
        start += low + extent
    return PrimFunc([out], S.SeqStmt(parts), attrs={"global_symbol": "main"})


REUSED = Var("y", "int32")
ANY_LET = [None, lambda i: const(3), lambda i: const(-1), lambda i: i, lambda i: i * i]


@given(loops=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.sampled_from(ANY_LET)),
                      min_size=2, max_size=5))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_variables_that_several_statements_bind(loops):
    apply(Simplify(), reused(*loops))


def test_a_condition_on_memory_is_forgotten_where_that_is_written():
    @T.prim_func
    def counted(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        T.func_attr({"global_symbol": "main"})
        for i in range(4):
            if A[i] < 1000000 and B[i] < 1000000:
                A[i] = A[i] + 2000000
                if A[i] < 1000000:
                    B[i] = 5
                elif i < 4:
                    B[i] = 10

    after = apply(Simplify(), counted)
    branch = after.body.body.then_case.seq[1]
    assert isinstance(branch, S.IfThenElse)  # of A[i] nothing is known any more
    assert isinstance(branch.else_case, S.BufferStore)


def test_a_condition_on_memory_holds_where_that_is_only_read():
    @T.prim_func
    def copied(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        T.func_attr({"global_symbol": "main"})
        for i in range(4):
            if A[i] < 1000000:
                B[i] = 1
                if A[i] < 1000000:
                    B[i] = 5

    after = apply(Simplify(), copied)
    assert isinstance(after.body.body.then_case.seq[1], S.BufferStore)


def test_a_condition_on_memory_is_forgotten_where_anything_may_write_it():
    @T.prim_func
    def called(A: T.Buffer((4,), "int32")):
        T.func_attr({"global_symbol": "main"})
        if A[0] == 1:
            T.evaluate(T.call_extern("int32", "f", A.data))
            if A[0] == 1:
                A[1] = 5

    after = Simplify()(IRModule({"main": called}))["main"]
    assert isinstance(after.body.then_case.seq[1], S.IfThenElse)


@pytest.mark.parametrize("given_text, value, want", [
    ("i < j", "i < j + 1", "True"), ("i < j and j <= k", "i < k", "True"),
    ("i <= j", "j <= i", "j == i"), ("i != j", "j <= i", "j < i"), ("i <= 0", "i != 0", "i < 0"),
    ("i < j", "i < k", "i < k")])
def test_truth_values_are_simplified_under_conditions(given_text, value, want):
    text = """
    @T.prim_func
    def main(A: T.Buffer((1,), "bool"), i: T.int32, j: T.int32, k: T.int32):
        if {}:
            A[0] = {}
    """
    after, expected = (from_source(text.format(given_text, v)) for v in (value, want))
    with PassContext(config={"tir.Simplify": {"transitively_prove_inequalities": True}}):
        after = Simplify()(IRModule({"main": after}))["main"]
    assert structural_equal(after, expected), after.script()


@pytest.mark.parametrize("value, want", [
    ("n < 5 and n < 10", "n < 5"), ("n < 10 and n < 5", "n < 5"), ("n < m + 5 or n < m + 10",
                                                                  "n < m + 10")])
def test_each_side_of_and_is_simplified_under_the_other_when_asked(value, want):
    text = """
    @T.prim_func
    def main(A: T.Buffer((1,), "bool"), n: T.int32, m: T.int32):
        A[0] = {}
    """
    before, expected = (from_source(text.format(v)) for v in (value, want))
    with PassContext(config={"tir.Simplify": {"apply_constraints_to_boolean_branches": True,
                                              "transitively_prove_inequalities": True}}):
        after = Simplify()(IRModule({"main": before}))["main"]
    assert structural_equal(after, expected), after.script()


def test_truth_values_of_data_that_wraps_around_stay():
    @T.prim_func
    def func(A: T.Buffer((1,), "int32"), B: T.Buffer((1,), "bool")):
        B[0] = A[0] + 1 > A[0]

    import numpy as np

    from mlc_lab.backend.interp import interpret
    after = Simplify()(IRModule({"main": func}))
    out = np.ones(1, "bool")
    interpret(after, np.array([2**31 - 1], "int32"), out)
    assert not out[0]


def test_a_store_of_what_is_there_is_removed():
    @T.prim_func
    def func(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            A[i] = A[i // 4 * 4 + i % 4]
        for i in range(16):
            B[i] = A[i]
            B[i] = B[i]

    for step in (RemoveNoOp(), Simplify()):
        after = apply(step, func)
        assert isinstance(after.body, S.For) and isinstance(after.body.body, S.BufferStore)


def test_a_let_that_nobody_reads_leaves_the_effect_of_its_value():
    @T.prim_func
    def func():
        v = T.call_extern("int32", "f")
        T.evaluate(0)

    after = RemoveNoOp()(IRModule({"main": func}))["main"]
    assert isinstance(after.body, S.Evaluate) and after.body.value.op.name == "tir.call_extern"
