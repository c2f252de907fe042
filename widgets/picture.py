"""A step of a recording as a picture for slides: SVG, or PNG by matplotlib.

`program` draws both programs side by side with the changes marked, `nest` their loop nests. Either
gives a `Scene`: rectangles and pieces of text with their places in pixels, which `svg()` writes and
`png()` paints.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import accumulate
from typing import Any, Union
from unicodedata import east_asian_width

from mlc_lab.observe import nest as nests
from mlc_lab.observe.alignment import Row, keyed, rows

from .static import cost_text, duration

FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"
SIZE, CHAR, ROW = 12.0, 7.23, 18.0  # of the text: height, width of a character, of a line; pixels
PAD, GAP = 16.0, 14.0
CONTEXT, LEAST = 3, 8  # unchanged lines kept around a change; fewer than so many are not folded
ITERATORS = ("spatial", "reduce", "scan", "opaque")
LONGEST = 92  # characters of a line that are drawn

#: colours by theme; the tints of the marks are those of the views
THEMES = {
    "light": {
        "bg": "#ffffff", "fg": "#1b1f24", "dim": "#59636e", "edge": "#d5d9de", "soft": "#f4f5f7",
        "new": "#dcebf5", "removed": "#fae9de", "changed": "#fbf2d4", "moved": "#f4e7f0",
        "new-ink": "#005a8e", "removed-ink": "#a84900", "changed-ink": "#7a5c00",
        "moved-ink": "#8c3a72", "keyword": "#7a3e9d", "builtin": "#00627a", "string": "#9a3412",
        "number": "#17692a", "comment": "#59636e", "parallel": "#e5f0f7", "vectorized": "#fbf4dd",
        "unrolled": "#f6ebf2", "thread": "#e0f3ee", "serial": "#f7f8f9",
    },
    "dark": {
        "bg": "#16181c", "fg": "#e8eaed", "dim": "#a0a8b2", "edge": "#3a4048", "soft": "#1e2126",
        "new": "#20303c", "removed": "#3a2a20", "changed": "#322f20", "moved": "#382a34",
        "new-ink": "#7cc7f2", "removed-ink": "#ffa366", "changed-ink": "#f0d060",
        "moved-ink": "#eba7d2", "keyword": "#d2a8ff", "builtin": "#7fd1e8", "string": "#f5b58a",
        "number": "#8ddb8c", "comment": "#a0a8b2", "parallel": "#1b2b36", "vectorized": "#2e2b1d",
        "unrolled": "#2f2430", "thread": "#1c2f2a", "serial": "#1c1f24",
    },
}  # fmt: skip
SIGNS = {"new": "+", "removed": "−", "changed": "~", "moved": "↕"}
_TOKEN = re.compile(r"""(?P<comment>\#.*$)|(?P<string>"(?:[^"\\]|\\.)*")|(?P<keyword>@[\w.]+
    |\b(?:for|in|with|if|else|elif|while|def|class|and|or|not|return|True|False|None|assert)\b)
    |(?P<builtin>\b[TRI]\.\w+(?:\.\w+)*)|(?P<number>\b\d[\w.]*)|(?P<other>\s+|\w+|.)""", re.X)


Part = Union[nests.Box, nests.Row]


@dataclass
class Scene:
    """Rectangles (x, y, width, height, fill, stroke) and texts (x, y of the baseline, text, colour,
    bold), by colour names of a theme; `width` and `height` in pixels."""

    theme: str = "light"
    width: float = 0.0
    height: float = 0.0
    rectangles: list[tuple[float, float, float, float, str, str]] = field(default_factory=list)
    texts: list[tuple[float, float, str, str, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.theme not in THEMES:
            raise ValueError(f"there is no theme {self.theme!r}: choose from {', '.join(THEMES)}")

    def rectangle(self, x: float, y: float, w: float, h: float, fill: str = "", stroke: str = ""
                  ) -> None:  # fmt: skip
        self.rectangles.append((x, y, w, h, fill, stroke))

    def text(self, x: float, y: float, text: str, colour: str = "fg", bold: bool = False) -> None:
        if text.strip():
            self.texts.append((x, y, text, colour, bold))

    def code(self, x: float, y: float, line: str) -> None:
        """A line of TVMScript, coloured."""
        line = _cut(line)
        for found in _TOKEN.finditer(line):
            kind = found.lastgroup if found.lastgroup in THEMES["light"] else "fg"
            self.text(x + CHAR * found.start(), y, found[0], kind)

    def svg(self) -> str:
        """The picture as SVG text."""
        colour = THEMES[self.theme]
        w, h = round(self.width), round(self.height)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" '
            f'height="{h}" font-family="{FONT}" font-size="{SIZE:g}">',
            f'<rect width="{w}" height="{h}" fill="{colour["bg"]}"/>',
        ]
        for x, y, wide, tall, fill, stroke in self.rectangles:
            line = f' stroke="{colour[stroke]}"' if stroke else ""
            parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}" '
                         f'rx="3" fill="{colour[fill] if fill else "none"}"{line}/>')
        for x, y, text, ink, bold in self.texts:
            weight = ' font-weight="700"' if bold else ""
            parts.append(f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour[ink]}"{weight} '
                         f'xml:space="preserve">{escape(text)}</text>')
        return "\n".join([*parts, "</svg>"])

    def png(self, path: Any, scale: float = 2.0) -> None:
        """Paint the picture into a PNG file, `scale` pixels for one of the picture's.

        Raises ImportError where matplotlib is not installed.
        """
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
            from matplotlib.patches import Rectangle
        except ImportError:
            raise ImportError(
                "a PNG is painted by matplotlib, which is not installed.\n"
                "Install it with:  pip install 'mlc-lab[lab]'\n"
                "Without it, step_svg gives the same picture as SVG."
            ) from None
        colour = THEMES[self.theme]
        figure = Figure((self.width / 72, self.height / 72), dpi=72 * scale)
        FigureCanvasAgg(figure)
        figure.set_facecolor(colour["bg"])
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, self.width), ylim=(self.height, 0))
        axes.set_axis_off()
        for x, y, wide, tall, fill, stroke in self.rectangles:
            axes.add_patch(Rectangle((x, y), wide, tall, linewidth=1 if stroke else 0,
                                     facecolor=colour[fill] if fill else "none",
                                     edgecolor=colour[stroke] if stroke else "none"))  # fmt: skip
        for x, y, text, ink, bold in self.texts:
            axes.text(x, y, text.replace("$", r"\$"), color=colour[ink], fontsize=SIZE,
                      family="DejaVu Sans Mono", weight="bold" if bold else "normal",
                      va="baseline")  # fmt: skip
        figure.savefig(path, format="png")


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


# ------------------------------------------------------------------------------------- comparing


def _folded(found: list[Row]) -> list[Row | int]:
    """The rows with long unchanged runs replaced by their length."""
    changed = [i for i, row in enumerate(found) if row.left_mark or row.right_mark]
    if not changed:
        return list(found)
    out: list[Row | int] = []
    at = 0
    for i in [*changed, len(found)]:
        first = at if at == 0 else at + CONTEXT
        last = i - CONTEXT if i < len(found) else i
        if last - first >= LEAST:
            out += [*found[at:first], last - first, *found[last:i]]
        else:
            out += found[at:i]
        if i < len(found):
            out.append(found[i])
        at = i + 1
    return out


# -------------------------------------------------------------------------------------- pictures


def _head(scene: Scene, recording: Any, number: int) -> float:
    """What stands above both programs: the instruction, its meaning, its cost. The next y."""
    step = recording.steps[number]
    y = PAD + SIZE
    scene.text(PAD, y, f"{recording.title} · step {number} of {len(recording.steps) - 1}", "dim")
    for line in (step.python or "the program as it was").split("\n"):
        y += ROW
        scene.text(PAD, y, _cut(line), "fg", True)
    meaning = recording.docs.get(step.op, {}).get("meaning", "")
    told = "refused: " + step.error.get("rule", "not legal") if step.error else meaning
    for line in (told, cost_text(recording.cost(number))):
        if line:
            y += ROW
            scene.text(PAD, y, _cut(line), "removed-ink" if step.error else "dim")
    return y + GAP


def _places(row: Row) -> tuple[int, int]:
    """The numbers of a row's lines in both programs, -1 where there is none."""
    return row.left, row.right


