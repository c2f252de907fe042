"""Joins the JavaScript modules of a view into one, for hosts that can load only one.

The files in `js/` are ordinary modules that import each other by relative path. A notebook widget
and an exported page get a single text: the modules in the order they need each other, with the
imports between them, the word `export`, comments and indentation taken away (a notebook stores the
text once for every view). So top-level names must be distinct across
files (a test checks that), imports name what they import, and nothing else has to be built.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "js"
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w-]+\.js)";\n', re.M)
_EXPORT = re.compile(r"^export (?=function|class|const|async function)", re.M)
_COMMENT = re.compile(r"^[ \t]*(?://.*|/\*\*?(?:[^*]|\*(?!/))*\*/)[ \t]*\n", re.M)
_DEFAULT = re.compile(r"^export default .*;\n", re.M)


def modules(entry: str) -> list[str]:
    """Names of the files a view consists of, each after those it imports."""
    ordered: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            circle = " -> ".join([*above, name])
            raise ValueError(f"modules import each other in a circle: {circle}")
        if name in ordered:
            return
        for other in _IMPORT.findall((FOLDER / name).read_text(encoding="utf-8")):
            visit(other, (*above, name))
        ordered.append(name)

    visit(entry, ())
    return ordered


def _smaller(text: str) -> str:
    """A module without lines that are comments, and without indentation where no text needs it."""
    text = _COMMENT.sub("", text)
    if any(line.count("`") % 2 for line in text.split("\n")):  # a text that goes over lines
        return text
    return re.sub(r"^[ \t]+", "", text, flags=re.M)


@lru_cache(maxsize=None)
def script(entry: str = "stepper.js", default: bool = True) -> str:
    """One module's text for a view. `default=False` leaves out its `export default`."""
    parts = []
    for name in modules(entry):
        text = _smaller((FOLDER / name).read_text(encoding="utf-8"))
        text = _EXPORT.sub("", _IMPORT.sub("", text))
        if not default or name != entry:
            text = _DEFAULT.sub("", text)
        parts.append(text)
    return "\n".join(parts)


@lru_cache(maxsize=None)
def style(name: str = "stepper.css") -> str:
    """Text of a style sheet."""
    return (FOLDER / name).read_text(encoding="utf-8")
