"""Pictures in which an answer marks places: elements of buffers, lines of a text, calls of a graph.

    cells(("A", (8, 8)), ("x", (8,)))      a grid for each buffer; places "A[0, 3]", "x[2]"
    lines(program)                         a program or any text; places "line 3", from 1
    steps(program, schedule)               what the lines of a schedule do; places "step 2", from 1
    calls(module)                          the graph of a model; places are the names that it binds

A mark is the name of a place, so an answer is a list of names, in JSON, in code and in a file. It
may be written shorter, as a text: "A[0, 0:4], x[:]", "lines 3-5, 8", "lv1, lv2"; `marks_in` reads
that. `Picture.data` is what a card draws, and `Picture.text` the same for a terminal.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ..observe.graph import VALUES, graph_of
from ..observe.workbench import Workbench
from ..reading import DataError, shown, similar

#: places that a picture has at most
MOST_PLACES = 4096
#: marks that are read, those of ranges too: enough for each place to be named several times
_MOST_READ = 8 * MOST_PLACES
_SLICE = re.compile(r"(\d*):(\d*)|(\d+)")


class MarkError(DataError):
    """A mark that is none of a picture's places; `hint` says how they are written."""

    def __init__(self, message: str, hint: str) -> None:
        self.message, self.hint = message, hint
        super().__init__(f"{message}\nhint: {hint}")


@dataclass(frozen=True)
class Picture:
    """What is drawn, and the names of its places in the order in which they are told."""

    kind: str
    places: tuple[str, ...]
    data: dict[str, Any]
    text: str
    #: of steps the recording, which a card opens in the stepper
    source: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 < len(self.places) <= MOST_PLACES:
            raise DataError(f"a picture has 1 to {MOST_PLACES} places, not {len(self.places)}")
        if len(set(self.places)) < len(self.places):
            raise DataError("two places of a picture have one name")


def cells(*buffers: tuple[str, Sequence[int]]) -> Picture:
    """The elements of buffers of one or two dimensions, a grid for each."""
    places: list[str] = []
    for name, shape in buffers:
        if len(shape) not in (1, 2):
            raise DataError(f"{name} has {len(shape)} dimensions; a grid has 1 or 2")
        places += [f"{name}[{', '.join(map(str, at))}]"
                   for at in itertools.product(*map(range, shape))]
    told = ", ".join(f"{name}[{', '.join(f'0:{n}' for n in shape)}]" for name, shape in buffers)
    grids = [{"name": name, "shape": list(shape)} for name, shape in buffers]
    return Picture("cells", tuple(places), {"grids": grids}, told)


def lines(program: Any) -> Picture:
    """The lines of a text, or of a program as TVMScript; empty ones are no places."""
    written = (program if isinstance(program, str) else program.script()).strip("\n").split("\n")
    return _listed(written, "line")


def steps(program: Any, schedule: str) -> Picture:
    """The steps of a schedule of a program, which is written as an answer is."""
    bench = Workbench(program)
    bench.load_python(schedule)
    recording = bench.steps()
    return _listed([step.python for step in recording.steps[1:]], "step", recording)


def _listed(written: list[str], word: str, source: Any = None) -> Picture:
    width = len(str(len(written)))
    told = "\n".join(f"{n:>{width}} | {line}" for n, line in enumerate(written, 1))
    places = tuple(f"{word} {n}" for n, line in enumerate(written, 1) if line.strip())
    return Picture("lines", places, {"lines": written, "word": word}, told, source)


def calls(mod: Any, name: str | None = None) -> Picture:
    """The graph of a function of Relax; what computes is a place, by the variable it binds."""
    graph = graph_of(mod, name)
    placed = graph.layout(())
    nodes = {node["id"]: node for node in graph.nodes}
    named = {id: node["name"] for id, node in nodes.items()
             if node["kind"] not in VALUES and node["group"] is None and node["name"]}
    boxes = [{"mark": named.get(id, ""), "at": [x, y, width, height],
              "words": [f"{named[id]} = {nodes[id]['label']}" if id in named else
                        nodes[id]["label"], *filter(None, [nodes[id]["type"]])]}
             for id, x, y, width, height in placed["boxes"]]
    takes = {id: [nodes[e["from"]]["name"] or nodes[e["from"]]["label"]
                  for e in graph.edges if e["to"] == id] for id in named}
    told = "\n".join(f"{named[id]} = {nodes[id]['label']}({', '.join(takes[id])})" for id in named)
    data = {"width": placed["width"], "height": placed["height"], "boxes": boxes,
            "routes": [points for _, points in placed["routes"]]}
    return Picture("calls", tuple(named.values()), data, told)