def program(recording: Any, number: int, theme: str = "light") -> Scene:
    """The programs before and after a step, side by side, unchanged parts folded."""
    scene = Scene(theme)
    step = recording.steps[number]
    top = _head(scene, recording, number)
    if step.before == step.after:  # there is nothing to compare: one program, whole
        count = len(recording.programs[step.after].lines)
        shown: list[Row | int] = [Row(n, -1, "", "") for n in range(count)]
    else:
        shown = _folded(rows(keyed(recording, step.before), keyed(recording, step.after)))
    texts = [recording.text(p).split("\n") for p in (step.before, step.after)]
    columns = 1 if step.before == step.after else 2
    widths = []
    for side in range(columns):
        lengths = [len(_cut(texts[side][_places(row)[side]])) for row in shown
                   if isinstance(row, Row) and _places(row)[side] >= 0]  # fmt: skip
        widths.append(24 + CHAR * max(lengths, default=10) + 8)
    x = PAD
    for side in range(columns):
        scene.rectangle(x, top, widths[side], ROW * len(shown) + 8, "", "edge")
        for at, row in enumerate(shown):
            y = top + 4 + ROW * at
            if not isinstance(row, Row):
                scene.rectangle(x + 1, y, widths[side] - 2, ROW, "soft")
                scene.text(x + 24, y + 13, f"⋯ {row} unchanged lines" if side == 0 else "⋯", "dim")
                continue
            line, mark = _places(row)[side], (row.left_mark, row.right_mark)[side]
            if mark:
                scene.rectangle(x + 1, y, widths[side] - 2, ROW, mark)
                scene.text(x + 8, y + 13, SIGNS[mark], f"{mark}-ink", True)
            if line >= 0:
                scene.code(x + 24, y + 13, texts[side][line])
        x += widths[side] + GAP
    scene.width = max(x - GAP + PAD, _widest(scene))
    scene.height = top + ROW * len(shown) + 8 + PAD
    return scene


