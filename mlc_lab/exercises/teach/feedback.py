"""What a student is told: a page with each exercise's card as the student had it, and its marks.

The page needs no kernel and no network. Where scripts do not run it has the same as text. All that
a student wrote, names too, stays text.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from ...above import above
from ...language import text
from ...reading import MISTAKES, DataError, MLCError
from ...schedule import Trace
from ..catalogue import get
from ..command import as_text
from .grade import Graded
from .roster import file_name


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
    cards = above("view of an exercise")
    made = []
    for id, result in sorted(one.results.items()):
        variant = get(id, folder).variant(result.seed)
        made.append(cards.kept(variant, shown_answer(one.answers.get(id)), result,
                               solution=solutions))
    told = [text("{points} of {all} points.", "command").format(points=one.points, all=one.of),
            one.problem and text("What was handed in could not be read: {problem}",
                                 "command").format(problem=one.problem),
            one.late and text("It was handed in late.", "command")]
    head = "".join(f"<p>{escape(words)}</p>" for words in told if words)
    return cards.page_of(made, one.student, head)


def shown_answer(answer: Any) -> Any:
    """An answer as a card shows it: a trace is shown as the Python that it stands for."""
    if not (isinstance(answer, dict) and set(answer) == {"trace"}):
        return answer
    try:
        lines = str(Trace.from_json(answer["trace"])).split("\n")
        return "\n".join(line.strip() for line in lines[2:])  # below the head of a function
    except (MLCError, DataError, *MISTAKES, RecursionError):
        return as_text(answer)


__all__ = ["page", "shown_answer", "write_feedback"]
