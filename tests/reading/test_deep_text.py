"""Texts deeper than Python's parser takes: the trees are those that it would give."""

import ast
from pathlib import Path

import pytest

from mlc_lab.reading import deep_text
from mlc_lab.reading.errors import LimitError
from mlc_lab.reading.python_text import parse_python

PACKAGE = Path(deep_text.__file__).parent.parent
FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("blocks, brackets", [(1, 2), (2, 3), (3, 2), (50, 60)])
def test_the_tree_is_that_of_the_whole_text(blocks, brackets, monkeypatch):
    """The files of the package, cut into small pieces."""
    monkeypatch.setattr(deep_text, "BLOCKS", blocks)
    monkeypatch.setattr(deep_text, "BRACKETS", brackets)
    for path in FILES[blocks::23]:
        text = path.read_text(encoding="utf-8")
        places = "f\"" not in text and "f'" not in text  # Python itself moved those of f-strings
        got = deep_text.parse_deep(text, str(path), "exec")
        assert ast.dump(got, include_attributes=places) == ast.dump(
            ast.parse(text), include_attributes=places), path


@pytest.mark.parametrize("expression", [
    "{a: (b, c), **d}[e][f:g, (h)]", "f((a, b), *(c), **{'k': [d]})",
    "[(x, (y, z)) for x, (y, z) in w]",
    "(a, )[0](*b)[(c, d)]", "f(x for x in (y))", "('(' , \"[\", '''{''')", "((a)) + ([b]) - ({c})",
    "not (a) and (b if (c) else (d))", "lambda x=(1): (x)", "f( # ( [\n a, (b))", "(ä + (ö))",
])
@pytest.mark.parametrize("brackets", [1, 2, 3])
def test_what_stands_in_brackets(expression, brackets, monkeypatch):
    monkeypatch.setattr(deep_text, "BRACKETS", brackets)
    got = deep_text.parse_deep(expression, "<text>", "eval")
    assert ast.dump(got, include_attributes=True) == ast.dump(
        ast.parse(expression, mode="eval"), include_attributes=True)


def test_a_mistake_has_its_line():
    text = "\n".join(" " * n + "if 1:" for n in range(300)) + "\n" + " " * 300 + "pass pass\n"
    with pytest.raises(SyntaxError) as caught:
        parse_python(text)
    assert (caught.value.lineno, caught.value.offset) == (301, 306)
    hanging = "\n".join(" " * n + "if 1:" for n in range(300)) + "\npass\n"
    with pytest.raises(SyntaxError, match="after 'if' statement on line 300"):
        parse_python(hanging)
    inside = "\n".join(["x = ", *["(" for _ in range(300)], "1 1", *[")" for _ in range(300)]])
    with pytest.raises(SyntaxError) as caught:
        parse_python("(" + inside[4:] + ")")
    assert caught.value.lineno == 302


@pytest.mark.parametrize("text", [
    "(" * 100_000, "x = " + "[" * 70_000 + "]" * 70_000,
    "\n".join("\t" * n + "if 1:" for n in range(2_000)) + "\n" + "\t" * 2_000 + "(",
    "x = " + "(" * 300 + "]" * 300, "x = " + "(" * 300 + "'" + ")" * 300,
    "x = " + "{" * 300 + '"""', "if 1:\n" * 300 + "pass",
])
def test_what_is_no_program_is_refused(text):
    with pytest.raises((SyntaxError, LimitError)):
        parse_python(text)


def test_names_of_pieces_are_no_names_of_the_text():
    text = "deep_b1 = deep_p1 = deep_ = " + "(" * 300 + "deep_p2" + ")" * 300
    (assign,) = parse_python(text).body
    assert assign.value.id == "deep_p2"
