"""Tensor expressions become the functions TVM 0.18 makes of them, and compute what they say."""

import numpy as np
import pytest

from mlc_lab import te, tir
from mlc_lab.backend.interp import interpret
from mlc_lab.tir.functor import pre_order

RNG = np.random.default_rng(0)


def rand(*shape):
    return RNG.standard_normal(shape).astype("float32")


def matmul(A, B):
    k = te.reduce_axis((0, A.shape[1]), name="k")
    return te.compute((A.shape[0], B.shape[1]),
                      lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="matmul")


def relu(A):
    return te.compute(A.shape, lambda i, j: te.max(A[i, j], 0), name="relu")


@pytest.fixture
def chain():
    A, B = te.placeholder((4, 6), name="A"), te.placeholder((6, 5), name="B")
    C = matmul(A, B)
    return A, B, C, relu(C)


FUSED = '''\
# from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((6, 5), "float32"), relu: T.Buffer((4, 5), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    matmul = T.alloc_buffer((4, 5))
    for i, j, k in T.grid(4, 5, 6):
        with T.block("matmul"):
            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
            T.reads(A[v_i, v_k], B[v_k, v_j])
            T.writes(matmul[v_i, v_j])
            with T.init():
                matmul[v_i, v_j] = T.float32(0.0)
            matmul[v_i, v_j] = matmul[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
    for i, j in T.grid(4, 5):
        with T.block("relu"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            T.reads(matmul[v_i, v_j])
            T.writes(relu[v_i, v_j])
            relu[v_i, v_j] = T.max(matmul[v_i, v_j], T.float32(0.0))'''  # noqa: E501


def test_tensors_in_between_are_allocated(chain):
    A, B, _, D = chain
    assert te.create_prim_func([A, B, D]).script().strip() == FUSED


def test_tensors_in_the_list_are_parameters(chain):
    A, B, C, D = chain
    func = te.create_prim_func([A, B, C, D])
    assert "alloc_buffer" not in func.script() and len(func.params) == 4
    a, b, c, d = rand(4, 6), rand(6, 5), np.zeros((4, 5), "float32"), np.zeros((4, 5), "float32")
    interpret(func, a, b, c, d)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    np.testing.assert_allclose(d, np.maximum(a @ b, 0), rtol=1e-5)


def test_sizes_can_be_widened(chain):
    A, B, _, D = chain
    text = te.create_prim_func([A, B, D], index_dtype_override="int64").script()
    assert 'A: T.Buffer((T.int64(4), T.int64(6)), "float32")' in text
    assert "T.grid(T.int64(4), T.int64(5), T.int64(6))" in text


