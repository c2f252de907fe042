"""Checks of whole modules: kernels after fusion, functions that are missing or one too many."""

from types import SimpleNamespace

import pytest

from mlc_lab.exercises.checks.graph import graph
from mlc_lab.exercises.checks.structure import structure
from mlc_lab.script import from_source

MODEL = from_source("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 8), "float32")):
        with R.dataflow():
            h = R.matmul(x, w)
            a = R.nn.relu(h)
            y = R.exp(a)
            R.output(y)
        return y
""")


def answer(mod):
    return SimpleNamespace(mod=mod, sch=None)


def test_kernels_are_counted_before_fusion_or_after_it():
    assert not graph(answer(MODEL), None, kernels=1).passed
    assert graph(answer(MODEL), None, kernels=3).passed
    assert graph(answer(MODEL), None, kernels=1, fused=True).passed
    found = graph(answer(MODEL), None, kernels=0, fused=True)
    assert not found.passed and found.says.startswith("1 kernels")


def test_memory_is_planned_after_fusion_too():
    assert not graph(answer(MODEL), None, planned=0).passed
    assert graph(answer(MODEL), None, planned=0, fused=True).passed


def functions(*names):
    body = "\n".join(f"""
    @T.prim_func
    def {name}(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                v = T.axis.spatial(4, i)
                A[v] = T.float32({n})
""" for n, name in enumerate(names))
    return from_source(f"@I.ir_module\nclass Module:{body}")


@pytest.mark.parametrize("have, right", [(("f", "g"), True), (("f",), False),
                                         (("f", "g", "h"), False)])
def test_a_missing_or_an_extra_function_is_no_match(have, right):
    found = structure(answer(functions(*have)), None, matches=functions("f", "g"))
    assert found.passed == right
    assert right or f"it has the functions {', '.join(have)}; asked for: f, g" in found.says
