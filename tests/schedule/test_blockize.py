"""blockize: a loop nest, or several blocks, become one block."""

import pytest

from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source, tir as T
from mlc_lab.tir.expr import Cast
from mlc_lab.tir.functor import free_vars, pre_order

from .common import chain, check, kept, matmul, mm_relu, refused
from .test_cache_read import start
from .test_padding import pad2d


@T.prim_func
def shifted(A: T.Buffer((18,), "float32"), B: T.Buffer((18,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial((1, 17), i + 1)
            B[vi] = A[vi] * T.float32(2)


@T.prim_func
def with_unit(A: T.Buffer((1, 32), "float32"), B: T.Buffer((1, 32), "float32")):
    for n, i in T.grid(1, 32):
        with T.block("B"):
            vn, vi = T.axis.remap("SS", [n, i])
            B[vn, vi] = A[vn, vi] * T.float32(2)


def tiled(func, name, *factors):
    sch, before = start(func)
    block = sch.get_block(name)
    pairs = [sch.split(loop, factors=[None, f]) for loop, f in zip(sch.get_loops(block), factors)]
    sch.reorder(*(p[0] for p in pairs), *(p[1] for p in pairs))
    return sch, before, block, [p[0] for p in pairs], [p[1] for p in pairs]


def test_a_tile_becomes_a_block():
    sch, before, block, outer, inner = tiled(chain, "B", 4, 3)
    made = sch.blockize(inner[0])
    assert sch.get(made).name_hint == "B_o"
    assert [iv.var.name for iv in sch.get(made).iter_vars] == ["vi_o", "vj_o"]
    assert [iv.var.name for iv in sch.get(block).iter_vars] == ["vi_i", "vj_i"]
    assert [sch.get(b) for b in sch.get_child_blocks(made)] == [sch.get(block)]
    check(sch, before)


def test_it_can_be_done_at_every_level():
    for level in range(2):
        sch, before, block, outer, inner = tiled(chain, "C", 4, 3)
        sch.blockize(inner[1])
        sch.blockize(outer[level])
        check(sch, before)


def test_the_init_of_a_reduction_moves_to_the_outer_block():
    sch, before, block, outer, inner = tiled(matmul, "C", 4, 4, 8)
    made = sch.blockize(inner[0])
    assert sch.get(block).init is None and sch.get(made).init is not None
    check(sch, before)
    sch.decompose_reduction(made, outer[2])
    check(sch, before)


def test_a_reduction_wholly_outside_or_inside():
    sch, before = start(matmul)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    sch.reorder(k, i, j)
    sch.blockize(i)
    check(sch, before)
    sch, before = start(matmul)
    sch.blockize(sch.get_loops(sch.get_block("C"))[2])
    check(sch, before)


def test_unit_iterators_may_be_dropped():
    sch, before = start(with_unit)
    sch.blockize(sch.get_loops(sch.get_block("B"))[1], preserve_unit_iters=False)
    assert "B[0, vi_i] = A[0, vi_i]" in sch.mod.script()
    check(sch, before)


def test_the_block_can_be_moved_and_cached_afterwards():
    sch, before, block, outer, inner = tiled(mm_relu, "Y", 4, 4, 4)
    made = sch.blockize(inner[0])
    sch.cache_read(made, 0, "shared")
    last = sch.get_block("C")
    i, j = sch.get_loops(last)
    i0, i1 = sch.split(i, factors=[None, 4])
    sch.compute_at(made, i0)
    check(sch, before)


def test_several_blocks_become_one():
    sch, before = start(chain)
    made = sch.blockize([sch.get_block("B"), sch.get_block("C")])
    assert sch.get(made).name_hint == "outer_B_C_"
    assert [sch.get(b).name_hint for b in sch.get_child_blocks(made)] == ["B", "C"]
    check(sch, before)
    sch, before = start(chain)
    sch.compute_at("C", sch.get_loops(sch.get_block("D"))[0])
    sch.blockize(["C", "D"])
    check(sch, before)
    sch, before = start(chain)
    sch.blockize(["B"])
    check(sch, before)


def remainder(sch):
    _, inner = sch.split(sch.get_loops(sch.get_block("B"))[0], factors=[None, 5])
    sch.blockize(inner)


def fused(sch):
    loop = sch.fuse(*sch.get_loops(sch.get_block("B")))
    sch.blockize(sch.split(loop, factors=[None, 24])[1])


def apart(sch):
    sch.blockize([sch.get_block("B"), sch.get_block("D")])


@pytest.mark.parametrize("func, rule, step", [
    (chain, "subspace_is_divisible", remainder),
    (chain, "subspace_is_divisible", fused),
    (chain, "blocks_follow_one_another", apart),
    (chain, "expects_loop", lambda s: s.blockize(3)),
    (chain, "blocks_are_given", lambda s: s.blockize([])),
    (shifted, "iterators_start_at_zero", lambda s: s.blockize(s.get_loops(s.get_block("B"))[0])),
])
def test_it_is_refused(func, rule, step):
    sch = Schedule(func)
    with pytest.raises(ScheduleError) as caught:
        step(sch)
    assert caught.value.rule == rule


def test_it_is_refused_where_other_statements_would_be_caught():
    sch = Schedule(mm_relu)
    i, j, k = sch.get_loops(sch.get_block("Y"))
    sch.reverse_compute_at(sch.get_block("C"), j)
    with pytest.raises(ScheduleError) as caught:
        sch.blockize(j)
    assert caught.value.rule == "one_block_under_loop"
    with pytest.raises(ScheduleError) as caught:
        sch.blockize(["Y", "C"])
    assert caught.value.rule == "no_reduction_outside"


def test_each_half_keeps_its_conditions():
    sch, before = start(pad2d)
    i, j = sch.get_loops("y")
    sch.decompose_padding("y", j)
    sch.blockize(sch.get_loops("y")[1])
    assert "T.where(3 <= i and i < 11)" in sch.mod.script()
    check(sch, before)
    sch, before = start(chain)
    block = sch.get_block("B")
    i, j = sch.get_loops(block)
    sch.split(i, factors=[None, 5])
    sch.blockize(j)
    check(sch, before)


@T.prim_func
def one_result(A: T.Buffer((4, 6), "float32"), C: T.Buffer((3,), "float32")):
    for i, j, k in T.grid(2, 6, 4):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[T.min(vj, 2)] = T.float32(0)
            C[T.min(vj, 2)] = C[T.min(vj, 2)] + A[vk, vj] + T.float32(vi)


def test_inits_are_gathered_only_where_each_element_has_one():
    error = refused(one_result, lambda s: s.blockize(s.get_loops("B")[1]), "init_runs_first")
    assert "decompose_reduction" in error.hint


@pytest.mark.parametrize("loops, i, j, depth, region", [
    ("i in T.serial(1, 4):", "i", "2", 0, "A[1:4, vj_o + 2]"),
    ("i, j in T.grid(3, 4):", "i + 1", "j + 3", 0, "A[1:4, 3:7]"),
    ("i, j in T.grid(3, 4):", "i + 1", "j + 3", 1, "A[vi_o + 1, 3:7]"),
    ("i, j, k in T.grid(2, 3, 2):", "i + 1", "j * 2 + k + 1", 2,
     "A[vi_o + 1, vj_o * 2 + 1:vj_o * 2 + 1 + 2]")])
def test_iterators_that_do_not_start_at_zero(loops, i, j, depth, region):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for {loops}
        with T.block("B"):
            vi = T.axis.spatial(4, {i})
            vj = T.axis.spatial(8, {j})
            B[vi, vj] = A[vi, vj]
""")
    sch = kept(func, lambda sch: sch.blockize(sch.get_loops(sch.get_block("B"))[depth]))
    assert f"T.reads({region})" in sch.mod.script()


def test_views_of_an_init_are_its_own():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            V = T.match_buffer(B[vi], (1,), strides=("s",), offset_factor=1)
            W = T.match_buffer(A[vi, vk], (1,), strides=("t",), offset_factor=1)
            with T.init():
                V[0] = T.float32(0)
            V[0] = V[0] + W[0]
""")
    sch = kept(func, lambda sch: sch.decompose_reduction("B", sch.get_loops("B")[1]))
    assert_structural_equal(from_source(sch.mod.script()), sch.mod)
    assert len(sch.get(sch.get_block("B_init")).match_buffers) == 1


def again(loop, binding, extent):
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 16), "float32"), C: T.Buffer((4,), "float32")):
    for j in range(4):
        for i in {loop}:
            with T.block("C"):
                v = T.axis.spatial(4, j)
                k = T.axis.reduce({extent}, {binding})
                with T.init():
                    C[v] = T.float32(0)
                C[v] = C[v] + A[v, k]
