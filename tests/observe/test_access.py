"""Access traces: against the interpreter's log, and what a view is given."""

import json
from pathlib import Path

import numpy as np
import pytest

from mlc_lab.backend.interp import interpret
from mlc_lab.backend.interp_access import AccessLog
from mlc_lab.lower import lower
from mlc_lab.observe.access import FORMAT, accesses
from mlc_lab.observe.counts import count_accesses
from mlc_lab.observe.measure import random_arrays
from mlc_lab.observe.replay import FIRST_USE
from mlc_lab.tir import Schedule

from .programs import matmul, tiled
from .slow_cache import SlowCache

SMALL = "512:2:32, 2K:4:32"
GOLDEN = Path(__file__).parent / "golden_accesses.json"


@pytest.mark.parametrize("program", [matmul(6), matmul(5, 7, 3)])
def test_it_tells_what_the_interpreter_sees(program):
    trace, log = accesses(program), AccessLog()
    interpret(lower(program)["main"], *random_arrays(program), record=log)
    told = [(trace.places[b].name, int(e), bool(w), tuple(v[: len(trace.sites[s].loops)]))
            for b, e, w, v, s in zip(trace.buffer, trace.element, trace.write,
                                     trace.values.tolist(), trace.site, strict=True)]
    seen = [(a.buffer.name, a.index, a.write, a.iteration) for a in log.accesses]
    # Within a statement the order of the loads is a matter of taste.
    assert len(told) == len(seen) == trace.total
    assert sorted(told) == sorted(seen)


def test_the_first_accesses_of_a_product():
    lines = accesses(matmul(4)).table(5).split("\n")
    assert [" ".join(line.split()) for line in lines] == [
        "0 write C[0, 0] 4 B i=0, j=0, p=0",
        "1 read C[0, 0] 4 B i=0, j=0, p=0",
        "2 read A[0, 0] 4 B i=0, j=0, p=0",
        "3 read B[0, 0] 4 B i=0, j=0, p=0",
        "4 write C[0, 0] 4 B i=0, j=0, p=0",
    ]


@pytest.mark.parametrize("program", [matmul(12), tiled(16)])
def test_a_trace_simulated_is_the_program_simulated(program):
    trace = accesses(program)
    counts = count_accesses(program, SMALL)
    assert trace.simulate(SMALL).counts == counts.levels
    slow = SlowCache(counts.hierarchy)
    right = [slow.access(*map(int, a)) for a in zip(trace.address, trace.nbytes, trace.write,
                                                    strict=True)]
    assert trace.simulate(SMALL).found.tolist() == right


def test_vectors_are_single_accesses_of_their_width():
    trace = accesses(tiled(16, lanes=8))
    widths = {trace.places[b].name: set() for b in trace.buffer}
    for b, n in zip(trace.buffer, trace.nbytes, strict=True):
        widths[trace.places[b].name].add(int(n))
    assert widths == {"A": {4}, "B": {32}, "B_global": {32}, "C": {32}}


def test_buffers_keep_the_shape_that_the_schedule_gives_them():
    trace = accesses(tiled(16, columns=8, lanes=8), registers=False)
    assert {p.name: p.shape for p in trace.places} == {
        "A": (16, 16), "B": (16, 16), "C": (16, 16), "B_global": (16, 8), "C_local": (4, 8)}
    assert not trace.notes
    assert "C_local" in accesses(tiled(16)).notes[0]


