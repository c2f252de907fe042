"""19.2  Read an inner loop in assembly: its sums, its cycles, and what limits it."""

from __future__ import annotations

import random

from ..exercise import Exercise, Field, Values, Wrong, row

#: floats in a register, by its name
WIDTHS = {"xmm": 4, "ymm": 8, "zmm": 16}
CHAIN, UNITS, LOADS = "the chain of a sum", "the units for multiply-adds", "the units for loads"
LIMITS = (CHAIN, UNITS, LOADS)


def tiled(name: str, rows: int, vectors: int, copies: int) -> list[str]:
    """The loop over k of a tile: vectors of B, and elements of A that are spread."""
    sums, width, out = rows * vectors, 4 * WIDTHS[name], []
    for copy in range(copies):
        for c in range(vectors):
            at = (copy * vectors + c) * width
            out.append(f"vmovups       {at}(%rsi,%rax), %{name}{sums + c}")
        for r in range(rows):
            spread = sums + vectors
            out.append(f"vbroadcastss  {4 * copy}(%rdi,%r{8 + r}), %{name}{spread}")
            out += [f"vfmadd231ps   %{name}{sums + c}, %{name}{spread}, %{name}{r * vectors + c}"
                    for c in range(vectors)]
    return out


def dotted(name: str, sums: int, copies: int) -> list[str]:
    """The loop over k of a dot product: both factors are loaded."""
    width, out = 4 * WIDTHS[name], []
    for n in range(sums * copies):
        out.append(f"vmovups       {n * width}(%rsi,%rax), %{name}{sums + n % 2}")
        out.append(f"vfmadd231ps   {n * width}(%rdi,%rax), %{name}{sums + n % 2}, "
                   f"%{name}{n % sums}")
    return out


def counted(v: Values) -> dict[str, int]:
    """Multiply-adds and loads of an iteration."""
    lines = v.listing.split("\n")
    return {"fma": sum("vfmadd" in line for line in lines),
            "loads": sum("(%r" in line for line in lines)}


def limits(v: Values) -> dict[str, float]:
    """Cycles that each of the three takes for an iteration."""
    found = counted(v)
    return {CHAIN: found["fma"] // v.sums * v.latency, UNITS: found["fma"] / 2,
            LOADS: found["loads"] / 2}


def truth(v: Values) -> dict[str, object]:
    """What is asked for."""
    took = limits(v)
    slowest = max(took, key=lambda name: took[name])
    return {"floats": WIDTHS[v.name], "sums": v.sums, "cycles": took[slowest], "limit": slowest,
            "share": 100 * took[UNITS] / took[slowest]}


def about(v: Values) -> dict[str, str]:
    """What each of the limits takes."""
    took, found = limits(v), counted(v)
    return {CHAIN: f"a sum has {found['fma'] // v.sums} multiply-adds in an iteration, one after "
                   f"the other: {took[CHAIN]:g} cycles",
            UNITS: f"{found['fma']} multiply-adds, two a cycle: {took[UNITS]:g} cycles",
            LOADS: f"{found['loads']} loads, two a cycle: {took[LOADS]:g} cycles"}


def draw(rng: random.Random) -> dict[str, object]:
    """A loop, by what limits it."""
    name, limit = rng.choice(sorted(WIDTHS)), rng.choice(LIMITS)
    latency = rng.choice([4, 5])
    if limit == CHAIN:
        rows, vectors = rng.choice([(1, 2), (2, 1), (2, 2), (1, 3), (3, 1), (1, 4)])
        sums, copies = rows * vectors, rng.choice([2, 3, 4])
        lines = tiled(name, rows, vectors, copies)
    elif limit == UNITS:
        rows, vectors = rng.choice([(4, 3), (6, 2), (3, 4)] if name == "zmm" else [(4, 3), (6, 2)])
        sums, copies = rows * vectors, rng.choice([1, 2])
        lines = tiled(name, rows, vectors, copies)
    else:
        sums, copies = rng.choice([8, 10, 12]), rng.choice([1, 2])
        lines = dotted(name, sums, copies)
    ends = ["addq          $64, %rax", "cmpq          %rcx, %rax", "jne           .LBB0_2"]
    return {"name": name, "latency": latency, "sums": sums, "copies": copies,
            "fma": sums * copies, "listing": "\n".join([".LBB0_2:", *lines, *ends])}


EXERCISE = Exercise(
    id="19.2",
    title="Read the inner loop",
    level=2,
    minutes=15,
    kind="prediction",
    statement="""\
This is the inner loop of a kernel:

```
{listing}
```

In `vfmadd231ps a, b, c` the product of `a` and `b` is added to `c`. What has brackets with a
register in them, as `64(%rsi,%rax)`, is loaded from memory; all of it is in the first cache.

In this core a multiply-add takes {latency} cycles. In each cycle two multiply-adds can start, and
two loads; all else costs nothing. The loop runs very often.""",
    draw=draw,
    fields=lambda v: [
        Field("floats", "Floats in a vector"),
        Field("sums", "Sums that do not wait for each other"),
        Field("cycles", "Cycles of an iteration"),
        Field("limit", "What limits it?", "choice", LIMITS),
        Field("share", "Percent of the peak of multiply-adds that it reaches"),
    ],
    checks=lambda v: [
        row("prediction", 1, "the width", field="floats", equals=lambda: truth(v)["floats"],
            says={4 * WIDTHS[v.name]: "that is its bytes; a float has 4"}),
        row("prediction", 1, "sums", field="sums", equals=lambda: truth(v)["sums"],
            says={v.fma: "so many multiply-adds there are; some of them add to the same register"}
            if v.copies > 1 else {}),
        row("prediction", 2, "cycles of an iteration", field="cycles",
            equals=lambda: truth(v)["cycles"],
            says={cycles: f"that is what {name} would allow; another takes longer"
                  for name, cycles in limits(v).items() if cycles < max(limits(v).values())}),
        row("prediction", 1, "the limit", field="limit", equals=lambda: truth(v)["limit"],
            about=lambda: about(v)),
        row("prediction", 1, "the share of the peak", field="share",
            equals=lambda: truth(v)["share"], within=0.03),
    ],
    hints=(
        "Count by the names of registers: which ones are the last of a multiply-add?",
        "A sum that has several multiply-adds in an iteration takes the latency for each of them. "
        "Besides, count all multiply-adds and all loads, those within a multiply-add too.",
        "The cycles are the largest of three: the multiply-adds of one sum times {latency}; all "
        "multiply-adds by 2; all loads by 2. The peak would be the second of these.",
    ),
    reference=truth,
    wrong=lambda v: [
        Wrong({**truth(v), "cycles": min(limits(v).values())}, 4, "another takes longer"),
        Wrong({**truth(v), "limit": next(x for x in LIMITS if x != truth(v)["limit"])}, 5,
              " cycles"),
        Wrong({**truth(v), "floats": 4 * WIDTHS[v.name]}, 5, "a float has 4"),
        Wrong({**truth(v), "sums": 1, "share": 10}, 4, "is too small"),
    ],
)
