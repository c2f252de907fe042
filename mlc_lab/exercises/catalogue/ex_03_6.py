"""03.6  Which loops may run in parallel? Marked in the program; the schedule itself knows."""

from __future__ import annotations

import functools
import random

from ...observe.typed_text import TextReader
from ...script import from_source
from ..exercise import Exercise, Field, Values, Wrong, row
from ..pictures import lines, share

#: blocks by name: (loops, axes, what is computed), with one of its loops named by a letter
BLOCKS = {
    "Y": ("ijk", {"vi": "S", "vj": "S", "vk": "R"}, "Y[vi, vj]",
          "Y[vi, vj] + A[vi, vk] * B[vk, vj]", "T.float32(0)"),
    "S": ("ij", {"vi": "S", "vj": "R"}, "S[vi]", "S[vi] + Y[vi, vj]", "T.float32(0)"),
    "M": ("ji", {"vj": "S", "vi": "R"}, "M[vj]", "T.max(M[vj], Y[vi, vj])", "T.float32(-1e9)"),
    "C": ("ij", {"vi": "S", "vj": "S"}, "C[vi, vj]", "Y[vi, vj] / S[vi] + M[vj]", ""),
}
SIZES = {"i": 16, "j": 24, "k": 32}


def listing(orders: tuple[str, ...]) -> tuple[str, dict[str, tuple[str, int]]]:
    """The program, and of each line with a loop the block and the number of the loop."""
    out = ["@T.prim_func",
           'def main(A: T.Buffer((16, 32), "float32"), B: T.Buffer((32, 24), "float32"),',
           '         C: T.Buffer((16, 24), "float32")):',
           '    Y = T.alloc_buffer((16, 24), "float32")',
           '    S = T.alloc_buffer((16,), "float32")', '    M = T.alloc_buffer((24,), "float32")']
    loops: dict[str, tuple[str, int]] = {}
    for number, (name, order) in enumerate(zip(BLOCKS, orders)):
        _, axes, target, value, start = BLOCKS[name]
        for depth, letter in enumerate(order):
            out.append("    " * (depth + 1) + f"for {letter}{number} in range({SIZES[letter]}):")
            loops[f"line {len(out)}"] = (name, depth)
        inside = "    " * (len(order) + 1)
        remap = ", ".join(f"{axis[1]}{number}" for axis in axes)
        out.append(inside + f'with T.block("{name}"):')
        out.append(inside + f'    {", ".join(axes)} = T.axis.remap("{"".join(axes.values())}", '
                   f"[{remap}])")
        if start:
            out += [inside + "    with T.init():", inside + f"        {target} = {start}"]
        out.append(inside + f"    {target} = {value}")
    return "\n".join(out), loops


@functools.lru_cache(64)
def tried(orders: tuple[str, ...]) -> dict[str, str]:
    """Of each line with a loop why it may not run in parallel, "" where it may: it is tried."""
    text, loops = listing(orders)
    start = from_source(text)
    found = {}
    for line, (block, depth) in loops.items():
        error = TextReader({}, start).read(
            f'sch.parallel(sch.get_loops("{block}")[{depth}])').error
        found[line] = (f"refused by the rule: {error['rule']}. "
                       + error["message"].split("\n")[0]) if error else ""
    return found


def legal(v: Values) -> list[str]:
    """The lines whose loops may run in parallel."""
    return [line for line, why in tried(v.orders).items() if not why]


def about(v: Values) -> dict[str, str]:
    """What to tell of a line that is marked wrongly, or not."""
    text, loops = listing(v.orders)
    told = {f"line {n}": "there is no loop" for n in range(1, len(text.split("\n")) + 1)}
    told |= {line: why or "its iterations write different elements"
             for line, why in tried(v.orders).items()}
    return told


def outer(v: Values) -> list[str]:
    """The outermost loop of each block."""
    return [line for line, (_, depth) in listing(v.orders)[1].items() if depth == 0]


def points(v: Values, marked: list[str]) -> int:
    """The points of marks that are right in part."""
    return int(4 * share(legal(v), marked))


def draw(rng: random.Random) -> dict[str, object]:
    """The order of the loops around each block."""
    def mixed(word: str) -> str:
        return "".join(rng.sample(word, len(word)))

    # one of the two reductions over Y begins with the loop that adds up, one does not
    first = rng.random() < 0.5
    return {"orders": (mixed("ijk"), "ji" if first else "ij", "ji" if first else "ij",
                       mixed("ij"))}


EXERCISE = Exercise(
    id="03.6",
    title="Mark the parallel loops",
    level=2,
    minutes=10,
    kind="prediction",
    statement="""\
Each loop of this program is tried by itself: `sch.parallel(loop)`. Mark the lines whose loop the
schedule takes. Its iterations are then run in any order and at once, so none may need what another
one has written, nor may two write the same element.""",
    draw=draw,
    fields=lambda v: [Field("loops", "Lines whose loop may run in parallel", "marks",
                            picture=lines(listing(v.orders)[0]))],
    checks=lambda v: [row("marks", 4, "the loops that may run in parallel", field="loops",
                          equals=lambda: legal(v), about=lambda: about(v))],
    hints=(
        "Look at what a block writes. Two iterations of a loop that write the same element may not "
        "run at once.",
        "The axes say it: a loop whose variable is bound to an axis with the letter S is a loop "
        "over different elements, one with R adds up into the same.",
        "Where a loop stands does not matter for whether it may be parallel, only its kind: of Y "
        "the loops i and j, of S the loop i, of M the loop j, of C both.",
    ),
    reference=lambda v: {"loops": legal(v)},
    wrong=lambda v: [
        Wrong({"loops": list(tried(v.orders))}, points(v, list(tried(v.orders))),
              "refused by the rule: "),
        Wrong({"loops": outer(v)}, points(v, outer(v)), "is missing"),
        Wrong({"loops": "lines 1-3"}, 0, "there is no loop"),
        Wrong({"loops": legal(v)[:-1]}, points(v, legal(v)[:-1]),
              "its iterations write different elements"),
    ],
)
