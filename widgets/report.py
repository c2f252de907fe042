"""The report of a class: marks by check, wrong answers by kind, likenesses, any answer opened.

>>> view = mlc_lab.exercises.class_report("marks")      # doctest: +SKIP
>>> view.show_answer("ada", "03.2")       # in the stepper, beside the reference
>>> view.html("class.html")        # the report as a page, without a kernel

What is shown is made by `mlc_lab.exercises.teach.class_report`. Nothing that a student wrote is
run: an answer is read in a process of its own, and all of its text stays text.
"""

from __future__ import annotations

import threading
from html import escape
from pathlib import Path
from typing import Any

from mlc_lab.exercises.teach.class_report import counts, marks_in, report_of
from mlc_lab.language import text
from mlc_lab.language import told as said
from mlc_lab.workers.pool import Worker

from . import export, picture
from .saved import gzipped
from .static import pre
from .view import View, traitlets

ENTRY = "report.js"
STYLES = ("stepper.css", "report.css")
TABS = ("marks", "students", "wrong", "alike")
_SERVICE = "mlc_lab.exercises.teach.programs"
#: seconds and bytes that an answer may take until it is shown in the stepper
OPEN_S, MEMORY = 30.0, 2 << 30


class ClassReport(View):
    """Shows what a class has answered.

    Traits
    ------
    tab         "marks", "students", "wrong" or "alike".
    chosen      the answer that is looked at, {"exercise": id, "student": number}; empty at first.
    comparison  the answer's schedule beside the reference's, where it was asked for.
    left, right numbers of the steps that are shown of these.
    report      the data, compressed; see `mlc_lab.exercises.teach.class_report`.
    """

    _entry, _styles = ENTRY, STYLES
    _alone = {"live": False, "comparison": {}, "asked": {}, "trouble": ""}

    report = traitlets.Dict().tag(sync=True)
    tab = traitlets.Enum(TABS, TABS[0]).tag(sync=True)
    chosen = traitlets.Dict().tag(sync=True)
    asked = traitlets.Dict().tag(sync=True)
    trouble = traitlets.Unicode("").tag(sync=True)
    comparison = traitlets.Dict().tag(sync=True)
    left = traitlets.Int(0).tag(sync=True)
    right = traitlets.Int(0).tag(sync=True)
    live = traitlets.Bool(True).tag(sync=True)

    def __init__(self, folder: str | Path, own: str | Path | None = None, names: bool = True,
                 title: str = "", **traits: Any) -> None:
        """`folder` has marks that `grade` wrote; see `class_report`."""
        self.folder = own
        self.graded = marks_in(folder)
        self.data = report_of(self.graded, own, title or Path(folder).resolve().name, names)
        super().__init__(report=gzipped(self.data), **traits)

    def show_answer(self, student: str, id: str) -> None:
        """Show an answer in the stepper, beside the reference. Raises ValueError for one that
        there is not, or one that makes no program."""
        names = [one.student for one in self.graded]
        if student not in names:
            raise ValueError(f"there is no student {student!r}")
        self.tab = "wrong"
        self.chosen = {"exercise": id, "student": names.index(student)}
        self._open(self.chosen)
        if self.trouble:
            raise ValueError(self.trouble)

    @traitlets.observe("asked")
    def _open_asked(self, change: Any) -> None:
        """Read the answer from a thread: the kernel goes on answering."""
        threading.Thread(target=self._open, args=(dict(change["new"]),), daemon=True).start()

    def _open(self, wanted: dict[str, Any]) -> None:
        self.comparison, self.trouble = {}, ""
        number, id = wanted.get("student"), wanted.get("exercise")
        one = None
        if isinstance(number, int) and 0 <= number < len(self.graded):
            one = self.graded[number]
        if one is None or id not in one.answers or id not in one.results:
            self.trouble = "there is no such answer"
            return
        worker = Worker(_SERVICE, memory=MEMORY)
        try:
            found = worker.call({
                "do": "compare", "id": id, "seed": one.results[id].seed,
                "answer": one.answers[id], "name": self.data["students"][number]["name"],
                "folder": None if self.folder is None else str(Path(self.folder).resolve())},
                OPEN_S)
        finally:
            worker.close()
        if found["status"] != "ok":
            self.trouble = f"this answer cannot be shown: {found.get('reason', '')}"
            return
        self.left, self.right = (n - 1 for n in found["steps"])
        self.comparison = {**found["comparison"], "of": [id, number]}

    def html(self, path: Any = None) -> str:
        """The report as one HTML page with no kernel; written to `path` if given."""
        values = {**self._values(), **self._alone}
        text = export.write([(values, self._static()[1])], self.data["title"], ENTRY, STYLES)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _static(self) -> tuple[str, str]:
        return told(self.data)

    def _pictures(self) -> list[str]:
        return [drawn(self.data)]