def test_threads_of_a_parallel_loop_are_told():
    sch = Schedule(matmul(8))
    sch.parallel(sch.get_loops(sch.get_block("C"))[0])
    trace = accesses(sch, threads=4)
    rows = {int(e) // 8: int(t) for b, e, t in zip(trace.buffer, trace.element, trace.thread,
                                                   strict=True) if trace.places[b].name == "C"}
    assert rows == {i: i // 2 for i in range(8)}
    assert not accesses(sch, threads=1).thread.any()


def test_reuse_distance_counts_the_lines_between():
    trace = accesses(matmul(4))
    # C[0,0] is written, read; then A, B; then C again: two lines in between.
    assert trace.reuse(16)[:6].tolist() == [FIRST_USE, 0, FIRST_USE, FIRST_USE, 2, 0]
    # 16 words of a row in one line: nothing is used for the first time after the first statement.
    assert (trace.reuse(64)[5:] >= 0).all()


def test_threads_have_reuse_distances_and_first_levels_of_their_own():
    sch = Schedule(matmul(8))
    sch.parallel(sch.get_loops(sch.get_block("C"))[0])
    one, two = accesses(sch, threads=1), accesses(sch, threads=2)
    later = two.thread == 1
    assert two.reuse(32)[~later].tolist() == one.reuse(32)[~later].tolist()
    of_b = np.array([two.places[b].name == "B" for b in two.buffer])
    # The second thread uses all lines of B for the first time.
    assert np.sum(two.reuse(32)[later & of_b] == FIRST_USE) == 8
    assert np.sum(one.reuse(32)[later & of_b] == FIRST_USE) == 0
    misses = [t.simulate("4K:8:32, 8K:8:32").counts[0].misses for t in (one, two)]
    assert misses == [24, 32]


def test_an_access_of_two_lines_is_as_far_as_the_farther_one():
    trace = accesses(tiled(16, lanes=8))
    halves = trace.reuse(16)
    assert len(halves) == len(trace)
    wide = trace.nbytes == 32
    assert (halves[wide] != 0).all()  # its second line was not used just before


def test_a_long_trace_is_cut_with_a_word():
    trace = accesses(matmul(16), limit=100)
    assert len(trace) == 100 and trace.total == 16**3 * 4 + 256
    assert "the first 100 of 16,640" in trace.notes[0]


def test_a_step_of_a_schedule_is_looked_at():
    sch = Schedule(matmul(8))
    i, j, k = sch.get_loops(sch.get_block("C"))
    sch.reorder(k, i, j)
    assert sch.accesses(step=0).table(9) != sch.accesses(step=1).table(9)
    assert sch.accesses().table(9) == sch.accesses(step=1).table(9)
    with pytest.raises(ValueError, match="steps 0 to 1"):
        sch.accesses(step=2)


def test_the_step_that_a_stepper_shows_is_looked_at():
    pytest.importorskip("anywidget")
    sch = Schedule(matmul(8))
    i, j, k = sch.get_loops(sch.get_block("C"))
    sch.reorder(k, i, j)
    view = sch.explore(measure=False)
    assert view.accesses().table(9) == sch.accesses(step=0).table(9)
    view.step = 1
    assert view.accesses().table(9) == sch.accesses(step=1).table(9)


def test_plain_data_holds_all_that_a_view_draws():
    trace = accesses(matmul(8))
    data = json.loads(json.dumps(trace.to_dict()))
    assert data["format"] == FORMAT and data["thread"] == []
    # The loop variables stand once for each iteration: the four accesses of one share them.
    assert sum(data["moments"]) == 8**3
    assert len(data["values"]) == 3 * 8**3
    assert data["values"][3:6] == [0, 0, 1]
    lines = [data["lines"][s["line"]] for s in data["sites"]]
    assert all("C_1[" in line for line in lines)
    result = trace.result(SMALL).to_dict()
    assert len(result["found"]) == len(trace) and set(result["found"]) <= set("012")
    counts = result["counts"]
    assert counts[0]["lookups"] - counts[0]["misses"] == result["found"].count("0")
    json.dumps(result)


def test_what_leaves_the_first_level_is_told():
    trace = accesses(matmul(8))
    simulation = trace.simulate(SMALL)
    # What came in and did not leave is in the cache: at most its 16 lines.
    assert 0 < simulation.counts[0].misses - len(simulation.gone) <= 16
    at = simulation.gone[:, 0]
    assert (np.diff(at) >= 0).all() and (simulation.found[at] > 0).all()


def test_the_format_is_the_golden_one():
    """A change of what is written has to be meant: then write `made` to the file."""
    trace = accesses(matmul(2), title="golden")
    made = {"trace": trace.to_dict(), "result": trace.result("64:1:8, 256:2:16:plru").to_dict()}
    assert made == json.loads(GOLDEN.read_text(encoding="utf-8"))
