"""Kinds of instructions are found by TVM's names."""

import pytest

from mlc_lab.schedule import InstructionKind


def test_found_by_name():
    kind = InstructionKind.get("GetLoops")
    assert kind.name == "GetLoops" and kind.is_pure
    assert not InstructionKind.get("Split").is_pure
    assert kind.same_as(InstructionKind.get("GetLoops"))


def test_a_wrong_name_is_refused_with_a_near_one():
    with pytest.raises(ValueError, match="did you mean 'Split'"):
        InstructionKind.get("Splitt")
