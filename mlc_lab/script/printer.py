"""TVMScript printer: nodes, functions and modules as the text TVM 0.18 prints for them.

Expressions become strings, statements become lines; both dispatch through a dict keyed by type.
A name is defined in a frame (function, loop, block, ...) and free again when the frame ends, so
sibling loops may both be called `i`. A variable or buffer that nothing defines is declared just
before its first use, in the innermost frame that holds all its uses.

`print_with_spans` (in `spans.py`) subclasses `Printer` to say where each node stands.
"""

from __future__ import annotations

import keyword
import math
import re
from typing import Any, Callable, Iterable

from ..ir import dtype as dt
from ..ir.module import GlobalVar, IRModule
from ..ir.node import Node
from ..tir import expr as E
from ..tir import op as O
from ..tir import stmt as S
from ..tir.buffer import Buffer
from ..tir.function import IndexMap, PrimFunc, TensorIntrin
from .intrinsics import CALL_NAMES, DTYPE_FIRST, DTYPE_LAST, GIVEN_DTYPES

# binding strength of operators, as in Python's grammar
_OR, _AND, _NOT, _COMPARE, _ADD, _MUL, _ATOM = 2, 3, 4, 5, 10, 11, 20

_RESERVED = frozenset(keyword.kwlist) | {"range", "float"}
_CLEAN = re.compile(r"[^0-9A-Za-z_]")
_CONSTANT = (E.IntImm, E.FloatImm)

#: printers of further node types (Relax registers its own): type -> function(printer, node)
EXTRA_PRINTERS: dict[type, Callable[["Printer", Any], None]] = {}
#: printers of further function types: type -> (order in a module, function(printer, func, name))
FUNCTION_PRINTERS: dict[type, tuple[int, Callable[["Printer", Any, str], None]]] = {}
#: further values that may stand in attributes: type -> function(printer, value) -> text
ATTR_PRINTERS: dict[type, Callable[["Printer", Any], str]] = {}


