"""The recording format: round trips, what is refused, and how small it stays."""

import json
from pathlib import Path

import handmade
import pytest

from mlc_lab.observe.recording import (
    Recorder, Recording, RecordingError, load_all, save_all, validate,
)  # fmt: skip

GOLDEN = Path(__file__).with_name("golden_recording.json")
#: as recordings were written before they said what stands in a line
WITHOUT_PARTS = Path(__file__).with_name("golden_recording_without_parts.json")


def test_json_round_trip_is_the_identity():
    recording = handmade.recording()
    again = Recording.from_json(recording.to_json())
    assert again == recording
    assert again.to_json() == recording.to_json()


def test_the_format_is_as_it_was_released():
    """Files written by version 1 must stay readable; a change here needs a new version."""
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert handmade.recording().to_dict() == golden
    assert Recording.from_dict(golden).to_dict() == golden


def test_a_recording_without_parts_is_read_and_drawn():
    data = json.loads(WITHOUT_PARTS.read_text(encoding="utf-8"))
    old = Recording.from_dict(data)
    assert old.to_dict() == data
    assert old.lines == handmade.recording().lines and not old.parts
    assert "for i, j, k in T.grid(128, 128, 128):" in old.step_svg(0, "nest")


def test_each_line_and_each_program_is_stored_once():
    recording = handmade.recording()
    assert len({(t, tuple(k)) for t, k in recording.lines}) == len(recording.lines)
    assert len(recording.programs) == len([s for s in recording.steps if not s.error])


def test_text_of_a_program_is_what_was_recorded():
    recording = handmade.recording()
    assert recording.text(recording.steps[-1].after) == handmade.VECTORIZE.rstrip("\n")


def test_python_so_far_leaves_a_refused_instruction_as_a_comment():
    python = handmade.recording().python_up_to(6).split("\n")
    assert python[0] == "sch = tvm.tir.Schedule(MyModule)"
    assert "# refused: sch.vectorize(loop=k)" in python
    assert "sch.vectorize(loop=k)" not in python
    assert python[-1] == "sch.vectorize(loop=j_1)"


@pytest.mark.parametrize(
    "spoil, complaint",
    [
        (lambda d: d.update(format="x"), "format is 'x'"),
        (lambda d: d.update(version=99), "a newer one wrote it"),
        (lambda d: d.pop("steps"), "steps is missing"),
        (lambda d: d.update(steps=[]), "steps is empty"),
        (lambda d: d["programs"][1]["lines"].append(10**6), "no valid index"),
        (lambda d: d["lines"][0][1].append(-1), r"lines\[0\] has -1"),
        (lambda d: d["parts"].pop(), r"parts has \d+ entries for"),
        (lambda d: d["parts"][0].append(["loop", "i", 8]), r"parts\[0\] has .*'loop', 'i', 8"),
        (lambda d: d["parts"][0].append(["buffer", "A", [8], "float32", ""]), "list of texts"),
        (lambda d: d["steps"][2].pop("python"), r"steps\[2\].python is no text"),
        (lambda d: d["steps"][4].update(after=0), "though the step was refused"),
        (lambda d: d["programs"][0]["cost"].update(time="fast"), r"cost.time is no number"),
    ],
)
def test_what_is_no_recording_is_refused_by_name(spoil, complaint):
    data = handmade.recording().to_dict()
    spoil(data)
    with pytest.raises(RecordingError, match=complaint):
        validate(data)


def test_text_that_is_not_json_is_refused():
    with pytest.raises(RecordingError, match="not JSON"):
        Recording.from_json("{")


def test_several_recordings_in_one_file(tmp_path):
    save_all([handmade.recording(), handmade.recording(False)], tmp_path / "all.json")
    first, second = load_all(tmp_path / "all.json")
    assert first == handmade.recording() and second == handmade.recording(False)


def big(steps=50, length=200):
    """A recording of a long program of which each step changes a few lines."""
    recorder = Recorder("big")
    lines = [f"        for i_{n} in range({n + 7}):  # of ordinary width" for n in range(length)]
    owners = [object() for _ in lines]
    kept = None
    for step in range(steps):
        for n in range(5):
            at = (17 * step + n) % length
            lines[at] = f"        for i_{at}_{step} in T.vectorized({n + 8}):  # changed here"
        keyed = [(t, (recorder.key("loop", "i", o),)) for t, o in zip(lines, owners)]
        now = recorder.program(keyed)
        recorder.step("split", f"sch.split({step})", now if kept is None else kept, now)
        kept = now
    return recorder.recording


def test_fifty_steps_of_two_hundred_lines_stay_under_a_megabyte():
    recording = big()
    assert len(recording.to_json()) < 200_000
    static = pytest.importorskip("mlc_lab_widgets.static")
    assert len(recording.to_json()) + len(static.html(recording)) < 1_000_000
