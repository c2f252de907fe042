"""Several databases asked as one."""

import pickle

import pytest

from mlc_lab import meta_schedule as ms
from mlc_lab.meta_schedule.board import Board

from .programs import TARGET, matmul
from .test_database import record


def test_a_union_answers_every_question_over_its_parts():
    one, two, three = (ms.database.MemoryDatabase() for _ in range(3))
    slow, fast, small = record(one, [2e-3]), record(two, [1e-3]), record(three, [3e-3],
                                                                         mod=matmul(16))
    for part in (one, two):
        part.begin_session("main", part.commit_workload(matmul()), TARGET, 4, 0, "", {})
    both = ms.database.UnionDatabase(one, ms.database.UnionDatabase(two, three))
    assert len(both) == len(both.records()) == len(both.get_all_tuning_records()) == 3
    assert [r.time for r in both.query_all(matmul())] == [2e-3, 1e-3]
    assert [r.time for r in both.query_all(target=TARGET)] == [2e-3, 1e-3, 3e-3]
    assert both.query_all(matmul(), "c") == []
    assert [r.time for r in both.get_top_k(matmul(), 5)] == [1e-3, 2e-3]
    assert both.query_tuning_record(matmul(16), TARGET).time == 3e-3
    assert both.query_ir_module(matmul(16), TARGET) is not None
    rows = both.records()
    assert len({row["id"] for row in rows}) == 3 and rows[0]["id"] == slow.id
    assert [r.id for r in both.get_all_tuning_records()] == [row["id"] for row in rows]
    for row, source in zip(rows, (slow, fast, small)):
        assert both.schedule(row["id"]).mod.script() == source.as_schedule().mod.script()
        assert both.module(row["workload"]).script() == source.workload.mod.script()
    assert [s["task"] for s in both.sessions()] == ["main", "main"]
    assert len({s["id"] for s in both.sessions()}) == 2
    session = both.begin_session("new", both.commit_workload(matmul()), TARGET, 4, 0, "", {})
    both.update_session(session, state="done")
    assert one.sessions()[-1]["state"] == "done" and len(two.sessions()) == 1
    best = both.query_best(matmul())
    best.times = (4e-3,)
    both.revise_tuning_record(best)
    assert two.query_best(matmul()).time == 4e-3 and one.query_best(matmul()).time == 2e-3
    assert len(both.board().to_dict()["trials"]) == len(
        Board(both).to_dict()["trials"]) == 3
    assert len(pickle.loads(pickle.dumps(both)).databases) == 3
    assert both.records(since=slow.id) == []
    with pytest.raises(ms.DatabaseError, match="no program"):
        both.module("nothing")
    with pytest.raises(ValueError, match="no record 77"):
        both.schedule(77)
    with pytest.raises(TypeError, match="takes databases, not list"):
        ms.database.UnionDatabase([one, two])