class Frame:
    """A scope of names: the node it belongs to, what it defined, the line where it starts."""

    __slots__ = ("node", "names", "start", "indent")

    def __init__(self, node: Any, start: int, indent: str) -> None:
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
        self.frames: list[Frame] = []
        self.root: Any = None
        self.concise = True
        self.used: set[str] = set()
        self.metadata: dict[str, list] = {}
        self.module_name = "Module"
        self._lowest: dict[Any, tuple] | None = None

    # --------------------------------------------------------------------------- lines, names

    def line(self, text: str) -> None:
        """Add a line at the current indentation."""
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

    def unique(self, hint: str) -> str:
        """A name not taken: `hint`, or `hint_1`, `hint_2`, ..."""
        if not hint.isascii() or not hint.isidentifier():
            hint = _CLEAN.sub("_", hint) or "v"
            if hint[0].isdigit():
                hint = "v" + hint
        name, number = hint, 0
        while name in self.taken:
            number += 1
            name = f"{hint}_{number}"
        return name

    def define(self, obj: Any, hint: str, frame: Frame | None = None) -> str:
        """Give a variable or buffer its name in a frame (the innermost by default)."""
        name = self.unique(hint)
        self.taken.add(name)
        self.names[obj] = name
        (frame or self.frames[-1]).names.append((obj, name))
        return name

    def define_as(self, obj: Any, text: str, frame: Frame | None = None) -> None:
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
        self.insert(frame, f"{name} = {self.var_creation(var)}")
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
        text = self.buffer_decl(f"{self.T}.Buffer", buffer, name, [], before, frame=frame)
        for item in before:
            self.insert(frame, item)
        self.insert(frame, f"{name} = {text}", buffer)
        return name

    def insert(self, frame: Frame, text: str, node: Any = None) -> None:
        """Add a line to a frame, before the statement of it that is being printed."""
        index = next(k for k, f in enumerate(self.frames) if f is frame)
        inner = self.frames[index + 1:]
        at = inner[0].start if inner else len(self.out)
        indent = inner[0].indent if inner else self.indent
        self.out.insert(at, indent + text)
        for f in inner:
            f.start += 1

    def lowest_frame(self, obj: Any) -> Frame | None:
        """The innermost open frame that holds every use of an undefined object."""
        if not self.frames:
            return None
        if self._lowest is None:
            self._lowest = _lowest_common(self.root)
        chain = self._lowest.get(obj)
        open_frames = {f.node: f for f in self.frames if isinstance(f.node, Node)}
        while chain is not None:
            if chain[1] in open_frames:
                return open_frames[chain[1]]
            chain = chain[0]
        return self.frames[0]

    # --------------------------------------------------------------------------- expressions

    def expr(self, node: Any, outer: int = 0) -> str:
        """An expression; parenthesised if it binds weaker than `outer`."""
        return _EXPR[type(node)](self, node, outer)

    def exprs(self, nodes: Iterable[Any]) -> str:
        """Expressions separated by commas."""
        return ", ".join([_EXPR[type(n)](self, n, 0) for n in nodes])

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
                parts.append(self.expr(index))
        return ", ".join(parts) or "()"

    def region(self, region: S.BufferRegion) -> str:
        """`A[0:4, i]`"""
        parts = []
        for r in region.region:
            low, extent = r.min, r.extent
            if type(extent) is E.IntImm and extent.value == 1:
                parts.append(self.expr(low))
            else:
                parts.append(f"{self.expr(low)}:{self.expr(O.add(low, extent))}")
        return f"{self.buffer_name(region.buffer)}[{', '.join(parts) or '()'}]"

    def attr(self, value: Any) -> str:
        """A value of an attribute or annotation."""
        if value is None or isinstance(value, (bool, int)):
            return repr(value)
        if isinstance(value, float):
            return _float(value)
        if isinstance(value, str):
            return _quote(value)
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
            return _quote(value.name_hint)
        return self.meta(value)

    def attrs(self, values: Any) -> str:
        """A dict of attributes, sorted by key as TVM prints it."""
        items = ", ".join(f"{_quote(str(k))}: {self.attr(values[k])}" for k in sorted(values))
        return f"{{{items}}}"

    def index_map(self, mapping: IndexMap) -> str:
        """T.index_map(lambda i, j: (i // 4, j, i % 4))"""
        self.enter(mapping)
        names = [self.define(v, v.name) for v in mapping.initial_indices]
        body = self.tuple(mapping.final_indices)
        self.leave()
        inverse = mapping.inverse_index_map
        extra = f", inverse_index_map={self.attr(inverse)}" if inverse is not None else ""
        return f"{self.T}.index_map(lambda {', '.join(names)}: {body}{extra})"

    def meta(self, value: Any) -> str:
        """A reference to an object that has no script form."""
        kind = _meta_kind(value)
        known = self.metadata.setdefault(kind, [])
        for number, item in enumerate(known):
            if item is value:
                return f'metadata["{kind}"][{number}]'
        known.append(value)
        return f'metadata["{kind}"][{len(known) - 1}]'

    # --------------------------------------------------------------------------- types, buffers

    def type_of(self, var: E.Var) -> str:
        """The annotation of a parameter or let variable."""
        text = self.type(var.type_annotation) if var.type_annotation is not None else (
            f"{self.T}.{var.dtype}")
        if type(var) is E.SizeVar:  # TVM leaves this out, and loses it when parsing back
            return f"{text}(is_size_var=True)"
        return text

    def type(self, kind: Any) -> str:
        """A type as script."""
        if isinstance(kind, str):
            return f"{self.T}.{kind}" if kind != "void" else "None"
        if type(kind) is E.PrimType:
            return f"{self.T}.{kind.dtype}"
        element = kind.element_type
        inner = _quote(element.dtype) if type(element) is E.PrimType else self.type(element)
        scope = f", {_quote(kind.storage_scope)}" if kind.storage_scope else ""
        return f"{self.T}.handle({inner}{scope})"

    def var_creation(self, var: E.Var) -> str:
        """T.int64() or T.handle("float32", "shared")"""
        self.used.add("T")
        size = "is_size_var=True" if type(var) is E.SizeVar else ""
        if var.type_annotation is not None:
            return self.type(var.type_annotation)
        return f"{self.T}.{var.dtype}({size})"

    def buffer_decl(self, head: str, buffer: Buffer, name: str, first: list[str],
                    before: list[str], match: bool = False, frame: Frame | None = None,
                    full: bool = False) -> str:
        """`head(first..., shape, dtype, data=, strides=, ...)` with default arguments left out.

        New variables in the shape are defined first, by lines added to `before`; the data pointer
        and (for match_buffer) strides and offset are defined by the buffer itself.
        """
        self.used.add("T")
        names = self.names
        new: list[tuple[str, str]] = []

        def out_of_line(var: E.Var) -> None:
            new.append((self.define(var, var.name, frame), self.var_creation(var)))

        for dim in buffer.shape:
            if isinstance(dim, E.Var) and dim not in names:
                out_of_line(dim)
        args = [*first, self.tuple(buffer.shape)]
        if full or buffer.dtype != self.buffer_dtype:
            args.append(_quote(buffer.dtype))
        if buffer.data in names:
            args.append(f"data={names[buffer.data]}")
        else:
            self.define_as(buffer.data, f"{name}.data", frame)
        if buffer.strides:
            strides = []
            for number, stride in enumerate(buffer.strides):
                if isinstance(stride, E.Var) and stride not in names:
                    once = sum(s is stride for s in (*buffer.strides, buffer.elem_offset)) == 1
                    if match and once and type(stride) is E.Var and (
                            stride.dtype == (buffer.shape[0].dtype if buffer.shape else "int32")):
                        self.define_as(stride, f"{name}.strides[{number}]", frame)
                        strides.append(_quote(stride.name))
                        continue
                    out_of_line(stride)
                strides.append(self.expr(stride))
            tail = "," if len(strides) == 1 else ""
            args.append(f"strides=({', '.join(strides)}{tail})")
        offset, factor = buffer.elem_offset, buffer.offset_factor != 1
        if type(offset) is E.IntImm:
            if offset.value != 0:
                args.append(f"elem_offset={self.expr(offset)}")
        elif isinstance(offset, E.Var) and offset not in names and type(offset) is E.Var and (
                offset.dtype == (buffer.shape[0].dtype if buffer.shape else "int32")):
            self.define_as(offset, f"{name}.elem_offset", frame)
            factor = True
        elif offset is not None:
            if isinstance(offset, E.Var) and offset not in names:
                out_of_line(offset)
            args.append(f"elem_offset={self.expr(offset)}")
        scope = buffer.data.storage_scope
        if scope != "global":
            args.append(f"scope={_quote(scope)}")
        if buffer.data_alignment != 64:
            args.append(f"align={buffer.data_alignment}")
        if factor:
            args.append(f"offset_factor={buffer.offset_factor}")
        if buffer.buffer_type == 2:
            args.append('buffer_type="auto"')
        if buffer.axis_separators:
            args.append(f"axis_separators={self.attr(buffer.axis_separators)}")
        if len(new) == 1:
            before.append(f"{new[0][0]} = {new[0][1]}")
        elif new:
            before.append(f"{', '.join(n for n, _ in new)} = {', '.join(c for _, c in new)}")
        return f"{head}({', '.join(args)})"

    def define_buffer(self, head: str, buffer: Buffer, first: list[str],
                      match: bool = False) -> None:
        """The line `A = T.alloc_buffer(...)`."""
        name = self.define(buffer, buffer.name or "buffer")
        before: list[str] = []
        text = self.buffer_decl(f"{self.T}.{head}", buffer, name, first, before, match)
        for item in before:
            self.line(item)
        self.buffer_line(f"{name} = {text}", buffer)

    def buffer_line(self, text: str, buffer: Buffer) -> None:
        """A line that defines a buffer."""
        self.line(text)

    # --------------------------------------------------------------------------- statements

    def stmt(self, node: S.Stmt) -> None:
        """A statement."""
        _STMT[type(node)](self, node)

    def body(self, node: S.Stmt) -> None:
        """The statements of a scope. Only the last may leave its own scope open (be concise)."""
        if type(node) is S.SeqStmt:
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

    def scoped(self, node: Any, name: str | None, rhs: str, body: S.Stmt, concise: bool) -> None:
        """`name = rhs` before the body where it may stay open, else `with rhs as name:`."""
        if concise:
            self.line(f"{name} = {rhs}" if name else rhs)
            self.body(body)
        else:
            self.line(f"with {rhs} as {name}:" if name else f"with {rhs}:")
            self.indented(body)
        self.leave()

    # --------------------------------------------------------------------------- functions

    def prim_func(self, func: PrimFunc, name: str) -> None:
        """A PrimFunc called `name`."""
        self.used.add("T")
        attrs = func.attrs or {}
        private = "global_symbol" not in attrs
        self.line(f"@{self.T}.prim_func(private=True)" if private else f"@{self.T}.prim_func")
        self.enter(func)
        pointers: dict[Any, int] = {}
        for buffer in func.buffer_map.values():
            pointers[buffer.data] = pointers.get(buffer.data, 0) + 1
        params, inlined = [], set()
        for var in func.params:
            buffer = func.buffer_map.get(var)
            if (buffer is not None and self.sugar and pointers[buffer.data] == 1
                    and is_simple_buffer(buffer)):
                text = self.define(buffer, buffer.name or "buffer")
                decl = self.buffer_decl(f"{self.T}.Buffer", buffer, text, [], [], full=True)
                params.append(self.param(buffer, f"{text}: {decl}"))
                inlined.add(var)
            else:
                params.append(f"{self.define(var, var.name)}: {self.type_of(var)}")
        returns = f" -> {self.type(func.ret_type)}" if func.ret_type not in (None, "void") else ""
        self.line(f"def {name}({', '.join(params)}){returns}:")
        saved = self.indent
        self.indent += self.step
        if str(attrs.get("global_symbol", "")) == name:
            attrs = {k: v for k, v in attrs.items() if k != "global_symbol"}
        if attrs:
            self.line(f"{self.T}.func_attr({self.attrs(attrs)})")
        for var in func.params:
            buffer = func.buffer_map.get(var)
            if buffer is not None and var not in inlined:
                self.define_buffer("match_buffer", buffer, [self.names[var]], match=True)
        root = self.implicit_root(func) if self.sugar else None
        if root is not None:
            self.root_comment(root, func.body)
            for buffer in root.alloc_buffers:
                self.define_buffer("alloc_buffer", buffer, [])
            self.body(root.body)
        else:
            self.body(func.body)
        self.leave()
        self.indent = saved

    def param(self, buffer: Buffer, text: str) -> str:
        """A parameter that defines a buffer."""
        return text

    def root_comment(self, root: S.Block, realize: S.BlockRealize) -> None:
        """What stands for the root block."""
        self.line(f'# with {self.T}.block("root"):')

    @staticmethod
    def implicit_root(func: PrimFunc) -> S.Block | None:
        """The root block, where the parser would add it by itself."""
        realize = func.body
        if type(realize) is not S.BlockRealize or realize.iter_values:
            return None
        root = realize.block
        if (not _is_true(realize.predicate) or root.annotations or root.match_buffers
                or root.reads or root.writes or root.init is not None or root.iter_vars
                or root.name_hint != "root"):
            return None
        inner = root.body
        if root.alloc_buffers:
            return root
        if type(inner) is S.BlockRealize:
            return root if inner.block.iter_vars else None
        return root if _contains_block(inner) else None

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
        functions = sorted(mod.functions.items(), key=lambda item: (
            FUNCTION_PRINTERS[type(item[1])][0] if type(item[1]) in FUNCTION_PRINTERS else 9,
            item[0].name_hint))
        for number, (var, func) in enumerate(functions):
            if number or len(self.out) > start:
                self.out.append("")
            self.root, self._lowest = func, None
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
        elif kind in _STMT:
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
        if kind in _EXPR:
            return self.expr(obj)
        if kind in _PARTS:
            return _PARTS[kind](self, obj)
        if isinstance(obj, (tuple, list, dict)):
            return self.attr(obj)
        raise TypeError(f"{kind.__name__} has no script form")


