"""01.5  How far apart are the elements that the innermost loop visits?"""

from __future__ import annotations

import random

from ...script import from_source
from ...tir.stmt import BufferStore
from ..checks.counts import strides
from ..exercise import Exercise, Field, Values, Wrong, row


def program(v: Values):
    """A matrix product with a transposed operand, and its loops in some order."""
    sizes = ", ".join(str(getattr(v, v.size[x])) for x in v.order)
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n}, {v.k}), "{v.dtype}"), B: T.Buffer(({v.m}, {v.k}), "{v.dtype}"),
             C: T.Buffer(({v.n}, {v.m}), "{v.dtype}")):
        for {', '.join(v.order)} in T.grid({sizes}):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.{v.dtype}(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
""")


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes that differ, and an order in which two buffers are not read along their rows."""
    n, m, k = rng.sample([24, 40, 56, 72, 88], 3)
    dtype = rng.choice(["float32", "float64"])
    return {"n": n, "m": m, "k": k, "order": rng.choice(["kij", "ikj", "jki", "kji"]),
            "dtype": dtype, "bytes": 4 if dtype == "float32" else 8,
            "size": {"i": "n", "j": "m", "k": "k"}}


def steps(v: Values) -> dict[str, int]:
    """Bytes from one iteration of the innermost loop to the next, by buffer, from the program."""
    found = {node.buffer.name: (step or 0) * v.bytes for node, step, _ in strides(program(v))
             if not isinstance(node, BufferStore) or node.buffer.name == "C"}
    return {name: found[name] for name in "ABC"}


def mistakes(v: Values) -> dict[str, dict[int, str]]:
    """What to tell those who gave a certain other number."""
    inner = v.order[-1]
    out: dict[str, dict[int, str]] = {}
    for name, right in steps(v).items():
        told = {right // v.bytes: "that is in elements: each of them has "
                f"{v.bytes} bytes"} if right else {}
        if right > v.bytes:
            told[v.bytes] = (f"{inner} is the first index of {name}, which counts rows: the next "
                             "element lies a whole row further")
        if right != 0:
            told[0] = f"{inner} is an index of {name}, so its element changes with each iteration"
        else:
            told[v.bytes] = (f"{inner} is no index of {name}: the same element is used in each "
                             "iteration of the innermost loop")
        out[name] = told
    return out


EXERCISE = Exercise(
    id="01.5",
    title="Steps through memory",
    level=2,
    minutes=10,
    kind="prediction",
    statement="""\
A buffer lies in memory row by row. `A` has {n} rows of {k} numbers, `B` has {m} rows of {k}, and
`C` has {n} rows of {m}, all {dtype} ({bytes} bytes each). The loops stand in the order {order},
from the outside.

How many bytes does the program go on in each buffer, from one iteration of the innermost loop to
the next?""",
    draw=draw,
    program=program,
    fields=lambda v: [
        Field(name, f"Bytes from one element of {name} to the next") for name in "ABC"],
    checks=lambda v: [
        row("prediction", 1, f"the step in {name}", field=name, equals=lambda name=name:
            steps(v)[name], says=lambda name=name: mistakes(v)[name]) for name in "ABC"],
    hints=(
        "Which loop is the innermost, and which index of A, of B and of C follows it?",
        "Where the last index follows it, the next element is the neighbour. Where the first one "
        "does, the next element is a row further. Where none does, it is the same element.",
        "A row of A or B has {k} times {bytes} bytes, a row of C {m} times {bytes}.",
    ),
    reference=steps,
    wrong=lambda v: [
        Wrong({name: step // v.bytes for name, step in steps(v).items()}, 1,
              "that is in elements"),
        Wrong(dict.fromkeys("ABC", v.bytes), sum(x == v.bytes for x in steps(v).values()),
              "a whole row further"),
        Wrong({**steps(v), **{name: v.bytes for name, x in steps(v).items() if x == 0}}, 2,
              "the same element is used in each iteration"),
    ],
)
