"""Where loops, blocks, iterators and buffers come from, as the primitives note it."""

import pytest
from schedule.common import matmul
from schedule.test_blockize import tiled
from schedule.test_docstrings import KINDS, as_function, example, names_for
from schedule.test_tensorize import tile_desc, tile_impl

from mlc_lab.observe.recording import Recording
from mlc_lab.observe.session import record
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source
from mlc_lab.tir import TensorIntrin

from .schedules import module, schedule

HEADS = ("for ", "with T.block(")


def named(recording, step):
    """The origins of a step by name: {"loop j_0": ["loop j"], ...}."""
    name = {k: " ".join(pair) for k, pair in enumerate(recording.keys)}
    return {name[key]: [name[k] for k in olds] for key, olds in recording.steps[step].origins}


def step_of(recording, op):
    return next(i for i, step in enumerate(recording.steps) if step.op == op)


def new_things(recording, step):
    """Keys of the loops, blocks, iterators and buffers that the program before did not have."""

    def things(program):
        found = set()
        for number in recording.programs[program].lines:
            text, keys = recording.lines[number]
            text = text.strip()
            if text.startswith(HEADS) or " = T.axis." in text or "_buffer(" in text:
                found.update(keys)
        return found

    return things(step.after) - things(step.before)


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.method)
def test_whatever_a_primitive_makes_it_says_where_it_came_from(kind):
    before, call, where, _ = example(kind)
    sch = Schedule(as_function(before)[0])
    eval(call, {"sch": sch, **names_for(sch, where)})  # our own docstring, not user input
    recording = record(sch).recording
    for step in recording.steps:
        told = {key for key, _ in step.origins}
        missing = [recording.keys[key] for key in new_things(recording, step) - told
                   if recording.keys[key] != ("block", "root")]  # it may stand for itself
        assert not missing, (step.op, missing)


def test_parts_of_a_split_and_a_fusion_know_their_loops():
    sch = Schedule(module())
    i, j, _ = sch.get_loops(sch.get_block("Y"))
    sch.fuse(i, sch.split(j, factors=[None, 8])[0])
    recording = record(sch).recording
    assert named(recording, 1) == {"loop j_0": ["loop j"], "loop j_1": ["loop j"]}
    assert named(recording, 2) == {"loop i_j_0_fused": ["loop i", "loop j_0"]}


def test_an_init_block_comes_from_its_reduction():
    recording = record(schedule()).recording
    found = named(recording, step_of(recording, "decompose_reduction"))
    assert found["block Y_init"] == ["block Y"]
    assert found["loop j_1_init"] == ["loop j_1"]


def test_a_copy_comes_from_the_buffer_it_copies_also_a_parameter():
    sch = Schedule(module())
    sch.cache_read(sch.get_block("Y"), 0, "local")
    found = named(record(sch).recording, 1)
    assert found["buffer A_local"] == ["buffer A"]
    assert found["block A_local"] == ["buffer A"]


def test_rfactor_makes_the_slices_from_the_reduction():
    sch = Schedule(module())
    sch.rfactor(sch.get_loops(sch.get_block("Y"))[2], 0)
    found = named(record(sch).recording, 1)
    assert found["buffer Y_rf"] == ["buffer Y"]
    assert found["block Y_rf"] == ["block Y"]
    assert found["iterator vk"] == ["loop k"]


def test_an_inlined_block_lives_on_in_its_consumer():
    sch = Schedule(from_source('''
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,))
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] + T.float32(1)
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi] * T.float32(2)
'''))
    sch.compute_inline(sch.get_block("B"))
    assert named(record(sch).recording, 1) == {"block C": ["block B"]}


def test_origins_survive_writing_and_reading():
    recording = record(schedule()).recording
    again = Recording.from_json(recording.to_json())
    assert [s.origins for s in again.steps] == [s.origins for s in recording.steps]


def test_a_recording_from_before_there_were_origins_is_read():
    data = record(schedule()).recording.to_dict()
    for step in data["steps"]:
        step.pop("origins", None)
    assert Recording.from_dict(data).steps[1].origins == []


def test_tensorize_makes_its_parts_from_the_block_it_replaces():
    TensorIntrin.register("test_tile_4x4x4", tile_desc, tile_impl, override=True)
    sch, _, block, outer, inner = tiled(matmul, "C", 4, 4, 4)
    sch.decompose_reduction(block, outer[2])
    sch.tensorize(inner[0], "test_tile_4x4x4")
    recording = record(sch).recording
    at = len(recording.steps) - 1
    step = recording.steps[at]
    told = {key for key, _ in step.origins}
    assert not [recording.keys[key] for key in new_things(recording, step) - told]
    found = named(recording, at)
    assert found["buffer A_1"] == ["buffer A"] and found["loop i"] == ["block C"]