# ------------------------------------------------------------------------------- small helpers


def _quote(text: str) -> str:
    """A string literal in double quotes."""
    if '"' not in text and "\\" not in text and text.isprintable():
        return f'"{text}"'
    body = repr(text)
    if body[0] == '"':
        return body
    inner = body[1:-1].replace("\\'", "'").replace('"', '\\"')
    return f'"{inner}"'


def _float(value: float) -> str:
    """A float as TVM writes it: at least one decimal, 17 digits where they are needed."""
    if math.isinf(value) or math.isnan(value):
        return f'float("{"nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}")'
    if value == int(value):
        return f"{value:.1f}"
    return f"{value:.17g}"


def _is_true(value: Any) -> bool:
    return type(value) is E.IntImm and value.value == 1


def _contains_block(node: S.Stmt) -> bool:
    stack = [node]
    while stack:
        item = stack.pop()
        if type(item) is S.BlockRealize:
            return True
        stack.extend(kid for kid in item.children() if isinstance(kid, S.Stmt))
    return False


def is_simple_buffer(buffer: Buffer) -> bool:
    """Whether `A: T.Buffer(shape, dtype)` says everything about the buffer."""
    return (not buffer.strides and not buffer.axis_separators
            and buffer.data_alignment == 64 and buffer.offset_factor == 1
            and buffer.buffer_type == 1 and buffer.data.storage_scope == "global"
            and type(buffer.elem_offset) is E.IntImm and buffer.elem_offset.value == 0
            and all(type(d) is E.IntImm or not _has_var(d) for d in buffer.shape))


