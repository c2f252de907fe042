"""The language that rewrite rules are written in, and its compiler to Python functions.

`rules.py` holds rows such as `(x * c1) // c2 -> x * (c1 // c2) if c2 != 0 and c1 % c2 == 0`.
`matcher(cls, ta, tb)` answers with one function that tries every row of the operator `cls` that
can match operands of the types `ta` and `tb`, in order. It is compiled when first asked for, so
importing costs nothing and a node is only ever tried against rows of its shape.
"""

from __future__ import annotations

import ast
from typing import Any, Callable, Iterator, NamedTuple

from ..ir.dtype import element_of
from ..tir import expr as E
from ..tir.expr import Broadcast, IntImm, Not, Ramp, Select
from . import expr_util as U
from .rules import TABLES

#: a parsed pattern or result: ("var", name), ("const", name), ("int", value), ("lanes",),
#: ("call", function, args...) or (node type, operands...)
Tree = tuple

_BINARY = {ast.Add: E.Add, ast.Sub: E.Sub, ast.Mult: E.Mul, ast.FloorDiv: E.FloorDiv,
           ast.Mod: E.FloorMod}
_COMPARE = {ast.Lt: E.LT, ast.LtE: E.LE, ast.Gt: E.GT, ast.GtE: E.GE, ast.Eq: E.EQ, ast.NotEq: E.NE}
_CALLS = U.PATTERN_NODES
_FIELDS = {Ramp: ("base", "stride", "lanes"), Broadcast: ("value", "lanes"), Not: ("a",),
           Select: ("condition", "true_value", "false_value")}
_BUILDER_NAMES = {
    E.Add: "add", E.Sub: "sub", E.Mul: "mul", E.FloorDiv: "floordiv", E.FloorMod: "floormod",
    E.Div: "div", E.Mod: "mod", E.Min: "minimum", E.Max: "maximum", E.EQ: "eq", E.NE: "ne",
    E.LT: "lt", E.LE: "le", E.GT: "gt", E.GE: "ge", E.And: "logical_and", E.Or: "logical_or",
    Not: "logical_not", Ramp: "Ramp", Broadcast: "Broadcast", Select: "Select",
}
_PYTHON_OPS = {E.Add: "+", E.Sub: "-", E.Mul: "*", E.FloorDiv: "//", E.FloorMod: "%"}
_PYTHON_CALLS = {E.Min: "min", E.Max: "max", E.Div: "truncdiv", E.Mod: "truncmod"}


class Rule(NamedTuple):
    """One row. `again` says that the result is simplified once more."""

    patterns: tuple[Tree, ...]
    result: Tree
    condition: ast.expr | None
    again: bool
    text: str


