"""te.schedule.InferBound and ScheduleOps, and te.tag_scope."""

import pytest

import mlc_lab as tvm
from mlc_lab import te
from mlc_lab.te import schedule as S


def chain():
    A = te.placeholder((20, 30), name="A")
    B = te.compute((20, 30), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((20, 28), lambda i, j: B[i, j] + B[i, j + 2], name="C")
    return A, B, C


def extents(s, *axes):
    bounds = S.InferBound(s)
    return [tvm.tir.op.as_int(bounds[axis].extent) for axis in axes]


def test_stages_by_themselves():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=8)
    assert extents(s, *C.op.axis, outer, inner, *B.op.axis) == [20, 28, 3, 8, 20, 30]


def test_a_stage_at_a_loop_of_its_reader():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    jo, ji = s[C].split(C.op.axis[1], factor=7)
    s[B].compute_at(s[C], jo)
    assert extents(s, *B.op.axis) == [1, 9]
    fused = s[B].fuse(*B.op.axis)
    assert extents(s, fused, jo) == [9, 4]


def test_what_is_inlined_and_what_has_a_size_of_its_own():
    n = te.size_var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_inline()
    bounds = S.InferBound(s)
    assert "n" in str(bounds[C.op.axis[0]].extent) and bounds[B.op.axis[0]] is B.op.axis[0].dom


def test_the_scheduled_program():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    body = S.ScheduleOps(s, S.InferBound(s))
    assert [b.name_hint for b in blocks(body)] == ["B", "C"]


def blocks(body):
    found = []
    tvm.tir.stmt_functor.post_order_visit(body, lambda n: found.append(n) if isinstance(
        n, tvm.tir.Block) and n.iter_vars else None)
    return found


def test_tags():
    A, _, _ = chain()
    with te.tag_scope("conv"):
        B = te.compute((4,), lambda i: A[i, 0], name="B")
        C = te.compute((4,), lambda i: A[i, 0], name="C", tag="own")
        with pytest.raises(ValueError, match="'relu' within that of 'conv'"):
            te.tag_scope("relu")(te.compute)((4,), lambda i: A[i, 0])
    assert (B.op.tag, C.op.tag) == ("conv", "own")
    assert te.tag_scope("pool")(te.compute)((4,), lambda i: A[i, 0]).op.tag == "pool"
    assert te.compute((4,), lambda i: A[i, 0]).op.tag == ""


def test_a_part_is_no_longer_than_its_loop():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=32)
    parts = s[C].split(C.op.axis[1], nparts=64)
    assert extents(s, outer, inner, *parts) == [1, 20, 28, 1]
    assert "if" not in str(tvm.lower(s, [A, C]))


def test_a_stage_begins_where_its_reader_needs_it():
    A, B, C = chain()
    s = te.create_schedule(C.op)
    jo, ji = s[C].split(C.op.axis[1], factor=7)
    s[B].compute_at(s[C], jo)
    row, column = (S.InferBound(s)[axis].min for axis in B.op.axis)
    assert row is C.op.axis[0].var
    assert tvm.ir.structural_equal(column, jo.var * 7)


def test_a_schedule_as_loops_before_its_memory_is_flat():
    A = te.placeholder((43, 2), name="A")
    B = te.compute(A.shape, lambda i, j: A[i, j] + 2.0, name="B")
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], factor=4)
    mod = tvm.driver.build_module.schedule_to_module(s, [A, B], "scaled")
    text = mod["scaled"].script()
    assert "if i_0 * 4 + i_1 < 43:" in text and "B[i_0 * 4 + i_1, j]" in text
    assert "T.block" not in text