def _has_var(node: Node) -> bool:
    return isinstance(node, E.Var) or any(map(_has_var, node.children()))


def _meta_kind(value: Any) -> str:
    if hasattr(value, "__array__"):
        return "runtime.NDArray"
    module = type(value).__module__.replace("mlc_lab.", "")
    return f"{module}.{type(value).__name__}"


def _lowest_common(root: Any) -> dict[Any, tuple]:
    """For each variable and buffer the innermost scope node that holds all its uses.

    A scope is a chain (outer chain, node, depth).
    """
    found: dict[Any, tuple] = {}
    seen_buffers: dict[Buffer, tuple] = {}
    scopes = (PrimFunc, S.For, S.Block, S.LetStmt, S.AttrStmt, S.AssertStmt, S.Allocate,
              S.AllocateConst, S.DeclBuffer, S.While, S.IfThenElse)

    def meet(a: tuple, b: tuple) -> tuple:
        while a is not b:
            if a[2] >= b[2]:
                a = a[0]
            else:
                b = b[0]
        return a

    def note(obj: Any, chain: tuple) -> None:
        known = found.get(obj)
        found[obj] = chain if known is None else meet(known, chain)

    def note_buffer(buffer: Buffer, chain: tuple) -> None:
        if seen_buffers.get(buffer) is chain:
            return
        seen_buffers[buffer] = chain
        note(buffer, chain)
        note(buffer.data, chain)
        for part in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            if part is not None:
                walk(part, chain)

    def walk(node: Any, chain: tuple) -> None:
        kind = type(node)
        if isinstance(node, E.Var):
            note(node, chain)
            return
        if kind in scopes:
            chain = (chain, node, chain[2] + 1)
        if kind is E.BufferLoad or kind is S.BufferStore or kind is S.BufferRegion:
            note_buffer(node.buffer, chain)
        elif kind is S.Block:
            for iv in node.iter_vars:
                walk(iv.dom, chain)
        elif kind is S.AttrStmt:
            subject = node.node
            if isinstance(subject, E.IterVar):
                note(subject.var, chain)
            elif isinstance(subject, Buffer):
                note_buffer(subject, chain)
            elif isinstance(subject, Node):
                walk(subject, chain)
        elif kind is S.DeclBuffer:
            note_buffer(node.buffer, chain)
        elif kind is Buffer:
            note_buffer(node, chain)
        for item in node.children():
            walk(item, chain)

    if isinstance(root, Node):
        walk(root, (None, None, 0))
    return found


# ------------------------------------------------------------------------------- expressions


def _write_int(p: Printer, e: E.IntImm, outer: int) -> str:
    if e.dtype == p.int_dtype:
        return str(e.value)
    p.used.add("T")
    if e.dtype == "bool":
        return f"{p.T}.bool({bool(e.value)})"
    return f"{p.T}.{e.dtype}({e.value})"


def _write_float(p: Printer, e: E.FloatImm, outer: int) -> str:
    if e.dtype == p.float_dtype:
        return _float(e.value)
    p.used.add("T")
    text = _float(e.value)
    return f"{p.T}.{e.dtype}({text[6:-1] if text[0] == 'f' else text})"


def _operator(symbol: str, cls: type, strength: int, keeps: Callable[[Any, Any], bool],
              chained: bool = True) -> Callable:
    """Writes `a symbol b` where the parser's operator would build this very node back."""
    left, right = (strength if chained else strength + 1), strength + 1
    name, middle = cls.__name__, f" {symbol} "

    def write(p: Printer, e: Any, outer: int) -> str:
        a, b = e.a, e.b
        if (type(a) in _CONSTANT or type(b) in _CONSTANT or a.dtype != b.dtype) and not keeps(a, b):
            return f"{p.T}.{name}({p.expr(a)}, {p.expr(b)})"
        text = p.expr(a, left) + middle + p.expr(b, right)
        return f"({text})" if strength < outer else text

    return write


def _folds(cls: type) -> Callable[[Any, Any], bool]:
    def keeps(a: Any, b: Any) -> bool:
        if a.dtype != b.dtype:
            return False
        try:
            return O.fold_binary(cls, a, b) is None
        except ZeroDivisionError:
            return False

    return keeps


