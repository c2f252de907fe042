"""The Python of a schedule: written so that one would have written it so, and read back.

Reading walks the syntax tree: calls of primitives on the schedule, literals, and names bound
before. Nothing of the text is ever executed, so text from anywhere can be read.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..ir.diagnostics import DiagnosticError
from ..reading import MISTAKES, LimitError, limits, reason, similar
from ..reading.python_text import parse_python, written
from ..schedule.error import ScheduleError
from ..schedule.instruction import Instruction, InstructionKind, python_text
from ..schedule.trace_values import ValueReader
from ..script.bounded import Budget

#: names that the text needs for itself
RESERVED = {"sch", "tvm", "T", "I", "R", "Module", "lambda", "print"}
#: methods of a Schedule that change nothing: skipped where they stand in a text
_SHOWN = {"show", "explore", "workbench"}
#: names that are told to one who has typed the beginning of them
_NEAR = 6


def fresh_name(wish: str, taken: Iterable[str]) -> str:
    """`wish` made a Python name that is not in `taken`: `i`, `i_b`, `i_c`, ..."""
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in wish) or "x"
    if name[0].isdigit():
        name = "_" + name
    taken = RESERVED.union(taken)
    if name not in taken and not keyword.iskeyword(name):
        return name
    for number in range(1, 27):
        other = f"{name}_{chr(ord('a') + number)}"
        if other not in taken:
            return other
    number = 2
    while f"{name}_{number}_" in taken:
        number += 1
    return f"{name}_{number}_"


def call_text(
    inst: Instruction, names: Mapping[Any, str], decision: object = None, home: str | None = None
) -> str:
    """An instruction as one would write it: defaults left out, blocks and loops by position.

    `names` gives the names of random variables, `home` the function that `get_block` looks in when
    none is named.
    """
    kind, parts, positional = inst.kind, [], True
    for param in kind.params:
        if param.name == "decision" and kind.sampling:
            continue
        value = inst.args[param.name]
        if param.kind == param.VAR_POSITIONAL:
            parts += [python_text(v, names) for v in value]
            continue
        default = param.default
        if default is not param.empty and type(value) is type(default) and value == default:
            positional = False
            continue
        if kind.method == "get_block" and param.name == "func_name" and value == home:
            continue
        text = python_text(value, names)
        known = value in names if _hashable(value) else False
        if positional and (known or kind.positional or param.name == "name"):
            parts.append(text)
        else:
            positional = False
            parts.append(f"{param.name}={text}")
    if decision is not None:
        parts.append(f"decision={python_text(decision, names)}")
    call = f"sch.{kind.method}({', '.join(parts)})"
    outputs = inst.output_list
    if not outputs:
        return call
    left = ", ".join(names[o] for o in outputs)
    if isinstance(inst.outputs, (list, tuple)) and len(outputs) == 1:
        left += ","
    return f"{left} = {call}"


def _hashable(value: object) -> bool:
    return type(value).__hash__ is not None and not isinstance(value, (list, tuple, dict))


class ScheduleReader(ValueReader):
    """Reads the text of a schedule, statement by statement.

    `apply(kind, bound arguments, line)` is called for every primitive and returns its results.
    `scope` holds the names bound so far. `check_program(source, line)` is called with the text of
    each TVMScript function or module that stands in the text.
    """

    scope: dict[str, Any]

    def __init__(
        self,
        text: str,
        apply: Callable[[InstructionKind, dict[str, Any], int], Any],
        scope: dict[str, Any] | None = None,
        check_program: Callable[[str, int], None] | None = None,
        work_on: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__({} if scope is None else scope)
        self.text, self.lines = text, text.split("\n")
        self.apply, self.check_program, self.work_on = apply, check_program, work_on
        self.schedules = {"sch"}

    def fail(self, node: Any, message: str, hint: str = "") -> DiagnosticError:
        """The error that points at a node of the text."""
        line = getattr(node, "lineno", 1)
        column = getattr(node, "col_offset", 0)
        end = getattr(node, "end_col_offset", None)
        if end is None or getattr(node, "end_lineno", line) != line:
            end = column + 1
        source = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        raw = source.encode(errors="replace")  # the tree counts bytes, people count characters
        column, end = (len(raw[:n].decode(errors="replace")) for n in (column, end))
        return DiagnosticError(message, "<schedule>", line, column + 1, end + 1, source, hint)

    def parse(self) -> list[ast.stmt]:
        """The statements. Raises DiagnosticError for what is no Python or can be no schedule."""
        try:
            module = parse_python(self.text)
        except SyntaxError as err:
            at = ast.Pass(lineno=err.lineno or 1, col_offset=max(0, (err.offset or 1) - 1))
            raise self.fail(at, f"this is not Python: {err.msg}") from None
        except (LimitError, RecursionError) as err:
            raise self.fail(None, f"this is no schedule: {reason(err)}") from None
        found = []
        for stmt in module.body:
            if isinstance(stmt, ast.FunctionDef) and not stmt.decorator_list:
                arguments = stmt.args.args
                if arguments:
                    self.schedules.add(arguments[0].arg)
                found += stmt.body
            else:
                found.append(stmt)
        for stmt in found:
            self._examine(stmt)
        return found

    def read(self) -> None:
        """Apply every statement in order. Nothing is applied if the text is no schedule."""
        for stmt in self.parse():
            self.statement(stmt)

    # ------------------------------------------------------------------------- the statements

    def _examine(self, stmt: ast.stmt) -> None:
        """Refuse what no schedule holds, before anything is applied."""
        if isinstance(stmt, (ast.Import, ast.ImportFrom, ast.Pass, ast.ClassDef, ast.FunctionDef)):
            return
        if isinstance(stmt, ast.Assign):
            if len(stmt.targets) != 1:
                raise self.fail(stmt, "one assignment a line")
        elif isinstance(stmt, ast.Return):
            return
        elif not isinstance(stmt, ast.Expr):
            word = type(stmt).__name__.lower()
            raise self.fail(stmt, "a schedule is a list of calls of primitives; "
                            f"a {word} statement cannot be read", "write the calls out one by one")
        for node in ast.walk(stmt):
            if isinstance(node, ast.Call) and self._on_schedule(node):
                self._kind(node)

    def statement(self, stmt: ast.stmt) -> None:
        """Apply one statement."""
        if isinstance(stmt, (ast.ClassDef, ast.FunctionDef)) and self.check_program is not None:
            first = min([stmt.lineno, *(d.lineno for d in stmt.decorator_list)])
            self.check_program("\n".join(self.lines[first - 1 : stmt.end_lineno]), first)
        if not isinstance(stmt, (ast.Assign, ast.Expr)):
            return  # the program, an import, pass or return
        call = stmt.value
        if isinstance(stmt, ast.Assign):
            if makes_schedule(call):
                if not isinstance(stmt.targets[0], ast.Name):
                    raise self.fail(stmt, "the schedule is assigned to a plain name")
                self.schedules.add(stmt.targets[0].id)
                return
            self.bind(stmt.targets[0], self.value(call))
        elif isinstance(call, ast.Constant) or self._shows(call):
            return
        elif isinstance(call, ast.Call) and self._on_schedule(call):
            self.call(call)
        else:
            if isinstance(call, ast.Attribute):
                self._unfinished(call)
            raise self.fail(stmt, f"expected a call of a primitive such as sch.split(...), not "
                            f"{written(stmt)!r}")  # fmt: skip

    def bind(self, target: ast.expr, value: Any) -> None:
        """Give what a line computed its names."""
        if isinstance(target, ast.Name):
            if Budget().size(value) > limits.ITEMS:
                raise self.fail(target, f"{target.id} has more than {limits.ITEMS} parts")
            self.scope[target.id] = value
            return
        if not isinstance(target, (ast.Tuple, ast.List)):
            raise self.fail(target, "results are assigned to plain names")
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        stars = [i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
        if stars:
            at, after = stars[0], len(target.elts) - stars[0] - 1
            if len(values) >= len(target.elts) - 1:
                end = len(values) - after
                values = [*values[:at], values[at:end], *values[end:]]
        if len(values) != len(target.elts):
            raise self.fail(target, f"{len(target.elts)} names for {len(values)} results")
        for element, item in zip(target.elts, values):
            self.bind(element.value if isinstance(element, ast.Starred) else element, item)

    # ------------------------------------------------------------------------------ the values

    def value(self, node: ast.expr) -> Any:
        """A value, errors pointing at the place."""
        try:
            return self.of(node)
        except (DiagnosticError, ScheduleError):
            raise
        except MISTAKES as err:
            raise self.fail(node, reason(err)) from None

    def of(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Call) and self._on_schedule(node):
            return self.call(node)
        if isinstance(node, ast.Subscript):
            index = node.slice
            if isinstance(index, ast.Slice):
                parts = [None if p is None else self.of(p) for p in
                         (index.lower, index.upper, index.step)]  # fmt: skip
                return self.of(node.value)[slice(*parts)]
            return self.of(node.value)[self.of(index)]
        if isinstance(node, (ast.List, ast.Tuple)):
            values: list[Any] = []
            for element in node.elts:
                starred = isinstance(element, ast.Starred)
                values += self.of(element.value) if starred else [self.of(element)]
                if len(values) > limits.ITEMS:
                    raise LimitError(f"a list of more than {limits.ITEMS} elements")
            return values if isinstance(node, ast.List) else tuple(values)
        if isinstance(node, (ast.Attribute, ast.Name)):
            self._unfinished(node)
        return super().of(node)

    def _unfinished(self, node: ast.Attribute | ast.Name) -> None:
        """Raises DiagnosticError for the schedule alone, and for a primitive that is not called."""
        base = node.value if isinstance(node, ast.Attribute) else node
        if not isinstance(base, ast.Name) or base.id in self.scope:
            return
        sch = base.id
        if sch not in self.schedules:
            if isinstance(node, ast.Attribute):
                return
            close = similar(sch, [*self.scope, *self.schedules])
            raise self.fail(node, f"{sch!r} is not defined before this line",
                            f"did you mean {close[0]!r}?" if close else "")
        if isinstance(node, ast.Name):
            raise self.fail(node, f"a primitive of {sch} is missing here",
                            f'as in {sch}.get_block("C")')
        name, known = node.attr, InstructionKind.by_method
        if name in known:
            raise self.fail(node, f"{sch}.{name} is not called yet: its arguments are missing",
                            f"write {sch}.{name}(...)")
        begun = sorted(n for n in known if n.startswith(name))
        near = begun or similar(name, known)
        hint = f"did you mean {near[0]!r}?" if near else ""
        if len(begun) > 1:
            more = ", ..." if len(begun) > _NEAR else ""
            hint = f"so begin {', '.join(begun[:_NEAR])}{more}"
        raise self.fail(node, f"there is no primitive {name!r}", hint)

    def call(self, node: ast.Call) -> Any:
        """Apply a primitive that stands in the text."""
        kind = self._kind(node)
        args: list[Any] = []
        for arg in node.args:
            starred = isinstance(arg, ast.Starred)
            args += self.value(arg.value) if starred else [self.value(arg)]
        if any(k.arg is None for k in node.keywords):
            raise self.fail(node, "arguments by ** cannot be read", "write them out")
        kwargs = {k.arg: self.value(k.value) for k in node.keywords if k.arg is not None}
        try:
            if kind is None:
                return self.work_on(*args, **kwargs) if self.work_on is not None else None
            bound = kind.bind(args, kwargs)
        except (TypeError, ValueError) as err:
            raise self.fail(node, str(err)) from None
        try:
            return self.apply(kind, bound, node.lineno)
        except (DiagnosticError, ScheduleError):
            raise
        except MISTAKES as err:
            raise self.fail(node, f"{kind.method}: {reason(err)}") from None

    def _on_schedule(self, call: ast.Call) -> bool:
        base = call.func.value if isinstance(call.func, ast.Attribute) else None
        return isinstance(base, ast.Name) and base.id in self.schedules

    def _kind(self, call: ast.Call) -> InstructionKind | None:
        """The primitive of a call, None for work_on. Raises DiagnosticError if there is none."""
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        found = InstructionKind.by_method.get(name)
        if found is None and name != "work_on" and name not in _SHOWN:
            close = similar(name, InstructionKind.by_method)
            hint = f"did you mean {close[0]!r}?" if close else ""
            raise self.fail(call, f"there is no primitive {name!r}", hint)
        return found

    def _shows(self, node: ast.expr) -> bool:
        """Whether an expression only shows something: `sch.mod.show()`, `print(sch.trace)`."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return node.func.id in ("print", "display")
        if isinstance(node, ast.Name):
            return True
        called = node.func if isinstance(node, ast.Call) else node
        return isinstance(called, ast.Attribute) and called.attr in _SHOWN


def makes_schedule(node: ast.expr) -> bool:
    """Whether an expression is `tvm.tir.Schedule(...)`."""
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return name == "Schedule"
