"""Every row of the rule tables is true: checked for all values of a small domain."""

import ast
import itertools

import pytest

from mlc_lab.arith.expr_util import truncdiv, truncmod
from mlc_lab.arith.pattern import Not, rows, rules_of
from mlc_lab.arith.rules import TABLES
from mlc_lab.ir.node import NODE_TYPES
from mlc_lab.tir import expr as E
from mlc_lab.tir.expr import Broadcast, Ramp

GROUPS = sorted(TABLES)
CASES = [(group, i) for group in GROUPS for i in range(len(rows(TABLES[group])))]
_OPS = {E.Add: "+", E.Sub: "-", E.Mul: "*", E.FloorDiv: "//", E.FloorMod: "%", E.EQ: "==",
        E.NE: "!=", E.LT: "<", E.LE: "<=", E.And: "and", E.Or: "or"}
_CALLS = {E.Min: "min", E.Max: "max", E.Div: "div", E.Mod: "mod"}


class Vector(tuple):
    """A vector value; operators work on each lane."""

    def on(self, other, op):
        assert len(self) == len(other)
        return Vector(op(a, b) for a, b in zip(self, other))


def _operator(name):
    import operator

    table = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
             "%": operator.mod, "==": operator.eq, "!=": operator.ne, "<": operator.lt,
             "<=": operator.le, "min": min, "max": max, "div": truncdiv, "mod": truncmod,
             "and": lambda a, b: a and b, "or": lambda a, b: a or b}
    return table[name]


def source(tree, vectors):
    """Python source of a pattern or result."""
    head = tree[0]
    if head in ("var", "const"):
        return tree[1]
    if head == "int":
        return f"({tree[1]})"
    if head == "lanes":
        return "lanes"
    if head == "call":
        return f"{tree[1]}({', '.join(source(t, vectors) for t in tree[2:])})"
    if head is Ramp or head is Broadcast:
        return f"{head.__name__}({', '.join(source(t, vectors) for t in tree[1:])})"
    args = [source(t, vectors) for t in tree[1:]]
    if head is Not:
        return f"negated({args[0]})" if vectors else f"(not {args[0]})"
    name = _OPS.get(head) or _CALLS[head]
    if vectors:
        return f"apply({name!r}, {args[0]}, {args[1]})"
    return f"({args[0]} {name} {args[1]})" if head in _OPS else f"{name}({args[0]}, {args[1]})"


def apply(name, a, b):
    op = _operator(name)
    if isinstance(b, Vector) and not isinstance(a, Vector):  # any vector will do for x
        a = Vector([a] * len(b))
    return a.on(b, op) if isinstance(a, Vector) else op(a, b)


def negated(a):
    return Vector(not v for v in a) if isinstance(a, Vector) else not a


SCOPE = {
    "div": truncdiv, "mod": truncmod, "apply": apply, "negated": negated,
    "Ramp": lambda base, stride, lanes: Vector(base + stride * i for i in range(lanes)),
    "Broadcast": lambda value, lanes: Vector([value] * lanes),
    "lt": lambda a, b: a < b, "ge": lambda a, b: a >= b, "eq": lambda a, b: a == b,
    "always_le": lambda a, b: a <= b, "has_remainder": lambda a, c: True,
    "remainder": lambda a, c: a % c, "is_negative_product": lambda a: True,
    "is_extremum": lambda a: False,
}


def names_in(tree, out, boolean=False):
    """Names of a tree with their kind: var, bool or const."""
    head = tree[0]
    if head in ("var", "const"):
        out[tree[1]] = "bool" if boolean and head == "var" else head
    elif head == "lanes":
        out["lanes"] = "lanes"
    elif isinstance(head, type):
        inner = boolean and head in (Broadcast,) or head in (E.And, E.Or, Not)
        for sub in tree[1:]:
            names_in(sub, out, inner)


def uses_vectors(tree):
    return isinstance(tree, tuple) and (
        tree[0] in (Ramp, Broadcast) or any(uses_vectors(t) for t in tree[1:]))


def domain(kind, count):
    if kind == "bool":
        return (False, True)
    if kind == "lanes":
        return (1, 2, 4)
    if count <= 2:
        return tuple(range(-13, 14))
    if count == 3:
        return tuple(range(-7, 9))
    if count == 4:
        return (-6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6) if kind == "var" else (
            -4, -3, -2, -1, 0, 1, 2, 3, 4, 8)
    return (-5, -2, -1, 0, 1, 3, 4) if kind == "var" else (-4, -2, -1, 0, 1, 2, 4)


@pytest.mark.parametrize("group,index", CASES, ids=[f"{g}-{i}" for g, i in CASES])
def test_a_rule_is_true(group, index):
    rule = rules_of(NODE_TYPES[group])[index]
    for pattern in rule.patterns:
        names = {}
        names_in(pattern, names)
        vectors = uses_vectors(pattern)
        ordered = sorted(names)
        when = "True" if rule.condition is None else ast.unparse(rule.condition)
        code = (f"lambda {', '.join(ordered)}: ({source(pattern, vectors)}, "
                f"{source(rule.result, vectors)}) if ({when}) else None")
        check = eval(code, dict(SCOPE))
        met = 0
        for values in itertools.product(*(domain(names[n], len(names)) for n in ordered)):
            try:
                pair = check(*values)
            except ZeroDivisionError:
                continue
            if pair is not None:
                met += 1
                left, right = pair
                assert left == right, f"{rule.text} is false for {dict(zip(ordered, values))}"
        assert met, f"{rule.text}: the condition never holds"


@pytest.mark.parametrize("group", GROUPS)
def test_no_row_is_written_twice(group):
    seen = set()
    for rule in rules_of(NODE_TYPES[group]):
        for pattern in rule.patterns:
            key = (pattern, rule.text.split(" if ")[1] if rule.condition else "")
            assert key not in seen, f"{rule.text}: repeats an earlier row"
            seen.add(key)