_WRITTEN = {"cells": 'as "A[0, 3]", or a range of them, "A[0, 0:4]" or "A[:, 2]"',
            "lines": 'as "WORD 3", or a range of them, "WORDs 3-5"',
            "calls": "by the names of variables"}


def how_to_write(picture: Picture) -> str:
    """How marks of a picture are written, in words."""
    how = _WRITTEN[picture.kind].replace("WORD", picture.data.get("word", ""))
    return f"marks are written {how}, with commas between them"


def marks_in(picture: Picture, value: object) -> list[str]:
    """The places that are marked, each once, in the picture's order; `value` is a text or a list
    of texts. Raises MarkError for what is no place."""
    if isinstance(value, str):
        value = _parts(value)
    if not isinstance(value, (list, tuple)):
        raise MarkError(f"{shown(value)} is no list of marks", how_to_write(picture))
    known, found, read = set(picture.places), set(), 0
    for mark in value:
        read += 1
        if read > _MOST_READ:
            raise MarkError("these are more marks than are read", how_to_write(picture))
        if isinstance(mark, str) and mark in known:
            found.add(mark)
            continue
        several = _several(picture, mark) if isinstance(mark, str) else []
        if not several:
            close = similar(str(mark), picture.places, 1) if isinstance(mark, str) else []
            raise MarkError(f"{shown(mark)} is no place of the picture", how_to_write(picture) + (
                f'; is "{close[0]}" meant?' if close else ""))
        found.update(several)
        read += len(several)
    return [place for place in picture.places if place in found]


def share(right: Sequence[str], given: Sequence[str]) -> Fraction:
    """The part of the points that marks have: each right one counts, each wrong one takes as much
    away, and nobody has less than none. All of them are for exactly the right marks."""
    if set(right) == set(given):
        return Fraction(1)
    good = len(set(right) & set(given))
    return max(Fraction(0), Fraction(2 * good - len(set(given)), len(right) or 1))


def _parts(text: str) -> list[str]:
    """The marks of a text: commas, semicolons and ends of lines outside of brackets part them."""
    parts = re.findall(r"(?:\[[^\[\]]*\]|[^,;\n\[])+|\[", text)
    return [part.strip() for part in parts if part.strip()]


def _several(picture: Picture, mark: str) -> list[str]:
    """The places of a range, or nothing."""
    if picture.kind == "cells":
        return _elements(picture, mark)
    if picture.kind == "lines":
        word = picture.data["word"]
        found = re.fullmatch(rf"(?:{word}s?\s+)?(\d{{1,6}})(?:\s*(?:-|to)\s*(\d{{1,6}}))?",
                             mark.strip())
        if found:
            first, last = int(found[1]), int(found[2] or found[1])
            asked = [f"{word} {n}" for n in range(first, min(last, first + MOST_PLACES) + 1)]
            have = set(picture.places)
            # a range passes over empty lines, and begins and ends with a line that there is
            ok = first <= last <= len(picture.data["lines"]) and first > 0
            return [one for one in asked if one in have] if ok else []
    return []


def _elements(picture: Picture, mark: str) -> list[str]:
    found = re.fullmatch(r"\s*(\w+)\s*\[(.*)\]\s*", mark)
    shape = next((g["shape"] for g in picture.data["grids"] if found and g["name"] == found[1]), [])
    indices = [_SLICE.fullmatch(part.strip().replace(" ", "")) for part in
               (found[2].split(",") if found else [])]
    if not found or len(indices) != len(shape) or not all(indices):
        return []
    ranges = []
    for index, extent in zip(indices, shape):
        assert index is not None
        if any(len(part or "") > 6 for part in index.groups()):
            return []
        first = int(index[3] or index[1] or 0)
        end = first + 1 if index[3] else int(index[2] or extent)
        if not first < end <= extent:
            return []
        ranges.append(range(first, end))
    return [f"{found[1]}[{', '.join(map(str, at))}]" for at in itertools.product(*ranges)]


__all__ = ["MarkError", "Picture", "calls", "cells", "how_to_write", "lines", "marks_in",
           "share", "steps"]
