"""20.2  Deal the rows of a triangle: equal work for each thread, and whole lines of the cache."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from ...script import from_source
from ..exercise import Exercise, Values, Wrong, row

#: what the result may be called, and its block
RESULTS = ("y", "u", "w", "z", "p", "q")


def program(v: Values):
    """The product of a triangle of numbers with a vector."""
    y = v.y
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n}, {v.n}), "{v.dtype}"), x: T.Buffer(({v.n},), "{v.dtype}"),
             {y}: T.Buffer(({v.n},), "{v.dtype}")):
        T.func_attr({{"tir.noalias": True}})
        for i in range({v.n}):
            with T.block("{y}"):
                vi = T.axis.spatial({v.n}, i)
                T.reads(A[vi, 0:vi + 1], x[0:vi + 1])
                T.writes({y}[vi])
                {y}[vi] = T.{v.dtype}(0)
                for k in range(vi + 1):
                    {y}[vi] = {y}[vi] + A[vi, k] * x[k]
""")


def busiest(v: Values, rows: int) -> float:
    """The share of the products that the busiest thread has, where so many rows in turn are
    dealt."""
    mine = [r for r in range(v.n) if r // rows % v.threads == v.threads - 1]
    return sum(r + 1 for r in mine) / (v.n * (v.n + 1) // 2)


def answer(v: Values, rows: int = 0, order: Sequence[str] = ("thread", "turn", "row")) -> str:
    """Some rows for each thread in turn; a line of them where no number is given."""
    rows = rows or v.elements
    return f"""
(i,) = sch.get_loops("{v.y}")
turn, thread, row = sch.split(i, factors=[None, {v.threads}, {rows}])
sch.reorder({", ".join(order)})
sch.parallel(thread)
"""


def draw(rng: random.Random) -> dict[str, object]:
    """Threads, and how many elements a line has."""
    line, dtype = rng.choice([(64, "float32"), (64, "float64"), (128, "float64")])
    elements = line // {"float32": 4, "float64": 8}[dtype]
    threads, turns = rng.choice([4, 5, 6]), rng.choice([4, 5])
    drawn = {"y": rng.choice(RESULTS), "dtype": dtype, "line": line, "elements": elements,
             "threads": threads, "turns": turns, "n": elements * threads * turns}
    percent = math.ceil(100 * busiest(Values(**drawn), elements) + 0.2)
    return {**drawn, "percent": percent, "even": round(100 / threads)}


EXERCISE = Exercise(
    id="20.2",
    title="Deal a triangle to threads",
    level=3,
    minutes=20,
    kind="schedule",
    statement="""\
Row `i` of this product has `i + 1` elements. Make it parallel for {threads} threads. A parallel
loop is divided into {threads} contiguous pieces, and the piece with the last rows has nearly twice
its share of the work. Write a schedule with which

- the threads are started once,
- the busiest thread has at most {percent} % of the loads and stores (an equal share would be
  {even} %), and
- no line of the cache is written by two threads. A line has {line} bytes, and `{y}` begins with
  one; it is an array of {dtype}.""",
    draw=draw,
    program=program,
    checks=lambda v: [
        row("equivalent", 1, "it computes the same", cases=1),
        row("threads", 1, "the threads are started once", threads=v.threads, starts=1),
        row("threads", 2, f"at most {v.percent} % for the busiest thread", threads=v.threads,
            share=v.percent / 100),
        row("threads", 2, "each line of the result is one thread's", threads=v.threads,
            line=v.line, moves=0),
    ],
    hints=(
        "Deal the rows as one deals cards: some to the first thread, some to the next, and when "
        "all have some, again from the first. What is a card here, so that no line is torn?",
        "A line holds {elements} elements of the result. Split the loop into three: turns, "
        "threads, and the rows of one card. Which of the three is to be parallel, and where does "
        "it have to stand?",
        "sch.split(i, factors=[None, {threads}, {elements}]), then reorder so that the middle loop "
        "is the outermost one, and make that one parallel.",
    ),
    reference=answer,
    wrong=lambda v: [
        Wrong(f'sch.parallel(sch.get_loops("{v.y}")[0])', 4, "the busiest of"),
        Wrong(answer(v, rows=1), 4, "are written by one thread and used by another one"),
        Wrong(answer(v, order=("turn", "thread", "row")), 5, "the threads are started"),
        Wrong(f'sch.split(sch.get_loops("{v.y}")[0], factors=[None, {v.elements}])', 1,
              "no loop is parallel"),
    ],
)
