"""The grammar of an exercise: one file of `catalogue/`, or of a teacher's folder, is one exercise.

    exercise  = Exercise(id, title, level, minutes, kind, statement, draw, checks, hints, reference,
                         program?, small?, fields?, wrong?, library?)
    id        = "03.2"                  the lesson, and the number in it
    level     = 1 | 2 | 3 | 4           from "one step" to "a project"
    kind      = "schedule" | "program" | "prediction" | "space" | "record" | "function"
                                        what an answer is (see `answers.py`)
    draw      = random.Random -> {name: value, ...}        what differs from variant to variant
    statement = text with {name} of these values           Markdown
    program   = values -> IRModule or PrimFunc                         what the answer starts from
    small     = values -> {name: value, ...}   values with which the program is small enough to be
                                        interpreted: schedules of a large one are tried there too
    checks    = values -> [check, ...]                     rows, in the order in which they are told
    check     = row(kind, points, title, name=value, ...)  of a kind in `checks/`, with its options
    fields    = [Field(name, question, kind, choices?, picture?), ...]        of a prediction
    hints     = (text, text, text)                         from a nudge to nearly all
    reference = values -> answer                           has full points, on every variant
    wrong     = values -> [Wrong(answer, points, says), ...]        typical mistakes: the tests
    library   = {name: function, ...}      what a model may call by name (R.call_dps_packed)

`values` is a namespace: `v.n`. What is drawn decides everything: the same seed, the same exercise.
All variants have one difficulty, which the reference shows by having full points on each of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ..language import text
from ..lower.pipeline import as_module
from ..reading import DataError
from .pictures import Picture

if TYPE_CHECKING:
    from ..ir.module import IRModule
    from ..tir.function import PrimFunc

#: what an answer may be
KINDS = ("schedule", "program", "prediction", "space", "record", "function")
#: how a field of a prediction is filled in
FIELD_KINDS = ("number", "choice", "order", "several", "marks")


class ExerciseError(DataError):
    """An exercise that does not follow the grammar, or one that there is not."""


@dataclass(frozen=True)
class Check:
    """A row of the marks: what is asked, how many points it has, how it is looked at."""

    kind: str
    points: int
    title: str
    options: Mapping[str, Any]


def row(kind: str, points: int, title: str, **options: Any) -> Check:
    """A check of a kind (`checks/`), worth some points."""
    return Check(kind, points, title, options)


@dataclass(frozen=True)
class Field:
    """A place of a prediction: a "number", one "choice", "several" of them, their "order", or
    "marks" in a picture (`pictures.py`). A "choice" may be made in a picture too: the choices are
    its places."""

    name: str
    question: str
    kind: str = "number"
    choices: tuple[str, ...] = ()
    picture: Picture | None = None

    def __post_init__(self) -> None:
        if self.kind not in FIELD_KINDS:
            raise ExerciseError(f"the field {self.name!r} is one of {', '.join(FIELD_KINDS)}, not "
                                f"{self.kind!r}")
        drawn = self.kind == "marks" or self.kind == "choice" and not self.choices
        if drawn != (self.picture is not None):
            raise ExerciseError(f"the field {self.name!r}: marks are made in a picture=, a choice "
                                "has choices= or a picture=, and nothing else has one")
        if self.picture is not None:
            object.__setattr__(self, "choices", self.picture.places)


@dataclass(frozen=True)
class Wrong:
    """A typical mistake: the points that it has, and a part of what its author must be told."""

    answer: Any
    points: int
    says: str


Values = SimpleNamespace


@dataclass(frozen=True)
class Exercise:
    """An exercise; see the head of this file for what its parts are."""

    id: str
    title: str
    level: int
    minutes: int
    kind: str
    statement: str
    draw: Callable[[random.Random], Mapping[str, Any]]
    checks: Callable[[Values], Sequence[Check]]
    hints: tuple[str, str, str]
    reference: Callable[[Values], Any]
    program: Callable[[Values], IRModule | PrimFunc] | None = None
    small: Callable[[Values], Mapping[str, Any]] | None = None
    fields: Callable[[Values], Sequence[Field]] | None = None
    wrong: Callable[[Values], Sequence[Wrong]] = field(default=lambda v: ())
    library: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problem = _problem(self)
        if problem:
            raise ExerciseError(f"exercise {self.id!r}: {problem}")

    @property
    def lesson(self) -> int:
        """The number of the lesson that it belongs to."""
        return int(self.id.split(".")[0])

    def variant(self, seed: int | str = 0) -> Variant:
        """The exercise as a student gets it; `seed` is a number, or the student's name."""
        return Variant(self, str(seed))


