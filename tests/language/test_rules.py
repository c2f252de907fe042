"""What the rule of a refusal asks for, in the reader's language, beside the English error."""

import re

import pytest

from mlc_lab import language
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import tir as T


@T.prim_func
def total(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vj]


def told():
    sch = Schedule(total)
    with pytest.raises(ScheduleError) as caught:
        sch.parallel(sch.get_loops("B")[1])
    return caught.value


def test_an_error_is_english_and_a_line_of_it_is_in_the_readers_language(monkeypatch):
    monkeypatch.setenv(language.VARIABLE, "en")
    error = told()
    english = str(error)
    assert not re.search("[^\x00-\x7f]", english)
    monkeypatch.setenv(language.VARIABLE, "zh")
    lines = str(error).split("\n")
    at = next(n for n, line in enumerate(lines) if line.strip().startswith("rule:"))
    assert lines[at + 1] == f"  规则：{language.text(error.rule, 'rules')}"
    assert "空间迭代器" in lines[at + 1]
    assert "\n".join(lines[:at + 1] + lines[at + 2:]) == english


def test_the_rule_of_somebody_elses_primitive_is_named_alone(monkeypatch):
    monkeypatch.setenv(language.VARIABLE, "zh")
    error = told()
    error.rule = "a_rule_of_mine"
    assert "规则" not in str(error)
