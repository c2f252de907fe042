"""What `mlc-lab teach` and `mlc-lab check` do; `mlc_lab/cli.py` has its words.

    mlc-lab teach new-exercise ex_mine.py  a first exercise of one's own, which works
    mlc-lab teach release CLASS.csv -o NOTEBOOKS --exercises 03.2,03.3
                                           a notebook for each student, in a variant of its own
    mlc-lab teach collect DOWNLOAD.zip -o COLLECTED
                                           what was handed in, by student
    mlc-lab teach grade COLLECTED -o MARKS grade it; the folder or the download itself will do
    mlc-lab teach marks MARKS -o FILE.csv --for moodle
                                           the marks as a table
    mlc-lab teach feedback MARKS -o PAGES  a page for each student
    mlc-lab teach report MARKS -o CLASS.html
                                           a page of the class: what went wrong, and how often
    mlc-lab check FOLDER --json            the marks of what one student hands in
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...above import above
from ...reading import DataError
from .. import teach
from ..catalogue import catalogue
from ..command import NOT_SOLVED, told
from .handed_check import told as tell


def _named(args: argparse.Namespace) -> list[str]:
    return [i for i in args.exercises.split(",") if i]


def _ids(args: argparse.Namespace) -> list[str]:
    return _named(args) or [e.id for e in catalogue(args.own)]


def _roster(args: argparse.Namespace) -> dict[str, str] | None:
    return teach.read_roster(args.roster) if args.roster else None


@told
def new_exercise(args: argparse.Namespace) -> int:
    """Write a first exercise."""
    path = teach.write_exercise(args.file, args.id)
    print(f"{path}: try it with  mlc-lab exercise {args.id} --folder {path.parent}")
    return 0


@told
def release(args: argparse.Namespace) -> int:
    """Write notebooks to hand out."""
    if args.form != "jupyter":
        made = teach.release_in_cells(args.output, _ids(args), args.form, seed=args.seed,
                                      title=args.title, folder=args.own)
        print("\n".join(map(str, made)))
        return 0
    if args.roster is None:
        raise DataError("name the class: a file with a student in each line")
    written = teach.release(args.output, _ids(args), teach.read_roster(args.roster),
                            folder=args.own, hint_cost=args.hint_cost,
                            solutions=not args.no_solutions)
    print(f"{len(written)} notebooks in {args.output}")
    return 0


@told
def collect(args: argparse.Namespace) -> int:
    """Find what was handed in."""
    roster = _roster(args)
    handed = teach.collect(args.folder, roster or ())
    teach.write_collected(handed, args.output)
    for one in handed:
        count = f"{len(one.book.entries)} answers" if one.book is not None else "nothing"
        print("   ".join(filter(None, (f"{one.student:<30} {count:>11}", "late" * one.late,
                                       one.problem, one.note))))
    if roster:
        there = {one.student for one in handed}
        for student in roster:
            if student not in there:
                print(f"{student:<30} has handed nothing in")
    print(f"{sum(one.book is not None for one in handed)} of {len(handed)} can be graded; "
          f"they are in {args.output}")
    return 0


@told
def grade(args: argparse.Namespace) -> int:
    """Grade a folder."""
    seeds = _roster(args)
    handed = teach.collect(args.folder, seeds or ())
    corrections = teach.read_corrections(args.corrections) if args.corrections else ()
    try:
        graded = teach.grade(handed, args.output, _ids(args), folder=args.own, seeds=seeds,
                             corrections=corrections, hint_cost=args.hint_cost, jobs=args.jobs)
    except KeyboardInterrupt:
        print(f"stopped; what is in {args.output} stays, and the same command goes on")
        return 130
    for one in graded:
        print("   ".join(filter(None, (f"{one.student:<30} {one.points:>5} of {one.of}",
                                       one.problem, one.note))))
    left = sum(len(one.unjudged) for one in graded)
    if left:
        print(f"{left} answers were not judged, since the machine was too busy: the same command "
              "checks these alone")
    return 1 if left else 0


@told
def marks(args: argparse.Namespace) -> int:
    """Write the table of marks."""
    teach.write_marks(teach.read_graded(args.marks), args.output, args.form, fill=args.fill,
                      column=args.column)
    print(args.output)
    return 0


@told
def feedback(args: argparse.Namespace) -> int:
    """Write the pages for students."""
    written = teach.write_feedback(teach.read_graded(args.marks), args.output, args.own,
                                   args.solutions)
    print(f"{len(written)} pages in {args.output}")
    return 0


@told
def report(args: argparse.Namespace) -> int:
    """Write the page of a class."""
    above("view of a class").write_page(args.marks, args.output, args.own, not args.no_names)
    print(args.output)
    return 0


@told
def check(args: argparse.Namespace) -> int:
    """Check what one student hands in."""
    found = teach.check_handed(args.path, _named(args), args.seed, args.own)
    text = tell(found, args.form)
    if not args.output:
        print(text)
    elif args.form == "github":  # outputs of a step are added to a file
        with open(args.output, "a", encoding="utf-8") as file:
            file.write(text)
    else:
        Path(args.output).write_text(text, encoding="utf-8")
    for_graders = args.form in ("gradescope", "github")
    return 0 if for_graders or all(one.solved for one in found) else NOT_SOLVED


VERBS: dict[str, Any] = {"new-exercise": new_exercise, "release": release, "collect": collect,
                         "grade": grade, "marks": marks, "feedback": feedback,
                         "report": report}


def teach_verb(args: argparse.Namespace) -> int:
    """Do what the words of a command ask for."""
    return check(args) if args.verb == "check" else VERBS[args.what](args)


__all__ = ["VERBS", "teach_verb"]
