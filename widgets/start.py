"""The start page: the lessons, their durations and what is done, what is installed, the machine.

>>> from mlc_lab_widgets import course       # doctest: +SKIP
>>> course()                                 # in notebooks/00_start_here.ipynb
>>> course(done=[3])                         # lesson 3 is done, say I
>>> course(undone=[3])

A lesson is done when all its cells were run, as its saved file says, or when the reader says so.
That is kept in a file of the user's (`progress_file`), so that it stays when outputs are cleared.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from mlc_lab.language import text
from mlc_lab.machine.caches import cache_bytes, size_text
from mlc_lab.machine.peak import peak
from mlc_lab.machine.vectors import vector_bits
from mlc_lab.observe import doctor

#: of a reader: words a minute, minutes for a line of code, for running a cell, and for an exercise
WORDS, LINE, CELL, EXERCISE = 150, 0.1, 0.5, 5

def parts() -> tuple[tuple[str, str, str], ...]:
    """What is used where it is there: its import or command, what for, and how to get it."""
    return (
        ("torch", text("lessons 11 and 23, models from PyTorch", "views"),
         "pip install torch"),
        ("onnx", text("models from ONNX files", "views"),
         "pip install onnx"),
        ("sklearn", text("the cost model of a search, lessons 9 and 10", "views"),
         "pip install 'mlc-lab[tune]'"),
        ("matplotlib", text("charts, and pictures as PNG", "views"),
         "pip install matplotlib"),
        ("graphviz", text("graphs in the DOT language", "views"),
         "pip install graphviz"),
        ("dot", text("layout of large graphs; a built-in one without it", "views"),
         text("install Graphviz of the system", "views")),
        ("cc", text("shared libraries of what was compiled", "views"),
         text("install a C compiler of the system", "views")),
    )


@dataclass
class Lesson:
    """A notebook of the course."""

    number: int
    path: Path
    title: str
    minutes: int
    needs: tuple[str, ...]
    was_run: bool


#: characters of Chinese that are read in the time of one English word
CHARACTERS = 1.6
_CHINESE = re.compile("[\u3400-\u9fff]")
#: these, and the punctuation of Chinese
_WIDE = re.compile("[\u3000-\u9fff\uff00-\uffef]")


def words_of(text: str) -> float:
    """The words of a text; Chinese, which has no spaces between words, by its characters."""
    return len(_WIDE.sub(" ", text).split()) + len(_CHINESE.findall(text)) / CHARACTERS


def minutes(cells: Sequence[dict[str, Any]]) -> int:
    """How long a lesson takes: reading its text and code, running its cells, and the exercises of a
    numbered list; to the next five minutes. The card of an exercise says its own time."""
    total = 0.0
    for cell in cells:
        text = "".join(cell["source"])
        if cell["cell_type"] == "code":
            total += CELL + LINE * sum(bool(line.strip()) for line in text.splitlines())
            continue
        total += words_of(text) / WORDS
        asked = re.search(r"^#+ (?:Exercises|练习)$(.*?)(?=^#|^<details>|\Z)", text, re.M | re.S)
        if asked:  # not their answers, which stand behind them
            total += EXERCISE * len(re.findall(r"^\d+\. ", asked[1], re.M))
    return 5 * math.ceil(total / 5)


def read(path: Path) -> Lesson:
    """A lesson from its file. Raises ValueError for a file that is no notebook."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    title = re.sub(r"^#\s*\d+\.\s*", "", "".join(cells[0]["source"]).split("\n")[0])
    code = [cell for cell in cells if cell["cell_type"] == "code" and "".join(cell["source"])]
    text = "\n".join("".join(cell["source"]) for cell in code)
    needs = tuple(name for name, *_ in parts() if re.search(rf"^%%needs .*\b{name}\b", text, re.M))
    was_run = bool(code) and all(
        cell.get("execution_count") and not any(
            out.get("output_type") == "error" for out in cell.get("outputs", ()))
        for cell in code)
    return Lesson(int(path.name[:2]), path, title, minutes(cells), needs, was_run)


def lessons(folder: Path) -> list[Lesson]:
    """The lessons of a folder, in order; a file that cannot be read is left out."""
    found = []
    for path in sorted(folder.glob("[0-9][0-9]_*.ipynb")):
        try:
            lesson = read(path)
        except (OSError, ValueError, KeyError, IndexError, TypeError):
            continue
        if lesson.number:
            found.append(lesson)
    return found


def progress_file() -> Path:
    """The file of the user's that says which lessons are done."""
    from jupyter_core.paths import jupyter_data_dir

    return Path(jupyter_data_dir()) / "mlc-lab" / "course.json"


def _load() -> set[int]:
    try:
        found = json.loads(progress_file().read_text(encoding="utf-8"))
        return {int(n) for n in found["done"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _save(done: set[int]) -> str:
    """Keep what is done; why that could not be, or ""."""
    try:
        path = progress_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"done": sorted(done)}), encoding="utf-8")
    except OSError as error:
        return text("What is done could not be kept: {error}", "views").format(error=error)
    return ""


