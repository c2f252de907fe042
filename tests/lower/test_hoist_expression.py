"""HoistExpression: conditions and values before the loops that do not change them."""

import numpy as np
import pytest

from mlc_lab.backend.interp import interpret
from mlc_lab.ir import structural_equal
from mlc_lab.ir.module import IRModule
from mlc_lab.ir.transform import PassContext
from mlc_lab.lower import HoistedConditionals, HoistedLetBindings, HoistExpression
from mlc_lab.script import from_source
from mlc_lab.tir import For, IfThenElse, pre_order

HEAD = "@T.prim_func\ndef main(A: T.Buffer((4, 4), 'float32'), n: T.int32):\n"


def hoisted(body, conditionals=HoistedConditionals.All, lets=HoistedLetBindings.All):
    func = from_source(HEAD + body)
    config = {"hoisted_conditionals": conditionals.value, "hoisted_let_bindings": lets.value}
    with PassContext(config={"tir.HoistExpression": config}):
        after = HoistExpression()(IRModule({"main": func}))["main"]
    for n in (-3, 0, 1, 7, 40):
        outs = [np.full((4, 4), 9, "float32") for _ in "ab"]
        for f, out in zip((func, after), outs):
            interpret(IRModule({"main": f}), out, n)
        np.testing.assert_array_equal(*outs)
    names = [v for item in pre_order(after.body) if isinstance(item, For)
             for v in [item.loop_var]]
    assert len(set(names)) == len(names), "a variable is bound twice"
    return func, after


def becomes(body, want, **options):
    _, after = hoisted(body, **options)
    assert structural_equal(after, from_source(HEAD + want)), after.script()


def test_each_part_of_a_condition_leaves_the_loops_it_does_not_depend_on():
    becomes("""
    for i, j, k in T.grid(4, 4, 4):
        if j < 3 and i < 2:
            A[i, j] = T.float32(k)
""", """
    for i in range(4):
        if i < 2:
            for j in range(4):
                if j < 3:
                    for k in range(4):
                        A[i, j] = T.float32(k)
""")


def test_answers_that_follow_are_not_asked_again():
    becomes("""
    for i, j in T.grid(4, 4):
        if j < 3:
            if i < 2:
                A[i, j] = 0.0
        else:
            A[i, j] = T.if_then_else(i < 1, T.float32(2), T.float32(3))
""", """
    for i in range(4):
        if i < 2:
            if i < 1:
                for j in range(4):
                    if j < 3:
                        A[i, j] = 0.0
                    else:
                        A[i, j] = T.float32(2)
            else:
                for j in range(4):
                    if j < 3:
                        A[i, j] = 0.0
                    else:
                        A[i, j] = T.float32(3)
        else:
            for j in range(4):
                if not j < 3:
                    A[i, j] = T.float32(3)
""")


def test_values_with_names_leave_loops():
    body = """
    for i, j in T.grid(4, 4):
        small = i < 3
        if small:
            A[i, j] = T.float32(1)
"""
    becomes(body, """
    for i in range(4):
        small = i < 3
        if small:
            for j in range(4):
                A[i, j] = T.float32(1)
""")
    before, after = hoisted(body, lets=HoistedLetBindings.Never)
    assert structural_equal(before, after)


@pytest.mark.parametrize("body, options", [
    ("    for i in range(4):\n        if n != 0:\n            A[i, 0] = 0.0\n",
     {"conditionals": HoistedConditionals.IfElseExpr}),
    ("    for i in range(4):\n        if 4 // n > 2:\n            A[i, 0] = 0.0\n", {}),
    ("    for i in range(4):\n        if A[0, 0] > 0.0:\n            A[i, 0] = -1.0\n", {})])
def test_what_is_not_asked_for_or_might_differ_stays(body, options):
    func = from_source(HEAD + body)
    with PassContext(config={"tir.HoistExpression": {
            f"hoisted_{k}": v.value for k, v in options.items()}}):
        after = HoistExpression()(IRModule({"main": func}))["main"]
    assert structural_equal(func, after)


def test_many_conditions_do_not_make_a_program_without_end():
    body = "    for i in range(4):\n" + "".join(
        f"        if n > {k}:\n            A[i, 0] = T.float32({k})\n" for k in range(30))
    _, after = hoisted(body)
    assert sum(isinstance(item, IfThenElse) for item in pre_order(after.body)) < 5000
