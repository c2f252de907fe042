"""The database: what is kept, shared, refused."""

import json
import os
import pickle
import random
import sqlite3
import subprocess
import sys
import textwrap
import warnings

import pytest

from mlc_lab import meta_schedule as ms
from mlc_lab.meta_schedule.database import TuningRecord
from mlc_lab.meta_schedule.tune import open_database
from mlc_lab.schedule import Schedule

from .programs import TARGET, matmul, stochastic


def record(database, times, status="ok", target=TARGET, mod=None):
    mod = mod or matmul()
    sch = Schedule(database.commit_workload(mod).mod, seed=1)
    stochastic(sch)
    made = TuningRecord(sch.trace, database.commit_workload(mod), target, tuple(times),
                        status=status, reason="" if status == "ok" else "it broke")
    database.commit_tuning_record(made)
    return made


@pytest.fixture(params=["memory", "sqlite", "json"])
def database(request, tmp_path):
    if request.param == "json":
        yield ms.database.JSONDatabase(work_dir=tmp_path)
    elif request.param == "memory":
        yield ms.database.MemoryDatabase()
    else:
        yield ms.database.SQLiteDatabase(tmp_path / "tuning.db")


def test_the_best_come_first_and_failures_do_not_count(database):
    for times in ([3e-3], [1e-3], [2e-3]):
        record(database, times)
    record(database, [], "crash")
    assert len(database) == 4
    assert [r.time for r in database.get_top_k(matmul(), 2)] == [1e-3, 2e-3]
    assert database.get_top_k(matmul(), 0) == [] == database.get_top_k(matmul(), -1)
    assert database.query_best(matmul()).time == 1e-3
    assert [r.status for r in database.query_all(matmul())] == ["ok"] * 3 + ["crash"]
    assert database.query_best(matmul(16)) is None and not database.has_workload(matmul(16))
    assert database.query(matmul(), TARGET, kind="record").time == 1e-3
    sch = database.query(matmul(), TARGET)
    assert sch.mod.script() == database.query(matmul(), TARGET, kind="ir_module").script()


def test_records_are_plain_data(database):
    record(database, [2e-3, 1e-3, 4e-3])
    (row,) = database.records()
    assert json.loads(json.dumps(row)) == row
    assert row["time"] == 1.5e-3 and row["spread"] == pytest.approx(1 / 3)
    assert list(row["decisions"]) == ["v4, v5"] and "sample_perfect_tile" in row["trace"]
    again = Schedule(database.module(row["workload"]))
    again.apply_trace(row["trace_json"])
    assert again.mod.script() == database.schedule(row["id"]).mod.script()
    assert database.records(since=row["id"]) == []


def test_a_record_is_replayed_as_a_candidate(database):
    made = record(database, [1e-3])
    (read,) = database.get_all_tuning_records()
    assert str(read.trace) == str(made.trace) and read.run_secs == [1e-3]
    assert read.as_measure_candidate().sch.mod.script() == made.as_schedule().mod.script()


def test_with_makes_it_the_current_one(database):
    assert ms.database.Database.current() is None
    with database:
        assert ms.Database.current() is database
    assert ms.Database.current() is None


def test_two_processes_share_a_file(tmp_path):
    path = tmp_path / "tuning.db"
    database = ms.database.SQLiteDatabase(path)
    record(database, [3e-3])
    code = textwrap.dedent(f"""
        from mlc_lab import meta_schedule as ms
        from meta_schedule.test_database import record
        database = ms.database.SQLiteDatabase({str(path)!r})
        assert len(database) == 1
        record(database, [1e-3])
        import os
        os.kill(os.getpid(), 9)
    """)
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True)
    assert done.returncode == -9, done.stderr.decode()
    assert database.query_best(matmul()).time == 1e-3 and len(database) == 2


def environment():
    here = os.path.dirname(os.path.dirname(__file__))
    return {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(here), here])}


