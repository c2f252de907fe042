"""The analysis answers in the forms in which apache-tvm answers: printed schedules show them.

Expressions go over as nested lists and come back so. On hand-picked ones the forms must be the
same; on random ones they must be the same nearly always: TVM writes some remainders of negative
multiples with negative divisors, and now and then one side sees a simplification that the other
does not.
"""

import json
import random
import subprocess

import pytest

from mlc_lab import arith, tir
from mlc_lab.tir import IntImm, Range, Var
from mlc_lab.tir import expr as E

from .bridge import needs_oracle, oracle_python

pytestmark = [needs_oracle, pytest.mark.oracle]

_WORKER = r'''
import json, sys
import tvm
try:
    from tvm import sym as arith, prim as nodes, tirx as tir
except ImportError:
    from tvm import arith, tir
    nodes = tir

def build(e, names):
    if isinstance(e, str):
        if e not in names:
            names[e] = tir.Var(e, "int32")
        return names[e]
    if isinstance(e, bool):
        return nodes.IntImm("bool", int(e))
    if isinstance(e, int):
        return nodes.IntImm("int32", e)
    return getattr(nodes, e[0])(*(build(x, names) for x in e[1:]))

def show(e):
    kind = type(e).__name__
    if kind in ("Var", "SizeVar"):
        return e.name
    if kind == "IntImm":
        boolean = str(getattr(e, "dtype", None) or e.ty).startswith("bool")
        return bool(e.value) if boolean else int(e.value)
    if kind == "Not":
        return [kind, show(e.a)]
    if hasattr(e, "a") and hasattr(e, "b"):
        return [kind, show(e.a), show(e.b)]
    return [kind, str(e)]

def run(case):
    names = {}
    doms = {n: tvm.ir.Range.from_min_extent(lo, ext) for n, (lo, ext) in case["doms"].items()}
    for n in doms:
        build(n, names)
    doms = {names[n]: r for n, r in doms.items()}
    if case["ask"] == "simplify":
        analyzer = arith.Analyzer()
        for var, rng in doms.items():
            analyzer.bind(var, rng)
        return show(analyzer.simplify(build(case["e"], names)))
    exprs = [build(e, names) for e in case["e"]]
    pred = build(case["pred"], names)
    if case["ask"] == "map":
        found = arith.detect_iter_map(exprs, doms, pred, case["level"])
        return [show(arith.normalize_iter_map_to_expr(e)) for e in found.indices]
    analyzer = arith.Analyzer()
    region = [tvm.ir.Range.from_min_extent(e, n) for e, n in zip(exprs, case["sizes"])]
    found = arith.estimate_region_upper_bound(region, doms, pred)
    return [[show(analyzer.simplify(s.min_value)),
             show(analyzer.simplify(s.max_value - s.min_value + 1))] for s in found]

print("\n@@@" + json.dumps([run(case) for case in json.load(sys.stdin)]))
'''


def ask(cases):
    """TVM's answers."""
    done = subprocess.run([oracle_python(), "-c", _WORKER], input=json.dumps(cases), text=True,
                          capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.split("@@@")[-1])


def lists(e):
    """An expression of ours as nested lists."""
    if isinstance(e, Var):
        return e.name
    if type(e) is IntImm:
        return bool(e.value) if e.dtype == "bool" else e.value
    return [type(e).__name__, *map(lists, e.children())]


def answer(case):
    """Our answer to the same question."""
    names = {n: Var(n, "int32") for n in case["doms"]}

    def build(e):
        if isinstance(e, str):
            return names.setdefault(e, Var(e, "int32"))
        if isinstance(e, bool):
            return IntImm("bool", e)
        return IntImm("int32", e) if isinstance(e, int) else getattr(E, e[0])(*map(build, e[1:]))

    doms = {names[n]: Range(lo, lo + ext) for n, (lo, ext) in case["doms"].items()}
    analyzer = arith.Analyzer()
    if case["ask"] == "simplify":
        for var, rng in doms.items():
            analyzer.bind(var, rng)
        return lists(analyzer.simplify(build(case["e"])))
    exprs, pred = [build(e) for e in case["e"]], build(case["pred"])
    if case["ask"] == "map":
        found = arith.detect_iter_map(exprs, doms, pred, case["level"], analyzer)
        return [lists(arith.normalize_iter_map_to_expr(e)) for e in found.indices]
    region = [Range.from_min_extent(e, IntImm("int32", n)) for e, n in zip(exprs, case["sizes"])]
    found = arith.estimate_region_upper_bound(region, doms, pred, analyzer)
    return [[lists(analyzer.simplify(s.min_value)),
             lists(analyzer.simplify(s.max_value - s.min_value + 1))] for s in found]


