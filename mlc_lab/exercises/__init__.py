"""The classroom: exercises whose answers are data, checked on the spot by counts and by proof.

>>> from mlc_lab import exercises
>>> [e.id for e in exercises.catalogue()][:3]
['01.1', '01.2', '01.3']
>>> task = exercises.get("03.2").variant("a student")     # its own numbers
>>> print(exercises.check("03.2", task.reference, seed="a student").points)   # doctest: +SKIP

A reader's path: `exercise.py` (what an exercise is), `catalogue/` (a file each), `answers.py` (what
an answer is, and how it is read), `checks/` (how it is looked at), `judge.py` (the marks).
"""

from typing import Any

from ..above import above
from .answers import Answer, AnswerError
from .book import hand_in
from .catalogue import catalogue, get
from .exercise import Exercise, ExerciseError, Field, Variant, Wrong, row
from .judge import Judge, check, points
from .result import Result


def exercise(id: str, seed: int | str = 0, folder: Any = None, hint_cost: int = 0,
             solution: bool = True) -> Any:
    """The card of an exercise in a notebook: what is asked, a place for the answer, its marks.

    `card.check(sch)` checks a schedule of the notebook's. `folder`: a teacher's exercises;
    `hint_cost`: points that each hint costs; `solution`: whether the card shows one.
    Raises ExerciseError for an exercise that there is not, ImportError where widgets are not
    installed: `check` does without them.
    """
    return above("view of an exercise").exercise(id, seed, folder, hint_cost, solution)


def class_report(folder: Any, own: Any = None, names: bool = True, title: str = "") -> Any:
    """The report of a class, a view: marks by check, the commonest wrong answers, answers that are
    too alike, any answer beside the reference.

    `folder`: what `mlc-lab teach grade` wrote; `own`: a teacher's exercises; `names`: whether
    students have their names, or only numbers. Raises DataError where there are no marks,
    ImportError where widgets are not installed: `mlc-lab teach report` does without them.
    """
    return above("view of a class").class_report(folder, own, names, title)


__all__ = ["Answer", "AnswerError", "Exercise", "ExerciseError", "Field", "Judge", "Result",
           "Variant", "Wrong", "catalogue", "check", "class_report", "exercise",
           "get", "hand_in", "points", "row"]
