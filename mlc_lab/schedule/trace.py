"""Traces: the list of instructions a schedule is made of, as text, as JSON, and replayed.

    # from tvm import tir
    def apply_trace(sch: tir.Schedule) -> None:
      b0 = sch.get_block(name="C", func_name="main")
      l1, l2, l3 = sch.get_loops(block=b0)
      v4, v5 = sch.sample_perfect_tile(loop=l2, n=2, max_innermost_factor=16, decision=[8, 16])

A trace read back from text or JSON is interpreted, never executed as Python.
"""

from __future__ import annotations

import ast
import contextlib
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from ..above import above
from ..ir.diagnostics import DiagnosticError
from ..reading import (
    MISTAKES, DataError, LimitError, MLCError, read_json, reason, shown, similar,
)
from ..reading.python_text import parse_expression, parse_python
from ..ir.containers import is_dict, is_sequence
from ..tir.expr import FloatImm, IntImm, PrimExpr, Var
from ..tir.function import IndexMap
from .instruction import BlockRV, Instruction, InstructionKind, LoopRV, python_text
from .trace_values import ValueReader, checked

if TYPE_CHECKING:
    from .schedule import Schedule


class Trace:
    """Instructions in order, and the decisions of those that sample.

    `insts` is a list of Instruction; `decisions` maps the index of a sampling instruction to what
    it chose.
    """

    def __init__(self, insts: Sequence[Instruction] = (), decisions: Any = None) -> None:
        self.insts: list[Instruction] = list(insts)
        self._decisions: dict[int, Any] = {}
        for inst, decision in dict(decisions or {}).items():
            self._decisions[inst if isinstance(inst, int) else self._position(inst)] = decision

    @property
    def decisions(self) -> dict[Any, Any]:
        """Decision by index of instruction; an instruction itself finds its own too."""
        return _Decisions(self._decisions, self.insts)

    def _position(self, inst: Instruction) -> int:
        for index, item in enumerate(self.insts):
            if item is inst:
                return index
        raise ValueError("the instruction is not in this trace")

    def get_decision(self, inst: Instruction) -> Any:
        """What a sampling instruction chose, None if it did not sample."""
        return self._decisions.get(self._position(inst))

    def append(self, inst: Instruction, decision: Any = None) -> None:
        """Add an instruction at the end."""
        if decision is not None:
            self._decisions[len(self.insts)] = decision
        self.insts.append(inst)

    def pop(self) -> Instruction | None:
        """Remove and return the last instruction; None if there is none."""
        if not self.insts:
            return None
        self._decisions.pop(len(self.insts) - 1, None)
        return self.insts.pop()

    def copy(self) -> "Trace":
        """A trace of its own with the same instructions."""
        new = Trace(self.insts)
        new._decisions = dict(self._decisions)
        return new

    def __len__(self) -> int:
        return len(self.insts)

    # ---------------------------------------------------------------------------- changing

    def with_decision(self, inst: Instruction, decision: Any, remove_postproc: bool = True
                      ) -> "Trace":
        """A trace in which the sampling instruction `inst` chose `decision`."""
        position = self._position(inst)
        if not inst.kind.sampling:
            raise ValueError(f"{inst.kind.method} does not sample: it has no decision to replace")
        new = self.without_postproc() if remove_postproc else self.copy()
        new._decisions[position] = decision
        return new

    def simplified(self, remove_postproc: bool = True) -> "Trace":
        """The trace without pure instructions whose outputs nobody uses."""
        source = self.without_postproc() if remove_postproc else self
        used: set[Any] = set()
        kept: list[tuple[Instruction, Any]] = []
        for index in range(len(source.insts) - 1, -1, -1):
            inst = source.insts[index]
            if inst.kind.pure and not any(o in used for o in inst.output_list):
                continue
            used.update(inst.inputs)
            kept.append((inst, source._decisions.get(index)))
        new = Trace()
        for inst, decision in reversed(kept):
            new.append(inst, decision)
        return new

    def without_postproc(self) -> "Trace":
        """The instructions before EnterPostproc."""
        new = Trace()
        for index, inst in enumerate(self.insts):
            if inst.kind.name == "EnterPostproc":
                break
            new.append(inst, self._decisions.get(index))
        return new

    # ---------------------------------------------------------------------------- replay

    def apply_to_schedule(self, sch: Schedule, remove_postproc: bool = False,
                          decision_provider: Callable[..., Any] | None = None) -> None:
        """Apply every instruction to `sch`.

        `decision_provider(inst, inputs, attrs, decision)` may replace decisions. Raises
        ScheduleError where a step is refused, DataError where the trace does not fit the module.
        """
        source = self.without_postproc() if remove_postproc else self
        table: dict[Any, Any] = ReplayTable(sch)
        for index, inst in enumerate(source.insts):
            decision = source._decisions.get(index)
            if inst.kind.sampling and decision_provider is not None:
                decision = decision_provider(inst, inst.inputs, inst.attrs, decision)
            try:
                args = {name: translate_argument(value, table)
                        for name, value in inst.args.items()}
                if inst.kind.sampling:
                    args["decision"] = decision
                outputs = sch.apply(inst.kind, args)
                pair_outputs(inst, outputs, table)
            except MLCError:
                raise
            except MISTAKES as error:
                raise DataError(f"step {index + 1} of the trace, {inst.kind.method}, cannot be "
                                f"replayed: {reason(error)}") from error

    # ---------------------------------------------------------------------------- text

    def names(self) -> dict[Any, str]:
        """The names of all outputs as the text shows them: b0, l1, l2, v3, ..."""
        names: dict[Any, str] = {}
        for inst in self.insts:
            for rv in inst.output_list:
                prefix = "b" if isinstance(rv, BlockRV) else "l" if isinstance(rv, LoopRV) else "v"
                if rv not in names:
                    names[rv] = f"{prefix}{len(names)}"
        return names

    def as_python(self, remove_postproc: bool = False) -> list[str]:
        """One line of Python for each instruction."""
        source = self.without_postproc() if remove_postproc else self
        names = source.names()
        return [inst.as_python(names, source._decisions.get(i))
                for i, inst in enumerate(source.insts)]

    def __str__(self) -> str:
        lines = ["# from tvm import tir", "def apply_trace(sch: tir.Schedule) -> None:"]
        body = ["  " + line for line in self.as_python()] or ["  pass"]
        return "\n".join(lines + body)

    __repr__ = __str__

    def show(self, style: str | None = None, black_format: bool = False) -> None:
        """Print the trace highlighted."""
        above("show_text")(str(self), style=style)

    # ---------------------------------------------------------------------------- JSON

    def as_json(self, remove_postproc: bool = False) -> list[Any]:
        """[[kind, arguments, outputs] per instruction, [[index, decision], ...]], JSON-ready."""
        source = self.without_postproc() if remove_postproc else self
        names = source.names()
        rows: list[Any] = []
        for inst in source.insts:
            args = {name: _to_json(value, names) for name, value in inst.args.items()
                    if not (name == "decision" and inst.kind.sampling)}
            outs = inst.outputs
            rows.append([inst.kind.name, args,
                         [names[o] for o in outs] if is_sequence(outs)
                         else names[outs] if outs is not None else None])
        return [rows, [[i, _to_json(d, names)] for i, d in source._decisions.items()]]

    @staticmethod
    def from_json(data: Any) -> "Trace":
        """The trace of what `as_json` gave (the list or its text). Raises DataError."""
        if isinstance(data, (str, bytes)):
            data = read_json(data, "this trace")
        try:
            rows, decisions = data
            trace = Trace()
            rvs: dict[str, Any] = {}
            for name, args, outs in rows:
                kind = InstructionKind.registry.get(name)
                if kind is None:
                    raise ValueError(f"unknown instruction {name!r}")
                bound = {k: _from_json(v, rvs) for k, v in args.items()}
                if kind.sampling:
                    bound["decision"] = None
                unknown = bound.keys() - {p.name for p in kind.params}
                if unknown:
                    raise ValueError(f"{name} has no argument {', '.join(sorted(unknown))}")
                positional, keyword = kind.call(
                    {p.name: bound.get(p.name, () if p.kind == p.VAR_POSITIONAL else p.default)
                     for p in kind.params})
                trace.append(Instruction.of(kind, kind.bind(positional, keyword),
                                         _new_outputs(outs, rvs)))
            for index, decision in decisions:
                if type(index) is not int or not 0 <= index < len(trace.insts) or (
                        not trace.insts[index].kind.sampling):
                    raise ValueError(f"there is no instruction {index!r} that samples")
                trace._decisions[index] = _from_json(decision, rvs)
        except MISTAKES as err:
            raise DataError(f"this is not a trace in JSON: {reason(err)}") from err
        return trace

    @staticmethod
    def apply_json_to_schedule(json_obj: Any, sch: Schedule) -> None:
        """Replay a trace kept as JSON on `sch`."""
        Trace.from_json(json_obj).apply_to_schedule(sch)

    # ---------------------------------------------------------------------------- from text

    @staticmethod
    def from_python(text: str) -> "Trace":
        """The trace of the text `str(trace)` gives. Read from the syntax tree, not executed.

        Raises DiagnosticError with line and column for anything that is no instruction.
        """
        return _TextReader(text).read()