def assert_same(cases, share=1.0):
    """At least `share` of the answers are the same."""
    pairs = [(c, answer(c), t) for c, t in zip(cases, ask(cases))]
    wrong = [p for p in pairs if p[1] != p[2]]
    shown = "\n".join(f"{c}\n    here {a}\n    tvm  {t}" for c, a, t in wrong[:20])
    assert len(wrong) <= (1 - share) * len(pairs), f"{len(wrong)} of {len(pairs)} differ\n{shown}"


i, j, k, n = (Var(name, "int32") for name in "ijkn")
DOMS = {"i": (0, 16), "j": (0, 4), "k": (0, 8)}
FORMS = [
    i * 4 + j, j + i * 4, i * 4 + j * 4 + k, j - i * 4 + 3, j * 4 - 3 - i, i - 1, 0 - i, 5 - i,
    (i * 4 + j) // 4, (i * 4 + j) % 4, (i * 4 + j) // 8, (i * 4 + j) % 8, (i * 16 + k) // 4,
    i // 4 * 4 + i % 4, i // 4 % 8, i % 32 // 4, n // 4 % 8, n % 32 // 4, n // 4 * 4 + n % 4,
    (n * 4 + j) // 8, (n * 2 + 1) // 4, (n * 2 + 5) // 4, (n * 2 + 5) % 4, (n * 4 + 6) // 4,
    (n + 7) % 4, (n - 1) % 4, n - n // 4 * 4, (n * 3 + j * 5) % 4, (i + 20) // 16, n // 2 // 3,
    i * 3 + j < 40, i * 3 + j < 400, i * 4 + j < 24, i * 8 < j * 8, i * 4 < 16, n // 4 < 3, i > 3,
    i >= 1, i <= j, i + 1 < j + 3, j + 3 < i + 1, i - 1 < j, i + 1 <= j, 4 - i < n, n + k <= n,
    i * 64 + j < k * 64, i < i + j, i * 2 >= 2, tir.EQ(i, j + 3), tir.NE(i, j), i % 3 >= 2,
    tir.all(i < 3, j < 4), tir.all(n < 3, n < 4), tir.any(n < 3, n >= 3), tir.logical_not(i < j),
    tir.min(i * 4, j * 4), tir.min(n + j, n + k), tir.max(n * 2, n * 2 + 3), tir.min(n + 1, 5),
    tir.min(n * 4 + 4, 128) - n * 4, tir.min(n * 3 + 2, 127) - n * 3 + 1,
    tir.min(128 - n * 4, 4), tir.min(4, 128 - n * 4), tir.min(n * 3 + 3, 128) - n * 3,
    tir.max(0, n - 1), n * k, (n + 1) * k, n * k * 2, tir.truncdiv(n, 4), n - n % 4,
]


def test_hand_picked_expressions_are_simplified_to_the_same_form():
    assert_same([{"ask": "simplify", "e": lists(e), "doms": DOMS} for e in FORMS])


