"""reindex, reindex_cache_read, reindex_cache_write: copies laid out as a block iterates."""

import pytest

from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source, tir as T

from .common import chain, check, kept, matmul, mm_relu, refused, stencil
from .test_cache_read import start


@T.prim_func
def conv2d(X: T.Buffer((1, 6, 6, 2), "float32"), W: T.Buffer((3, 3, 2, 4), "float32"),
           Y: T.Buffer((1, 4, 4, 4), "float32")):
    for n, h, w, co, rh, rw, rc in T.grid(1, 4, 4, 4, 3, 3, 2):
        with T.block("Y"):
            vn, vh, vw, vco, vrh, vrw, vrc = T.axis.remap("SSSSRRR", [n, h, w, co, rh, rw, rc])
            with T.init():
                Y[vn, vh, vw, vco] = T.float32(0)
            Y[vn, vh, vw, vco] = Y[vn, vh, vw, vco] + X[
                vn, vh + vrh, vw + vrw, vrc] * W[vrh, vrw, vrc, vco]


@T.prim_func
def padded(A: T.Buffer((8,), "float32"), B: T.Buffer((10,), "float32")):
    for i in range(10):
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            B[vi] = T.if_then_else(vi >= 1 and vi < 9, A[vi - 1], T.float32(0))


def test_reads_and_writes_at_plain_iterators():
    sch, before = start(conv2d)
    block = sch.get_block("Y")
    first = sch.reindex(block, ("read", 0))
    sch.reindex(block, "W")
    last = sch.reindex(block, ("write", 0))
    assert sch.get(first).name_hint == "X_reindex_reindex"
    assert sch.get(last).name_hint == "Y_reindex"
    assert [len(r.buffer.shape) for r in sch.get(block).reads] == [6, 4]
    check(sch, before)


def test_the_copy_goes_before_the_reader_and_after_the_writer():
    sch, before = start(chain)
    sch.reindex("C", ("read", 0))
    sch.reindex("C", ("write", 0))
    names = [sch.get(b).name_hint for b in sch.get_child_blocks(sch.get_block("root"))]
    assert names == ["B", "B_reindex_reindex", "C", "C_reindex", "D"]
    check(sch, before)