class _Decisions(dict[Any, Any]):
    """Decisions by index, which are found by instruction as well, as TVM has them."""

    def __init__(self, decisions: Mapping[int, Any], insts: Sequence[Instruction]) -> None:
        super().__init__(decisions)
        self.insts = list(insts)

    def __missing__(self, key: Any) -> Any:
        for index, inst in enumerate(self.insts):
            if inst is key and index in self:
                return self[index]
        raise KeyError(key)

    def get(self, key: Any, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or any(
            inst is key and super(_Decisions, self).__contains__(index)
            for index, inst in enumerate(self.insts))


class ReplayTable(dict[Any, Any]):
    """What variables of a trace stand for in a schedule: RVs as they are entered, sizes of the
    function and variables around the block or loop of an instruction by their names."""

    def __init__(self, sch: Any, known: Any = ()) -> None:
        super().__init__(known)
        self.sch = sch
        self.place: BlockRV | LoopRV | None = None  # of the instruction that is translated

    def __missing__(self, var: Any) -> Any:
        found = self.sch.variable_named(var.name, self.place) if isinstance(var, Var) else None
        if found is None:
            raise KeyError(var)
        return found


def translate_argument(value: Any, table: ReplayTable) -> Any:
    """A recorded argument with new RVs for those in it, and sizes of the module that it meets."""
    if isinstance(value, (BlockRV, LoopRV)):
        table.place = table[value]
        return table.place
    if isinstance(value, Var):
        # another decision may have made a loop of a sampled place that was none
        with contextlib.suppress(KeyError):
            return table[value]
        return value
    if is_sequence(value):
        return type(value)(translate_argument(v, table) for v in value)
    if isinstance(value, IndexMap):
        final = [_translate_expr(e, table, value.initial_indices) for e in value.final_indices]
        if all(a is b for a, b in zip(final, value.final_indices)):
            return value
        return type(value)(value.initial_indices, final)
    if isinstance(value, PrimExpr) and not isinstance(value, (IntImm, FloatImm)):
        return _translate_expr(value, table)
    return value


def _translate_expr(e: PrimExpr, table: ReplayTable, own: Sequence[Var] = ()) -> PrimExpr:
    from ..tir.functor import free_vars, substitute

    found: dict[Var, Any] = {}
    for var in free_vars(e):
        if not any(var is v for v in own):
            with contextlib.suppress(KeyError):
                found[var] = table[var]
    return substitute(e, found) if found else e


def pair_outputs(inst: Instruction, new: Any, table: dict[Any, Any]) -> None:
    """Enter the results of a replayed instruction for those that the trace has. ValueError where
    there are more or fewer of them."""
    old_list = inst.output_list
    new_list = [*new] if is_sequence(new) else [] if new is None else [new]
    if len(old_list) != len(new_list):
        raise ValueError(
            f"replay of {inst.kind.method} gave {len(new_list)} results where the trace has "
            f"{len(old_list)}: the trace does not fit this module")
    table.update(zip(old_list, new_list))


def _new_outputs(outs: Any, rvs: dict[str, Any]) -> Any:
    if outs is None:
        return None
    if is_sequence(outs):
        return [_new_output(o, rvs) for o in outs]
    return _new_output(outs, rvs)


def _new_output(outs: Any, rvs: dict[str, Any]) -> Any:
    if not (isinstance(outs, str) and outs[:1] in "blv" and outs[1:].isdecimal()):
        raise ValueError(f"{shown(outs)} is no name of an output (b0, l1, v2, ...)")
    rv = {"b": BlockRV, "l": LoopRV}.get(outs[0], lambda: Var(outs, "int32"))()
    rvs[outs] = rv
    return rv


def _to_json(value: Any, names: Mapping[Any, str]) -> Any:
    if isinstance(value, (BlockRV, LoopRV)):
        return {"rv": names[value]}
    if is_sequence(value):
        items = [_to_json(v, names) for v in value]
        return items if isinstance(value, list) else {"tuple": items}
    if is_dict(value):
        return {"dict": {k: _to_json(v, names) for k, v in value.items()}}
    if isinstance(value, IndexMap):
        return {"map": python_text(value, names)}
    if isinstance(value, PrimExpr):
        return {"expr": python_text(value, names)}
    return value


def _from_json(value: Any, rvs: Mapping[str, Any]) -> Any:
    if is_sequence(value):
        return [_from_json(v, rvs) for v in value]
    if is_dict(value):
        (tag, inner), = value.items()
        if tag == "rv":
            return rvs[inner]
        if tag == "tuple":
            return tuple(_from_json(v, rvs) for v in inner)
        if tag == "dict":
            return {k: _from_json(v, rvs) for k, v in inner.items()}
        if tag not in ("map", "expr") or not isinstance(inner, str):
            raise ValueError(f"{tag!r} is no kind of value")
        return ValueReader(rvs).of(parse_expression(inner))
    return checked(value)


class _TextReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.scope: dict[str, Any] = {}
        self.trace = Trace()

    def fail(self, node: Any, message: str, hint: str = "") -> DiagnosticError:
        line = getattr(node, "lineno", 1)
        column = getattr(node, "col_offset", 0)
        end = getattr(node, "end_col_offset", column + 1)
        source = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return DiagnosticError(message, "<trace>", line, column + 1, end + 1, source, hint)

    def read(self) -> Trace:
        try:
            module = parse_python(self.text)
        except SyntaxError as err:
            at = ast.Pass(lineno=err.lineno or 1, col_offset=(err.offset or 1) - 1,
                          end_lineno=err.lineno or 1, end_col_offset=err.offset or 1)
            raise self.fail(at, f"not Python: {err.msg}") from None
        except (LimitError, RecursionError) as err:
            raise self.fail(None, f"this is no trace: {reason(err)}",
                            "a trace is a list of calls") from None
        body = module.body
        if len(body) == 1 and isinstance(body[0], ast.FunctionDef):
            body = body[0].body
        for stmt in body:
            if not isinstance(stmt, ast.Pass):
                self.statement(stmt)
        return self.trace

    def statement(self, stmt: ast.stmt) -> None:
        targets: Any = None
        if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1:
            targets = stmt.targets[0]
        elif not isinstance(stmt, ast.Expr):
            raise self.fail(stmt, "a trace holds only calls of the schedule's primitives",
                            "for example: l1, l2 = sch.get_loops(block=b0)")
        call = stmt.value
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            raise self.fail(stmt, "expected a call such as sch.split(...)")
        method = above("methods of schedules").get(call.func.attr, call.func.attr)
        kind = InstructionKind.by_method.get(method)
        if kind is None:
            close = similar(call.func.attr, InstructionKind.by_method)
            raise self.fail(call, f"there is no primitive {call.func.attr!r}",
                            f"did you mean {close[0]!r}?" if close else "")
        values = ValueReader(self.scope)
        try:
            args = [values.of(a) for a in call.args]
            kwargs = {k.arg or "**": values.of(k.value) for k in call.keywords}
            decision = kwargs.get("decision") if kind.sampling else None
            bound = kind.bind(args, kwargs)
        except MISTAKES as err:
            raise self.fail(call, reason(err)) from None
        if kind.sampling:
            bound["decision"] = None
        outputs = self.outputs(targets)
        self.trace.append(Instruction.of(kind, bound, outputs), decision)

    def outputs(self, target: Any) -> Any:
        if target is None:
            return None
        if isinstance(target, (ast.Tuple, ast.List)):
            return [self.output(t) for t in target.elts]
        return self.output(target)

    def output(self, target: Any) -> Any:
        """The variable that a name of the text stands for from here on."""
        if not isinstance(target, ast.Name):
            raise self.fail(target, "results are assigned to plain names")
        name = target.id
        rv = {"b": BlockRV, "l": LoopRV}.get(name[0], lambda: Var(name, "int32"))()
        self.scope[name] = rv
        return rv


__all__ = ["ReplayTable", "Trace", "ValueReader", "pair_outputs", "translate_argument"]
