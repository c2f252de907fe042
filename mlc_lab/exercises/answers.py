"""Answers are data: a text, a trace, or what was predicted; all are read, only functions are run.

    kind          an answer is one of
    schedule      lines of a schedule `sch` of the exercise's program, which are read and not run,
                  as a workbench reads them; {"trace": a trace's JSON}; a Schedule, which is kept as
                  its trace
    program       TVMScript, which is parsed and not run; an IRModule or PrimFunc, kept as its text
    prediction    {field: number, choice, choices as a list or a text with commas between them, or
                  marks in a picture, as a list or a text (`pictures.py`)}; of a single field the
                  value alone
    space         lines of a schedule that leave choices open (sch.sample_...), or a function of
                  `sch` with such lines, which are read and not run
    record        a record of a database: a line of its file of records, which may have the line of
                  its program above it; or a TuningRecord. Its trace is replayed; its times are not
                  looked at
    function      Python functions, as text; or a function, whose text is kept. The one kind that
                  has to be run: in a process that may do little (`workers/confined.py`), never here

`as_data` gives the plain form that is kept, sent and graded; `read` what it means for a variant.
"""

from __future__ import annotations

import inspect
import json
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..ir.diagnostics import DiagnosticError
from ..ir.module import IRModule
from ..meta_schedule.database.record import TuningRecord
from ..meta_schedule.workload import Workload, text_key
from ..observe.outside import calls_outside
from ..observe.typed_text import TextReader, defines_program
from ..reading import MISTAKES, DataError, MLCError, read_json, reason, shown
from ..reading.python_text import parse_python
from ..schedule import Schedule, Trace
from ..tir.function import PrimFunc
from .pictures import MarkError, marks_in

if TYPE_CHECKING:
    from .exercise import Field, Variant

#: characters of an answer, instructions of a record's trace
MOST_TEXT, MOST_STEPS = 200_000, 500
OTHER_PROGRAM = "search with the program of the exercise, exercises.get(...).variant(...).program"


class AnswerError(DataError):
    """An answer that cannot be read. `line` says where, from 1; 0 where there is no line."""

    def __init__(self, message: str, hint: str = "", line: int = 0) -> None:
        self.message, self.hint, self.line = message, hint, line
        super().__init__(message + (f"\nhint: {hint}" if hint else ""))


@dataclass
class Answer:
    """What an answer says: the program that it made, by which schedule, or what it predicts."""

    kind: str
    mod: IRModule | None = None
    sch: Schedule | None = None
    values: dict[str, Any] | None = None
    text: str = ""  # of a function or a space
    stopped: str = ""  # why a function is not run again: what it did before
    runs: dict[str, Any] = field(default_factory=dict)  # processes of a function, by prelude

    def close(self) -> None:
        """End what runs."""
        for run in self.runs.values():
            run.close()
        self.runs.clear()


def as_data(kind: str, answer: object) -> Any:
    """An answer in the form that is kept: plain data. Raises AnswerError for what is none."""
    if kind == "schedule" and isinstance(answer, Schedule):
        return {"trace": answer.trace.as_json()}
    if kind == "program" and isinstance(answer, (IRModule, PrimFunc)):
        return answer.script()
    if kind == "record" and isinstance(answer, TuningRecord):
        return "\n".join(map(json.dumps, (answer.workload.as_json(),
                                          [answer.workload.shash, answer.as_json(), {}])))
    if kind in ("space", "function") and inspect.isfunction(answer):
        answer = _source(answer)
    if kind != "prediction" and isinstance(answer, str):
        if len(answer) > MOST_TEXT:
            raise AnswerError(f"the answer has {len(answer)} characters; "
                              f"up to {MOST_TEXT} are read")
        return answer
    if kind == "schedule" and isinstance(answer, dict) and set(answer) == {"trace"}:
        return answer
    if kind == "prediction" and isinstance(answer, (dict, list, tuple, int, float, str)):
        return answer
    wanted = {"schedule": "a Schedule, or the text of one", "program": "TVMScript, or a module",
              "space": "the text of a schedule that draws decisions with sch.sample_perfect_tile",
              "record": "a line of a database's file of records, or a TuningRecord",
              "function": "the text of Python functions",
              "prediction": "a number, a choice, or a dict of them"}[kind]
    raise AnswerError(f"the answer is a {type(answer).__name__}: {wanted} is asked for")


def read(variant: Variant, data: Any) -> Answer:
    """What an answer means. Raises AnswerError, which says what is wrong and where."""
    kind = variant.exercise.kind
    data = as_data(kind, data)
    try:
        if kind == "schedule":
            found = as_schedule(variant, data)
        elif kind == "program":
            found = _program(data)
        elif kind == "space":
            found = as_schedule(variant, data)
            found.kind, found.text = kind, data
        elif kind == "record":
            found = _recorded(variant, data)
        elif kind == "function":
            found = _function(data)
        else:
            found = Answer(kind, values=_fields(variant.fields, data))
    except AnswerError:
        raise
    except (MLCError, *MISTAKES, RecursionError, MemoryError) as error:
        raise AnswerError(reason(error)) from None
    library = list(variant.library)
    outside = [] if found.mod is None else calls_outside(found.mod, library)
    if outside:
        raise AnswerError(f"it calls {', '.join(outside[:3])}: code from outside of the program",
                          f"an answer computes by itself, or calls {', '.join(library)}"
                          if library else "an answer computes by itself")
    return found


