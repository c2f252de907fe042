"""Counts as part of a recording, and the roofline drawn from them."""

import xml.etree.ElementTree as ElementTree

import pytest

from mlc_lab.observe.count_steps import count_each
from mlc_lab.observe.recording import Recording
from mlc_lab.observe.roofline import bytes_by_level, roofline
from mlc_lab.observe.session import record
from mlc_lab.tir import Schedule

from .programs import matmul

CACHES = "1K:2:32, 8K:4:32"


def schedule():
    sch = Schedule(matmul(32))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    sch.reorder(i, k, j)
    with pytest.raises(Exception, match="parallel"):
        sch.parallel(k)
    sch.split(j, [None, 8])
    return sch


@pytest.fixture(scope="module")
def made():
    one = record(schedule())
    one.measure(5.0, False)
    one.count(CACHES, progress=False)
    return one


def test_every_program_gets_exact_counts(made):
    counts = [p.cost["counts"] for p in made.recording.programs]
    assert [c["reads"] for c in counts] == [3 * 32**3] * 3
    rows = [c["levels"][0]["misses"] for c in counts]
    assert rows[1] < rows[0] and rows[2] == rows[1]  # a split changes no access
    assert made.recording.programs[0].cost["time"] > 0  # the time is still there
    assert [c["name"] for c in made.recording.machine["caches"]] == ["L1", "L2"]
    assert set(made.recording.machine["bandwidth"]) >= {"L1", "memory"}


def test_counts_survive_being_written_and_read(made):
    again = Recording.from_json(made.recording.to_json())
    assert again.programs[1].cost["counts"] == made.recording.programs[1].cost["counts"]
    assert again.machine == made.recording.machine


def test_counting_twice_counts_once(made):
    before = made.recording.programs[0].cost["counts"]
    made.count(CACHES, progress=False)
    assert made.recording.programs[0].cost["counts"] is before


def test_a_recording_is_counted_first_and_measured_then():
    one = record(schedule())
    one.count(CACHES, progress=False)
    one.measure(5.0, False)
    assert all(p.cost["time"] > 0 and "levels" in p.cost["counts"] for p in one.recording.programs)
    assert one.recording.machine["peak_gflops"] > 0 and one.recording.machine["bandwidth"]


def test_steps_that_cannot_be_counted_say_why():
    sch = Schedule(matmul(8))
    sch.bind(sch.get_loops(sch.get_block("C"))[0], "threadIdx.x")
    one = record(sch)
    one.count(CACHES, progress=False)
    first, second = (p.cost["counts"] for p in one.recording.programs)
    assert "levels" in first
    assert second["message"].startswith("not counted: ")


def test_the_budget_ends_it():
    one = record(schedule())
    one.count(CACHES, budget_s=0.0, progress=False)
    assert "used up" in one.recording.programs[0].cost["counts"]["message"]
    one.count(CACHES, progress=False)
    assert "levels" in one.recording.programs[0].cost["counts"]


def test_steps_that_changed_the_time_most_are_counted_first():
    """Time may not suffice for all: those in front must not have it all."""
    one = record(schedule())
    for program, time in zip(one.recording.programs, (1.0, 0.9, 0.1)):
        program.cost = {"time": time}
    assert list(count_each(one.recording, one.recording.modules, CACHES, budget_s=0.0)) == [1, 2, 0]
    for program in one.recording.programs:
        program.cost = None
    assert list(count_each(one.recording, one.recording.modules, CACHES, budget_s=0.0)) == [0, 1, 2]


def test_the_roofline_places_each_program_by_its_counts(made):
    roofs = roofline(made.recording)
    assert [p.steps for p in roofs.points] == [(0,), (1,), (3,)]  # step 2 was refused
    counts = made.recording.programs[0].cost["counts"]
    first = roofs.points[0]
    assert first.intensity["memory"] == pytest.approx(counts["intensity"])
    assert first.intensity["L1"] == pytest.approx(
        2 * 32**3 / (counts["bytes_read"] + counts["bytes_written"]))
    assert first.gflops <= roofs.peak
    assert roofs.bound(first) <= roofs.peak


def test_bytes_are_those_each_level_delivers():
    counts = {"bytes_read": 8, "bytes_written": 4, "levels": [
        {"name": "L1", "bytes_in": 64, "bytes_out": 32},
        {"name": "L2", "bytes_in": 64, "bytes_out": 0}]}
    assert bytes_by_level(counts) == {"L1": 12, "L2": 96, "memory": 64}


def test_the_picture_is_svg_with_every_roof_and_point(made, tmp_path):
    roofs = roofline(made.recording)
    roofs.save(tmp_path / "r.svg", "L2")
    text = (tmp_path / "r.svg").read_text()
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    titles = [e.text for e in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 3 and titles[0].startswith("step 0: start")
    assert "memory" in text and "peak" in text
    with pytest.raises(ValueError, match="no bandwidth of 'L9'"):
        roofs.svg("L9")


def test_a_roofline_without_counts_says_what_to_do():
    with pytest.raises(ValueError, match=r"\.count\(\)"):
        roofline(record(schedule()).recording)
