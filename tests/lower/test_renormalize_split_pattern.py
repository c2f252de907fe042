"""RenormalizeSplitPattern: fused indices loop by loop, and the same numbers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlc_lab.ir import structural_equal
from mlc_lab.ir.module import IRModule
from mlc_lab.lower import RenormalizeSplitPattern
from mlc_lab.lower.renormalize_split_pattern import quotient, remainder
from mlc_lab.script import from_source
from mlc_lab.tir import Var, substitute

I, J = Var("i", "int32"), Var("j", "int32")


@given(st.integers(1, 64), st.integers(1, 64), st.integers(1, 64), st.integers(-300, 300),
       st.integers(-300, 300), st.sampled_from(range(5)))
@settings(max_examples=300, deadline=None)
def test_quotients_and_remainders_are_the_same(c, d, by, i, j, form):
    e = [I * c + J, I * c + J * d, (I * c + J) % d, (I * c + J) // d, J + I * c + 7][form]
    values = {I: i, J: j}
    given_number = int(substitute(e, values))
    for made, want in ((quotient(e, by), given_number // by),
                       (remainder(e, by), given_number % by)):
        found = substitute(made, values)
        assert int(found) == want, made


@pytest.mark.parametrize("before, after", [
    ("A[(i * 32 + j) // 64, (i * 32 + j) % 64 // 32, (i * 32 + j) % 32] = 0.0",
     "A[(i + j // 32) // 2, (i + j // 32) % 2, j % 32] = 0.0"),
    ("if i * 32 + j < 128:\n            A[i, j, 0] = 0.0",
     "if (i + j // 32) // 4 < 1:\n            A[i, j, 0] = 0.0"),
    ("if 128 <= i * 32 + j:\n            A[i, j, 0] = 0.0",
     "if not (i + j // 32) // 4 < 1:\n            A[i, j, 0] = 0.0"),
    ("if i // 2 >= j // (-2):\n            A[i, j, 0] = 0.0",) * 2])
def test_programs_are_written_loop_by_loop(before, after):
    text = "@T.prim_func\ndef main(A: T.Buffer((64, 64, 64), 'float32')):\n" \
           "    for i, j in T.grid(8, 64):\n        {}\n"
    func, want = (from_source(text.format(body)) for body in (before, after))
    made = RenormalizeSplitPattern()(IRModule({"main": func}))["main"]
    assert structural_equal(made, want), made.script()
