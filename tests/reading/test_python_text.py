"""Python's syntax trees of texts: what its parser cannot do becomes an error that says so."""

import ast

import pytest

from mlc_lab.reading import DataError, LimitError, limits, similar
from mlc_lab.reading.python_text import parse_expression, parse_python, written


def test_texts_become_trees():
    assert isinstance(parse_python("x = 1"), ast.Module)
    assert isinstance(parse_expression(" 1 + 2 "), ast.BinOp)


@pytest.mark.parametrize("text", ["x = (", "x = 1\0", "x = '\ud800'", "x = " + "9" * 5000])
def test_what_is_no_python_is_a_syntax_error(text):
    with pytest.raises(SyntaxError):
        parse_python(text)
    with pytest.raises(DataError, match="no expression"):
        parse_expression(text)


@pytest.mark.parametrize("text", ["x = " + "-" * 50_000 + "1", "x = " + "not " * 50_000 + "1"])
def test_what_python_cannot_nest_is_beyond_a_limit(text):
    with pytest.raises(LimitError, match="nested"):
        parse_python(text)


def test_a_text_is_not_too_long_for_its_strings(monkeypatch):
    monkeypatch.setattr(limits, "CODE", 1000)
    assert parse_python('x = f("""' + "a\\\" " * 1000 + '""")')
    with pytest.raises(LimitError, match="too long"):
        parse_python("x = 1\n" * 1000)


def test_an_expression_has_a_greatest_depth(monkeypatch):
    monkeypatch.setattr(limits, "DEPTH", 300)
    assert parse_python("x = " + " + ".join(["a"] * 200))
    with pytest.raises(LimitError) as raised:
        parse_python("y = 1\nx = " + " + ".join(["a"] * 400))
    assert raised.value.line == 2 and raised.value.column > 1


@pytest.mark.parametrize("text, shown", [
    ("a", "a"), ("a.b.c", "a.b.c"), ("f(1, x)", "f(1, x)"), ("a" + ".b" * 500, "this expression"),
    ("[" + "1, " * 400 + "]", "this expression"),
])
def test_what_is_written_is_shortened(text, shown):
    assert written(parse_expression(text)) == shown


def test_similar_names_are_not_sought_for_long_ones():
    assert similar("spacial", ["spatial", "reduce"]) == ["spatial"]
    assert similar("x" * 100_000, ["x" * 99_999, "y"]) == []