def test_databases_by_their_kinds(tmp_path):
    record(ms.database.create("sqlite", work_dir=tmp_path), [1e-3])
    assert len(ms.database.create("sqlite", work_dir=tmp_path)) == 1
    assert len(ms.database.create("memory")) == 0
    with pytest.raises(ValueError, match="no database 'xml'"):
        ms.database.create("xml")
    with pytest.raises(ms.DatabaseError, match="there is no database"):
        ms.database.JSONDatabase(work_dir=tmp_path / "no", allow_missing=False)
    with pytest.raises(ms.DatabaseError, match="is a SQLite database"):
        ms.database.JSONDatabase(tmp_path / "database.db", tmp_path / "r.json")
    with pytest.raises(ms.DatabaseError, match="cannot be written"):
        ms.database.JSONDatabase(work_dir=tmp_path / "no")


def test_a_json_database_is_json(tmp_path):
    """Two processes write, lines are cut off and damaged: what is whole is there."""
    one = ms.database.create("json", work_dir=tmp_path)
    first = record(one, [1e-3, 2e-3])
    two = ms.database.JSONDatabase(one.path_workload, one.path_tuning_record)
    record(two, [], "crash")
    first.times, first.status = (5e-3,), "ok"
    one.revise_tuning_record(first)
    for path in (one.path_workload, one.path_tuning_record):
        with open(path) as file:
            assert all(isinstance(json.loads(line), list) for line in file)
    with open(one.path_tuning_record, "a") as file:
        file.write('[1, 2]\n["abc", "cut')
    with pytest.warns(UserWarning, match="damaged lines"):
        again = ms.database.JSONDatabase(work_dir=tmp_path)
    assert [(r.times, r.status) for r in again.get_all_tuning_records()] == [
        ((5e-3,), "ok"), ((), "crash")]
    record(again, [4e-3])
    with pytest.warns(UserWarning, match="damaged lines"):
        copy = pickle.loads(pickle.dumps(again))
    assert copy.query_best(matmul()).time == 4e-3 and len(copy) == 3
    assert copy.query_best(matmul()).as_schedule() is not None


@pytest.mark.parametrize("kind", ["json", "sqlite"])
def test_a_search_keeps_its_records_in_the_kind_that_is_asked_for(kind, tmp_path):
    database = open_database(kind, tmp_path)
    assert type(database) is {"json": ms.database.JSONDatabase,
                              "sqlite": ms.database.SQLiteDatabase}[kind]

def test_union_and_pruning():
    one, two, three = (ms.database.MemoryDatabase() for _ in range(3))
    record(one, [2e-3])
    record(two, [1e-3])
    both = ms.database.UnionDatabase(one, two)
    assert both.query_best(matmul()).time == 1e-3 and len(both) == 2
    record(one, [5e-3])
    one.dump_pruned(three)
    assert [r.time for r in three.get_all_tuning_records()] == [2e-3]


