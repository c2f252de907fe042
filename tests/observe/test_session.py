"""Recording schedules: what becomes a step, what keys mean, and gathering all of a program."""

from mlc_lab.ir import IRModule
from mlc_lab.observe.recording import Recorder, Recording, load_all
from mlc_lab.observe.program import lines_of
from mlc_lab.observe.session import record, recording_schedules
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source

from .schedules import module, schedule


def keys_of(recording, program, start):
    """Keys of the one line of a program that starts so."""
    lines = [recording.lines[i] for i in recording.programs[program].lines]
    (found,) = [keys for text, keys in lines if text.strip().startswith(start)]
    return set(found)


def test_each_primitive_is_a_step_and_looking_up_is_none():
    recording = record(schedule()).recording
    assert [step.op for step in recording.steps] == [
        "start", "split", "reorder", "reverse_compute_at", "vectorize", "vectorize",
        "decompose_reduction",
    ]  # fmt: skip
    assert [text.split(" = ")[1] for text in recording.steps[1].lead] == [
        'sch.get_block(name="Y", func_name="main")', "sch.get_loops(block=b0)",
    ]  # fmt: skip
    assert recording.steps[2].lead == []


def test_steps_hang_together():
    recording = record(schedule()).recording
    for one, two in zip(recording.steps, recording.steps[1:]):
        assert one.after == two.before


def test_a_refused_primitive_is_a_step_that_changes_nothing():
    recording = record(schedule()).recording
    step = recording.steps[4]
    assert step.before == step.after
    assert step.error["rule"] and "_" not in step.error["rule"]
    assert "reduction" in step.error["message"]
    assert ("loop", "k") in [recording.keys[fault] for fault in step.error["keys"]]
    assert "^" in step.error["where"]


def test_programs_read_as_they_are_printed():
    sch = schedule()
    recording = record(sch).recording
    printed = sch.mod.script().split("\n")
    assert recording.text(recording.steps[-1].after).split("\n") == printed[-len(
        recording.programs[recording.steps[-1].after].lines):]  # fmt: skip


def test_each_primitive_is_documented():
    recording = record(schedule()).recording
    for step in recording.steps:
        assert recording.docs[step.op]["meaning"].endswith(".")


def test_a_recording_of_a_schedule_survives_json():
    recording = record(schedule()).recording
    assert Recording.from_json(recording.to_json()) == recording


def test_a_loop_keeps_its_key_when_it_moves():
    recording = record(schedule()).recording
    split, reorder = recording.steps[1].after, recording.steps[2].after
    assert keys_of(recording, split, "for i, j_0") == keys_of(recording, reorder, "for i, j_0")


def test_a_split_loop_gets_new_keys_and_its_neighbours_keep_theirs():
    recording = record(schedule()).recording
    before = keys_of(recording, 0, "for i, j, k")
    after = keys_of(recording, recording.steps[1].after, "for i, j_0")
    assert len(before & after) == 2 and len(after) == 4


def test_a_statement_keeps_its_key_through_all_steps():
    recording = record(schedule()).recording
    found = [keys_of(recording, p, "C[vi, vj] =") for p in range(len(recording.programs))]
    assert all(one == found[0] for one in found)


def test_a_block_keeps_its_key_under_a_new_name():
    recording = record(schedule()).recording
    last = recording.steps[-1]
    before = keys_of(recording, last.before, 'with T.block("Y")')
    assert before == keys_of(recording, last.after, 'with T.block("Y_update")')
    assert not before & keys_of(recording, last.after, 'with T.block("Y_init")')


def test_lines_of_two_functions_have_different_keys():
    one = next(iter(module().functions.values()))
    two = next(iter(from_source(module().script()).functions.values()))
    recorder = Recorder()
    lines = lines_of(IRModule({"f": one, "g": two}), recorder)
    half = [keys for text, keys in lines if "T.grid" in text]
    assert len(half) == 4 and not set(half[0]) & set(half[2])
    assert len({keys for text, keys in lines if text.strip().startswith("def ")}) == 2


def test_every_schedule_made_inside_is_kept(tmp_path):
    with recording_schedules() as session:
        schedule()
        Schedule(module())  # has no step
        schedule()
    Schedule(module()).split
    assert len(session.schedules) == 3
    session.save(tmp_path / "all.json")
    first, second = load_all(tmp_path / "all.json")
    assert (first.title, second.title) == ("main", "main (2)")
    assert Schedule.on_create is None


def test_a_schedule_without_steps_can_be_recorded():
    recording = record(Schedule(module())).recording
    assert len(recording.steps) == 1 and recording.steps[0].op == "start"