def _problem(exercise: Exercise) -> str:
    """What is wrong with an exercise, or nothing."""
    lesson, dot, number = exercise.id.partition(".")
    if not (dot and lesson.isdigit() and number.isdigit()):
        return "its id is a lesson and a number, as in '03.2'"
    if exercise.kind not in KINDS:
        return f"its kind is one of {', '.join(KINDS)}, not {exercise.kind!r}"
    if exercise.level not in (1, 2, 3, 4):
        return f"its level is 1, 2, 3 or 4, not {exercise.level!r}"
    if len(exercise.hints) != 3:
        return f"it has three hints, not {len(exercise.hints)}"
    if exercise.kind in ("schedule", "space", "record") and exercise.program is None:
        return f"a {exercise.kind} is of a program: program="
    if (exercise.kind == "prediction") != (exercise.fields is not None):
        return "a prediction has fields=, and nothing else has"
    return ""


@dataclass(frozen=True)
class Variant:
    """An exercise with its numbers drawn from a seed."""

    exercise: Exercise
    seed: str

    @cached_property
    def values(self) -> Values:
        """What was drawn."""
        # by its text, which is the same on every machine; hash() of a text is not
        return Values(**self.exercise.draw(random.Random(f"{self.exercise.id} {self.seed}")))

    @cached_property
    def program(self) -> IRModule | None:
        """What the answer starts from."""
        return self.exercise.program and as_module(self.exercise.program(self.values))

    @cached_property
    def small_program(self) -> IRModule | None:
        """The same of a smaller shape, where the exercise says one."""
        one = self.exercise
        if one.program is None or one.small is None:
            return None
        return as_module(one.program(Values(**{**vars(self.values), **one.small(self.values)})))

    @property
    def title(self) -> str:
        """What it is called, in the reader's language."""
        return text(self.exercise.title, "exercises")

    @property
    def statement(self) -> str:
        """What is asked, in Markdown, in the reader's language."""
        return _filled(text(self.exercise.statement, "exercises"), self.values)

    @property
    def hints(self) -> list[str]:
        """Three hints, from a nudge to nearly all, in the reader's language."""
        return [_filled(text(hint, "exercises"), self.values) for hint in self.exercise.hints]

    @cached_property
    def checks(self) -> list[Check]:
        """The rows of its marks."""
        return list(self.exercise.checks(self.values))

    @cached_property
    def fields(self) -> list[Field]:
        """The places of a prediction."""
        return list(self.exercise.fields(self.values)) if self.exercise.fields else []

    @property
    def reference(self) -> Any:
        """An answer that has all points."""
        return self.exercise.reference(self.values)

    @property
    def wrong(self) -> list[Wrong]:
        """Answers with typical mistakes."""
        return list(self.exercise.wrong(self.values))

    @property
    def library(self) -> Mapping[str, Callable[..., Any]]:
        """The functions that a model may call by their names."""
        return self.exercise.library

    @property
    def points(self) -> int:
        """How many points there are."""
        return sum(check.points for check in self.checks)

    def __repr__(self) -> str:
        drawn = ", ".join(f"{k}={v!r}" for k, v in vars(self.values).items())
        return f"<{self.exercise.id} {self.exercise.title}, variant {self.seed!r}: {drawn}>"


def _filled(words: str, values: Values) -> str:
    """A text with {name} replaced, by a value or what it is called in the reader's language; other
    braces stay."""
    for name, value in vars(values).items():
        words = words.replace("{" + name + "}", text(str(value), "exercises"))
    return words


__all__ = ["Check", "Exercise", "ExerciseError", "Field", "Values", "Variant", "Wrong", "row"]