def _tree(node: ast.expr) -> Tree:
    if isinstance(node, ast.BinOp):
        return (_BINARY[type(node.op)], _tree(node.left), _tree(node.right))
    if isinstance(node, ast.Compare):
        return (_COMPARE[type(node.ops[0])], _tree(node.left), _tree(node.comparators[0]))
    if isinstance(node, ast.BoolOp):
        cls = E.And if type(node.op) is ast.And else E.Or
        out = _tree(node.values[0])
        for value in node.values[1:]:
            out = (cls, out, _tree(value))
        return out
    if isinstance(node, ast.UnaryOp):
        if type(node.op) is ast.Not:
            return (Not, _tree(node.operand))
        operand = _tree(node.operand)
        return ("int", -operand[1]) if operand[0] == "int" else (E.Sub, ("int", 0), operand)
    if isinstance(node, ast.Constant):
        return ("int", node.value)
    if isinstance(node, ast.Name):
        if node.id == "lanes":
            return ("lanes",)
        return ("const" if node.id[0] == "c" else "var", node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.func.id
        args = tuple(_tree(a) for a in node.args)
        return (_CALLS[name], *args) if name in _CALLS else ("call", name, *args)
    raise SyntaxError(f"not part of the rule language: {ast.dump(node)}")


def parse_rule(text: str) -> Rule:
    """Read one row."""
    again = "->>" in text
    left, right = text.split("->>" if again else "->")
    condition = None
    if " if " in right:
        right, when = right.split(" if ", 1)
        condition = ast.parse(when.strip(), mode="eval").body
    patterns = tuple(_tree(ast.parse(p.strip(), mode="eval").body) for p in left.split(" | "))
    return Rule(patterns, _tree(ast.parse(right.strip(), mode="eval").body), condition, again,
                text)


_RULES: dict[type, list[Rule]] = {}


def rules_of(cls: type) -> list[Rule]:
    """The rows of an operator, parsed on first use."""
    found = _RULES.get(cls)
    if found is None:
        found = _RULES[cls] = [parse_rule(row) for row in rows(TABLES.get(cls.__name__, ""))]
    return found


def rows(table: str) -> list[str]:
    """The rows of a table; a line that starts with `|`, `->`, `if` or `and` goes on the last."""
    out: list[str] = []
    for line in table.splitlines():
        line = line.strip()
        if line.startswith(("| ", "->", "if ", "and ")):
            out[-1] += " " + line
        elif line:
            out.append(line)
    return out


def is_constant(tree: Tree) -> bool:
    """Whether a tree has only constants in it, so that it is an integer once matched."""
    head = tree[0]
    if head in ("const", "int", "lanes"):
        return True
    if head in ("var", "call"):
        return False
    return (head in _PYTHON_OPS or head in _PYTHON_CALLS) and all(map(is_constant, tree[1:]))


def fits(tree: Tree, kind: type) -> bool:
    """Whether a pattern can match a node of type `kind` at its root."""
    head = tree[0]
    if head == "var":
        return True
    if head in ("const", "int"):
        return kind is IntImm
    return head is kind


class _Writer:
    """Writes the Python code of one row and pattern: nested `if`s that end in a `return`."""

    def __init__(self, rule: Rule, known: dict[str, Any]) -> None:
        self.rule = rule
        self.known = known
        self.steps: list[str] = []  # "if ..." opens a level, anything else is a statement
        self.late: list[str] = []
        self.names: dict[str, str] = {}

    def match(self, tree: Tree, path: str) -> None:
        head = tree[0]
        if head == "var":
            if tree[1] in self.names:
                other = self.names[tree[1]]
                self.late.append(f"if {path} is {other} or same({path}, {other}):")
            else:
                self.names[tree[1]] = path
            return
        if head == "lanes":
            if "lanes" in self.names:
                self.steps.append(f"if {path} == lanes:")
            else:
                self.names["lanes"] = path
                self.steps.append(f"lanes = {path}")
            return
        if head in ("const", "int"):
            if self.known.get(path) is not IntImm:
                self.steps.append(f"if type({path}) is IntImm:")
            if head == "int":
                self.steps.append(f"if {path}.value == {tree[1]}:")
            elif tree[1] in self.names:
                self.steps.append(f"if {path}.value == {tree[1]}:")
            else:
                self.names[tree[1]] = path
                self.steps.append(f"{tree[1]} = {path}.value")
            return
        if self.known.get(path) is not head:
            self.steps.append(f"if type({path}) is {head.__name__}:")
        for field, sub in zip(_FIELDS.get(head, ("a", "b")), tree[1:]):
            inner = f"{path}_{field}"
            self.steps.append(f"{inner} = {path}.{field}")
            self.match(sub, inner)

    def number(self, tree: Tree) -> str:
        """Python code of a constant tree."""
        head = tree[0]
        if head in ("const", "int"):
            return f"({tree[1]})" if head == "int" else tree[1]
        if head == "lanes":
            return "lanes"
        args = [self.number(t) for t in tree[1:]]
        if head in _PYTHON_OPS:
            return f"({args[0]} {_PYTHON_OPS[head]} {args[1]})"
        return f"{_PYTHON_CALLS[head]}({', '.join(args)})"

    def build(self, tree: Tree, dtype: str = "dt") -> str:
        """Python code that builds an expression, whose constants are of the type `dtype`."""
        head = tree[0]
        if head == "var":
            return self.names[tree[1]]
        if head == "const":
            return self.names[tree[1]]
        if head == "lanes":
            return "lanes"
        if head == "int" and isinstance(tree[1], bool):
            return "TRUE" if tree[1] else "FALSE"
        if is_constant(tree):
            return f"imm({self.number(tree)}, {dtype})"
        if head == "call":
            return f"s.{tree[1]}({', '.join(map(self.argument, tree[2:]))})"
        if head in _COMPARISONS:  # what is compared has a type of its own, which is not bool
            name = next(_variables(tree), None)
            dtype = dtype if name is None else f"element_of({self.names[name]}.dtype)"
        return f"{_BUILDER_NAMES[head]}({', '.join(self.build(t, dtype) for t in tree[1:])})"

    def argument(self, tree: Tree) -> str:
        """An argument of a named test: integers stay integers, the rest are expressions."""
        return self.number(tree) if is_constant(tree) else self.build(tree)

    def test(self, node: ast.expr) -> str:
        """Python code of a condition."""
        if type(node) is ast.BoolOp:
            word = " and " if type(node.op) is ast.And else " or "
            return "(" + word.join(self.test(v) for v in node.values) + ")"
        if type(node) is ast.UnaryOp and type(node.op) is ast.Not:
            return f"not {self.test(node.operand)}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and (
                node.func.id not in _CALLS):
            args = ", ".join(self.argument(_tree(a)) for a in node.args)
            return f"s.{node.func.id}({args})"
        return ast.unparse(node)

    def write(self, out: list[str]) -> None:
        steps = self.steps + self.late
        if self.rule.condition is not None:
            steps.append(f"if {self.test(self.rule.condition)}:")
        result = self.build(self.rule.result)
        steps.append(f"return s.visit({result})" if self.rule.again else f"return {result}")
        depth = 1
        for step in steps:
            out.append("    " * depth + step)
            if step.startswith("if "):
                depth += 1


