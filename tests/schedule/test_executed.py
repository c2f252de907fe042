"""Which iterations of a block run: what is concluded equals what trying all of them gives."""

import itertools
import random

import pytest

from mlc_lab.schedule.executed import tiles_cover
from mlc_lab.script import from_source
from mlc_lab.tir.functor import pre_order
from mlc_lab.tir.stmt import BlockRealize, For

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((64, 64), "float32")):
    for a, b, c, d in T.grid({a}, {b}, {c}, {d}):
        with T.block("X"):
            vi = T.axis.spatial({n}, {i})
            vj = T.axis.spatial({m}, {j})
            T.where({where})
            A[vi, vj] = T.float32(1)
"""


def program(rng):
    sizes = {v: rng.choice([1, 2, 3, 4]) for v in "abcd"}
    n, m = rng.randint(1, 9), rng.randint(1, 6)
    i, j = f"a * {rng.choice([1, 2, 3, 4])} + b", rng.choice(["c", "c * 2 + d", "d", "a + c"])
    if rng.random() < 0.3:
        i += f" - {rng.randint(0, 2)}"
    parts = []
    if rng.random() < 0.8:
        parts.append(f"{i} < {rng.choice([n, n, n + 1, n - 1])}")
    if rng.random() < 0.5:
        parts.append(f"0 <= {i}")
    if rng.random() < 0.7:
        parts.append(f"{j} < {m}")
    text = PROGRAM.format(**sizes, n=n, m=m, i=i, j=j, where=" and ".join(parts) or "True")
    ran = set()
    for values in itertools.product(*(range(sizes[v]) for v in "abcd")):
        names = dict(zip("abcd", values))
        if all(eval(part, {}, names) for part in parts):
            ran.add((eval(i, {}, names), eval(j, {}, names)))
    return text, ran == set(itertools.product(range(n), range(m)))


@pytest.mark.parametrize("seed", range(4))
def test_tiles_that_overlap_or_stick_out_cover_the_domain(seed):
    rng = random.Random(seed)
    answers = {True: 0, False: 0, "missed": 0}
    for _ in range(150):
        text, covers = program(rng)
        nodes = list(pre_order(from_source(text, check_well_formed=False).body))
        realize = [n for n in nodes if type(n) is BlockRealize and n.block.name_hint == "X"][0]
        found = tiles_cover(realize, [n for n in nodes if type(n) is For])
        assert covers or not found, text
        answers[found] += 1
        answers["missed"] += covers and not found
    assert answers[True] > 5 and answers["missed"] <= answers[True], answers
