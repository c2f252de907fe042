"""What a page of choices shows is what `count_accesses` says of the schedule that it would copy."""

import random
import threading
import time

import pytest
from observe.programs import matmul
from observe.test_live import tiled

from mlc_lab import live
from mlc_lab.observe.counts import count_accesses
from mlc_lab.observe.live import Choices
from mlc_lab.observe.live_pages import PAGES
from mlc_lab.observe.live_programs import PATIENCE_S
from mlc_lab.schedule import Schedule
from mlc_lab.schedule.trace import Trace

#: sizes at which a state of a page is counted quickly
SMALL = {"matrix product": (32,), "transpose": (64,), "stencil": (64,), "convolution": (16, 18),
         "softmax": (16, 128), "attention": (16, 64, 16), "online softmax": (4, 1 << 10),
         "online attention": (16, 256, 16), "parallel sum": (1 << 12,)}
CACHES = "1K:2, 8K:4"


def drawn(lab, rng):
    """A state by chance; orders that are far from the first are mostly refused."""
    state = []
    for knob in lab.knobs:
        if knob.kind == "switch":
            state.append(rng.random() < 0.7)
        elif knob.kind == "order":
            order = list(range(len(knob.labels)))
            if rng.random() < 0.5:
                at = rng.randrange(len(order) - 1)
                order[at], order[at + 1] = order[at + 1], order[at]
            state.append(order)
        else:
            state.append(rng.randrange(len(knob.labels)))
    return state


def copied(lab, point):
    """The schedule that the button *Copy* gives, replayed from its text."""
    _, *lines = point.python.split("\n")
    sch = Schedule(lab._form_of(point.state).start)
    Trace.from_python("\n".join(lines)).apply_to_schedule(sch)
    return sch


@pytest.mark.parametrize("name", PAGES)
def test_the_counts_on_a_page_are_those_of_the_schedule(name):
    page = PAGES[name]
    lab = Choices(page.make(*SMALL[name]), form=page.form, caches=CACHES)
    rng, points = random.Random(f"{name} 17"), []
    while len(points) < 3:
        point = lab.point(drawn(lab, rng))
        if point.error is None:
            points.append(point)
    try:
        for point in points:
            sch = copied(lab, point)
            assert sch.mod.script() == lab.module(point).script()
            assert lab.count_misses(point)["counts"] == count_accesses(sch, CACHES).to_dict()
    finally:
        lab.close()


def test_of_an_unrolled_program_the_counts_are_the_same_without_inlining(monkeypatch):
    from mlc_lab.observe import cache_code

    mod = tiled([16], 16).mod
    monkeypatch.setattr(cache_code, "INLINED", 0)
    called = count_accesses(mod, CACHES).to_dict()
    monkeypatch.setattr(cache_code, "INLINED", 1000)
    assert called == count_accesses(mod, CACHES).to_dict()


def test_what_takes_long_gives_way_to_what_is_chosen_next():
    sch = Schedule(matmul(1024))
    sch.split(sch.get_loops("C")[1], factors=[None, live("tile", 8)])
    lab = Choices(sch, caches=CACHES, most=1e12)
    long, other = lab.point([3, True]), lab.point([4, True])
    lab.compile(other)  # the process has begun
    lab.measure(long, wanted=lambda: False)  # the hand moved on while this was begun
    assert not long.timed and "time" not in lab.cost(long)
    assert lab.measure(other)["equal"] is True
    at_work = threading.Thread(target=lab.count_misses, args=(long,))
    at_work.start()
    while not lab._works:
        time.sleep(0.01)
    lab.give_way()
    assert not lab._works[0].given_up  # not worth a new process yet
    begun = time.monotonic()
    at_work.join(10)
    assert time.monotonic() - begun < PATIENCE_S + 5  # nor is it waited for any longer
    assert not at_work.is_alive() and not long.counted and "counts" not in lab.cost(long)
    assert lab.compile(long)["inner"]["text"]  # a new process
    lab.close()
