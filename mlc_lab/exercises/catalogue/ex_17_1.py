"""17.1  Five changes on the way down: which pass has made each?"""

from __future__ import annotations

import difflib
import functools
import random
import re

from ...lower import stages
from ...observe.typed_text import TextReader
from ...script import from_source
from ..exercise import Exercise, Field, Values, Wrong, row
from .matrices import RESULTS

#: passes, by which line of what they take away and put in its place they can be known; and what
#: each does
PASSES = {
    "LowerInitBlock": (r"with T\.init", r"if v\w == 0",
                       "it turns T.init into a condition: is this the first step of the sum?"),
    "ConvertBlocksToOpaque": (r" = T\.axis\.reduce", r"if \w == 0",
                              "it puts the bindings into the body, so that no block has iterators"),
    "CompactBufferAllocation": (r"alloc_buffer", r"alloc_buffer",
                                "it shrinks a buffer to what of it is alive at once"),
    "LowerOpaqueBlock": (r"T\.where", r"if .* < ",
                         "it removes the blocks: predicates become conditions, and buffers "
                         "allocations"),
    "FlattenBuffer": (r"\] = A\[", r"\] = A_1\[",
                      "it makes memory one-dimensional: indices become one sum"),
    "LoopPartition": (r"if .* < ", r"for .* in ",
                      "it cuts a loop where a condition on it becomes known"),
    "VectorizeLoop": (r"T\.vectorized", r":.*\] = ",
                      "it makes operations on whole vectors of a loop that was marked"),
    "UnrollLoop": (r"T\.unroll", r"\] = .*\[",
                   "it writes a loop out, once for each of its iterations"),
}
CHANGES = 5


def program(v: Values):
    """Squares in strips of rows, and their sums: scheduled."""
    return _scheduled(v.n, v.m, v.strip, v.Y, v.C)


@functools.lru_cache(32)
def _scheduled(n: int, m: int, strip: int, squares: str, sums: str):
    start = from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({n}, {m}), "float32"), {sums}: T.Buffer(({n},), "float32")):
        {squares} = T.alloc_buffer(({n}, {m}), "float32")
        for i, k in T.grid({n}, {m}):
            with T.block("{squares}"):
                vi, vk = T.axis.remap("SS", [i, k])
                {squares}[vi, vk] = A[vi, vk] * A[vi, vk]
        for i, k in T.grid({n}, {m}):
            with T.block("{sums}"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    {sums}[vi] = T.float32(0)
                {sums}[vi] = {sums}[vi] + {squares}[vi, vk]
""")
    mod = TextReader({}, start).read(f"""
i, k = sch.get_loops("{sums}")
i_0, i_1 = sch.split(i, factors=[None, {strip}])
sch.compute_at("{squares}", i_0)
sch.vectorize(sch.split(sch.get_loops("{squares}")[-1], factors=[None, 4])[1])
sch.unroll(i_1)
""").mod
    assert mod is not None
    return mod


@functools.lru_cache(32)
def _lines(mod) -> tuple[tuple[str, tuple[str, str]], ...]:
    """Of each pass a line that it takes away, and one that it puts in."""
    found, before = [], None
    for name, after in stages(mod):
        lines = [line for line in after["main"].script().splitlines() if line.strip()]
        if before is not None and name in PASSES:
            changed = list(difflib.unified_diff(before, lines, lineterm="", n=0))[2:]
            pair = tuple(next(line[1:].strip() for line in changed if line[0] == sign
                              and re.search(pattern, line))
                         for sign, pattern in zip("-+", PASSES[name]))
            found.append((name, pair))
        before = lines
    return tuple(found)


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes that the strips do not divide, names, and five passes in any order."""
    strip = rng.choice([3, 4, 5])
    squares, sums = rng.sample([name for name in RESULTS if name != "C"], 2)
    drawn = {"strip": strip, "n": strip * rng.randint(3, 6) + rng.randint(1, strip - 1),
             "m": rng.choice([8, 12, 16]), "Y": squares, "C": sums,
             "passes": rng.sample(sorted(PASSES), CHANGES)}
    lines = dict(_lines(program(Values(**drawn))))
    listing = "\n\n".join(f"change {n}\n\n```\n- {lines[name][0]}\n+ {lines[name][1]}\n```"
                          for n, name in enumerate(drawn["passes"], 1))
    return {**drawn, "listing": listing}


def reference(v: Values) -> dict[str, str]:
    """The passes of the changes."""
    return {f"change_{n}": name for n, name in enumerate(v.passes, 1)}


def others(v: Values, name: str) -> dict[str, str]:
    """An answer that says one pass of all changes but of its own; there another."""
    other = next(p for p in PASSES if p != name)
    return {field: other if is_ == name else name for field, is_ in reference(v).items()}


EXERCISE = Exercise(
    id="17.1",
    title="Which pass was it?",
    level=1,
    minutes=10,
    kind="prediction",
    statement="""\
The program below is lowered. Here are five of the changes that its passes make, in no order: of
each a line that a pass takes away (-), and one that stands there afterwards (+). Which pass makes
which change?

{listing}

The same line may change more than once on the way down, so look at both.""",
    draw=draw,
    program=program,
    fields=lambda v: [Field(f"change_{n}", f"change {n}", "choice", tuple(PASSES))
                      for n in range(1, CHANGES + 1)],
    checks=lambda v: [
        row("prediction", 1, f"change {n}", field=f"change_{n}", equals=name,
            about={other: f"that is not what {other} does: {does}"
                   for other, (_, _, does) in PASSES.items()})
        for n, name in enumerate(v.passes, 1)],
    hints=(
        "What is gone after the change: iterators of a block, the block, a second dimension, a "
        "condition, a loop?",
        "As long as a line has T.where or T.writes, there are blocks. Bindings go before blocks, "
        "and blocks before memory becomes flat; loops are changed last.",
        "T.init: LowerInitBlock. T.axis: ConvertBlocksToOpaque. A smaller buffer: "
        "CompactBufferAllocation. T.where: LowerOpaqueBlock. One index in place of two: "
        "FlattenBuffer. A condition that is gone: LoopPartition. A slice: VectorizeLoop.",
    ),
    reference=reference,
    wrong=lambda v: [
        Wrong(others(v, v.passes[0]), 0, f"that is not what {v.passes[0]} does"),
        Wrong({**reference(v), "change_2": v.passes[2], "change_3": v.passes[1]}, 3,
              f"that is not what {v.passes[2]} does"),
        Wrong({"change_4": v.passes[3]}, 1, "nothing was filled in"),
    ],
)
