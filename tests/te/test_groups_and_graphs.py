"""Groups of stages, loops' relations and attributes, and the graph helpers of te.schedule."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import te
from mlc_lab.backend.interp import interpret
from mlc_lab.te import schedule as S


def chain(n=12, m=8):
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] + 1, name="B")
    C = te.compute((n, m), lambda i, j: B[i, j] * 2, name="C")
    D = te.compute((n, m), lambda i, j: C[i, j] - 3, name="D")
    return A, B, C, D


def runs(s, args, want, *inputs):
    """The scheduled program gives what numpy gives."""
    out = np.zeros(want.shape, "float32")
    interpret(s.to_module(args), *inputs, out)
    np.testing.assert_allclose(out, want, rtol=1e-5)


def test_stages_of_a_group_are_computed_where_the_group_is():
    A, B, C, D = chain()
    s = te.create_schedule(D.op)
    group = s.create_group(outputs=C, inputs=A)
    assert s[B].group is group and s[C].group is group and s[D].group is None
    assert group.num_child_stages == 2
    group.compute_at(s[D], D.op.axis[0])
    assert group.attach_stage is s[D]
    bounds = S.InferBound(s)
    assert [bounds[t.op.axis[0]].extent.value for t in (B, C)] == [1, 1]
    x = np.random.default_rng(0).standard_normal((12, 8)).astype("float32")
    runs(s, [A, D], (x + 1) * 2 - 3, x)


def test_a_group_of_a_group_counts_as_one():
    A, B, C, D = chain()
    s = te.create_schedule(D.op)
    inner = s.create_group(outputs=B, inputs=A)
    outer = s.create_group(outputs=C, inputs=A)
    assert inner.group is outer and outer.num_child_stages == 2
    assert s.groups == [inner, outer]
    with pytest.raises(tvm.TVMError, match="stages of a group are computed at stages of the group"):
        s[B].compute_at(s[D], D.op.axis[0])
    s2 = te.create_schedule(D.op)
    s2.create_group(outputs=C, inputs=A)
    with pytest.raises(tvm.TVMError, match="a group holds whole groups"):
        s2.create_group(outputs=D, inputs=B)


def test_the_steps_of_a_scan_are_a_group():
    X, state = te.placeholder((8, 4), name="X"), te.placeholder((8, 4), name="state")
    init = te.compute((1, 4), lambda _, i: X[0, i], name="init")
    twice = te.compute((8, 4), lambda t, i: state[t - 1, i] * 2, name="twice")
    update = te.compute((8, 4), lambda t, i: twice[t, i] + X[t, i], name="update")
    res = te.scan(init, update, state, inputs=[X])
    s = te.create_schedule(res.op)
    assert s[twice].group is s[update].group is not None
    assert s[update].attach_type == 5 and s[twice].attach_type == 1
    assert set(S.ScanGetBody(res.op)) == {res.op, twice.op, update.op}
    assert [int(v) for v in S.ScanFixPointAnalysis(res.op).values()] == [1]
    with pytest.raises(tvm.TVMError, match="stages of the group"):
        s[twice].compute_at(s[init], init.op.axis[1])
    path = S.CreateAttachPath(s)
    assert path[update.op] == [res.op.scan_axis]


def test_a_scan_that_moves_along_an_axis_has_no_fixed_point_there():
    X = te.placeholder((6, 4, 4), name="X")
    state = te.placeholder((6, 4, 4), name="state")
    init = te.compute((1, 4, 4), lambda _, i, j: X[0, i, j])
    update = te.compute((6, 4, 4), lambda t, i, j: X[t, j, i] + state[t - 1, i, 3])
    res = te.scan(init, update, state, inputs=[X])
    found = S.ScanFixPointAnalysis(res.op)
    assert [int(found[axis]) for axis in res.op.spatial_axis_] == [1, 0]


def test_relations_and_attributes_say_what_became_of_loops():
    A, B, C, D = chain()
    s = te.create_schedule(D.op)
    xo, yo, xi, yi = s[D].tile(D.op.axis[0], D.op.axis[1], 4, 4)
    fused = s[D].fuse(xo, yo)
    s[D].vectorize(yi)
    s[D].pragma(xi, "unroll")
    s[D].pragma(fused, "note", 3)
    kinds = [type(r) for r in s[D].relations]
    assert kinds == [S.Split, S.Split, S.Fuse]
    assert s[D].all_iter_vars == [*D.op.axis, xo, xi, yo, yi, fused]
    attrs = s[D].iter_var_attrs
    assert attrs[yi].iter_type == S.IterVar.Vectorized
    assert attrs[xi].iter_type == S.IterVar.Unrolled
    assert attrs[fused].pragma_keys[0].value == "note" and int(attrs[fused].pragma_values[0]) == 3


def test_a_fusion_of_no_loops_is_a_loop_of_one_iteration():
    A = te.placeholder((10,), name="A", dtype="int32")
    k = te.reduce_axis((0, 10))
    B = te.compute((), lambda: te.sum(A[k], k), name="B")
    s = te.create_schedule(B.op)
    single = s[B].fuse(*B.op.axis)
    assert isinstance(s[B].relations[0], S.Singleton) and s[B].leaf_iter_vars[0] is single
    s[B].split(single, nparts=20)
    f = tvm.build(s, [A, B], "llvm")
    out = tvm.nd.array(np.zeros((), "int32"))
    f(tvm.nd.array(np.arange(10, dtype="int32")), out)
    assert out.numpy() == 45


def test_steps_that_cannot_be_are_refused_at_once():
    A, B, C, D = chain()
    s = te.create_schedule(D.op)
    xo, xi = s[D].split(D.op.axis[0], factor=4)
    for wrong in (lambda: s[D].fuse(xo, D.op.axis[1]), lambda: s[D].reorder(xi, xo, xi)):
        with pytest.raises(RuntimeError):
            wrong()
    k = te.reduce_axis((0, 8), "k")
    E = te.compute((1,), lambda i: te.sum(A[i, k], axis=k))
    with pytest.raises(RuntimeError, match="rfactor the part"):
        te.create_schedule(E.op)[E].vectorize(k)


def test_inlining_by_form():
    for inline in (S.AutoInlineElemWise, S.AutoInlineBroadcast, S.AutoInlineInjective):
        A, B, C, D = chain()
        s = te.create_schedule(D.op)
        assert s[B].attach_type == 1
        inline(s)
        assert s[B].attach_type == s[C].attach_type == 2
        x = np.ones((12, 8), "float32")
        runs(s, [A, D], (x + 1) * 2 - 3, x)


def test_the_graph_of_reads():
    A, B, C, D = chain()
    graph = S.CreateReadGraph([D.op])
    assert graph[C.op] == [B] and graph[A.op] == []
    assert S.PostDFSOrder([D.op], graph) == [A.op, B.op, C.op, D.op]


def test_a_record_of_the_steps_is_kept_when_asked_for():
    A, B, C, D = chain()
    assert te.create_schedule(D.op).schedule_record == []
    with tvm.transform.PassContext(config={"te.keep_schedule_record": True}):
        s = te.create_schedule(D.op)
        s[D].split(D.op.axis[0], 4)
        s[C].compute_at(s[D], D.op.axis[1])
    assert s.primitive_record == ["vanilla", "split", "compute_at"]
    assert len(s.schedule_record[0][s[D]]) == 2 and len(s.schedule_record[1][s[D]]) == 3


def test_the_slices_of_rfactor_reduce_over_the_loops_themselves():
    A = te.placeholder((6, 16), name="A")
    k = te.reduce_axis((0, 16), "k")
    B = te.compute((6,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(k, factor=4)
    BF = s.rfactor(B, ki)
    assert list(BF.op.reduce_axis) == [ko]


@pytest.mark.parametrize("n, factor", [(16, 4), (10, 4), (7, 8)])
def test_memory_of_a_cache_is_laid_out_as_the_loops_are(n, factor):
    A = te.placeholder((n, 6), name="A")
    k = te.reduce_axis((0, 6), "k")
    B = te.compute((n,), lambda i: te.max(A[i, k], axis=k), name="B")
    C = te.compute((n, 6), lambda i, j: A[i, j] * 3 + B[i], name="C")
    x = np.random.default_rng(0).standard_normal((n, 6)).astype("float32")
    s = te.create_schedule(C.op)
    xo, xi = s[C].split(C.op.axis[0], factor=factor)
    s[C].reorder(xo, C.op.axis[1], xi)
    cache = s.cache_write(C, "global")
    assert [int(d) for d in cache.shape] == [-(-n // factor), 6, factor]
    s[B].split(B.op.axis[0], factor=factor)
    assert s.cache_write(B, "global").ndim == 2
    runs(s, [A, C], x * 3 + x.max(1, keepdims=True), x)


def test_all_results_of_a_stage_are_cached_together():
    A = te.placeholder((9, 5), name="A")
    B, C = te.compute((9, 5), lambda i, j: (A[i, j] + 1, A[i, j] * 2), name="B")
    s = te.create_schedule(B.op)
    made = s.cache_write([C, B], "local")
    assert [t.value_index for t in made] == [1, 0]
    x = np.random.default_rng(0).standard_normal((9, 5)).astype("float32")
    b, c = np.zeros_like(x), np.zeros_like(x)
    interpret(s.to_module([A, B, C]), x, b, c)
    np.testing.assert_allclose([b, c], [x + 1, x * 2])
    with pytest.raises(tvm.TVMError, match="all results of one stage"):
        te.create_schedule(B.op).cache_write([B], "local")


def test_a_reducer_may_name_an_axis():
    X = te.placeholder((10,), name="X")

    def row(n):
        k = te.reduce_axis((0, n + 1))
        most = te.comm_reducer(lambda x, y: te.max(x, y + n.astype("float32")),
                               lambda dtype: tvm.tir.const(-1, dtype) - n.astype(dtype))
        return most(X[k], axis=k)

    Y = te.compute((10,), row, name="Y")
    x = np.random.default_rng(0).standard_normal(10).astype("float32")
    # the reducer is no commutative one, but each step of it is known
    want = np.array([max(-1.0 - n, *(x[: n + 1] + n)) for n in range(10)])
    for cache in (False, True):
        s = te.create_schedule(Y.op)
        if cache:
            s.cache_write(Y, "local")
        runs(s, [X, Y], want, x)
        f = tvm.build(s, [X, Y], "llvm")
        out = tvm.nd.array(np.zeros(10, "float32"))
        f(tvm.nd.array(x), out)
        np.testing.assert_allclose(out.numpy(), want, rtol=1e-5)


def test_memory_of_the_kind_it_is_in_changes_nothing():
    A, B, C, D = chain()
    s = te.create_schedule(D.op)
    s[D].set_scope("global")
    x = np.ones((12, 8), "float32")
    runs(s, [A, D], (x + 1) * 2 - 3, x)
