"""Every operator of Relax has a maker of samples, or is known to compute nothing with tensors."""

from mlc_lab.relax.op.declare import CONSTRUCTORS
from mlc_lab.relax.op.registry import OPERATORS

from .operator_numbers import ANY, FITS, parameters
from .operators import NOT_DRAWN, SAMPLES

#: kinds of parameters that hold whole numbers
NUMBERS = {"Whole", "Axis", "Ints", "Size", "Scalar", "Shape", "Cuts", "Widths", "Number",
           "Numbers", "ImageSize"}


def test_every_operator_is_drawn():
    drawn = set(SAMPLES)
    assert drawn | NOT_DRAWN == set(OPERATORS)
    assert not drawn & NOT_DRAWN


def test_counts_indices_axes_and_sizes_of_every_operator_are_tried():
    for name in set(SAMPLES) & set(OPERATORS):
        short = name.rpartition(".")[2]
        declared = getattr(CONSTRUCTORS[name], "__wrapped__", None)
        kinds = getattr(declared, "__annotations__", {})
        numbers = {p for p in parameters(name)
                   if str(kinds.get(p)).removesuffix(" | None") in NUMBERS
                   and not {p, f"{p} of {short}"} & ANY}
        assert not numbers or name in FITS, f"{name}: what of {numbers} fits?"
