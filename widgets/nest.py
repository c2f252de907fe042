"""The loop nest of a recorded program as a tree, read off its lines as `js/nest.js` does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_LOOP = re.compile(r"for (.+?) in (range|T\.\w+)\((.*)\):")
_BLOCK = re.compile(r'with T\.s?block\("((?:[^"\\]|\\.)*)"')
_REMAP = re.compile(r'(.+) = T\.axis\.remap\("(\w+)", \[(.*)\]\)')
_AXIS = re.compile(r"(\w+) = T\.axis\.(\w+)\((.*)\)$")
_REGION = re.compile(r"T\.(reads|writes|where)\((.*)\)$")
_TINTS = {"T.parallel": "parallel", "T.vectorized": "vectorized", "T.unroll": "unrolled",
          "T.thread_binding": "thread"}  # fmt: skip
_KINDS = {"S": "spatial", "R": "reduce"}


@dataclass
class Node:
    """A box: `kind` is "root", "loop", "block", "group" or "text"; `rows` are (role, text) of a
    block's iterators and regions; `width` and `height` are for who draws it."""

    kind: str
    line: int = -1
    indent: int = -1
    head: str = ""
    note: str = ""
    tint: str = "serial"
    keys: tuple[int, ...] = ()
    rows: list[tuple[str, str]] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    def walk(self) -> Iterator[Node]:
        """This node and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def split_arguments(text: str) -> list[str]:
    """Parts of an argument list, divided at the commas that stand in no bracket or string."""
    parts, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _loops(text: str) -> list[tuple[str, str, str]]:
    """(head, note, tint) of each loop of a `for` line; empty if it is none."""
    found = _LOOP.match(text)
    if not found:
        return []
    names, how, given = found[1].split(", "), found[2], split_arguments(found[3])
    plain = [part for part in given if not re.match(r"\w+=", part)]
    tint = _TINTS.get(how, "serial")
    if how == "T.grid":
        return [(f"{name} : {extent}", "", tint) for name, extent in zip(names, plain)]
    thread = re.search(r'thread="([^"]+)"', found[3])
    extent = " .. ".join(plain[:2])
    note = thread[1] if thread else "" if tint == "serial" else tint
    return [(f"{names[0]} : {extent}", note, tint)]


def _iterators(text: str) -> list[tuple[str, str]]:
    remap = _REMAP.match(text)
    if remap:
        values = split_arguments(remap[3])
        return [(_KINDS.get(kind, ""), f"{name} = {value}")
                for name, kind, value in zip(remap[1].split(", "), remap[2], values)]
    one = _AXIS.match(text)
    return [(one[2], f"{one[1]} = {split_arguments(one[3])[-1]}")] if one else []


def nest_of(recording: Any, program: int) -> Node:
    """The tree of a program of a recording."""
    root = Node("root")
    stack = [root]
    for number, index in enumerate(recording.programs[program].lines):
        line, keys = recording.lines[index]
        text = line.strip()
        if not text or text[0] in "@#":
            continue
        indent = len(line) - len(line.lstrip())
        while stack[-1].indent >= indent:
            stack.pop()
        above = stack[-1]
        loops = _loops(text)
        for i, (head, note, tint) in enumerate(loops):
            own = (keys[i],) if len(keys) == len(loops) else ()
            node = Node("loop", number, indent, head, note, tint, own)
            above.children.append(node)
            above = node
        if loops:
            stack.append(above)
            continue
        block = _BLOCK.match(text)
        if not block and above.kind == "block":
            region = _REGION.match(text)
            rows = _iterators(text) or ([(region[1], region[2])] if region else [])
            above.rows += [(role, value) for role, value in rows if value]
            if rows:
                continue
        if block:
            node = Node("block", number, indent, block[1], "block")
        elif text.endswith(":"):
            said = re.match(r"(def|class) \w+", text)
            bare = re.sub(r"^with T\.|\(\):$|:$", "", text)
            node = Node("group", number, indent, said[0] if said else bare)
        else:
            node = Node("text", number, indent, text)
        above.children.append(node)
        if node.kind != "text":
            stack.append(node)
    return root
