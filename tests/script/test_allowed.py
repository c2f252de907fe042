"""A script names, reads and calls what is on the lists, and nothing beside them."""

import contextlib
import enum
from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import mlc_lab.relax  # noqa: F401  (R, for texts)
from mlc_lab import tir
from mlc_lab.ir import DiagnosticError
from mlc_lab.script import from_source
from mlc_lab.script import relax as R
from mlc_lab.script import tir as T

HEAD = '@T.prim_func\ndef f(A: T.Buffer((16,), "float32")):\n    '

#: expressions that would touch the folder {canary} if anything of them were executed
GADGETS = [
    "max([{code!r}], key=eval)", "min([{code!r}, '1'], key=exec)", "sorted([{code!r}], key=eval)",
    "max([{code!r}], key=lambda text: eval(text))", "sum(map(eval, [{code!r}]))",
    "eval({code!r})", "exec({code!r})", "__import__('os').mkdir({canary!r})",
    "open({canary!r}, 'w')", "T.index_map(eval)", "T.comm_reducer(eval, [T.float32(0)])",
    "T.prim_func(eval)", "T.macro(open)", "T.meta_var(eval)({code!r})", "T.target(eval)",
    "T.Buffer[eval]", "A[eval]", "T.float32(eval)", "isinstance({code!r}, eval)",
    "(lambda f: f({code!r}))(eval)", "[f({code!r}) for f in [eval]]",
    "{{'f': eval}}['f']({code!r})",
    "f'{{eval({code!r})}}'", "f'{{max([{code!r}], key=eval)}}'",
    "getattr(T, 'dt')", "vars(T)", "globals()", "__builtins__['eval']({code!r})",
    "T.exp.__globals__['__builtins__']['eval']({code!r})",
    "tvm.ir.hooks.importlib.import_module('os').mkdir({canary!r})",
    "tvm.tir.stmt.Any", "R.register_legalize('relax.add', eval)", "R.emit_te(eval, {code!r})",
    "R.call_tir(eval, ())", "R.const(eval)", "I.ir_module(eval)",
]
#: places of a script where an expression may stand
PLACES = {
    "value": HEAD + "A[0] = {}", "statement": HEAD + "T.evaluate({})",
    "extent": HEAD + "for i in range({}):\n        A[i] = 1.0",
    "grid": HEAD + "for i, j in T.grid(4, {}):\n        A[i] = 1.0",
    "loop annotation": HEAD + "for i in T.serial(4, annotations={{'a': {}}}):\n        A[i] = 1.0",
    "attribute": HEAD + "T.func_attr({{'a': {}}})\n    A[0] = 1.0",
    "condition": HEAD + "if {}:\n        A[0] = 1.0",
    "block": HEAD + "with T.block({}):\n        A[0] = 1.0",
    "reads": HEAD + "with T.block('b'):\n        T.reads({})\n        A[0] = 1.0",
    "constant": "X = {}\n" + HEAD + "A[0] = X",
    "annotation": "@T.prim_func\ndef f(A: T.Buffer(({},), 'float32')):\n    A[0] = 1.0",
    "bare annotation": "@T.prim_func\ndef f(A: {}):\n    T.evaluate(0)",
    "result": "@T.prim_func\ndef f() -> {}:\n    T.evaluate(0)",
    "default": "@T.prim_func\ndef f(a: T.int32 = {}):\n    T.evaluate(0)",
    "option": "@T.prim_func(private={})\ndef f():\n    T.evaluate(0)",
    "decorator": "@{}\ndef f():\n    T.evaluate(0)",
    "macro": "@T.macro\ndef m(A):\n    A[0] = {}\n" + HEAD + "m(A)",
    "macro's default": "@T.macro\ndef m(A, x={}):\n    A[0] = x\n" + HEAD + "m(A)",
    "class": "@I.ir_module\nclass M:\n    X = {}\n    @T.prim_func\n    def f():\n"
             "        T.evaluate(0)",
    "module attribute": "@I.ir_module\nclass M:\n    I.module_attrs({{'a': {}}})",
    "metadata": "metadata = {}\n" + HEAD + "A[0] = 1.0",
    "relax": "@R.function\ndef f(x: R.Tensor((2,), 'float32')):\n    y = {}\n    return y",
    "relax argument": "@R.function\ndef f(x: R.Tensor((2,), 'float32')):\n    return R.add(x, {})",
    "relax shape": "@R.function\ndef f(x: R.Tensor(({},), 'float32')):\n    return x",
    "relax attribute": "@R.function\ndef f(x: R.Tensor((2,), 'float32')):\n"
                       "    R.func_attr({{'a': {}}})\n    return x",
}


