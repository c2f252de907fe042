"""An exercise as a card: what is asked, a place for the answer, and marks row by row.

>>> card = mlc_lab.exercises.exercise("03.2", seed="ada")     # doctest: +SKIP
>>> card.check(sch)                # a Schedule of the notebook's; or what stands in the card
>>> card.workbench()               # or click: the schedule made there is the answer in the card
>>> card.stepper()                 # where a step is asked for: the one that it shows
>>> card.result                    # the marks
>>> card.html("page.html")         # the card as it is, without a kernel

Answers are data: they are read and not run (`mlc_lab.exercises`), checked in a process of its own,
and kept with what they reached in a file of the user's.
"""

from __future__ import annotations

import contextlib
import re
import threading
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from mlc_lab.exercises import ExerciseError, Result, book
from mlc_lab.exercises.answers import AnswerError, as_data, read
from mlc_lab.exercises.command import as_text
from mlc_lab.exercises.judge import check, unread, watch
from mlc_lab.exercises.result import Row, told_error
from mlc_lab.ir.diagnostics import MLCError
from mlc_lab.language import filled, text, told
from mlc_lab.observe.graph import Graph
from mlc_lab.observe.workbench import Workbench as Attempts

from . import export, picture
from .graph import GraphView
from .static import pre
from .stepper import Stepper
from .view import View, traitlets
from .workbench import Workbench

ENTRY = "card.js"
STYLES = ("stepper.css", "access.css", "card.css")


