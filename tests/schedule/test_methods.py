"""Primitives become methods of Schedule as they are defined."""

import pytest

from mlc_lab.schedule.instruction import InstructionKind, primitive


def test_a_primitive_does_not_take_the_name_of_another_method():
    with pytest.raises(ValueError, match="'seed' already"):
        @primitive("Seed")
        def seed(state):
            """Not to be."""
    assert "Seed" not in InstructionKind.registry
