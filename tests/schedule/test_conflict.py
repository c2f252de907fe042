"""Whether two executions touch one element: what is found equals what trying everything gives."""

import itertools
import random

import pytest

from mlc_lab.schedule.conflict import (
    always, apart, clash, first_clash, later, reversed_by,
)
from mlc_lab.schedule.distance import Distances, distance
from mlc_lab.schedule.footprint import Access, footprint, loops_of
from mlc_lab.schedule.witness import Unknown, evaluate
from mlc_lab.script import from_source, tir as T
from mlc_lab.tir import Var, decl_buffer, op
from mlc_lab.tir.buffer import may_overlap
from mlc_lab.tir.expr import IntImm
from mlc_lab.tir.stmt import BlockRealize, For


def under(func):
    """The accesses in the innermost of the loops of a function, and the loops."""
    root = func.body
    loops, at = [], root.block.body if type(root) is BlockRealize else root
    while type(at) is For:
        loops.append(at)
        at = at.body
    return footprint(at), loops_of(loops)


@T.prim_func
def sweep(A: T.Buffer((9, 9), "float32")):
    for i, j in T.grid(7, 7):
        with T.block("X"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi + 1, vj + 1] = A[vi, vj + 1] + A[vi + 1, vj] + A[vi, vj + 2]


