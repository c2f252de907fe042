"""Answers that stand in the cells of a notebook, read and not run.

Notebooks for nbgrader and Otter-Grader, and those of students who write `answer_03_2 = ...`, have
their answers in cells. The one that was assigned last counts. A text, a number, a list or a dict
that is written out is read; what would have to be computed is not, and that is said.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any

from ...reading import MISTAKES, DataError, read_json
from ..book import Book, Entry

#: characters of a cell that is looked at
MOST_TEXT = 400_000
_NAME = re.compile(r"answer_(\d{1,4})_(\d{1,4})")


def answer_name(id: str) -> str:
    """The variable of an answer: "answer_03_2" of exercise 03.2."""
    return "answer_" + id.replace(".", "_")


def read_notebook(text: str | bytes, name: str = "the notebook") -> tuple[Book, list[str]]:
    """The answers of a notebook, and what could not be read. Raises DataError for no notebook, or
    one without an answer."""
    data = read_json(text, name)
    cells = data.get("cells") if isinstance(data, dict) else None
    if not isinstance(cells, list):
        raise DataError(f"{name} is no notebook")
    about = data.get("metadata", {})
    about = about.get("mlc_lab", {}) if isinstance(about, dict) else {}
    about = about if isinstance(about, dict) else {}
    student, seed = (str(about.get(key, ""))[:200] for key in ("student", "seed"))
    found: dict[str, Any] = {}
    problems: list[str] = []
    for cell in cells:
        for id, node in _assigned(cell):
            try:
                found[id] = json.loads(json.dumps(ast.literal_eval(node), allow_nan=False))
            except (*MISTAKES, RecursionError, MemoryError):
                found.pop(id, None)
                problems.append(f"{answer_name(id)} is computed: only what is written out is read, "
                                "as a text, a number, a list or a dict")
    if not found and not problems:
        raise DataError(f"{name} has no answer in its cells, as answer_03_2 = ...")
    return Book(student, {id: Entry(seed, answer) for id, answer in found.items()}), problems


def _assigned(cell: Any) -> list[tuple[str, ast.expr]]:
    """Exercises and the values that a cell assigns to their answers."""
    if not isinstance(cell, dict) or cell.get("cell_type") != "code":
        return []
    source = cell.get("source", "")
    text = source if isinstance(source, str) else "".join(map(str, source)) if isinstance(
        source, list) else ""
    if len(text) > MOST_TEXT or not _NAME.search(text):
        return []
    plain = "\n".join("" if line.lstrip()[:1] in ("%", "!") else line for line in text.split("\n"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # escapes in a student's text
            body = ast.parse(plain).body
    except (*MISTAKES, SyntaxError, RecursionError, MemoryError):
        return []
    out = []
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            match = _NAME.fullmatch(target.id) if isinstance(target, ast.Name) else None
            if match and isinstance(node, ast.Assign):
                out.append((f"{match[1]}.{match[2]}", node.value))
    return out


def told(problems: list[str]) -> str:
    """What could not be read, in a line."""
    more = f", and {len(problems) - 3} more" if len(problems) > 3 else ""
    return "; ".join(problems[:3]) + more


__all__ = ["answer_name", "read_notebook", "told"]