def _long(text: str) -> float:
    """How long a text is; a Chinese character takes the room of two others."""
    return CHAR * sum(2 if east_asian_width(c) in "WF" else 1 for c in text)


def _widest(scene: Scene) -> float:
    return max(x + _long(text) for x, _, text, _, _ in scene.texts) + PAD


def nest(recording: Any, number: int, theme: str = "light") -> Scene:
    """The loop nests before and after a step, side by side; changed boxes carry their sign."""
    scene = Scene(theme)
    step = recording.steps[number]
    top = _head(scene, recording, number)
    programs = [step.after] if step.before == step.after else [step.before, step.after]
    marks: list[dict[int, str]] = [{}, {}]
    if len(programs) == 2:
        for row in rows(*(keyed(recording, p) for p in programs)):
            marks[0][row.left], marks[1][row.right] = row.left_mark, row.right_mark
    trees = [nests.nest_of(recording, p) for p in programs]
    known = [{part.keys[0]: part for box in tree.walk() for part in _own(box)} for tree in trees]
    x, height = PAD, 0.0
    for side, tree in enumerate(trees):
        other = known[1 - side] if len(trees) == 2 else {}

        def mark_of(part: Part, side: int = side, other: dict[int, Part] = other) -> str:
            """Several loops or iterators may share a line: each is judged by itself."""
            mark = marks[side].get(part.line, "")
            if mark in ("", "moved") or not part.keys or part.keys[0] not in known[side]:
                return mark
            counterpart = other.get(part.keys[0])
            if counterpart is None:
                return ("removed", "new")[side]
            return "" if _compared(counterpart) == _compared(part) else "changed"

        _paint(scene, tree, x, top, mark_of)
        x += tree.width + GAP * 1.5
        height = max(height, tree.height)
    scene.width = max(x - GAP * 1.5 + PAD, _widest(scene))
    scene.height = top + height + PAD
    return scene


