"""The before/after example at the head of each pass is what the pass does."""

import re
import textwrap
from importlib import import_module

import numpy as np
import pytest

from mlc_lab import relax
from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.relax import transform
from mlc_lab.relax.dpl import is_op, wildcard
from mlc_lab.script import from_source

MODULES = sorted(set(transform.PASSES.values()))
EXAMPLE = re.compile(r"\nbefore::\n\n(.*?)\nafter `(.*?)`::\n\n(.*?)(?=\n\S|\Z)", re.S)
#: helpers for passes of one's own, and lowering passes whose files explain themselves otherwise
WITHOUT = {"decorators", "vm_shape_lower"}
HEADER = "from mlc_lab.script import ir as I, tir as T, relax as R\n\n@I.ir_module\nclass Module:\n"


#: what the example of AlterOpImpl puts in the place of a kernel
FAST = """
@T.prim_func(private=True)
def fast(x: T.Buffer((T.int64(8),), "float32"), y: T.Buffer((T.int64(8),), "float32")):
    for i in range(T.int64(8)):
        with T.block("y"):
            vi = T.axis.spatial(T.int64(8), i)
            y[vi] = x[vi] * T.float32(2.0)
"""


def example(module):
    """(before, call, after) of a pass's docstring, or None."""
    doc = import_module(f"mlc_lab.relax.transform.{module}").__doc__
    found = EXAMPLE.search(doc)
    return found.groups() if found else None


def as_module(text):
    """The functions of an example as a module."""
    return from_source(HEADER + textwrap.indent(textwrap.dedent(text), "    "))


def scope():
    """What the call of an example may name."""
    names = {n: getattr(transform, n) for n in transform.PASSES}
    names["fast"] = as_module(FAST)["fast"]
    names.update(np=np, relax=relax, is_op=is_op, wildcard=wildcard)
    return names


@pytest.mark.parametrize("module", MODULES)
def test_the_example_is_what_the_pass_does(module):
    found = example(module)
    if found is None:
        assert module in WITHOUT, f"{module} shows no before and after"
        return
    before, call, after = found
    made = eval(call, scope())(as_module(before))
    assert_structural_equal(made, as_module(after))


@pytest.mark.parametrize("module", [m for m in MODULES if example(m) is not None])
def test_a_pass_leaves_the_module_it_is_given_alone(module):
    found = example(module)
    mod = as_module(found[0])
    text, functions = mod.script(), dict(mod.functions)
    eval(found[1], scope())(mod)
    assert mod.script() == text and mod.functions == functions


def test_names_of_tvm_are_there():
    for name in ("Normalize", "FuseOps", "FuseTIR", "FoldConstant", "ConvertLayout",
                 "ToMixedPrecision", "DeadCodeElimination", "function_pass", "dataflowblock_pass"):
        assert callable(getattr(relax.transform, name))
    with pytest.raises(AttributeError, match="NoSuchPass"):
        relax.transform.NoSuchPass
