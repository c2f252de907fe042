"""A mistake in a script is shown at its line and column, with what would help."""

import inspect
import textwrap

import pytest

from mlc_lab.ir import DiagnosticError
from mlc_lab.script import from_source
from mlc_lab.script import tir as T

MISTAKES = [
    # (body, offending text, message, hint)
    ('with T.blok("b"):\n    pass', "blok", "no name 'blok'", "T.block"),
    ("A[0, 0] = T.epx(A[0, 0])", "epx", "no name 'epx'", "T.exp"),
    ("A[0, 0] = T.axis.spacial(4, 0)", "spacial", "no name 'spacial'", "spatial"),
    ("A[0, 0] = Aa[0, 0]", "Aa", "undefined name 'Aa'", "did you mean A"),
    ("A[0] = 1.0", "A[0]", "2 dimension(s)", "(16, 16)"),
    ("A[0, 0] = A[0, 0, 0]", "A[0, 0, 0]", "accessed with 3", ""),
    ("A[0, 0] = A.data", "A.data", "type handle is stored to A", "T.reinterpret"),
    ("for i, j in T.grid(2, 3, 4):\n    pass", "i, j", "3 loop(s) and 2 name(s)", ""),
    ("for i in [1, 2]:\n    pass", "[1, 2]", "loops over range", ""),
    ("A[0.5, 0] = 1.0", "A[0.5, 0]", "index must be an integer", "T.cast"),
    ("for i in range(4):\n    T.evaluate(i / 2)", "i / 2", "ambiguous", "//"),
    ("T.evaluate(A)", "T.evaluate(A)", "used as a value", ""),
    ("A[0, 0] = T.exp()", "T.exp()", "1 argument", ""),
    ("A[0, 0] = T.Select(A[0, 0] > 0.0, 1.0)", "T.Select(A[0, 0] > 0.0, 1.0)", "missing", ""),
    ("T.reads(A[0, 0])", "T.reads(A[0, 0])", "inside a block", ""),
    ("with T.init():\n    pass", "T.init()", "inside a block", ""),
    ('with T.block("b"):\n    v = T.axis.spatial(4)', "T.axis.spatial(4)", "bound to", ""),
    ('for i in range(4):\n    with T.block("b"):\n        v = T.axis.remap("SS", [i])',
     'T.axis.remap("SS", [i])', "one letter", ""),
    ('with T.block("b"):\n    v = T.axis.remap("S", [A[0, 0]])', 'T.axis.remap("S", [A[0, 0]])',
     "loop variables", ""),
    ('for i in range(4):\n    with T.block("b"):\n        v = T.axis.spatial(4, i)\n'
     "        A[v, i] = 0.0", "A[v, i] = 0.0", "loop variable i", "T.axis.spatial"),
    ('for i in range(4):\n    with T.block("b"):\n        v = T.axis.spatial(4, i)\n'
     "        with T.init():\n            A[v, 0] = 0.0\n        A[v, 0] += 1.0", 'T.block("b")',
     "no reduction iterator", "T.axis.reduce"),
    ("B = T.alloc_buffer((4,), 'float33')", "T.alloc_buffer((4,), 'float33')", "unknown dtype", ""),
    ("B = T.match_buffer(A)", "T.match_buffer(A)", "inside a block", ""),
    ("B = T.alloc_buffer((4,), colour=3)", "T.alloc_buffer((4,), colour=3)", "colour", "it is T."),
    ("x: T.int32 = A[0, 0]", "A[0, 0]", "declared int32", "T.cast"),
    ("import os", "import os", "no statement of a script", ""),
    ("x = lambda", None, "no Python", ""),
    ("open('f')", "open('f')", "never executed", ""),
    ("if A[0, 0]:\n    pass", "A[0, 0]", "expected a condition", "compare it"),
    ("A[0, 0] == 1.0 if 3 else 2", None, None, None),
    ("for i in range(0, 8, 2):\n    pass", "range(0, 8, 2)", "step", ""),
    ("A = 3\nA[0, 0] = 1.0", "A", "no buffer", ""),
    ('T.func_attr("x")', 'T.func_attr("x")', "takes a dict", ""),
    ("A.datta", "datta", "no attribute 'datta'", "A.data"),
    ("for i in range(4):\n    A[i] += 1.0", "A[i]", "2 dimension(s)", ""),
    ("T.evaluate(1 // 0)", "1 // 0", "division", ""),
    ("T.evaluate(abs([1]))", "abs([1])", "abs takes a number", ""),
    ("def g():\n    pass", "def g():", "T.macro", ""),
    ("x, y = 1, 2, 3", "x, y", "3 value(s) for 2", ""),
    ('with T.block("b"):\n    T.evaluate(A.data)', 'T.block("b")', "data pointer of A",
     "T.reads"),
    # what is said twice
    ("a, a = 1, 2\nT.evaluate(a)", "a", "stands twice", "own name"),
    ("for i, i in T.grid(2, 3):\n    pass", "i", "stands twice", "own name"),
    ('T.func_attr({"a": 1})\nT.func_attr({"a": 2})', 'T.func_attr({"a": 2})', "'a' is given twice",
     ""),
    ('with T.block("b"):\n    T.block_attr({})\n    T.block_attr({})\n    T.evaluate(0)',
     "T.block_attr({})", "already", ""),
    # what a second name of memory says that is not so
    ('with T.block("b"):\n    T.writes(A[0, 0:4])\n    S = T.match_buffer(A[0, 0:4], (5,))\n'
     "    S[0] = 1.0", "S = T.match_buffer(A[0, 0:4], (5,))", "the extents (1, 4)", ""),
    ('with T.block("b"):\n    T.writes(A[0:2, 0:4])\n    S = T.match_buffer(A[0:2, 0:4], (4,))\n'
     "    S[0] = 1.0", "S = T.match_buffer(A[0:2, 0:4], (4,))", "the extents (2, 4)", ""),
    ('with T.block("b"):\n    T.writes(A[0, 0:4])\n'
     '    S = T.match_buffer(A[0, 0:4], (4,), "int32")\n    S[0] = 1',
     'S = T.match_buffer(A[0, 0:4], (4,), "int32")', "holds float32", ""),
    ('with T.block("b"):\n    T.writes(A[0, 0:4])\n'
     '    S = T.match_buffer(A[0, 0:4], (4,), scope="local")\n    S[0] = 1.0',
     'S = T.match_buffer(A[0, 0:4], (4,), scope="local")', "declared 'local'", ""),
    # a vector is of elements side by side
    ("A[0:4, 0] = T.float32(1)", "A[0:4, 0]", "only the last index", "loop over"),
    ("A[0, 0] = A[0:4, 0] + T.float32(1)", "A[0:4, 0] + T.float32(1)", "only the last index", ""),
    ("if 1.5:\n    T.evaluate(0)", "1.5", "no condition", "compare it"),
    ('for i, j in T.grid(4, 4):\n    with T.block("b"):\n'
     '        v, v = T.axis.remap("SS", [i, j])\n        A[v, v] = 0.0',
     'v, v = T.axis.remap("SS", [i, j])', "v is an axis of the block already", "another name"),
    ('for i in range(4):\n    with T.block("b"):\n        v = T.axis.spatial(4, i)\n'
     "        v = T.axis.spatial(4, i)\n        A[v, v] = 0.0", "v = T.axis.spatial(4, i)",
     "v is an axis of the block already", ""),
    ("B = T.alloc_buffer((4,))\nB = T.alloc_buffer((8,))\nB[0] = 1.0",
     "B = T.alloc_buffer((8,))", "B is a buffer already", ""),
    *((f'with T.block("b"):\n    T.{word}\n    T.{word}\n    A[0, 0] = 0.0', f"T.{word}",
       f"the block has a T.{word.partition('(')[0]}(...) already", "")
      for word in ("reads(A[0, 0])", "writes(A[0, 0])", "where(1 < 2)", 'block_attr({"a": 1})')),
    ('with T.block("b") as x:\n    A[0, 0] = 0.0', "x", "nothing to name", "T.axis.spatial"),
]