def program_nest(recording: Any, number: int, title: str | None = None) -> str:
    """The loop nest of a program alone, as SVG, under the title of the recording or another."""
    scene, tree = Scene(), nests.nest_of(recording, number)
    scene.text(PAD, PAD + SIZE, recording.title if title is None else title, "dim")
    _paint(scene, tree, PAD, 2 * PAD + SIZE, lambda part: "")
    scene.width = max(tree.width + 2 * PAD, _widest(scene))
    scene.height = tree.height + 3 * PAD + SIZE
    return scene.svg()


def _own(box: nests.Box) -> list[Part]:
    """The loop, or the iterators of the block, that a box stands for."""
    parts = [box] if box.kind == "loop" else [row for row in box.rows if row.role in ITERATORS]
    return [part for part in parts if len(part.keys) == 1]


def _compared(part: Part) -> tuple[str, str]:
    """What is compared to tell whether a loop or an iterator changed."""
    return (part.role, part.text) if isinstance(part, nests.Row) else (part.head, part.note)


def _paint(scene: Scene, root: nests.Box, left: float, top: float, mark_of: Any) -> None:
    """Draw the boxes of a nest where it has put them, below and right of a point."""
    for box in root.walk():
        x, y = left + box.x, top + box.y
        mark = mark_of(box) if box is not root else ""
        ink = f"{mark}-ink" if mark else "fg"
        head = (f"{SIGNS[mark]} " if mark else "") + nests.cut(box.head)
        if box.kind == "text":
            scene.rectangle(x, y, box.width, box.height - 2, mark or "soft")
            scene.text(x + 3, y + 13, head, ink)
        elif box is not root:
            fill = box.tint if box.kind == "loop" else "bg"
            edge = ink if mark else "dim" if box.kind == "block" else "edge"
            scene.rectangle(x, y, box.width, box.height, fill, edge)
            if mark:
                scene.rectangle(x, y, 4, box.height, ink)
            scene.text(x + nests.SIDE + 2, y + 16, head, ink, True)
            note = x + box.width - nests.SIDE - CHAR * len(box.note)
            scene.text(note, y + 16, box.note, "dim")
        for row in box.rows:
            mark = mark_of(row)
            if mark:
                width = box.width - 2 * nests.SIDE + 4
                scene.rectangle(x + nests.SIDE - 2, top + row.y, width, nests.ROW - 2, mark)
            scene.text(x + nests.SIDE + 2, top + row.y + 13, row.role, "dim")
            scene.text(x + nests.SIDE + nests.ROLE - 2, top + row.y + 13, nests.cut(row.text))


#: of the picture of a search: width and height of its chart, and points that it has at most
CHART, POINTS = (560.0, 160.0), 300


