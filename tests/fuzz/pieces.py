"""What random programs are put together from: buffers, indices, values, loops around a block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mlc_lab.ir import dtype as dt

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTS = ["int32", "int64", "int8", "uint8", "int16", "uint32"]


class Dim(NamedTuple):
    """An extent: as it is written, and what it is (the most it is, of a triangular loop)."""

    text: str
    value: int


@dataclass
class Array:
    """A buffer of the program."""

    name: str
    dims: list[Dim]
    dtype: str
    #: "input", "output" (may also be read), "local"
    kind: str
    #: whether every element has a value
    ready: bool = False
    #: elements are below this (of arrays of indices)
    limit: int | None = None
    #: names of its strides, where the caller says what they are
    strides: list[str] | None = None

    @property
    def shape(self) -> str:
        return "(" + "".join(d.text + ", " for d in self.dims) + ")"


class Axis(NamedTuple):
    """A variable in [0, dim) that indices may use."""

    name: str
    dim: Dim


class Pieces:
    """Draws parts of one program."""

    def __init__(self, draw) -> None:
        self.draw = draw
        self.arrays: list[Array] = []
        self.count = 0
        self.sizes: dict[str, int] = {}
        # most programs are plain in most respects
        self.odd = draw.choice([0, 10, 30, 60])
        self.dtype = "float32"
        if draw.chance(25):
            self.dtype = draw.choice([*FLOATS, *INTS, "bool"])
        if draw.chance(15):
            self.sizes["n"] = draw.integer(1, 5)

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    # ------------------------------------------------------------------ buffers

    def dim(self) -> Dim:
        if self.sizes and self.draw.chance(40):
            return Dim("n", self.sizes["n"])
        value = self.draw.choice([4, 1, 2, 3, 5, 6])
        return Dim(str(value), value)

    def dims(self) -> list[Dim]:
        rank = self.draw.choice([1, 2, 2, 3])
        dims = [self.dim() for _ in range(rank)]
        while np.prod([d.value for d in dims]) > 72:
            dims.pop()
        return dims

    def element(self) -> str:
        if self.draw.chance(self.odd // 4):
            return self.draw.choice([*FLOATS[:3], *INTS, "bool"])
        return self.dtype

    def array(self, dims=None, kind="local", dtype=None) -> Array:
        made = Array(self.name("B" if kind == "local" else "A" if kind == "input" else "O"),
                     dims or self.dims(), dtype or self.element(), kind)
        made.ready = kind != "local"
        self.arrays.append(made)
        return made

    def readable(self) -> list[Array]:
        return [a for a in self.arrays if a.ready and a.limit is None]

    def some_dims(self) -> list[Dim]:
        """Often the shape of something that there is already."""
        known = [a.dims for a in self.arrays if a.limit is None]
        if known and self.draw.chance(65):
            return list(self.draw.choice(known[::-1]))
        return self.dims()

    # ------------------------------------------------------------------ indices and values

    def index(self, dim: Dim, axes: list[Axis], prefer: int | None = None) -> str:
        """An index in [0, dim)."""
        draw = self.draw
        if prefer is not None and prefer < len(axes) and not draw.chance(self.odd // 2):
            axis = axes[prefer]
            if axis.dim == dim:
                return axis.name
        fits = [a for a in axes if a.dim == dim or (
            a.dim.text.isdigit() and dim.text.isdigit() and a.dim.value <= dim.value)]
        if fits and not draw.chance(self.odd):
            return draw.choice(fits).name
        number = dim.text.isdigit()
        for _ in range(3):
            kind = draw.choice(["mod", "back", "shift", "const", "div", "times", "min", "sum",
                                "wrap", "gather"])
            axis = draw.choice(axes) if axes else None
            if axis is None or kind == "const":
                return str(draw.integer(0, dim.value - 1)) if number else "0"
            v, extent = axis.name, axis.dim.value
            if kind == "mod":
                return f"{v} % {dim.text}"
            if kind == "min":
                return f"T.min({v} + {draw.integer(0, 2)}, {dim.text} - 1)"
            if kind == "wrap":
                return f"({v} + {draw.integer(1, 3)}) % {dim.text}"
            if kind == "back" and (axis.dim == dim or number and extent <= dim.value):
                return f"{dim.text} - 1 - {v}"
            if kind == "gather":
                found = [a for a in self.arrays if a.limit is not None and number
                         and a.limit <= dim.value and a.ready]
                if found:
                    source = draw.choice(found)
                    return f"{source.name}[{self.index(source.dims[0], axes)}]"
            if not number or not axis.dim.text.isdigit():
                continue
            if kind == "shift" and extent < dim.value:
                return f"{v} + {draw.integer(1, dim.value - extent)}"
            if kind == "div" and (extent - 1) // 2 < dim.value:
                return f"{v} // 2"
            if kind == "times" and (extent - 1) * 2 < dim.value:
                return f"{v} * 2"
            if kind == "sum":
                other = draw.choice(axes)
                if other.dim.text.isdigit() and extent + other.dim.value - 2 < dim.value:
                    return f"{v} + {other.name}"
        return f"{axes[0].name} % {dim.text}" if axes else "0"

    def place(self, array: Array, axes: list[Axis]) -> str:
        """An element of an array."""
        return ", ".join(self.index(d, axes, k) for k, d in enumerate(array.dims))

    def load(self, axes: list[Axis], dtype: str, own: Array | None = None) -> str:
        sources = self.readable()
        if own is not None and own.ready and self.draw.chance(self.odd // 2):
            sources = [own]
        sources = [a for a in sources if self.fits(a.dtype, dtype)]
        if not sources:
            return self.constant(dtype)
        array = self.draw.choice(sources[::-1])
        text = f"{array.name}[{self.place(array, axes)}]"
        return text if array.dtype == dtype else f'T.Cast("{dtype}", {text})'

    @staticmethod
    def fits(source: str, dtype: str) -> bool:
        """Whether values may be cast: no fractions lost, no sign, no overflow into a smaller."""
        if source == dtype:
            return True
        if dtype == "bool" or dt.is_float(source) and not dt.is_float(dtype):
            return False
        return source == "bool" or dtype in ("float32", "float64", "int64", "int32") and (
            source in ("int8", "uint8", "int16") or dt.is_float(dtype))

    def constant(self, dtype: str) -> str:
        if dtype == "bool":
            return f"T.bool({self.draw.choice(['True', 'False'])})"
        low = 0 if dtype.startswith("uint") else -2
        return f"T.{dtype}({self.draw.choice([1, 2, 3, 0, low])})"

    def condition(self, axes: list[Axis]) -> str:
        draw = self.draw
        if axes and not draw.chance(30):
            a = draw.choice(axes)
            if len(axes) > 1 and draw.chance(30):
                return f"{a.name} {draw.choice(['<', '<=', '==', '>='])} {draw.choice(axes).name}"
            return f"{a.name} {draw.choice(['<', '>=', '==', '!='])} {draw.integer(0, 4)}"
        dtype = draw.choice([a.dtype for a in self.readable()] or ["int32"])
        if dtype == "bool":
            return self.load(axes, dtype)
        return f"{self.load(axes, dtype)} {draw.choice(['>', '<', '=='])} {self.constant(dtype)}"

    def value(self, axes: list[Axis], dtype: str, depth: int = 2, own: Array | None = None) -> str:
        draw = self.draw
        if depth == 0 or draw.chance(20):
            return self.load(axes, dtype, own)
        if dtype == "bool":
            return self.condition(axes)

        def more() -> str:
            return self.value(axes, dtype, depth - 1, own)

        kind = draw.choice(["scale", "add", "sub", "max", "min", "const", "if", "select", "index",
                            "let"])
        if kind == "scale":
            return f"{self.load(axes, dtype, own)} * T.{dtype}(2)"
        if kind == "add":
            return f"{more()} + {more()}"
        if kind == "sub":
            return f"{more()} - ({more()})"
        if kind in ("max", "min"):
            return f"T.{kind}({more()}, {more()})"
        if kind == "if":
            return f"T.if_then_else({self.condition(axes)}, {more()}, {more()})"
        if kind == "select":
            return f"T.Select({self.condition(axes)}, {more()}, {more()})"
        if kind == "index" and axes:
            return f'T.Cast("{dtype}", {draw.choice(axes).name})'
        return f"{more()} + {self.constant(dtype)}"

    # ------------------------------------------------------------------ loops and bindings

    def nest(self, axes: list[tuple[str, Dim, str]], outer: list[Axis]) -> tuple[list, list, bool]:
        """Loops for block iterators (name, domain, kind): (loop lines, axis lines, partial).

        Some iterators are bound to loops that are open already. `partial`: not every value of the
        iterators occurs.
        """
        draw = self.draw
        loops: list[tuple[str, str]] = []
        binding: dict[str, str] = {}
        condition, partial = "", False
        taken: set[str] = set()
        left = []
        for name, dim, kind in axes:
            same = [o for o in outer if o.dim == dim and o.name not in taken]
            if same and not draw.chance(15):
                binding[name] = same[0].name
                taken.add(same[0].name)
            else:
                left.append((name, dim))
        if len(left) > 1 and draw.chance(self.odd // 3):
            left = draw.permutation(left)
        style = draw.choice(["plain", "fused", "split", "triangle", "backward", "offset",
                             "repeat"]) if left and draw.chance(self.odd) else "plain"
        plain = left
        if style == "fused" and len(left) > 1:
            (a, da), (b, db), *plain = left
            f = self.name("f")
            loops.append((f, f"{da.text} * {db.text}"))
            binding[a], binding[b] = f"{f} // {db.text}", f"{f} % {db.text}"
        elif style == "split":
            (a, da), *plain = left
            factor = draw.choice([2, 3])
            i, j = self.name("i"), self.name("j")
            loops += [(i, f"({da.text} + {factor - 1}) // {factor}"), (j, str(factor))]
            binding[a] = f"{i} * {factor} + {j}"
            condition = f"{i} * {factor} + {j} < {da.text}"
        elif style == "triangle" and len(left) > 1:
            (a, da), (b, db), *plain = left
            i, j = self.name("i"), self.name("j")
            loops += [(i, da.text), (j, draw.choice([
                f"T.min({i} + 1, {db.text})", f"T.max({db.text} - {i}, 0)"]))]
            if da == db:
                loops[-1] = (j, draw.choice([f"{i} + 1", f"{da.text} - {i}"]))
            binding[a], binding[b] = i, j
            partial = True
        elif style == "backward":
            (a, da), *plain = left
            i = self.name("i")
            loops.append((i, da.text))
            binding[a] = f"{da.text} - 1 - {i}"
        elif style == "offset":
            (a, da), *plain = left
            i = self.name("i")
            start = draw.integer(0, min(1, da.value - 1)) if da.text.isdigit() else 0
            loops.append((i, f"{start}, {da.text}"))
            binding[a] = i
            partial = start > 0
        elif style == "repeat":
            loops.append((self.name("r"), str(draw.choice([2, 1, 3]))))
        for name, dim in plain:
            i = self.name("i")
            loops.append((i, dim.text))
            binding[name] = i
        if condition == "" and loops and draw.chance(self.odd // 5):
            condition = f"{draw.choice(loops)[0]} < {draw.integer(1, 3)}"
            partial = True
        lines = self.axis_lines(axes, binding)
        if condition:
            lines.append(f"T.where({condition})")
        return self.loop_lines(loops), lines, partial

    def loop_lines(self, loops: list[tuple[str, str]]) -> list[str]:
        if len(loops) > 1 and self.draw.chance(50) and not any(
                "," in e or any(n in e for n, _ in loops) for _, e in loops):
            return [f"for {', '.join(n for n, _ in loops)} in T.grid("
                    f"{', '.join(e for _, e in loops)}):"]
        return [f"for {n} in {'T.serial' if ',' in e else 'range'}({e}):" for n, e in loops]

    def axis_lines(self, axes: list[tuple[str, Dim, str]], binding: dict[str, str]) -> list[str]:
        words = {"S": "spatial", "R": "reduce", "scan": "scan", "O": "opaque"}
        return [f"{name} = T.axis.{words[kind]}({dim.text}, {binding[name]})"
                for name, dim, kind in axes]


def nested(heads: list[str], body: list[str]) -> list[str]:
    """Statements within loops."""
    out = []
    for depth, head in enumerate(heads):
        out.append("    " * depth + head)
    return out + ["    " * len(heads) + line for line in body]
