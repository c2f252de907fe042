"""Cards on the pages of the site, which work without Python: a page has what Python would say.

Only the build of the site makes these (website/build.py): they tell the truth and a solution.
js/page_card.js answers from them as the card's Python does. `page` is

    {"version": "1f0c9a3e",        of the exercise: an answer to another one has no marks
     "hints": [text, text, text], "solution": text,
     "error": {"message", "hint", "line"},    what Check says where a page cannot check
     "rows": [row, ...],           of a prediction whose rows a page can check; else missing
     "words": {name: text}}        what is said of any value, with places for it

    row = {"kind": "prediction", "field", "title", "of",
           "equals": value, "within": part of it, "why": text,
           "says": [[value, text], ...],     what is said of a value; of a choice that is all
           "about": {choice: text}}          what is said of a choice that is one too many
        | {"kind": "marks", "field", "title", "of", "why": text,
           "equals": [place, ...], "about": {place: text}}     of a wrong or a missing one
"""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from mlc_lab.exercises import ExerciseError, get
from mlc_lab.exercises.answers import Answer
from mlc_lab.exercises.catalogue import version
from mlc_lab.exercises.checks import CHECKS
from mlc_lab.exercises.checks.marks import is_missing, is_wrong
from mlc_lab.exercises.command import as_text
from mlc_lab.exercises.pictures import marks_in
from mlc_lab.language import PARTED, chosen, filled, speaking, text, told

from . import bundle, saved
from .card import ENTRY, STYLES, Card, task_of

#: the options of checks that a page knows, and what kind of field each is of
_KNOWN = {
    "prediction": ({"field", "equals", "within", "why", "says", "about"},
                   ("number", "choice", "order", "several")),
    "marks": ({"field", "equals", "why", "about"}, ("marks",)),
}  # fmt: skip
#: what checks/prediction.py and checks/marks.py say of any value
_WORDS = {
    "empty": "nothing was filled in", "unmarked": "nothing was marked",
    "large": "{value} is too large", "small": "{value} is too small",
    "order": "not in this order: {value}", "several": "not these: {value}",
    "more": "too many: {value}", "less": "{value} missing",
    "counts": "{value0} of {value1} are right, {value2} wrong",
}  # fmt: skip


def recorded(variant: Any) -> dict[str, Any]:
    """The recording of an exercise's card for a page of the site, as `live` makes it of one that a
    notebook has kept; of nobody's answer."""
    start: Any = {} if variant.exercise.kind == "prediction" else ""
    values = {"task": task_of(variant, None), "answer": {"value": start, "n": 0}, "asked": 0,
              "wanted": 0, "marks": {}, "hints": [], "wrap": False,
              "rules": {"cost": 0, "solution": True}}  # fmt: skip
    said = bundle.words(ENTRY)
    return live(saved.recorded(ENTRY, STYLES, {**values, "words": said} if said else values,
                               Card._alone))  # fmt: skip


def live(kept: dict[str, Any]) -> dict[str, Any]:
    """A card that a notebook has kept as one that a page of the site answers for, in the reader's
    language. One of an exercise that is not in the catalogue stays as it is."""
    if "packed" not in kept:
        return kept
    packed = json.loads(gzip.decompress(base64.b64decode(kept["packed"])))
    task = {**packed, **kept["values"]}["task"]
    try:
        variant = get(task["id"]).variant(task["seed"])
    except ExerciseError:
        return kept
    if variant.statement != task["statement"]:
        return kept  # a teacher's, of the same number
    made = saved.gzipped({**packed, "page": page(variant)})["gzip"]
    return {**kept, "packed": made, "alone": {**kept["alone"], "live": True}}


def page(variant: Any) -> dict[str, Any]:
    """What a page has to answer for a card, in the reader's language; see the head of this file."""
    id = variant.exercise.id
    made = {
        "version": version(id), "hints": variant.hints, "solution": as_text(variant.reference),
        "error": {
            "message": text("This page has no compiler to check this answer with.", "views"),
            "hint": text("In the lab it is checked: exercise(\"{id}\") in a notebook, or "
                         "mlc-lab exercise {id} answer.py in a terminal.", "views").format(id=id),
            "line": 0},
    }  # fmt: skip
    rows = _rows(variant) if variant.exercise.kind == "prediction" else None
    if rows is None:
        return made
    sentence, clause = PARTED[chosen()]
    words = {name: told(said, "checks") for name, said in _WORDS.items()}
    return {**made, "rows": rows, "words": {**words, "sentence": sentence, "clause": clause}}


def _rows(variant: Any) -> list[dict[str, Any]] | None:
    """The rows of a prediction, or None where one of them needs Python."""
    fields = {field.name: field for field in variant.fields}
    rows = []
    with speaking("en"):  # as marks are made; they are told in the reader's language
        checks = variant.checks
    for check in checks:
        known, kinds = _KNOWN.get(check.kind, (set(), ()))
        field = fields.get(check.options.get("field"))
        if not set(check.options) <= known or field is None or field.kind not in kinds:
            return None
        with speaking("en"):
            options: dict[str, Any] = {name: found() if callable(found) else found
                                       for name, found in check.options.items()}  # fmt: skip
        said = _marked if check.kind == "marks" else _predicted
        rows.append({
            "kind": check.kind, "field": field.name, "of": check.points,
            "title": filled(check.title, "exercises"),
            "why": told(options.get("why") or "", "checks"),
            **said(variant, field, options),
        })  # fmt: skip
    return rows


def _predicted(variant: Any, field: Any, options: dict[str, Any]) -> dict[str, Any]:
    """What is right of a field, and what is said of other values."""
    equals, says = options["equals"], options.get("says") or {}
    about = options.get("about") or {}
    if field.kind == "choice":  # there are few: the check itself says what it says of each
        with speaking("en"):
            said = [(choice, CHECKS["prediction"](
                Answer("prediction", values={field.name: choice}), variant, **options).says)
                for choice in field.choices if choice != equals]  # fmt: skip
        return {"equals": equals, "says": [[one, told(what, "checks")] for one, what in said]}
    made: dict[str, Any] = {
        "says": [[list(value) if isinstance(value, tuple) else _number(value),
                  told(what, "checks")] for value, what in says.items()]}  # fmt: skip
    if field.kind == "number":
        return {**made, "equals": _number(equals), "within": _number(options.get("within", 0.0))}
    if field.kind == "order":
        return {**made, "equals": list(equals)}
    more = [name for name in field.choices if name in about and name not in equals]
    return {**made, "equals": sorted(equals),
            "about": {name: told(f"{name}: {about[name]}", "checks") for name in more}}  # fmt: skip


def _marked(variant: Any, field: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Which places of a picture are right, and what is said of each that is not as it should be."""
    right = marks_in(field.picture, options["equals"])
    about = options.get("about")
    inside = set(right)
    return {"equals": right,
            "about": {name: told((is_missing if name in inside else is_wrong)(name, about),
                                 "checks") for name in field.choices}}  # fmt: skip


def _number(value: Any) -> Any:
    """A number as JSON has it."""
    return value if isinstance(value, int) else float(value)


__all__ = ["live", "page", "recorded"]
