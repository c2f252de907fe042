"""What a script makes is bounded, and so is the work: numbers, sizes, depth, unfolding."""

import pytest

import mlc_lab.relax  # noqa: F401  (R, for texts)
from mlc_lab.ir import DiagnosticError
from mlc_lab.reading import limits
from mlc_lab.script import from_source
from mlc_lab.script import tir as T

HEAD = '@T.prim_func\ndef f(A: T.Buffer((16,), "float32")):\n    '


@pytest.mark.parametrize("expression, words", [
    ("9**9**9", "fits no type"), ("(-9)**(10**30)", "fits no type"),
    ("1 << 10**10", "fits no type"), ("T.exp(10**30)", "fits no int64"),
    ("True << 10**10", "fits no type"), ("pow(7, 10**10)", "fits no type"),
    ("divmod(9**9**9, 2)", "fits no type"), ("0x" + "f" * 1000, "fits no type"),
    ("int('9' * 1000)", "fits no type"), ("int(1e308)", "fits no type"),
    ("sum([2**255] * 9)", "fits no type"),
    ("T.int32(T.int32(1) << 10**9) + A[10**30]", "fits an int64"),
    ("'a' * 10**10", "too many"), ("[0] * 10**10", "too many"), ("(0,) * 10**12", "too many"),
    ("10**12 * 'ab'", "too many"), ("list(range(10**12))", "too many"),
    ("sum(range(10**12))", "too many"), ("max(range(10**12))", "too many"),
    ("sorted(range(10**12))", "too many"), ("tuple(range(10**30))", "too many"),
    ("list(zip(range(10**12)))", "too many"), ("1.5 in range(10**14)", "too many"),
    ("[x for x in range(10**12)]", "too many"), ("[*range(10**12)]", "too many"),
    ("round(5, -10**10)", "digits"), ("'%1000000000d' % 1", "columns"), ("'%*d' % (9, 1)", "%d"),
    ("f'{1:1000000000}'", "widths go up to"), ("f'{1:{10**9}}'", "widths go up to"),
    ("f'{1.0:.99999}'", "widths go up to"), ("(lambda f: f(f))(lambda f: f(f))", "levels deep"),
    ("[0 for i in range(9999) for j in range(9999)]", "unfold"),
    ("[[0 for i in range(9999)] for j in range(9999)]", "unfold"),
    ("[[0] * 9999 for i in range(9999)]", "unfold"), ("sum([[0] * 99] * 9999, [])", "unfold"),
    ("T.grid(*[1] * 9999)", "may be nested"), ("T.min(*range(99_999))", "unfold"),
    ("T.Cast('float32x99999999', 1.0)", "lanes"),
], ids=lambda v: v[:30])
def test_numbers_and_sizes_have_bounds(expression, words):
    for text in (f"{HEAD}A[0] = {expression}", f"{HEAD}T.evaluate({expression})",
                 f"X = {expression}\n{HEAD}A[0] = X"):
        with pytest.raises(DiagnosticError) as raised:
            from_source(text)
        assert raised.value.line in (1, 3) and raised.value.column >= 1
        if text.startswith(HEAD):
            assert words in str(raised.value)


def test_a_shift_beyond_its_type_is_folded_without_making_the_number():
    text = from_source(HEAD + "T.evaluate(T.shift_left(T.int32(1), 10**9))").script()
    assert "T.evaluate(0)" in text


def test_long_loops_of_the_program_are_no_work():
    assert "range(T.int64(1000000000000))" in from_source(
        HEAD + "for i in range(10**12):\n        A[i % 16] = 1.0").script()


#: texts that double something with each line
DOUBLING = {
    "expressions": HEAD + "x0 = T.meta_var(A[0])\n" + "".join(
        f"    x{i + 1} = T.meta_var(x{i} + x{i})\n" for i in range(60)) + "    A[0] = x60",
    "lists": "x0 = [1]\n" + "".join(f"x{i + 1} = [x{i}, x{i}]\n" for i in range(60)) + HEAD
             + "A[0] = 1.0",
    "strings": "x0 = 'a'\n" + "".join(f"x{i + 1} = x{i} + x{i}\n" for i in range(60)) + HEAD
               + "A[0] = 1.0",
    "numbers": "x0 = 7\n" + "".join(f"x{i + 1} = x{i} * x{i}\n" for i in range(60)) + HEAD
               + "A[0] = 1.0",
    "macros": "@T.macro\ndef m0(A):\n    A[0] = 1.0\n" + "".join(
        f"@T.macro\ndef m{i + 1}(A):\n    m{i}(A)\n    m{i}(A)\n" for i in range(60)) + HEAD
        + "m60(A)",
    "lambdas": "m0 = lambda x: x\n" + "".join(
        f"m{i + 1} = lambda x: m{i}(x) + m{i}(x)\n" for i in range(60)) + HEAD + "A[0] = m60(1)",
    "tuples": "@R.function\ndef f(x0: R.Tensor((2,), 'float32')):\n" + "".join(
        f"    x{i + 1} = (x{i}, x{i})\n" for i in range(60)) + "    return x60",
    "types": "@R.function\ndef f(x: R.Object):\n    x0 = R.Tuple(R.Object, R.Object)\n" + "".join(
        f"    x{i + 1} = R.Tuple(x{i}, x{i})\n" for i in range(60)) + "    return x",
    "shapes": "@R.function\ndef f(x0: R.Tensor(('n',), 'float32')):\n" + "".join(
        f"    y{i} = R.strided_slice(x{i}, [0], [0], [10000], [3])\n"
        f"    x{i + 1} = R.concat((x{i}, y{i}), axis=0)\n" for i in range(60)) + "    return x60",
}


