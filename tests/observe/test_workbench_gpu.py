"""The workbench for a GPU: axes that are suggested, cooperative fetching, what the limits leave."""

import json

import numpy as np
import pytest
from backend.gpu_programs import product, tiled

from mlc_lab.backend.interp import interpret
from mlc_lab.observe.gpu.left import what_is_left
from mlc_lab.observe.workbench import Workbench
from mlc_lab.observe.workbench_find import WorkbenchError
from mlc_lab.schedule import ScheduleError

NEST = ("i_0", "j_0", "i_1", "j_1", "k_0", "k_1", "i_2", "j_2")


def tiles(target="cuda", bound=True, size=64):
    """A product in tiles, its outer loops bound as suggested."""
    bench = Workbench(product(size, size, size), target=target)
    for loop, inner in (("i", [8, 4]), ("j", [8, 4]), ("k", [8])):
        bench.apply("split", loop=f"C/{loop}", factors=[None, *inner])
    bench.apply("reorder", ordered_loops=[f"C/{loop}" for loop in NEST])
    for loop in NEST[:4] if bound else ():
        bench.apply("bind", **listed(bench, f"C/{loop}", "bind").arguments())
    return bench


def copied(axis=0, at="k_0", size=64):
    """The same with an input copied to shared memory."""
    bench = tiles(size=size)
    bench.apply("cache_read", block="C", read_buffer_index=axis, storage_scope="shared")
    if at:
        bench.apply("compute_at", block="AB"[axis] + "_shared", loop=f"C/{at}")
    return bench


def listed(bench, selection, op):
    return next(e for e in bench.legal(selection) if e.op == op)


def suggestion(bench, selection):
    (_, axis) = listed(bench, selection, "bind").parameters
    note = next(c["note"] for c in axis.choices if "note" in c)
    return axis.default, note


def test_outer_loops_are_for_blocks_and_inner_ones_for_threads():
    bench = tiles(bound=False)
    for loop, axis in zip(NEST, ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x",
                                 "threadIdx.x")):
        assert suggestion(bench, f"C/{loop}")[0] == axis
    assert "2 blocks" in suggestion(bench, "C/i_0")[1]
    assert "8 threads" in suggestion(bench, "C/i_1")[1]
    assert "each thread sums a part" in suggestion(bench, "C/k_0")[1]


def test_what_is_suggested_is_legal_and_axes_are_not_taken_twice():
    bench = tiles()
    bound = [a.python.split('"')[1] for a in bench.path() if a.op == "bind"]
    assert bound == ["blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"]


@pytest.mark.parametrize("target, axis", [("cuda", "threadIdx.x"), ("webgpu", "blockIdx.x")])
def test_more_threads_than_a_block_has_are_not_suggested(target, axis):
    bench = Workbench(product(8, 512, 8), target=target)
    found, note = suggestion(bench, "C/j")
    assert found == axis
    assert ("256 are the limit: split the loop" in note) is (target == "webgpu")


def test_cooperative_fetching_applies_primitives_and_keeps_the_result():
    bench = copied()
    entry = listed(bench, "A_shared", "cooperative_fetch")
    assert entry.legal and entry.arguments()["vector"] == 4
    before, told = len(bench.attempts), []
    bench.listeners.append(lambda: told.append(bench.at.id))
    assert bench.check(entry.op, **entry.arguments()) is None
    assert ("+", "+") in {(a, a) for a, _ in bench.preview(entry.op, **entry.arguments())}
    assert len(bench.attempts) == before
    node = bench.apply(entry.op, **entry.arguments())
    assert told == [node.id]
    made = [a.op for a in bench.attempts[before:]]
    assert made == ["fuse", "split", "bind", "bind", "vectorize"]
    assert "factors=[None, 8, 8, 4]" in bench.python()
    again = Workbench(product(64, 64, 64)).load_python(bench.python(program=False))
    assert again.reached.mod.script() == bench.mod.script()
    a, b = np.random.rand(2, 64, 64).astype("float32")
    c = np.zeros((64, 64), "float32")
    interpret(bench.mod, a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)
    assert "already" in listed(bench, "A_shared", "cooperative_fetch").reason


