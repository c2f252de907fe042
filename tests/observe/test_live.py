"""Schedules with numbers, steps and orders left open: what can be chosen, and what follows."""

import gc
import itertools
import json
import re

import pytest
from observe.programs import matmul

from mlc_lab import divisors, live
from mlc_lab.observe.access import accesses
from mlc_lab.observe.counts import count_accesses
from mlc_lab.observe.live import Choices, explore_live, key_of
from mlc_lab.observe.live_pages import PAGES, opened
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.schedule.trace import Trace
from mlc_lab.script import from_source


def tiled(choices=divisors, value=8):
    sch = Schedule(matmul(32))
    i, j, k = sch.get_loops("C")
    j0, j1 = sch.split(j, factors=[None, live("tile", value, choices=choices)])
    sch.reorder(i, j0, k, j1)
    sch.vectorize(j1)
    sch.decompose_reduction("C", k)
    return sch


@pytest.fixture
def lab():
    made = Choices(tiled(), caches="1K:2, 8K:4", most=1e6)
    yield made
    made.close()


@pytest.mark.parametrize("given, told", [
    (("t", "x", ["x"]), "'t' is a whole number, such as 8, not 'x'"),
    (("t", 8, ["a", "b"]), "whole number, such as 8, not 'a'"),
    (("t", 8.0, [8]), "not 8.0"), (("t", 8, "248"), "are a list of whole numbers"),
    (("t", 8, 4), "are a list of whole numbers"), (("t", 8, itertools.count()), "more than 256"),
    (("", 8, [8]), "has a name"), ((8, 8, [8]), "has a name"),
    (("t", 8, lambda extent: [1 // 0]), "fails for a loop of 32 iterations: ZeroDivisionError"),
    (("t", 8, lambda extent: "248"), "are a list of whole numbers"),
    (("t", 8, [2, 4]), "none of its choices"),
])
def test_a_number_that_cannot_be_left_open_says_what_is_wrong(given, told):
    sch = Schedule(matmul(32))
    with pytest.raises(ValueError, match=told):
        sch.split(sch.get_loops("C")[1], factors=[None, live(*given)])
    assert sch.trace.insts[-1].kind.name == "GetLoops"


def test_choices_that_are_read_once_are_kept():
    sch = Schedule(matmul(32))
    sch.split(sch.get_loops("C")[1], factors=[None, live("t", 8, (n for n in (4, 8, 8)))])
    assert "candidates=[4, 8]" in str(sch.trace)


def test_what_can_be_chosen_is_read_from_the_trace(lab):
    assert [(k.kind, k.name) for k in lab.knobs] == [
        ("number", "tile"), ("order", "order of loops"), ("switch", "vectorize j_1"),
        ("switch", "decompose_reduction C, p")]
    assert lab.knobs[0].labels == ("1", "2", "4", "8", "16", "32")
    assert lab.knobs[1].labels == ("i", "j_0", "p", "j_1")
    assert lab.first == [3, [0, 1, 2, 3], True, True]


def test_a_state_is_the_schedule_that_one_would_write(lab):
    for tile in (1, 4, 32):
        state = [lab.knobs[0].labels.index(str(tile)), *lab.first[1:]]
        point = lab.point(state)
        expected = tiled([tile], tile).mod
        assert "\n".join(lab.lines(point)) in expected.script()
        assert f"factors=[None, {tile}]" in point.python
        assert "sample" not in point.python
    off = lab.point([3, [0, 1, 2, 3], False, True])
    assert "vectorize" not in off.python and "T.vectorized" not in "\n".join(lab.lines(off))
    turned = lab.point([3, [1, 0, 2, 3], True, True])
    assert "sch.reorder(l5, l1, l3, l6)" in turned.python
    assert lab.point(list(lab.first)) is lab.point(lab.first)


def test_what_is_refused_says_so_and_shows_the_program_before_it():
    sch = Schedule(matmul(32))
    i, j, k = sch.get_loops("C")
    sch.reorder(j, i, k)
    sch.fuse(j, i)
    lab = Choices(sch)
    point = lab.point([[0, 2, 1], True])
    assert point.error and point.error["call"].startswith("sch.fuse") and point.error["message"]
    assert "for j, p, i in" in "\n".join(lab.lines(point))
    assert lab.count(point) == {} and lab.short(point) == {"error": point.error["rule"]}


def test_counts_are_those_of_the_schedule(lab):
    for state in (lab.first, [5, *lab.first[1:]], [3, [0, 2, 1, 3], False, True]):
        point = lab.point(state)
        found = lab.count(point)["counts"]
        expected = count_accesses(lab.modules[point.program], "1K:2, 8K:4").to_dict()
        assert found["levels"] == expected["levels"]
    assert lab.cost(lab.point(lab.first))["inner"]["text"]


def test_the_reason_is_that_of_the_two_programs(lab):
    a, b = lab.point(lab.first), lab.point([3, [0, 1, 2, 3], False, True])
    assert lab.why(a, b) == []
    lab.count(a), lab.count(b)
    assert lab.why(a, b) and lab.why(a, a) == []
    assert json.loads(json.dumps(lab.shown(b)))["lines"] == lab.lines(b)


def test_programs_are_timed_in_a_process_of_their_own(lab):
    cost = lab.measure(lab.point(lab.first))
    assert cost["time"] > 0 and cost["equal"] is True


def test_processes_end_and_start_again(lab):
    lab.count(lab.point(lab.first)), lab.measure(lab.point(lab.first))
    lab.close()
    lab.close()
    other = lab.point([5, *lab.first[1:]])
    assert "levels" in lab.count(other)["counts"] and lab.measure(other)["equal"] is True


@pytest.mark.parametrize("most", [20_000, 3_000])
def test_of_a_long_run_the_beginning_is_counted_first_and_then_the_whole(most):
    lab = Choices(tiled(), caches="1K:2, 8K:4", most=most)
    point = lab.point(lab.first)
    counts = lab.count(point)["counts"]
    whole = count_accesses(lab.modules[point.program], lab.hierarchy).to_dict()
    assert 0 < counts["part"] < 0.7
    assert counts["reads"] == pytest.approx(whole["reads"], rel=0.2)
    assert counts["levels"][0]["misses"] == pytest.approx(whole["levels"][0]["misses"], rel=0.5)
    other = lab.point([4, *lab.first[1:]])
    lab.count(other)
    assert "of the run" in lab.why(point, other)[-1]
    assert lab.partly(point)
    assert lab.count_whole(point)["counts"] == whole
    assert not lab.partly(point)
    lab.close()


def test_the_accesses_are_those_of_the_program(lab):
    point = lab.point(lab.first)
    found = lab.accesses(point)
    assert found == lab.accesses(point) == lab.watched(point)
    made = accesses(lab.modules[point.program], limit=2048)
    kept = found["trace"]
    assert (kept["site"], kept["element"]) == (made.site.tolist(), made.element.tolist())
    assert [r["levels"] for r in found["results"]][0] == lab.hierarchy.to_dict()
    assert len(found["results"]) == 2 and "long run" in kept["notes"][0]
    assert lab.watched(lab.point([4, *lab.first[1:]])) is None


@pytest.mark.parametrize("state", [[], [9, [0, 1, 2, 3], True, True], [3, [0, 0, 1, 2], True, True],
                                   [3, [0, 1], True, True], ["3", [0, 1, 2, 3], True, True]])
def test_a_state_that_does_not_fit_is_refused(lab, state):
    with pytest.raises(ValueError):
        lab.point(state)


def test_numbers_that_a_search_decides_are_open_too():
    sch = Schedule(matmul(16))
    i, j, k = sch.get_loops("C")
    factors = sch.sample_perfect_tile(j, n=2, max_innermost_factor=8, decision=[4, 4])
    sch.split(j, factors=factors)
    lab = Choices(sch)
    assert lab.knobs[0].labels == ("2 × 8", "4 × 4", "8 × 2", "16 × 1")
    assert "factors=[2, 8]" in lab.point([0, True]).python


@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_is_ready_computes_the_same_whatever_is_chosen(name):
    page = PAGES[name]
    lab = Choices(page.make(), form=page.form, begin=page.begin)
    counted = []
    for knob in [None, *range(len(lab.knobs))]:
        # from a form of the program that has the knob
        forms = [0] if knob is None else lab.knobs[knob].forms
        first = lab.plain([forms[0], *lab.first[1:]]) if forms and forms[0] else lab.first
        states = [first] if knob is None else list(lab.neighbours(first, knob))[:3]
        points = [lab.point(state) for state in states]
        assert knob is None or any(p.error is None for p in points)
        for point in points:
            if point.error is None:
                cost = lab.measure(point)
                assert cost["equal"] is True, (point.python, cost)
        counted += [json.dumps(lab.count(p).get("counts")) for p in points if p.error is None]
    assert "message" not in counted[0] and len(set(counted)) > 1
    lab.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_is_ready_says_what_can_be_moved(name):
    """What stands above it has numbers that can be dragged, each of which the page has."""
    page = PAGES[name]
    lab = Choices(page.make(), form=page.form, begin=page.begin, prose=page.prose)
    named = re.findall(r"\{live:([^}]*)\}", lab.prose)
    assert named and set(named) <= {knob.name for knob in lab.knobs}
    lab.close()


@pytest.mark.parametrize("func, knobs", [
    (matmul(24), ["tile of i", "tile of j", "tile of p", "order of loops", "vectorize j_1"]),
    (PAGES["transpose"].make().steps[0].before, ["tile of i", "tile of j", "order of loops",
                                            "vectorize j_1"]),
])
def test_of_any_program_the_largest_block_is_put_in_tiles(func, knobs):
    lab = Choices(opened(func))
    assert [k.name for k in lab.knobs] == knobs
    assert lab.point(lab.first).error is None


def test_a_program_without_loops_is_refused():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((1,), "float32")):
    with T.block("A"):
        vi = T.axis.spatial(1, 0)
        A[vi] = T.float32(1)
""")
    with pytest.raises(ValueError, match="nothing to choose"):
        opened(func)


@pytest.mark.parametrize(("text", "told"), [
    ("""
@T.prim_func
def main(A: T.Buffer((1,), "float32")):
    A[0] = T.float32(1)
""", "has no block: there is nothing"),
    ("""
@T.prim_func
def main(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    for i in range(n):
        with T.block("A"):
            vi = T.axis.spatial(n, i)
            A[vi] = A[vi] + T.float32(1)
""", "how long loop i is"),
    ("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")):
        y = R.nn.relu(x)
        return y
""", "no tensor program: of a graph"),
])
def test_a_program_that_cannot_be_put_in_tiles_is_told_why(text, told):
    with pytest.raises(ValueError, match=told):
        opened(from_source(text))


