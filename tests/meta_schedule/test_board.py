"""The tuning board as data: what it says of the trials of a database, and what can be asked."""

import json
import random

import pytest
from observe.programs import matmul

from mlc_lab.ir.module import IRModule
from mlc_lab.lower.pipeline import as_module
from mlc_lab.meta_schedule.board import BoardError, rank_correlation
from mlc_lab.meta_schedule.board_words import said, words_of
from mlc_lab.meta_schedule.database import Database, TuningRecord
from mlc_lab.runtime import register_func
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source

from .boards import database


@pytest.fixture(scope="module")
def board():
    return database().board(numpy_s=30e-6, title="product")


@pytest.fixture(scope="module")
def data(board):
    return board.to_dict()


def test_trials_say_what_came_of_them(data):
    assert [t["key"] for t in data["trials"]] == [f"0.{i}" for i in range(1, 9)]
    fifth = data["trials"][4]
    assert fifth["time"] == pytest.approx(20.2e-6) and fifth["low"] == pytest.approx(20e-6)
    assert fifth["parent"] == "0.4" and fifth["at"] == {"v4": 4, "v5": 8, "v8": 0}
    failed = data["trials"][2]
    assert failed["time"] is None and failed["reason"] == "did not end within 10 s"
    text = "\n".join(data["lines"][i] for i in fifth["trace"])
    assert "decision=[4, 8]" in text and text.startswith("# from tvm import tir")


def test_searches_and_their_lines(data):
    first, second = data["sessions"]
    assert first["label"] == "product, evolutionary, seed 7"
    assert second["label"] == "product, replay-trace, seed 8"
    assert first["peak_s"] == pytest.approx(2 * 32**3 / 10e9)
    assert first["numpy_s"] == 30e-6 and first["trials_wanted"] == 6


def test_axes_are_the_decisions_that_differ(data):
    assert data["axes"] == ["v4", "v5", "v8"]


def test_decisions_say_what_they_are_about(data):
    assert data["words"] == [{"v4, v5": {"label": "tiles of j", "choices": None},
                              "v8": {"label": "unroll", "choices": ["0", "16"]}}]
    assert {t["words"] for t in data["trials"]} == {0}
    assert data["axis_labels"] == {"v4": "tiles of j, 1 of 2", "v5": "tiles of j, 2 of 2",
                                   "v8": "unroll"}


def test_words_of_traces_with_several_kinds_of_choices():
    sch = Schedule(from_source("""
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * T.float32(2)
"""))
    for loop in sch.get_loops("C"):
        sch.split(loop, sch.sample_perfect_tile(loop, 2, decision=[4, 4]))
    for _ in range(2):
        sch.split(sch.get_loops("B")[0], [None, sch.sample_categorical([2, 4], [0.5, 0.5])])
    for block in ("B", "C"):
        number = sch.sample_categorical([0, 1], [0.5, 0.5])
        sch.annotate(sch.get_block(block), "tell", number)
    place = sch.sample_compute_location("B", decision=0)
    sch.compute_at("B", place)
    found = words_of(sch.trace, sch.steps[0].before)
    labels = [one["label"] for one in found.values()]
    assert labels[:2] == ["tiles of i", "tiles of j"] and labels[-1] == "place of B"
    assert labels[2:4] == ["tile of i", "tile of i_0"]  # which loop a number splits
    assert [label.split(" (")[0] for label in labels[4:6]] == 2 * ["tell"]
    assert len(set(labels)) == 7  # told apart by their names in the trace
    assert words_of(sch.trace, as_module(matmul(8))) == {}  # of another program: nothing is said
    assert said([4, 4], None) == "4 × 4" and said(1, found[list(found)[2]]) == "4"


def test_other_schedules_of_the_program_are_lines():
    board = database().board(baselines={"by hand": 1e-6})
    assert board.to_dict()["sessions"][0]["baselines"] == {"by hand": 1e-6}
    found = board.measure_baselines()
    assert found.keys() == {"as written", "default schedule"} and min(found.values()) > 0
    for session in board.to_dict()["sessions"]:
        assert session["baselines"] == {"by hand": 1e-6, **found}
    assert len(board.to_dict()["trials"]) == 8  # they are no trials


