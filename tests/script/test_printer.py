"""The printer writes what TVM 0.18 writes, and the parser reads it back."""

import time

import pytest

from laws import check_roundtrip
from mlc_lab.ir.module import IRModule
from mlc_lab.script import from_source, script
from mlc_lab.script import tir as T
from mlc_lab.tir import decl_buffer, expr, op, stmt
from mlc_lab.tir.function import PrimFunc

from .programs import BODIES, FUNCTIONS, HEADER, SIGNATURE


@pytest.mark.parametrize("name", BODIES)
def test_a_body_is_printed_as_it_was_written(name):
    text = HEADER + SIGNATURE + BODIES[name].rstrip("\n")
    func = from_source(text)
    assert func.script() == text
    check_roundtrip(func)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_printed_as_it_was_written(name):
    text = HEADER + FUNCTIONS[name].strip("\n")
    func = from_source(text, check_well_formed=name != "bits_and_structs")
    assert func.script() == text
    check_roundtrip(func)


def test_a_module_is_printed_with_its_functions_in_order():
    mod = from_source("""
@I.ir_module
class Module:
    I.module_attrs({"system": 1})

    @T.prim_func
    def second(A: T.Buffer((4,), "float32")):
        T.func_attr({"global_symbol": "other"})
        A[0] = 1.0

    @T.prim_func(private=True)
    def first(A: T.Buffer((4,), "float32")):
        Module.second(A.data)
""")
    text = check_roundtrip(mod)
    assert text == '''# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    I.module_attrs({"system": 1})

    @T.prim_func(private=True)
    def first(A: T.Buffer((4,), "float32")):
        Module.second(A.data)

    @T.prim_func
    def second(A: T.Buffer((4,), "float32")):
        T.func_attr({"global_symbol": "other"})
        A[0] = T.float32(1.0)'''


def test_an_empty_module():
    assert IRModule().script() == (
        "# from tvm.script import ir as I\n\n@I.ir_module\nclass Module:\n    pass")


def test_expressions_print_alone():
    i, j = expr.Var("i", "int32"), expr.Var("j", "int32")
    A = decl_buffer((4, 4), "float32", "A")
    assert repr(i * 4 + j) == "i * 4 + j"
    assert repr(A[i, j] + 1.0) == "A[i, j] + T.float32(1.0)"
    assert repr(op.const(3, "int64")) == "T.int64(3)"
    assert repr(expr.StringImm('a"b')) == r'"a\"b"'
    assert repr(A) == "T.Buffer((4, 4))"
    assert repr(stmt.BufferRegion.from_indices(A, [i, slice(0, 2)])) == "A[i, 0:2]"
    assert str(i) == "i"


def test_verbose_expressions_declare_their_variables():
    i = expr.Var("i", "int64")
    assert script(i + 1, verbose_expr=True) == "i = T.int64()\ni + T.int64(1)"


def test_statements_print_alone_and_declare_what_they_use():
    A = decl_buffer((4,), "float32", "A")
    i = expr.Var("i", "int32")
    loop = stmt.For(i, 0, 4, 0, stmt.BufferStore(A, op.const(0.0), [i]))
    assert repr(loop) == ("for i in range(4):\n    A = T.Buffer((4,))\n    A[i] = T.float32(0.0)")


def test_names_that_python_or_the_script_uses_are_changed():
    for name in ("in", "lambda", "T", "range", "float"):
        buffer = decl_buffer((4,), "float32", name)
        func = PrimFunc([buffer], stmt.BufferStore(buffer, op.const(0.0), [0]))
        assert f"{name}_1[0] = " in check_roundtrip(func)
    buffer = decl_buffer((4,), "float32", "a.b-c")
    func = PrimFunc([buffer], stmt.BufferStore(buffer, op.const(0.0), [0]))
    assert "a_b_c[0] = " in check_roundtrip(func)


def test_many_variables_of_one_name_are_named_at_once():
    """Looking for a free number is no walk over all that are taken."""
    variables = [expr.Var("x", "int32") for _ in range(20000)]
    start = time.perf_counter()
    text = PrimFunc(variables, stmt.Evaluate(op.const(0, "int32"))).script()
    assert time.perf_counter() - start < 5
    assert "x_19999: T.int32" in text and "x_20000" not in text


def test_two_parameters_over_the_same_memory_are_matched():
    A = decl_buffer((4,), "float32", "A")
    B = decl_buffer((2, 2), "float32", "B", data=A.data)
    text = check_roundtrip(PrimFunc([A, B], stmt.BufferStore(B, A[0], [0, 0])))
    assert "B = T.match_buffer(B_handle, (2, 2), data=A.data)" in text


def test_free_variables_and_size_variables():
    n = expr.SizeVar("n", "int64")
    A = decl_buffer((n,), "float32", "A")
    text = check_roundtrip(PrimFunc([A], stmt.BufferStore(A, op.const(0.0), [0])))
    assert "n = T.int64(is_size_var=True)" in text
    m = expr.SizeVar("m", "int32")
    assert "m: T.int32" in check_roundtrip(PrimFunc([m], stmt.Evaluate(m)))


def test_options():
    func = from_source(HEADER + SIGNATURE + BODIES["reduction"])
    assert "@TT.prim_func" in func.script(tir_prefix="TT")
    assert "\n  for i, k in" in func.script(indent_spaces=2)
    assert "def other(" in func.script(name="other")
    assert "class Other:" in IRModule.from_expr(func).script(name="Other")
    plain = func.script(syntax_sugar=False)
    assert "T.grid" not in plain and 'with T.block("root"):' in plain and "remap" not in plain
    assert "= 0.0" in func.script(float_dtype="float32")
    numbered = func.script(print_line_numbers=True).split("\n")
    assert numbered[2].startswith(" 3 @T.prim_func")


def test_deep_expressions_print_and_parse():
    A = decl_buffer((1,), "float32", "A")
    total = A[0]
    for _ in range(3000):
        total = op.add(total, A[0])
    text = PrimFunc([A], stmt.BufferStore(A, total, [0])).script()
    assert text.count("+") == 3000
    assert from_source(text, check_well_formed=False).script().count("+") == 3000


def test_objects_without_script_form_go_to_the_metadata():
    import numpy as np

    func = from_source(HEADER + SIGNATURE + BODIES["grid"]).with_attr("data", np.arange(3))
    text = func.script()
    assert 'metadata["runtime.NDArray"][0]' in text
    assert text.endswith("# Metadata omitted. Use show_meta=True in script() method to show it.")
    again = from_source(func.script(show_meta=True))
    assert (again.attrs["data"] == np.arange(3)).all()


def test_printing_is_fast_enough_to_run_after_every_step():
    import time

    mod = IRModule({"main": from_source(HEADER + SIGNATURE + BODIES["reduction"])})
    mod.script()
    best = min(_timed(mod, time.perf_counter) for _ in range(20))
    assert best < 0.02  # generous: it takes 0.1 ms


def _timed(mod, clock):
    start = clock()
    mod.script()
    return clock() - start


def test_dtype_names_work_in_plain_python():
    assert repr(T.float32(0)) == "T.float32(0.0)" and T.int64(3).dtype == "int64"
    assert T.int32().dtype == "int32" and T.max(T.int32(1), 2).value == 2
    with pytest.raises(TypeError, match="only has a meaning inside"):
        T.grid(1, 2)
    with pytest.raises(AttributeError, match="did you mean T.block"):
        T.blok