@pytest.mark.parametrize("text, where, message, hint",
                         [m for m in MISTAKES if m[2]], ids=lambda v: repr(v)[:40])
def test_a_mistake_points_at_itself(text, where, message, hint):
    program = ('@T.prim_func\ndef f(A: T.Buffer((16, 16), "float32")):\n'
               + textwrap.indent(text, "    "))
    with pytest.raises(DiagnosticError) as raised:
        from_source(program)
    error = raised.value
    assert message in error.message
    if hint:
        assert hint in error.hint
    lines = program.split("\n")
    assert error.source_line.rstrip() == lines[error.line - 1].rstrip()
    if where is not None:
        marked = error.source_line[error.column - 1:error.end_column - 1]
        assert marked == where
    assert f"<source>:{error.line}:{error.column}: " in str(error) and "^" in str(error)


@pytest.mark.parametrize("word", [
    'T.func_attr({"a": 1})', 'T.func_ret("int32")', "y = T.alloc_buffer((2,))"])
def test_a_word_of_tensorir_says_that_it_is_one(word):
    with pytest.raises(DiagnosticError, match="inside a function under @T.prim_func"):
        from_source('@R.function\ndef f(x: R.Tensor((2,), "float32")):\n'
                    f"    {word}\n    return x")


@pytest.mark.parametrize("kind, param", [("T.prim_func", 'T.Buffer((4,), "float32")'),
                                         ("R.function", 'R.Tensor((4,), "float32")')])
