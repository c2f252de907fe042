"""The watch over what blocks declare sees what is kept and what is not."""

import numpy as np
import pytest

from mlc_lab.script import from_source

from .regions import Undeclared, check_declared


def watched(line: str, *, domain: int = 4, init: str = "") -> None:
    """Run a block of four iterations with these declarations."""
    mod = from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), C: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial({domain}, i)
                {line}
                W = T.match_buffer(C[v:v + 1], (1,), offset_factor=1)
                D = T.alloc_buffer((2,))
                D[v % 2] = A[v + 1]
                W[0] = D[v % 2] + A[v]
""")
    check_declared(mod, [np.ones(8, "float32"), np.zeros(4, "float32")])


def test_promises_that_are_kept():
    watched("T.reads(A[v:v + 2]); T.writes(C[v])")
    watched("T.reads(A[v - 3:v + 9]); T.writes(C[0:4])")


@pytest.mark.parametrize("line, message", [
    ("T.reads(A[v]); T.writes(C[v])", "reads what"),
    ("T.reads(A[v:v + 2]); T.writes(C[0])", "writes what"),
    ("T.reads(A[0:8]); T.writes()", "writes what")])
def test_promises_that_are_not(line, message):
    with pytest.raises(Undeclared, match=message):
        watched(line)


def test_a_binding_outside_of_its_domain():
    with pytest.raises(Undeclared, match=r"v = 3, which is outside"):
        watched("T.reads(A[v:v + 2]); T.writes(C[v])", domain=3)
