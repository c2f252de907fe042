"""Code that is made in a process: what is made, in which order, and what takes too long."""

import queue

import pytest

from mlc_lab.observe.code_ahead import Coder
from mlc_lab.observe.lowered import code_of
from mlc_lab.observe.session import record
from mlc_lab.workers import pool

from .schedules import module, schedule


@pytest.fixture
def coder():
    made = Coder()
    yield made
    if made._worker is not None:
        made._worker.close()


def test_it_is_the_code_that_is_made_here(coder):
    recording, answers = record(schedule()).recording, queue.Queue()
    last = len(recording.modules) - 1
    coder.ask("last", recording.modules[last], "llvm", answers.put)
    found = answers.get(timeout=60)
    here = code_of(recording, [last])
    assert found["lines"] == here["lines"] and found["programs"]["0"] == here["programs"][str(last)]


def test_who_waits_goes_first_and_nothing_is_made_ahead_while_others_work(coder, monkeypatch):
    order, answers = [], queue.Queue()
    monkeypatch.setattr(pool, "_calls", 1)

    def done(name):
        return lambda made: (order.append(name), answers.put(made))

    coder.ask("ahead", module(), "llvm", done("ahead"), ahead=True)
    coder.ask("asked", module(), "llvm", done("asked"))
    answers.get(timeout=60)
    with pytest.raises(queue.Empty):
        answers.get(timeout=1)
    monkeypatch.setattr(pool, "_calls", 0)
    answers.get(timeout=60)
    assert order == ["asked", "ahead"]


def test_what_was_asked_ahead_is_hurried(coder, monkeypatch):
    answers = queue.Queue()
    monkeypatch.setattr(pool, "_calls", 1)
    coder.ask("one", module(), "llvm", lambda made: answers.put("ahead"), ahead=True)
    coder.ask("one", module(), "llvm", lambda made: answers.put("asked"))
    assert answers.get(timeout=60) == "asked" and not coder._jobs


def test_a_compiler_that_takes_too_long_is_stopped_and_another_try_works(coder):
    answers = queue.Queue()
    coder.limit_s = 0.001
    coder.ask("one", module(), "llvm", answers.put)
    assert "took more than 0.001 s and was stopped" in answers.get(timeout=60)["message"]
    coder.limit_s = 60
    coder.ask("one", module(), "llvm", answers.put)
    assert answers.get(timeout=60)["programs"]["0"]["assembly"]


def test_a_program_that_cannot_be_lowered_says_why(coder):
    answers = queue.Queue()
    coder.ask("one", module(), "llvm -mtriple=nothing", answers.put)
    assert answers.get(timeout=60)["programs"]["0"]["error"]
