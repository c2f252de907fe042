"""The before/after example in each primitive's docstring is what the primitive does."""

import numpy as np
import pytest

from mlc_lab.ir.module import IRModule
from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.schedule import InstructionKind, Schedule

from .common import run
from .docstring_examples import as_function, example, names_for

_LOOKING = {"GetBlock", "GetLoops", "GetChildBlocks", "GetProducers", "GetConsumers",
            "GetOutputBlocks", "SamplePerfectTile", "SampleCategorical", "SampleComputeLocation",
            "EnterPostproc", "Annotate", "Unannotate"}


KINDS = [k for k in InstructionKind.registry.values() if example(k)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.method)
def test_the_example_is_true(kind):
    before, call, where, after = example(kind)
    func, shapes = as_function(before)
    sch = Schedule(func)
    original = sch.mod
    scope = names_for(sch, where)
    eval(call, {"sch": sch, **scope})  # our own docstring, not user input
    want, _ = as_function(after, shapes)
    assert_structural_equal(IRModule({"main": want}), sch.mod)
    for a, b in zip(run(original), run(sch.mod)):
        loose = 1e-2 if kind.method == "unsafe_set_dtype" else 1e-4
        np.testing.assert_allclose(a, b, rtol=loose, atol=loose)


def test_every_primitive_has_a_meaning_and_most_an_example():
    for kind in InstructionKind.registry.values():
        assert kind.meaning.endswith("."), kind.method
    missing = [k.method for k in InstructionKind.registry.values()
               if not example(k) and k.name not in _LOOKING]
    assert not missing or set(missing) <= {"bind", "tensorize"}, missing
