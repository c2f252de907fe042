"""The exercises, a file each: `ex_03_2.py` is exercise 03.2. A teacher's are in a folder of theirs.

A file has a docstring that says what the exercise is for, and its `EXERCISE`; `exercise.py` has the
grammar. A teacher's files are code of the teacher's, and are imported; answers never are.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType

from ...reading import MISTAKES, MLCError, reason, similar
from ..answers import read
from ..checks import CHECKS
from ..exercise import Check, Exercise, ExerciseError


@functools.cache
def _own() -> dict[str, Exercise]:
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name.startswith("ex_"))
    return _by_id([importlib.import_module(f"{__name__}.{name}") for name in names])


def _of_folder(folder: Path) -> dict[str, Exercise]:
    if not folder.is_dir():
        raise ExerciseError(f"there is no folder {folder}")
    return _by_id([_loaded(file, file.stat().st_mtime_ns)
                   for file in sorted(folder.glob("ex_*.py"))])


@functools.lru_cache(256)
def _loaded(file: Path, changed: int) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"mlc_lab_exercise_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (*MISTAKES, SyntaxError) as error:
        raise ExerciseError(f"{file.name} cannot be read: {reason(error)}") from error
    if isinstance(getattr(module, "EXERCISE", None), Exercise):
        _look_at(module.EXERCISE, file.name)
    return module


def _look_at(exercise: Exercise, name: str) -> None:
    """Make a variant of a teacher's exercise. Raises ExerciseError for what cannot be made, of
    which students would be told as if it were their mistake."""
    variant = exercise.variant(0)
    written = ("reference",) * (exercise.kind in ("schedule", "program"))
    for part in ("values", "statement", "program", "fields", "checks", *written):
        try:
            made = getattr(variant, part)
            for check in made if part == "checks" else ():
                _check_fits(check)
            if part == "reference":
                read(variant, made)
        except (MLCError, *MISTAKES) as error:
            where = "draw" if part == "values" else part
            raise ExerciseError(f"{name}: {where}= of exercise {exercise.id}: {reason(error)}"
                                ) from error


def _check_fits(check: Check) -> None:
    """Raises ExerciseError for a row that asks for a check, or an option, that there is not."""
    if check.kind not in CHECKS:
        close = similar(str(check.kind), CHECKS)
        raise ExerciseError(f"there is no check {check.kind!r}" + (
            f"; is {close[0]!r} meant?" if close else f"; there are {', '.join(CHECKS)}"))
    if not isinstance(check.points, int) or check.points < 0:
        raise ExerciseError(f"the points of {check.title!r} are a whole number, not "
                            f"{check.points!r}")
    known = list(inspect.signature(CHECKS[check.kind]).parameters)[2:]
    for option in {*check.options} - {*known, "decides"}:
        raise ExerciseError(f"{check.kind!r} has no option {option!r}; it has {', '.join(known)}")


def _by_id(modules: list[ModuleType]) -> dict[str, Exercise]:
    found: dict[str, Exercise] = {}
    for module in modules:
        exercise = getattr(module, "EXERCISE", None)
        if not isinstance(exercise, Exercise):
            raise ExerciseError(f"{module.__name__} has no EXERCISE = Exercise(...)")
        if exercise.id in found:
            raise ExerciseError(f"there are two exercises {exercise.id}")
        found[exercise.id] = exercise
    return dict(sorted(found.items(), key=lambda item: tuple(map(int, item[0].split(".")))))


def catalogue(folder: str | Path | None = None) -> list[Exercise]:
    """All exercises, by lesson; with a folder, those in its files `ex_*.py` after them."""
    return list(_all(folder).values())


def get(id: str, folder: str | Path | None = None) -> Exercise:
    """An exercise by its id, as "03.2". Raises ExerciseError, naming those like it."""
    known = _all(folder)
    if id not in known:
        lesson = str(id).split(".")[0]
        close = [e for e in (f"0{id}", f"{lesson.zfill(2)}.1") if e in known][:1] or (
            similar(str(id), known, 3))
        raise ExerciseError(f"there is no exercise {id!r}" + (
            f"; there are {', '.join(close)}" if close else ""))
    return known[id]


@functools.cache
def version(id: str) -> str:
    """The version of an exercise of the catalogue: a few letters that follow from its file, the
    same on every machine; "" of one that is not in it."""
    if id not in _own():
        return ""
    file = Path(__file__).with_name(f"ex_{id.replace('.', '_')}.py")
    try:
        lines = file.read_text(encoding="utf-8").splitlines()  # however lines end here
    except OSError:
        return ""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]


def _all(folder: str | Path | None) -> dict[str, Exercise]:
    return _own() if folder is None else {
        **_own(), **_of_folder(Path(folder).resolve())}


__all__ = ["catalogue", "get", "version"]
