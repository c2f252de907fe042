"""What recordings say of their lines, and the loop nest that follows from it."""

import pytest

import mlc_lab as tvm
from mlc_lab import te
from mlc_lab.observe import nest
from mlc_lab.observe.session import record
from mlc_lab.script import from_source

TEXT = '''
@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, B: T.Buffer((8,), "float16")):
        n = T.int32()
        A = T.match_buffer(a, (8, n))
        S = T.alloc_buffer((8,), scope="shared")
        for i in T.thread_binding(8, thread="threadIdx.x"):
            for j in range(1, 9):
                with T.block("sum"):
                    vi = T.axis.spatial(8, i)
                    vj = T.axis.reduce(n, j)
                    T.where(j < n - 1)
                    T.reads(A[vi, vj])
                    T.writes(S[vi])
                    with T.init():
                        S[vi] = T.float32(0)
                    S[vi] = S[vi] + A[vi, vj]
        for i in T.vectorized(8):
            if i > 2:
                B[i] = T.Cast("float16", S[i])
'''


@pytest.fixture(scope="module")
def recording():
    return record(tvm.tir.Schedule(from_source(TEXT))).recording


def parts(recording):
    lines = recording.programs[0].lines
    return {recording.lines[i][0].strip(): recording.parts_of(i) for i in lines}


def test_each_line_says_what_stands_in_it(recording):
    found = parts(recording)
    assert found['for i in T.thread_binding(8, thread="threadIdx.x"):'] == [
        ["loop", "i", "8", "thread", "threadIdx.x"]]
    assert found["for j in range(1, 9):"] == [["loop", "j", "1 .. 9", "serial", ""]]
    assert found["for i in T.vectorized(8):"] == [["loop", "i", "8", "vectorized", ""]]
    assert found['with T.block("sum"):'] == [["block", "sum"]]
    assert found["vi = T.axis.spatial(8, i)"] == [["iterator", "vi", "spatial", "i", "8"]]
    assert found["vj = T.axis.reduce(n, j)"] == [["iterator", "vj", "reduce", "j", "n"]]
    assert found["T.where(j < n - 1)"] == [["where", "j < n - 1"]]
    assert found["T.reads(A[vi, vj])"] == [["reads", "A[vi, vj]"]]
    assert found["with T.init():"] == [["group", "init"]]
    assert found["S[vi] = S[vi] + A[vi, vj]"] == []
    assert found["if i > 2:"] == [["group", "if i > 2"]]
    head = next(p for text, p in found.items() if text.startswith("def main"))
    assert head == [["group", "def main"], ["buffer", "B", ["8"], "float16", "global"]]
    (matched,) = [p for text, p in found.items() if text.startswith("A = ")]
    assert matched == [["buffer", "A", ["8", "n"], "float32", "global"]]
    (shared,) = [p for text, p in found.items() if text.startswith("S = ")]
    assert shared == [["buffer", "S", ["8"], "float32", "shared"]]
    assert found["@T.prim_func"] == [["aside"]]


def test_loops_of_one_line_are_parts_of_their_own_and_remapped_iterators_too():
    A = te.placeholder((4, 8), name="A")
    C = te.compute((4, 8), lambda i, j: A[i, j] + 1, name="C")
    found = parts(record(tvm.tir.Schedule(te.create_prim_func([A, C]))).recording)
    assert found["for i, j in T.grid(4, 8):"] == [
        ["loop", "i", "4", "serial", ""], ["loop", "j", "8", "serial", ""]]
    assert found['v_i, v_j = T.axis.remap("SS", [i, j])'] == [
        ["iterator", "v_i", "spatial", "i", "4"], ["iterator", "v_j", "spatial", "j", "8"],
    ]


def test_parts_are_as_many_as_the_keys_of_what_can_be_traced(recording):
    """A view finds the name of a key by its place among them."""
    kinds = {"loop", "block", "iterator", "buffer"}
    for i in recording.programs[0].lines:
        keys = [k for k in recording.lines[i][1] if recording.keys[k][0] in kinds]
        named = [part for part in recording.parts_of(i) if part[0] in kinds]
        if named:
            assert [recording.keys[k][:2] for k in keys] == [tuple(p[:2]) for p in named]


def test_the_boxes_of_a_nest_lie_within_each_other(recording):
    root = nest.nest_of(recording, 0)

    def check(box):
        top = box.y
        for child in box.children:
            assert child.x >= box.x and child.x + child.width <= box.x + box.width
            assert child.y >= top and child.y + child.height <= box.y + box.height
            top = child.y + child.height
            check(child)
        for row in box.rows:
            assert box.y <= row.y and row.y + nest.ROW <= box.y + box.height

    check(root)
    heads = [box.head for box in root.walk()]
    assert heads[:4] == ["", "class Module", "def main", "n = T.int32()"]
    assert [h for h in heads if " : " in h] == ["i : 8", "j : 1 .. 9", "i : 8"]
    block = next(box for box in root.walk() if box.kind == "block")
    assert [(row.role, row.text) for row in block.rows] == [
        ("spatial", "vi = i"), ("reduce", "vj = j"), ("where", "j < n - 1"),
        ("reads", "A[vi, vj]"), ("writes", "S[vi]")]