def test_one_undo_takes_back_one_click():
    bench = copied()
    start = bench.at.id
    end = bench.apply("cooperative_fetch", block="A_shared").id
    assert bench.undo().id == start and bench.redo().id == end
    read = Workbench.from_json(bench.to_json())
    assert read.undo().id == start and read.redo().id == end
    middle = bench.node(end).parent  # a step of it can be gone to, and from there it is one by one
    bench.goto(middle)
    assert bench.undo().id == bench.node(middle).parent and bench.redo().id == middle
    bench.goto(start)
    again = bench.apply("cooperative_fetch", block="A_shared")
    assert again.id == end and bench.undo().id == start
    other = bench.apply("cooperative_fetch", block="A_shared", vector=1).id
    assert bench.undo().id == start and bench.redo().id == other


def test_where_a_click_began_is_checked_in_a_file():
    bench = copied()
    bench.apply("cooperative_fetch", block="A_shared")
    data = bench.to_dict()
    (last,) = [node for node in data["nodes"] if "began" in node]
    for wrong in (last["id"], 10 ** 6, -1, "x", True):
        last["began"] = wrong
        with pytest.raises(WorkbenchError, match="began is no attempt above it"):
            Workbench.from_json(json.dumps(data))


def test_vectors_are_shorter_where_the_copy_is_small():
    bench = copied(at="k_1")  # 32 elements, 64 threads
    entry = listed(bench, "A_shared", "cooperative_fetch")
    assert [c["value"] for c in entry.parameters[1].choices] == [1]
    bench.apply("cooperative_fetch", block="A_shared")
    assert bench.at.op == "bind"


def test_what_cannot_be_fetched_together_says_what_to_do():
    bench = copied(at=None)
    entry = listed(bench, "A_shared", "cooperative_fetch")
    assert not entry.legal and "compute_at" in entry.reason
    with pytest.raises(ScheduleError, match="compute_at"):
        bench.apply("cooperative_fetch", block="A_shared")
    assert bench.check("cooperative_fetch", block="C")[0] == "copies into shared memory"
    assert all(e.op != "cooperative_fetch" for e in bench.legal("C"))
    assert bench.check("cooperative_fetch", block="A_shared", vector="x")[0]
    assert bench.check("cooperative_fetch")[0] == "arguments"
    assert bench.preview("cooperative_fetch", block="A_shared") == []


def test_a_refusal_on_the_way_leaves_listeners_in_place():
    bench = copied()
    heard = []
    bench.listeners.append(lambda: heard.append(1))
    with pytest.raises(ScheduleError):
        bench.apply("cooperative_fetch", block="A_shared", vector="x")
    bench.undo()
    assert heard


def test_the_limits_are_those_of_the_target():
    left = copied().what_is_left()
    assert left["threads"] == [64, 1024] and left["shared"] == [1024, 49152]
    assert 16 < left["registers"][0] < 255 and left["occupancy"]["limit"]
    assert what_is_left(tiled(), "webgpu")["shared"] == [1024, 16384]
    assert what_is_left(tiled(), "llvm") is None
    unbound = Workbench(product(8, 8, 8), target="cuda")
    assert "no loop is bound" in unbound.what_is_left()["message"]


def test_what_is_over_the_limits_is_told_and_no_error():
    bench = Workbench(product(8, 2048, 8), target="cuda")
    bench.apply("bind", loop="C/i", thread_axis="blockIdx.x")
    bench.apply("bind", loop="C/j", thread_axis="threadIdx.x")
    left = bench.what_is_left()
    assert left["threads"] == [2048, 1024] and left["occupancy"]["warps"] == 0


def test_a_saved_tree_has_them():
    bench = copied()
    assert "left" in bench.to_dict() and not bench.to_dict()["left"]
    left = bench.what_is_left()
    assert bench.to_dict()["left"] == {str(bench.at.program): left}
    assert Workbench.from_json(bench.to_json()).what_is_left() == left