def test_symbolic_sizes():
    n, m = te.var("n"), te.size_var("m")
    A = te.placeholder((n, m), name="A")
    B = te.compute((n * 2, m), lambda i, j: A[i // 2, j] + i, name="B")
    for override in (None, "int64"):
        func = te.create_prim_func([A, B], override)
        assert func.script().count("var_A") == 2
        a, b = rand(3, 4), np.zeros((6, 4), "float32")
        interpret(func, a, b)
        np.testing.assert_allclose(b, a.repeat(2, 0) + np.arange(6)[:, None], rtol=1e-6)


def test_reductions_over_tuples_have_several_outputs():
    argmax = te.comm_reducer(
        lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
        lambda t0, t1: (tir.const(-1, t0), te.min_value(t1)), name="argmax")
    A = te.placeholder((5, 7), name="A")
    k = te.reduce_axis((0, 7), name="k")
    at, value = te.compute((5,), lambda i: argmax((k.var, A[i, k]), axis=k), name="best")
    a = rand(5, 7)
    out, high = np.zeros(5, "int32"), np.zeros(5, "float32")
    interpret(te.create_prim_func([A, at, value]), a, out, high)
    assert (out == a.argmax(1)).all() and (high == a.max(1)).all()


def test_several_elementwise_outputs_share_their_loops():
    A = te.placeholder((3, 4), name="A")
    two = te.compute(A.shape, lambda i, j: (A[i, j] + 1.0, A[i, j] * 2.0), name="two")
    func = te.create_prim_func([A, *two])
    assert func.script().count("T.grid") == 1
    a, b, c = rand(3, 4), np.zeros((3, 4), "float32"), np.zeros((3, 4), "float32")
    interpret(func, a, b, c)
    assert (b == a + 1).all() and (c == a * 2).all()


def test_where_leaves_elements_out_and_init_is_the_start():
    A = te.placeholder((5, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    B = te.compute((5,), lambda i: te.sum(A[i, k], axis=k, where=k < i, init=2.0), name="B")
    a, b = rand(5, 6), np.zeros(5, "float32")
    interpret(te.create_prim_func([A, B]), a, b)
    np.testing.assert_allclose(b, 2 + np.tril(a[:, :5], -1).sum(1), rtol=1e-4)


def test_foreign_code_gets_tensors():
    A = te.placeholder((3, 4), name="A")
    B = te.compute(A.shape, lambda *i: A(*i) + 1.0, name="B")
    C = te.extern(A.shape, [B], lambda ins, outs: tir.call_packed("twice", ins[0], outs[0]),
                  name="C")
    a, c = rand(3, 4), np.zeros((3, 4), "float32")

    def twice(x, y):
        np.copyto(np.asarray(y), 2 * np.asarray(x))

    interpret(te.create_prim_func([A, C]), a, c, packed={"twice": twice})
    np.testing.assert_allclose(c, 2 * (a + 1))


def test_a_primfunc_can_be_a_part(chain):
    A, B, C, _ = chain
    X = te.placeholder((4, 5), name="X")
    D = te.extern_primfunc([C], te.create_prim_func([X, relu(X)]))
    a, b, d = rand(4, 6), rand(6, 5), np.zeros((4, 5), "float32")
    interpret(te.create_prim_func([A, B, D]), a, b, d)
    np.testing.assert_allclose(d, np.maximum(a @ b, 0), rtol=1e-5)


def test_no_dimensions():
    A = te.placeholder((4,), name="A")
    k = te.reduce_axis((0, 4), name="k")
    S = te.compute((), lambda: te.sum(A[k], axis=k), name="S")
    T = te.compute((), lambda: S() * 2.0, name="T")
    a, t = rand(4), np.zeros((), "float32")
    interpret(te.create_prim_func([A, T]), a, t)
    np.testing.assert_allclose(t, 2 * a.sum(), rtol=1e-5)


def test_a_sum_of_no_terms_is_its_start():
    A = te.placeholder((3, 0), name="A")
    k = te.reduce_axis((0, 0), name="k")
    C = te.compute((3,), lambda i: te.max(A[i, k], axis=k), name="C")
    c = np.ones(3, "float32")
    interpret(te.create_prim_func([A, C]), np.zeros((3, 0), "float32"), c)
    assert (c == np.finfo("float32").min).all()


def test_attrs_annotate_the_block_and_name_free_layouts():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i], name="B", attrs={"layout_free_placeholders": [A], "n": 3})
    text = te.create_prim_func([A, B]).script()
    assert 'T.func_attr({"layout_free_buffers": [0], "tir.noalias": T.bool(True)})' in text
    assert 'T.block_attr({"n": 3})' in text


def test_equal_names_are_told_apart():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="x")
    C = te.compute((4,), lambda i: B[i] + 1.0, name="x")
    text = te.create_prim_func([A, C]).script()
    assert 'T.block("x")' in text and 'T.block("x_1")' in text


@pytest.mark.parametrize("make, words", [
    (lambda A, k: te.create_prim_func([te.compute((4,), lambda i: A[i, i])]),
     "reads the placeholder A, which is not among the arguments"),
    (lambda A, k: te.compute((4,), lambda i: te.sum(A[i, k], axis=k) + 1.0), "of its own"),
    (lambda A, k: A[0, 0, 0], "2 dimensions \\(4, 4\\) and is read with 3"),
    (lambda A, k: te.compute((4, 4), lambda i: A[i, i]), "they must be as many"),
    (lambda A, k: te.compute((4,), lambda i: A[i]), "give the others too"),
    (lambda A, k: te.compute((4,), lambda i: None), "returned None"),
    (lambda A, k: te.placeholder((4, -1)), "negative extent: -1"),
    (lambda A, k: te.create_prim_func([A, A]), "twice"),
])
def test_mistakes_are_explained(make, words):
    A = te.placeholder((4, 4), name="A")
    with pytest.raises((ValueError, TypeError), match=words):
        make(A, te.reduce_axis((0, 4), name="k"))


def test_an_element_with_nothing_to_reduce_is_what_a_sum_starts_from():
    A = te.placeholder((4, 4), name="A")

    def below(i, j):
        k = te.reduce_axis((j + 1, i + 1), "k")
        return te.max(A[i, k], axis=k)

    B = te.compute((4, 4), below, name="B")
    a, b = np.arange(16, dtype="float32").reshape(4, 4), np.zeros((4, 4), "float32")
    interpret(te.create_prim_func([A, B]), a, b)
    low = np.finfo("float32").min
    expected = [[max([*a[i, j + 1:i + 1], low]) for j in range(4)] for i in range(4)]
    np.testing.assert_array_equal(b, np.array(expected, "float32"))


@pytest.mark.parametrize("reduce", [te.sum, te.max, te.min])
def test_a_reduction_over_no_axes_is_its_one_term(reduce):
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: reduce(A[i], axis=[]), name="B")
    a, b = np.arange(4, dtype="float32") - 2, np.full(4, 9, "float32")
    interpret(te.create_prim_func([A, B]), a, b)
    np.testing.assert_array_equal(b, a)


