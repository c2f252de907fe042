"""How long the report of a class takes, and how large its page is.

    python benchmarks/class_report.py [--students 100] [--keep FOLDER]

A class of 100 answers all exercises: six of ten have the reference, three a typical mistake, and
one a reference from which it left a line out. What an answer of each kind reaches is checked once
for each exercise (this takes two minutes and is not timed); the students' answers are to their own
variants. Figures: 4,000 answers in 5 s, and a page of 3 MB.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from mlc_lab import exercises
from mlc_lab.exercises.judging import marks
from mlc_lab.exercises.result import Result
from mlc_lab.exercises.teach.grade import Graded, read_graded
from mlc_lab.exercises.teach.roster import file_name


def without_a_line(answer: Any, dice: random.Random) -> Any:
    """An answer from which a student has left something out."""
    if not isinstance(answer, str):
        return answer
    lines = answer.strip("\n").split("\n")
    lines.pop(dice.randrange(len(lines)))
    return "\n".join(lines)


def write_class(out: Path, students: int) -> int:
    """Write files of marks as `grade` does; how many answers there are."""
    dice = random.Random(1)
    graded = [Graded(f"student {n:03}") for n in range(students)]
    for one in exercises.catalogue():
        first = one.variant("0")
        known = [marks(first, first.reference), *(marks(first, w.answer) for w in first.wrong)]
        known.append(marks(first, without_a_line(first.reference, dice)))
        reference = first.reference if one.kind in ("prediction", "space") else None
        for student in graded:
            variant = one.variant(student.student)
            at = 0 if dice.random() < 0.6 else dice.randrange(1, len(known))
            # predictions that take long to make are those of the first variant
            right = variant.reference if reference is None else reference
            if 0 < at <= len(first.wrong):
                answer = (variant if reference is None else first).wrong[at - 1].answer
            else:
                answer = without_a_line(right, dice) if at else right
            student.answers[one.id] = answer
            student.results[one.id] = Result(one.id, student.student, known[at].rows,
                                             known[at].error)
    for student in graded:
        (out / file_name(student.student)).write_text(student.as_json(), encoding="utf-8")
    return sum(len(student.answers) for student in graded)


def main() -> None:
    """Make the class, write its report, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--students", type=int, default=100)
    parser.add_argument("--keep", help="a folder for the marks and the page; used if it has them")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(args.keep or scratch) / "marks"
        if not folder.is_dir():
            folder.mkdir(parents=True)
            write_class(folder, args.students)
        start, before = time.perf_counter(), os.times()
        view = exercises.class_report(folder)
        made = time.perf_counter()
        page = view.html(folder.parent / "class.html")
        end = time.perf_counter()
        used = os.times()  # the processes that read answers have ended, and count
        count = sum(len(one.answers) for one in read_graded(folder))
        print(f"{count:,} answers: {made - start:.1f} s for the report, {end - made:.1f} s for its "
              f"page of {len(page.encode()) / 1e6:.2f} MB; {sum(used[:4]) - sum(before[:4]):.1f} s "
              f"of the processors; load of the machine {os.getloadavg()[0]:.1f} on "
              f"{os.cpu_count()} cores")


if __name__ == "__main__":
    main()