def drawn(report: dict[str, Any]) -> str:
    """The exercises of a report as SVG: how many points were reached on average."""
    of = text("{mean} of {of} points, solved: {solved} of {given}", "views")
    rows = [(f"{exercise['id']} {exercise['title']}", found["mean"] / (exercise["of"] or 1),
             of.format(mean=f"{found['mean']:.1f}", of=exercise["of"], solved=found["solved"],
                       given=found["given"]))
            for exercise, found in zip(report["exercises"], counts(report))]
    return picture.bars(report["title"], rows, most=1.0)


def told(report: dict[str, Any]) -> tuple[str, str]:
    """A report as text, and as HTML that needs no scripts."""
    head = text("{title}: students: {count}", "views")
    lines, texts = [head.format(title=report["title"], count=len(report["students"]))], (
        report["texts"])
    parts = [f"<p><b>{escape(lines[0])}</b></p>"]
    for exercise, found, groups in zip(report["exercises"], counts(report), report["groups"]):
        line = text("{id} {title}: answers: {given}, solved: {solved}, on average {mean} of {of} "
                    "points", "views").format(
            id=exercise["id"], title=exercise["title"], given=found["given"],
            solved=found["solved"], mean=f"{found['mean']:.1f}", of=exercise["of"])
        passed, alike = text("{count} of {all}", "views"), text("{count} wrong in the same way",
                                                                "views")
        rows = [f"  {passed.format(count=f'{count:4}', all=found['given'])}  "
                f"{row['title']}"
                for row, count in zip(exercise["rows"], found["rows"])]
        wrong = ["  " + alike.format(count=len(group["students"])) + (
            f": {said(texts[group['says']], 'checks')}" if group["says"] >= 0 else "")
            for group in groups[:3] if len(group["students"]) > 1]
        lines += [line, *rows, *wrong]
        body = pre("\n".join([*rows, *wrong]))
        parts.append(f"<details><summary>{escape(line)}</summary>{body}</details>")
    return "\n".join(lines), "".join(parts)


def class_report(folder: str | Path, own: str | Path | None = None, names: bool = True,
                 title: str = "") -> ClassReport:
    """The report of a folder that `mlc-lab teach grade` wrote.

    `own`: a teacher's exercises; `names`: whether students have their names, or numbers; `title`:
    by default the name of the folder. Raises DataError where there are no marks.
    """
    return ClassReport(folder, own, names, title)


def write_page(folder: str | Path, out: str | Path, own: str | Path | None = None,
               names: bool = True) -> None:
    """Write the page of a report; it needs no widgets."""
    data = report_of(marks_in(folder), own, Path(folder).resolve().name, names)
    values = {"report": gzipped(data), "tab": TABS[0], "chosen": {}, "wrap": False,
              "left": 0, "right": 0, **ClassReport._alone}
    Path(out).write_text(export.write([(values, told(data)[1])], data["title"], ENTRY, STYLES),
                         encoding="utf-8")


__all__ = ["ClassReport", "class_report", "told", "write_page"]
