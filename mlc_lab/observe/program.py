"""A program as lines with keys: what a recording stores of it.

The script printer says of each line what it stands for, and this module turns that into keys that
stay the same as long as the thing does:

    a loop                       its variable
    a block, and its own lines   its first iterator, or its name if it has none
    an iterator                  its variable
    a buffer                     the buffer: where it is allocated, matched or a parameter
    a statement                  the statement itself, and its place in its block

A statement has two keys because some rewrites rebuild it: then its place in the block still aligns
it with what it became.

The printer also says what stands in a line (the `parts` of a recording), since it knows the loops,
iterators and buffers that it writes there; no view reads the text again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..ir.module import IRModule
from ..ir.recursion import grows_stack
from ..schedule.provenance import Note
from ..script.print_stmt import AXIS_WORDS, LOOP_WORDS
from ..script.printer import Printer
from ..tir import stmt as s
from ..tir.buffer import Buffer
from ..tir.expr import IntImm, IterVar, Var
from .recording import Recorder

if TYPE_CHECKING:
    from ..ir.node import Node

#: lines of a block that are neither its head nor an iterator: first word -> role
_ROLE = re.compile(r"(?:with )?\w+\.(where|reads|writes|block_attr|init|func_attr)\(")
_REGIONS = ("where", "reads", "writes")
_TITLE = re.compile(r"(?:def|class) \w+")


#: what a part of a line is, its name or text, and more by kind: see `recording.py`
Part = tuple[Any, ...]
Parts = tuple[Part, ...]
_ASIDE: Parts = (("aside",),)
_LOOP_KINDS = {**LOOP_WORDS, s.ForKind.UNROLLED: "unrolled"}


class KeyedPrinter(Printer):
    """A printer that notes for every line the keys of what it stands for."""

    def __init__(self, recorder: Recorder, **options: Any) -> None:
        super().__init__(**options)
        self.recorder = recorder
        #: keys of each line, and what stands in it, in step with `self.out`
        self.keys: list[tuple[int, ...]] = []
        self.parts: list[Parts] = []
        self._stack: list[Any] = []
        self._blocks: list[tuple[str, Any]] = []
        self._leaves: dict[tuple[str, int, bool], int] = {}
        self._buffer: Any = None
        self._function = ""
        self._params: list[Any] = []  # buffers that are parameters of the function
        self._init_indent: int | None = None  # of the `with T.init():` last seen in this block

    # ------------------------------------------------------------- where the printer stands

    def stmt(self, node: s.Stmt) -> None:
        block = node.block if type(node) is s.BlockRealize else node
        own = type(block) is s.Block
        if own:
            self._blocks.append(_block_identity(self._function, block))
            self._init_indent = None
        self._stack.append(node)
        super().stmt(node)
        self._stack.pop()
        if own:
            self._blocks.pop()

    def function(self, func: Any, name: str) -> None:
        self._function = name
        self._params = []
        self.recorder.functions.add(name)
        super().function(func, name)
        self._function = ""

    def define_buffer(self, kind: str, buffer: Any, *rest: Any, **options: Any) -> Any:
        self._buffer = buffer
        result = super().define_buffer(kind, buffer, *rest, **options)
        self._buffer = None
        return result

    def param(self, buffer: Buffer, text: str) -> str:
        self._params.append(buffer)
        return super().param(buffer, text)

    # ----------------------------------------------------------------------------- the lines

    def line(self, text: str, defines: Sequence[s.For | IterVar] = ()) -> None:
        keys, out = self._keys_of(text, defines), self.out
        out.append(self.indent + text)
        if len(self.keys) < len(out) - 1:
            self._fill(len(out) - 1)
        self.keys.append(keys)
        # most lines are those of the program before, whose parts are recorded
        known = self.recorder.has_line(out[-1], keys)
        self.parts.append(() if known else self._parts_of(text, defines))

    def insert(self, frame: Any, text: str, node: Any = None) -> None:
        before = list(self.out)
        super().insert(frame, text, node)
        self._fill(len(before))
        at = next((i for i, line in enumerate(before) if line is not self.out[i]), len(before))
        self.keys.insert(at, ())
        self.parts.insert(at, ())

    def _fill(self, count: int) -> None:
        """Lines that the printer added past `line`, such as the blank one between functions."""
        self.keys += [()] * (count - len(self.keys))
        self.parts += [_ASIDE] * (count - len(self.parts))

    def _name(self, node: Var | Buffer) -> str:
        """What a variable or buffer is called in the text."""
        return self.names.get(node) or node.name

    def _keys_of(self, text: str, defines: Sequence[s.For | IterVar]) -> tuple[int, ...]:
        key, names = self.recorder.key, self.names
        if defines:
            return tuple([
                key("loop", names[item.loop_var], item.loop_var) if isinstance(item, s.For)
                else key("iterator", names[item.var], item.var) for item in defines])  # fmt: skip
        if self._buffer is not None:
            return (key("buffer", self._name(self._buffer), self._buffer),)
        if not self._stack:
            if text.startswith("def "):
                function = key("function", self._function, ("def", self._function))
                return (function, *(key("buffer", self._name(b), b) for b in self._params))
            role = _ROLE.match(text)
            name = self._function
            return (key("function", name, ("def", name), role[1]),) if role else ()
        node = self._stack[-1]
        if type(node) is s.BlockRealize or type(node) is s.Block:
            return self._block_keys(node, text)
        if type(node) is s.For:  # the `pass` of a loop that does nothing
            return (key("loop", names[node.loop_var], node.loop_var),)
        place = self._blocks[-1] if self._blocks else ("function", self._function)
        initial = self._init_indent is not None and len(self.indent) > self._init_indent
        at = (place[0], id(place[1]), initial)
        number = self._leaves[at] = self._leaves.get(at, 0) + 1
        role = f"{'init' if initial else 'body'} {number}"
        return (key("statement", "", node), key("statement", "", _hashable(place), role))

    def _block_keys(self, node: s.Block | s.BlockRealize, text: str) -> tuple[int, ...]:
        key, identity = self.recorder.key, self._blocks[-1]
        block = node.block if isinstance(node, s.BlockRealize) else node
        role = _ROLE.match(text)
        if role and role[1] == "init":
            self._init_indent = len(self.indent)
        return (key("block", block.name_hint, _hashable(identity), role[1] if role else ""),)

    # ------------------------------------------------------------------- what stands in a line

    def _parts_of(self, text: str, defines: Sequence[s.For | IterVar]) -> Parts:
        """The parts of a line: see `parts` at the head of `recording.py`."""
        if self._buffer is not None:
            return (self._buffer_part(self._buffer),)
        node = self._stack[-1] if self._stack else None
        if defines:
            return tuple([self._loop_part(item) if isinstance(item, s.For)
                          else self._iterator_part(item, node) for item in defines])  # fmt: skip
        if text[0] in "@#":
            return _ASIDE
        if isinstance(node, (s.BlockRealize, s.Block)):
            block = node.block if isinstance(node, s.BlockRealize) else node
            role = _ROLE.match(text)
            if role is None:
                return (("block", block.name_hint),)
            if role[1] in _REGIONS:
                return ((role[1], text[role.end() : -1]),)
        if not text.endswith(":"):
            return ()
        title = _TITLE.match(text)
        if title is None:
            return (("group", text.removeprefix(f"with {self.T}.")[:-1].removesuffix("()")),)
        params = [self._buffer_part(b) for b in self._params] if text.startswith("def ") else []
        return (("group", title[0]), *params)

    def _loop_part(self, loop: s.For) -> Part:
        extent = self.loop_extent(loop)
        if not (type(loop.min) is IntImm and loop.min.value == 0):
            extent = f"{self.expr(loop.min)} .. {self.expr(loop.min + loop.extent)}"
        kind = "thread" if loop.thread_tag else _LOOP_KINDS.get(loop.kind, "serial")
        return ("loop", self._name(loop.loop_var), extent, kind, loop.thread_tag)

    def _iterator_part(self, iv: IterVar, realize: s.Stmt | None) -> Part:
        bound = extent = self.expr(iv.dom.extent)
        if isinstance(realize, s.BlockRealize):
            for own, value in zip(realize.block.iter_vars, realize.iter_values):
                if own is iv:
                    bound = self.expr(value)
        return ("iterator", self._name(iv.var), AXIS_WORDS[iv.iter_type][0], bound, extent)

    def _buffer_part(self, buffer: Buffer) -> Part:
        shape = [self.expr(extent) for extent in buffer.shape]
        return ("buffer", self._name(buffer), shape, buffer.dtype, buffer.scope())


def keys_of(nodes: Iterable[Any], recorder: Recorder) -> list[int]:
    """Keys of the lines that stand for some nodes: of a loop or block, the line of its head."""
    found = []
    for node in nodes:
        kind = type(node)
        if kind is s.For:
            known = recorder.known("loop", node.loop_var)
        elif kind is s.Block or kind is s.BlockRealize:
            block = node if kind is s.Block else node.block
            function = [recorder.known("block", _hashable(_block_identity(name, block)))
                        for name in recorder.functions]  # fmt: skip
            known = next((key for key in function if key is not None), None)
        elif kind is IterVar:
            known = recorder.known("iterator", node.var)
        elif isinstance(node, Buffer):
            known = recorder.known("buffer", node)
        else:
            known = recorder.known("statement", node)
        if known is not None and known not in found:
            found.append(known)
    return found


def _keys_for(node: Node, recorder: Recorder) -> set[int]:
    """All keys that a node of a primitive's note may have (see `schedule.provenance`)."""
    if isinstance(node, Var):
        found = [recorder.known(kind, node) for kind in ("loop", "iterator")]
        return {key for key in found if key is not None}
    return set(keys_of([node], recorder))


