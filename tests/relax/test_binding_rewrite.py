"""DataflowBlockRewrite: add, replace, remove."""

import pytest

from mlc_lab import relax
from mlc_lab.relax.analysis import verify_well_formed
from mlc_lab.script import from_source

FUNC = '''
@R.function
def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")):
    with R.dataflow():
        a = R.add(x, y)
        b = R.exp(a)
        c = R.exp(b)
        R.output(c)
    return c
'''


@pytest.fixture
def setup():
    func = from_source(FUNC)
    block = func.body.blocks[0]
    names = {b.var.name_hint: b.var for b in block.bindings}
    return relax.DataflowBlockRewrite(block, func), func, names


def test_add_replace_and_remove(setup):
    rewrite, func, v = setup
    with pytest.raises(ValueError, match="a is still used, by b"):
        rewrite.remove_unused(v["a"])
    rewrite.replace_all_uses(v["a"], func.params[0])
    rewrite.remove_unused(v["a"])
    new = rewrite.mutated_root_fn()
    assert [b.var.name_hint for b in new.body.blocks[0].bindings] == ["b", "c"]
    assert verify_well_formed(new)
    extra = rewrite.add("b", relax.op.exp(relax.op.negative(v["c"])))
    assert extra.name_hint == "b1" and verify_well_formed(rewrite.mutated_root_fn())
    with pytest.raises(KeyError, match="not bound"):
        rewrite.remove_unused(v["a"])
    rewrite.remove_unused(v["a"], allow_undef=True)


def test_remove_everything_unused(setup):
    rewrite, _, _ = setup
    rewrite.add(relax.op.zeros((2,), "float32"), is_dfvar=True)
    rewrite.remove_all_unused()
    assert len(rewrite.mutated_dfb().bindings) == 3


def test_a_block_that_became_empty_is_filled_again():
    func = from_source("""
@R.function
def main(x: R.Tensor((2,), "float32")):
    with R.dataflow():
        a = R.exp(x)
        R.output(a)
    return x
""")
    rewrite = relax.DataflowBlockRewrite(func.body.blocks[0], func)
    rewrite.remove_all_unused()
    assert not rewrite.mutated_root_fn().body.blocks
    rewrite.replace_all_uses(func.params[0], func.params[0])
    rewrite.add("b", relax.op.exp(func.params[0]))
    new = rewrite.mutated_root_fn()
    assert verify_well_formed(new) and new.body.blocks[0] is rewrite.mutated_dfb()
    assert [b.var.name_hint for b in new.body.blocks[0].bindings] == ["b"]


def test_in_a_module(setup):
    from mlc_lab.ir import IRModule

    rewrite, func, v = setup
    rewrite.replace_all_uses(v["b"], v["a"])
    mod = rewrite.mutate_irmodule(IRModule.from_expr(func))
    assert str(mod).count("R.exp(a)") == 2
