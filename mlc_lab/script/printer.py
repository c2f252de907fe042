"""TVMScript printer: nodes, functions and modules as the text TVM 0.18 prints for them.

Expressions become strings (`print_expr.py`), statements become lines (`print_stmt.py`); both
dispatch through a dict keyed by type. `print_parts.py` has types and buffers, `print_function.py`
the PrimFunc. What they share is here: names and their frames, lines, modules, options.

A name is defined in a frame (function, loop, block, ...) and free again when the frame ends, so
sibling loops may both be called `i`. A variable or buffer that nothing defines is declared just
before its first use, in the innermost frame that holds all its uses.

`print_with_spans` (in `spans.py`) subclasses `Printer` to say where each node stands.
"""

from __future__ import annotations

import keyword
import re
from typing import Any, Callable, Iterable, Mapping, Sequence

from ..above import above
from ..ir.global_info import DummyGlobalInfo, VDevice
from ..ir.module import GlobalVar, IRModule
from ..ir.node import Node
from ..ir.recursion import grows_stack
from ..tir import expr as E
from ..tir import op as O
from ..tir import stmt as S
from ..tir.buffer import Buffer
from ..tir.function import IndexMap, PrimFunc
from .print_expr import EXPR, float_text, quote
from .print_function import prim_func
from .print_parts import PARTS, buffer_decl, var_creation
from .print_stmt import STMT
from .uses import lowest_common

_RESERVED = frozenset(keyword.kwlist) | {"range", "float"}
_CLEAN = re.compile(r"[^0-9A-Za-z_]")

#: printers of further node types (Relax registers its own): type -> function(printer, node)
EXTRA_PRINTERS: dict[type, Callable[["Printer", Any], None]] = {}
#: printers of further function types: type -> (order in a module, function(printer, func, name))
FUNCTION_PRINTERS: dict[type, tuple[int, Callable[["Printer", Any, str], None]]] = {}
#: further values that may stand in attributes: type -> function(printer, value) -> text
ATTR_PRINTERS: dict[type, Callable[["Printer", Any], str]] = {
    VDevice: lambda p, value: _device(p, value),
    DummyGlobalInfo: lambda p, value: f"{p.I}.dummy_global_info()",
}


class Frame:
    """A scope of names: the node it belongs to, what it defined, the line where it starts."""

    __slots__ = ("node", "names", "start", "indent")

    def __init__(self, node: Node | None, start: int, indent: str) -> None:
        self.node, self.start, self.indent = node, start, indent
        self.names: list[tuple[Any, str]] = []


