"""Every pass keeps what a random graph computes, and leaves it well formed."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlc_lab import relax
from mlc_lab.ir import assert_structural_equal
from mlc_lab.relax import transform as X
from mlc_lab.relax.dpl import is_op, wildcard
from mlc_lab.relax.libraries import get_patterns_with_prefix
from mlc_lab.script import from_source

from .graphs import graphs
from .run import Run, same_results

SOME = settings(max_examples=10, deadline=None, derandomize=True,
                suppress_health_check=list(HealthCheck))
PATTERNS = [("lib.relu_matmul", is_op("relax.nn.relu")(is_op("relax.matmul")(wildcard(),
                                                                             wildcard()))),
            ("lib.mul_add", is_op("relax.add")(is_op("relax.multiply")(wildcard(), wildcard()),
                                               wildcard())),
            ("lib.exp", is_op("relax.exp")(wildcard()))]

#: passes that work on graphs of operators
ON_GRAPHS = {
    "Normalize": [X.Normalize()],
    "CanonicalizeBindings": [X.CanonicalizeBindings()],
    "DeadCodeElimination": [X.DeadCodeElimination()],
    "EliminateCommonSubexpr": [X.EliminateCommonSubexpr()],
    "clean": [X.EliminateCommonSubexpr(), X.CanonicalizeBindings(), X.DeadCodeElimination()],
    "FoldConstant": [X.FoldConstant()],
    "ToNonDataflow": [X.ToNonDataflow()],
    "ConvertToDataflow": [X.ToNonDataflow(), X.ConvertToDataflow()],
    "TopologicalSort": [X.TopologicalSort("depth-first", "from-outputs")],
    "TopologicalSort breadth": [X.TopologicalSort("breadth-first", "from-inputs")],
    "FuseOpsByPattern": [X.FuseOpsByPattern(PATTERNS)],
    "composite and inline": [X.FuseOpsByPattern(PATTERNS, annotate_codegen=True)],
    "MergeCompositeFunctions": [X.FuseOpsByPattern(PATTERNS), X.MergeCompositeFunctions()],
    "lift and inline": [X.FuseOpsByPattern(PATTERNS), X.MergeCompositeFunctions(), X.LambdaLift()],
    "ConvertLayout": [X.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})],
    "AttachGlobalSymbol": [X.AttachGlobalSymbol()],
}
#: passes that work on calls of kernels
ON_KERNELS = {
    "FuseOps": [X.LegalizeOps(), X.AnnotateTIROpPattern(), X.FuseOps(3)],
    "FuseTIR": [X.LegalizeOps(), X.AnnotateTIROpPattern(), X.FuseOps(3), X.FuseTIR()],
    "all": [X.LegalizeOps(), X.FoldConstant(), X.AnnotateTIROpPattern(), X.FuseOps(3), X.FuseTIR(),
            X.EliminateCommonSubexpr(), X.CanonicalizeBindings(), X.DeadCodeElimination()],
    "RewriteDataflowReshape": [X.LegalizeOps(), X.RewriteDataflowReshape()],
}


def keeps_meaning(mod, arrays, passes, **tolerance):
    """Run before and after; well formed after each pass."""
    expected = Run(mod)(*arrays)
    for step in passes:
        mod = step(mod)
        assert relax.analysis.well_formed(mod), mod.script()
    same_results(Run(mod)(*arrays), expected, **tolerance)
    return mod


@pytest.mark.parametrize("name", ON_GRAPHS)
def test_passes_over_operators_keep_the_meaning(name):
    @SOME
    @given(graphs())
    def check(case):
        keeps_meaning(*case, ON_GRAPHS[name])

    check()


@pytest.mark.parametrize("name", ON_KERNELS)
def test_passes_over_kernels_keep_the_meaning(name):
    @SOME
    @given(graphs())
    def check(case):
        keeps_meaning(*case, ON_KERNELS[name])

    check()


@SOME
@given(graphs())
def test_a_library_computes_what_the_graph_does(case):
    mod, arrays = case
    keeps_meaning(mod, arrays, [
        X.FuseOpsByPattern(get_patterns_with_prefix("numpy"), annotate_codegen=True),
        X.RunCodegen()])


@SOME
@given(graphs(constants=False, parts=False), st.integers(0, 3))
def test_mixed_precision_stays_near(case, inputs):
    mod, arrays = case
    arrays = [a * 0.25 for a in arrays]
    expected = Run(mod)(*arrays)
    new = X.ToMixedPrecision()(mod)
    assert relax.analysis.well_formed(new), new.script()
    got = Run(new)(*arrays)
    scale = max(1.0, max(float(np.max(np.abs(e))) for e in (
        expected if isinstance(expected, list) else [expected])))
    same_results(got, expected, rtol=3e-2, atol=3e-2 * scale)


def test_equal_allocations_are_not_shared():
    mod = from_source('''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        a = R.builtin.alloc_tensor(R.shape([4]), dtype="float32", runtime_device_index=0)
        b = R.builtin.alloc_tensor(R.shape([4]), dtype="float32", runtime_device_index=0)
        return (a, b)
''')
    assert_structural_equal(relax.transform.EliminateCommonSubexpr()(mod), mod)
