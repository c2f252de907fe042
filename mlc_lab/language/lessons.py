"""Lessons in another language: the text of their cells block by block, their code as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from . import text

_FENCE = re.compile(r"\s*(```|~~~)")
#: where the pages of lessons are on the site; those of a language are in a folder of its name
_SITE = "https://mlc-lab.github.io/mlc-lab/"
#: blocks that say the same in every language: code, formulas, pictures, HTML without words
_WORDLESS = re.compile(r"\s*(```|~~~|\$\$|!\[[^\]]*\]\([^)]*\)\s*$|<[^>]*>\s*$)")


def blocks(markdown: str) -> list[str]:
    """Paragraphs, headings, lists and tables of a text: what blank lines part, except in code.
    Joined by a blank line they are the text again."""
    out: list[list[str]] = [[]]
    fenced = False
    for line in markdown.strip("\n").split("\n"):
        if _FENCE.match(line):
            fenced = not fenced
        if line.strip() or fenced:
            out[-1].append(line)
        elif out[-1]:
            out.append([])
    return ["\n".join(lines) for lines in out if lines]


def has_words(block: str) -> bool:
    """Whether there is something to translate in a block."""
    return not _WORDLESS.match(block) and bool(re.search(r"[A-Za-z]{2}", block))


def source_of(cell: Mapping[str, Any]) -> str:
    """The source of a cell, which files have as a text or as its lines."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def messages(notebook: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(the id of the cell, a block with words) of each that a notebook has."""
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "markdown":
            for block in blocks(source_of(cell)):
                if has_words(block):
                    yield str(cell.get("id", number)), block


def in_language(notebook: Mapping[str, Any], name: str, language: str) -> dict[str, Any]:
    """A notebook, whose file has a name without its ending, in a language. All but the text of
    Markdown cells is the same object."""
    cells = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            made = "\n\n".join(text(block, name, language) if has_words(block) else block
                               for block in blocks(source_of(cell)))
            if language != "en":
                made = made.replace(f"{_SITE}notebooks/", f"{_SITE}{language}/notebooks/")
            cell = {**cell, "source": made}
        cells.append(cell)
    return {**notebook, "cells": cells}


__all__ = ["blocks", "has_words", "in_language", "messages", "source_of"]
