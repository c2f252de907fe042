"""Hints to load what is needed later: `T.prefetch`, written in TVMScript."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.script import from_source


def program(more):
    """B = 2 A over rows, each row asking for the next."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((64, 16), "float32"), B: T.Buffer((64, 16), "float32")):
    for i, j in T.grid(64, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.evaluate(T.prefetch(T.address_of(A[T.min(vi + 1, 63), vj]){more}))
            B[vi, vj] = A[vi, vj] * T.float32(2)
""")


@pytest.mark.parametrize("more, numbers", [
    ("", "0, 3, 1"), (", 0, 3, 1", "0, 3, 1"), (", 1, 0, 1", "1, 0, 1"), (", 0, 2", "0, 2, 1")])
def test_a_hint_becomes_one_of_llvm(more, numbers):
    lib = tvm.build(program(more), target="llvm")
    assert f"i32 {numbers.replace(', ', ', i32 ')})" in lib.get_source("ll")
    a, b = tvm.nd.array(np.ones((64, 16), "float32")), tvm.nd.empty((64, 16))
    lib["main"](a, b)
    assert (b.numpy() == 2).all()


@pytest.mark.parametrize("more", [", 2, 3, 1", ", 0, 4, 1", ", 0, 3, 1, 1", ", 0, vi, 1"])
def test_a_hint_of_another_kind_is_refused(more):
    with pytest.raises(Exception, match="0 to read or 1 to write"):
        tvm.build(program(more), target="llvm")
