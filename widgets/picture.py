"""A step of a recording as a picture for slides: SVG, or PNG by matplotlib.

`program` draws both programs side by side with the changes marked, `nest` their loop nests. Either
gives a `Scene`: rectangles and pieces of text with their places in pixels, which `svg()` writes and
`png()` paints.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from html import escape
from typing import Any

from .nest import Node, nest_of
from .static import cost_text

FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"
SIZE, CHAR, ROW = 12.0, 7.23, 18.0  # of the text: height, width of a character, of a line; pixels
PAD, GAP = 16.0, 14.0
CONTEXT, LEAST = 3, 8  # unchanged lines kept around a change; fewer than so many are not folded
NEST_HEAD, NEST_SIDE, NEST_GAP = 23.0, 8.0, 6.0
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


def aligned(recording: Any, before: int, after: int) -> list[tuple[int, int, str, str]]:
    """Rows of two programs: line numbers (or -1) and marks of the left and of the right."""
    sides = [[(recording.lines[i][0].strip(), tuple(recording.lines[i][1]))
              for i in recording.programs[p].lines] for p in (before, after)]  # fmt: skip
    rows: list[list[Any]] = []
    for tag, a0, a1, b0, b1 in SequenceMatcher(None, *sides, autojunk=False).get_opcodes():
        if tag == "equal":
            rows += [[a, b, "", ""] for a, b in zip(range(a0, a1), range(b0, b1))]
            continue
        b = b0
        for a in range(a0, a1):
            keys = set(sides[0][a][1])
            found = next((n for n in range(b, b1) if keys & set(sides[1][n][1])), None)
            if found is None:
                rows.append([a, -1, "", ""])
                continue
            rows += [[-1, n, "", ""] for n in range(b, found)]
            same = sides[0][a][0] == sides[1][found][0]
            rows.append([a, found, *(("", "") if same else ("changed", "changed"))])
            b = found + 1
        rows += [[-1, n, "", ""] for n in range(b, b1)]
    for side, absent in enumerate(("removed", "new")):
        paired = {row[1 - side] for row in rows if row[0] >= 0 and row[1] >= 0}
        where = {key: n for n, (_, keys) in enumerate(sides[1 - side]) for key in keys}
        for row in rows:
            if row[1 - side] < 0:
                there = {where[key] for key in sides[side][row[side]][1] if key in where}
                # One line that became two has changed; one whose counterpart is elsewhere moved.
                row[2 + side] = absent if not there else "changed" if there <= paired else "moved"
    return [tuple(row) for row in rows]


def _folded(rows: list[tuple[int, int, str, str]]) -> list[Any]:
    """The rows with long unchanged runs replaced by their length."""
    changed = [i for i, row in enumerate(rows) if row[2] or row[3]]
    if not changed:
        return list(rows)
    out: list[Any] = []
    at = 0
    for i in [*changed, len(rows)]:
        first = at if at == 0 else at + CONTEXT
        last = i - CONTEXT if i < len(rows) else i
        if last - first >= LEAST:
            out += [*rows[at:first], last - first, *rows[last:i]]
        else:
            out += rows[at:i]
        if i < len(rows):
            out.append(rows[i])
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


def program(recording: Any, number: int, theme: str = "light") -> Scene:
    """The programs before and after a step, side by side, unchanged parts folded."""
    scene = Scene(theme)
    step = recording.steps[number]
    top = _head(scene, recording, number)
    if step.before == step.after:  # there is nothing to face: one program, whole
        count = len(recording.programs[step.after].lines)
        rows: list[Any] = [(n, -1, "", "") for n in range(count)]
    else:
        rows = _folded(aligned(recording, step.before, step.after))
    texts = [recording.text(p).split("\n") for p in (step.before, step.after)]
    columns = 1 if step.before == step.after else 2
    widths = []
    for side in range(columns):
        shown = [len(_cut(texts[side][row[side]])) for row in rows
                 if isinstance(row, tuple) and row[side] >= 0]  # fmt: skip
        widths.append(24 + CHAR * max(shown, default=10) + 8)
    x = PAD
    for side in range(columns):
        scene.rectangle(x, top, widths[side], ROW * len(rows) + 8, "", "edge")
        for at, row in enumerate(rows):
            y = top + 4 + ROW * at
            if not isinstance(row, tuple):
                scene.rectangle(x + 1, y, widths[side] - 2, ROW, "soft")
                scene.text(x + 24, y + 13, f"⋯ {row} unchanged lines" if side == 0 else "⋯", "dim")
                continue
            line, mark = row[side], row[2 + side]
            if mark:
                scene.rectangle(x + 1, y, widths[side] - 2, ROW, mark)
                scene.text(x + 8, y + 13, SIGNS[mark], f"{mark}-ink", True)
            if line >= 0:
                scene.code(x + 24, y + 13, texts[side][line])
        x += widths[side] + GAP
    scene.width = max(x - GAP + PAD, _widest(scene))
    scene.height = top + ROW * len(rows) + 8 + PAD
    return scene


def _widest(scene: Scene) -> float:
    return max(x + CHAR * len(text) for x, _, text, _, _ in scene.texts) + PAD


def nest(recording: Any, number: int, theme: str = "light") -> Scene:
    """The loop nests before and after a step, side by side; changed boxes carry their sign."""
    scene = Scene(theme)
    step = recording.steps[number]
    top = _head(scene, recording, number)
    programs = [step.after] if step.before == step.after else [step.before, step.after]
    marks: list[dict[int, str]] = [{}, {}]
    if len(programs) == 2:
        for a, b, left, right in aligned(recording, *programs):
            marks[0][a], marks[1][b] = left, right
    trees = [nest_of(recording, p) for p in programs]
    loops = [{node.keys[0]: node for node in tree.walk() if node.kind == "loop" and node.keys}
             for tree in trees]  # fmt: skip
    x, height = PAD, 0.0
    for side, tree in enumerate(trees):
        other = loops[1 - side] if len(trees) == 2 else None

        def mark_of(node: Node, side: int = side, other: Any = other) -> str:
            mark = marks[side].get(node.line, "")
            if node.kind != "loop" or not node.keys or other is None or mark in ("", "moved"):
                return mark
            met = other.get(node.keys[0])
            if met is None:
                return ("removed", "new")[side]
            return "" if (met.head, met.note) == (node.head, node.note) else "changed"

        _measure(tree)
        _paint(scene, tree, x, top, tree.width, mark_of)
        x += tree.width + GAP * 1.5
        height = max(height, tree.height)
    scene.width = max(x - GAP * 1.5 + PAD, _widest(scene))
    scene.height = top + height + PAD
    return scene


def _measure(node: Node) -> None:
    for child in node.children:
        _measure(child)
    if node.kind == "text":
        node.width, node.height = CHAR * (len(_cut(node.head)) + 2) + 6, ROW + 2
        return
    frame = 0.0 if node.kind == "root" else 2 * NEST_SIDE
    rows = [CHAR * len(_cut(text)) + 74 for _, text in node.rows]
    head = CHAR * (len(_cut(node.head)) + 2 + len(node.note)) + 34
    node.width = max([0.0 if node.kind == "root" else head, *rows,
                      *(child.width for child in node.children)]) + frame  # fmt: skip
    node.height = sum(child.height + NEST_GAP for child in node.children) + ROW * len(node.rows)
    node.height += 0 if node.kind == "root" else NEST_HEAD + 2


def _paint(scene: Scene, node: Node, x: float, y: float, width: float, mark_of: Any) -> None:
    mark = mark_of(node)
    ink = f"{mark}-ink" if mark else "fg"
    sign = f"{SIGNS[mark]} " if mark else ""
    if node.kind == "text":
        scene.rectangle(x, y, width, ROW, mark or "soft")
        scene.text(x + 4, y + 13, sign + _cut(node.head), ink)
        return
    if node.kind != "root":
        fill = node.tint if node.kind == "loop" else "bg"
        edge = ink if mark else "dim" if node.kind == "block" else "edge"
        scene.rectangle(x, y, width, node.height, fill, edge)
        if mark:
            scene.rectangle(x, y, 4, node.height, ink)
        scene.text(x + NEST_SIDE + 2, y + 16, sign + _cut(node.head), ink, True)
        scene.text(x + width - NEST_SIDE - CHAR * len(node.note), y + 16, node.note, "dim")
        x, y, width = x + NEST_SIDE, y + NEST_HEAD, width - 2 * NEST_SIDE
        for role, text in node.rows:
            scene.text(x + 2, y + 13, role, "dim")
            scene.text(x + 66, y + 13, _cut(text))
            y += ROW
    for child in node.children:
        _paint(scene, child, x, y, width, mark_of)
        y += child.height + NEST_GAP


PICTURES = {"program": program, "nest": nest}


def scene_of(recording: Any, number: int, picture: str = "program", theme: str = "light") -> Scene:
    """A step as a picture of a kind. Raises ValueError and IndexError for what there is not."""
    if picture not in PICTURES:
        raise ValueError(f"there is no picture {picture!r}: choose from {', '.join(PICTURES)}")
    if not 0 <= number < len(recording.steps):
        raise IndexError(f"there is no step {number}: the recording has steps 0 to "
                         f"{len(recording.steps) - 1}")  # fmt: skip
    return PICTURES[picture](recording, number, theme)

