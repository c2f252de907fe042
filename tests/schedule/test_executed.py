"""Which iterations of a block run: what is concluded equals what trying all of them gives."""

import itertools
import random

import pytest

from mlc_lab.arith.expr_util import conjuncts
from mlc_lab.schedule.executed import (
    comes_to_run, mixed_radix, reaches, runs_everywhere, tiles_cover,
)
from mlc_lab.schedule.footprint import loops_of
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


def a_nest(rng, names):
    """(source of nested loops over names, of which some are triangular; their values)."""
    lines, kept = [], []
    for depth, name in enumerate(names):
        extent = str(rng.randint(1, 4))
        if kept and rng.random() < 0.3:
            extent = f"{rng.choice(kept)} + {rng.randint(0, 2)}"
        lines.append("    " * (depth + 1) + f"for {name} in range({extent}):")
        kept.append(name)
    return lines


def values_of(lines, exprs):
    """What some expressions are, all at once, in each iteration of nested loops."""
    source = "def run(out):\n" + "\n".join(lines) + "\n" + "    " * (len(lines) + 1) + (
        f"out.append(({', '.join(exprs)},))\n")
    scope, out = {}, []
    exec(source, scope)
    scope["run"](out)
    return out


def a_site(lines, exprs, where="True"):
    inside = "    " * (len(lines) + 1)
    body = [f'{inside}with T.block("X"):',
            *(f"{inside}    v{n} = T.axis.spatial(64, {e})" for n, e in enumerate(exprs)),
            f"{inside}    T.where({where})", f"{inside}    A[v0] = T.float32(v1)"]
    text = '@T.prim_func\ndef main(A: T.Buffer((64,), "float32")):\n' + "\n".join(lines + body)
    nodes = list(pre_order(from_source(text).body))
    return [n for n in nodes if type(n) is For], next(
        n for n in nodes if type(n) is BlockRealize and n.iter_values)


def a_condition(rng, names):
    """On several loops, as those that splits leave."""
    terms = " + ".join(f"{name} * {rng.choice([1, 2, 4])}" for name in rng.sample(
        names, rng.randint(1, 3)))
    return f"{terms} {rng.choice(['<', '<', '>='])} {rng.randint(0, 6)}"


@pytest.mark.parametrize("seed", range(400))
def test_what_is_said_to_run_runs_in_each_iteration_around_it(seed):
    """Of nested loops the outer ones stand still: in each of their iterations in which a known
    condition holds, some iteration of the inner ones meets the parts of the predicate that say
    nothing of the values."""
    rng = random.Random(seed)
    names, depth = list("abcd"), rng.randint(0, 2)
    lines = []
    for at, name in enumerate(names):
        low = rng.choice([0, 0, 1])
        lines.append("    " * (at + 1) + f"for {name} in range({low}, {low + rng.randint(1, 3)}):")
    value = rng.choice(names[depth:])
    parts = [a_condition(rng, names) for _ in range(rng.randint(1, 3))]
    known = [p for p in parts if rng.random() < 0.5 and not any(n in p for n in names[depth:])]
    loops, realize = a_site(lines, [value, "0"], " and ".join(parts))
    conditions = conjuncts(realize.predicate)
    said = comes_to_run(realize.iter_values[:1], realize.predicate, loops[depth:],
                        loops_of(loops[:depth]), [conditions[parts.index(p)] for p in known])
    rest = [p for p in parts if value not in p]
    runs = {}
    for values in values_of(lines, names):
        here = dict(zip(names, values))
        if all(eval(c, {}, here) for c in known):
            runs.setdefault(values[:depth], []).append(all(eval(c, {}, here) for c in rest))
    assert not said or all(map(any, runs.values()))
    if runs_everywhere(realize, loops[depth:]):
        assert all(map(any, runs.values()))


def an_index(rng, names):
    a, b, c = rng.sample(names, 3)
    return rng.choice([a, a, f"{a} * {rng.randint(1, 4)} + {b}", f"{a} + {rng.randint(0, 2)}",
                       f"{a} * {rng.randint(2, 8)} + {b} * {rng.randint(1, 3)} + {c}", "3"])


@pytest.mark.parametrize("seed", range(400))
def test_iterations_that_are_said_to_be_reached_are(seed):
    rng = random.Random(seed)
    lines, exprs = a_nest(rng, "abc"), [an_index(rng, "abc"), an_index(rng, "abc")]
    loops, realize = a_site(lines, exprs)
    if rng.random() < 0.5:  # the same again with other bounds, so that it often holds
        other = lines if rng.random() < 0.7 else a_nest(rng, "abc")
        theirs = exprs
    else:
        other, theirs = a_nest(rng, "abc"), [an_index(rng, "abc"), an_index(rng, "abc")]
    outer, reader = a_site(other, theirs)
    if reaches(realize.iter_values, loops, realize.predicate, reader.iter_values, loops_of(outer),
               []):
        assert set(values_of(lines, exprs)) >= set(values_of(other, theirs))
    digits = mixed_radix(realize.iter_values, loops)
    if digits is not None:
        box = itertools.product(*(range(low, low + n) for low, n in digits))
        assert set(values_of(lines, exprs)) == set(box)


def test_iterations_are_found_to_be_reached():
    lines = ["    for a in range(4):", "        for b in range(3):",
             "            for c in range(a * 3 + b + 1):"]
    other = ["    for a in range(12):", "        for b in range(a + 1):"]
    loops, realize = a_site(lines, ["a * 3 + b", "c"])
    outer, reader = a_site(other, ["a", "b"])
    assert reaches(realize.iter_values, loops, realize.predicate, reader.iter_values,
                   loops_of(outer), [])
    assert reaches(reader.iter_values, outer, reader.predicate, realize.iter_values,
                   loops_of(loops), [])
