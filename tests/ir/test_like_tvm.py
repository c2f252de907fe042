"""What structural equality leaves out, as TVM's does, and who is told of mistakes in scripts."""

import pytest

from mlc_lab import tir
from mlc_lab.ir import assert_structural_equal, structural_equal, structural_hash
from mlc_lab.ir.diagnostics import DiagnosticError, override_renderer
from mlc_lab.script import from_source

PROGRAM = """
@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("{}"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi] + T.float32(1)
"""


def test_names_of_blocks_do_not_count():
    one, other = from_source(PROGRAM.format("one")), from_source(PROGRAM.format("other"))
    assert_structural_equal(one, other)
    assert structural_hash(one) == structural_hash(other)
    assert not structural_equal(one, other.with_attr("global_symbol", "g"))


def test_lists_and_tuples_are_the_same():
    x = tir.Var("x", "int32")
    assert structural_equal([x + 1, x], (x + 1, x))
    assert not structural_equal([x + 1, x], (x + 1,))


def test_a_schedule_keeps_the_name_of_its_function():
    sch = tir.Schedule(from_source(PROGRAM.format("B")))
    assert sch.mod["main"].attrs["global_symbol"] == "f"
    assert sch.get_block("B", func_name="main") is not None


def test_a_renderer_is_told_of_the_place():
    seen = []
    override_renderer(lambda context: seen.extend(context.diagnostics))
    try:
        with pytest.raises(DiagnosticError):
            from_source("@T.prim_func\ndef f(a: T.handle):\n    B = nothing\n")
    finally:
        override_renderer(None)
    (error,) = seen
    assert error.span.line == 3 and "nothing" in error.message