def search(board: dict[str, Any]) -> str:
    """The trials of a tuning board as SVG: their times in order, and the best of each search so
    far, on a logarithmic scale."""
    times = [[t["time"] for t in board["trials"] if t["session"] == s["key"] and t["time"]]
             for s in board["sessions"]]  # fmt: skip
    every = [time for one in times for time in one]
    best, worst = min(every), max(every)
    (wide, tall), scene, top = CHART, Scene(), 2 * PAD + 2 * ROW
    scene.text(PAD, PAD + SIZE, board["title"], "fg", True)
    scene.text(PAD, PAD + SIZE + ROW, f"{len(every)} trials, {duration(worst)} to "
               f"{duration(best)} (best so far: line)", "dim")

    def place(time: float) -> float:
        return top + tall * (1 - math.log(time / best) / (math.log(worst / best) or 1.0))

    for one in filter(None, times):  # a search that goes on has no trial of its own at first
        step, each = wide / max(len(one) - 1, 1), math.ceil(len(one) / POINTS)
        for n in range(0, len(one), each):
            scene.rectangle(PAD + step * n - 2, place(one[n]) - 2, 4, 4, "new-ink")
        least = [math.inf, *accumulate(one, min)]
        low = [n for n in range(len(one)) if least[n + 1] < least[n]]
        for n, end in zip(low, [*low[1:], len(one) - 1]):
            scene.rectangle(PAD + step * n, place(one[n]) - 1, max(step * (end - n), 2), 2, "dim")
    scene.width, scene.height = wide + 2 * PAD, top + tall + PAD
    return scene.svg()


def bars(title: str, rows: Sequence[tuple[str, float, str]], most: float | None = None) -> str:
    """Numbers as SVG: of each its name, a bar of its length, and words. The longest bar stands for
    `most`, by default the largest number."""
    scene = Scene()
    most = most or max((number for _, number, _ in rows), default=0) or 1
    left = 2 * PAD + max((_long(_cut(name)) for name, _, _ in rows), default=0)
    scene.text(PAD, PAD + SIZE, title, "fg", True)
    y = PAD + SIZE + GAP
    for name, number, words in rows:
        long = CHART[0] / 2 * number / most
        scene.text(PAD, y + 13, _cut(name))
        scene.rectangle(left, y + 2, max(long, 1), ROW - 4, "new", "new-ink")
        scene.text(left + long + 8, y + 13, words, "dim")
        y += ROW
    scene.width, scene.height = _widest(scene), y + PAD
    return scene.svg()


#: lines of the program of a task that are drawn
TASK_LINES = 18


def task(title: str, lines: Sequence[str], rows: Sequence[tuple[str, float | None, float]]) -> str:
    """An exercise as SVG: its program, and what is checked, each with the points that were reached,
    None where it was not checked yet, and those that there are."""
    scene, y = Scene(), PAD + SIZE
    scene.text(PAD, y, title, "fg", True)
    y += GAP
    if lines:
        shown = list(lines[:TASK_LINES])
        more = len(lines) - len(shown)
        width = max(_long(_cut(line)) for line in shown) + 16
        scene.rectangle(PAD, y, width, ROW * (len(shown) + bool(more)) + 8, "soft", "edge")
        for line in shown:
            y += ROW
            scene.code(PAD + 8, y - 1, line)
        if more:
            y += ROW
            scene.text(PAD + 8, y - 1, f"⋯ {more}", "dim")
        y += GAP + 8
    for name, points, of in rows:
        y += ROW
        sign, ink = ("·", "dim") if points is None else (
            ("✓", "number") if points == of else ("✗", "removed-ink"))
        scene.text(PAD, y, sign, ink, True)
        scene.text(PAD + 20, y, _cut(name))
        reached = f"{of:g}" if points is None else f"{points:g}/{of:g}"
        scene.text(PAD + 32 + _long(_cut(name)), y, reached, ink)
    scene.width, scene.height = _widest(scene), y + PAD
    if lines:
        scene.width = max(scene.width, width + 2 * PAD)
    return scene.svg()


PICTURES = {"program": program, "nest": nest}


def scene_of(recording: Any, number: int, picture: str = "program", theme: str = "light") -> Scene:
    """A step as a picture of a kind. Raises ValueError and IndexError for what there is not."""
    if picture not in PICTURES:
        raise ValueError(f"there is no picture {picture!r}: choose from {', '.join(PICTURES)}")
    if not 0 <= number < len(recording.steps):
        raise IndexError(f"there is no step {number}: the recording has steps 0 to "
                         f"{len(recording.steps) - 1}")  # fmt: skip
    return PICTURES[picture](recording, number, theme)