class Card(View):
    """Shows a variant of an exercise, takes an answer and says what is right about it.

    Traits
    ------
    task     what is asked: "id", "title", "level", "minutes", "statement", "program", "kind",
             "fields", "rows" (each title with its points), "before" (what was reached before).
    answer   {"value", "n"}: a text, or values of fields by name; with each change `n` is larger.
    asked    the number of the answer that is to be checked.
    marks    the marks, as `Result.to_dict` gives them with the number "n" of their answer.
    wanted   hints that are asked for, 0 to 3; 4 is the solution, once it is solved or given up.
    hints    those that were given, and the solution.
    busy     whether an answer is being checked.
    coming   while it is: the rows that are known, as in `marks`, and the "n" of their answer.
    live     whether there is a Python that checks.
    look     the row of the marks whose accesses are asked for: {"row": number, "n": count}.
    opener   the view that is asked for in the card: {"what": "workbench" or "stepper", "n"}.
    opened   the view that was made for it, {"model": its id, "n"}, or a "message": why not.
    watched  accesses of the answer, as the access view draws them, with the "position" of the one
             that is at fault; or the "model" of a view of a graph, with the node that is; or a
             "message"; and the "n" of what was asked.
    rules    "cost": points that a hint costs, "solution": whether a solution may be shown.
    """

    _entry, _styles = ENTRY, STYLES
    _alone = {"busy": False, "coming": {}, "live": False, "look": {}, "watched": {},
              "opener": {}, "opened": {}}

    task = traitlets.Dict().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)
    asked = traitlets.Int(0).tag(sync=True)
    marks = traitlets.Dict().tag(sync=True)
    wanted = traitlets.Int(0).tag(sync=True)
    hints = traitlets.List().tag(sync=True)
    busy = traitlets.Bool(False).tag(sync=True)
    coming = traitlets.Dict().tag(sync=True)
    live = traitlets.Bool(True).tag(sync=True)
    rules = traitlets.Dict().tag(sync=True)
    look = traitlets.Dict().tag(sync=True)
    watched = traitlets.Dict().tag(sync=True)
    opener = traitlets.Dict().tag(sync=True)
    opened = traitlets.Dict().tag(sync=True)

    def __init__(self, variant: Any, folder: Any = None, hint_cost: int = 0, solution: bool = True,
                 **traits: Any) -> None:
        """`variant` is a `mlc_lab.exercises.Variant`, of a teacher's folder if one is given; for
        the others see `exercise`."""
        self.source, self.folder = variant, folder
        self._result: Result | None = None
        self._inside: View | None = None  # what was opened in the card
        self._checked: Any = ""  # the answer that has these marks
        traits.setdefault("rules", {"cost": hint_cost, "solution": solution})
        book.ruled(variant.exercise.id, variant.seed, hint_cost, solution)  # for the terminal
        kept = book.load().entries.get(variant.exercise.id)
        known = kept if kept is not None and kept.seed == variant.seed else None
        start: Any = {} if variant.exercise.kind == "prediction" else ""
        if known is not None and isinstance(known.answer, type(start)):
            start = known.answer
        super().__init__(task=task_of(variant, known), answer={"value": start, "n": 0}, **traits)

    # ------------------------------------------------------------------------- from Python

    @property
    def result(self) -> Result | None:
        """The marks of the answer that was checked last."""
        return self._result

    def check(self, answer: Any = None) -> Result:
        """Check an answer, by default the one in the card, and show its marks there."""
        value = self.answer["value"] if answer is None else answer
        if answer is not None:
            try:
                data = as_data(self.source.exercise.kind, answer)
            except AnswerError as error:
                return self._show(unread(self.source, error), self.answer["n"])
            if not isinstance(data, dict) or "trace" not in data:
                self.answer = {"value": _shown(self.source, data), "n": self.answer["n"] + 1}
            value = data
        n = self.answer["n"]

        def came(row: Row) -> None:
            self.coming = {"n": n, "rows": [*self.coming["rows"], _row(asdict(row))]}

        self.coming = {"n": n, "rows": []}
        self.busy = True
        try:
            found = check(self.source.exercise.id, value, self.source.seed, self.folder, came)
            if not found.error:
                book.keep(found, value)
            self._checked = value
            return self._show(found, n)
        finally:
            self.busy = False

    def workbench(self) -> Workbench:
        """The workbench on the exercise's program. Where it stands is the answer in the card: it
        begins at the schedule that is written there, if that can be read.

        Raises ExerciseError where the answer is no schedule.
        """
        if self.source.exercise.kind != "schedule":
            raise ExerciseError(f"the answer of {self.source.exercise.id} is no schedule: it is "
                                f"a {self.source.exercise.kind}")
        bench = Attempts(self.source.program, title=self.task["id"])
        written = self.answer["value"]
        if isinstance(written, str) and written.strip():
            # as far as it goes: what cannot be read, or is refused, is clicked anew
            with contextlib.suppress(MLCError):
                bench.load_python(written)

        def take() -> None:
            self.answer = {"value": bench.python(program=False), "n": self.answer["n"] + 1}

        bench.listeners.append(take)
        return Workbench(bench)

    def stepper(self) -> Stepper:
        """The stepper on the schedule that a prediction is about. The step that it shows is the
        answer in the card.

        Raises ExerciseError where nothing is asked about the steps of a schedule.
        """
        field = next((f for f in self.source.fields if f.picture and f.picture.source), None)
        if field is None:
            raise ExerciseError(f"{self.source.exercise.id} asks nothing about steps")
        places = field.picture.places
        chosen = self.answer["value"].get(field.name)
        view = Stepper(field.picture.source,
                       step=places.index(chosen) + 1 if chosen in places else 0)

        def take(step: int) -> None:
            value = {**self.answer["value"], field.name: places[step - 1] if step else None}
            self.answer = {"value": value, "n": self.answer["n"] + 1}

        view.on_step(take)
        return view

    def _show(self, found: Result, n: int) -> Result:
        self._result = found
        self.marks = {**_marks(found), "n": n}
        return found

    # ------------------------------------------------------------------------- what the page asks

    @traitlets.observe("asked")
    def _check_asked(self, change: Any) -> None:
        """Check from a thread: the kernel goes on answering."""
        threading.Thread(target=self.check, daemon=True).start()

    @traitlets.observe("wanted")
    def _hint(self, change: Any) -> None:
        wanted = min(change["new"], 4 if self.rules["solution"] else 3)
        texts = self.source.hints[:wanted]
        if wanted > 3:
            texts = [*texts, as_text(self.source.reference)]
        if wanted > 0 and not self._solved():
            book.hinted(self.source.exercise.id, wanted)
        self.hints = texts

    @traitlets.observe("opener")
    def _open(self, change: Any) -> None:
        """Make a view that the page then shows in the card; the one before it is closed."""
        if self._inside is not None:
            self._inside.close()
            self._inside = None
        what, n = change["new"].get("what"), change["new"].get("n")
        try:
            self._inside = self.stepper() if what == "stepper" else self.workbench()
            self.opened = {"model": self._inside.model_id, "n": n}
        except MLCError as error:
            self.opened = {"message": str(error), "n": n}

    @traitlets.observe("look")
    def _look_asked(self, change: Any) -> None:
        threading.Thread(target=self._watch, args=(dict(change["new"]),), daemon=True).start()

    def _watch(self, look: dict[str, Any]) -> None:
        """Watch the program of the answer that was checked last."""
        rows, number = self.marks.get("rows") or [], look.get("row")
        if not isinstance(number, int) or not 0 <= number < len(rows):
            return
        place = {k: v for k, v in rows[number].get("place", {}).items() if k != "text"}
        found = watch(self.source.exercise.id, self._checked, place, self.source.seed, self.folder)
        if "graph" in found:
            view = GraphView(Graph.from_dict(found["graph"]), selected=found["selected"])
            found = {"model": view.model_id}
        self.watched = {**found, "n": look.get("n")}

    def _solved(self) -> bool:
        """Whether all points were reached, now or before."""
        before = self.task["before"] or {"points": 0, "of": 1}
        return before["points"] == before["of"] or bool(self._result and self._result.solved)

    # ------------------------------------------------------------------------- without a kernel

    def html(self, path: Any = None) -> str:
        """The card with its answer and marks as one HTML file; written to `path` if given."""
        values = {**self._values(), **self._alone}
        made = export.write([(values, self._static()[1])],
                            f"{self.task['id']} {self.task['title']}", ENTRY, STYLES)
        if path is not None:
            Path(path).write_text(made, encoding="utf-8")
        return made

    def _static(self) -> tuple[str, str]:
        return _told(self.task, self.answer["value"], self._result)

    def _pictures(self) -> list[str]:
        return [_picture(self.task, self._result)]


