"""Counting operations: what counts, what does not, and what cannot be counted."""

import pytest

from mlc_lab import tir
from mlc_lab.ir import IRModule
from mlc_lab.lower import lower
from mlc_lab.observe import flops
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source
from mlc_lab.tir import Buffer, PrimFunc, decl_buffer
from mlc_lab.tir.stmt import BufferStore, For, ForKind, IfThenElse, SeqStmt, While


def loops(extents, make):
    """A nest of serial loops; `make(*vars)` gives the innermost statement."""
    variables = [tir.Var(f"i{n}", "int32") for n in range(len(extents))]
    body = make(*variables)
    for var, extent in reversed(list(zip(variables, extents))):
        body = For(var, 0, extent, ForKind.SERIAL, body)
    return body


def matmul(n, m, k):
    a, b, c = decl_buffer((n, k), name="A"), decl_buffer((k, m), name="B"), decl_buffer((n, m))
    load = tir.BufferLoad

    def body(i, j, r):
        value = load(c, [i, j]) + load(a, [i, r]) * load(b, [r, j])
        return BufferStore(c, value, [i, j])

    return PrimFunc([a, b, c], loops([n, m, k], body))


def one(value, buffer, extent=10):
    return PrimFunc([buffer], loops([extent], lambda i: BufferStore(buffer, value(i), [i])))


def test_a_matrix_product_counts_two_operations_an_iteration():
    assert flops.count(matmul(3, 5, 7)) == 2 * 3 * 5 * 7


def test_a_module_counts_all_its_functions():
    assert flops.count(IRModule({"f": matmul(2, 2, 2), "g": matmul(3, 3, 3)})) == 16 + 54


def test_indices_do_not_count():
    buffer = decl_buffer((100,), name="A")
    assert flops.count(one(lambda i: tir.BufferLoad(buffer, [i * 3 + 1]), buffer)) == 0


def test_an_intrinsic_counts_as_one():
    buffer = decl_buffer((10,), name="A")
    assert flops.count(one(lambda i: tir.exp(tir.BufferLoad(buffer, [i])), buffer)) == 10


def test_of_branches_the_larger_counts():
    buffer = decl_buffer((10,), name="A")

    def body(i):
        load = tir.BufferLoad(buffer, [i])
        return IfThenElse(
            i < 5, BufferStore(buffer, load + 1.0, [i]), BufferStore(buffer, load * 2.0 + 1.0, [i])
        )

    assert flops.count(PrimFunc([buffer], loops([10], body))) == 20


def test_statements_add_up():
    buffer = decl_buffer((10,), name="A")

    def body(i):
        store = BufferStore(buffer, tir.BufferLoad(buffer, [i]) + 1.0, [i])
        return SeqStmt((store, store))

    assert flops.count(PrimFunc([buffer], loops([10], body))) == 20


def test_symbolic_sizes_are_taken_by_variable_or_by_name():
    n = tir.Var("n", "int32")
    func = matmul(n, n, n)
    assert flops.count(func, {"n": 4}) == flops.count(func, {n: 4}) == 128
    with pytest.raises(flops.Uncountable, match="size n is not known"):
        flops.count(func)


def test_a_while_loop_cannot_be_counted():
    buffer: Buffer = decl_buffer((1,), name="A")
    zero = tir.BufferLoad(buffer, [0])
    body = While(zero < 1.0, BufferStore(buffer, zero + 1.0, [0]))
    with pytest.raises(flops.Uncountable, match="while"):
        flops.count(PrimFunc([buffer], body))


@pytest.mark.parametrize("factor", [3, 7, 16, 64])
def test_iterations_that_a_predicate_leaves_out_do_not_count(factor):
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((20, 30), "float32"), B: T.Buffer((30, 50), "float32"),
         C: T.Buffer((20, 50), "float32")):
    for i, j, k in T.grid(20, 50, 30):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""")
    sch = Schedule(func)
    i, j, k = sch.get_loops("C")
    i_0, i_1 = sch.split(i, [None, 8])
    j_0, j_1 = sch.split(j, [None, factor])
    sch.reorder(i_0, j_0, k, i_1, j_1)
    assert flops.count(sch.mod) == flops.count(func) == 2 * 20 * 50 * 30
    assert flops.count(lower(sch.mod)) == 2 * 20 * 50 * 30