def test_two_parameters_of_one_name_are_refused(kind, param):
    text = f"@{kind}\ndef f(x: {param}, x: {param}):\n    "
    with pytest.raises(DiagnosticError, match="there are two parameters 'x'") as raised:
        from_source(text + ("x[0] = x[0]\n" if kind[0] == "T" else "return x\n"))
    assert raised.value.line == 2


def test_the_file_and_line_are_the_users_own():
    with pytest.raises(DiagnosticError) as raised:
        @T.prim_func
        def wrong(A: T.Buffer((4,), "float32")):
            for i in range(4):
                A[i] = undefined_thing  # here

    error = raised.value
    assert error.filename == __file__
    source = inspect.getsource(inspect.getmodule(test_a_mistake_points_at_itself)).split("\n")
    assert source[error.line - 1].endswith("undefined_thing  # here")
    assert error.source_line[error.column - 1:error.end_column - 1] == "undefined_thing"


def test_columns_count_characters_not_bytes():
    with pytest.raises(DiagnosticError) as raised:
        from_source('@T.prim_func\ndef f(A: T.Buffer((4,), "float32")):\n'
                    '    A[0] = T.call_extern("float32", "é", missing)')
    error = raised.value
    assert error.source_line[error.column - 1:error.end_column - 1] == "missing"


def test_an_indented_text_keeps_its_columns():
    with pytest.raises(DiagnosticError) as raised:
        from_source("""
            @T.prim_func
            def f(A: T.Buffer((4,), "float32")):
                A[0] = missing
        """)
    error = raised.value
    assert error.line == 4 and error.source_line == "                A[0] = missing"
    assert error.source_line[error.column - 1:error.end_column - 1] == "missing"


def test_errors_of_signatures():
    for program, message in [
            ("@T.prim_func\ndef f(A):\n    pass", "has no type"),
            ("@T.prim_func\ndef f(A: 3):\n    pass", "expected T.Buffer"),
            ("@T.prim_func\ndef f(A: T.int32 = 3):\n    pass", "without defaults"),
            ("def f(A: T.int32):\n    pass", "no decorator"),
            ("@T.exp\ndef f(A: T.int32):\n    pass", "no decorator of a script"),
            ("x = 3", "defines no function"),
            ("@T.prim_func(privat=True)\ndef f(A: T.int32):\n    pass", "no option 'privat'"),
            ('@T.prim_func(private=True)\ndef f(A: T.int32):\n'
             '    T.func_attr({"global_symbol": "g"})', "private function has no global_symbol"),
            ("@T.prim_func\ndef f(a: T.handle):\n    A = T.match_buffer(a, (4,))\n"
             "    B = T.match_buffer(a, (2, 2))", "the buffer A already"),
            ("@I.ir_module\nclass M:\n    @T.prim_func\n    def f(A: T.int32):\n        pass\n"
             "    @T.prim_func\n    def f(B: T.int32):\n        pass", "a function f already"),
            ('@R.function\ndef f(x: R.Object):\n    R.func_attr({"a": 1})\n'
             '    R.func_attr({"a": 2})\n    return x', "'a' is given twice"),
            ("@I.ir_module\nclass M:\n    for i in range(3):\n        pass", "functions only")]:
        with pytest.raises(DiagnosticError, match=message):
            from_source(program)


def test_decorators_take_options_that_they_have_by_name():
    with pytest.raises(TypeError, match="no option 'privat'"):
        T.prim_func(privat=True)
    for word in (T.prim_func, T.macro):
        with pytest.raises(ValueError, match="options by name"):
            word(True)


def test_an_ill_formed_program_can_be_asked_for():
    text = ('@T.prim_func(check_well_formed=False)\ndef f(A: T.Buffer((4,), "float32")):\n'
            '    for i in range(4):\n        with T.block("b"):\n'
            "            v = T.axis.spatial(4, i)\n            A[i] = 0.0")
    assert from_source(text, check_well_formed=False) is not None
    with pytest.raises(DiagnosticError, match="loop variable i"):
        from_source(text)