""")


@pytest.mark.parametrize("loop, binding, extent, rule", [
    ("range(16)", "i // 2", 8, "init_runs_once"), ("range(8)", "0", 1, "init_runs_once"),
    ("range(8)", "(i + j) % 8", 8, None), ("range(j)", "i", 8, "init_sets_the_same")])
def test_a_start_value_that_is_met_again_or_never(loop, binding, extent, rule):
    func = again(loop, binding, extent)
    refused(func, lambda s: s.blockize(s.get_loops("C")[0]), rule)


def test_slices_of_a_start_value_that_is_met_again():
    func = again("range(16)", "i // 2", 8)
    refused(func, lambda s: s.rfactor(s.get_loops("C")[1], 0), "init_runs_once")


@pytest.mark.parametrize("extent", ["i + 1", "10 - i"])
def test_domains_that_name_a_loop_inside(extent):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((10, 10), "float32"), B: T.Buffer((10, 10), "float32")):
    for i in range(10):
        for j in range({extent}):
            with T.block("B"):
                v, w = T.axis.remap("SS", [i, j])
                B[v, w] = A[v, w]
""")
    kept(func, lambda s: s.blockize(s.get_loops("B")[0]))
    kept(func, lambda s: s.blockize(s.get_block("B")))


@T.prim_func
def beside_a_view(A: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,))
    G = T.alloc_buffer((8,))
    E = T.decl_buffer((4, 2), "float32", data=G.data)
    with T.block("C"):
        T.reads(A[0])
        T.writes(C[0])
        C[0] = A[0] + T.float32(1)
    with T.block("E"):
        T.reads(C[0])
        T.writes(E[0, 0])
        E[0, 0] = C[0] * T.float32(3)
    with T.block("D"):
        T.reads(G[0])
        T.writes(D[0])
        D[0] = G[0] * T.float32(2)


