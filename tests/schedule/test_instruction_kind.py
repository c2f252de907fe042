"""Kinds of instructions are found by TVM's names."""

import pytest

from mlc_lab.ir import assert_structural_equal
from mlc_lab.schedule import BlockRV, Instruction, InstructionKind, LoopRV, Schedule, Trace

from .common import matmul


def test_found_by_name():
    kind = InstructionKind.get("GetLoops")
    assert kind.name == "GetLoops" and kind.is_pure
    assert not InstructionKind.get("Split").is_pure
    assert kind.same_as(InstructionKind.get("GetLoops"))


def test_a_wrong_name_is_refused_with_a_near_one():
    with pytest.raises(ValueError, match="did you mean 'Split'"):
        InstructionKind.get("Splitt")


def test_an_instruction_is_made_of_what_it_acts_on_and_the_rest():
    block, loop, outer, inner = BlockRV(), LoopRV(), LoopRV(), LoopRV()
    found = Instruction(kind=InstructionKind.get("GetLoops"), inputs=[block], attrs=[],
                        outputs=[outer, inner])
    assert str(found) == "_, _ = sch.get_loops(block=_)"
    assert found.inputs[0].same_as(block) and found.outputs[1].same_as(inner)
    assert len(Instruction(InstructionKind.get("ComputeInline"), [block], [], []).outputs) == 0
    split = Instruction(InstructionKind.get("Split"), [loop, None, 4], [True, False],
                        [outer, inner])
    assert split.args["factors"] == [None, 4] and split.args["loop"] is loop
    noted = Instruction(InstructionKind.get("Annotate"), [block, 3], ["width"], [])
    assert (noted.args["ann_key"], noted.args["ann_val"]) == ("width", 3)
    with pytest.raises(TypeError, match="ComputeInline takes inputs"):
        Instruction(InstructionKind.get("ComputeInline"), [block, loop], [], [])
    with pytest.raises(TypeError, match="lacks loop"):
        Instruction(InstructionKind.get("Parallel"), [], [], [])


def test_a_trace_of_instructions_made_by_hand_runs():
    block, i, j, k = BlockRV(), LoopRV(), LoopRV(), LoopRV()
    parts = [LoopRV(), LoopRV()]
    trace = Trace([
        Instruction(InstructionKind.get("GetBlock"), [], ["C", "main"], [block]),
        Instruction(InstructionKind.get("GetLoops"), [block], [], [i, j, k]),
        Instruction(InstructionKind.get("Split"), [j, None, 4], [True, False], parts),
        Instruction(InstructionKind.get("Reorder"), [k, parts[1]], [], []),
    ])
    by_hand, by_call = Schedule(matmul), Schedule(matmul)
    trace.apply_to_schedule(by_hand)
    block = by_call.get_block("C", func_name="main")
    _, j, k = by_call.get_loops(block)
    _, inner = by_call.split(j, [None, 4])
    by_call.reorder(k, inner)
    assert_structural_equal(by_hand.mod, by_call.mod)
    assert str(trace) == str(by_call.trace)


def test_a_decision_is_found_by_its_instruction():
    sch = Schedule(matmul, seed=1)
    for _ in range(2):  # written alike, each with its own decision
        sch.sample_categorical([1, 2, 4, 8], [0.25] * 4)
    first, second = sch.trace.insts
    chosen = sch.trace.decisions
    assert chosen[first] == chosen[0] and chosen[second] == chosen[1]
    assert first in chosen and chosen.get(object()) is None
