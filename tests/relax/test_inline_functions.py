"""func.inline_functions: bodies take the place of calls."""

import pytest

from mlc_lab.ir import GlobalVar, assert_structural_equal
from mlc_lab.script import from_source

MODULE = """
@I.ir_module
class Module:
    @R.function(private=True)
    def main(x: R.Tensor((4, 4), "int32")) -> R.Tensor((4, 8), "int32"):
        y = x * x
        z = Module.twice(y)
        return z + z

    @R.function(private=True)
    def twice(x: R.Tensor(("n", 4), "int32")) -> R.Tensor(("n", 8), "int32"):
        y = Module.same(x)
        return R.concat([y, y], axis=1)

    @R.function(private=True)
    def same(x: R.Tensor(("n", 4), "int32")) -> R.Tensor(("n", 4), "int32"):
        return x + x

    @R.function(private=True)
    def endless(x: R.Tensor((4,), "int32")) -> R.Tensor((4,), "int32"):
        y: R.Tensor((4,), "int32") = Module.endless(x)
        return y
"""
EXPECTED = """
@R.function(private=True)
def main(x: R.Tensor((4, 4), "int32")) -> R.Tensor((4, 8), "int32"):
    y = x * x
    w = y + y
    z = R.concat([w, w], axis=1)
    return z + z
"""


@pytest.mark.parametrize("key", [str, lambda name: GlobalVar(name)])
def test_what_is_called_in_turn_is_inlined_too_where_it_is_given(key):
    mod = from_source(MODULE)
    after = mod["main"].inline_functions({key("twice"): mod["twice"], key("same"): mod["same"]})
    assert_structural_equal(after, from_source(EXPECTED))
    once = mod["main"].inline_functions({"twice": mod["twice"]})
    assert "same" in once.script() and "twice" not in once.script()
    assert mod["main"].inline_functions({"unknown": mod["same"]}) is mod["main"]


def test_refusals():
    mod = from_source(MODULE)
    with pytest.raises(ValueError, match="given twice"):
        mod["main"].inline_functions({"same": mod["same"], GlobalVar("same"): mod["same"]})
    with pytest.raises(ValueError, match="calls itself"):
        mod["endless"].inline_functions({"endless": mod["endless"]})
    with pytest.raises(ValueError, match="no Relax function"):
        mod["main"].inline_functions({"twice": 3})
