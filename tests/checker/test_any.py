"""How many parameters of mlc_lab say nothing of what they take: those that are `Any`."""

import ast
from pathlib import Path

LAB = Path(__file__).resolve().parents[2] / "mlc_lab"
#: the largest part of all parameters that may be `Any`
MOST = 0.10


def parameters(tree):
    """The parameters of every function of a file, but for the one that a method is called on."""
    own = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            own |= {f.args.args[0] for f in node.body if isinstance(f, ast.FunctionDef)
                    and f.args.args and "staticmethod" not in map(ast.unparse, f.decorator_list)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            a = node.args
            every = [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]
            yield from (p for p in every if p is not None and p not in own)


def untyped(parameter):
    return parameter.annotation is None or ast.unparse(parameter.annotation) == "Any"


def test_fewer_than_a_tenth_of_the_parameters_are_any():
    counts = {}
    for path in LAB.rglob("*.py"):
        found = [untyped(p) for p in parameters(ast.parse(path.read_text(encoding="utf-8")))]
        part = path.relative_to(LAB).parts[0]
        any_, all_ = counts.get(part, (0, 0))
        counts[part] = any_ + sum(found), all_ + len(found)
    any_, all_ = (sum(column) for column in zip(*counts.values()))
    worst = ", ".join(f"{part} {a} of {n}" for part, (a, n) in sorted(
        counts.items(), key=lambda item: -item[1][0])[:8])
    assert any_ / all_ < MOST, f"{any_} of {all_} parameters are Any: {worst}"


def test_the_count_sees_parameters_of_every_kind():
    code = "class A:\n def f(self, a: Any, /, b, *c: Any, d: int, **e: Any) -> None: ..."
    assert [untyped(p) for p in parameters(ast.parse(code))] == [True, True, False, True, True]
