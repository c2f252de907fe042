"""Every operator of Relax has a maker of samples, or is known to compute nothing with tensors."""

from mlc_lab.relax.op.registry import OPERATORS

from .operators import NOT_DRAWN, SAMPLES


def test_every_operator_is_drawn():
    drawn = set(SAMPLES)
    assert drawn | NOT_DRAWN == set(OPERATORS)
    assert not drawn & NOT_DRAWN
