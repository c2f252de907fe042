"""What is seen at a glance must be what the proofs say: glances save time, and decide nothing."""

import pytest

from mlc_lab.schedule import Schedule, ScheduleError, covering, truth
from mlc_lab.script import from_source


def stages(write, shape, dom, read="vi"):
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({dom},), "float32"), C: T.Buffer(({dom},), "float32")):
    B = T.alloc_buffer({shape})
    for i in T.serial({dom}):
        with T.block("B"):
            vi = T.axis.spatial({dom}, i)
            B[{write}] = A[vi] * T.float32(2)
    for i in T.serial({dom}):
        with T.block("C"):
            vi = T.axis.spatial({dom}, i)
            C[vi] = B[{write.replace('vi', read)}] + T.float32(1)
""")


def written(func):
    sch = Schedule(func)
    block, root = sch.get_sref(sch.get_block("B")), sch.get_sref(sch.get_block("root"))
    return covering._writes_all(sch.state, root, block, block.stmt.writes[0])


@pytest.mark.parametrize(("write", "shape", "dom", "all_of_it"), [
    ("vi // 8, vi % 8", (4, 8), 32, True),
    ("vi % 8, vi // 8", (8, 4), 32, True),
    ("0, vi", (1, 32), 32, True),
    ("vi // 8, 0, vi % 8", (4, 1, 8), 32, True),
    ("0, vi", (2, 32), 32, False),
    ("vi // 8, vi % 8", (5, 8), 32, False),
    ("vi // 8, vi % 8", (4, 9), 32, False),
    ("vi // 8, vi % 4", (4, 4), 32, False),
    ("vi // 8, vi // 8", (4, 4), 32, False),
    ("vi // 8, vi % 8", (4, 8), 30, False),
    ("vi // 8", (4,), 32, False),
])
def test_digits_of_an_iterator_cover_a_buffer(write, shape, dom, all_of_it):
    assert written(stages(write, shape, dom)) is all_of_it


@pytest.mark.parametrize(("body", "reads", "writes", "plain"), [
    ("B[vi] = A[vi]", "A[vi]", "B[vi]", True),
    ("B[vi] = A[vi] + A[vi + 1]", "A[vi], A[vi + 1]", "B[vi]", True),
    ("B[vi] = A[vi] + A[vi + 1]", "A[vi]", "B[vi]", False),
    ("B[vi] = A[vi]", "A[vi]", "B[vi + 1]", False),
    ("B[vi] = B[vi] + A[vi]", "A[vi]", "B[vi]", False),
    ("B[vi] = A[I[vi]]", "I[vi], A[I[vi]]", "B[vi]", False),
    ("B[vi] = T.if_then_else(vi < 3, A[vi], T.float32(0))", "A[vi]", "B[vi]", True),
])
def test_declarations_that_hold_at_a_glance_hold(body, reads, writes, plain):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((34,), "float32"), I: T.Buffer((34,), "int32"), B: T.Buffer((34,), "float32")):
    for i in T.serial(32):
        with T.block("B"):
            vi = T.axis.spatial(32, i)
            T.reads({reads})
            T.writes({writes})
            {body}
""")
    block = func.root.body.body.block
    assert truth._plainly_declared(block) is plain
    if plain:
        assert not truth.undeclared(block)


def test_a_pointer_that_is_handed_on_still_refuses_another_layout():
    sch = Schedule(from_source("""
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
    with T.block("C"):
        T.reads(B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.evaluate(T.call_extern("int32", "f", B.data, C.data))
"""))
    with pytest.raises(ScheduleError, match="pointer"):
        sch.transform_layout("B", ("write", 0), lambda i, j: (j, i))
