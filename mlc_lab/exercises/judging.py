"""What the process of a `Judge` does: a service of `mlc_lab/workers`."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import asdict
from typing import Any

from ..language import speaking
from ..reading import MISTAKES, MLCError, reason
from ..workers.confinement import keep_others_out
from .answers import Answer, AnswerError, read
from .catalogue import get
from .checks import CHECKS
from .exercise import Check, Variant
from .judge import unread
from .result import Found, Result, Row
from .watching import watched


#: kinds of rows that say whether the answer computes what it should
_COMPUTES = ("equivalent", "same_graph")


def marks(variant: Variant, data: Any) -> Result:
    """The marks of an answer, by all checks in order; see `marking`."""
    made = marking(variant, data)
    while True:
        try:
            next(made)
        except StopIteration as done:
            return done.value


def marking(variant: Variant, data: object) -> Generator[Row, None, Result]:
    """The rows of the marks of an answer, each as soon as it is known, and the result.

    A row that does not compute the same ends the points of the rows after it: a program that is
    quick and wrong is worth nothing. They are told all the same. Marks are English everywhere, so
    that the same answer has the same ones; they are told in the reader's language where they are
    shown.
    """
    with speaking("en"):
        try:
            answer = read(variant, data)
        except AnswerError as error:
            return unread(variant, error)
        asked_for = variant.checks
    rows: list[Row] = []
    wrong = ""
    try:
        for asked in asked_for:
            with speaking("en"):
                found = _found(asked, answer, variant)
            if not (wrong or found.passed):
                wrong = ("the program computes something else" if asked.kind in _COMPUTES else
                         "a row above comes first" if asked.options.get("decides") else "")
            rows.append(_row(asked, found, wrong))
            yield rows[-1]
        return Result(variant.exercise.id, variant.seed, rows)
    finally:
        answer.close()


def _row(asked: Check, found: Found, wrong: str) -> Row:
    """The marks that a check gives; `wrong`: why a row above leaves no points to it, or ""."""
    passed = found.passed and not wrong
    says = found.says
    if found.passed and wrong:
        says = f"no points: {wrong}" + (f" ({says})" if says else "")
    reached = 0 if wrong else asked.points if passed else int(asked.points * found.part)
    return Row(asked.kind, asked.title, reached, asked.points, passed, says, found.place)


def _found(asked: Check, answer: Answer, variant: Variant) -> Found:
    """What one check finds; what it cannot look at is not passed, for that reason."""
    try:
        return CHECKS[asked.kind](answer, variant, **asked.options)
    except (MLCError, *MISTAKES, RecursionError) as error:
        return Found(False, f"this could not be looked at: {reason(error)}")


def load(role: str) -> None:
    """Prepare the process: a function that is confined cannot look into it for what is right."""
    keep_others_out()


def _check(request: dict[str, Any]) -> Generator[dict[str, Any], None, dict[str, Any]]:
    """Each row as an event, then all of them."""
    made = marking(get(request["id"], request["folder"]).variant(request["seed"]),
                   request["answer"])
    while True:
        try:
            row = next(made)
        except StopIteration as done:
            return {"status": "ok", "result": done.value.to_dict()}
        yield {"row": asdict(row)}


def _watch(request: dict[str, Any]) -> dict[str, Any]:
    """Accesses of an answer's program, as `AccessTrace.shown` has them, with the "position" of the
    one at a place where it is wrong; or {"message": why there are none}."""
    variant = get(request["id"], request["folder"]).variant(request["seed"])
    try:
        answer = read(variant, request["answer"])
    except AnswerError as error:
        return {"status": "ok", "watched": {"message": error.message}}
    try:
        return {"status": "ok", "watched": watched(answer.mod, request["place"])}
    except (MLCError, *MISTAKES, RecursionError) as error:
        return {"status": "ok", "watched": {"message": reason(error)}}
    finally:
        answer.close()


HANDLERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "check": _check, "watch": _watch}