def test_rank_correlation_by_round(data):
    found = {(r["session"], r["round"]): r["correlation"] for r in data["rounds"]}
    assert found == {("0.1", 0): None, ("0.1", 1): pytest.approx(1.0), ("0.2", 0): None}


@pytest.mark.parametrize("seed", range(5))
def test_rank_correlation_is_spearmans(seed):
    rng = random.Random(seed)
    pairs = [(rng.randint(0, 5), rng.randint(0, 5)) for _ in range(12)]

    def ranks(values):
        return [sum(v < x for v in values) + (sum(v == x for v in values) + 1) / 2 for x in values]

    a, b = (ranks(column) for column in zip(*pairs))
    mean = sum(a) / len(a)
    top = sum((x - mean) * (y - mean) for x, y in zip(a, b))
    size = (sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)) ** 0.5
    assert rank_correlation(pairs) == pytest.approx(top / size)
    assert rank_correlation([(1, 2), (1, 3)]) is None


def test_a_decision_can_be_edited(board):
    before = board.schedule("0.5")
    after = board.schedule("0.5", {"v4, v5": [2, 16]})
    assert before.mod.script() != after.mod.script()
    assert "T.grid" in after.mod.script() and "decision=[2, 16]" in str(after.trace)


def test_an_edit_that_does_not_fit_is_refused(board):
    with pytest.raises(BoardError, match="no decision 'v77'; it has: v4, v5"):
        board.schedule("0.5", {"v77": [1]})
    with pytest.raises(BoardError, match="whole numbers"):
        board.schedule("0.5", {"v4, v5": ["a", 2]})
    with pytest.raises(BoardError, match="does not fit this loop; the nearest"):
        board.schedule("0.5", {"v4, v5": [5, 7]})
    with pytest.raises(ScheduleError):
        board.schedule("0.5", {"v8": 3})
    with pytest.raises(BoardError, match="no trial '0.99'"):
        board.record("0.99")
    with pytest.raises(BoardError, match="no trial 'x'"):
        board.record("x")


def test_measuring_an_edited_decision_adds_a_trial():
    board = database().board()
    key = board.measure("0.5", {"v4, v5": [2, 16]})
    record = board.record(key)
    assert record.status == "ok" and record.time > 0 and record.strategy == "user"
    assert record.mutation == "tiles of j = 2 × 16" and record.parent == 5
    assert len(board.to_dict()["trials"]) == 9


def test_a_program_of_a_database_that_calls_other_code_is_measured_only_when_asked_to():
    called = []
    register_func("test_board.touch", lambda *args: called.append(1), override=True)
    mod = IRModule({"main": from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.evaluate(T.call_packed("test_board.touch", A))
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi]
""")})
    found = Database.create("memory")
    sch = Schedule(mod)
    sch.unroll(sch.get_loops(sch.get_block("B"))[0])
    found.commit_tuning_record(TuningRecord(
        sch.trace, found.commit_workload(mod), times=(1e-6,), target="llvm"))
    board = found.board()
    with pytest.raises(BoardError, match="test_board.touch.*trusted=True"):
        board.measure("0.1", {})
    assert not called and len(found) == 1
    # with it, it is measured: in a process of its own, where no such function is registered
    assert board.record(board.measure("0.1", {}, trusted=True)).status != "ok" and not called


def test_searches_of_several_databases_lie_over_each_other():
    from mlc_lab.meta_schedule.board import Board

    data = Board([database(), database()]).to_dict()
    assert len(data["sessions"]) == 4 and len(data["trials"]) == 16
    assert len({s["label"] for s in data["sessions"]}) == 4


@pytest.mark.parametrize("chart, axes", [("progress", None), ("model", None), ("space", None),
                                         ("space", ["v4", "v5"]), ("family", None)])
def test_charts_as_pictures(board, chart, axes, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "chart.svg"
    board.figure(chart, axes).savefig(path)
    assert path.stat().st_size > 4000


def test_charts_that_do_not_exist(board):
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match="choose one of progress"):
        board.figure("pie")
    with pytest.raises(ValueError, match="no decision 'v1'"):
        board.figure("space", ["v1", "v4"])


def test_it_is_plain_data(board):
    assert json.loads(board.to_json()) == board.to_dict()
    assert "0.5" in board.table() and repr(board) == "<tuning board: 8 trials>"
