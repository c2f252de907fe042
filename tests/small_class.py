"""A small class that has answered one exercise, for the tests of its report."""

import re

from mlc_lab import exercises
from mlc_lab.exercises.judging import marks
from mlc_lab.exercises.teach.grade import Graded

ID = "01.2"
COPIED = """
first, second, third = sch.get_loops("C")
outer, inner = sch.split(first, factors=[None, 8])
left, right = sch.split(outer, factors=[None, 2])
"""


def variant_of(student, id=ID):
    """A variant of a student's own; those of a class differ, but their matrices lie alike."""
    variants = (exercises.get(id).variant(f"{student}{' ' * n}") for n in range(40))
    return next(v for v in variants if getattr(v.values, "inner", "j") == "j")


def graded(student, answer, id=ID):
    """The marks of a student who has answered one exercise, in a variant of their own."""
    variant = variant_of(student, id)
    answer = answer(variant) if callable(answer) else answer
    return Graded(student, {id: marks(variant, answer)}, answers={id: answer})


def small_class():
    """Marks of students who answered well, badly in the same way, with malice, alike, or not."""
    plain = {"right": lambda v: v.reference, "wrong": lambda v: v.wrong[0].answer}
    made = [graded(f"good {n}", plain["right"]) for n in range(9)]
    made += [graded(f"bad {n}", plain["wrong"]) for n in range(3)]
    made.append(graded("bad renamed", lambda v: f'block = sch.get_block("{v.values.C}")\n'
                       + re.sub(r"\b([ijk])\b", r"loop_\1", v.wrong[0].answer).replace(
                           f'"{v.values.C}"', "block")))
    made.append(graded("<script>alert(1)</script>", "sch.reorder(<b>"))
    made += [graded("one", COPIED), graded("two", COPIED.replace("8", "4"))]
    made.append(Graded("nothing", {ID: marks(exercises.get(ID).variant("n"), "")},
                       problem="it is no file of answers"))
    return made