def test_neighbours_within_a_definition_become_one_block():
    kept(beside_a_view, lambda s: s.blockize([s.get_block("C"), s.get_block("E")]))
    refused(beside_a_view, lambda s: s.blockize([s.get_block("C"), s.get_block("D")]),
            "blocks_follow_one_another")


@T.prim_func
def held_back(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i, j in T.grid(4, 2):
        with T.block("B"):
            v = T.axis.spatial(4, i * 2 + j - 1)
            T.where(1 <= i * 2 + j and i * 2 + j < 5)
            B[v] = A[v] * T.float32(2)


def test_iterators_that_a_condition_holds_back_stay_in_their_domain():
    sch, before = start(held_back)
    sch.blockize(sch.get_loops("B")[0])
    check(sch, before)
    assert "v_i = T.axis.spatial(4, i * 2 + j - 1)" in sch.mod.script()
    assert "T.reads(A[0:4])" in sch.mod.script()


@T.prim_func
def through_an_opaque_block(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i in range(4):
        with T.block("rows"):
            for j in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * T.float32(2)


@pytest.mark.parametrize("target", ["block", "loop"])
@pytest.mark.parametrize("preserve", [True, False])
def test_a_block_without_iterators_may_name_the_loops_that_move_into_the_new_one(target, preserve):
    def act(sch):
        loops = sch.split(sch.get_loops("rows")[0], [None, 3])
        made = sch.blockize([sch.get_block("rows")] if target == "block" else loops[0],
                            preserve_unit_iters=preserve)
        (written,) = sch.get(made).writes
        assert not free_vars(written)

    kept(through_an_opaque_block, act)


def test_iterators_of_wide_loops_are_wide():
    def act(sch):
        outer = sch.blockize(sch.get_loops("B")[2])
        assert not any(type(n) is Cast for n in pre_order(sch.get(outer)))
        assert not any(type(n) is Cast for v in sch.state.realize_of(sch.get_sref(
            outer)).iter_values for n in pre_order(v))

    kept(from_source("""
@T.prim_func
def main(A: T.Buffer((T.int64(8), T.int64(12)), "float32"),
         B: T.Buffer((T.int64(8), T.int64(12)), "float32")):
    for i0, j0, i1, j1 in T.grid(T.int64(2), T.int64(3), T.int64(4), T.int64(4)):
        with T.block("B"):
            vi = T.axis.spatial(T.int64(8), i0 * T.int64(4) + i1)
            vj = T.axis.spatial(T.int64(12), j0 * T.int64(4) + j1)
            B[vi, vj] = A[vi, vj] * T.float32(2)
"""), act)