def _prose(markdown: str) -> str:
    """A statement as HTML: paragraphs, lists whose items begin with "- ", and programs between
    lines of three backquotes."""
    parts: list[str] = []
    for at, piece in enumerate(re.split(r"^```\w*\n(.*?)^```$", markdown, flags=re.M | re.S)):
        if at % 2:
            parts.append(pre(piece))
            continue
        for part in filter(None, re.split(r"\n\s*\n", piece.strip())):
            items = re.split(r"\n(?=- )", part) if part.startswith("- ") else []
            listed = "".join(f"<li>{_words(item[2:])}</li>" for item in items)
            parts.append(f"<ul>{listed}</ul>" if items else f"<p>{_words(part)}</p>")
    return "".join(parts)


def _words(markdown: str) -> str:
    """A text with its code marked."""
    return re.sub(r"`([^`\n]*)`", r"<code>\1</code>", escape(markdown))


def _told(task: dict[str, Any], value: Any, result: Result | None) -> tuple[str, str]:
    """A card as text, and as HTML that needs no scripts."""
    head = f"{task['id']} {task['title']}"
    marks = str(result) if result is not None else ""
    answer = as_text(value) if value else ""
    parts = [f"<details open><summary><b>{escape(head)}</b></summary>",
             _prose(task["statement"])]
    for title, said in ((text("The program:", "views"), task["program"]),
                        (text("The answer:", "views"), answer),
                        (text("The marks:", "views"), marks)):  # fmt: skip
        if said:
            parts.append(f"<p>{title}</p>{pre(said)}")
    told = "\n\n".join(filter(None, (head, task["statement"], task["program"], answer, marks)))
    return told, "".join(parts) + "</details>"


def _picture(task: dict[str, Any], result: Result | None) -> str:
    """A card as SVG: its program, and its checks with their points."""
    points = [row["points"] for row in _marks(result)["rows"]] if result is not None else []
    rows = [(row["title"], points[n] if n < len(points) else None, row["of"])
            for n, row in enumerate(task["rows"])]
    return picture.task(f"{task['id']} {task['title']}", task["program"].splitlines(), rows)


