"""A scheduled program written as a hybrid script, and scripts kept in files."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...backend.interp import interpret
from ...build import build as build_function
from ...ir.dtype import canonical
from ...ir.structural import structural_equal
from ...script.source import parse_dedented
from ...te import Tensor, create_prim_func, create_schedule, placeholder
from ...tir import expr as E
from ...tir import stmt as S
from ...tir.buffer import Buffer
from ...tir.functor import pre_order
from ...tir.op import as_int
from ..passes import schedule_to_module
from . import parser
from .words import CASTS, IN_EXPRESSIONS, LOOPS


class HybridModule:
    """The text of a hybrid script, and the function that it is.

    Called with tensors it gives tensors, with arrays new arrays: a script that comes from a file is
    read and compiled (or interpreted, where it is for a GPU), never executed as Python.
    """

    def __init__(self, src: str | None = None, name: str | None = None) -> None:
        self.src_, self.name = src, name
        if src is not None and name is None:
            self.name = _definition(src)[1].name

    def get_source(self) -> str:
        """The text."""
        if self.src_ is None:
            raise ValueError("the module is empty: load() a file into it")
        return self.src_

    def save(self, path: str) -> None:
        """Write the text to a file; `.py` is added where the name has no such ending."""
        path = path if path.endswith(".py") else path + ".py"
        Path(path).write_text(self.get_source(), encoding="utf-8")

    def load(self, path: str) -> None:
        """Read the text of a file. Raises DiagnosticError where it holds no function."""
        text = Path(path).read_text(encoding="utf-8")
        self.name = _definition(text)[1].name
        self.src_ = text

    def __call__(self, *args: Any) -> Any:
        text = self.get_source()
        source, node = _definition(text)
        if any(isinstance(a, (Tensor, E.PrimExpr)) for a in args):
            op = parser.read(source, node, {}, args, node.name)
            return op.output(0) if op.num_outputs == 1 else list(op.outputs)
        arrays = [np.asarray(a) if hasattr(a, "shape") else a for a in args]
        given = [placeholder(a.shape, canonical(str(a.dtype)), name) if isinstance(a, np.ndarray)
                 else a for a, name in zip(arrays, [p.arg for p in node.args.args])]
        op = parser.read(source, node, {}, given, node.name)
        outs = [np.zeros([as_int(d) or 0 for d in t.shape], t.dtype) for t in op.outputs]
        tensors = [t for t in given if isinstance(t, Tensor)]
        func = create_prim_func([*tensors, *op.outputs])
        threads = any(isinstance(s, S.For) and s.thread_tag for s in pre_order(op.body))
        run = partial(interpret, func) if threads else build_function(func, target="llvm")
        run(*[a.copy() for a in arrays if isinstance(a, np.ndarray)], *outs)
        return outs[0] if len(outs) == 1 else outs


def _definition(text: str) -> tuple[Any, ast.FunctionDef]:
    source, tree = parse_dedented(text, "<hybrid script>")
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    if len(found) != 1:
        raise source.error(tree, f"the text defines {len(found)} functions, and not one")
    return source, found[0]


# ------------------------------------------------------------------------------- printing

_SIGNS = {E.Add: "+", E.Sub: "-", E.Mul: "*", E.FloorDiv: "//", E.FloorMod: "%", E.LT: "<",
          E.LE: "<=", E.GT: ">", E.GE: ">=", E.EQ: "==", E.NE: "!=", E.And: "and", E.Or: "or"}
_WORDS = {E.Min: "min", E.Max: "max"}
_CALLS = {f"tir.{name}": name for name in IN_EXPRESSIONS} | {
    "tir.pow": "power", "tir.fabs": "abs"}
_INFIX = {"tir.shift_left": "<<", "tir.shift_right": ">>", "tir.bitwise_and": "&",
          "tir.bitwise_or": "|", "tir.bitwise_xor": "^"}
_LOOPS = {kind: name for name, kind in LOOPS.items()}


class _Writer:
    """Writes a program of loops as a hybrid script."""

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}
        self.taken: set[str] = {*IN_EXPRESSIONS, *LOOPS, "const_range", "bind", "allocate",
                                "output_tensor", "len"}
        self.scalars: set[Any] = set()
        self.lines: list[str] = []

    def name(self, node: Any, wanted: str) -> str:
        """The name of a variable or a buffer, made when first asked for."""
        if node not in self.names:
            plain = re.sub(r"\W", "_", wanted) or "x"
            plain = f"v{plain}" if plain[0].isdigit() or keyword.iskeyword(plain) else plain
            unique, count = plain, 0
            while unique in self.taken:
                count += 1
                unique = f"{plain}_{count}"
            self.taken.add(unique)
            self.names[node] = unique
        return self.names[node]

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def no(self, what: Any) -> ValueError:
        return ValueError(f"{what} has no form in a hybrid script: schedule the program without it")

    # expressions

    def expr(self, e: Any) -> str:
        """An expression as text."""
        kind = type(e)
        if kind is E.IntImm:
            return str(bool(e.value)) if e.dtype == "bool" else str(e.value) if (
                e.dtype == "int32") else f"{e.dtype}({e.value})"
        if kind is E.FloatImm:
            return repr(float(e.value)) if e.dtype == "float32" else f"{e.dtype}({e.value!r})"
        if isinstance(e, E.Var):
            return self.name(e, e.name)
        if kind is E.BufferLoad:
            return self.element(e)
        if kind in _SIGNS:
            return f"({self.expr(e.a)} {_SIGNS[kind]} {self.expr(e.b)})"
        if kind is E.Div and not e.dtype.startswith(("int", "uint")):
            return f"({self.expr(e.a)} / {self.expr(e.b)})"
        if kind in _WORDS:
            return f"{_WORDS[kind]}({self.expr(e.a)}, {self.expr(e.b)})"
        if kind is E.Not:
            return f"(not {self.expr(e.a)})"
        if kind is E.Cast and e.dtype in CASTS:
            return f"{e.dtype}({self.expr(e.value)})"
        if kind is E.Select:
            return self.choice(e.condition, e.true_value, e.false_value)
        if kind is E.Call:
            return self.call(e)
        raise self.no(kind.__name__)

    def choice(self, condition: Any, then: Any, other: Any) -> str:
        return f"({self.expr(then)} if {self.expr(condition)} else {self.expr(other)})"

    def call(self, e: E.Call) -> str:
        name = getattr(e.op, "name", str(e.op))
        if name == "tir.if_then_else":
            return self.choice(*e.args)
        if name in _INFIX:
            return f"({self.expr(e.args[0])} {_INFIX[name]} {self.expr(e.args[1])})"
        if name not in _CALLS:
            raise self.no(name)
        return f"{_CALLS[name]}({', '.join(map(self.expr, e.args))})"

    def element(self, at: Any) -> str:
        indices = ", ".join(map(self.expr, at.indices)) or "0"
        return f"{self.name(at.buffer.data, at.buffer.name)}[{indices}]"

    # statements

    def stmt(self, s: S.Stmt, depth: int) -> None:
        """A statement, a line for each of its parts."""
        method = getattr(self, f"write_{type(s).__name__}", None)
        if method is None:
            raise self.no(type(s).__name__)
        method(s, depth)

    def write_SeqStmt(self, s: S.SeqStmt, depth: int) -> None:
        for part in s.seq:
            self.stmt(part, depth)

    def write_Evaluate(self, s: S.Evaluate, depth: int) -> None:
        if not isinstance(s.value, E.IntImm):
            raise self.no("a call as a statement")
        self.line(depth, "pass")

    def write_BufferStore(self, s: S.BufferStore, depth: int) -> None:
        self.line(depth, f"{self.element(s)} = {self.expr(s.value)}")

    def write_LetStmt(self, s: S.LetStmt, depth: int) -> None:
        self.line(depth, f"{self.name(s.var, s.var.name)} = {self.expr(s.value)}")
        self.stmt(s.body, depth)

    def write_AssertStmt(self, s: S.AssertStmt, depth: int) -> None:
        message = s.message.value if isinstance(s.message, E.StringImm) else ""
        self.line(depth, f"assert {self.expr(s.condition)}, {message!r}")
        self.stmt(s.body, depth)

    def write_IfThenElse(self, s: S.IfThenElse, depth: int) -> None:
        self.line(depth, f"if {self.expr(s.condition)}:")
        self.stmt(s.then_case, depth + 1)
        if s.else_case is not None:
            self.line(depth, "else:")
            self.stmt(s.else_case, depth + 1)

    def write_For(self, s: S.For, depth: int) -> None:
        if s.kind == S.ForKind.THREAD_BINDING:
            head = f'bind("{s.thread_tag}", {self.expr(s.extent)})'
        elif isinstance(s.min, E.IntImm) and s.min.value == 0:
            head = f"{_LOOPS[s.kind]}({self.expr(s.extent)})"
        else:
            head = f"{_LOOPS[s.kind]}({self.expr(s.min)}, {self.expr(s.min + s.extent)})"
        self.line(depth, f"for {self.name(s.loop_var, s.loop_var.name)} in {head}:")
        self.stmt(s.body, depth + 1)

    def write_AttrStmt(self, s: S.AttrStmt, depth: int) -> None:
        if s.attr_key == "thread_extent":
            tag = s.node.thread_tag
            name = self.name(s.node.var, s.node.var.name or tag)
            self.line(depth, f'for {name} in bind("{tag}", {self.expr(s.value)}):')
            depth += 1
        self.stmt(s.body, depth)

    def write_DeclBuffer(self, s: S.DeclBuffer, depth: int) -> None:
        self.stmt(s.body, depth)

    def write_Allocate(self, s: S.Allocate, depth: int) -> None:
        buffer = next((e.buffer for e in pre_order(s.body) if isinstance(
            e, (E.BufferLoad, S.BufferStore)) and e.buffer.data is s.buffer_var), None)
        if buffer is not None:
            self.line(depth, f"{self.name(s.buffer_var, buffer.name)} = allocate(("
                      f"{self.shape(buffer)}), \"{buffer.dtype}\", \"{buffer.scope}\")")
        self.stmt(s.body, depth)

    def shape(self, buffer: Buffer) -> str:
        return "".join(f"{self.expr(d)}, " for d in buffer.shape).rstrip(" ") or "1,"


def _written(schedule: Any, inputs: Sequence[Any], outputs: Sequence[Tensor], name: str) -> str:
    func = schedule_to_module(schedule, [*inputs, *outputs], name)[name]
    writer = _Writer()
    params = []
    results = []
    for at, param in enumerate(func.params):
        buffer = func.buffer_map.get(param)
        text = writer.name(param if buffer is None else buffer.data,
                           param.name if buffer is None else buffer.name)
        if at < len(inputs):
            params.append(text)
        else:
            assert buffer is not None
            results.append((text, buffer))
    _sizes(writer, func, len(inputs), params)
    for text, buffer in results:
        writer.line(1, f'{text} = output_tensor(({writer.shape(buffer)}), "{buffer.dtype}")')
    writer.stmt(func.body, 1)
    writer.line(1, f"return {', '.join(text for text, _ in results)}")
    return "\n".join([f"def {name}({', '.join(params)}):", *writer.lines, ""])


def _sizes(writer: _Writer, func: Any, count: int, params: Sequence[str]) -> None:
    """Sizes that are no parameters are those of the tensors that have them."""
    known = list(func.params)
    for param, text in zip(func.params[:count], params):
        buffer = func.buffer_map.get(param)
        for at, extent in enumerate(buffer.shape if buffer is not None else ()):
            if isinstance(extent, E.Var) and not any(structural_equal(extent, k) for k in known):
                known.append(extent)
                writer.line(1, f"{writer.name(extent, extent.name)} = {text}.shape[{at}]")


def build(sch: Any, inputs: Sequence[Any], outputs: Any, name: str = "hybrid_func"
          ) -> HybridModule:
    """The scheduled program written as a hybrid script.

    `inputs` are tensors and variables, `outputs` a tensor or a list of them. Raises ValueError for
    what such a script cannot say.
    """
    outputs = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    if sch is None:
        sch = create_schedule([t.op for t in outputs])
    return HybridModule(_written(sch, list(inputs), outputs, name), name)


__all__ = ["HybridModule", "build"]