@pytest.mark.parametrize("what", DOUBLING)
def test_what_doubles_with_each_line_is_stopped(what):
    with pytest.raises(DiagnosticError) as raised:
        from_source(DOUBLING[what])
    assert raised.value.line > 1 and raised.value.hint


def test_macros_that_call_themselves_are_stopped():
    with pytest.raises(DiagnosticError, match="levels deep"):
        from_source("@T.macro\ndef m(A):\n    m(A)\n" + HEAD + "m(A)")


def test_helper_functions_have_bounds():
    def long(x):
        for i in range(10**6):
            x = x + i
        return x

    def endless(x):
        return endless(x)

    for helper in (long, endless):
        with pytest.raises(DiagnosticError):
            from_source(HEAD + "A[0] = g(1)", {"g": helper})


def test_large_values_of_the_users_scope_may_be_looked_into():
    table = list(range(1_000_000))

    @T.prim_func
    def f(A: T.Buffer((16,), "float32")):
        A[table[3]] = table[4] + table[5]

    assert "A[3] = T.float32(9.0)" in f.script()


@pytest.mark.parametrize("text, line", [
    (HEAD + "A[0] = " + "(" * 70_000 + "1" + ")" * 70_000, 3),
    (HEAD + "A[0] = " + "(" * 10_000 + "1" + ")" * 9_999, 3),
    (HEAD + "A[0] = " + "-" * 100_000 + "1", 3),
    (HEAD + "A[0] = " + "not " * 100_000 + "1", 3),
    (HEAD + "A[0] = A" + "[0]" * 100_000, 3),
    (HEAD + "A[0] = A" + ".data" * 100_000, 3),
    (HEAD + "A[0] = " + "+".join(["A[0]"] * 100_000), 3),
    (HEAD + "".join("    " * i + "if A[0] < 1.0:\n    " for i in range(300)) + "pass", 302),
    (HEAD + "A[0] = 1.0\n" + "    if A[0] < 1.0:\n        A[0] = 1.0\n"
     + "    elif A[0] < 1.0:\n        A[0] = 1.0\n" * 20_000, range(1000, 40_000)),
    (HEAD + "A[0] = '\0'", 1), (HEAD + "A[0] = '\ud800'", 1), (HEAD + "A[0] = " + "9" * 5000, 3),
    (HEAD + "A[" + "lambda: " * 10_000 + "1] = 1", 3),
    ("@T.prim_func\ndef f(A: '" + "-" * 100_000 + "1'):\n    pass", 2),
    ("@R.function\ndef f(x: R.Tensor(('" + "-" * 100_000 + "1',))):\n    return x", 2),
], ids=lambda v: repr(v)[-20:])
def test_deep_nesting_is_refused(text, line):
    with pytest.raises(DiagnosticError) as raised:
        from_source(text)
    assert raised.value.line in (line if type(line) is range else [line])
    assert raised.value.column >= 1 and len(str(raised.value)) < 2000


def test_nested_loops_have_a_bound(monkeypatch):
    monkeypatch.setattr(limits, "LOOPS", 5)
    loops = "for i in T.grid(1, 1, 1):\n        {}"
    from_source(HEAD + loops.format("A[0] = 1.0"))
    with pytest.raises(DiagnosticError, match="6 loops are nested here"):
        from_source(HEAD + loops.format("for j in T.grid(1, 1, 1):\n            A[0] = 1.0"))


def test_what_is_nested_beyond_the_stack_is_refused(monkeypatch):
    from mlc_lab.ir import recursion

    monkeypatch.setattr(recursion, "MAX_FRAMES", 5_000)
    with pytest.raises(DiagnosticError, match="nested too deeply") as raised:
        from_source(HEAD + "A[0] = " + " + ".join(["A[0]"] * 4_000))
    assert raised.value.line == 3


def test_iterators_that_double_with_each_nested_block_are_stopped():
    lines = ["@T.prim_func", 'def main(A: T.Buffer((4,), "float32")):', "    for v0 in range(1):"]
    for n in range(40):
        lines += ["    " * (n + 2) + f'with T.block("b{n}"):',
                  "    " * (n + 3) + f"v{n + 1} = T.axis.spatial(4, v{n} + v{n})"]
    with pytest.raises(DiagnosticError, match="iterators of nested blocks unfold to more than"):
        from_source("\n".join([*lines, "    " * 42 + "A[v40] = T.float32(0)"]))
