"""Random loop nests: passes that are not among those of a build leave the same numbers, and a
program that is well formed."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlc_lab.ir.module import IRModule
from mlc_lab.ir.transform import PassContext
from mlc_lab.lower import (
    CommonSubexprElimTIR, ConvertForLoopsToSerial, ConvertSSA, ForceNarrowIndexToInt32,
    HoistExpression, NarrowDataType, RemoveNoOp, RenormalizeSplitPattern, RewriteUnsafeSelect,
    Simplify,
)
from mlc_lab.tir import verify_well_formed

from .programs import arguments, run
from .test_random_nests import Nest

OPTIONS = {"tir.Simplify": {"transitively_prove_inequalities": True,
                            "apply_constraints_to_boolean_branches": True,
                            "propagate_knowns_to_prove_conditional": True,
                            "propagate_knowns_to_simplify_expressions": True}}
PASSES = [CommonSubexprElimTIR(), CommonSubexprElimTIR(identify_equiv_terms=True), ConvertSSA(),
          ConvertForLoopsToSerial(), ForceNarrowIndexToInt32(), HoistExpression(),
          NarrowDataType(16), NarrowDataType(8), RemoveNoOp(), RenormalizeSplitPattern(),
          RewriteUnsafeSelect(), Simplify()]


@pytest.mark.parametrize("number", range(len(PASSES)))
@given(data=st.data())
@settings(max_examples=10, deadline=None, derandomize=True,
          suppress_health_check=list(HealthCheck))
def test_a_pass_keeps_the_numbers(number, data):
    func = Nest(data.draw).function()
    mod = IRModule({"main": func})
    with PassContext(config=OPTIONS):
        after = PASSES[number](mod)
    verify_well_formed(after)
    args = arguments(func)
    for a, b in zip(run(mod, args), run(after, args)):
        np.testing.assert_allclose(a, b, rtol=1e-6)
