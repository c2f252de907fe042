"""Constants at the ends of their types: what cannot be computed in them is unknown, never an error.

Each function of `arith` is asked of random expressions whose constants lie anywhere in int32 or
int64, so that sums and products of them do not fit.
"""

import random

import pytest

from mlc_lab import arith, tir
from mlc_lab.arith.iter_map import detect_iter_map, iter_map_simplify, normalize_to_iter_sum
from mlc_lab.reading import DataError
from mlc_lab.tir import IntImm, Range, Var

BITS = {"int32": 31, "int64": 63}


def constant(rng, dtype):
    end = 1 << BITS[dtype]
    return IntImm(dtype, rng.choice([0, 1, 2, 3, 8, -1, -5, end - 1, -end, end // 2, -(end // 2),
                                     end - 7, rng.randrange(-end, end)]))


def expression(rng, variables, dtype, depth):
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([*variables, constant(rng, dtype)])
    a, b = (expression(rng, variables, dtype, depth - 1) for _ in "ab")
    build = rng.choice([lambda: a + b, lambda: a - b, lambda: a * b, lambda: tir.floordiv(a, b),
                        lambda: tir.floormod(a, b), lambda: tir.min(a, b)])
    try:
        return build()
    except (ZeroDivisionError, DataError):  # two constants, which are computed at once
        return a


def ranges(rng, variables, dtype):
    ends = [1, 2, 3, 8, 2**31 - 1]
    return {v: Range.from_min_extent(
        constant(rng, dtype) if rng.random() < 0.3 else IntImm(dtype, 0),
        IntImm(dtype, rng.choice(ends))) for v in variables}


def windows(exprs, dtype):
    return [Range.from_min_extent(e, IntImm(dtype, 3)) for e in exprs]


#: name -> what is asked of two expressions, with the ranges of their variables and a condition
ASKED = {
    "normalize_to_iter_sum": lambda es, dom, where: normalize_to_iter_sum(es[0], dom),
    "iter_map_simplify": iter_map_simplify,
    "surjective": lambda es, dom, where: detect_iter_map(es, dom, where, "surjective"),
    "bijective": lambda es, dom, where: detect_iter_map(es, dom, where, "bijective"),
    "subspace_divide": lambda es, dom, where: arith.subspace_divide(es, dom, [*dom][:1], where),
    "lower bound": lambda es, dom, where: arith.estimate_region_lower_bound(
        windows(es, es[0].dtype), dom, where),
    "strict bound": lambda es, dom, where: arith.estimate_region_strict_bound(
        windows(es, es[0].dtype), dom, where),
    "upper bound": lambda es, dom, where: arith.estimate_region_upper_bound(
        windows(es, es[0].dtype), dom, where),
    "int_set": lambda es, dom, where: arith.Analyzer().int_set(
        es[0], {v: arith.IntervalSet(r.min, r.min + (r.extent - 1)) for v, r in dom.items()
                if r.min.value + r.extent.value <= 1 << BITS[r.min.dtype]}),
    "simplify": lambda es, dom, where: arith.Analyzer().simplify(es[0] * es[1]),
    "can_prove": lambda es, dom, where: arith.Analyzer().can_prove(es[0] < es[1]),
    "const_int_bound": lambda es, dom, where: arith.Analyzer().const_int_bound(es[0]),
    "modular_set": lambda es, dom, where: arith.Analyzer().modular_set(es[0]),
    "detect_linear_equation": lambda es, dom, where: arith.detect_linear_equation(es[0], [*dom]),
    "detect_clip_bound": lambda es, dom, where: arith.detect_clip_bound(es[0] < es[1], [*dom]),
    "deduce_bound": lambda es, dom, where: arith.deduce_bound(
        [*dom][0], es[0] < es[1], {}, dict([*dom.items()][1:])),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_does_not_fit_is_unknown(name):
    rng = random.Random(name)
    for _ in range(150):
        dtype = rng.choice([*BITS])
        variables = [Var(f"v{n}", dtype) for n in range(3)]
        dom = ranges(rng, variables, dtype)
        es = [expression(rng, variables, dtype, 3) for _ in "ab"]
        try:
            where = rng.choice([tir.const(True, "bool"), es[0] < es[1],
                                variables[0] < constant(rng, dtype)])
            if name in ("simplify", "can_prove", "detect_clip_bound", "deduce_bound"):
                es[0] * es[1]  # constants are computed at once, and refused where they do not fit
        except DataError:
            continue
        ASKED[name](es, dom, where)
