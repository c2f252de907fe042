"""The page of choices as an object: what its threads compute while the hand moves on, errors in the
middle, and a view that is closed while it works."""

import threading
import time

import pytest
from observe.programs import matmul
from observe.test_live import tiled

import mlc_lab_widgets.live as live_view
from mlc_lab.observe.counts import count_accesses
from mlc_lab.observe.live import Choices
from mlc_lab.schedule import Schedule

CACHES = "1K:2, 8K:4"


@pytest.fixture
def view(monkeypatch):
    monkeypatch.setattr(live_view.Live, "still_s", 0.0)
    monkeypatch.setattr(live_view.Live, "ahead_s", 1e9)  # nothing that nobody asked for
    made = []

    def make(**instead):
        source = Choices(tiled([4, 8, 16]), caches=CACHES)
        for name, does in instead.items():
            setattr(source, name, does)
        made.append(live_view.Live(source))
        return made[-1]

    yield make
    for one in made:
        one.close()


def at_rest(view, seconds=60):
    """Until the threads have nothing to do, with what only waits to be asked for left out."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        at = view._at
        known = at.counted and at.compiled and (at.timed or at.error)
        if known and view.point["key"] == at.key and "counts" in view.point["cost"]:
            return True
        time.sleep(0.02)
    return False


def test_after_many_quick_changes_the_last_one_is_shown_with_its_counts(view):
    one = view()
    for n in range(30):
        one.set("tile", [4, 8, 16][n % 3])
        time.sleep(0.01 * (n % 4))
    one.set("vectorize", False)
    assert at_rest(one)
    expected = count_accesses(one.source.module(one._at), CACHES).to_dict()
    assert one.point["cost"]["counts"] == expected and one.point["cost"]["time"] > 0
    assert one.point["state"] == one.state and not one.source._works


def test_one_motion_of_the_hand_is_one_change(view, monkeypatch):
    one = view()
    one.set("tile", 16)
    monkeypatch.setattr(live_view.Live, "still_s", 1e9)
    start = one._at
    one.set("tile", 8)
    assert one._before is start
    one.set("tile", 4)  # the hand goes on
    assert one._before is start and one.why["from"] == start.key
    one.set("vectorize", False)  # another hand
    assert one._before.state[0] == 0
    one.set("vectorize", True)  # back where that motion began
    assert one._before.state[2] is False
    monkeypatch.setattr(live_view.Live, "still_s", 0.0)
    one.set("tile", 8)
    one.set("tile", 16)  # after a rest
    assert one._before.state[0] == 1


def test_a_view_says_whether_it_is_known_what_a_change_did(view):
    one = view()
    one.set("tile", 16)
    with one._lock:  # what the page has before anything was counted
        assert one.why["known"] is False and one.why["said"] == []
    assert at_rest(one)
    end = time.monotonic() + 60
    while not one.why["known"] and time.monotonic() < end:
        time.sleep(0.02)
    assert one.why["known"] and one.why["to"] == one._at.key


def test_after_a_refused_choice_the_last_legal_one_is_compared_with(view):
    sch = Schedule(matmul(16))
    i, j, k = sch.get_loops("C")
    sch.reorder(j, i, k)
    sch.fuse(j, i)
    one = live_view.Live(Choices(sch, caches=CACHES))
    first = one._at
    one.set("order of loops", ["j", "p", "i"])  # there is no fusing then
    assert one._at.error and one._before is first
    one.set("order of loops", ["p", "j", "i"])
    assert not one._at.error and one._before is first
    end = time.monotonic() + 60
    while not one.why["known"] and time.monotonic() < end:
        time.sleep(0.02)
    assert one.why["known"] and one.why["from"] == first.key
    one.close()


def test_what_is_asked_for_while_a_thread_ends_is_computed(view):
    """The thread has looked, found nothing, and is about to end when the hand moves."""
    one = view()
    one.ahead_s = 0.0
    assert one.wait(60)
    ended, go_on = threading.Event(), threading.Event()
    look = one._lanes["rest"].following

    def slow():
        todo = look()
        if todo is None and not go_on.is_set():
            ended.set()
            go_on.wait(10)
        return todo

    one._lanes["rest"].following = slow
    one.set("tile", 16)
    assert ended.wait(60)
    one.set("vectorize", False)
    go_on.set()
    assert at_rest(one)


def test_what_is_counted_ahead_keeps_nothing_waiting(view):
    begun, go_on = threading.Event(), threading.Event()

    class Slow:
        def counted(self, *rest):
            begun.set()
            go_on.wait(60)
            return {"message": "it took long"}

        def close(self):
            """It goes on, as a process that does not end at once."""

    one = view()
    one.ahead_s, counting = 0.0, one.source._counting
    one.source._counting = lambda ahead: Slow() if ahead else counting(ahead)
    assert begun.wait(60)
    one.set("tile", 16)
    assert at_rest(one) and not go_on.is_set()
    go_on.set()


def test_what_each_knob_would_choose_is_counted_for_a_notebook(view, monkeypatch):
    one = view()
    one.ahead_s = 0.0
    one.set("tile", 16)  # whose choices are timed, too
    assert one.wait(60)
    kept = one._values()["all"]
    for knob in range(len(one.knobs)):
        for state in live_view.nearest(one.source, one.state, knob):
            cost = kept[live_view.key_of(state)]["cost"]
            assert cost["counts"]["levels"] and cost["inner"]["instructions"]
    times = [point["cost"].get("time") for point in kept.values()]
    assert sum(map(bool, times)) < len(times)
    monkeypatch.setattr(live_view, "_KEPT", 2)
    few = one._values()
    assert len(few["all"]) == len(few["points"]) == 2 < len(kept) and one._at.key in few["all"]


def test_an_error_in_the_middle_is_said_and_the_rest_goes_on(view):
    def fails(point, wanted=None, ahead=False):
        raise RuntimeError("no such instruction")

    one = view(compile=fails, accesses=fails)
    one.ahead_s = 0.0
    one.follow = True
    assert one.wait(60)  # nothing is waited for that does not come
    assert "no such instruction" in one.busy
    assert one.cost()["time"] > 0 and "levels" in one.cost()["counts"]
    one.set("tile", 16)
    assert one.wait(60) and one.cost()["time"] > 0


def test_processes_are_not_ended_while_one_thread_still_works(view, monkeypatch):
    monkeypatch.setattr(live_view, "IDLE_S", 0.05)
    closed, begun, go_on = [], threading.Event(), threading.Event()

    def slow(point, wanted=None, ahead=False):
        begun.set()
        go_on.wait(10)
        point.counted = True
        return {}

    one = view(count_misses=slow)
    close = one.source.close
    one.source.close = lambda: (closed.append(time.monotonic()), close())
    assert begun.wait(10)
    one.follow = True  # the other thread begins and ends meanwhile
    time.sleep(0.5)
    assert not closed
    one.ahead_s = 0.0
    go_on.set()
    assert one.wait(60)
    time.sleep(0.3)
    assert closed


def test_a_view_that_is_closed_while_it_works_leaves_no_process(view):
    one = view()
    one.follow = True
    end = time.monotonic() + 30
    while one.source._child is None or one.source._child.worker is None:
        assert time.monotonic() < end
        time.sleep(0.005)
    one.close()
    assert one.wait(10)
    assert one.source._child is one.source._watcher is one.source._measurement is None
    one.set("tile", 16)  # moves nothing
    assert one.wait(1) and not any(lane.running for lane in one._lanes.values())
