"""tensorize: a block's computation becomes a call of a tensor intrinsic."""

import pytest

from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source, tir as T
from mlc_lab.tir import TensorIntrin

from .common import check, check_compiled, matmul, mm_relu, refused
from .test_blockize import tiled


@T.prim_func
def tile_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4, 4), offset_factor=1)
    B = T.match_buffer(b, (4, 4), offset_factor=1)
    C = T.match_buffer(c, (4, 4), offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for i, j, k in T.grid(4, 4, 4):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def tile_impl(a: T.handle, b: T.handle, c: T.handle):
    sa = T.int32()
    sb = T.int32()
    sc = T.int32()
    A = T.match_buffer(a, (4, 4), offset_factor=1, strides=[sa, 1])
    B = T.match_buffer(b, (4, 4), offset_factor=1, strides=[sb, 1])
    C = T.match_buffer(c, (4, 4), offset_factor=1, strides=[sc, 1])
    with T.block("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        T.block_attr({"made_by": "an intrinsic"})
        for k, i, j in T.grid(4, 4, 4):
            C[i, j] = C[i, j] + A[i, k] * B[k, j]


@T.prim_func
def dot_desc(A: T.Buffer((4,), "float32", offset_factor=1),
             B: T.Buffer((4,), "float32", offset_factor=1),
             C: T.Buffer((1,), "float32", offset_factor=1)):
    with T.block("root"):
        T.reads(C[0], A[0:4], B[0:4])
        T.writes(C[0])
        for k in range(4):
            with T.block("update"):
                vk = T.axis.remap("R", [k])
                C[0] = C[0] + A[vk] * B[vk]


@T.prim_func
def dot_impl(A: T.Buffer((4,), "float32", offset_factor=1),
             B: T.Buffer((4,), "float32", offset_factor=1),
             C: T.Buffer((1,), "float32", offset_factor=1)):
    with T.block("root"):
        T.reads(C[0], A[0:4], B[0:4])
        T.writes(C[0])
        C[0] = C[0] + A[0] * B[0] + A[1] * B[1] + A[2] * B[2] + A[3] * B[3]


@T.prim_func
def matmul_nt(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"),
              C: T.Buffer((8, 8), "float32")):
    for i, j, k in T.grid(8, 8, 8):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]


@pytest.fixture(autouse=True)
def registered():
    TensorIntrin.register("test_tile_4x4x4", tile_desc, tile_impl, override=True)
    TensorIntrin.register("test_dot_4", dot_desc, dot_impl, override=True)


def test_a_decomposed_tile():
    sch, before, block, outer, inner = tiled(matmul, "C", 4, 4, 4)
    sch.decompose_reduction(block, outer[2])
    sch.tensorize(inner[0], "test_tile_4x4x4")
    script = sch.mod.script()
    assert "A_1 = T.match_buffer(A[vi_o * 4:vi_o * 4 + 4, vk_o * 4:vk_o * 4 + 4]" in script
    assert '"made_by": "an intrinsic"' in script
    check(sch, before)


def test_with_the_init_still_inside():
    sch, before, block, outer, inner = tiled(mm_relu, "Y", 4, 4, 4)
    sch.tensorize(inner[0], "test_tile_4x4x4")
    check(sch, before)


def test_a_block_can_be_given():
    sch, before, block, outer, inner = tiled(matmul, "C", 4, 4, 4)
    made = sch.blockize(inner[0])
    sch.annotate(made, "kept", 1)
    sch.decompose_reduction(made, outer[2])
    sch.tensorize(made, TensorIntrin.get("test_tile_4x4x4"))
    assert sch.get(made).annotations.keys() == {"kept", "made_by"}
    check(sch, before)


def test_a_description_of_lower_rank():
    sch, before, block, outer, inner = tiled(matmul_nt, "C", 8, 8, 4)
    sch.tensorize(inner[2], "test_dot_4")
    assert "T.match_buffer(C[vi_o, vj_o], (1,), offset_factor=1)" in sch.mod.script()
    check(sch, before)


def test_twice_in_one_program():
    sch, before, block, outer, inner = tiled(matmul_nt, "C", 4, 8, 4)
    sch.tensorize(inner[2], "test_dot_4")
    again = Schedule(before)
    again.apply_trace(str(sch.trace))
    assert again.mod.script() == sch.mod.script()


@pytest.mark.parametrize("func, factors, level, name, why", [
    (matmul_nt, (4, 4, 4), 0, "test_tile_4x4x4", "dimension 0 of B"),
    (matmul, (8, 4, 4), 0, "test_tile_4x4x4", "runs 8 times, not 4"),
    (matmul, (4, 4, 4), 1, "test_tile_4x4x4", "stands where the description has a For"),
    (matmul, (4, 4, 4), 2, "test_dot_4", "it touches"),
])
def test_it_is_refused_where_something_else_is_computed(func, factors, level, name, why):
    sch, before, block, outer, inner = tiled(func, "C", *factors)
    with pytest.raises(ScheduleError) as caught:
        sch.tensorize(inner[level], name)
    assert caught.value.rule == "block_is_the_described_one"
    assert why in caught.value.reason or name == "test_dot_4"


def test_it_is_refused_for_memory_of_another_scope_or_an_unknown_name():
    sch, before, block, outer, inner = tiled(matmul, "C", 4, 4, 4)
    with pytest.raises(ScheduleError) as caught:
        sch.tensorize(inner[0], "no_such_intrinsic")
    assert caught.value.rule == "intrinsic_is_registered"
    sch.cache_read(block, 0, "shared")
    with pytest.raises(ScheduleError) as caught:
        sch.tensorize(inner[0], "test_tile_4x4x4")
    assert "shared memory" in caught.value.reason
    with pytest.raises(ScheduleError) as caught:
        sch.tensorize(inner[0], TensorIntrin(dot_desc, dot_impl))
    assert caught.value.rule == "intrinsic_is_registered"


@T.prim_func
def add_desc(A: T.Buffer((4,), "float32", offset_factor=1),
             B: T.Buffer((4,), "float32", offset_factor=1),
             C: T.Buffer((4,), "float32", offset_factor=1)):
    with T.block("root"):
        T.reads(A[0:4], B[0:4])
        T.writes(C[0:4])
        for i in range(4):
            with T.block("add"):
                v = T.axis.spatial(4, i)
                C[v] = A[v] + B[v]


@T.prim_func
def add_impl(A: T.Buffer((4,), "float32", offset_factor=1),
             B: T.Buffer((4,), "float32", offset_factor=1),
             C: T.Buffer((4,), "float32", offset_factor=1)):
    with T.block("root"):
        T.reads(A[0:4], B[0:4])
        T.writes(C[0:4])
        for i in range(4):
            C[i] = B[i]
        for i in range(4):
            C[i] = C[i] + A[i]


TensorIntrin.register("add_4", add_desc, add_impl, override=True)


@T.prim_func
def accumulate(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i, j in T.grid(2, 4):
        with T.block("C"):
            v = T.axis.spatial(8, i * 4 + j)
            C[v] = C[v] + A[v]


@T.prim_func
def from_one(A: T.Buffer((9,), "float32"), B: T.Buffer((9,), "float32"),
             C: T.Buffer((9,), "float32")):
    for i in range(2):
        with T.block("C_o"):
            vo = T.axis.spatial(2, i)
            T.reads(A[vo * 4:vo * 4 + 4], B[vo * 4:vo * 4 + 4])
            T.writes(C[vo * 4:vo * 4 + 4])
            for j in T.serial(1, 5):
                with T.block("C"):
                    v = T.axis.spatial((1, 5), j)
                    C[vo * 4 + v] = A[vo * 4 + v] + B[vo * 4 + v]


def test_an_implementation_that_uses_a_loop_inside_of_a_block_is_refused():
    broken = from_source("""
@T.prim_func(check_well_formed=False)
def impl(A: T.Buffer((4,), "float32", offset_factor=1),
         B: T.Buffer((4,), "float32", offset_factor=1),
         C: T.Buffer((4,), "float32", offset_factor=1)):
    with T.block("root"):
        T.reads(A[0:4], B[0:4])
        T.writes(C[0:4])
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(1, 0)
                C[i + v] = A[i + v] + B[i + v]
""", check_well_formed=False)
    TensorIntrin.register("add_4_broken", add_desc, broken, override=True)
    error = refused(from_one, lambda s: s.tensorize("C_o", "add_4_broken"))
    assert error.rule == "implementation_is_well_formed" and "loop variable i" in str(error)


def test_an_operand_that_is_the_result_is_not_the_described_block():
    refused(accumulate, lambda s: s.tensorize(s.get_loops("C")[1], "add_4"),
            "block_is_the_described_one")


def test_loops_start_where_the_description_has_them_start():
    refused(from_one, lambda s: s.tensorize("C_o", "add_4"), "block_is_the_described_one")


@pytest.mark.parametrize("body", [
    "B[v] = T.if_then_else(v < 1, T.float32(1), A[v - 1]) + C[v]",  # a part begins at -1
    "B[v] = T.if_then_else(v < 3, A[v + 1], T.float32(1)) + C[v]"])
def test_what_only_a_condition_keeps_inside_is_not_the_described_block(body):
    desc = from_source(f"""
@T.prim_func
def desc(A: T.Buffer((4,), "float32", offset_factor=1),
         C: T.Buffer((4,), "float32", offset_factor=1),
         B: T.Buffer((4,), "float32", offset_factor=1)):
    with T.block("root"):
        T.reads(A[0:4], C[0:4])
        T.writes(B[0:4])
        for i in range(4):
            with T.block("B"):
                v = T.axis.spatial(4, i)
                {body.replace("v - 1", "v").replace("v + 1", "v")}
""")
    TensorIntrin.register("inside_4", desc, desc, override=True)
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32"),
         B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            {body}
""")
    error = refused(func, lambda s: s.tensorize(s.get_loops("B")[0], "inside_4"),
                    "block_is_the_described_one")
    assert "may lie outside of A" in str(error)


def test_a_view_shows_one_part():
    desc = from_source("""
@T.prim_func
def desc(B: T.Buffer((4,), "float32", offset_factor=1)):
    with T.block("root"):
        T.reads(B[0:4])
        T.writes(B[0:4])
        for i in range(4):
            with T.block("B"):
                v = T.axis.spatial(4, i)
                B[v] = B[v] * T.float32(2)
""")
    TensorIntrin.register("twice_4", desc, desc, override=True)
    func = from_source("""
@T.prim_func
def main(B: T.Buffer((5,), "float32")):
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v] = B[v + 1] * T.float32(2)
""")
    refused(func, lambda s: s.tensorize(s.get_loops("B")[0], "twice_4"),
            "block_is_the_described_one")


@pytest.mark.parametrize("name", ["test_tile_4x4x4", "test_dot_4"])
def test_views_have_the_index_type_of_what_they_show(name):
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((T.int64(8), T.int64(8)), "float32"),
         B: T.Buffer((T.int64(8), T.int64(8)), "float32"),
         C: T.Buffer((T.int64(8), T.int64(8)), "float32")):
    for i, j, k in T.grid(T.int64(8), T.int64(8), T.int64(8)):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[INDEX]
""".replace("INDEX", "vk, vj" if name == "test_tile_4x4x4" else "vj, vk"))
    sch = Schedule(func)
    before = sch.mod
    i, j, k = sch.get_loops("C")
    split = (i, j, k) if name == "test_tile_4x4x4" else (k,)
    tiles = [sch.split(loop, [None, 4]) for loop in split]
    outer = [loop for loop, _ in tiles]
    if name == "test_tile_4x4x4":
        sch.reorder(*outer, *(loop for _, loop in tiles))
    sch.decompose_reduction("C", outer[-1])
    sch.tensorize(tiles[0][1], name)
    check_compiled(sch, before)
    block = sch.get(sch.get_block("C_update_o"))
    sizes = [e for m in block.match_buffers
             for e in (*m.buffer.shape, *m.buffer.strides, m.buffer.elem_offset)]
    assert {e.dtype for e in sizes} == {"int64"}
