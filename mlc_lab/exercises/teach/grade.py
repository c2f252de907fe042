"""Grades what was handed in: in parallel, with a progress bar; stopped and begun again, it goes on.

Of each student one JSON file of marks is written as soon as it is known. A file that is there for
the same answers, exercises and version is not made again. The same answers give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ...reading import DataError, read_json
from ..catalogue import get
from ..exercise import ExerciseError
from ..judge import Judge, nothing
from ..result import Result
from .collect import Handed

#: what the marks were made by; another number makes them anew
VERSION = 1


@dataclass
class Graded:
    """The marks of a student."""

    student: str
    results: dict[str, Result] = field(default_factory=dict)
    problem: str = ""
    answers: dict[str, Any] = field(default_factory=dict)
    digest: str = ""

    @property
    def points(self) -> int:
        """Points of all exercises."""
        return sum(result.points for result in self.results.values())

    @property
    def of(self) -> int:
        """Points that could be reached in the exercises that were asked."""
        return sum(result.of for result in self.results.values())

    def as_json(self) -> str:
        """The text of the file of marks."""
        return json.dumps({
            "format": "mlc-lab marks", "student": self.student, "problem": self.problem,
            "digest": self.digest, "answers": self.answers, "points": self.points, "of": self.of,
            "results": {id: result.to_dict() for id, result in sorted(self.results.items())},
        }, ensure_ascii=False, indent=1, sort_keys=True)


def grade(handed: Iterable[Handed], out: str | Path, exercises: Iterable[str], *,
          folder: str | Path | None = None, seeds: Mapping[str, str] | None = None,
          jobs: int | None = None, progress: bool = True) -> list[Graded]:
    """Grade answers, and write each student's marks into the folder `out`.

    Parameters
    ----------
    handed : what `collect` found.
    exercises : ids of the exercises that were asked; one without an answer has no points.
    folder : a teacher's folder of exercises.
    seeds : by student the variant that was handed out; an answer to another one has no points.
        Without it the seed of the answer counts.
    jobs : answers checked at once; the cores of the machine by default.

    Raises ExerciseError for an exercise that there is not.
    """
    ids = sorted(set(exercises))
    for id in ids:
        get(id, folder)
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    students = list(handed)
    found: dict[str, Graded] = {}
    todo = []
    for one in students:
        digest = _digest(one, ids, folder, seeds)
        known = _known(out / file_name(one.student), digest)
        if known is not None:
            found[one.student] = known
        else:
            todo.append((one, digest))
    count = jobs or os.cpu_count() or 1
    judges: SimpleQueue[Judge] = SimpleQueue()
    for _ in range(count):
        judges.put(Judge())

    def work(one: Handed, digest: str) -> Graded:
        judge = judges.get()
        try:
            made = _graded(one, ids, judge, folder, seeds)
        finally:
            judges.put(judge)
        made.digest = digest
        path = out / file_name(one.student)
        part = path.with_name(path.name + ".part")
        part.write_text(made.as_json(), encoding="utf-8")
        os.replace(part, path)
        return made

    try:
        for made in _in_parallel(work, todo, count, progress):
            found[made.student] = made
    finally:
        while not judges.empty():
            judges.get().close()
    return [found[one.student] for one in students]


def _in_parallel(work: Callable[..., Graded], todo: list[Any], count: int, progress: bool
                 ) -> Iterable[Graded]:
    """What the work gives, as it is done. An interrupt ends it after the answers in hand."""
    pool = ThreadPoolExecutor(count)
    bar = _bar(len(todo)) if progress else None
    left: set[Future[Graded]] = {pool.submit(work, *item) for item in todo}
    try:
        while left:
            done, left = wait(left, return_when=FIRST_COMPLETED)
            for future in done:
                if bar is not None:
                    bar.update(1)
                yield future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        if bar is not None:
            bar.close()


def _bar(count: int) -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=count, desc="grading", unit="student", delay=1.0, file=sys.stdout)


def _graded(one: Handed, ids: list[str], judge: Judge, folder: Any,
            seeds: Mapping[str, str] | None) -> Graded:
    made = Graded(one.student, problem=one.problem)
    entries = one.book.entries if one.book is not None else {}
    for id in ids:
        entry = entries.get(id)
        seed = (seeds or {}).get(one.student) or (entry.seed if entry else "0")
        variant = get(id, folder).variant(seed)
        if entry is None:
            made.results[id] = nothing(variant, one.problem or "no answer was handed in")
            continue
        made.answers[id] = entry.answer
        if entry.seed != seed:
            made.results[id] = nothing(variant, "this answers another student's variant: "
                                       f"{entry.seed!r}, not {seed!r}")
            continue
        made.results[id] = judge.check(id, entry.answer, seed, folder)
    return made


def file_name(student: str) -> str:
    """The name of a student's file: letters that every system takes, and what tells two apart."""
    plain = re.sub(r"[^\w.-]+", "_", student, flags=re.ASCII).strip("._")[:60] or "student"
    return f"{plain}-{hashlib.sha256(student.encode()).hexdigest()[:8]}.json"


def _digest(one: Handed, ids: list[str], folder: Any, seeds: Mapping[str, str] | None) -> str:
    """A digest of all that marks depend on."""
    own = "" if folder is None else "".join(
        f.read_text(encoding="utf-8", errors="replace")
        for f in sorted(Path(folder).glob("ex_*.py")))
    parts = [VERSION, ids, one.problem, (seeds or {}).get(one.student), own,
             one.book.as_json() if one.book is not None else ""]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _known(path: Path, digest: str) -> Graded | None:
    """Marks that were made before of the same."""
    try:
        graded = read_marks(path.read_bytes())
    except (OSError, DataError, KeyError, TypeError):
        return None
    return graded if graded.digest == digest else None


def read_marks(text: bytes) -> Graded:
    """What `Graded.as_json` wrote."""
    data = read_json(text, "the file of marks")
    return Graded(data["student"], {id: Result.from_dict(r) for id, r in data["results"].items()},
                  data["problem"], data["answers"], data["digest"])


def read_graded(out: str | Path) -> list[Graded]:
    """All marks in a folder that `grade` has written, by student."""
    found = []
    for path in sorted(Path(out).glob("*.json")):
        try:
            found.append(read_marks(path.read_bytes()))
        except (DataError, KeyError, TypeError) as error:
            raise ExerciseError(f"{path.name} is no file of marks: {error}") from None
    return sorted(found, key=lambda g: g.student)


__all__ = ["Graded", "file_name", "grade", "read_graded"]
