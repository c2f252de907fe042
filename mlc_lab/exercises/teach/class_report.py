"""What a class has answered, as plain data: marks by check, wrong answers by kind, likenesses.

    title      text
    exercises  [{"id", "title", "kind", "of", "rows": [{"title", "of"}, ...]}, ...]
    students   [{"name", "note"}, ...]
    texts      [text, ...]                        each once; the numbers below that are named so are
                                                  indices into it, -1 for none
    answers    by exercise, by student: null for none, or
               {"points", "seed", "text", "error", "group", "rows": [[points, passed, says, place],
               ...]}, of which `text`, `error`, `says` and `place` are texts; `group`: its number
    groups     by exercise, the largest first: {"students": [number, ...], "points", "text",
               "program", "right", "reference", "failed": [number of a row, ...], "says"}: wrong
               answers that are of one shape; what is shown is that of the first student
    alike      [{"students": [one, other], "exercises": [id, ...], "same": [id, ...]}, ...]: pairs
               that share two wordings or more which few have, or one which nobody else has, the
               most first; `same`: letter by letter
    unread     how many groups are by text alone, since only the programs of the largest were made

Wrong answers are of one group where the same rows failed and the programs that they make are of
one shape (`forms.py`); where they make none, the texts are. A likeness is a reason to look and no
proof: short answers are alike by themselves, so wordings that are short, those of the reference
and of typical mistakes, and those that many have do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from ...language import filled, text, told
from ...reading import DataError
from ...workers.pool import Worker, WorkerPool, usable_cpus
from ..catalogue import get
from ..command import as_text
from ..result import Result, told_error
from .collect import LIST
from .feedback import shown_answer
from .forms import shape, shape_of_values, wording
from .grade import Graded, read_graded

#: groups whose programs are made, seconds for each, bytes of memory of what makes them
MOST_LOOKED_AT, LOOK_S, MEMORY = 200, 60.0, 2 << 30
#: words of a wording that can be a likeness, pairs that are listed
LEAST_WORDS, MOST_PAIRS = 50, 200
#: characters of a text that is kept
MOST_TEXT = 20_000

_SERVICE = f"{__package__}.programs"


def marks_in(folder: str | Path) -> list[Graded]:
    """The marks in a folder that `grade` wrote, by student. Raises DataError where there are none,
    which says what to do."""
    if (Path(folder) / LIST).is_file():
        raise DataError(f"{folder} has what was collected; grade it first:  "
                        f"mlc-lab teach grade {folder} -o marks")
    return read_graded(folder)


class _Texts:
    """Texts, each once."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._at: dict[str, int] = {}

    def add(self, said: str) -> int:
        if not said:
            return -1
        if len(said) > MOST_TEXT:
            said = f"{said[:MOST_TEXT]}\n... and {len(said) - MOST_TEXT:,} characters more"
        said = said.encode("utf-8", "replace").decode()
        if said not in self._at:
            self._at[said] = len(self.all)
            self.all.append(said)
        return self._at[said]


def report_of(graded: Sequence[Graded], folder: str | Path | None = None,
              title: str = "The class", names: bool = True) -> dict[str, Any]:
    """The report of all marks in a folder; see the head of this file.

    Parameters
    ----------
    folder : a teacher's folder of exercises.
    names : whether students have their names; without they are numbered.

    Raises DataError where there are no marks, ExerciseError for an exercise that there is not.
    """
    if not graded:
        raise DataError("there are no marks: grade the answers first")
    students = sorted(graded, key=lambda one: one.student)
    ids = sorted({id for one in students for id in one.results})
    texts = _Texts()
    shown = [{id: shown_answer(answer) for id, answer in one.answers.items()} for one in students]
    groups = {id: _groups(id, students, shown) for id in ids}
    with _Looks(groups, students, folder) as asked:  # while others read, likenesses are found
        likenesses = alike(students, shown, folder)
        looks = asked.found()
    out: dict[str, Any] = {
        "title": title, "exercises": [_exercise(id, students, folder) for id in ids],
        "students": [{"name": one.student if names else f"student {n + 1}",
                      "note": _note(one) if names else ""}
                     for n, one in enumerate(students)],
        "answers": [], "groups": [], "unread": 0,
    }
    for id in ids:
        merged, unread = _merged(groups[id], looks, id, students, texts)
        out["groups"].append(merged)
        out["unread"] += unread
        group_of = {n: number for number, group in enumerate(merged) for n in group["students"]}
        out["answers"].append([
            _answer(one, id, shown[n].get(id), group_of.get(n, -1), texts, names)
            for n, one in enumerate(students)])
    out["alike"], out["texts"] = likenesses, texts.all
    return out


