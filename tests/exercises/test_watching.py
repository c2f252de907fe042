"""One click opens the accesses of a wrong answer at the one that is at fault."""

import re

import pytest

from mlc_lab import exercises
from mlc_lab.exercises.answers import read
from mlc_lab.exercises.judging import marks
from mlc_lab.exercises.watching import SHOWN, watched
from mlc_lab.observe import accesses
from mlc_lab.observe.instrument import Element
from mlc_lab.lower.pipeline import as_module
from mlc_lab.script import from_source


def at_fault(found):
    """The access that is shown first: its buffer, whether it writes, its element."""
    trace, at = found["trace"], found["position"]
    site = trace["sites"][trace["site"][at]]
    return trace["buffers"][site["buffer"]], site["write"], trace["element"][at], site


def module(text):
    return as_module(from_source(text))


PROGRAMS = [e for e in exercises.catalogue() if e.kind in ("schedule", "program")]


@pytest.mark.parametrize("exercise", PROGRAMS, ids=lambda e: e.id)
def test_each_typical_mistake_is_opened_where_it_is(exercise):
    variant = exercise.variant(1)
    for wrong in variant.wrong:
        for row in marks(variant, wrong.answer).rows:
            place = row.place
            indices = re.fullmatch(r"(\w+)\[([-\d, ]+)\]", place.get("element", ""))
            if row.passed or not (indices or "buffer" in place):
                continue
            found = watched(read(variant, wrong.answer).mod, place)
            assert "message" not in found, (row, found)
            buffer, write, element, site = at_fault(found)
            if "buffer" in place:
                level = int(place["level"])
                assert (buffer["name"], write) == (place["buffer"], place["write"])
                assert int(found["results"][0]["found"][found["position"]]) > level
                continue
            flat = 0
            for n, size in zip(map(int, indices[2].split(",")), buffer["shape"]):
                flat = flat * size + n
            if "no statement has written it" not in row.says:
                assert (buffer["name"], write) == (indices[1], place.get("write", True))
                assert element <= flat < element + site["bytes"] // buffer["itemsize"]


LONG = """
@T.prim_func
def main(A: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    for r, i, j in T.grid(9, 64, 64):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]
"""


def test_an_access_late_in_a_long_run_is_shown_with_what_came_before():
    mod = module(LONG)
    found = watched(mod, {"element": "C[63, 2]"})
    buffer, write, element, _ = at_fault(found)
    assert (buffer["name"], write, element) == ("C", True, 63 * 64 + 2)
    # the last of nine writes: few accesses come after it
    assert found["position"] > len(found["trace"]["site"]) - 2 * 64 > SHOWN // 2
    assert found["trace"]["notes"][0].startswith("These are the accesses 58,")


def test_the_last_access_of_an_element_is_found_by_kind():
    mod = module(LONG)
    whole = accesses(mod, limit=80_000, threads=1)
    its = whole.element == 3 * 64 + 5
    for name, write in (("A", False), ("C", True)):
        found = accesses(mod, limit=10, threads=1, last_of=Element(name, (3, 5), write))
        assert found.last == (its & (whole.write == write)).nonzero()[0].max()
        assert found.total == whole.total
    assert accesses(mod, limit=10, last_of=Element("A", (3, 5), True)).last == -1
    part = accesses(mod, limit=100, first=1000, threads=1)
    assert (part.address == whole.address[1000:1100]).all() and part.first == 1000
    assert len(accesses(mod, limit=100, first=10 ** 9, threads=1)) == 0
    with pytest.raises(ValueError, match="numbered from 0"):
        accesses(mod, first=-1)


OUTSIDE = LONG.replace("A[vi, vj]", "A[vi, vj - 2]").replace("9, 64", "1, 64")


def test_what_lies_outside_of_a_buffer_is_shown_as_of_that_buffer():
    trace = accesses(module(OUTSIDE), limit=10, threads=1)
    reads = ~trace.write
    assert trace.element[reads].tolist()[:3] == [-2, -1, 0]
    assert set(trace.buffer[reads]) == {0}
    assert "A[-1, 62]" in trace.table(2)


@pytest.mark.parametrize("place, says", [
    ({"element": "C[0, 1]"}, "statements; an answer runs"), ({"buffer": "Z", "write": True}, ""),
    ({"element": "Z[3]"}, ""), ({"element": "C[3]"}, ""), ({"element": "no element"}, ""), ({}, ""),
])
def test_a_place_that_there_is_not_opens_the_beginning(place, says):
    text = LONG.replace("9, 64", "1000000000, 64") if says else LONG
    found = watched(module(text), place)
    assert says in found["message"] if says else found["position"] == 0
