"""A record of a database as an answer: read as data, replayed on the program of the exercise."""

import json

import pytest

from mlc_lab import exercises
from mlc_lab.exercises.answers import MOST_STEPS, as_data
from mlc_lab.exercises.catalogue.ex_08_4 import found
from mlc_lab.exercises.judging import marks
from mlc_lab.meta_schedule.database import JSONDatabase, TuningRecord
from mlc_lab.schedule import Schedule

TASK = exercises.get("08.4").variant("ada")
RIGHT = found(TASK.values, (16, 16, 16))


@pytest.fixture
def database(tmp_path):
    return JSONDatabase(work_dir=tmp_path)


def lines(database):
    """The lines of a database's two files."""
    return [open(path).read().strip().split("\n")[-1] for path in (
        database.path_workload, database.path_tuning_record)]


def test_a_line_of_a_database_is_an_answer(database):
    workload = database.commit_workload(TASK.program)
    database.commit_tuning_record(TuningRecord(RIGHT, workload, times=(1e-3,), target="llvm"))
    program, record = lines(database)
    for answer in (record, f"{program}\n{record}\n", json.dumps(json.loads(record)[1])):
        assert marks(TASK, answer).solved, marks(TASK, answer)
    # the same marks whatever its times say, and times of nonsense are none of the judge's business
    key, (trace, _, target, args), more = json.loads(record)
    for times in (None, [1e-9], "soon"):
        assert marks(TASK, json.dumps([key, [trace, times, target, args], more])).solved


def test_a_record_of_a_search_is_an_answer_as_it_is(database):
    best, fewest = None, None
    workload = database.commit_workload(TASK.program)
    for trial in range(3):
        sch = Schedule(TASK.program, seed=trial)
        type(RIGHT)(RIGHT.insts).apply_to_schedule(sch)  # draws decisions of its own
        database.commit_tuning_record(TuningRecord(sch.trace, workload, times=(trial + 1.0,)))
    best = database.query_best(TASK.program)
    answer = as_data("record", best)
    assert answer.count("\n") == 1 and exercises.check("08.4", best, "ada").points >= 2
    assert marks(TASK, answer).points >= 2 and fewest is None


@pytest.mark.parametrize("answer, says", [
    ("", "a record is one line"), ("a\nb\nc", "a record is one line"), ("[1, 2", "is not JSON"),
    ("[" * 10_000 + "]" * 10_000, "levels"), ("{}", "a record is [key of its program"),
    ('["k", [], {}]', "of another program"), ("[[], null, \"llvm\", []]", "not a trace"),
    ('[[[["System", {"name": "rm"}, []]], []], null, "llvm", []]', "unknown instruction"),
    ("import os", "is not JSON"), ("x" * 300_000, "300000 characters"),
])
def test_what_is_no_record_is_refused_with_its_reason(answer, says):
    result = marks(TASK, answer)
    assert says in str(result) and result.points == 0 and result.error


def test_a_trace_without_end_is_not_replayed():
    trace = RIGHT.as_json()
    trace[0] = [*trace[0], *[["EnterPostproc", {}, []]] * MOST_STEPS]
    assert f"up to {MOST_STEPS} are replayed" in str(marks(TASK, json.dumps([trace, None, "", []])))


def test_a_record_of_another_program_is_told_so(database):
    other = next(exercises.get("08.4").variant(n) for n in range(9)
                 if exercises.get("08.4").variant(n).values != TASK.values)
    trace = found(other.values, (16, 16, 16))
    workload = database.commit_workload(other.program)
    database.commit_tuning_record(TuningRecord(trace, workload, times=(1e-3,)))
    program, record = lines(database)
    for answer in (record, f"{program}\n{record}"):
        assert "the record is of another program" in str(marks(TASK, answer))