@T.prim_func
def tiles(A: T.Buffer((4096,), "float32")):
    for f, i in T.grid(64, 64):
        with T.block("X"):
            v = T.axis.spatial(4096, f // 8 * 512 + i * 8 + f % 8)
            A[v] = A[v] + T.float32(1)


def test_the_distance_of_a_stencil_is_exact():
    accesses, loops = under(sweep)
    write = accesses[-1]
    i, j = (v for v, _, _ in loops)
    assert [distance(write, r, loops) for r in accesses[:-1]] == [
        {i: (1, 1), j: (0, 0)}, {i: (0, 0), j: (1, 1)}, {i: (1, 1), j: (-1, -1)}]


@pytest.mark.parametrize("index, extent, clashes", [
    ('T.Cast("int32", T.Cast("int8", v)) + 128', 512, True),
    ('T.Cast("int32", T.Cast("int8", v)) + 128', 128, False),
    ('T.Cast("int32", T.Cast("uint8", v) * T.uint8(2))', 200, True),
    ('T.Cast("int32", T.Cast("uint8", v) * T.uint8(2))', 100, False),
    ('T.Cast("int32", T.Cast("float16", v + 3000)) - 3000', 256, True),
    ('T.Cast("int32", T.Cast("bool", v))', 8, True),
    ('T.Cast("int32", T.int64(4294967296) * T.Cast("int64", v))', 8, True),
    ('T.Cast("int32", T.int64(2) * T.Cast("int64", v))', 8, False),
])
def test_a_cast_that_narrows_may_make_two_indices_one(index, extent, clashes):
    func = from_source(f"""@T.prim_func
def main(X: T.Buffer((512,), "int32")):
    for v in range({extent}):
        X[{index}] = v
""")
    (access,), loops = under(func)
    found = clash(access, access, loops, apart(loops[0][0]))
    assert bool(found) == clashes
    at = access.spans[0][0]
    try:
        values = [evaluate(at, {loops[0][0]: v}) for v in range(extent)]
    except Unknown:
        return
    assert (len(set(values)) < extent) == clashes


def test_a_condition_that_wraps_around_does_not_fix_its_loop():
    func = from_source("""@T.prim_func
def main(X: T.Buffer((8,), "int32")):
    for i in range(8):
        if T.Cast("int8", i * 64) == T.int8(0):
            X[0] = i
""")
    (access,), loops = under(func)
    assert clash(access, access, loops, apart(loops[0][0]))


def test_an_order_is_turned_around_only_where_two_iterations_change_places():
    accesses, loops = under(sweep)
    i, j = (v for v, _, _ in loops)
    found = first_clash(accesses, accesses, loops, reversed_by([i, j], [j, i]))
    assert found.text("X", "X") == "i = 1, j = 0: X reads A[1, 2]; i = 0, j = 1: X writes it"
    same = [a for a in accesses if a is not found.a]
    assert first_clash(same, same, loops, reversed_by([i, j], [j, i])) is None


def test_parts_of_a_fused_and_of_a_split_loop_tell_iterations_apart():
    accesses, loops = under(tiles)
    assert first_clash(accesses, accesses, loops, apart(*(v for v, _, _ in loops))) is None


def test_views_and_pointers_are_accesses_of_what_lies_behind():
    @T.prim_func
    def func(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(4):
            with T.block("X"):
                vi = T.axis.spatial(4, i)
                T.reads()
                T.writes()
                V = T.match_buffer(A[vi * 2:vi * 2 + 2, 4:8], (2, 4), offset_factor=1,
                                   strides=["s0", "s1"])
                V[1, 3] = T.float32(0)
                T.evaluate(V.access_ptr("r"))
                T.evaluate(B.access_ptr("w", offset=vi, extent=2))
                T.evaluate(T.call_extern("int32", "f", B.data))

    def span(access):
        return access.memory.name, access.write, access.spans and [
            (evaluate(low, {i: 1}), evaluate(n, {i: 1})) for low, n in access.spans]

    accesses, ((i, _, _),) = under(func)
    assert [span(a) for a in accesses] == [
        ("A", True, [(3, 1), (7, 1)]), ("A", False, [(2, 2), (4, 4)]), ("B", True, None),
        ("B", False, None), ("B", True, None)]


def test_the_name_of_a_pointer_says_what_the_block_around_it_declares():
    @T.prim_func
    def func(B: T.Buffer((8, 8), "float32")):
        for i in range(4):
            with T.block("X"):
                vi = T.axis.spatial(4, i)
                T.reads(B[vi, 0:8])
                T.writes()
                T.evaluate(T.call_extern("int32", "f", B.data))

    accesses, loops = under(func)
    assert [a.write for a in accesses] == [False]
    assert accesses[0].pointer and first_clash(accesses, accesses, loops) is None


# ------------------------------------------------------------------------------- random indices


def random_index(rng, variables):
    """An index over some variables: sums, products by constants, quotients, remainders."""
    terms = rng.sample(variables, rng.randint(0, min(2, len(variables))))
    e = IntImm("int32", rng.randint(-2, 3))
    for v in terms:
        e = e + v * rng.choice([1, 1, 2, 3, 4, -1])
    kind = rng.random()
    if kind < 0.15:
        e = e // rng.choice([2, 3])
    elif kind < 0.3:
        e = e % rng.choice([2, 3, 4])
    elif kind < 0.4 and variables:
        v = rng.choice(variables)
        e = v // 2 * 4 + v % 2
    return e


def random_access(rng, buffer, around, write):
    loops, variables = [], [v for v, _, _ in around]
    for n in range(rng.choice([0, 0, 1])):
        var = Var(f"k{n}", "int32")
        extent = rng.choice([IntImm("int32", rng.randint(1, 3)), variables[0] + 1]) if (
            variables) else IntImm("int32", 2)
        loops.append((var, IntImm("int32", 0), extent))
        variables = [*variables, var]
    spans = tuple(None if rng.random() < 0.05 else (
        random_index(rng, variables), IntImm("int32", rng.choice([1, 1, 1, 2, 3])))
        for _ in buffer.shape)
    conditions = ()
    if rng.random() < 0.4 and variables:
        left, limit = random_index(rng, variables), rng.randint(-1, 3)
        conditions = (rng.choice([left < limit, left <= limit, left > limit, left >= limit,
                                  op.equal(left, limit), rng.choice(variables) < 2]),)
    return Access(buffer.data, buffer, spans, write, tuple(loops), conditions, None)


def everything(access, around):
    """(values of the loops around, element) of every touch."""
    loops = [*around, *access.loops]

    def walk(values):
        if len(values) < len(loops):
            var, low, extent = loops[len(values)]
            start = evaluate(low, values)
            for value in range(start, start + evaluate(extent, values)):
                yield from walk({**values, var: value})
            return
        if all(evaluate(c, values) for c in access.conditions):
            box = [range(evaluate(s[0], values), evaluate(s[0], values) + evaluate(s[1], values))
                   if s else range(dim.value) for s, dim in zip(access.spans, access.buffer.shape)]
            for element in itertools.product(*box):
                yield tuple(values[v] for v, _, _ in around), element

    return set(walk({}))


@pytest.mark.parametrize("seed", range(400))
def test_what_is_found_is_what_trying_everything_gives(seed):
    rng = random.Random(seed)
    buffer = decl_buffer([4] * rng.randint(1, 2), "float32", "A")
    shared = []
    for n in range(rng.randint(1, 3)):
        extent = IntImm("int32", rng.randint(1, 4))
        if shared and rng.random() < 0.2:
            extent = shared[0][0] + 1
        shared.append((Var(f"i{n}", "int32"), IntImm("int32", rng.choice([0, 0, 1])), extent))
    names = [v for v, _, _ in shared]
    a, b = random_access(rng, buffer, shared, True), random_access(rng, buffer, shared, False)
    met = {tuple(q - p for p, q in zip(first, second))
           for (first, x), (second, y) in itertools.product(everything(a, shared),
                                                            everything(b, shared)) if x == y}
    box = distance(a, b, shared)
    assert box is not None or not met
    for d in met:
        assert all(box[v][0] <= x <= box[v][1] for v, x in zip(names, d))
    new = rng.sample(names, len(names))
    for bad in (always, apart(names[0]), apart(*names), reversed_by(names, new),
                later(names, False), later(names, True)):
        want = any(bad({v: (x, x) for v, x in zip(names, d)}) for d in met)
        found = clash(a, b, shared, bad)
        assert (found is not None) == want
        if want:
            assert found.element is not None


def digits(rng, shared):
    """An access of one element by digits, most of them whole: shared loops, with loops of its own
    between and below them."""
    own = tuple((Var("k", "int32"), IntImm("int32", int(rng.random() < 0.1)),
                 IntImm("int32", rng.randint(1, 3))) for _ in range(rng.choice([0, 1, 1, 2])))
    spans = []
    for loops in (shared[:1], shared[1:]):
        index, scale = IntImm("int32", int(rng.random() < 0.1)), rng.choice([1, 1, 3])
        for var, _, extent in [*rng.sample(own, rng.randint(0, len(own))), *loops]:
            index = index + var * (scale if rng.random() < 0.9 else rng.choice([1, 4]))
            scale *= extent.value
        spans.append((index, IntImm("int32", 1)))
    return own, tuple(spans)


def test_digits_with_loops_of_their_own_are_told_at_a_glance():
    told = 0
    for seed in range(4000):
        rng = random.Random(seed)
        buffer = decl_buffer([32, 32], "float32", "A")
        zero = IntImm("int32", 0)
        shared = [(Var(n, "int32"), zero, IntImm("int32", rng.randint(1, 3))) for n in "ij"]
        a, b = (Access(buffer.data, buffer, spans, True, own, (), None)
                for own, spans in (digits(rng, shared), digits(rng, shared)))
        box = distance(a, b, shared)
        met = {tuple(q - p for p, q in zip(first, second))
               for (first, x), (second, y) in itertools.product(everything(a, shared),
                                                                everything(b, shared)) if x == y}
        assert (box is not None or not met) and all(
            box[v][0] <= x <= box[v][1] for d in met for (v, _, _), x in zip(shared, d))
        distances = Distances(shared)
        same = distances._digits_of_both(a, b)
        if same is not None:  # where the glance says so, solving says no more
            told += 1
            solved = distances._solve(a, b, dict(distances.box))
            assert solved is not None and met and all(
                solved[v][0] <= box[v][0] and box[v][1] <= solved[v][1] for v, _, _ in shared)
    assert told > 200


@pytest.mark.parametrize("seed", range(200))
def test_a_box_holds_a_bad_distance_where_one_of_its_points_is_bad(seed):
    rng = random.Random(seed)
    names = ["i", "j", "k"]
    box = {}
    for v in names:
        low = rng.randint(-2, 2)
        box[v] = (low, rng.randint(low, 2))
    points = [dict(zip(names, ((x, x) for x in d)))
              for d in itertools.product(*(range(box[v][0], box[v][1] + 1) for v in names))]

    def turned(d, new):
        first = [next((d[v][0] for v in order if d[v][0]), 0) for order in (names, new)]
        return first[0] * first[1] < 0

    new = rng.sample(names, 3)
    bad = reversed_by(names, new)
    assert all(bad(d) == turned(d, new) for d in points)
    assert bad(box) == any(turned(d, new) for d in points)
    for test in (later(names, False), later(names, True), apart("j", "k")):
        assert test(box) == any(map(test, points))


def test_large_and_symbolic_loops_are_decided_without_trying():
    n = Var("n", "int32")
    buffer = decl_buffer([n, 1 << 20], "float32", "A")
    i, j = Var("i", "int32"), Var("j", "int32")
    zero, one = IntImm("int32", 0), IntImm("int32", 1)
    loops = [(i, zero, n), (j, zero, IntImm("int32", 1 << 18))]
    write = Access(buffer.data, buffer, ((i, one), (j * 4, IntImm("int32", 4))), True, (), (), None)
    read = write._replace(write=False, spans=((i, one), (j * 4 + 3, one)))
    assert clash(write, read, loops, apart(i, j)) is None
    assert clash(write, write, loops, apart(i, j)) is None
    ahead = read._replace(spans=((i + 1, one), (j * 4, one)))
    assert distance(write, ahead, loops) == {i: (-1, -1), j: (0, 0)}
    unknown = read._replace(spans=((i % n, one), (j * 4, one)))
    assert clash(write, unknown, loops, apart(i)).text("X", "Y") == ""


@pytest.mark.parametrize("strides, same", [
    ((1, 1), True), ((0, 1), True), ((7, 1), True), ((8, 1), False), ((1, 8), False),
    ((1, 7), True), ((2, 16), False), ((-8, 1), False),
])
def test_strides_that_leave_too_little_room_make_indices_clash(strides, same):
    buffer = decl_buffer([8, 8], "float32", "A", strides=strides)
    assert may_overlap(buffer) == same
    i, j = Var("i", "int32"), Var("j", "int32")
    zero, one, eight = (IntImm("int32", n) for n in (0, 1, 8))
    loops = [(i, zero, eight), (j, zero, eight)]
    write = Access(buffer.data, buffer, ((i, one), (j, one)), True, (), (), None)
    assert (clash(write, write, loops, apart(i, j)) is not None) == same


def test_symbolic_strides_are_taken_to_keep_indices_apart():
    s = Var("s", "int32")
    buffer = decl_buffer([8, 8], "float32", "A", strides=[s, 1])
    i, j = Var("i", "int32"), Var("j", "int32")
    zero, one, eight = (IntImm("int32", n) for n in (0, 1, 8))
    write = Access(buffer.data, buffer, ((i, one), (j, one)), True, (), (), None)
    assert clash(write, write, [(i, zero, eight), (j, zero, eight)], apart(i, j)) is None
