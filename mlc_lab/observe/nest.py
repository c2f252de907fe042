"""The loop nest of a program as a picture: loops are nested boxes, blocks are boxes within them.

The tree follows from the parts of a recording's lines and from their indentation. Where each box
stands is worked out here for pictures, and in `widgets/js/nest.js`, by the same rule and the same
sizes, for views that draw a step when it is shown; a test holds both to the same boxes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil
from typing import Any

#: pixels: the width of a character, the height of a row and of a head, the space below a box, and
#: between a box and what is in it; the characters of a line that are shown
CHAR, ROW, HEAD, GAP, SIDE, LONGEST = 7.25, 19, 23, 6, 8, 64
ROLE, NOTE = 58, 34  # beside the text of a row: its role; beside a head: the sign and the note
_ROWS = ("iterator", "reads", "writes", "where")


@dataclass
class Box:
    """A box: `kind` is "root", "loop", "block", "group" or "text".

    `head` is its text, `note` what stands at its right; `tint` the kind of a loop; `keys` what it
    stands for; `rows` a block's iterators and regions. `line` is the number of its line in the
    program; sizes and places are in pixels.
    """

    kind: str
    line: int = -1
    indent: int = -1
    head: str = ""
    note: str = ""
    tint: str = "serial"
    keys: tuple[int, ...] = ()
    rows: list[Row] = field(default_factory=list)
    children: list[Box] = field(default_factory=list)
    x: int = 0
    y: int = 0
    width: int = 0
    height: int = 0

    def walk(self) -> Iterator[Box]:
        """This box and all within it."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass
class Row:
    """A row of a block: an iterator or a region; `role` is "spatial", "reads", ..."""

    role: str
    text: str
    line: int
    keys: tuple[int, ...]
    y: int = 0


def nest_of(recording: Any, program: int) -> Box:
    """The boxes of a program of a recording, each in its place; the root is the whole."""
    root = Box("root")
    open_ = [root]
    for number, index in enumerate(recording.programs[program].lines):
        line, keys = recording.lines[index]
        text = line.strip()
        parts = recording.parts_of(index)
        kind = parts[0][0] if parts else "text"
        if not text or kind == "aside":
            continue
        indent = len(line) - len(line.lstrip())
        while open_[-1].indent >= indent:
            open_.pop()
        above = open_[-1]
        if kind in _ROWS:
            above.rows += _rows(parts, number, keys)
        elif kind == "loop":
            for i, (_, name, extent, how, thread) in enumerate(parts):
                note = thread or ("" if how == "serial" else how)
                loop = Box("loop", number, indent, f"{name} : {extent}", note, how,
                           tuple(keys[i : i + 1]))  # fmt: skip
                above.children.append(loop)
                above = loop
            open_.append(above)
        elif kind in ("block", "group"):
            note = "block" if kind == "block" else ""
            box = Box(kind, number, indent, parts[0][1], note, keys=tuple(keys))
            above.children.append(box)
            open_.append(box)
        else:
            above.children.append(Box("text", number, indent, text, keys=tuple(keys)))
    _measure(root)
    _place(root, 1, 1, root.width)
    return root


def _rows(parts: list[Any], number: int, keys: list[int]) -> Iterator[Row]:
    for i, (kind, *rest) in enumerate(parts):
        if kind == "iterator":
            name, role, value, _ = rest
            yield Row(role, f"{name} = {value}", number, tuple(keys[i : i + 1]))
        elif rest[0]:
            yield Row(kind, rest[0], number, tuple(keys))


def cut(text: str) -> str:
    """A text as it is shown: long ones are cut."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _wide(text: str) -> int:
    return ceil(len(cut(text)) * CHAR)


def _measure(box: Box) -> None:
    """Width and height of a box, from the inside out."""
    for child in box.children:
        _measure(child)
    if box.kind == "text":
        box.width, box.height = _wide(box.head) + 4, ROW
        return
    inner = [*(_wide(row.text) + ROLE for row in box.rows), *(c.width for c in box.children)]
    box.width = max(inner, default=0)
    box.height = ROW * len(box.rows) + sum(child.height + GAP for child in box.children)
    if box.kind != "root":
        head = _wide(box.head) + _wide(box.note) + NOTE
        box.width = max(box.width, head) + 2 * SIDE
        box.height += HEAD + 2


def _place(box: Box, x: int, y: int, width: int) -> None:
    """Put a box in its place, as wide as the box around it allows."""
    box.x, box.y, box.width = x, y, width
    if box.kind not in ("root", "text"):
        x, y, width = x + SIDE, y + HEAD, width - 2 * SIDE
    for row in box.rows:
        row.y = y
        y += ROW
    for child in box.children:
        _place(child, x, y, width)
        y += child.height + GAP
