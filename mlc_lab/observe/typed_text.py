"""A text that is being typed, read as a program and a schedule of it. Nothing of it is executed.

    read = TextReader(names, start).read(text)
    read.start, read.mod        # the program, and what the schedule made of it
    read.error                  # what is wrong, at its line; None where nothing is

The text is TVMScript as `from_source` takes it, then lines of a schedule as a workbench reads them,
or only one of the two. What the schedule is of stands in the text (`tvm.tir.Schedule(Module)`), or
is given.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..ir.diagnostics import DiagnosticError
from ..ir.module import IRModule
from ..reading import MISTAKES, MLCError, reason, similar
from ..schedule import Schedule, ScheduleError
from ..schedule.instruction import BlockRV, InstructionKind, LoopRV
from ..schedule.open_number import OpenNumber, divisors
from ..script import from_source
from ..script.source import parse_dedented
from ..tir.expr import Var
from ..tir.function import PrimFunc
from .live_programs import refused
from .workbench_python import ScheduleReader, makes_schedule

#: characters of a text that is read again with each letter that is typed
MOST_TEXT = 200_000
#: elements of a list of the user's that a schedule may mention
_MOST_ITEMS = 1000
_PLAIN = (int, float, str, BlockRV, LoopRV, Var, type(None))


@dataclass
class Number:
    """A number that is left open in a text: its choices, which of them it has, and where it is
    written, as (line from 1, first column from 0, end)."""

    name: str
    labels: list[str]
    chosen: int
    places: list[tuple[int, int, int]]


@dataclass
class Read:
    """What a text says: the program, and what its schedule made of it (up to the `error`)."""

    start: IRModule | None = None
    mod: IRModule | None = None
    sch: Schedule | None = None
    numbers: list[Number] = field(default_factory=list)
    error: dict[str, Any] | None = None


class TextReader:
    """Reads texts among some names.

    Parameters
    ----------
    names : Mapping
        Values that a text may mention, as the names of a notebook.
    given : IRModule, PrimFunc or Schedule, optional
        What lines of a schedule are of where the text does not say it; of a schedule, as it is now.
    name : what the text may call the schedule, besides `sch`.
    """

    def __init__(self, names: Mapping[str, Any] | None = None, given: Any = None,
                 name: str = "") -> None:
        self.names, self.name = dict(names or {}), name
        self.given = given.copy() if isinstance(given, Schedule) else given
        self.scope = {name: value for name, value in self.names.items()
                      if not name.startswith("_") and _is_plain(value)}
        self._parsed: dict[str, Any] = {}

    def read(self, text: str) -> Read:
        """What a text says. What is wrong with it becomes its error, whatever it is."""
        found = Read()
        lines = text.split("\n")
        try:
            self._read(text, lines, found)
        except ScheduleError as error:
            found.error = self._error(lines, error.line or 1, refused(error))
        except DiagnosticError as error:
            ours = error.filename.startswith("<")  # else it is in a function that is mentioned
            found.error = self._error(lines, error.line, {"message": error.message,
                                                          "hint": error.hint},
                                      error.column - 1, error.end_column - 1) if ours else (
                self._error(lines, 1, {"message": str(error)}))
        except (MLCError, *MISTAKES, RecursionError, MemoryError) as error:
            found.error = self._error(lines, 1, {"message": reason(error)})
        return found

    def _read(self, text: str, lines: list[str], found: Read) -> None:
        if len(text) > MOST_TEXT:
            raise DiagnosticError(f"the text has {len(text)} characters; up to {MOST_TEXT} are "
                                  "followed while they are typed")
        body = parse_dedented(text, "<text>")[1].body
        at = max((n for n, stmt in enumerate(body) if _is_program(stmt)), default=-1)
        end = body[at].end_lineno or 1 if at >= 0 else 0
        programs = [stmt for stmt in body[:at + 1]
                    if isinstance(stmt, (ast.ClassDef, ast.FunctionDef)) and _is_program(stmt)]
        start = self._program("\n".join(lines[:end])) if programs else self.given
        reader = _Reader("\n" * end + "\n".join(lines[end:]), self, found)
        reader.programs = {stmt.name: "\n".join(lines[:stmt.end_lineno]) for stmt in programs}
        reader.constants(body[:at + 1])
        if start is None and not any(map(_begins, body)):
            last = len(lines) - next((n for n, s in enumerate(reversed(lines)) if s.strip()), 0)
            raise DiagnosticError(
                "the text defines no program, and is a schedule of none", line=last,
                hint="write a function under @T.prim_func, or sch = tvm.tir.Schedule(Module) with "
                     "a Module of yours, or name it: %%live Module")
        if start is not None:
            reader.begin(start)
        reader.read()

    def _program(self, text: str) -> Any:
        """What the last program of a text is; the last few are kept."""
        if text not in self._parsed:
            while len(self._parsed) >= 4:
                del self._parsed[next(iter(self._parsed))]
            self._parsed[text] = as_module(from_source(text, self.names))
        return self._parsed[text]

    @staticmethod
    def _error(lines: list[str], line: int, told: dict[str, str], start: int = -1, end: int = 0
               ) -> dict[str, Any]:
        """An error at a line of the text; of a part of it, columns as a browser counts them."""
        line = min(max(1, line), len(lines))
        content = lines[line - 1]
        if not 0 <= start < len(content):
            start, end = len(content) - len(content.lstrip()), len(content.rstrip())
        columns = [units(content[:n]) for n in (start, max(end, start + 1))]
        return {"line": line, "column": columns[0], "end": columns[1],
                "call": "", "rule": "", "hint": "", **told}


class _Reader(ScheduleReader):
    """Reads the lines of a schedule that follow the programs of a text."""

    def __init__(self, text: str, around: TextReader, found: Read) -> None:
        super().__init__(text, self._apply, dict(around.scope), work_on=self._work_on)
        self.around, self.found = around, found
        self.schedules |= {around.name} - {""}
        self.programs: dict[str, str] = {}
        self.sch: Any = None
        self.began = False
        self.places: dict[str, list[tuple[int, int, int]]] = {}

    def begin(self, start: Any) -> None:
        """Go on with a program, or with a schedule as it is now."""
        if isinstance(start, Schedule):
            self.sch = start.copy()
            self.sch.seed(1)
            self.found.start = start.steps[0].before if start.steps else start.mod
        else:
            self.sch, self.found.start = None, as_module(start)
        self.found.mod = self.sch.mod if self.sch is not None else self.found.start
        self.places.clear()

    def read(self) -> None:
        try:
            super().read()
        finally:
            if self.sch is not None:
                self.found.mod, self.found.sch = self.sch.mod, self.sch
                self.found.numbers = list(self._numbers())

    def constants(self, body: list[ast.stmt]) -> None:
        """Constants that stand before the programs are names for the schedule too."""
        for stmt in body:
            if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1:
                try:
                    self.bind(stmt.targets[0], self.of(stmt.value))
                except MISTAKES:
                    continue  # one that only the script can compute; using it is an error there

    # ------------------------------------------------------------------------- the statements

    def statement(self, stmt: ast.stmt) -> None:
        """Apply one statement; one that makes a schedule says of what."""
        if isinstance(stmt, ast.Assign) and makes_schedule(stmt.value):
            if self.began:
                raise self.fail(stmt, "one schedule at a time is followed here",
                                "take the other one to a cell of its own")
            self.began = True
            self.begin(self._named(stmt.value))
        super().statement(stmt)

    def _named(self, call: Any) -> Any:
        """The program that a `Schedule(...)` is of."""
        node = call.args[0] if call.args else next(
            (k.value for k in call.keywords if k.arg == "mod"), None)
        name = node.id if isinstance(node, ast.Name) else None
        if name is None:
            raise self.fail(node or call, "the schedule of which program?",
                            "write its name: tvm.tir.Schedule(Module)")
        if name in self.programs:
            return self.around._program(self.programs[name])
        value = self.around.names.get(name)
        if isinstance(value, (IRModule, PrimFunc, Schedule)):
            return value
        if value is not None:
            raise self.fail(node, f"{name} is a {type(value).__name__}, no module or function")
        known = [n for n, v in self.around.names.items() if isinstance(v, (IRModule, PrimFunc))]
        close = similar(name, [*self.programs, *known])
        raise self.fail(node, f"there is no program {name!r} here",
                        f"did you mean {close[0]!r}?" if close else "")

    def _apply(self, kind: InstructionKind, bound: dict[str, Any], line: int) -> Any:
        try:
            return self._schedule().apply(kind, bound)
        except ScheduleError as refusal:
            refusal.line = line
            raise

    def _work_on(self, func_name: str) -> None:
        self._schedule().work_on(func_name)

    def _schedule(self) -> Schedule:
        if self.sch is None:
            if self.found.start is None:
                raise ValueError("there is no schedule before this line: "
                                 "sch = tvm.tir.Schedule(Module)")
            self.sch = Schedule(self.found.start, seed=1)  # the same text, the same program
        return self.sch

    # ---------------------------------------------------------------------- numbers left open

    def of(self, node: ast.expr) -> Any:
        """A value; `live(name, value, choices)` is a number that is left open."""
        if isinstance(node, ast.Call):
            called = node.func
            if "live" in (getattr(called, "attr", ""), getattr(called, "id", "")) and not (
                    self._on_schedule(node)):
                return self._open_number(node)
        return super().of(node)

    def _open_number(self, node: ast.Call) -> OpenNumber:
        given: dict[str, ast.expr] = dict(zip(("name", "value", "choices"), node.args))
        given.update({k.arg: k.value for k in node.keywords if k.arg is not None})
        name, value = given.get("name"), given.get("value")
        if not (isinstance(name, ast.Constant) and isinstance(name.value, str)
                and isinstance(value, ast.Constant) and type(value.value) is int):
            raise self.fail(node, "a number that is left open has a name and a value, both written "
                            "out, so that its slider can change them", 'as in live("tile", 8)')
        choices: Any = divisors
        if "choices" in given and getattr(given["choices"], "id", "") != "divisors":
            choices = self.value(given["choices"])
            if not isinstance(choices, (list, tuple)) or not all(type(c) is int for c in choices):
                raise self.fail(given["choices"], "the choices are a list of whole numbers, or "
                                "divisors")
        raw = self.lines[value.lineno - 1].encode(errors="replace")
        columns = [units(raw[:n or 0].decode(errors="replace"))
                   for n in (value.col_offset, value.end_col_offset)]
        self.places.setdefault(name.value, []).append((value.lineno, columns[0], columns[1]))
        return OpenNumber(name.value, value.value, choices)

    def _numbers(self) -> Any:
        """The open numbers of the text, with the choices that the schedule found for them."""
        sampled = {inst.outputs: (inst, self.sch.trace.decisions.get(at))
                   for at, inst in enumerate(self.sch.trace.insts)
                   if inst.kind.name == "SampleCategorical"}
        for name, rv in self.sch.open_numbers.items():
            if name in self.places and rv in sampled:
                inst, chosen = sampled[rv]
                yield Number(name, [str(int(c)) for c in inst.args["candidates"]], int(chosen),
                             self.places[name])


def as_module(program: Any) -> IRModule:
    """A program as a module. Raises DiagnosticError for what is none."""
    if isinstance(program, IRModule):
        return program
    if isinstance(program, PrimFunc):
        if "global_symbol" in program.attrs:
            program = program.with_attr("global_symbol", "main")
        return IRModule({"main": program})
    raise DiagnosticError(f"a {type(program).__name__} alone is not followed here",
                          hint="put it into a class under @I.ir_module")


def units(text: str) -> int:
    """How long a text is to a browser, which counts units of UTF-16."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def defines_program(text: str) -> bool:
    """Whether a text has a program in it. Raises DiagnosticError for what is no Python."""
    return any(map(_is_program, parse_dedented(text, "<text>")[1].body))


def _is_program(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.ClassDef) or (
        isinstance(stmt, ast.FunctionDef) and bool(stmt.decorator_list))


def _begins(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.Assign) and makes_schedule(stmt.value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return len(value) <= _MOST_ITEMS and all(isinstance(v, _PLAIN) for v in value)
    return isinstance(value, _PLAIN)


__all__ = ["MOST_TEXT", "Number", "Read", "TextReader", "as_module", "defines_program", "units"]