def _variables(tree: Tree) -> Iterator[str]:
    """The names of the variables of a pattern."""
    if tree[0] == "var":
        yield tree[1]
    for part in tree[1:]:
        if isinstance(part, tuple):
            yield from _variables(part)


_COMPARISONS = (E.EQ, E.NE, E.LT, E.LE)
_VECTORS = (Ramp, Broadcast)
_SCOPE: dict[str, Any] = {}


def _scope() -> dict[str, Any]:
    if not _SCOPE:
        _SCOPE.update({k: v for k, v in vars(U).items() if not k.startswith("__")})
        _SCOPE.update({n: getattr(E, n) for n in E.__all__})
        _SCOPE["element_of"] = element_of
    return _SCOPE


def _has_vectors(tree: Tree) -> bool:
    return tree[0] in _VECTORS or any(_has_vectors(t) for t in tree[1:] if isinstance(t, tuple))


def matcher(cls: type, ta: type, tb: type | None) -> Callable | None:
    """The function `f(s, a, b) -> result or None` for operands of these types; None if no row fits.

    `s` is the simplifier, which answers the tests of the conditions.
    """
    lines: list[str] = []
    vector = ta in _VECTORS or tb in _VECTORS
    for rule in rules_of(cls):
        for pattern in rule.patterns:
            kinds = (ta,) if tb is None else (ta, tb)
            if not all(fits(t, k) for t, k in zip(pattern[1:], kinds)):
                continue
            if vector and not _has_vectors(pattern):
                continue  # a row about integers, whose constants would be no vectors
            writer = _Writer(rule, {"a": ta, "b": tb})
            for tree, name in zip(pattern[1:], ("a", "b")):
                writer.match(tree, name)
            writer.write(lines)
    if not lines:
        return None
    dtype = "element_of(a.dtype)" if vector else "a.dtype"
    source = "\n".join(["def rewrite(s, a, b):", f"    dt = {dtype}", *lines, "    return None"])
    local: dict[str, Any] = {}
    exec(compile(source, f"<rules of {cls.__name__}({ta.__name__}, ...)>", "exec"), _scope(),
         local)
    return local["rewrite"]