def present(name: str) -> bool:
    """Whether a part is there: a package, or a command."""
    if name == "cc":
        return any(map(shutil.which, ("cc", "gcc", "clang")))
    return bool(shutil.which(name) if name == "dot" else importlib.util.find_spec(name))


def machine() -> list[tuple[str, str]]:
    """Facts of this machine, each with what it is; the peak is measured, in a tenth of a second."""
    found = doctor.cpu()
    facts = [(text("processor", "views"), text("{name}, {usable} of {all} cores", "views").format(
                 name=found["name"], usable=found["cores_usable"], all=found["cores"])),
             (text("vectors", "views"), text("{bits} bits: {lanes} numbers of float32", "views")
              .format(bits=vector_bits(), lanes=vector_bits() // 32)),
             (text("caches", "views"),
              ", ".join(f"{n} {size_text(size)}" for n, size in cache_bytes().items()))]
    try:
        facts.append((text("peak of one core", "views"),
                      text("{speed} GFLOP/s in float32", "views").format(
                          speed=f"{peak('float32') / 1e9:.0f}")))
    except Exception as error:  # a start page opens also where nothing can be compiled
        facts.append((text("peak of one core", "views"),
                      text("not measured: {why}", "views").format(why=error)))
    return facts


class Course:
    """The start page as text and HTML. `lessons`, `done` (numbers), `parts`, `machine` are its
    data."""

    def __init__(self, folder: Path, done: set[int], note: str = "") -> None:
        self.folder, self.done, self.note = folder, done, note
        self.lessons = lessons(folder)
        self.parts = [(name, use, how, present(name)) for name, use, how in parts()]
        self.machine = machine()

    def next(self) -> Lesson | None:
        """The first lesson that is not done."""
        return next((one for one in self.lessons if one.number not in self.done), None)

    def _states(self) -> list[tuple[Lesson, str]]:
        """What is said of each lesson."""
        missing = {name for name, _, _, there in self.parts if not there}
        out = []
        for one in self.lessons:
            said = (text("✓ done", "views") if one.number in self.done
                    else text("→ next", "views") if one is self.next() else "")
            lacks = [text("needs {name}, which is not installed", "views").format(name=name)
                     for name in one.needs if name in missing]
            out.append((one, "; ".join(filter(None, (said, *lacks)))))
        return out

    def _repr_html_(self) -> str:
        def table(head: str, rows: Iterable[str]) -> str:
            return (f"<h3>{head}</h3><table style=\"text-align:left\"><tbody>{''.join(rows)}"
                    "</tbody></table>")

        def row(*cells: str) -> str:
            left = ' style="text-align:left;vertical-align:top"'
            return f"<tr>{''.join(f'<td{left}>{cell}</td>' for cell in cells)}</tr>"

        left = sum(one.minutes for one in self.lessons if one.number not in self.done)
        done = len(self.done & {n.number for n in self.lessons})
        if left:
            head = text("{done} of {all} lessons are done; what is left takes about {hours} hours",
                        "views").format(done=done, all=len(self.lessons), hours=f"{left / 60:.1f}")
        else:
            head = text("{done} of {all} lessons are done", "views").format(
                done=done, all=len(self.lessons))
        course = [row(f"<b>{one.number}</b>",
                      f'<a href="{escape(one.path.name)}">{escape(one.title)}</a>',
                      text("{minutes} min", "views").format(minutes=one.minutes), escape(said))
                  for one, said in self._states()]
        parts = [row(f"{'✓' if there else '✕'} <b>{escape(name)}</b>", escape(use),
                     text("installed", "views") if there else f"<code>{escape(how)}</code>")
                 for name, use, how, there in self.parts]
        facts = [row(f"<b>{escape(name)}</b>", escape(fact)) for name, fact in self.machine]
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return (table(head, course) + note + table(text("Optional parts", "views"), parts)
                + table(text("This machine", "views"), facts))

    def __repr__(self) -> str:
        rows = [f"{one.number:3}  {one.title:<58.58} {one.minutes:4} min  {said}".rstrip()
                for one, said in self._states()]
        rows += [f"{'+' if there else '-'} {name}: {use}{'' if there else f' ({how})'}"
                 for name, use, how, there in self.parts]
        rows += [f"{name}: {fact}" for name, fact in self.machine]
        return "\n".join([*rows, *filter(None, [self.note])])


def course(done: Iterable[int] = (), undone: Iterable[int] = (), folder: Any = None) -> Course:
    """The start page of the lessons in a folder, by default that of the notebook.

    `done` and `undone` are numbers of lessons that the reader says are done, or not.
    """
    where = Path(folder or os.getcwd())
    now = _load()
    ran = {one.number for one in lessons(where) if one.was_run}
    kept = (now | ran | set(done)) - set(undone)
    return Course(where, kept, _save(kept) if kept != now else "")


__all__ = ["Course", "Lesson", "course", "lessons", "minutes", "progress_file"]