def _exercise(id: str, students: Iterable[Graded], folder: Any) -> dict[str, Any]:
    one = get(id, folder)
    rows = next((r.results[id].rows for r in students if id in r.results), [])
    return {"id": id, "title": text(one.title, "exercises"), "kind": one.kind,
            "of": sum(row.of for row in rows),
            "rows": [{"title": filled(row.title, "exercises"), "of": row.of} for row in rows]}


def _note(one: Graded) -> str:
    return "; ".join(filter(None, (one.problem, "handed in late" * one.late, one.note)))


def _answer(one: Graded, id: str, shown: Any, group: int, texts: _Texts, names: bool
            ) -> dict[str, Any] | None:
    """An answer and its marks; None where there is none."""
    result = one.results.get(id)
    if result is None or id not in one.answers:
        return None
    error = told_error(result.error or {})
    line = text("line {line}: ", "views").format(line=error["line"]) if error.get("line") else ""
    return {
        "points": result.points, "seed": result.seed if names else "", "group": group,
        "text": texts.add(as_text(shown)),
        "error": texts.add("\n".join(filter(None, (
            line + error["message"], error["hint"])))) if result.error else -1,
        "rows": [[row.points, int(row.passed), texts.add(told(row.says, "checks")),
                  texts.add(str(row.place.get("text", "")))] for row in result.rows],
    }


# --------------------------------------------------------------------------- wrong answers


def _groups(id: str, students: Sequence[Graded], shown: Sequence[dict[str, Any]]
            ) -> list[list[int]]:
    """Students whose wrong answers are of one text's shape and failed in the same rows."""
    found: dict[Any, list[int]] = {}
    for n, one in enumerate(students):
        result = one.results.get(id)
        if result is not None and not result.solved and id in one.answers:
            text = shown[n][id]
            form = shape(text) if isinstance(text, str) else as_text(text)
            found.setdefault((_failed(result), form), []).append(n)
    return sorted(found.values(), key=lambda members: (-len(members), members))


def _failed(result: Result) -> tuple[Any, ...]:
    """The rows that an answer failed in; of what could not be read, that."""
    if result.error:
        return ("error",)
    return tuple(n for n, row in enumerate(result.rows) if not row.passed)


