"""What the tests of `arith` share: expressions evaluated on ints, random expressions."""

from hypothesis import strategies as st

from mlc_lab.arith.expr_util import BUILDERS, truncdiv, truncmod
from mlc_lab.tir import IntImm, Var
from mlc_lab.tir import expr as E

INT_OPS = {
    E.Add: lambda a, b: a + b, E.Sub: lambda a, b: a - b, E.Mul: lambda a, b: a * b,
    E.FloorDiv: lambda a, b: a // b, E.FloorMod: lambda a, b: a % b, E.Div: truncdiv,
    E.Mod: truncmod, E.Min: min, E.Max: max, E.EQ: lambda a, b: a == b, E.NE: lambda a, b: a != b,
    E.LT: lambda a, b: a < b, E.LE: lambda a, b: a <= b, E.GT: lambda a, b: a > b,
    E.GE: lambda a, b: a >= b, E.And: lambda a, b: a and b, E.Or: lambda a, b: a or b,
}


def python_of(e, names):
    """Python source that computes an expression; `names` maps Vars to Python names."""
    kind = type(e)
    if isinstance(e, Var):
        return names[e]
    if kind is IntImm:
        return f"({bool(e.value) if e.dtype == 'bool' else e.value})"
    if kind is E.Not:
        return f"(not {python_of(e.a, names)})"
    if kind is E.Select:
        a, b, c = (python_of(x, names) for x in (e.true_value, e.condition, e.false_value))
        return f"({a} if {b} else {c})"
    if kind is E.Call:
        op = {"tir.shift_left": "<<", "tir.shift_right": ">>", "tir.bitwise_and": "&"}[e.op.name]
        return f"({python_of(e.args[0], names)} {op} {python_of(e.args[1], names)})"
    a, b = python_of(e.a, names), python_of(e.b, names)
    if kind in (E.Div, E.Mod):
        return f"{'truncdiv' if kind is E.Div else 'truncmod'}({a}, {b})"
    if kind in (E.Min, E.Max):
        return f"{'min' if kind is E.Min else 'max'}({a}, {b})"
    op = {E.Add: "+", E.Sub: "-", E.Mul: "*", E.FloorDiv: "//", E.FloorMod: "%", E.EQ: "==",
          E.NE: "!=", E.LT: "<", E.LE: "<=", E.GT: ">", E.GE: ">=", E.And: "and", E.Or: "or"}[kind]
    return f"({a} {op} {b})"


def function_of(e, variables):
    """An expression as a Python function of its variables, in order."""
    names = {v: f"v{i}" for i, v in enumerate(variables)}
    return eval(f"lambda {', '.join(names.values())}: {python_of(e, names)}",
                {"truncdiv": truncdiv, "truncmod": truncmod})


def expressions(variables, max_leaves=8, conditions=False):
    """A hypothesis strategy of integer expressions (or conditions) over `variables`.

    Divisors are constants that are not zero, so every expression has a value everywhere.
    """
    small = st.integers(-9, 17).map(lambda v: IntImm("int32", v))
    divisor = st.sampled_from([-3, 1, 2, 3, 4, 6, 8, 12]).map(lambda v: IntImm("int32", v))
    factor = st.sampled_from([-2, -1, 1, 2, 3, 4, 8]).map(lambda v: IntImm("int32", v))
    leaf = st.one_of(st.sampled_from(variables), st.sampled_from(variables), small)

    def extend(inner):
        return st.one_of(
            st.builds(E.Add, inner, inner), st.builds(E.Add, inner, inner),
            st.builds(E.Sub, inner, inner), st.builds(E.Mul, inner, factor),
            st.builds(E.Mul, inner, inner),
            st.builds(E.FloorDiv, inner, divisor), st.builds(E.FloorMod, inner, divisor),
            st.builds(E.Div, inner, divisor), st.builds(E.Mod, inner, divisor),
            st.builds(E.Min, inner, inner), st.builds(E.Max, inner, inner),
        )

    numbers = st.recursive(leaf, extend, max_leaves=max_leaves)
    if not conditions:
        return numbers
    compare = st.one_of(*(st.builds(c, numbers, numbers)
                          for c in (E.LT, E.LE, E.GT, E.GE, E.EQ, E.NE)))
    return st.recursive(compare, lambda inner: st.one_of(
        st.builds(E.And, inner, inner), st.builds(E.Or, inner, inner), st.builds(E.Not, inner)),
        max_leaves=3)


__all__ = ["BUILDERS", "INT_OPS", "expressions", "function_of", "python_of"]
