"""Lines of programs aligned by what they stand for, and all programs woven into one sequence."""

import random

import pytest

from mlc_lab.observe.alignment import aligned, heaviest_chain, keyed, rows, runs_of, slots_of, woven
from mlc_lab.observe.session import record

from . import schedules


def line(text, *keys):
    return text, keys


def test_the_heaviest_chain_rises_on_both_sides():
    pairs = [(0, 2, 1), (1, 0, 1), (2, 1, 1), (3, 3, 5)]
    assert heaviest_chain(pairs, 4) == [(1, 0), (2, 1), (3, 3)]
    assert heaviest_chain([], 0) == []


def test_a_chain_is_the_heaviest_of_all():
    draw = random.Random(0)
    for _ in range(300):
        size = draw.randint(1, 6)
        pairs = [(draw.randrange(6), draw.randrange(size), draw.randint(1, 9))
                 for _ in range(draw.randint(0, 8))]  # fmt: skip
        weight = {}
        for a, b, w in pairs:
            weight[a, b] = max(w, weight.get((a, b), 0))

        def best(a=-1, b=-1, weight=weight):
            return max([w + best(p, q) for (p, q), w in weight.items() if p > a and q > b],
                       default=0)  # fmt: skip

        chain = heaviest_chain(pairs, size)
        assert all(p < q and r < s for (p, r), (q, s) in zip(chain, chain[1:]))
        assert sum(weight[pair] for pair in chain) == best()


def test_equal_programs_have_no_marks():
    program = [line("for i in range(8):", 1), line("A[i] = 0", 2), line("@")]
    assert rows(program, program) == [(n, n, "", "") for n in range(3)]


def test_a_line_is_known_by_its_key_and_not_by_its_text():
    before = [line("for i in range(8):", 1), line("x", 2)]
    after = [line("for i in T.parallel(8):", 1), line("x", 2)]
    assert rows(before, after)[0] == (0, 0, "changed", "changed")
    other = [line("for i in range(8):", 9), line("x", 2)]
    assert rows(before, other)[0] == (0, 0, "removed", "new")


def test_a_line_that_changed_places_is_moved_not_removed_and_new():
    before = [line("a", 1), line("b", 2), line("c", 3)]
    after = [line("c", 3), line("a", 1), line("b", 2)]
    found = rows(before, after)
    assert [(r.right, r.right_mark) for r in found if r.right_mark] == [(0, "moved")]
    assert [(r.left, r.left_mark) for r in found if r.left_mark] == [(2, "moved")]


def programs_at_random(draw, count=12):
    """Programs that a few edits each make of one another: lines come, go, come back, move, change
    their text, are split into two and joined."""
    lines = [line(f"line {n}", n) if n % 4 else line(draw.choice("@#")) for n in range(14)]
    kept, key = [list(lines)], 100
    for _ in range(count):
        lines = list(draw.choice(kept[-3:]))
        for _ in range(draw.randint(1, 3)):
            at, edit = draw.randrange(len(lines)), draw.randrange(6)
            if edit == 0 and len(lines) > 4:
                del lines[at]
            elif edit == 1:
                key += 1
                lines.insert(at, line(f"new {key}", key))
            elif edit == 2:
                lines.insert(draw.randrange(len(lines)), lines.pop(at))
            elif edit == 3:
                lines[at] = line(lines[at][0] + "!", *lines[at][1])
            elif edit == 4:
                lines.insert(at, draw.choice(draw.choice(kept)))
            else:
                lines.insert(at, line(lines[at][0] + "?", *lines[at][1]))
        kept.append(lines)
    return kept


@pytest.mark.parametrize("seed", range(60))
def test_every_line_stands_in_one_row_in_order(seed):
    kept = programs_at_random(random.Random(seed))
    for before, after in zip(kept, kept[1:]):
        found = rows(before, after)
        assert [r.left for r in found if r.left >= 0] == list(range(len(before)))
        assert [r.right for r in found if r.right >= 0] == list(range(len(after)))
        for row in found:
            both = row.left >= 0 and row.right >= 0
            assert row.left_mark in ("", "changed", "removed", "moved")
            if both and not row.left_mark and not row.right_mark:
                assert before[row.left][0] == after[row.right][0]


@pytest.mark.parametrize("seed", range(60))
def test_woven_programs_rise_and_share_the_slots_of_what_is_aligned(seed):
    kept = programs_at_random(random.Random(seed))
    steps = [(n, n + 1) for n in range(len(kept) - 1)]
    slots = woven(kept, steps)
    for program, at in zip(kept, slots):
        assert len(at) == len(program)
        assert all(a < b for a, b in zip(at, at[1:]))
    for n, m in steps:
        there = {slot: b for b, slot in enumerate(slots[m])}
        shared = [(a, there[slot]) for a, slot in enumerate(slots[n]) if slot in there]
        assert shared == aligned(kept[n], kept[m])


def test_what_was_taken_away_and_came_back_faces_itself():
    one = [line("a", 1), line("b", 2), line("c", 3)]
    two = [line("a", 1), line("c", 3)]
    slots = woven([one, two, one[:1] + [line("b, again", 2)] + one[2:]], [(0, 1), (1, 2)])
    assert slots[0] == slots[2] == [0, 1, 2] and slots[1] == [0, 2]


def test_runs_are_short_where_numbers_follow_each_other():
    assert runs_of([0, 1, 2, 5, 6, 9]) == [0, 3, 5, 2, 9, 1]
    assert runs_of([]) == []


def test_the_programs_of_a_schedule_are_woven_in_the_order_of_its_steps():
    recording = record(schedules.schedule()).recording
    data = recording.to_dict()
    slots = slots_of(data)
    assert len(slots) == len(recording.programs)
    for runs, program in zip(slots, recording.programs):
        assert sum(runs[1::2]) == len(program.lines)
    assert sum(map(len, slots)) < sum(len(p.lines) for p in recording.programs)
    first = recording.steps[1]
    found = rows(keyed(recording, first.before), keyed(recording, first.after))
    assert any(row.right_mark for row in found)