def test_a_file_of_another_version_is_refused(tmp_path):
    path = tmp_path / "tuning.db"
    ms.database.SQLiteDatabase(path).close()
    with sqlite3.connect(path) as link:
        link.execute("UPDATE mlc_lab SET value='99' WHERE key='schema'")
    with pytest.raises(ms.DatabaseError, match=r"version 99 .* reads version 1"):
        ms.database.SQLiteDatabase(path)


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "tuning.db"
    path.write_bytes(b"SQLite format 3\0" + b"garbage" * 100)
    with pytest.raises(ms.DatabaseError, match="damaged or no database"):
        ms.database.SQLiteDatabase(path)
    database = ms.database.SQLiteDatabase(tmp_path / "whole.db")
    for _ in range(30):
        record(database, [1e-3])
    database.close()
    whole = (tmp_path / "whole.db").read_bytes()
    (tmp_path / "cut.db").write_bytes(whole[: len(whole) // 3])
    with pytest.raises(ms.DatabaseError, match="damaged"):
        ms.database.SQLiteDatabase(tmp_path / "cut.db").get_all_tuning_records()


def test_a_file_of_something_else_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as link:
        link.execute("CREATE TABLE songs (name TEXT)")
    with pytest.raises(ms.DatabaseError, match="something else.*songs"):
        ms.database.SQLiteDatabase(tmp_path / "other.db")


def test_a_full_disk_is_explained_and_loses_nothing(tmp_path):
    database = ms.database.SQLiteDatabase(tmp_path / "small.db")
    record(database, [1e-3])
    pages = database._do("PRAGMA page_count").fetchone()[0]
    database._do(f"PRAGMA max_page_count={pages}")
    with pytest.raises(ms.DatabaseError, match="full.*goes on where it stopped"):
        for _ in range(200):
            record(database, [1e-3])
    kept = len(database)
    database.close()
    assert len(ms.database.SQLiteDatabase(tmp_path / "small.db")) == kept >= 1


def test_a_work_dir_that_cannot_be_used_is_explained(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ms.DatabaseError, match="cannot be made"):
        ms.tune_tir(matmul(), TARGET, tmp_path / "file" / "dir", 2)


def test_a_file_that_another_process_holds_is_explained(tmp_path):
    path = tmp_path / "tuning.db"
    database = ms.database.SQLiteDatabase(path)
    other = sqlite3.connect(path)
    other.execute("BEGIN EXCLUSIVE")
    database._link.execute("PRAGMA busy_timeout=50")
    with pytest.raises(ms.DatabaseError, match="held by another process"):
        record(database, [1e-3])
    other.rollback()
    record(database, [1e-3])


def test_damaged_records_are_left_out_and_the_others_kept(tmp_path):
    path = tmp_path / "tuning.db"
    database = ms.database.SQLiteDatabase(path)
    for k in range(4):
        record(database, [(k + 1) * 1e-3])
    database.close()
    with sqlite3.connect(path) as link:
        link.execute("UPDATE records SET trace_json=CAST(x'ff00fe80' AS TEXT) WHERE id=1")
        link.execute("UPDATE records SET times='[1e-' WHERE id=3")
    database = ms.database.SQLiteDatabase(path)
    with pytest.warns(UserWarning, match="2 of 4 records .* damaged and left out"):
        assert [r.id for r in database.get_all_tuning_records()] == [2, 4]
    with pytest.warns(UserWarning, match="damaged"):
        assert [r.id for r in database.get_top_k(database.commit_workload(matmul()), 5)] == [2, 4]


@pytest.mark.parametrize("sql", [
    "CREATE VIEW more AS WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x FROM t) SELECT x "
    "FROM t",
    "CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END",
    "ALTER TABLE records ADD COLUMN big AS (zeroblob(1000000000))",
    "CREATE INDEX slow ON records (hex(trace_json))",
    "DROP TABLE mlc_lab; CREATE VIEW mlc_lab AS WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT "
    "x FROM t) SELECT x AS key, x AS value FROM t", "DROP TABLE sessions"])
def test_a_file_with_code_for_sqlite_is_refused(tmp_path, sql):
    path = tmp_path / "tuning.db"
    ms.Database.create("sqlite", path).close()
    link = sqlite3.connect(path)
    link.executescript(sql)
    link.close()
    with pytest.raises(ms.DatabaseError, match="is not as MLC Lab makes it|of something else"):
        ms.Database.create("sqlite", path)


def test_a_file_that_was_refused_is_not_held(tmp_path):
    path = tmp_path / "tuning.db"
    link = sqlite3.connect(path)
    link.execute("CREATE VIEW records AS SELECT 1")  # making the tables fails at this one
    link.close()
    with pytest.raises(ms.DatabaseError, match="records already exists") as held:
        ms.Database.create("sqlite", path)
    link = sqlite3.connect(path, timeout=0.1, isolation_level=None)
    link.execute("BEGIN IMMEDIATE")  # though the error, and with it the database, is still there
    link.close()
    assert held.value


@pytest.mark.parametrize("column, value", [
    ("times", "[1e999]"), ("times", '{"a": 1}'), ("times", "[true]"), ("times", "[" * 100_000),
    ("trace_json", "[" * 100_000), ("trace_json", b"\xff"), ("round", "many"), ("predicted", "x"),
    ("predicted", float("inf")), ("created", -float("inf")),
    ("task", b"x"), ("target", "llvm -x"), ("flop", "x"), ("generation", "1e3x"), ("parent", "x")])
def test_a_record_of_other_types_is_left_out(tmp_path, column, value):
    path = tmp_path / "tuning.db"
    database = ms.Database.create("sqlite", path)
    for time in (1e-3, 2e-3):
        record(database, [time])
    count = len(database.records())
    database._do(f"UPDATE records SET {column}=? WHERE id=1", (value,))
    with pytest.warns(UserWarning, match=f"1 of {count} records .* damaged and left out"):
        assert len(database.records()) == count - 1
    with pytest.warns(UserWarning, match="damaged and left out"):
        assert len(database.get_all_tuning_records()) == count - 1
    with pytest.warns(UserWarning, match="damaged and left out"):
        database.board().to_dict()


def test_a_search_whose_process_has_an_impossible_number_does_not_run(tmp_path):
    database = ms.Database.create("sqlite", tmp_path / "tuning.db")
    args = "main", database.commit_workload(matmul()), "llvm", 1, 0, "", {}
    database.begin_session(*args)
    database._do("UPDATE sessions SET pid=?", (1 << 60,))
    database.begin_session(*args)


@pytest.mark.parametrize("machine", [
    '{"peak_gflops": 1e999}', "[]", "{" * 100_000, '{"cores": "x"}', '{"cpu": 1}', "NaN"])
def test_a_search_whose_machine_is_damaged_is_named(tmp_path, machine):
    database = ms.Database.create("sqlite", tmp_path / "tuning.db")
    database.begin_session("main", database.commit_workload(matmul()), "llvm", 1, 0, "", {})
    database._do("UPDATE sessions SET machine=?", (machine,))
    with pytest.raises(ms.DatabaseError, match="a search noted in .* is damaged"):
        database.sessions()


def test_random_damage_never_ends_in_an_error_of_sqlite(tmp_path):
    database = ms.database.SQLiteDatabase(tmp_path / "whole.db")
    for _ in range(6):
        record(database, [1e-3])
    database.close()
    whole = (tmp_path / "whole.db").read_bytes()
    rng = random.Random(0)
    for number in range(25):
        broken = bytearray(whole)
        for _ in range(60):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        path = tmp_path / f"broken{number}.db"
        path.write_bytes(broken)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                database = ms.database.SQLiteDatabase(path)
                database.get_all_tuning_records()
                database.has_workload(matmul())
                record(database, [1e-3])
            except ms.DatabaseError:
                pass


def test_what_may_only_be_read_can_be_asked(tmp_path, monkeypatch):
    path = tmp_path / "tuning.db"
    database = ms.database.SQLiteDatabase(path)
    record(database, [1e-3])
    database.close()
    connect = sqlite3.connect

    def on_a_read_only_disk(name, **options):
        if not options.get("uri"):
            raise sqlite3.OperationalError("unable to open database file")
        return connect(name, **options)

    monkeypatch.setattr(sqlite3, "connect", on_a_read_only_disk)
    database = ms.database.SQLiteDatabase(path)
    assert len(database.get_top_k(matmul(), 1)) == 1
    with pytest.raises(ms.DatabaseError, match="may only be read"):
        record(database, [1e-3])
    with pytest.raises(ms.DatabaseError, match="cannot open"):
        ms.database.SQLiteDatabase(tmp_path / "none.db")