MAPS = [
    ([i * 4 + j], {"i": 32, "j": 4}, True), ([i // 128, i % 128], {"i": 8192}, True),
    ([(i * 16 + j) // 4, (i * 16 + j) % 4, k], {"i": 4, "j": 16, "k": 3}, True),
    ([i * 3 + j], {"i": 43, "j": 3}, i * 3 + j < 128), ([i, i], {"i": 8}, True),
    ([(i * 3 + j) // 4, (i * 3 + j) % 4], {"i": 43, "j": 3}, i * 3 + j < 128),
    ([i * 2 + j], {"i": 8, "j": 3}, True), ([i + j], {"i": 8, "j": 4}, True),
    ([i // 3], {"i": 8}, True), ([i // 3, i % 3], {"i": 8}, True), ([i % 3], {"i": 8}, True),
    ([i * 12 + j * 3 + k], {"i": 2, "j": 4, "k": 3}, True), ([j * 8 + i], {"i": 8, "j": 4}, True),
    ([(j * 8 + i) // 16, (j * 8 + i) % 16], {"i": 8, "j": 4}, True),
    ([i * 8 + j * 2 + k], {"i": 4, "j": 3, "k": 2}, tir.all(j * 2 + k < 5, i * 8 + j < 9)),
    ([i + 3], {"i": 8}, True), ([i * j], {"i": 8, "j": 4}, True),
    ([i * 5 + j], {"i": 8, "j": 4}, True),
]


@pytest.mark.parametrize("level", ["surjective", "bijective"])
def test_hand_picked_indices_are_the_same_maps(level):
    assert_same([{"ask": "map", "e": [lists(e) for e in exprs], "level": level,
                  "doms": {v: (0, ext) for v, ext in doms.items()},
                  "pred": pred if pred is True else lists(pred)} for exprs, doms, pred in MAPS])


REGIONS = [
    ([i * 3 + j], [1], {"j": 3}, True), ([i * 4 + j, k], [1, 3], {"j": 4, "k": 8}, True),
    ([i * 3 + j], [1], {"j": 3}, i * 3 + j < 128), ([i * 4 + j], [3], {"j": 4}, True),
    ([i + j], [1], {"i": 8, "j": 4}, True), ([i * 2 + k, j], [1, 1], {"i": 4, "k": 3}, True),
    ([j, j], [1, 1], {"j": 4}, True), ([tir.min(i, j)], [1], {"j": 4}, True),
    ([i // 2], [1], {"i": 7}, True), ([i * 8 + j * 2], [2], {"j": 4}, True),
    ([i * n + j], [1], {"j": 8}, True), ([n * 4 + i % 4], [1], {"i": 16}, True),
]


def test_hand_picked_regions_have_the_same_bounds():
    assert_same([{"ask": "region", "e": [lists(e) for e in exprs], "sizes": sizes,
                  "doms": {v: (0, ext) for v, ext in doms.items()},
                  "pred": pred if pred is True else lists(pred)}
                 for exprs, sizes, doms, pred in REGIONS])


def random_expression(rng, depth, extremes):
    if depth == 0 or rng.random() < 0.15:
        return rng.choice("ijkn") if rng.random() < 0.8 else rng.choice([1, 2, 3, 4, 5, 8, 16])
    a = random_expression(rng, depth - 1, extremes)
    kind = rng.random()
    if kind < 0.45:
        return ["Add" if kind < 0.35 else "Sub", a, random_expression(rng, depth - 1, extremes)]
    if kind < 0.65:
        return ["Mul", a, rng.choice([2, 3, 4, 8, 16])]
    if kind < 0.92 or not extremes:
        return ["FloorDiv" if kind < 0.8 else "FloorMod", a, rng.choice([2, 3, 4, 8, 16])]
    return [rng.choice(["Min", "Max"]), a, random_expression(rng, depth - 1, extremes)]


@pytest.mark.parametrize("extremes,share", [(False, 0.98), (True, 0.96)])
def test_random_expressions_are_simplified_to_the_same_form(extremes, share):
    rng = random.Random(7)
    assert_same([{"ask": "simplify", "e": random_expression(rng, 3, extremes),
                  "doms": DOMS if rng.random() < 0.7 else {}} for _ in range(1500)], share)


def test_random_conditions_are_simplified_to_the_same_form():
    rng = random.Random(11)
    assert_same([{"ask": "simplify", "doms": DOMS if rng.random() < 0.7 else {}, "e": [
        rng.choice(["LT", "LE", "GT", "GE", "EQ", "NE"]), random_expression(rng, 2, False),
        random_expression(rng, rng.choice([0, 1]), False)]} for _ in range(1000)], 0.96)