class Printer:
    """Prints one object. Options are those of TVM's `script()`; see `script` below."""

    def __init__(self, *, name: str | None = None, show_meta: bool = False, ir_prefix: str = "I",
                 tir_prefix: str = "T", relax_prefix: str = "R", module_alias: str = "cls",
                 buffer_dtype: str = "float32", int_dtype: str = "int32",
                 float_dtype: str = "void", verbose_expr: bool = False, indent_spaces: int = 4,
                 syntax_sugar: bool = True) -> None:
        self.func_name = name
        self.show_meta, self.verbose_expr, self.sugar = show_meta, verbose_expr, syntax_sugar
        self.I, self.T, self.R, self.alias = ir_prefix, tir_prefix, relax_prefix, module_alias
        self.buffer_dtype, self.int_dtype, self.float_dtype = buffer_dtype, int_dtype, float_dtype
        self.step = " " * indent_spaces
        self.indent = ""
        self.out: list[str] = []
        self.names: dict[Any, str] = {}
        self.taken: set[str] = {*_RESERVED, ir_prefix, tir_prefix, relax_prefix, module_alias}
        #: hint of a name -> the number up to which all names of that hint are taken
        self.lowest: dict[str, int] = {}
        self.frames: list[Frame] = []
        self.root: Any = None
        self.concise = True
        self.used: set[str] = set()
        self.metadata: dict[str, list] = {}
        #: the virtual devices of the module, which tensors name
        self.devices: list[VDevice] = []
        self.module_name = "Module"
        #: whether a function of Relax stands in a module
        self._in_module = False
        self._lowest: dict[Any, tuple] = {}

    # --------------------------------------------------------------------------- lines, names

    def line(self, text: str, defines: Sequence[S.For | E.IterVar] = ()) -> None:
        """Add a line at the current indentation; `defines` are the loops or the iterators of a
        block that it opens, for printers that note what stands where."""
        self.out.append(self.indent + text)

    def enter(self, node: Any, start: int | None = None) -> Frame:
        """Open the frame of a node; `start` is the line where the node's text begins."""
        frame = Frame(node, len(self.out) if start is None else start, self.indent)
        self.frames.append(frame)
        return frame

    def leave(self) -> None:
        """Close the innermost frame: what it defined is forgotten."""
        for obj, name in self.frames.pop().names:
            self.names.pop(obj, None)
            if name:
                self.taken.discard(name)
        self.lowest.clear()

    def unique(self, hint: str) -> str:
        """A name not taken: `hint`, or `hint_1`, `hint_2`, ..."""
        if not hint.isascii() or not hint.isidentifier():
            hint = _CLEAN.sub("_", hint) or "v"
            if hint[0].isdigit():
                hint = "v" + hint
        name, number = hint, self.lowest.get(hint, 0) if hint in self.taken else 0
        while name in self.taken:
            number += 1
            name = f"{hint}_{number}"
        if number:
            self.lowest[hint] = number - 1  # all numbers below are taken, until a frame is left
        return name

    def define(self, obj: object, hint: str, frame: Frame | None = None) -> str:
        """Give a variable or buffer its name in a frame (the innermost by default)."""
        free = hint not in self.taken and hint.isascii() and hint.isidentifier()
        name = hint if free else self.unique(hint)
        self.taken.add(name)
        self.names[obj] = name
        (frame or self.frames[-1]).names.append((obj, name))
        return name

    def define_as(self, obj: object, text: str, frame: Frame | None = None) -> None:
        """Let an object be written as `text` (`A.data`) while the frame lasts."""
        self.names[obj] = text
        (frame or self.frames[-1]).names.append((obj, ""))

    def var_name(self, var: Any) -> str:
        """The name of a variable, declaring it if nothing defines it."""
        found = self.names.get(var)
        if found is not None:
            return found
        frame = self.lowest_frame(var)
        if frame is None:
            return self.define(var, var.name) if self.frames else var.name
        name = self.define(var, var.name, frame)
        self.insert(frame, f"{name} = {var_creation(self, var)}")
        return name

    def buffer_name(self, buffer: Buffer) -> str:
        """The name of a buffer, declaring it if nothing defines it."""
        found = self.names.get(buffer)
        if found is not None:
            return found
        frame = self.lowest_frame(buffer)
        if frame is None:
            return self.define(buffer, buffer.name) if self.frames else buffer.name
        before: list[str] = []
        name = self.define(buffer, buffer.name or "buffer", frame)
        text = buffer_decl(self, f"{self.T}.Buffer", buffer, name, [], before, frame=frame)
        for item in before:
            self.insert(frame, item)
        self.insert(frame, f"{name} = {text}", buffer)
        return name

    def insert(self, frame: Frame, text: str, node: Node | None = None) -> None:
        """Add a line to a frame, before the statement of it that is being printed."""
        index = next(k for k, f in enumerate(self.frames) if f is frame)
        inner = self.frames[index + 1:]
        at = inner[0].start if inner else len(self.out)
        indent = inner[0].indent if inner else self.indent
        self.out.insert(at, indent + text)
        for f in inner:
            f.start += 1

    def lowest_frame(self, obj: object) -> Frame | None:
        """The innermost open frame that holds every use of an undefined object."""
        if not self.frames:
            return None
        if len(self.frames) == 1:
            return self.frames[0]
        chain = self._chain(obj)
        open_frames = {f.node: f for f in self.frames if isinstance(f.node, Node)}
        while chain is not None:
            if chain[1] in open_frames:
                return open_frames[chain[1]]
            chain = chain[0]
        return self.frames[0]

    def _chain(self, obj: object) -> tuple | None:
        """The chain of scopes that hold every use of an object: see `lowest_common`."""
        if not self._lowest:
            self._lowest = lowest_common(self.root)
        return self._lowest.get(obj)

    def holds_all_of(self, scope: Node, obj: object) -> bool:
        """Whether a scope is the innermost one that holds every use of an object."""
        chain = self._chain(obj)
        return chain is not None and chain[1] is scope

    # --------------------------------------------------------------------------- expressions

    def expr(self, node: Any, outer: int = 0) -> str:
        """An expression; parenthesised if it binds weaker than `outer`."""
        return EXPR[type(node)](self, node, outer)

    def exprs(self, nodes: Iterable[Any]) -> str:
        """Expressions separated by commas."""
        return ", ".join([EXPR[type(n)](self, n, 0) for n in nodes])

    def tuple(self, nodes: tuple) -> str:
        """A Python tuple of expressions."""
        return f"({self.exprs(nodes)},)" if len(nodes) == 1 else f"({self.exprs(nodes)})"

    def indices(self, nodes: tuple) -> str:
        """What stands between the brackets of an access; a ramp is a slice."""
        parts = []
        for index in nodes:
            if type(index) is E.Ramp and type(index.stride) is E.IntImm:
                base, stride = index.base, index.stride
                stop = O.add(base, E.IntImm(stride.dtype, stride.value * index.lanes))
                text = f"{self.expr(base)}:{self.expr(stop)}"
                if stride.value != 1:
                    text += f":{self.expr(stride)}"
                parts.append(text)
            else:
                parts.append(EXPR[type(index)](self, index, 0))
        return ", ".join(parts) or "()"

    def region(self, region: S.BufferRegion) -> str:
        """`A[0:4, i]`"""
        parts = []
        for r in region.region:
            low, extent = r.min, r.extent
            if type(extent) is E.IntImm and extent.value == 1:
                parts.append(EXPR[type(low)](self, low, 0))
            else:
                parts.append(f"{self.expr(low)}:{self.expr(O.add(low, extent))}")
        return f"{self.buffer_name(region.buffer)}[{', '.join(parts) or '()'}]"

    def attr(self, value: object) -> str:
        """A value of an attribute or annotation."""
        if value is None or isinstance(value, (bool, int)):
            return repr(value)
        if isinstance(value, float):
            return float_text(value)
        if isinstance(value, str):
            return quote(value)
        if isinstance(value, (tuple, list)):
            return f"[{', '.join(map(self.attr, value))}]"
        if isinstance(value, dict):
            return self.attrs(value)
        extra = ATTR_PRINTERS.get(type(value))
        if extra is not None:
            return extra(self, value)
        if isinstance(value, Buffer):
            return self.buffer_name(value)
        if isinstance(value, E.PrimExpr):
            return self.expr(value)
        if isinstance(value, S.BufferRegion):
            return self.region(value)
        if isinstance(value, IndexMap):
            return self.index_map(value)
        if isinstance(value, GlobalVar):
            return quote(value.name_hint)
        if isinstance(value, above("Target")):
            exported: Any = value
            return f"{self.T}.target({self.attrs(exported.export())})"
        return self.meta(value)

    def attrs(self, values: Any) -> str:
        """A dict of attributes, sorted by key as TVM prints it."""
        items = ", ".join(f"{quote(str(k))}: {self.attr(values[k])}" for k in sorted(values))
        return f"{{{items}}}"

    def index_map(self, mapping: IndexMap) -> str:
        """T.index_map(lambda i, j: (i // 4, j, i % 4))"""
        self.enter(mapping)
        names = [self.define(v, v.name) for v in mapping.initial_indices]
        body = self.tuple(mapping.final_indices)
        self.leave()
        inverse = mapping.inverse_index_map
        extra = f", inverse_index_map={self.attr(inverse)}" if inverse is not None else ""
        dtypes = {v.dtype for v in mapping.initial_indices} - {"int32"}
        if len(dtypes) == 1:  # else the default
            extra += f', index_dtype="{dtypes.pop()}"'
        return f"{self.T}.index_map(lambda {', '.join(names)}: {body}{extra})"

    def meta(self, value: object) -> str:
        """A reference to an object that has no script form."""
        kind = _meta_kind(value)
        known = self.metadata.setdefault(kind, [])
        for number, item in enumerate(known):
            if item is value:
                return f'metadata["{kind}"][{number}]'
        known.append(value)
        return f'metadata["{kind}"][{len(known) - 1}]'

    # --------------------------------------------------------------------------- buffers

    def define_buffer(self, head: str, buffer: Buffer, first: list[str],
                      match: bool = False) -> None:
        """The line `A = T.alloc_buffer(...)`."""
        name = self.define(buffer, buffer.name or "buffer")
        before: list[str] = []
        text = buffer_decl(self, f"{self.T}.{head}", buffer, name, first, before, match)
        for item in before:
            self.line(item)
        self.buffer_line(f"{name} = {text}", buffer)

    def buffer_line(self, text: str, buffer: Buffer) -> None:
        """A line that defines a buffer."""
        self.line(text)

    # --------------------------------------------------------------------------- statements

    def stmt(self, node: S.Stmt) -> None:
        """A statement."""
        STMT[type(node)](self, node)

    def body(self, node: S.Stmt) -> None:
        """The statements of a scope. Only the last may leave its own scope open (be concise)."""
        if type(node) is S.SeqStmt:
            if not node.seq:  # no statement
                self.line("pass")
                return
            last = node.seq[-1]
            for item in node.seq:
                self.concise = item is last
                self.stmt(item)
        else:
            self.concise = True
            self.stmt(node)

    def indented(self, node: S.Stmt) -> None:
        """A body one step further in."""
        saved = self.indent
        self.indent = saved + self.step
        self.body(node)
        self.indent = saved

    def scoped(self, node: Node, name: str | None, rhs: str, body: S.Stmt, concise: bool
               ) -> None:
        """`name = rhs` before the body where it may stay open, else `with rhs as name:`."""
        if concise:
            self.line(f"{name} = {rhs}" if name else rhs)
            self.body(body)
        else:
            self.line(f"with {rhs} as {name}:" if name else f"with {rhs}:")
            self.indented(body)
        self.leave()

    def loop_name(self, loop: S.For) -> str:
        """Define the variable of a loop."""
        return self.define(loop.loop_var, loop.loop_var.name)

    def loop_extent(self, loop: S.For) -> str:
        """The extent in a loop's header."""
        return self.expr(loop.extent)

    def loop_body(self, loop: S.For, body: S.Stmt) -> None:
        """What stands under a loop's header."""
        self.indented(body)

    # --------------------------------------------------------------------------- functions

    def param(self, buffer: Buffer, text: str) -> str:
        """A parameter that defines a buffer."""
        return text

    def root_comment(self, root: S.Block, realize: S.BlockRealize) -> None:
        """What stands for the root block."""
        self.line(f'# with {self.T}.block("root"):')

    def module(self, mod: IRModule) -> None:
        """An IRModule as a class."""
        self.module_name = name = self.func_name or "Module"
        self.func_name = None
        self.taken.add(name)
        self.line(f"@{self.I}.ir_module")
        self.line(f"class {name}:")
        self.indent = self.step
        start = len(self.out)
        if mod.attrs:
            self.line(f"{self.I}.module_attrs({self.attrs(mod.attrs)})")
        if mod.global_infos:
            self.line(f"{self.I}.module_global_infos({self.attrs(mod.global_infos)})")
            self.devices = [v for v in mod.global_infos.get("vdevice", ())
                            if isinstance(v, VDevice) and v.target is not None]
        functions = sorted(mod.functions.items(), key=lambda item: (
            FUNCTION_PRINTERS[type(item[1])][0] if type(item[1]) in FUNCTION_PRINTERS else 9,
            item[0].name_hint))
        for number, (var, func) in enumerate(functions):
            if number or len(self.out) > start:
                self.out.append("")
            self.root, self._lowest = func, {}
            self.function(func, var.name_hint)
        if len(self.out) == start:
            self.line("pass")
        self.indent = ""

    def function(self, func: Any, name: str) -> None:
        """A function of a module."""
        FUNCTION_PRINTERS[type(func)][1](self, func, name)

    # --------------------------------------------------------------------------- the whole

    def print(self, obj: Any) -> str:
        """The script of any object."""
        self.root = obj
        kind = type(obj)
        header: list[str] = []
        if kind is IRModule:
            self.module(obj)
            header.append(f"# from tvm.script import ir as {self.I}")
            header += self._imports()
        elif kind in FUNCTION_PRINTERS:
            symbol = (obj.attrs or {}).get("global_symbol")
            self.function(obj, self.func_name or (str(symbol) if symbol is not None else "main"))
            header += self._imports()
        elif kind in STMT:
            if kind is not S.Block:
                self.enter(None)
            self.body(obj)
        elif kind in EXTRA_PRINTERS:
            EXTRA_PRINTERS[kind](self, obj)
        else:
            self.enter(None)
            text = self._expression(obj)
            if not self.verbose_expr:
                self.out.clear()
            self.line(text)
        lines = self.out
        if header:
            lines = [*header, "", *lines]
        if self.metadata:
            if self.show_meta:
                lines = [*self._metadata(), *lines]
            else:
                lines = [*lines, *([""] if header else []),
                         "# Metadata omitted. Use show_meta=True in script() method to show it."]
        return "\n".join(lines)

    def _imports(self) -> list[str]:
        found = []
        if "T" in self.used:
            found.append(f"# from tvm.script import tir as {self.T}")
        if "R" in self.used:
            found.append(f"# from tvm.script import relax as {self.R}")
        return found

    def _metadata(self) -> list[str]:
        from ..ir.serialize import save_json

        return [f'metadata = tvm.ir.load_json("""{save_json(self.metadata, escape=True)}""")']

    def _expression(self, obj: Any) -> str:
        kind = type(obj)
        if kind in EXPR:
            return self.expr(obj)
        if kind in PARTS:
            return PARTS[kind](self, obj)
        if isinstance(obj, (tuple, list, dict)):
            return self.attr(obj)
        raise TypeError(f"{kind.__name__} has no script form")


