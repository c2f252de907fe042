"""07.3  rfactor: a norm in several sums that do not wait for each other."""

from __future__ import annotations

from ...script import from_source
from ..exercise import Exercise, Values, Wrong, row

#: what the sum may be called, and its block
NAMES = ("S", "D", "E", "N", "P", "Y")


def program(v: Values):
    """The sum of squares of a vector."""
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n},), "float32"), {v.S}: T.Buffer((1,), "float32")):
        for i, k in T.grid(1, {v.n}):
            with T.block("{v.S}"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    {v.S}[vi] = T.float32(0)
                {v.S}[vi] = {v.S}[vi] + A[vk] * A[vk]
""")


def factored(v: Values, loop: str = "k1", vectorized: bool = True) -> str:
    """So many partial sums, the reduction's inner or outer loop made a loop over them."""
    lines = f"""
i, k = sch.get_loops("{v.S}")
k0, k1 = sch.split(k, [None, {v.lanes}])
R = sch.rfactor({loop}, 0)"""
    if vectorized:
        lines += """
r = sch.get_loops(R)
sch.reorder(r[1], r[2])
sch.vectorize(r[2])"""
    return lines


def nested(v: Values) -> str:
    """Another way: the lanes are split off first, and moved inside afterwards."""
    return f"""
i, k = sch.get_loops("{v.S}")
k0, k1 = sch.split(k, [{v.n // v.lanes}, None])
R = sch.rfactor(k1, factor_axis=0)
i, a, b = sch.get_loops(R)
sch.vectorize(b)"""


EXERCISE = Exercise(
    id="07.3",
    title="The norm of a vector",
    level=3,
    minutes=20,
    kind="schedule",
    statement="""\
The sum of the squares of {n} numbers is one chain of additions: each waits for the one before it,
and a loop over `k` cannot be vectorized, since all iterations write the same element.

With `sch.rfactor` make {lanes} partial sums of it in a block of its own, `{S}_rf`. The innermost
loop around `{S}_rf` runs over the {lanes} sums and is vectorized, so that one vector instruction
adds to all of them.""",
    draw=lambda rng: {"n": rng.choice([1024, 1280, 1536, 2048]), "S": rng.choice(NAMES),
                      "lanes": rng.choice([8, 16])},
    program=program,
    checks=lambda v: [
        row("equivalent", 1, "it computes the sum", nasty=False),
        row("structure", 2, "partial sums, made by rfactor", uses=["rfactor"],
            allocates={f"{v.S}_rf": "global"}),
        row("structure", 2, f"{v.lanes} lanes in the innermost loop",
            nest={f"{v.S}_rf": [1, v.n // v.lanes, f"vectorized {v.lanes}"]}),
    ],
    hints=(
        "The loop over k has to become two loops before one of them can be taken out of the sum.",
        "rfactor(loop, 0) makes a partial sum for each iteration of the loop it is given; that "
        "loop is spatial in the new block. So give it the loop of {lanes}.",
        'k0, k1 = sch.split(k, [None, {lanes}]), R = sch.rfactor(k1, 0), and vectorize the last of '
        "the loops of R. Look at their order with print(sch.mod).",
    ),
    reference=nested,
    wrong=lambda v: [
        Wrong(f"i, k = sch.get_loops('{v.S}')\nk0, k1 = sch.split(k, [None, {v.lanes}])\n"
              "sch.vectorize(k1)", 0, "vectorize"),
        Wrong(factored(v, vectorized=False), 3, f"asked for: 1, {v.n // v.lanes}, vectorized "
              f"{v.lanes}"),
        Wrong(factored(v, "k0", vectorized=False), 3,
              f"the loops around block {v.S}_rf are"),
        Wrong(f"i, k = sch.get_loops('{v.S}')\nsch.rfactor(k, 0)", 3,
              f"the loops around block {v.S}_rf are"),
    ],
)