@pytest.mark.parametrize("place", PLACES)
def test_no_place_of_a_text_executes_anything(place, tmp_path):
    canary = tmp_path / "made"
    for gadget in GADGETS:
        code = f"__import__('os').mkdir({str(canary)!r})"
        text = gadget.format(code=code, canary=str(canary))
        program = PLACES[place].format(text)
        with pytest.raises(DiagnosticError):
            from_source(program)
        assert not canary.exists(), program
        with contextlib.suppress(DiagnosticError):  # as a string, which may be parsed once more
            from_source(PLACES[place].format(repr(text)))
        assert not canary.exists(), program


@pytest.mark.parametrize("expression, words", [
    ("max([1], key=abs)", "key="), ("'{0.__class__}'.format(T.Buffer)", "format"),
    ("T.dt", "no name 'dt'"), ("T.E", "no name 'E'"), ("R.RESOLVERS", "no name 'RESOLVERS'"),
    ("A.__class__", "__class__"), ("A.replace", "replace"), ("A.shape.__len__", "__len__"),
    ("(1).bit_length()", "bit_length"), ("[].append(1)", "append"), ("T.exp.__name__", "__name__"),
    ("T.exp(print)", "print cannot be used"), ("T.exp(T.exp)", "cannot be passed on"),
    ("T.exp(T)", "cannot be passed on"), ("T.exp(max)", "cannot be passed on"),
    ("T.call_extern('int32', [T.exp])", "cannot be passed on"), ("print(1)", "never executed"),
    ("type(1)", "of Python's own functions a script has"), ("A()", "cannot be called"),
    ("T.prim_func(1)", "cannot be called"), ("__name__", "__name__ cannot be used"),
    ("f'{T}'", "cannot be put into a string"), ("str(T)", "cannot be passed on"),
    ("[x for x in A]", "a Buffer cannot be gone over"), ("[*A]", "a Buffer cannot be gone over"),
    ("A in [1]", "used as a value"), ("T.axis.mro", "has no name"),
    ("tvm.tir.stmt", "no name 'stmt'"), ("isinstance(1, type)", "type cannot be used"),
])
def test_a_refusal_says_what_is_not_on_the_list(expression, words):
    with pytest.raises(DiagnosticError) as raised:
        from_source(HEAD + f"T.evaluate({expression})")
    assert words in str(raised.value)
    assert raised.value.line == 3 and raised.value.column > 4


@pytest.mark.parametrize("statement", [
    "T.func_attr({'a': lambda i: i})",
    "for i in T.serial(4, annotations={'a': [lambda i: i]}): A[0] = 1.0"])
def test_no_function_is_kept_in_a_program(statement):
    with pytest.raises(DiagnosticError, match="(?s):3:.*an annotation is a number.*not a function"):
        from_source(HEAD + statement)


def test_what_is_on_the_list_stays():
    func = from_source(HEAD + "\n    ".join([
        "A[len((1, 2))] = abs(-1.5) + min(2, 3) + max([4, 5]) + sum([1, 2]) + round(1.25, 1)",
        "A[int('3')] = float(1) + (1.0 if isinstance(2, int) and all([1]) and any([0, 1]) else 0)",
        "A[sorted([5, 4])[0]] = T.float32([k * 2 for k, _ in zip(range(3), 'abc')][-1])",
        "A[divmod(11, 2)[0]] = pow(2, 3) + 2 ** 10 + (1 << 4)",
        "A[list(reversed([1, 6]))[0]] = T.float32({'a': 1.0}.get('a')) + 7 // 2 + 7 % 4",
        "A[7] = T.exp(A[0]) + tvm.tir.max(A[1], A[2]) + A.vload([3])",
        "A[8] = T.cast(A.shape[0], 'float32')",
        "T.evaluate(T.call_extern('int32', f'k_{A.dtype}_{7:03d}', A.access_ptr('r')))",
        "T.evaluate(T.call_extern('int32', 'k_%d_%s' % (3, 'x') + 'Ab'.lower() + 'x' * 2))",
    ]))
    assert 'T.call_extern("int32", "k_float32_007"' in func.script()
    assert '"k_3_xabxx"' in func.script()


# --------------------------------------------------------------------- values of the user's scope


class Kind(enum.Enum):
    ROWS = 4


@dataclass
class Config:
    rows: int = 3
    ran = []

    @property
    def computed(self):
        self.ran.append("property")
        return 5

    def __add__(self, other):
        self.ran.append("+")
        return 1

    __eq__ = __getitem__ = __contains__ = __add__

    def __iter__(self):
        self.ran.append("iter")
        return iter([1])

    def __bool__(self):
        self.ran.append("bool")
        return True

    def __format__(self, spec):
        self.ran.append("format")
        return "x"

    __str__ = __repr__ = __int__ = __float__ = __index__ = __len__ = __bool__

    def asobject(self):
        self.ran.append("asobject")

    item = asobject

    @staticmethod
    def twice(x):
        return x * 2