def as_schedule(variant: Variant, data: Any) -> Answer:
    """What a schedule of the exercise's program makes of it."""
    program = variant.program
    assert program is not None
    if isinstance(data, dict):
        sch = Schedule(program, seed=1)
        Trace.from_json(data["trace"]).apply_to_schedule(sch)
        return Answer("schedule", sch.mod, sch)
    names: dict[str, Any] = dict.fromkeys(("Module", "mod", "program"), program)
    found = TextReader(names, program).read(data)
    _raise(found.error, data)
    if found.start is not program:
        raise AnswerError("the answer brings a program of its own",
                          "schedule the program of the exercise: begin with the first primitive")
    sch = found.sch or Schedule(program)
    return Answer("schedule", sch.mod, sch)


def _recorded(variant: Variant, data: str) -> Answer:
    """What the trace of a record makes of the exercise's program, which the record has to be of."""
    program = variant.program
    assert program is not None
    lines = [line for line in data.splitlines() if line.strip()]
    if not 1 <= len(lines) <= 2:
        raise AnswerError("a record is one line, or two with its program's line first",
                          "copy a line of database_tuning_record.json")
    *first, last = (read_json(line, f"line {n}") for n, line in enumerate(lines, 1))
    for entry in first:
        if not Workload.from_json(entry).same(program):
            raise AnswerError("the record is of another program", OTHER_PROGRAM, 1)
    if not isinstance(last, list) or len(last) not in (3, 4):
        raise AnswerError("a record is [key of its program, [trace, times, target, arguments], "
                          "{...}]", "copy a line of database_tuning_record.json", len(lines))
    key, measured = (last[0], last[1]) if len(last) == 3 else (None, last)
    if not first and key is not None and key != text_key(program):
        raise AnswerError("the record is of another program", OTHER_PROGRAM)
    if not isinstance(measured, list) or not measured:
        raise AnswerError("the record has no trace", line=len(lines))
    steps = Trace.from_json(measured[0])
    if len(steps.insts) > MOST_STEPS:
        raise AnswerError(f"the trace has {len(steps.insts)} instructions; up to {MOST_STEPS} are "
                          "replayed")
    sch = Schedule(program, seed=1)
    steps.apply_to_schedule(sch)
    return Answer("record", sch.mod, sch)


def _program(data: str) -> Answer:
    found = TextReader().read(data)
    if found.mod is None and _without_program(data):
        raise AnswerError("there is no program in the answer" if data.strip() else
                          "the answer is empty",
                          "write def main(...) under @T.prim_func, or a class under @I.ir_module")
    _raise(found.error, data)
    return Answer("program", found.mod)


def _without_program(data: str) -> bool:
    try:
        return not defines_program(data)
    except DiagnosticError:
        return False  # it is no Python, which the reader has said


def _source(function: Any) -> str:
    """The text of a function of the user's."""
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise AnswerError("the text of this function is not known", "give its text") from None


def _function(data: str) -> Answer:
    """The text of functions, as far as it can be looked at without running it."""
    try:
        parse_python(data)
    except SyntaxError as error:
        raise AnswerError(f"this is no Python: {error.msg}", line=error.lineno or 0) from None
    return Answer("function", text=data)


def _raise(error: dict[str, Any] | None, text: str) -> None:
    """Refuse a text that has an error: in its own words, with the rule that it would break."""
    if error:
        told = error["message"]
        if error.get("rule"):
            line = text.split("\n")[error["line"] - 1].strip()
            told = f"{line}: refused by the rule \"{error['rule']}\": {told}"
        raise AnswerError(told, error.get("hint", ""), error["line"])


def _fields(fields: list[Field], data: Any) -> dict[str, Any]:
    """The values of a prediction's fields; None for one that was left empty."""
    if not isinstance(data, dict):
        data = {fields[0].name: data} if len(fields) == 1 else {}
    unknown = [name for name in data if name not in {f.name for f in fields}]
    if unknown:
        raise AnswerError(f"there is no field {shown(unknown[0])}",
                          f"the fields are {', '.join(f.name for f in fields)}")
    return {f.name: _value(f, data.get(f.name)) for f in fields}


def _value(wanted: Field, value: Any) -> Any:
    if value is None or value == "":
        return None
    if wanted.kind == "number":
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise AnswerError(f"{wanted.name}: {shown(value)} is no number",
                              "write digits, as 12 or 0.5")
        return value
    if wanted.picture is not None:
        return _marked(wanted, value)
    one = wanted.kind == "choice"
    if not one and isinstance(value, str):
        value = [value] if value in wanted.choices else [part.strip() for part in value.split(",")]
    values = [value] if one else list(value) if isinstance(value, (list, tuple)) else None
    if values is None:
        raise AnswerError(f"{wanted.name}: {shown(value)} is no list of choices",
                          f"they are {', '.join(wanted.choices)}")
    for item in values:
        if item not in wanted.choices:
            spaced = any(" " in choice for choice in wanted.choices)
            raise AnswerError(f"{wanted.name}: {shown(item)} is none of the choices",
                              f"they are {', '.join(map(repr, wanted.choices))}" if spaced else
                              f"they are {', '.join(wanted.choices)}")
    if wanted.kind == "order" and sorted(values) != sorted(wanted.choices):
        raise AnswerError(f"{wanted.name}: an order has each of {', '.join(wanted.choices)} once")
    return values[0] if one else values if wanted.kind == "order" else sorted(set(values))


def _marked(wanted: Field, value: Any) -> Any:
    """The places of a picture that are marked; the one, where one is asked for."""
    assert wanted.picture is not None
    try:
        found = marks_in(wanted.picture, value)
    except MarkError as error:
        raise AnswerError(f"{wanted.name}: {error.message}", error.hint) from None
    if wanted.kind == "marks":
        return found
    if len(found) > 1:
        raise AnswerError(f"{wanted.name}: one place is asked for, and {len(found)} are marked")
    return found[0] if found else None


__all__ = ["Answer", "AnswerError", "as_data", "as_schedule", "read"]
