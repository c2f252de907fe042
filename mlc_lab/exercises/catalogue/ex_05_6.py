"""05.6  Which elements are in the cache now? Marked in a picture of the buffers."""

from __future__ import annotations

import functools
import random

from ...observe import accesses
from ...script import from_source
from ..exercise import Exercise, Field, Values, Wrong, row
from ..pictures import cells, share

#: bytes of a line of the cache, and numbers in it
LINE, NUMBERS = 16, 4


def program(v: Values):
    """B becomes the transpose of A; the two loops stand in an order that is drawn."""
    outer, inner = v.order
    extent = {"i": v.n, "j": v.m}
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n}, {v.m}), "float32"), B: T.Buffer(({v.m}, {v.n}), "float32")):
        for {outer}, {inner} in T.grid({extent[outer]}, {extent[inner]}):
            B[j, i] = A[i, j]
""")


@functools.lru_cache(64)
def _held(n: int, m: int, order: str, lines: int, steps: int) -> tuple[tuple[str, int, int], ...]:
    """Of each element that was in the cache: its name, when its line came last, and when it left;
    -1 for one that is there."""
    trace = accesses(program(Values(n=n, m=m, order=order)))
    simulated = trace.simulate(f"{lines * LINE}:{lines}:{LINE}:lru")
    came: dict[int, int] = {}
    left: dict[int, int] = {}
    gone: dict[int, list[int]] = {}
    for at, line in simulated.gone.reshape(-1, 2).tolist():
        gone.setdefault(at, []).append(line)
    for at, address in enumerate(trace.address[:2 * steps].tolist()):
        for line in gone.get(at, ()):
            left[line] = at
        line = address // LINE
        if line not in came or left.get(line, -1) >= came[line]:
            came[line] = at
    found = []
    for place in trace.places:
        rows, columns = place.shape
        for at in range(rows * columns):
            line = (place.base + 4 * at) // LINE
            if line in came:
                out = left.get(line, -1)
                found.append((f"{place.name}[{at // columns}, {at % columns}]", came[line],
                              out if out > came[line] else -1))
    return tuple(found)


def held(v: Values) -> tuple[tuple[str, int, int], ...]:
    """What was in the cache in the first steps."""
    return _held(v.n, v.m, v.order, v.lines, v.steps)


def here(v: Values) -> list[str]:
    """The elements that are in the cache after the steps."""
    return [name for name, _, left in held(v) if left < 0]


def about(v: Values) -> dict[str, str]:
    """Why an element is there, or not, by its name."""
    told = {f"{name}[{i}, {j}]": "no element of its line was used so far"
            for name, (n, m) in (("A", (v.n, v.m)), ("B", (v.m, v.n)))
            for i in range(n) for j in range(m)}
    for name, came, left in held(v):
        told[name] = (f"its line came in step {came // 2 + 1} and is still there" if left < 0 else
                      f"its line left the cache in step {left // 2 + 1}")
    return told


def touched(v: Values) -> list[str]:
    """The elements that were used, and not the others of their lines, in as many last steps as
    the cache has lines for both buffers."""
    outer, inner = v.order
    extent = {"i": v.n, "j": v.m}
    found = []
    for step in range(max(0, v.steps - v.lines // 2), v.steps):
        at = {outer: step // extent[inner], inner: step % extent[inner]}
        found += [f"A[{at['i']}, {at['j']}]", f"B[{at['j']}, {at['i']}]"]
    return found


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes that lines divide; a step in the middle of the second or third row."""
    n, m = rng.choice([(8, 8), (8, 12), (12, 8)])
    order = rng.choice(["ij", "ji"])
    inner = {"i": n, "j": m}[order[1]]
    first, second = order
    loops = f"for {first} in range({({'i': n, 'j': m})[first]}):\n" \
            f"    for {second} in range({inner}):\n        B[j, i] = A[i, j]"
    return {"n": n, "m": m, "order": order, "lines": rng.choice([4, 6, 8]), "loops": loops,
            "steps": rng.choice([1, 2]) * inner + rng.choice([3, 5, 6])}


def points(v: Values, marked: list[str]) -> int:
    """The points of marks that are right in part."""
    return int(4 * share(here(v), marked))


EXERCISE = Exercise(
    id="05.6",
    title="What is in the cache?",
    level=2,
    minutes=15,
    kind="prediction",
    statement="""\
```python
{loops}
```

`A` is {n} by {m}, `B` is {m} by {n}, both float32. A line of the cache has 16 bytes, which are 4
numbers of a row, and each buffer begins with a line. The cache has {lines} lines, keeps any line
anywhere, and puts a new one in the place of the line that was not used for longest. A step reads an
element of `A`, then writes one of `B`; what is written is brought into the cache too.

Mark all elements that are in the cache after step {steps}.""",
    draw=draw,
    program=program,
    fields=lambda v: [Field("cached", f"In the cache after {v.steps} steps", "marks",
                            picture=cells(("A", (v.n, v.m)), ("B", (v.m, v.n))))],
    checks=lambda v: [row("marks", 4, f"what is in the cache after step {v.steps}", field="cached",
                          equals=lambda: here(v), about=lambda: about(v))],
    hints=(
        "A cache holds whole lines: where one number of a line is there, its three neighbours are "
        "there too.",
        "Write down the lines of the last steps, the newest first, each once: one of A and one of "
        "B in each step. The first {lines} different ones are in the cache.",
        "One of the two buffers is walked along its rows: it uses one line in four steps, and that "
        "line stays. The other goes down a column: each step takes another line.",
    ),
    reference=lambda v: {"cached": here(v)},
    wrong=lambda v: [
        Wrong({"cached": touched(v)}, points(v, touched(v)), "is missing"),
        Wrong({"cached": "A[:, :]"}, points(v, [n for n in about(v) if n[0] == "A"]),
              "marked, and should not be"),
        Wrong({"cached": [name for name, _, _ in held(v)]},
              points(v, [name for name, _, _ in held(v)]), "its line left the cache in step"),
        Wrong({"cached": []}, 0, "0 of "),
    ],
)

