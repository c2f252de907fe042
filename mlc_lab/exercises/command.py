"""What `mlc-lab exercise` does; `mlc_lab/cli.py` has its words, `teach/command.py` what
`mlc-lab teach` does.

    mlc-lab exercise                       all exercises, and what has been reached
    mlc-lab exercise 03.2                  what is asked, and the program that it starts from
    mlc-lab exercise 03.2 answer.py        check an answer ("-" reads it from standard input)
    mlc-lab exercise 03.2 --hint 1         a hint; it is noted, and costs what it does in the card
    mlc-lab exercise 03.2 --solution       a solution, once it is solved or given up (--give-up)
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

from ..language import filled, text
from ..reading import DataError, read_json
from . import book
from .answers import as_data
from .catalogue import catalogue, get
from .exercise import Exercise, Field, Variant
from .judge import check
from .pictures import how_to_write
from .result import Result, Row

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
    if args.hint or args.solution or args.give_up:
        return _helped(variant, args)
    if args.answer is None:
        print(shown(variant))
        return 0
    answer = from_text(variant, _read(args.answer))
    if args.json:
        result = check(args.id, answer, args.seed, args.folder, lambda row: None)
        print(result.as_json())
    else:
        result = _told_row_by_row(variant, answer, args.folder)
    problem = "" if result.error else book.keep(result, as_data(variant.exercise.kind, answer))
    if problem:
        print(f"mlc-lab: {problem}", file=sys.stderr)
    return 0 if result.solved else NOT_SOLVED


def _helped(variant: Variant, args: argparse.Namespace) -> int:
    """Print a hint or a solution, by the rules of the card: what is shown before an exercise is
    solved is noted, and a solution is shown once it is solved or given up, unless a teacher's card
    of it shows none."""
    id, kept = variant.exercise.id, book.load()
    rule = kept.rules.get(id, {"cost": 0, "solution": True})
    solved = kept.solved(id, variant.seed)
    count = args.hint or book.SOLUTION
    if not args.hint:
        if not rule["solution"]:
            raise DataError(text("your teacher's card of {id} shows no solution", "command").format(
                id=id))
        if not (solved or args.give_up or kept.hints.get(id, 0) >= book.SOLUTION):
            raise DataError(text(
                "{id} is not solved yet: --give-up shows a solution, and is noted; where hints "
                "cost points it costs all", "command").format(id=id))
    if not solved:
        problem = book.hinted(id, count)
        if problem:
            print(f"mlc-lab: {problem}", file=sys.stderr)
        if rule["cost"] and args.hint:
            print(text("each hint costs {count} of its points", "command").format(
                count=rule["cost"]), file=sys.stderr)
    print(variant.hints[count - 1] if args.hint else as_text(variant.reference))
    return 0


def _read(name: str) -> str:
    """The text of a file, or of standard input."""
    if name == "-":
        return sys.stdin.read()
    try:
        return Path(name).read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{name} is no text in UTF-8: save it as that") from None


def _told_row_by_row(variant: Variant, answer: object, folder: str | None) -> Result:
    """Check an answer, and print each row as it is known; at a terminal also which one is next."""
    titles = iter(check.title for check in variant.checks)
    shows = sys.stdout.isatty()

    def wait() -> None:
        title = next(titles, None)
        if shows and title is not None:
            print(f"  . {title} ...", end="", flush=True)

    def tell(row: Row) -> None:
        print(("\r\x1b[K" if shows else "") + str(row), flush=True)
        wait()

    wait()
    result = check(variant.exercise.id, answer, variant.seed, folder, tell)
    if shows and result.error:
        print("\r\x1b[K", end="")
    print(repr(result))
    return result


def from_text(variant: Variant, text: str) -> Any:
    """An answer from a file: JSON where it is that, else the text itself; of a prediction lines
    `field: value`, or the value alone of a single field."""
    if variant.exercise.kind != "prediction":
        return read_json(text, "the answer") if text.lstrip().startswith("{") else text
    if text.lstrip()[:1] in ("{", "[", '"'):
        return read_json(text, "the answer")
    names = "|".join(re.escape(field.name) for field in variant.fields)
    head, *parts = re.split(rf"^[ \t]*({names})[ \t]*:", text, flags=re.M)
    if not parts and len(variant.fields) == 1:
        return {variant.fields[0].name: _value(variant.fields[0], text)}
    if not parts or head.strip():
        raise DataError(f"the answer has lines 'field: value'; the fields are "
                        f"{', '.join(field.name for field in variant.fields)}")
    fields = {field.name: field for field in variant.fields}
    return {name: _value(fields[name], value) for name, value in zip(parts[::2], parts[1::2])}


def _value(field: Field, text: str) -> Any:
    """What stands for a field: JSON where it is that; other text is what it says."""
    text = text.strip()
    if field.kind == "number" or text[:1] in ("[", '"'):
        try:
            return read_json(text, "")
        except DataError:
            pass  # checking says what it should be
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
            lines.append(text("Lesson {number}", "command").format(number=lesson))
        entry = kept.get(one.id)
        reached = text("{points} of {all}", "command").format(
            points=entry.points, all=entry.of) if entry else "-"
        minutes = text("{count} min", "command").format(count=f"{one.minutes:>3}")
        lines.append(f"  {one.id:<6} {'*' * one.level:<4} {reached:>9}  {minutes}  "
                     f"{text(one.title, 'exercises')}")
    return "\n".join(lines)


def shown(variant: Variant) -> str:
    """What is asked, how it is marked, and what the answer starts from."""
    one = variant.exercise
    minutes = text("{count} minutes", "command").format(count=one.minutes)
    lines = [f"{one.id}  {variant.title}   ({'*' * one.level}, {minutes})", "",
             variant.statement, ""]
    if variant.program is not None:
        lines += [variant.program.script(), ""]
    for field in variant.fields:
        lines.append(asked(field))
    if len(variant.fields) > 1:
        lines.append(text("  An answer has a line for each of them: {lines}", "command").format(
            lines=", ".join(f"{field.name}: ..." for field in variant.fields)))
    one, more = text("1 point: {what}", "command"), text("{count} points: {what}", "command")
    lines += ["  " + (one if check.points == 1 else more).format(
        count=check.points, what=filled(check.title, "exercises")) for check in variant.checks]
    return "\n".join(lines)


def asked(field: Field) -> str:
    """A place of a prediction as text: the question, and what can be answered."""
    question = filled(field.question, "exercises")
    if field.picture is not None:
        picture = textwrap.indent(field.picture.text, "      ")
        return f"  {field.name}: {question}\n{picture}\n    {how_to_write(field.picture)}"
    choices = f"   {field.kind} of: {', '.join(field.choices)}" if field.choices else ""
    return f"  {field.name}: {question}{choices}"


__all__ = ["MISTAKE", "NOT_SOLVED", "as_text", "asked", "exercise", "from_text", "map_of", "shown",
           "told"]
