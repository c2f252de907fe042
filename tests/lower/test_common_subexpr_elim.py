"""CommonSubexprElimTIR: names for what is computed several times, and the same program."""

import pytest

from mlc_lab.ir import structural_equal
from mlc_lab.ir.module import IRModule
from mlc_lab.lower import CommonSubexprElimTIR
from mlc_lab.script import from_source

from .test_simplify import same_meaning


def apply(text, **options):
    func = from_source(text)
    after = CommonSubexprElimTIR(**options)(IRModule({"main": func}))["main"]
    return func, after


def becomes(text, want, **options):
    func, after = apply(text, **options)
    assert structural_equal(after, from_source(want)), after.script()
    same_meaning(func, after)


HEAD = """
@T.prim_func
def main(B: T.Buffer((50,), "int32"), i: T.int32, x: T.int32, y: T.int32, z: T.int32):
"""


def test_an_index_is_computed_once():
    becomes("""
    @T.prim_func
    def main(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
        for i, j in T.grid(8, 16):
            B[i * 16 + j] = A[i * 16 + j] * T.float32(2)
    """, """
    @T.prim_func
    def main(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
        for i in range(8):
            with T.LetStmt(i * 16) as cse_var_1:
                for j in range(16):
                    with T.LetStmt(cse_var_1 + j) as cse_var_2:
                        B[cse_var_2] = A[cse_var_2] * T.float32(2)
    """)


def test_a_term_of_a_term_is_named_before_it():
    func, after = apply(HEAD + """
    B[0] = x + y + z
    B[1] = x + y + z
    B[2] = x + y
    """)
    outer, inner = after.body, after.body.body
    assert (outer.var.name, inner.var.name) == ("cse_var_2", "cse_var_1")
    assert inner.value.a is outer.var


@pytest.mark.parametrize("other, inside", [("B[2] = x", True), ("B[2] = x + y", False)])
def test_what_one_branch_alone_computes_is_named_in_it(other, inside):
    func, after = apply(HEAD + f"""
    if i > 3:
        B[0] = x + y
        B[1] = x + y
    else:
        {other}
    """)
    branch = after.body.then_case if inside else after.body
    assert branch.var.name == "cse_var_1" and type(branch.body).__name__ in ("SeqStmt",
                                                                             "IfThenElse")


def test_what_might_fail_or_change_is_left():
    for text in ("B[0] = x // y\n    B[1] = x // y", "B[0] = B[3] + 1\n    B[3] = B[3] + 1",
                 "if y > 0:\n        B[0] = x // y\n        B[1] = x // y"):
        func, after = apply(HEAD + "    " + text)
        assert structural_equal(func, after), after.script()
    func, after = apply(HEAD + "    B[0] = x + y\n    B[1] = x + y", enable_cse_tir=False)
    assert after is func


def test_equivalent_terms_are_one_when_asked():
    text = HEAD + """
    B[0] = x * (y + z)
    B[1] = x * y + x * z
    """
    assert structural_equal(*apply(text))
    func, after = apply(text, identify_equiv_terms=True)
    assert after.body.var.name == "cse_var_1" and after.body.body.seq[0].value is after.body.var