def test_data_of_the_users_objects_is_read():
    config, point, space = Config(), namedtuple("Point", "x y")(7, 8), SimpleNamespace(n=9)
    array, table = np.arange(12).reshape(3, 4), {"k": (1, 2)}

    @T.prim_func
    def f(A: T.Buffer((32,), "float32")):
        A[config.rows] = 0.0
        A[Config.rows + Kind.ROWS.value] = 1.0
        A[point.x] = point.y
        A[space.n] = table["k"][1]
        A[array.shape[0]] = array[1, 2]
        A[config.twice(array.ndim)] = np.float32(2.5)
        A[Config.twice(5)] = np.pi

    text = f.script()
    for line in ("A[3] = T.float32(0.0)", "A[7] = T.float32(1.0)", "A[7] = T.float32(8.0)",
                 "A[9] = T.float32(2.0)", "A[3] = T.float32(6.0)", "A[4] = T.float32(2.5)"):
        assert line in text


@pytest.mark.parametrize("expression", [
    "c.computed", "c + 1", "1 + c", "c == 1", "c[0]", "1 in c", "[x for x in c]", "[*c]",
    "1 if c else 2", "c and 1", "not c", "bool(c)", "f'{c}'", "f'{[c]}'", "'%s' % c", "str(c)",
    "str([c])", "T.exp(c)", "T.float32(c)", "A[c]", "range(c)", "len(c)", "int(c)", "float(c)",
    "T.evaluate([c])", "c.asobject()", "max(c, c)", "sum(c)", "T.call_extern('int32', 'f', c)",
    "-c", "[1][c]", "T.Buffer((c,))", "{**c}", "dict(c)", "T.Ramp(0, 1, c)", "T.grid(c)",
])
def test_no_code_of_the_users_objects_runs(expression):
    Config.ran.clear()
    with pytest.raises(DiagnosticError):
        from_source(HEAD + f"A[0] = {expression}", {"c": Config()})
    assert Config.ran == []


def test_a_function_that_is_passed_on_is_read_and_not_called():
    called = []

    def swapped(i, j):
        if called is None:
            return 0
        return j, i

    def broken(i, j):
        called.append(1)
        return j, i

    @R.function
    def f(x: R.Tensor((2, 4), "float32")):
        y = R.layout_transform(x, index_map=swapped)
        return y

    assert "lambda i, j: (j, i)" in f.script()
    with pytest.raises(DiagnosticError, match="helper function"):
        from_source("@R.function\ndef f(x: R.Tensor((2, 4), 'float32')):\n"
                    "    return R.layout_transform(x, index_map=g)", {"g": broken})
    assert called == []


def test_modules_of_the_users_scope_give_values_and_functions_on_the_list():
    import math

    @T.prim_func
    def f(A: T.Buffer((16,), "float32")):
        A[math.floor(3.5)] = math.sqrt(4.0)
        A[1] = tir.max(A[2], tir.const(1.0, "float32"))

    assert "A[3] = T.float32(2.0)" in f.script() and "T.max(A[2], T.float32(1.0))" in f.script()
    for expression in ("math.factorial(5)", "np.zeros(10**9)", "np.os.getcwd()", "np.load('x')"):
        with pytest.raises(DiagnosticError):
            from_source(HEAD + f"A[0] = {expression}", {"math": math, "np": np})


def a_view(shape, data, declared):
    if declared:
        return T.decl_buffer(shape, data=data)
    return T.Buffer(shape, data=data)


def a_sum_of_two(data):
    pair = T.decl_buffer([4], data=data)
    return pair[0] + pair[1]


def a_loop(n):
    return T.serial(n)


def test_a_helper_function_may_make_a_buffer():
    @T.prim_func
    def helped(A: T.Buffer((4,), "float32")):
        values = T.allocate_const([1.0, 2.0, 3.0, 4.0], "float32", [4])
        table = a_view([4], values, True)
        for i in range(4):
            A[i] = table[i]

    @T.prim_func
    def plain(A: T.Buffer((4,), "float32")):
        values = T.allocate_const([1.0, 2.0, 3.0, 4.0], "float32", [4])
        table = T.decl_buffer([4], data=values)
        for i in range(4):
            A[i] = table[i]

    assert helped.body.script() == plain.body.script()
    assert "table = T.decl_buffer" in helped.script()

    @T.prim_func
    def named_within(A: T.Buffer((4,), "float32")):
        values = T.allocate_const([1.0, 2.0, 3.0, 4.0], "float32", [4])
        A[0] = a_sum_of_two(values)

    assert named_within.script().count("decl_buffer") == 1
    assert "A[0] = pair[0] + pair[1]" in named_within.script()

    with pytest.raises(DiagnosticError, match="T.serial has no meaning here"):
        @T.prim_func
        def refused(A: T.Buffer((4,), "float32")):
            for i in a_loop(4):
                A[i] = 0.0
