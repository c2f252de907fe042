"""Hints and solutions in a terminal obey the rules of the card; what is reached is kept."""

import json
import sys

import pytest

from mlc_lab import exercises
from mlc_lab.cli import main
from mlc_lab.exercises import book


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MLC_LAB_HOME", str(tmp_path / "home"))


def reference(tmp_path, id="01.2", seed="ada", folder=None):
    path = tmp_path / "answer.py"
    path.write_text(exercises.get(id, folder).variant(seed).reference)
    return str(path)


def test_a_hint_is_noted_until_it_is_solved(tmp_path, capsys):
    task = exercises.get("01.2").variant("ada")
    assert main(["exercise", "01.2", "--hint", "2", "--seed", "ada"]) == 0
    assert task.hints[1] in capsys.readouterr().out and book.load().hints == {"01.2": 2}
    assert main(["exercise", "01.2", "--hint", "1", "--seed", "ada"]) == 0
    assert book.load().hints == {"01.2": 2}
    assert main(["exercise", "01.2", reference(tmp_path), "--seed", "ada"]) == 0
    assert main(["exercise", "01.2", "--hint", "3", "--seed", "ada"]) == 0
    assert book.load().hints == {"01.2": 2}


def test_a_solution_is_shown_when_it_is_solved_or_given_up(tmp_path, capsys):
    task = exercises.get("01.2").variant("ada")
    assert main(["exercise", "01.2", "--solution", "--seed", "ada"]) == 2
    told = capsys.readouterr()
    assert "--give-up" in told.err and not told.out and book.load().hints == {}
    assert main(["exercise", "01.2", reference(tmp_path), "--seed", "ada"]) == 0
    assert main(["exercise", "01.2", "--solution", "--seed", "ada"]) == 0
    assert task.reference.strip() in capsys.readouterr().out and book.load().hints == {}
    assert main(["exercise", "01.2", "--solution", "--seed", "bob"]) == 2  # another variant
    assert main(["exercise", "01.2", "--give-up", "--seed", "bob"]) == 0
    assert book.load().hints == {"01.2": book.SOLUTION}
    assert main(["exercise", "01.2", "--solution", "--seed", "bob"]) == 0


def test_a_teachers_rules_hold_in_the_terminal_and_are_not_handed_in(tmp_path, capsys):
    assert not book.ruled("01.2", "ada", 1, False)
    assert not book.ruled("01.2", "0", 0, True)  # the card of a lesson undoes nothing
    for how in ("--solution", "--give-up"):
        assert main(["exercise", "01.2", how, "--seed", "ada"]) == 2
        assert "shows no solution" in capsys.readouterr().err
    assert main(["exercise", "01.2", "--hint", "1", "--seed", "ada"]) == 0
    assert "costs 1" in capsys.readouterr().err
    exercises.hand_in(tmp_path / "answers.json", ids=["01.2"])
    handed = json.loads((tmp_path / "answers.json").read_text())
    assert handed["hints"] == {"01.2": 1} and "rules" not in handed
    assert not book.ruled("01.2", "ada", 0, True) and book.load().rules == {}


def test_a_card_notes_its_rules():
    pytest.importorskip("anywidget")
    exercises.exercise("01.2", "ada", hint_cost=2, solution=False)
    assert book.load().rules == {"01.2": {"seed": "ada", "cost": 2, "solution": False}}


def test_what_is_reached_at_a_prompt_is_kept_and_a_programs_checks_are_not(monkeypatch, capsys):
    right = exercises.get("01.2").variant("ada").reference
    monkeypatch.delattr(sys, "ps1", raising=False)
    assert exercises.check("01.2", right, "ada").solved and not book.load().entries
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert exercises.points("01.2", right, "ada") == 5 and not book.load().entries  # grading
    assert exercises.check("01.2", 3, "ada").error and not book.load().entries
    assert exercises.check("01.2", right, "ada").solved
    assert book.load().solved("01.2", "ada") and book.load().entries["01.2"].answer == right


@pytest.mark.parametrize("more", [["--json"], ["--folder", "own"]])
def test_what_is_reached_in_a_terminal_is_kept_in_all_its_ways(tmp_path, monkeypatch, more):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    assert main(["exercise", "01.2", reference(tmp_path), "--seed", "ada", *more]) == 0
    assert book.load().solved("01.2", "ada")
