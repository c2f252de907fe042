"""Grades what was handed in: in parallel, and tells how far it is; stopped and begun again, it goes
on.

Of each student one JSON file of marks is written as soon as it is known. It keeps the answers, and
for each what its marks depend on: an answer is not checked again while those are the same. Other
points of a teacher's (`corrections.py`) are counted anew each time. The same answers give the same
bytes.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ...reading import DataError, read_json
from ..catalogue import get, version
from ..exercise import ExerciseError
from ..judge import Judge, nothing
from ..result import Result
from .collect import Handed
from .corrections import Correction, charged, corrected
from .roster import file_name

#: what the marks were made by; another number makes them anew
VERSION = 2
FORMAT = "mlc-lab marks"
#: the variant of answers that do not name theirs, as those of a notebook that lost its metadata,
#: where no roster says it; what is handed out without a seed has it too
DEFAULT = "0"
OTHER_VERSION = "answered in another version of the exercise; the marks are of this one"
NOT_JUDGED = "not judged, since the machine was too busy: grade again"
#: seconds between two lines that say how far it is, where there is no progress bar
LINE_S = 10.0
NO_SEED = f"the answers do not say of which variant they are: {DEFAULT} is taken"


@dataclass
class Graded:
    """The marks of a student."""

    student: str
    #: by exercise, after corrections and hints
    results: dict[str, Result] = field(default_factory=dict)
    problem: str = ""
    answers: dict[str, Any] = field(default_factory=dict)
    hints: dict[str, int] = field(default_factory=dict)
    #: what the checks have found, where corrections or hints have changed it
    found: dict[str, Result] = field(default_factory=dict)
    #: by exercise a digest of all that its marks depend on
    digests: dict[str, str] = field(default_factory=dict)
    #: by exercise the version that was answered, where the file of answers says it
    versions: dict[str, str] = field(default_factory=dict)
    #: what the learning platform says: see `collect.Handed`
    platform: str = ""
    number: str = ""
    late: bool = False
    note: str = ""

    @property
    def points(self) -> int:
        """Points of all exercises."""
        return sum(result.points for result in self.results.values())

    @property
    def of(self) -> int:
        """Points that could be reached in the exercises that were asked."""
        return sum(result.of for result in self.results.values())

    @property
    def unjudged(self) -> list[str]:
        """The exercises whose answers have no marks until they are graded again."""
        return [id for id, result in sorted(self.results.items()) if not result.judged]

    def as_json(self) -> str:
        """The text of the file of marks."""
        plain = {key: value for key, value in vars(self).items() if key not in ("results", "found")}
        return json.dumps({
            "format": FORMAT, **plain, "points": self.points, "of": self.of,
            "results": {id: result.to_dict() for id, result in sorted(self.results.items())},
            "found": {id: result.to_dict() for id, result in sorted(self.found.items())},
        }, ensure_ascii=False, indent=1, sort_keys=True)


@dataclass(frozen=True)
class _Task:
    """What all students are graded by."""

    ids: list[str]
    folder: Any
    seeds: Mapping[str, str] | None
    corrections: Sequence[Correction]
    hint_cost: int


def grade(handed: Iterable[Handed], out: str | Path, exercises: Iterable[str], *,
          folder: str | Path | None = None, seeds: Mapping[str, str] | None = None,
          corrections: Sequence[Correction] = (), hint_cost: int = 0,
          jobs: int | None = None, progress: bool = True) -> list[Graded]:
    """Grade answers, and write each student's marks into the folder `out`.

    Parameters
    ----------
    handed : what `collect` found.
    exercises : ids of the exercises that were asked; one without an answer has no points.
    folder : a teacher's folder of exercises.
    seeds : by student the variant that was handed out; an answer to another one has no points.
        Without it the seed of the answer counts.
    corrections : other points, see `corrections.py`.
    hint_cost : points that each hint costs that was shown before the exercise was solved; after
        the solution none are left. How many there were, the file of answers says.
    jobs : answers checked at once; the cores of the machine by default.

    Raises ExerciseError for an exercise that there is not.
    """
    task = _Task(sorted(set(exercises)), folder, seeds, corrections, hint_cost)
    for id in task.ids:
        get(id, folder)
    unknown = {one.exercise for one in corrections} - set(task.ids)
    if unknown:
        raise DataError(f"there are corrections of {', '.join(sorted(unknown))}, "
                        "which is not asked")
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    students = list(handed)
    count = jobs or os.cpu_count() or 1
    judges: SimpleQueue[Judge] = SimpleQueue()
    for _ in range(count):
        judges.put(Judge())

    def work(one: Handed) -> Graded:
        judge = judges.get()
        try:
            made = _graded(one, task, judge, _known(out / file_name(one.student)))
        finally:
            judges.put(judge)
        _write(out / file_name(one.student), made.as_json())
        return made

    try:
        found = {made.student: made for made in _in_parallel(work, students, count, progress)}
    finally:
        while not judges.empty():
            judges.get().close()
    return [found[one.student] for one in students]


def _write(path: Path, text: str) -> None:
    """Write a file as a whole; one that is as it should be is left alone."""
    data = text.encode()
    try:
        if path.read_bytes() == data:
            return
    except OSError:
        pass
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    os.replace(part, path)


def _in_parallel(work: Callable[[Handed], Graded], todo: list[Handed], count: int, progress: bool
                 ) -> Iterable[Graded]:
    """What the work gives, as it is done. An interrupt ends it after the answers in hand."""
    pool = ThreadPoolExecutor(count)
    bar = _bar(len(todo)) if progress else None
    left: set[Future[Graded]] = {pool.submit(work, item) for item in todo}
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


class _Lines:
    """How far it is, in a line now and then."""

    def __init__(self, count: int) -> None:
        self.count, self.done, self.last = count, 0, time.monotonic()

    def update(self, more: int) -> None:
        """So many are done."""
        self.done += more
        if time.monotonic() - self.last >= LINE_S:
            self.last = time.monotonic()
            print(f"graded {self.done} of {self.count} students", flush=True)

    def close(self) -> None:
        """Nothing is left to say."""


def _bar(count: int) -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return _Lines(count)
    return tqdm(total=count, desc="grading", unit="student", delay=1.0, file=sys.stdout)


def _graded(one: Handed, task: _Task, judge: Judge, known: dict[str, tuple[str, Result]]) -> Graded:
    """The marks of a student; what is known of the same answers is not checked again."""
    made = Graded(one.student, problem=one.problem, platform=one.platform, number=one.number,
                  late=one.late, note=one.note)
    entries = one.book.entries if one.book is not None else {}
    hints = one.book.hints if one.book is not None else {}
    if not (task.seeds or {}).get(one.student) and any(
            entry.seed == "" for id, entry in entries.items() if id in task.ids):
        made.note = "; ".join(filter(None, (made.note, NO_SEED)))
    made.versions = {id: entry.version for id, entry in sorted(entries.items())
                     if id in task.ids and entry.version}
    others = [id for id, answered in made.versions.items() if answered != version(id)]
    if others:
        made.note = "; ".join(filter(None, (made.note, f"{', '.join(others)}: {OTHER_VERSION}")))
    for id in task.ids:
        entry = entries.get(id)
        seed = (task.seeds or {}).get(one.student) or (entry.seed if entry else "") or DEFAULT
        answered = None if entry is None else [entry.seed, entry.answer]
        member = task.seeds is None or one.student in task.seeds
        digest = _digest(id, task.folder, [seed, answered, one.problem, member])
        if known.get(id, ("",))[0] == digest:
            found = known[id][1]
        else:
            found = _found(id, entry, seed, one, task, judge)
        if found.judged:
            made.digests[id] = digest
        if entry is not None:
            made.answers[id] = entry.answer
        if hints.get(id):
            made.hints[id] = hints[id]
        result = charged(found, hints.get(id, 0), task.hint_cost)
        result = corrected(result, one.student, task.corrections)
        made.results[id] = result
        if result is not found:
            made.found[id] = found
    if made.unjudged:
        made.note = "; ".join(filter(None, (
            made.note, f"{', '.join(made.unjudged)}: {NOT_JUDGED}")))
    return made


def _found(id: str, entry: Any, seed: str, one: Handed, task: _Task, judge: Judge) -> Result:
    """What the checks find."""
    folder = task.folder
    variant = get(id, folder).variant(seed)
    if task.seeds is not None and one.student not in task.seeds:
        return nothing(variant, f"there is no {one.student!r} in the roster")
    if entry is None:
        return nothing(variant, one.problem or "no answer was handed in")
    if entry.seed not in ("", seed):
        return nothing(variant, "this answers another student's variant: "
                                f"{entry.seed!r}, not {seed!r}")
    return judge.check(id, entry.answer, seed, folder)


def _digest(id: str, folder: Any, parts: list[Any]) -> str:
    """A digest of all that the marks of an answer depend on."""
    parts = [VERSION, id, _code(), _source(id, folder), *parts]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@functools.cache
def _code() -> str:
    """A digest of what checks answers: the version, and the files of this package."""
    from ... import __version__

    here = Path(__file__).resolve().parents[1]
    files = [file for pattern in ("*.py", "checks/*.py", "catalogue/[!e]*.py")
             for file in sorted(here.glob(pattern))]
    return _of_files([__version__], files)


def _source(id: str, folder: Any) -> str:
    """A digest of the file of an exercise; of all of a teacher's folder, whose files may use each
    other."""
    own = sorted(Path(folder).glob("*.py")) if folder is not None else []
    file = inspect.getsourcefile(get(id, folder).checks)
    return _of_files([], [*own, *([Path(file)] if file else [])])


def _of_files(words: list[str], files: Iterable[Path]) -> str:
    made = hashlib.sha256("".join(words).encode())
    for file in files:
        made.update(file.read_bytes() if file.is_file() else b"")
    return made.hexdigest()


def _known(path: Path) -> dict[str, tuple[str, Result]]:
    """By exercise the digest and what the checks found, of marks that were made before."""
    try:
        graded = read_marks(path.read_bytes())
        return {id: (digest, graded.found.get(id, graded.results[id]))
                for id, digest in graded.digests.items()}
    except (OSError, DataError, KeyError, TypeError, AttributeError):
        return {}


def read_marks(text: bytes) -> Graded:
    """What `Graded.as_json` wrote. Raises DataError, KeyError or TypeError for anything else."""
    data = dict(read_json(text, "the file of marks"))
    if data.pop("format") != FORMAT:
        raise DataError("it is no file of marks")
    for name in ("points", "of"):
        data.pop(name)
    for name in ("results", "found"):
        data[name] = {id: Result.from_dict(result) for id, result in data[name].items()}
    return Graded(**data)


def read_graded(out: str | Path) -> list[Graded]:
    """All marks in a folder that `grade` has written, by student."""
    found = []
    if not Path(out).is_dir():
        raise DataError(f"there is no folder {out}")
    for path in sorted(Path(out).glob("*.json")):
        try:
            found.append(read_marks(path.read_bytes()))
        except (DataError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise ExerciseError(f"{path.name} is no file of marks: {error}") from None
    return sorted(found, key=lambda g: g.student)


__all__ = ["Graded", "grade", "read_graded", "read_marks"]