def origins_of(notes: Sequence[Note], recorder: Recorder, before: set[int], after: set[int]
               ) -> list[list[Any]]:
    """What a step made, as [[key, [key it came from, ...]], ...], from the primitive's notes.

    `before` and `after` are the keys of the two programs; what stands in neither is followed
    through to what does.
    """
    sources: dict[int, list[Any]] = {}
    for new, olds in notes:
        sources.setdefault(id(new), []).extend(olds)

    def parents(node: Node, seen: frozenset[int]) -> set[int]:
        found: set[int] = set()
        for old in sources.get(id(node), ()):
            here = _keys_for(old, recorder) & before
            if here:
                found |= here
            elif id(old) not in seen:
                found |= parents(old, seen | {id(old)})
        return found

    table: dict[int, set[int]] = {}
    for new, _ in notes:
        for key in _keys_for(new, recorder) & after:
            table.setdefault(key, set()).update(parents(new, frozenset({id(new)})) - {key})
    return [[key, sorted(table[key])] for key in sorted(table) if table[key]]


def _block_identity(function: str, block: s.Block) -> tuple[str, Any]:
    """What stays the same of a block whose parts are rewritten."""
    if block.iter_vars:
        return "iterator", block.iter_vars[0].var
    return function, block.name_hint


def _hashable(identity: tuple[str, Any]) -> Any:
    """An identity as `Recorder.key` takes it: an object stands for itself, texts for a tuple."""
    kind, what = identity
    return what if kind == "iterator" else identity


def number_of(mod: IRModule, recorder: Recorder) -> int:
    """The number of a module's program in a recording; it is recorded if it is new."""
    printer = KeyedPrinter(recorder)
    lines = print_lines(mod, printer)
    return recorder.program(lines, printer.parts + [_ASIDE] * (len(lines) - len(printer.parts)))


def lines_of(mod: IRModule, recorder: Recorder) -> list[tuple[str, tuple[int, ...]]]:
    """The lines of a module's script, each with its keys; without the comment of its imports."""
    return print_lines(mod, KeyedPrinter(recorder))


@grows_stack
def _text_lines(mod: IRModule, printer: KeyedPrinter) -> list[str]:
    lines = printer.print(mod).split("\n")
    header = next(i for i, line in enumerate(lines) if line and not line.startswith("# from"))
    return lines[header:]


def print_lines(mod: IRModule, printer: KeyedPrinter) -> list[tuple[str, tuple[Any, ...]]]:
    """What `lines_of` gives, by any printer that notes keys."""
    lines = _text_lines(mod, printer)
    keys = printer.keys + [()] * (len(lines) - len(printer.keys))
    return list(zip(lines, keys))
