"""Switches that need each other: what goes with a step that is switched off, and comes back."""

import random

import pytest
from observe.programs import matmul

from mlc_lab import live
from mlc_lab.observe.live import Choices
from mlc_lab.observe.live_pages import PAGES
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source

CHAIN = from_source("""
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), D: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16))
    C = T.alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 16):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] - T.float32(3)
""")


def fused(of_the_inner_loops):
    sch = Schedule(CHAIN)
    i = sch.split(sch.get_loops("D")[0], factors=[None, live("rows", 4)])[0]
    sch.compute_at("C", i)
    sch.compute_at("B", i)
    of_the_inner_loops(sch)
    return Choices(sch)


def by_columns(sch):
    _, row, column = sch.get_loops("B")
    sch.reorder(column, row)
    sch.vectorize(row)


def test_a_step_that_is_refused_without_another_one_goes_with_it():
    lab = fused(by_columns)
    names = [knob.name for knob in lab.knobs]
    c, b = names.index("compute_at C, i_0"), names.index("compute_at B, i_0")
    assert lab.knobs[b].needs == ((-1, c),) and lab.knobs[c].needs == ()
    state = lab.first
    state[c] = False
    point = lab.point(state)
    assert point.error is None and "compute_at" not in point.python
    # what is not in force makes no other state, and comes back with what it needs
    assert lab.point([False if n == b else v for n, v in enumerate(state)]) is point
    assert list(lab.neighbours(state, b)) == [point.state]
    state[c] = True
    assert lab.point(state).python.count("compute_at") == 2


def test_loops_are_counted_from_the_side_from_which_they_are_used():
    lab = fused(by_columns)
    off = [k.name != "compute_at B, i_0" and k.start for k in lab.knobs]
    off = [k.start if k.kind != "switch" else v for k, v in zip(lab.knobs, off)]
    point = lab.point(off)
    assert point.error is None
    text = "\n".join(lab.lines(point))
    assert "for j in range(16):" in text and "for i in T.vectorized(16):" in text

    outer = fused(lambda sch: sch.parallel(sch.get_loops("B")[0]))
    point = outer.point([False if k.name == "compute_at B, i_0" else k.start for k in outer.knobs])
    assert point.error is None and "for i in T.parallel(16):" in "\n".join(outer.lines(point))


def test_loops_of_which_both_ends_are_used_do_not_fit_and_that_is_said():
    def all_of_them(sch):
        sch.reorder(*reversed(sch.get_loops("B")[1:]))
        sch.annotate(sch.get_loops("B")[0], "note", 1)
        outer, _, inner = sch.get_loops("B")
        sch.annotate(outer, "outer", 1)
        sch.annotate(inner, "inner", 1)

    lab = fused(all_of_them)
    point = lab.point([False if k.name == "compute_at B, i_0" else k.start for k in lab.knobs])
    assert point.error and "the block is in 2 loops here" in point.error["message"]


def test_what_is_about_a_copy_needs_it():
    sch = Schedule(matmul(32))
    copy = sch.cache_read("C", 1, "global")
    i, _, _ = sch.get_loops("C")
    sch.compute_at(copy, i)
    sch.split(sch.get_loops(copy)[-1], factors=[None, live("part", 8)])
    lab = Choices(sch)
    assert [(k.name, k.needs) for k in lab.knobs] == [
        ("cache_read B", ()), ("compute_at B_global, i", ((-1, 0),)), ("part", ((-1, 0), (-1, 3))),
        ("split ax1", ((-1, 0),))]
    assert lab.plain([False, False, 0, True]) == [False, True, lab.first[2], True]
    assert lab.plain([True, True, 0, False]) == [True, True, lab.first[2], False]


@pytest.mark.parametrize("name", PAGES)
def test_no_switch_of_a_page_that_is_ready_is_refused(name):
    page = PAGES[name]
    lab = Choices(page.make(), form=page.form, begin=page.begin)
    rng = random.Random(name)
    switches = [n for n, knob in enumerate(lab.knobs) if knob.kind == "switch"]
    for n in switches:  # each alone, in each form that has it, with the others on and as at first
        for form in lab.knobs[n].forms or (None,):
            for on in (True, False):
                state = [(on or v) if k.kind == "switch" else v
                         for k, v in zip(lab.knobs, lab.first)]
                state[0] = state[0] if form is None else form
                for value in (False, True):
                    state[n] = value
                    assert lab.point(state).error is None, (lab.knobs[n].name, value)
    for _ in range(20 if switches else 0):  # and many together
        state = [rng.random() < 0.5 if k.kind == "switch" else
                 rng.randrange(len(k.labels)) if k.kind != "order" else k.start for k in lab.knobs]
        assert lab.point(state).error is None, lab.plain(state)
