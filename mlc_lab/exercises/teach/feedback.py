"""What a student is told: a page of HTML without scripts, with each row, and what was wrong."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from ..catalogue import get
from ..result import Result, Row
from .grade import Graded, file_name

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; } pre { overflow-x: auto; padding: .75rem; border: 1px solid #8886;
border-radius: 4px; font-size: 14px; } li { margin: .5rem 0; } .mark { font-weight: 600; }
.no { color: light-dark(#a11, #f99); } .yes { color: light-dark(#176317, #8d8); }
details summary { cursor: pointer; }
"""


def write_feedback(graded: Iterable[Graded], out: str | Path, folder: str | Path | None = None,
                   solutions: bool = False) -> list[Path]:
    """Write a page for each student into a folder; with `solutions` they have the reference too."""
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for one in graded:
        path = out / file_name(one.student).replace(".json", ".html")
        path.write_text(page(one, folder, solutions), encoding="utf-8")
        written.append(path)
    return written


def page(one: Graded, folder: str | Path | None = None, solutions: bool = False) -> str:
    """The page of a student."""
    parts = [f"<h1>{escape(one.student)}</h1>",
             f"<p>{one.points} of {one.of} points.</p>"]
    if one.problem:
        parts.append(f"<p class='no'>What was handed in could not be read: "
                     f"{escape(one.problem)}</p>")
    for id, result in sorted(one.results.items()):
        variant = get(id, folder).variant(result.seed)
        parts.append(f"<h2>{escape(id)} {escape(variant.exercise.title)}: "
                     f"{result.points} of {result.of}</h2>")
        parts.append(f"<details><summary>What was asked</summary><pre>"
                     f"{escape(variant.statement)}</pre></details>")
        if id in one.answers:
            parts.append(f"<details open><summary>The answer</summary><pre>"
                         f"{escape(_text(one.answers[id]))}</pre></details>")
        parts.append(_rows(result))
        if solutions:
            parts.append(f"<details><summary>A solution</summary><pre>"
                         f"{escape(_text(variant.reference))}</pre></details>")
    return ("<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
            "<meta name='viewport' content='width=device-width'>"
            f"<title>{escape(one.student)}: exercises</title><style>{_STYLE}</style></head><body>"
            + "\n".join(parts) + "</body></html>\n")


def _text(answer: Any) -> str:
    import json

    return answer.strip("\n") if isinstance(answer, str) else json.dumps(answer, indent=1)


def _rows(result: Result) -> str:
    if result.error:
        line = f"line {result.error['line']}: " if result.error.get("line") else ""
        hint = f"<p>{escape(result.error['hint'])}</p>" if result.error.get("hint") else ""
        return f"<p class='no'>{escape(line + result.error['message'])}</p>{hint}"
    return "<ul>" + "".join(map(_row, result.rows)) + "</ul>"


def _row(row: Row) -> str:
    mark = ("yes", "reached") if row.passed else ("no", "not reached")
    text = row.place.get("text")
    return (f"<li><span class='mark {mark[0]}'>{mark[1]}, {row.points} of {row.of}:</span> "
            f"{escape(row.title)}<br>{escape(row.says)}"
            + (f"<pre>{escape(text)}</pre>" if text else "") + "</li>")


__all__ = ["page", "write_feedback"]