def test_after_a_split_with_a_remainder():
    sch, before = start(chain)
    sch.split(sch.get_loops(sch.get_block("C"))[0], factors=[None, 5])
    sch.reindex("C", ("read", 0))
    sch.reindex_cache_read("C", 0, "local", lambda i, j: (j, i))
    sch.reindex_cache_write("C", 0, "local", lambda i, j: (i // 4, j, i % 4))
    check(sch, before)


@T.prim_func
def first_two(A: T.Buffer((4, 4), "float32"), B: T.Buffer((2,), "float32")):
    for i, j, k in T.grid(1, 2, 2):
        with T.block("B"):
            vi = T.axis.spatial(2, j * 2 + k)
            T.where(i * 2 + j < 1)
            B[vi] = A[vi, vi] * T.float32(2)


@pytest.mark.parametrize("act", ["reindex_cache_read", "reindex_cache_write"])
def test_a_condition_on_loops_that_the_copy_does_not_have(act):
    """Its iterators stay within their domains all the same."""
    sch, before = start(first_two)
    getattr(sch, act)("B", 0, "global", lambda i: (i,))
    condition = next(line for line in sch.mod.script().split("\n") if "T.where(j * 2 + k" in line)
    assert condition.strip() == "T.where(j * 2 + k < 2)"
    check(sch, before)


def test_a_map_lays_out_what_is_read():
    sch, before = start(matmul)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    stage = sch.reindex_cache_read(block, 1, "shared", lambda i, j, k: (j // 8, k, j % 8))
    assert [sch.get(lp).loop_var.name for lp in sch.get_loops(stage)] == ["j", "k"]
    assert [d.value for d in sch.get(stage).writes[0].buffer.shape] == [2, 16, 8]
    check(sch, before)


def test_a_map_lays_out_what_is_written():
    sch, before = start(mm_relu)
    block = sch.get_block("Y")
    sch.reverse_compute_at(sch.get_block("C"), sch.get_loops(block)[0])
    stage = sch.reindex_cache_write(block, 0, "local", lambda i, j, k: (j, i))
    assert len(sch.get_loops(stage)) == 2
    check(sch, before)
    sch.reindex_cache_read(sch.get_block("C"), 0, "local", lambda i, j: (j, i))
    check(sch, before)


@T.prim_func
def wrapped(A: T.handle, Z: T.handle, C: T.handle):
    n = T.int32()
    X = T.match_buffer(A, (n,), "float32")
    Y = T.match_buffer(Z, (4,), "float32")
    B = T.match_buffer(C, (4, n), "float32")
    for i, j in T.grid(4, n):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = Y[vi] + X[vj]


@T.prim_func
def one_wrapped(A: T.handle, C: T.handle):
    n = T.int32()
    X = T.match_buffer(A, (n,), "float32")
    B = T.match_buffer(C, (4, n), "float32")
    for i, j in T.grid(4, n):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = X[vi % n]


@T.prim_func
def first_column(A: T.handle, C: T.handle):
    n = T.int32()
    X = T.match_buffer(A, (4, n), "float32")
    B = T.match_buffer(C, (4, n), "float32")
    for i, j in T.grid(4, n):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = X[vi, 0]


@pytest.mark.parametrize("step", [
    lambda s, read: s.reindex("B", ("read", read)),
    lambda s, read: s.reindex_cache_read("B", read, "local", lambda i, j: (i,))])
def test_a_copy_outside_of_a_loop_that_may_be_empty(step):
    """With n = 0 nothing is read: a copy for each i would divide by 0, or read what is absent."""
    for func in (one_wrapped, first_column):
        with pytest.raises(ScheduleError) as caught:
            step(Schedule(func), 0)
        assert caught.value.rule == "copy_reads_in_bounds"
    sch = Schedule(wrapped)
    step(sch, "Y")
    assert "Y_" in sch.mod.script()


@pytest.mark.parametrize("func, rule, step", [
    (stencil, "one_index_pattern", lambda s: s.reindex("C", ("read", 0))),
    (matmul, "buffer_is_named", lambda s: s.reindex("C", 0)),
    (padded, "copy_reads_in_bounds", lambda s: s.reindex("B", ("read", 0))),
    (padded, "copy_reads_in_bounds", lambda s: s.reindex_cache_read(
        "B", 0, "local", lambda i: (i,))),
    (matmul, "map_uses_the_access", lambda s: s.reindex_cache_read(
        "C", 0, "local", lambda i, j, k: (i, j))),
    (matmul, "map_uses_the_access", lambda s: s.reindex_cache_read(
        "C", 0, "local", lambda i, j, k: (i,))),
    (matmul, "map_is_injective", lambda s: s.reindex_cache_read(
        "C", 0, "local", lambda i, j, k: (i + k,))),
    (matmul, "map_takes_the_iterators", lambda s: s.reindex_cache_write(
        "C", 0, "local", lambda i, j: (i, j))),
    (matmul, "storage_scope_exists", lambda s: s.reindex_cache_read(
        "C", 0, "nowhere", lambda i, j, k: (i, k))),
])
def test_it_is_refused(func, rule, step):
    sch, before = start(func)
    with pytest.raises(ScheduleError) as caught:
        step(sch)
    assert caught.value.rule == rule
    assert sch.mod.script() == before.script()


def test_it_is_refused_for_blocks_that_share_loops_or_are_tiles():
    sch = Schedule(mm_relu)
    sch.reverse_compute_at("C", sch.get_loops(sch.get_block("Y"))[0])
    with pytest.raises(ScheduleError) as caught:
        sch.reindex("C", ("read", 0))
    assert caught.value.rule == "alone_in_its_loops"
    sch = Schedule(chain)
    tile = sch.blockize(sch.get_loops(sch.get_block("B"))[1])
    with pytest.raises(ScheduleError) as caught:
        sch.reindex(tile, ("read", 0))
    assert caught.value.rule == "accesses_points"
    sch = Schedule(matmul)
    sch.decompose_reduction("C", sch.get_loops(sch.get_block("C"))[0])
    for step in (lambda: sch.reindex("C_update", ("write", 0)),
                 lambda: sch.reindex_cache_write("C_update", 0, "local", lambda i, j, k: (i, j))):
        with pytest.raises(ScheduleError) as caught:
            step()
        assert caught.value.rule == "single_writer"


@pytest.mark.parametrize("act", [
    lambda sch, m: sch.reindex_cache_read("B", 0, "local", m),
    lambda sch, m: sch.reindex_cache_write("B", 0, "local", m)])
def test_places_below_zero_are_refused(act):
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((6, 4), "float32"), B: T.Buffer((6, 4), "float32")):
    for i, j in T.grid(6, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
""")
    assert refused(func, lambda sch: act(sch, lambda i, j: (j, 4 - i))).rule == (
        "indices_start_at_zero")
    kept(func, lambda sch: act(sch, lambda i, j: (j, 5 - i)))


def test_a_buffer_is_said_by_kind_and_name():
    kept(matmul, lambda s: s.reindex("C", ("read", "B")))
    kept(chain, lambda s: s.transform_layout("C", ("read", "B"), lambda i, j: (j, i)))
    refused(matmul, lambda s: s.reindex("C", ("read", "C2")), "buffer_is_accessed")


def test_the_copy_reads_what_its_indices_are_computed_from():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), I: T.Buffer((4,), "int32"), C: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v] = A[I[v] % 8]
""")
    for act in (lambda s: s.reindex("C", ("read", 0)),
                lambda s: s.reindex_cache_read("C", 0, "global", lambda v: (v,))):
        sch = kept(func, act)
        copy = next(sch.get(b) for b in sch.get_child_blocks(sch.get_block("root"))
                    if sch.get(b).name_hint != "C")
        assert {r.buffer.name for r in copy.reads} == {"A", "I"}


def test_the_copy_has_no_dimension_for_what_makes_no_difference():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8, 3), "float32"), B: T.Buffer((6, 4), "float32")):
    for i, j, k in T.grid(6, 4, 3):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                B[vi, vj] = T.float32(0)
            B[vi, vj] = B[vi, vj] + A[vi + vk, vj // 4 * 3 + vk]
""")
    sch = kept(func, lambda s: s.reindex("B", ("read", 0)))
    copy = sch.get(sch.get_block("B")).reads[0].buffer
    assert [d.value for d in copy.shape] == [6, 3]