def _never_both_constant(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and not (type(a) in _CONSTANT and type(b) in _CONSTANT)


def _never_constant(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and type(a) not in _CONSTANT and type(b) not in _CONSTANT


def _call_of(name: str, raw: str, cls: type) -> Callable:
    """T.min and the like: functions that fold; `raw` where folding would change the node."""
    keeps = _folds(cls)

    def write(p: Printer, e: Any, outer: int) -> str:
        word = name if keeps(e.a, e.b) else raw
        return f"{p.T}.{word}({p.expr(e.a)}, {p.expr(e.b)})"

    return write


def _write_div(p: Printer, e: E.Div, outer: int) -> str:
    if dt.is_float(e.a.dtype) and _folds(E.Div)(e.a, e.b):
        text = f"{p.expr(e.a, _MUL)} / {p.expr(e.b, _MUL + 1)}"
        return f"({text})" if _MUL < outer else text
    return f"{p.T}.Div({p.expr(e.a)}, {p.expr(e.b)})"


def _write_not(p: Printer, e: E.Not, outer: int) -> str:
    if type(e.a) in _CONSTANT:
        return f"{p.T}.Not({p.expr(e.a)})"
    text = f"not {p.expr(e.a, _NOT)}"
    return f"({text})" if _NOT < outer else text


def _write_load(p: Printer, e: E.BufferLoad, outer: int) -> str:
    name = p.names.get(e.buffer) or p.buffer_name(e.buffer)
    if e.predicate is not None:
        return f"{name}.vload([{p.indices(e.indices)}], predicate={p.expr(e.predicate)})"
    return f"{name}[{p.indices(e.indices)}]"


def _write_let(p: Printer, e: E.Let, outer: int) -> str:
    value = p.expr(e.value)
    p.enter(e)
    name = p.define(e.var, e.var.name)
    creation = "" if type(e.var) is E.Var and e.var.type_annotation is None else ""
    body = p.expr(e.body)
    p.leave()
    return f"{p.T}.Let({body}, where={{{name}: {value}}}{creation})"


def _plain_call(e: E.Call, row: O.Intrinsic) -> bool:
    """Whether `T.name(args)` builds this call back, result type and all."""
    args = e.args
    if row.result == "given":
        rule = GIVEN_DTYPES.get(e.op.name)
        if e.op.name == "tir.if_then_else":
            return (len(args) == 3 and type(args[0]) is not E.IntImm
                    and args[1].dtype == args[2].dtype == e.dtype and dt.is_bool(args[0].dtype))
        return rule is not None and e.dtype == (
            args[rule].dtype if isinstance(rule, int) and len(args) > rule else rule)
    if row.arity is None or not args:
        return e.dtype == row.result
    if len(args) != row.arity:
        return False
    first = args[0].dtype
    lanes = dt.lanes_of(first)
    expected = first if row.result == "same" else dt.with_lanes(row.result, lanes)
    if e.dtype != expected or not (dt.is_float(first) or row.name in O.ACCEPTS_INTEGERS):
        return False
    if row.arity == 2:
        both = type(args[0]) is E.IntImm and type(args[1]) is E.IntImm
        return (args[0].dtype == args[1].dtype or row.name == "ldexp") and not both
    return True


def _write_call(p: Printer, e: E.Call, outer: int) -> str:
    op = e.op
    if type(op) is GlobalVar:
        return f"{p.module_name}.{op.name_hint}({p.exprs(e.args)})"
    if type(op) is not E.Op:
        return f"{p.attr(op)}({p.exprs(e.args)})"
    p.used.add("T")
    name = op.name
    short = CALL_NAMES.get(name) or name.rpartition(".")[2]
    if name in DTYPE_FIRST:
        args = [_quote(e.dtype)] + [p.expr(a) for a in e.args]
    elif name in DTYPE_LAST:
        args = [p.expr(a) for a in e.args] + [_quote(e.dtype)]
    elif name == "tir.tvm_storage_sync" or _plain_call(e, O.INTRINSIC_OF.get(name, _UNKNOWN)):
        args = [p.expr(a) for a in e.args]
    else:
        short = "call_intrin"
        args = [_quote(e.dtype), _quote(name)] + [p.expr(a) for a in e.args]
    if e.annotations:
        args.append(f"annotations={p.attrs(e.annotations)}")
    return f"{p.T}.{short}({', '.join(args)})"


_UNKNOWN = O.Intrinsic("", None, "opaque", "", "")


def _reducer(p: Printer, r: E.CommReducer) -> str:
    p.enter(r)
    names = [p.define(v, v.name) for v in (*r.lhs, *r.rhs)]
    body = p.expr(r.result[0]) if len(r.result) == 1 else p.tuple(r.result)
    p.leave()
    return (f"{p.T}.comm_reducer(lambda {', '.join(names)}: {body}, "
            f"[{p.exprs(r.identity_element)}])")


def _write_reduce(p: Printer, e: E.Reduce, outer: int) -> str:
    p.enter(e)
    axes = []
    for iv in e.axis:
        p.define(iv.var, iv.var.name)
        axes.append(_iter_var(p, iv))
    combiner = _reducer(p, e.combiner)
    text = (f"{p.T}.reduce({combiner}, source=[{p.exprs(e.source)}], init=[{p.exprs(e.init)}], "
            f"axis=[{', '.join(axes)}], condition={p.expr(e.condition)}, "
            f"value_index={e.value_index})")
    p.leave()
    return text


_ITER_TYPES = {0: "DataPar", 1: "ThreadIndex", 2: "CommReduce", 3: "Ordered", 4: "DimInfo",
               5: "Unrolled", 6: "Vectorized", 7: "Parallelized", 8: "Tensorized"}


def _iter_var(p: Printer, iv: E.IterVar) -> str:
    dom = _range(p, iv.dom) if iv.dom is not None else "None"
    return (f"{p.T}.iter_var({p.var_name(iv.var)}, {dom}, {_quote(_ITER_TYPES[iv.iter_type])}, "
            f"{_quote(iv.thread_tag or '')})")


def _range(p: Printer, r: E.Range) -> str:
    return f"{p.I}.Range({p.expr(r.min)}, {p.expr(O.add(r.min, r.extent))})"


def _producer_load(p: Printer, e: E.ProducerLoad, outer: int) -> str:
    return f"{getattr(e.producer, 'name', 'tensor')}[{p.indices(e.indices)}]"


_EXPR: dict[type, Callable[[Printer, Any, int], str]] = {
    E.Var: lambda p, e, o: p.names.get(e) or p.var_name(e),
    E.SizeVar: lambda p, e, o: p.names.get(e) or p.var_name(e),
    E.IntImm: _write_int, E.FloatImm: _write_float,
    E.StringImm: lambda p, e, o: _quote(e.value),
    E.Cast: lambda p, e, o: f"{p.T}.Cast({_quote(e.dtype)}, {p.expr(e.value)})",
    E.Add: _operator("+", E.Add, _ADD, _folds(E.Add)),
    E.Sub: _operator("-", E.Sub, _ADD, _folds(E.Sub)),
    E.Mul: _operator("*", E.Mul, _MUL, _folds(E.Mul)),
    E.FloorDiv: _operator("//", E.FloorDiv, _MUL, _folds(E.FloorDiv)),
    E.FloorMod: _operator("%", E.FloorMod, _MUL, _folds(E.FloorMod)),
    E.Div: _write_div,
    E.Mod: _call_of("truncmod", "Mod", E.Mod),
    E.Min: _call_of("min", "Min", E.Min), E.Max: _call_of("max", "Max", E.Max),
    **{cls: _operator(symbol, cls, _COMPARE, _never_both_constant, chained=False)
       for cls, symbol in ((E.EQ, "=="), (E.NE, "!="), (E.LT, "<"), (E.LE, "<="), (E.GT, ">"),
                           (E.GE, ">="))},
    E.And: _operator("and", E.And, _AND, _never_constant),
    E.Or: _operator("or", E.Or, _OR, _never_constant),
    E.Not: _write_not,
    E.Select: lambda p, e, o: f"{p.T}.Select({p.exprs(e.children())})",
    E.BufferLoad: _write_load, E.ProducerLoad: _producer_load,
    E.Ramp: lambda p, e, o: f"{p.T}.Ramp({p.expr(e.base)}, {p.expr(e.stride)}, {e.lanes})",
    E.Broadcast: lambda p, e, o: f"{p.T}.Broadcast({p.expr(e.value)}, {e.lanes})",
    E.Shuffle: lambda p, e, o: (f"{p.T}.Shuffle([{p.exprs(e.vectors)}], "
                                f"[{p.exprs(e.indices)}])"),
    E.Let: _write_let, E.Call: _write_call, E.Reduce: _write_reduce,
}

#: parts that are printed when asked for alone
_PARTS: dict[type, Callable[[Printer, Any], str]] = {
    Buffer: lambda p, b: p.buffer_decl(f"{p.T}.Buffer", b, b.name, [], []),
    S.BufferRegion: lambda p, r: p.region(r),
    S.MatchBufferRegion: lambda p, m: p.buffer_decl(
        f"{p.T}.match_buffer", m.buffer, m.buffer.name, [p.region(m.source)], [], match=True),
    E.Range: _range, E.IterVar: _iter_var, E.CommReducer: _reducer,
    E.PrimType: lambda p, t: p.type(t), E.PointerType: lambda p, t: p.type(t),
    E.Op: lambda p, o: _quote(o.name), IndexMap: lambda p, m: p.index_map(m),
    GlobalVar: lambda p, g: f'{p.I}.GlobalVar({_quote(g.name_hint)})',
    TensorIntrin: lambda p, t: object.__repr__(t),
}


# ------------------------------------------------------------------------------- statements


def _store(p: Printer, s: S.BufferStore) -> None:
    name = p.names.get(s.buffer) or p.buffer_name(s.buffer)
    if s.predicate is not None:
        indices = p.indices(s.indices)
        p.line(f"{name}.vstore([{indices}], {p.expr(s.value)}, "
               f"predicate={p.expr(s.predicate)})")
        return
    indices = p.indices(s.indices)
    p.line(f"{name}[{indices}] = {p.expr(s.value)}")


def _evaluate(p: Printer, s: S.Evaluate) -> None:
    text = p.expr(s.value)
    p.used.add("T")
    p.line(text if type(s.value) is E.Call else f"{p.T}.evaluate({text})")


def _seq(p: Printer, s: S.SeqStmt) -> None:
    concise = p.concise
    for item in s.seq:
        p.concise = concise and item is s.seq[-1]
        p.stmt(item)


_LOOP_NAMES = {S.ForKind.PARALLEL: "parallel", S.ForKind.VECTORIZED: "vectorized",
               S.ForKind.UNROLLED: "unroll", S.ForKind.THREAD_BINDING: "thread_binding"}


def grid_of(loop: S.For) -> list[S.For]:
    """The loops that are written as one T.grid, outermost first."""
    group: list[S.For] = []
    inner: Any = loop
    while (type(inner) is S.For and inner.kind == 0 and not inner.annotations
           and type(inner.min) is E.IntImm and inner.min.value == 0):
        extent = inner.extent
        if group and type(extent) is not E.IntImm:
            mine = {g.loop_var for g in group}
            if isinstance(extent, E.Var):
                if extent in mine:
                    break
            elif _uses_any(extent, mine):
                break
        if inner.extent.dtype != inner.loop_var.dtype:
            break
        group.append(inner)
        inner = inner.body
    return group


def _uses_any(node: Node, variables: set) -> bool:
    return node in variables or any(_uses_any(k, variables) for k in node.children())


def _for(p: Printer, s: S.For) -> None:
    group = grid_of(s) if p.sugar else []
    start = len(p.out)
    p.enter(s, start)
    if len(group) > 1:
        extents = [p.loop_extent(g) for g in group]
        names = [p.loop_name(g) for g in group]
        p.used.add("T")
        p.line(f"for {', '.join(names)} in {p.T}.grid({', '.join(extents)}):")
        p.loop_body(s, group[-1].body)
        p.leave()
        return
    args = []
    zero = type(s.min) is E.IntImm and s.min.value == 0 and s.min.dtype == s.loop_var.dtype
    if not zero:
        args.append(p.expr(s.min))
        args.append(p.expr(O.add(s.min, s.extent)))
    else:
        args.append(p.loop_extent(s))
    if s.thread_binding is not None:
        args.append(f"thread={_quote(s.thread_binding.thread_tag)}")
    if s.annotations:
        args.append(f"annotations={p.attrs(s.annotations)}")
    if s.kind == 0 and not s.annotations:
        head = "range"
    else:
        p.used.add("T")
        head = f"{p.T}.{_LOOP_NAMES.get(s.kind, 'serial')}"
    name = p.loop_name(s)
    p.line(f"for {name} in {head}({', '.join(args)}):")
    p.loop_body(s, s.body)
    p.leave()


def _loop_name(self: Printer, loop: S.For) -> str:
    """Define the variable of a loop."""
    return self.define(loop.loop_var, loop.loop_var.name)


def _loop_extent(self: Printer, loop: S.For) -> str:
    """The extent in a loop's header."""
    return self.expr(loop.extent)


def _loop_body(self: Printer, loop: S.For, body: S.Stmt) -> None:
    """What stands under a loop's header."""
    self.indented(body)


Printer.loop_name, Printer.loop_extent, Printer.loop_body = _loop_name, _loop_extent, _loop_body


_AXIS = {0: ("spatial", "S"), 2: ("reduce", "R"), 3: ("scan", ""), 4: ("opaque", "")}


def _same_expr(a: E.PrimExpr, b: E.PrimExpr) -> bool:
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, E.Var):
        return False
    if type(a) is E.IntImm:
        return a.value == b.value and a.dtype == b.dtype
    if type(a) is E.BufferLoad and a.buffer is not b.buffer:
        return False
    if type(a) is E.Call and a.op is not b.op:
        return False
    x, y = a.children(), b.children()
    return a.dtype == b.dtype and len(x) == len(y) and bool(x) and all(map(_same_expr, x, y))


def _block_axes(p: Printer, block: S.Block, values: tuple | None) -> None:
    loops: dict[Any, S.For] = {}
    if values and p.sugar:
        for frame in p.frames:
            loop = frame.node
            while type(loop) is S.For:
                loops[loop.loop_var] = loop
                loop = loop.body
    pending: list[int] = []

    def flush() -> None:
        if len(pending) == 1:
            single(pending[0])
        elif pending:
            letters = "".join(_AXIS[block.iter_vars[i].iter_type][1] for i in pending)
            sources = p.exprs(values[i] for i in pending)
            names = ", ".join([p.define(block.iter_vars[i].var, block.iter_vars[i].var.name)
                               for i in pending])
            p.line(f'{names} = {p.T}.axis.remap("{letters}", [{sources}])')
        pending.clear()

    def single(index: int) -> None:
        iv = block.iter_vars[index]
        low, extent = iv.dom.min, iv.dom.extent
        if type(low) is E.IntImm and low.value == 0 and low.dtype == extent.dtype:
            dom = p.expr(extent)
        else:
            dom = f"({p.expr(low)}, {p.expr(O.add(low, extent))})"
        bound = values is not None and index < len(values)
        value = f", {p.expr(values[index])}" if bound else ""
        name = p.define(iv.var, iv.var.name)
        p.line(f"{name} = {p.T}.axis.{_AXIS[iv.iter_type][0]}({dom}{value})")

    for index, iv in enumerate(block.iter_vars):
        bound = bool(loops) and index < len(values) and iv.iter_type in (0, 2)
        loop = loops.get(values[index]) if bound else None
        if loop is not None and iv.var.dtype == loop.loop_var.dtype and (
                _same_expr(loop.min, iv.dom.min) and _same_expr(loop.extent, iv.dom.extent)):
            pending.append(index)
        else:
            flush()
            single(index)
    flush()


def _block(p: Printer, block: S.Block, realize: S.BlockRealize | None = None) -> None:
    p.used.add("T")
    T = p.T
    extra = "" if realize is not None else ", no_realize=True"
    p.enter(block)
    p.line(f"with {T}.block({_quote(block.name_hint)}{extra}):")
    saved = p.indent
    p.indent = saved + p.step
    _block_axes(p, block, realize.iter_values if realize is not None else None)
    if realize is not None and not _is_true(realize.predicate):
        p.line(f"{T}.where({p.expr(realize.predicate)})")
    for word, regions in (("reads", block.reads), ("writes", block.writes)):
        p.line(f"{T}.{word}({', '.join([p.region(r) for r in regions])})")
    if block.annotations:
        p.line(f"{T}.block_attr({p.attrs(block.annotations)})")
    for buffer in block.alloc_buffers:
        p.define_buffer("alloc_buffer", buffer, [])
    for match in block.match_buffers:
        p.define_buffer("match_buffer", match.buffer, [p.region(match.source)], match=True)
    if block.init is not None:
        p.enter(block.init)
        p.line(f"with {T}.init():")
        p.indented(block.init)
        p.leave()
    p.body(block.body)
    p.leave()
    p.indent = saved


def _let(p: Printer, s: S.LetStmt) -> None:
    concise = p.concise
    value = p.expr(s.value)
    p.enter(s)
    kind = p.type_of(s.var)
    p.used.add("T")
    known = s.var in p.names
    name = p.names[s.var] if known else p.define(s.var, s.var.name)
    if concise and not known:
        p.line(f"{name}: {kind} = {value}")
        p.body(s.body)
        p.leave()
    elif known:
        p.scoped(s, None, f"{p.T}.LetStmt({value}, var={name})", s.body, concise)
    else:
        p.scoped(s, name, f"{p.T}.LetStmt({value})", s.body, False)


def _attr_stmt(p: Printer, s: S.AttrStmt) -> None:
    concise = p.concise
    p.used.add("T")
    subject, name = s.node, None
    if s.attr_key in ("thread_extent", "virtual_thread") and type(subject) is E.IterVar:
        value = p.expr(s.value)
        var = subject.var
        known = p.names.get(var)
        frame = None if known else p.lowest_frame(var)
        p.enter(s)
        if known is None and (frame is None or frame.node is None or frame.node is s
                              or p._lowest.get(var, (None, None))[1] is s):
            name = p.define(var, var.name)
            text = f"{p.T}.launch_thread({_quote(subject.thread_tag)}, {value})"
        else:
            if known is None:
                known = p.define(var, var.name, frame)
                p.insert(frame, f"{known} = {p.T}.env_thread({_quote(subject.thread_tag)})")
            text = f"{p.T}.launch_thread({known}, {value})"
        p.scoped(s, name, text, s.body, concise)
        return
    first = _iter_var(p, subject) if type(subject) is E.IterVar else p.attr(subject)
    text = f"{p.T}.attr({first}, {_quote(s.attr_key)}, {p.expr(s.value)})"
    p.enter(s)
    p.scoped(s, None, text, s.body, concise)


def _assert(p: Printer, s: S.AssertStmt) -> None:
    concise = p.concise
    condition, message = p.expr(s.condition), p.expr(s.message)
    p.enter(s)
    if concise:
        p.line(f"assert {condition}, {message}")
        p.body(s.body)
    else:
        p.line(f"with {p.T}.Assert({condition}, {message}):")
        p.indented(s.body)
    p.leave()


def _allocate(p: Printer, s: S.Allocate) -> None:
    concise = p.concise
    p.used.add("T")
    args = [f"[{p.exprs(s.extents)}]", _quote(s.dtype), _quote(s.buffer_var.storage_scope)]
    if not _is_true(s.condition):
        args.append(f"condition={p.expr(s.condition)}")
    if s.annotations:
        args.append(f"annotations={p.attrs(s.annotations)}")
    p.enter(s)
    name = p.define(s.buffer_var, s.buffer_var.name)
    p.scoped(s, name, f"{p.T}.allocate({', '.join(args)})", s.body, concise)


def _allocate_const(p: Printer, s: S.AllocateConst) -> None:
    concise = p.concise
    p.used.add("T")
    data = "None"
    if s.data is not None:
        import numpy as np

        values = np.asarray(s.data).reshape(-1).tolist()
        data = f"[{', '.join(repr(v) for v in values)}]"
    args = [data, _quote(s.dtype), f"[{p.exprs(s.extents)}]"]
    if s.annotations:
        args.append(f"annotations={p.attrs(s.annotations)}")
    p.enter(s)
    name = p.define(s.buffer_var, s.buffer_var.name)
    p.scoped(s, name, f"{p.T}.allocate_const({', '.join(args)})", s.body, concise)


def _decl_buffer(p: Printer, s: S.DeclBuffer) -> None:
    concise = p.concise
    before: list[str] = []
    if s.buffer.data not in p.names:
        p.var_name(s.buffer.data)
    p.enter(s)
    name = p.define(s.buffer, s.buffer.name or "buffer")
    text = p.buffer_decl(f"{p.T}.decl_buffer", s.buffer, name, [], before)
    for item in before:
        p.line(item)
    p.scoped(s, name, text, s.body, concise)


def _if(p: Printer, s: S.IfThenElse) -> None:
    head = f"if {p.expr(s.condition)}:"
    p.enter(s)
    p.line(head)
    p.indented(s.then_case)
    p.leave()
    if s.else_case is not None:
        p.enter(s)
        p.line("else:")
        p.indented(s.else_case)
        p.leave()


def _while(p: Printer, s: S.While) -> None:
    head = f"while {p.expr(s.condition)}:"
    p.enter(s)
    p.line(head)
    p.indented(s.body)
    p.leave()


_STMT: dict[type, Callable[[Printer, Any], None]] = {
    S.For: _for, S.BufferStore: _store, S.Evaluate: _evaluate, S.SeqStmt: _seq,
    S.BlockRealize: lambda p, s: _block(p, s.block, s), S.Block: _block, S.LetStmt: _let,
    S.AttrStmt: _attr_stmt, S.AssertStmt: _assert, S.Allocate: _allocate,
    S.AllocateConst: _allocate_const, S.DeclBuffer: _decl_buffer, S.IfThenElse: _if,
    S.While: _while,
}

FUNCTION_PRINTERS[PrimFunc] = (1, Printer.prim_func)


def script(obj: Any, *, printer: type = Printer, print_line_numbers: bool = False,
           num_context_lines: int | None = None, obj_to_underline: Any = None,
           obj_to_annotate: Any = None, **options: Any) -> str:
    """The TVMScript of a module, function, statement or expression.

    Options, as in TVM: `name` of a function or module, `show_meta`, `ir_prefix`, `tir_prefix`,
    `module_alias`, `buffer_dtype`, `int_dtype`, `float_dtype` (whose constants go without type),
    `verbose_expr` (declare the free variables of an expression), `indent_spaces`,
    `print_line_numbers`, `syntax_sugar` (False: no T.grid, no T.axis.remap, no implicit root),
    `num_context_lines` (keep that many lines around what is underlined), `obj_to_underline` (a
    list of nodes) and `obj_to_annotate` (a dict from nodes to comments).
    """
    if obj_to_underline or obj_to_annotate:
        from .spans import script_with_marks

        return script_with_marks(obj, obj_to_underline or (), obj_to_annotate or {},
                                 num_context_lines, **options)
    for ignored in ("show_object_address", "path_to_underline", "path_to_annotate",
                    "extra_config", "show_all_struct_info", "show_all_ty"):
        options.pop(ignored, None)
    text = deep(lambda: printer(**options).print(obj))
    if print_line_numbers:
        lines = text.split("\n")
        width = len(str(len(lines)))
        text = "\n".join(f"{n:>{width}} {line}" for n, line in enumerate(lines, 1))
    return text


def deep(action: Callable[[], Any]) -> Any:
    """Run a recursive walk again with room for very deep trees if it runs out of stack."""
    try:
        return action()
    except RecursionError:
        import sys
        import threading

        result: list[Any] = []

        def attempt() -> None:
            try:
                result.append((True, action()))
            except BaseException as error:  # handed to the caller's thread below
                result.append((False, error))

        limit, stack = sys.getrecursionlimit(), threading.stack_size(512 << 20)
        sys.setrecursionlimit(200_000)
        try:
            thread = threading.Thread(target=attempt)
            thread.start()
            thread.join()
        finally:
            sys.setrecursionlimit(limit)
            threading.stack_size(stack)
        good, value = result[0]
        if good:
            return value
        raise value from None


__all__ = ["ATTR_PRINTERS", "EXTRA_PRINTERS", "FUNCTION_PRINTERS", "Printer", "deep", "grid_of",
           "is_simple_buffer", "script"]