def test_an_open_number_is_a_sampled_one_and_replays():
    sch = tiled()
    again = Schedule(matmul(32))
    Trace.from_python(str(sch.trace)).apply_to_schedule(again)
    assert again.mod.script() == sch.mod.script()
    assert key_of([1, True, [1, 0]]) == "[1,true,[1,0]]"  # as JSON.stringify writes it


def test_two_numbers_of_one_name_are_one():
    sch = Schedule(matmul(32))
    i, j, _ = sch.get_loops("C")
    sch.split(i, factors=[None, live("tile", 4)])
    sch.split(j, factors=[None, live("tile", 4)])
    lab = Choices(sch)
    assert [k.name for k in lab.knobs if k.kind == "number"] == ["tile"]
    assert lab.point([3, True, True]).python.count("factors=[None, 8]") == 2


def test_what_cannot_be_left_open_is_refused():
    sch = Schedule(matmul(32))
    loop = sch.get_loops("C")[1]
    with pytest.raises(ValueError, match="none of its choices"):
        sch.split(loop, factors=[None, live("tile", 5)])
    with pytest.raises(ValueError, match="more than"):
        sch.split(loop, factors=[None, live("tile", 5, choices=range(1, 1000))])
    with pytest.raises(ValueError, match="nothing to choose"):
        Choices(sch)
    with pytest.raises(ValueError, match="there are matrix product"):
        explore_live("nothing")
    with pytest.raises(ScheduleError):
        sch.split(loop, factors=[live("a", 4), live("b", 4)])
    free = Schedule(from_source("""
@T.prim_func
def main(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,))
    for i in range(n):
        with T.block("A"):
            vi = T.axis.spatial(n, i)
            A[vi] = T.float32(1)
"""))
    with pytest.raises(ValueError, match="constant extent"):
        free.split(free.get_loops("A")[0], factors=[None, live("tile", 4)])


