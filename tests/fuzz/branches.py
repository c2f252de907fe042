"""Fuzz target "branches": conditions, bounds and names that read memory which changes under them.

A case is a function on two buffers of two elements each: stores, `if`, loops whose bounds are data,
and names for values, nested, so that nearly every store changes what some condition or bound around
it has read. It divides by a size that may be zero, where it asked or in loops that are as long.
What lowering makes of it, and machine code, compute what the interpreter says.
"""

from __future__ import annotations

import numpy as np

import mlc_lab as tvm
from mlc_lab.backend.interp import interpret
from mlc_lab.lower import lower
from mlc_lab.script import from_source

from .harness import Draw, note

DEEPEST = 4


class Text:
    """The text of a function as it grows. Variables have True where they are valid indices."""

    def __init__(self, draw: Draw) -> None:
        self.draw, self.names = draw, 0
        self.variables: list[tuple[str, bool]] = []
        self.guarded = False  # whether n is not zero here
        body = self.block(1, 0)
        self.text = "\n".join(["@T.prim_func", 'def main(A: T.Buffer((2,), "int32"), '
                               'B: T.Buffer((2,), "int32"), n: T.int32):', *body])

    def fresh(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def cell(self) -> str:
        index = self.draw.choice(["0", "1", *(name for name, small in self.variables if small)])
        return f"{self.draw.choice('AB')}[{index}]"

    def value(self, depth: int = 0) -> str:
        draw = self.draw
        kind = draw.integer(0, 9) if depth < 3 else draw.integer(0, 4)
        if kind < 2:
            return self.cell()
        if kind < 5:
            return draw.choice([str(draw.integer(-2, 4)), *(n for n, _ in self.variables)])
        if draw.chance(8):
            return self.asked("T.if_then_else(n > 0, {0}, {1} * 0 + 1)" if self.guarded else
                              "T.if_then_else(n > 0, {0}, 1)", depth + 1)
        if self.guarded and draw.chance(30):
            return f"({self.value(depth + 1)} {draw.choice(['//', '%'])} n)"
        a, b = self.value(depth + 1), self.value(depth + 1)
        return f"({a} {draw.choice('+-*')} {b})" if kind < 9 else (
            f"T.{draw.choice(['min', 'max'])}({a}, {b})")

    def condition(self) -> str:
        draw = self.draw
        if self.guarded and self.variables and draw.chance(40):  # plain enough to cut loops at
            a, b = (draw.choice(self.variables)[0] for _ in range(2))
            return f"{a} {draw.choice(['//', '%'])} n < {draw.choice([b, '1', '2'])}"
        if draw.chance(15):
            return self.asked("n > 0 and {0} < {1}", 1)
        one = f"{self.value(1)} {draw.choice(['<', '<=', '==', '!=', '>', '>='])} {self.value(1)}"
        return one if not draw.chance(20) else (
            f"{one} {draw.choice(['and', 'or'])} {self.value(1)} < {self.value(1)}")

    def asked(self, form: str, depth: int) -> str:
        """Values in a form that asks first whether n is zero."""
        before, self.guarded = self.guarded, True
        values = [self.value(depth), self.value(depth)]
        self.guarded = before
        return form.format(*values)

    def bound(self, most: int) -> str:
        return f"T.min(T.max({self.cell()}, 0), {most})"

    def block(self, indent: int, depth: int) -> list[str]:
        kept = list(self.variables)
        lines = [line for _ in range(self.draw.integer(1, 3))
                 for line in self.statement(indent, depth)]
        self.variables = kept
        return lines

    def statement(self, indent: int, depth: int) -> list[str]:
        draw, left = self.draw, "    " * indent
        kind = draw.integer(0, 19) if depth < DEEPEST else 0
        if kind < 8:
            value = self.value() if not draw.chance(20) else (
                f"T.if_then_else({self.condition()}, {self.value()}, {self.value()})")
            return [f"{left}{self.cell()} = {value}"]
        if kind < 13:
            before, asked = self.guarded, draw.chance(25)
            self.guarded = before or asked
            lines = [f"{left}if {'n > 0' if asked else self.condition()}:",
                     *self.block(indent + 1, depth + 1)]
            self.guarded = before
            return lines if draw.chance(50) else [
                *lines, f"{left}else:", *self.block(indent + 1, depth + 1)]
        name = self.fresh()
        if kind < 17:
            low = draw.choice(["0", "0", self.bound(1), self.cell()])
            high = draw.choice(["2", "1", f"{low} + 1", self.bound(3), self.bound(3)])
            kept, before = list(self.variables), self.guarded
            if draw.chance(20):
                low, high, self.guarded = "0", "n", True
            self.variables.append((name, low == "0" and high in ("1", "2")))
            loop = "unroll" if high in ("2", f"{low} + 1") and draw.chance(30) else "serial"
            lines = [f"{left}for {name} in T.{loop}({low}, {high}):",
                     *self.block(indent + 1, depth + 1)]
            self.variables, self.guarded = kept, before
            return lines
        line = f"{left}{name}: T.int32 = {self.value()}"
        self.variables.append((name, False))
        return [line, *self.statement(indent, depth + 1)]


def case(draw: Draw) -> None:
    """One function."""
    made = Text(draw).text
    note(made)
    func = from_source(made)
    lowered = lower(func)["main"]
    built = tvm.build(func, "llvm") if draw.chance(30) else None
    for seed in range(3):
        rng = np.random.default_rng(draw.integer(0, 99) + seed)
        given = [rng.integers(-1, 4, 2).astype("int32") for _ in "AB"]
        want, got = ([a.copy() for a in given] for _ in range(2))
        size = (seed * draw.integer(1, 3)) % 4
        interpret(func, *want, size)
        interpret(lowered, *got, size)
        np.testing.assert_array_equal(got, want, "the interpreter, lowered")
        if built is not None:
            there = [tvm.nd.array(a) for a in given]
            built(*there, size)
            np.testing.assert_array_equal([a.numpy() for a in there], want, "machine code")
