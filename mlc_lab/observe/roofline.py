"""The roofline of a recording: how fast each step is, against what the machine allows it.

A program that does I operations for each byte moved between two levels of memory can do no more
than min(peak, I x bandwidth) operations a second (Williams, Waterman and Patterson, 2009). There is
a roof for each level: the bytes between the core and L1, between L1 and L2, and so on to memory.
Operations and bytes are exact counts (`counts.py`), time, peak and bandwidths are measured.

    roofline(recording)                  # in a notebook: the picture
    roofline(recording).save("r.svg")    # for a slide
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from pathlib import Path

from .recording import Recording
from .roofs import MARGIN, bytes_by_level

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 20, 46
# Okabe and Ito's colours; each roof has a dash of its own and its name written on it.
_ROOFS = (("#0072b2", ""), ("#8a6100", "8 3"), ("#a0457c", "3 3"), ("#b84a00", "10 3 2 3"),
          ("#00694c", "1 3"))


@dataclass(frozen=True)
class Point:
    """One program: the steps that lead to it, its GFLOP/s, and operations a byte by level."""

    steps: tuple[int, ...]
    name: str
    gflops: float
    intensity: dict[str, float]


@dataclass(frozen=True)
class Roofline:
    """The roofs of a machine and the points of a recording.

    Attributes
    ----------
    peak : float
        GFLOP/s.
    bandwidth : dict
        GB/s by level, from "L1" to "memory".
    points : tuple of Point
    """

    peak: float
    bandwidth: dict[str, float]
    points: tuple[Point, ...]
    title: str = ""

    def bound(self, point: Point, level: str = "memory") -> float:
        """GFLOP/s that a level's bandwidth and the peak allow a program."""
        return min(self.peak, point.intensity[level] * self.bandwidth[level])

    def above(self, level: str = "memory") -> list[str]:
        """Why points lie above a roof, a sentence for each kind; nothing where none does."""
        shown = [p for p in self.points if level in p.intensity]
        out = []
        if any(p.gflops > self.peak * MARGIN for p in shown):
            out.append("Above the peak: it was measured while the machine was busy.")
        if any(p.gflops > self.bound(p, level) * MARGIN and p.gflops <= self.peak * MARGIN
               for p in shown):
            out.append(f"Above the roof of {level}: bytes are counted from empty caches, times "
                       "with full ones.")
        return out

    def svg(self, level: str = "memory") -> str:
        """The picture as SVG text: every roof, and each program at its intensity at `level`.

        Raises ValueError for a level without a bandwidth.
        """
        if level not in self.bandwidth:
            raise ValueError(f"there is no bandwidth of {level!r}; there is one of "
                             + ", ".join(self.bandwidth))
        return _Picture(self, level).draw()

    def save(self, path: str | Path, level: str = "memory") -> None:
        """Write the picture to a file."""
        Path(path).write_text(self.svg(level), encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg(next(reversed(self.bandwidth)))


def roofline(recording: Recording) -> Roofline:
    """The roofline of a recording whose steps were measured and counted.

    Raises ValueError, saying what to do, where one of the two is missing.
    """
    machine = recording.machine
    if not machine.get("bandwidth"):
        raise ValueError("the steps of this recording are not counted; "
                         "record(sch) has .measure() and .count()")
    if not machine.get("peak_gflops"):
        raise ValueError("the peak of the machine is not known for this recording's data type")
    points: dict[int, Point] = {}
    for number, step in enumerate(recording.steps):
        cost = recording.cost(number) or {}
        counts, gflops = cost.get("counts") or {}, cost.get("gflops")
        if not gflops or not counts.get("flops"):
            continue
        known = points.get(step.after)
        if known is not None:
            points[step.after] = Point((*known.steps, number), known.name, known.gflops,
                                       known.intensity)
            continue
        moved = {k: v for k, v in bytes_by_level(counts).items() if v}
        intensity = {k: counts["flops"] / v for k, v in moved.items()}
        points[step.after] = Point((number,), step.op, gflops, intensity)
    if not points:
        raise ValueError("no step of this recording has both a time and counts; "
                         "record(sch) has .measure() and .count()")
    return Roofline(machine["peak_gflops"], dict(machine["bandwidth"]), tuple(points.values()),
                    recording.title)


class _Picture:
    """Draws a roofline with logarithmic axes."""

    def __init__(self, roofs: Roofline, level: str) -> None:
        self.roofs, self.level = roofs, level
        self.shown = [p for p in roofs.points if level in p.intensity]
        xs = [p.intensity[level] for p in self.shown] or [1.0]
        ridge = roofs.peak / min(roofs.bandwidth.values())
        self.x0, self.x1 = min(*xs, 0.1) / 2, max(*xs, ridge) * 3
        ys = [p.gflops for p in self.shown] or [1.0]
        self.y0, self.y1 = min(ys) / 3, max(roofs.peak, *ys) * 2

    def x(self, value: float) -> float:
        span = math.log(self.x1 / self.x0)
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(value / self.x0) / span

    def y(self, value: float) -> float:
        span = math.log(self.y1 / self.y0)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(value / self.y0) / span

    def draw(self) -> str:
        parts = [*self._axes(), *self._roofs(), *self._points()]
        what = f"Roofline of {self.roofs.title}" if self.roofs.title else "Roofline"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{escape(what)}" '
            'font-family="system-ui, sans-serif" font-size="12">'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>{"".join(parts)}</svg>'
        )

    def _axes(self) -> list[str]:
        out = []
        for low, high, at, vertical in ((self.x0, self.x1, self.x, True),
                                        (self.y0, self.y1, self.y, False)):
            for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1):
                place, text = at(10.0**power), f"{10.0**power:g}"
                if vertical:
                    out.append(_line(place, TOP, place, HEIGHT - BOTTOM, "#d5d9de"))
                    out.append(_text(place, HEIGHT - BOTTOM + 16, text, "middle"))
                else:
                    out.append(_line(LEFT, place, WIDTH - RIGHT, place, "#d5d9de"))
                    out.append(_text(LEFT - 8, place + 4, text, "end"))
        below = "the core and L1" if self.level == next(iter(self.roofs.bandwidth)) else self.level
        label = f"operations for each byte from {below}"
        if "the core" in below:
            label = f"operations for each byte between {below}"
        out.append(_text(WIDTH / 2, HEIGHT - 8, label, "middle"))
        out.append(f'<text transform="translate(16 {HEIGHT / 2}) rotate(-90)" '
                   'text-anchor="middle" fill="#1b1f24">GFLOP/s</text>')
        return out

    def _roofs(self) -> list[str]:
        peak, out = self.roofs.peak, []
        flat = self.y(peak)
        for number, (name, speed) in enumerate(self.roofs.bandwidth.items()):
            colour, dash = _ROOFS[number % len(_ROOFS)]
            start, ridge = max(self.x0, self.y0 / speed), min(self.x1, peak / speed)
            if start >= ridge:
                continue
            selected = name == self.level
            out.append(_line(self.x(start), self.y(start * speed), self.x(ridge),
                             self.y(ridge * speed), colour, 3 if selected else 1.2, dash))
            at = start * (ridge / start) ** (0.3 + 0.14 * number)
            out.append(_text(self.x(at) + 8, self.y(at * speed) + 4,
                             f"{name} {speed:.3g} GB/s", "start", colour, selected))
        out.append(_line(self.x(max(self.x0, peak / max(self.roofs.bandwidth.values()))), flat,
                         WIDTH - RIGHT, flat, "#1b1f24", 2))
        out.append(_text(WIDTH - RIGHT, flat - 6, f"peak {peak:.4g} GFLOP/s", "end"))
        return out

    def _points(self) -> list[str]:
        out, named = [], []
        for point in self.shown:
            x, y = self.x(point.intensity[self.level]), self.y(point.gflops)
            steps = ", ".join(map(str, point.steps))
            title = (f"step {steps}: {point.name}, {point.gflops:.3g} GFLOP/s, "
                    f"{point.intensity[self.level]:.3g} operations a byte")
            out.append(f'<g><circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="#1b1f24" '
                       f'stroke="#ffffff"/><title>{escape(title)}</title></g>')
            # Of points that lie close together only one is named.
            if all(abs(u - x) > 26 or abs(v - y) > 12 for u, v in named):
                named.append((x, y))
                name = f"{point.steps[0]}" if len(point.steps) == 1 else (
                    f"{point.steps[0]}–{point.steps[-1]}")
                out.append(_text(x + 8, y + 4, name, "start"))
        for n, said in enumerate(self.roofs.above(self.level)):
            out.append(_text(LEFT + 8, TOP + 14 + 15 * n, said, "start"))
        return out


def _line(x0: float, y0: float, x1: float, y1: float, colour: str, width: float = 1,
          dash: str = "") -> str:
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="{colour}" '
            f'stroke-width="{width}"{dashes}/>')


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#1b1f24",
          bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{weight} '
            'paint-order="stroke" stroke="#ffffff" stroke-width="3">'
            f"{escape(text)}</text>")
