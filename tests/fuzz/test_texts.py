"""The law of texts hears what it should: code that runs, files, long texts, other errors."""

import os

import pytest

from mlc_lab.reading import MLCError

from . import texts


@pytest.mark.parametrize("text", [
    "canary()", "__import__('os').system('true')", "open('canary.txt', 'w')",
    "open('/etc/hostname')", "__import__('pickle').loads(b'cos\\nsystem\\n.')",
    "__import__('subprocess').run(['true'])"])
def test_code_that_runs_is_heard(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match="code was run"):
        texts.load(eval, text)


def test_reading_data_is_not_heard():
    assert texts.load(len, "canary()")
    assert texts.load(lambda text: os.stat("."), "")


def test_other_errors_long_messages_and_time_are_found(monkeypatch):
    with pytest.raises(ValueError):
        texts.load(int, "x")

    def refuse(text):
        raise MLCError(text)

    assert not texts.load(refuse, "no")
    with pytest.raises(AssertionError, match="a message of"):
        texts.load(refuse, "x" * 100_000)
    monkeypatch.setattr(texts, "SECONDS", 0.0)
    with pytest.raises(AssertionError, match="it took"):
        texts.load(sum, range(100_000))