@pytest.mark.parametrize(("name", "value"), [
    ("tile", 0), ("tile", -8), ("tile", 10**30), ("tile", float("nan")), ("tile", [8]),
    ("vectorize", 2), ("vectorize", "never"), ("vectorize", None), ("order", ["j_0"] * 4),
    ("order", "ij"), ("order", 5), ("order", [None, 1, "i", "p"]), (None, 8), ("", 8)])
def test_what_there_is_not_is_refused_by_name(lab, name, value):
    with pytest.raises(ValueError, match=r"is one of|on or off|is no order of|there is no knob"):
        lab.named(name, value)


@pytest.mark.parametrize("bad", ["ab", [0, "a", 1, 2], [0, 1, 2, None], [0, 0, 1, 2], 7])
def test_a_page_that_sends_no_state_is_refused(lab, bad):
    kinds = [knob.kind for knob in lab.knobs]
    for at in (kinds.index("order"), kinds.index("switch")):
        with pytest.raises(ValueError, match=r"is no order of|is True or False"):
            lab.state_of([bad if n == at else value for n, value in enumerate(lab.first)])


def test_a_step_is_off_by_the_word_that_the_page_has_for_it(lab):
    assert lab.named("vectorize", "off")[1] is False
    assert lab.named("vectorize", "on")[1] is True


def test_no_search_for_garbage_while_a_state_is_replayed(lab, monkeypatch):
    met, made = [], lab._made
    monkeypatch.setattr(lab, "_made", lambda *rest: (met.append(gc.isenabled()), made(*rest))[1])
    lab.point([2, *lab.first[1:]])
    assert met == [False] and gc.isenabled()