def _meta_kind(value: object) -> str:
    if hasattr(value, "__array__"):
        return "runtime.NDArray"
    module = type(value).__module__.replace("mlc_lab.", "")
    return f"{module}.{type(value).__name__}"


FUNCTION_PRINTERS[PrimFunc] = (1, prim_func)


def _device(p: Printer, value: VDevice) -> str:
    """"cuda:1" for one that the module has; else in full."""
    if value in p.devices:
        same = [v for v in p.devices if v.target.kind is value.target.kind]
        return quote(f"{value.target.kind.name}:{same.index(value)}")
    target = value.target and str(value.target)
    return f"{p.I}.vdevice({p.attr(target)}, {value.vdevice_id}, {quote(value.memory_scope)})"


def script(obj: object, *, printer: type = Printer, print_line_numbers: bool = False,
           num_context_lines: int | None = None, obj_to_underline: Any = None,
           obj_to_annotate: Any = None, **options: object) -> str:
    """The TVMScript of a module, function, statement or expression.

    Options, as in TVM: `name` of a function or module, `show_meta`, `ir_prefix`, `tir_prefix`,
    `module_alias`, `buffer_dtype`, `int_dtype`, `float_dtype` (whose constants go without type),
    `verbose_expr` (declare the free variables of an expression), `indent_spaces`,
    `print_line_numbers`, `syntax_sugar` (False: no T.grid, no T.axis.remap, no implicit root),
    `num_context_lines` (keep that many lines around what is underlined), `obj_to_underline` (a
    list of nodes) and `obj_to_annotate` (a dict from nodes to comments). `printer` is the class
    that prints. Raises TypeError for an object that has no script form.
    """
    if obj_to_underline or obj_to_annotate:
        return above("script with marks")(
            obj, obj_to_underline or (), obj_to_annotate or {}, num_context_lines, **options)
    for ignored in ("show_object_address", "path_to_underline", "path_to_annotate",
                    "extra_config", "show_all_struct_info", "show_all_ty"):
        options.pop(ignored, None)
    text = _text(printer, obj, options)
    if print_line_numbers:
        lines = text.split("\n")
        width = len(str(len(lines)))
        text = "\n".join(f"{n:>{width}} {line}" for n, line in enumerate(lines, 1))
    return text


@grows_stack
def _text(printer: type[Printer], obj: object, options: Mapping[str, Any]) -> str:
    return printer(**options).print(obj)


__all__ = ["ATTR_PRINTERS", "EXTRA_PRINTERS", "FUNCTION_PRINTERS", "Frame", "Printer", "script"]