DEPENDENT = {
    "triangle": (0, 4, lambda x: 0, lambda x: x + 1),
    "nothing at first": (0, 4, lambda x: 0, lambda x: x),
    "begins further in": (0, 4, lambda x: 3 - x, lambda x: x + 1),
    "window": (1, 4, lambda x: x, lambda x: 3),
    "two steps at a time": (2, 3, lambda x: 2 * x - 4, lambda x: 3),
}


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", DEPENDENT)
def test_a_reduction_axis_may_depend_on_another(name, turned, moved):
    from mlc_lab.build import build

    low, count, start, length = DEPENDENT[name]
    A = te.placeholder((3, 12), name="A")
    k = te.reduce_axis((low, low + count), name="k")
    m = te.reduce_axis((start(k), start(k) + length(k)), name="m")
    B = te.compute((3,), lambda i: te.sum(A[i, k + m], axis=[m, k] if turned else [k, m]), "B")
    C = te.compute((3,), lambda i: B[i] * 2, "C")
    a, c = rand(3, 12), np.zeros(3, "float32")
    expected = 2 * sum(a[:, x + y] for x in range(low, low + count)
                       for y in range(start(x), start(x) + length(x)))
    interpret(te.create_prim_func([A, C]), a, c)
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-6)
    sch = te.create_schedule(C.op)
    if moved:
        sch[B].compute_at(sch[C], C.op.axis[0])
    c[:] = 0
    build(sch, [A, C])(a, c)
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-6)


def test_reduction_axes_that_depend_on_each_other_are_refused():
    A = te.placeholder((4,), name="A")
    k, m = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 4), name="m")
    k, m = (te.reduce_axis((0, n.var + 1), name=x) for n, x in ((m, "k"), (k, "m")))
    turned = te.reduce_axis((0, k.var), name="m")
    axes = [k.replace(dom=k.dom.replace(extent=turned.var)), turned]
    B = te.compute((1,), lambda i: te.sum(A[axes[0].var + turned], axis=axes), "B")
    with pytest.raises(ValueError, match="depend on each other"):
        te.create_prim_func([A, B])


def test_a_choice_between_an_index_and_a_number_has_one_type_when_indices_are_widened():
    A = te.placeholder((6,), name="A")
    B = te.compute((6,), lambda i: tir.Select(A[i] > 0, i, tir.const(-1, "int32")), "B")
    C = te.compute((6,), lambda i: tir.if_then_else(A[i] > 0, tir.max(i, 2), -1), "C")
    D = te.compute((6,), lambda i: tir.shift_left(i, tir.const(1, "int32")), "D")
    a = np.array([1, -1, 2, -2, 3, 4], "float32")
    outs = [np.zeros(6, "int32") for _ in range(3)]
    func = te.create_prim_func([A, B, C, D], "int64")
    from mlc_lab.build import build

    for run in (lambda *x: interpret(func, *x), build(func)):
        run(a, *outs)
        np.testing.assert_array_equal(outs[0], [0, -1, 2, -1, 4, 5])
        np.testing.assert_array_equal(outs[1], [2, -1, 2, -1, 4, 5])
        np.testing.assert_array_equal(outs[2], 2 * np.arange(6))


def test_an_index_that_is_rounded_is_widened_too():
    A = te.placeholder((6,), name="A")
    where = te.placeholder((6,), "int32", name="where")
    half = tir.const(0.5, "float32")
    B = te.compute((6,), lambda i: A[tir.min((i.astype("float32") * half).astype("int32"), 5)], "B")
    C = te.compute((6,), lambda i: A[tir.max(where[i], 0)], "C")
    func = te.create_prim_func([A, where, B, C], "int64")
    loads = [n for n in pre_order(func.body) if isinstance(n, tir.BufferLoad)]
    assert {i.dtype for n in loads for i in n.indices} == {"int64"}
    a, at = np.arange(6, dtype="float32") * 3, np.array([3, -1, 0, 5, 5, 2], "int32")
    b, c = np.zeros(6, "float32"), np.zeros(6, "float32")
    interpret(func, a, at, b, c)
    np.testing.assert_array_equal(b, a[np.arange(6) // 2])
    np.testing.assert_array_equal(c, a[np.maximum(at, 0)])


def test_a_load_of_a_tensor_may_be_made_by_hand():
    A = te.placeholder((11,), name="A")
    B = te.compute((), lambda: tir.const(2, "float32"), name="B")
    C = te.compute((11,), lambda x: A[x] + tir.ProducerLoad(B, []), name="C")
    a, c = np.arange(11, dtype="float32"), np.zeros(11, "float32")
    interpret(te.create_prim_func([C, A]), c, a)
    np.testing.assert_array_equal(c, a + 2)


def test_a_size_that_was_narrowed_is_a_parameter_in_the_index_type_asked_for():
    n = te.var("n", "int64")
    A = te.placeholder((8,), name="A")
    B = te.compute((n.astype("int32"),), lambda i: A[i % 8] + 1.0, name="B")
    func = te.create_prim_func([A, B], index_dtype_override="int64")
    assert isinstance(func.buffers[1].shape[0], tir.Var)
    out = np.zeros(11, "float32")
    interpret(func, np.arange(8, dtype="float32"), out)
    np.testing.assert_array_equal(out, np.arange(11) % 8 + 1)