class _Looks:
    """Of the first student of each large group the program and the reference, made by workers."""

    def __init__(self, groups: dict[str, list[list[int]]], students: Sequence[Graded],
                 folder: Any) -> None:
        every = sorted(((len(members), id, members[0]) for id, found in groups.items()
                        for members in found), key=lambda row: (-row[0], *row[1:]))
        count = max(1, min(len(usable_cpus()), 4, len(every) // 4))
        self._pool = WorkerPool(count, lambda: Worker(_SERVICE, memory=MEMORY))
        place = None if folder is None else str(Path(folder).resolve())
        self._asked = {
            (id, n): self._pool.submit({
                "do": "look", "id": id, "folder": place, "seed": students[n].results[id].seed,
                "answer": students[n].answers[id]}, LOOK_S)
            for _, id, n in every[:MOST_LOOKED_AT]}

    def found(self) -> dict[tuple[str, int], dict[str, Any]]:
        """What was made, by exercise and student."""
        return {key: future.result() for key, future in self._asked.items()}

    def __enter__(self) -> _Looks:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()


def _merged(groups: list[list[int]], looks: dict[tuple[str, int], dict[str, Any]], id: str,
            students: Sequence[Graded], texts: _Texts) -> tuple[list[dict[str, Any]], int]:
    """Groups whose programs are of one shape as one; and how many had no look."""
    by_program: dict[Any, list[int]] = {}
    unread = 0
    for members in groups:
        first = members[0]
        look = looks.get((id, first))
        unread += look is None
        key: Any = first
        if look is not None and look.get("program"):
            key = shape(look["program"])
        elif look is not None and look.get("values") is not None:
            key = shape_of_values(students[first].answers[id], look["values"])
        by_program.setdefault((_failed(students[first].results[id]), key), []).extend(members)
    out = []
    for members in by_program.values():
        first = min(members)  # of a merged group too: every part's first one was looked at
        look, result = looks.get((id, first), {}), students[first].results[id]
        failed = [n for n, row in enumerate(result.rows) if not row.passed]
        says = (result.error or {}).get("message") or next(
            (result.rows[n].says for n in failed if result.rows[n].says), "")
        out.append({"students": sorted(members), "first": first, "points": result.points,
                    "text": texts.add(as_text(shown_answer(students[first].answers[id]))),
                    "program": texts.add(look.get("program", "")),
                    "right": texts.add(look.get("right", "")),
                    "reference": texts.add(look.get("reference", "")),
                    "failed": failed, "says": texts.add(told(str(says), "checks"))})
    return sorted(out, key=lambda group: (-len(group["students"]), group["first"])), unread


# --------------------------------------------------------------------------- likenesses


def alike(students: Sequence[Graded], shown: Sequence[dict[str, Any]], folder: Any = None
          ) -> list[dict[str, Any]]:
    """Pairs of students whose answers, in different variants, have wordings that few have."""
    found: dict[tuple[int, int], dict[str, Any]] = {}
    alone: set[tuple[int, int]] = set()  # share a wording that nobody else has
    for id in sorted({id for answers in shown for id in answers}):
        by_wording: dict[str, list[int]] = {}
        texts = {n: answers[id] for n, answers in enumerate(shown)
                 if isinstance(answers.get(id), str)}
        for n, answer in texts.items():
            digest, words = wording(answer)
            if words >= LEAST_WORDS:
                by_wording.setdefault(digest, []).append(n)
        few = {digest: members for digest, members in by_wording.items()
               if 2 <= len(members) <= max(2, len(texts) // 10)}
        for digest, members in few.items():
            if digest in _expected(id, students[members[0]], folder):
                continue
            if len(members) == 2:
                alone.add((members[0], members[1]))
            for pair in combinations(members, 2):
                seeds = {students[n].results[id].seed for n in pair if id in students[n].results}
                row = found.setdefault(pair, {"students": list(pair), "exercises": [], "same": []})
                row["exercises"].append(id)
                if texts[pair[0]].strip() == texts[pair[1]].strip() and len(seeds) == 2:
                    row["same"].append(id)
    pairs = [row for pair, row in found.items() if pair in alone or len(row["exercises"]) > 1]
    order = sorted(pairs, key=lambda row: (-len(row["exercises"]), -len(row["same"]),
                                           row["students"]))
    return order[:MOST_PAIRS]


def _expected(id: str, one: Graded, folder: Any) -> set[str]:
    """The wordings of the reference and of the typical mistakes, which need no copying."""
    variant = get(id, folder).variant(one.results[id].seed if id in one.results else "0")
    known = [variant.reference, *(wrong.answer for wrong in variant.wrong)]
    return {wording(as_text(shown_answer(answer)))[0] for answer in known}


def counts(report: dict[str, Any]) -> list[dict[str, Any]]:
    """By exercise: how many answered, solved it, and passed each row; the mean of the points."""
    out = []
    for exercise, answers in zip(report["exercises"], report["answers"]):
        given = [answer for answer in answers if answer is not None]
        passed = Counter(n for answer in given for n, row in enumerate(answer["rows"]) if row[1])
        out.append({"given": len(given),
                    "solved": sum(answer["points"] >= exercise["of"] for answer in given),
                    "mean": sum(answer["points"] for answer in given) / max(1, len(given)),
                    "rows": [passed[n] for n in range(len(exercise["rows"]))]})
    return out


__all__ = ["alike", "counts", "marks_in", "report_of"]
