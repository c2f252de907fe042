"""11.3  Which model is not imported, and why."""

from __future__ import annotations

import random
from typing import Any

from ...reading import MLCError
from ...relax import TensorStructInfo, op
from ...relax import Var as RelaxVar
from ...relax.block_builder import BlockBuilder
from ..exercise import Exercise, Field, Values, Wrong, row

#: what the importer knows: name -> what it emits
RULES = {"matmul": op.matmul, "add": op.add, "relu": op.nn.relu, "concat": lambda a, b: op.concat(
    [a, b], axis=1), "reshape": lambda a, b: op.reshape(a, b)}
REASONS = ("there is no rule for its operator", "the shapes of its operands do not fit",
           "it uses a value that no node before it has made", "nothing: all nodes are imported")


def nodes(v: Values) -> list[tuple[str, str, tuple[str, ...]]]:
    """The nodes of the model: name, operator, operands."""
    n, broken = v.names, v.broken
    out = [(n[0], "matmul", ("x", "w")), (n[1], "add", (n[0], "b")), (n[2], "relu", (n[1],)),
           (n[3], "concat", (n[2], n[0])), (n[4], "matmul", (n[3], "u"))]
    if broken == "rule":
        out[2] = (n[2], v.missing, (n[1],))
    elif broken == "shape":
        out[3] = (n[3], "add", (n[2], "u"))
    elif broken == "order":
        out[1] = (n[1], "add", (n[3], "b"))
    if v.late:
        out.append((n[5], v.other, (n[4],)))
    return out


def imported(v: Values) -> tuple[str, str, list[str]]:
    """The first node that fails, the reason, and all nodes without a rule: by importing it."""
    bb = BlockBuilder()
    known: dict[str, Any] = {name: RelaxVar(name, TensorStructInfo(shape, "float32"))
                             for name, shape in shapes(v).items()}
    failed, why = "none", REASONS[3]
    with bb.function("main", list(known.values())):
        with bb.dataflow():
            last: Any = known["x"]
            for name, operator, operands in nodes(v):
                try:
                    if operator not in RULES:
                        failed, why = name, REASONS[0]
                    elif not set(operands) <= set(known):
                        failed, why = name, REASONS[2]
                    else:
                        last = known[name] = bb.emit(RULES[operator](*(known[o] for o in operands)))
                        continue
                except MLCError:
                    failed, why = name, REASONS[1]
                break
            out = bb.emit_output(last)
        bb.emit_func_output(out)
    return failed, why, [name for name, operator, _ in nodes(v) if operator not in RULES]


def shapes(v: Values) -> dict[str, tuple[int, ...]]:
    """Inputs and parameters."""
    return {"x": (v.a, v.b), "w": (v.b, v.c), "b": (v.c,), "u": (2 * v.c, v.a)}


def draw(rng: random.Random) -> dict[str, Any]:
    """Sizes that differ from each other, and what is wrong."""
    a, b, c = rng.sample([3, 5, 7, 11], 3)
    broken = rng.choice(["rule", "shape", "order"])
    v = Values(a=a, b=b, c=c, broken=broken, names=rng.sample(list("efghpqrs"), 6),
               missing=rng.choice(["gelu", "erf", "sin"]), other=rng.choice(["cumsum", "topk"]),
               late=True)
    text = ", ".join(f"`{name} = {operator}({', '.join(operands)})`"
                     for name, operator, operands in nodes(v))
    given = ", ".join(f"`{name}` {shape}" for name, shape in shapes(v).items())
    return {**vars(v), "table": text, "given": given}


def reference(v: Values) -> dict[str, Any]:
    """All fields."""
    return dict(zip(("first", "why", "unknown"), imported(v)))


def other(v: Values) -> str:
    """A reason that is not the one."""
    return next(r for r in REASONS if r != imported(v)[1])


EXERCISE = Exercise(
    id="11.3",
    title="Which node is not imported, and why?",
    level=2,
    minutes=10,
    kind="prediction",
    statement="""\
An importer goes through the nodes of a model in their order, and stops at the first that it cannot
translate. It has rules for `matmul`, `add`, `relu`, `concat` (of two tensors, along axis 1) and
`reshape`; operators of Relax infer the shape of each result, and `add` broadcasts as in numpy.

Inputs and parameters: {given}.

The nodes: {table}.""",
    draw=draw,
    fields=lambda v: [
        Field("first", "At which node does it stop?", "choice", (*sorted(v.names), "none")),
        Field("why", "Why?", "choice", REASONS),
        Field("unknown", "A better importer names all nodes that have no rule at once. Which are "
              "they?", "several", tuple(sorted(v.names))),
    ],
    checks=lambda v: [
        row("prediction", 1, "where it stops", field="first", equals=imported(v)[0],
            why=f"it stops at {imported(v)[0]}: {imported(v)[1]}",
            says={"none": "one of them cannot be translated: go through them one by one, and write "
                          "down the shape of each result",
                  v.names[5]: "it stops before: a node earlier in the list is wrong, too"}),
        row("prediction", 2, "why", field="why", equals=imported(v)[1],
            why=f"it stops at {imported(v)[0]}: {imported(v)[1]}",
            says={other_reason: "that is not so of the first node that fails: look at its "
                                "operator, its operands, and their shapes"
                  for other_reason in REASONS if other_reason != imported(v)[1]}),
        row("prediction", 1, "all nodes without a rule", field="unknown", equals=imported(v)[2],
            why=", ".join(imported(v)[2])),
    ],
    hints=(
        "Is there a rule for each operator? Has each operand been made before? Which shape has "
        "each result?",
        "matmul of (i, k) and (k, j) is (i, j); add wants shapes that broadcast; concat along axis "
        "1 adds up the second sizes.",
        "Write the shapes down: the first matmul gives ({a}, {c}). And the last node matters for "
        "the third question, even if the importer never comes to it.",
    ),
    reference=reference,
    wrong=lambda v: [
        Wrong({**reference(v), "first": v.names[5]}, 3, "it stops before"),
        Wrong({**reference(v), "why": other(v)}, 2, "that is not so of the first node"),
        Wrong({**reference(v), "unknown": sorted(v.names)[:4]}, 3, "not these"),
        Wrong({**reference(v), "first": "none"}, 3, "go through them one by one"),
    ],
)
