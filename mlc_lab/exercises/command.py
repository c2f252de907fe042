"""What `mlc-lab exercise` does; `mlc_lab/cli.py` has its words, `teach/command.py` what
`mlc-lab teach` does.

    mlc-lab exercise                       all exercises, and what has been reached
    mlc-lab exercise 03.2                  what is asked, and the program that it starts from
    mlc-lab exercise 03.2 answer.py        check an answer ("-" reads it from standard input)
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from ..language import filled, text
from ..reading import DataError, read_json
from . import book
from .catalogue import catalogue, get
from .exercise import Exercise, Variant
from .judge import check

#: exit status of an answer that has not all points, and of a mistake in the command
NOT_SOLVED, MISTAKE = 1, 2


def told(act: Any) -> Any:
    """A verb whose mistakes are told in a line."""
    def run(args: argparse.Namespace) -> int:
        try:
            return act(args)
        except (DataError, OSError) as error:
            print(f"mlc-lab: {error}", file=sys.stderr)
            return MISTAKE
    return run


@told
def exercise(args: argparse.Namespace) -> int:
    """List exercises, show one, or check an answer."""
    if args.id is None:
        print(map_of(catalogue(args.folder)))
        return 0
    variant = get(args.id, args.folder).variant(args.seed)
    if args.hint:
        print(variant.hints[args.hint - 1])
        return 0
    if args.solution:
        print(as_text(variant.reference))
        return 0
    if args.answer is None:
        print(shown(variant))
        return 0
    text = sys.stdin.read() if args.answer == "-" else Path(args.answer).read_text("utf-8")
    answer = from_text(variant, text)
    result = check(args.id, answer, args.seed, args.folder)
    print(result.as_json() if args.json else result)
    if not args.json and args.folder is None:
        problem = book.keep(result, answer)
        if problem:
            print(f"mlc-lab: {problem}", file=sys.stderr)
    return 0 if result.solved else NOT_SOLVED


def from_text(variant: Variant, text: str) -> Any:
    """An answer from a file: JSON where it is that, else the text itself."""
    if variant.exercise.kind == "prediction" or text.lstrip().startswith("{"):
        return read_json(text, "the answer")
    return text


def as_text(answer: Any) -> str:
    """An answer as a file has it."""
    return answer.strip("\n") if isinstance(answer, str) else json.dumps(answer, indent=1)


def map_of(exercises: list[Exercise]) -> str:
    """All exercises, a line each, with what has been reached."""
    kept = book.load().entries
    lines, lesson = [], 0
    for one in exercises:
        if one.lesson != lesson:
            lesson = one.lesson
            lines.append(f"Lesson {lesson}")
        entry = kept.get(one.id)
        reached = f"{entry.points} of {entry.of}" if entry else "-"
        lines.append(f"  {one.id:<6} {'*' * one.level:<4} {reached:>9}  {one.minutes:>3} min  "
                     f"{text(one.title, 'exercises')}")
    return "\n".join(lines)


def shown(variant: Variant) -> str:
    """What is asked, how it is marked, and what the answer starts from."""
    one = variant.exercise
    lines = [f"{one.id}  {variant.title}   ({'*' * one.level}, {one.minutes} minutes)", "",
             variant.statement, ""]
    if variant.program is not None:
        lines += [variant.program.script(), ""]
    for field in variant.fields:
        choices = f"   {field.kind} of: {', '.join(field.choices)}" if field.choices else ""
        lines.append(f"  {field.name}: {filled(field.question, 'exercises')}{choices}")
    lines += [f"  {check.points} points: {filled(check.title, 'exercises')}"
              for check in variant.checks]
    return "\n".join(lines)


__all__ = ["MISTAKE", "NOT_SOLVED", "as_text", "exercise", "from_text", "map_of", "shown", "told"]