def task_of(variant: Any, known: Any) -> dict[str, Any]:
    """What is asked, as plain data; nothing of it says how it is solved."""
    one = variant.exercise
    outdated = known is not None and known.outdated(one.id)
    return {
        "id": one.id, "title": variant.title, "level": one.level, "minutes": one.minutes,
        "statement": variant.statement, "kind": one.kind, "seed": variant.seed,
        "program": variant.program.script() if variant.program is not None else "",
        "fields": [_field(f) for f in variant.fields],
        "rows": [{"title": filled(check.title, "exercises"), "of": check.points}
                 for check in variant.checks],
        "before": {"points": known.points, "of": known.of}
                  if known is not None and not outdated else None,
        "outdated": outdated,
    }  # fmt: skip


def _field(field: Any) -> dict[str, Any]:
    """A place of a prediction, as plain data."""
    drawn = field.picture
    made = {"name": field.name, "question": filled(field.question, "exercises"),
            "kind": field.kind, "choices": list(field.choices),
            "said": [filled(choice, "exercises") for choice in field.choices]}  # fmt: skip
    if drawn is None:
        return made
    view = {"view": "stepper"} if drawn.source is not None else {}
    return {**made, "picture": {"kind": drawn.kind, **drawn.data}, **view}


def exercise(id: str, seed: int | str = 0, folder: Any = None, hint_cost: int = 0,
             solution: bool = True) -> Card:
    """The card of an exercise. Raises ExerciseError for one that there is not.

    `hint_cost`: points that a hint costs, which the card says and grading takes; `solution`:
    whether the card shows one.
    """
    from mlc_lab.exercises import get

    return Card(get(id, folder).variant(seed), folder, hint_cost, solution)


# ------------------------------------------------------------------------- cards that were graded


def kept(variant: Any, answer: Any, result: Result, solution: bool = False
         ) -> tuple[dict[str, Any], str]:
    """A card with an answer and its marks, for `page_of`: values, and a form without scripts."""
    task = task_of(variant, None)
    hints = [*variant.hints, as_text(variant.reference)] if solution else []
    if variant.exercise.kind == "prediction":
        value: Any = _shown(variant, answer)
    else:
        value = answer if isinstance(answer, str) else "" if answer is None else as_text(answer)
    values = {"task": task, "answer": {"value": value, "n": 0}, "asked": 0, "wanted": 0,
              "marks": {**_marks(result), "n": 0}, "hints": hints, "wrap": False,
              "rules": {"cost": 0, "solution": True}, **Card._alone}
    told = _told(task, answer, result)[1]
    if solution:
        told += f'<p>{text("A solution:", "views")}</p>{pre(hints[3])}'
    return values, told


def _marks(result: Any) -> dict[str, Any]:
    """Marks as plain data, in the reader's language."""
    found = result.to_dict()
    return {**found, "rows": [_row(row) for row in found["rows"]],
            "error": found["error"] and told_error(found["error"])}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the marks, in the reader's language."""
    return {**row, "title": filled(row["title"], "exercises"), "says": told(row["says"], "checks")}


def _shown(variant: Any, answer: Any) -> Any:
    """An answer as the card shows it: of a prediction the values that its fields can show."""
    if variant.exercise.kind != "prediction":
        return answer
    try:
        found = read(variant, answer).values
        return {name: value for name, value in (found or {}).items() if value is not None}
    except AnswerError:
        pass
    if not isinstance(answer, dict):
        answer = {variant.fields[0].name: answer}
    kinds = {"number": (int, float), "choice": str, "several": list, "order": list, "marks": list}
    found = {f.name: answer.get(f.name) for f in variant.fields
             if isinstance(answer.get(f.name), kinds[f.kind])}
    return {name: [str(item) for item in value] if isinstance(value, list) else value
            for name, value in found.items()}


def page_of(cards: list[tuple[dict[str, Any], str]], title: str, head: str = "") -> str:
    """Cards on one page without a kernel; `head` is HTML that stands above them."""
    made = export.write(cards, title, ENTRY, STYLES)
    return made.replace("</h1>", "</h1>" + head, 1)


__all__ = ["Card", "exercise", "kept", "page_of", "task_of"]
