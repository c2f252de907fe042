"""Random statements without blocks: both interpreters, lowered program and machine code agree.

A case nests loops (some start elsewhere, some run as far as another loop says, some not at all),
`while`, `if`, definitions, memory of its own, T.break and T.continue around stores, over buffers of
all types. Its text parses back to the same program.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import mlc_lab as tvm
from mlc_lab.backend.interp import interpret
from mlc_lab.backend.meaning import evaluate
from mlc_lab.ir.dtype import numpy_dtype
from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.script import from_source

from . import harness
from .harness import Draw

DTYPES = ("int32", "float32", "int64", "int8", "uint8", "float64", "int16", "bool", "float16")
COMPARED = ("int32", "int64", "float32", "uint8")
DEEPEST, TERMS = 4, 3


class Text:
    """The text of a program as it grows, and what can be named where it stands."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.names = 0
        #: (name, type) of variables, (name, type, shape) of buffers
        self.variables: list[tuple[str, str]] = []
        self.buffers: list[tuple[str, str, tuple[int, ...]]] = []
        self.parameters = [self.buffer("A", draw.choice(DTYPES), tuple(
            draw.integer(1, 6) for _ in range(draw.integer(1, 2))))
            for _ in range(draw.integer(1, 4))]
        listed = ", ".join(f'{name}: T.Buffer({shape}, "{dtype}")'
                           for name, dtype, shape in self.parameters)
        self.lines = ["@T.prim_func", f"def main({listed}):"]
        for _ in range(draw.integer(1, 4)):
            self.statement(1)

    def fresh(self, letter: str) -> str:
        """A name that is not taken."""
        self.names += 1
        return f"{letter}{self.names}"

    def buffer(self, letter: str, dtype: str, shape: tuple[int, ...]
               ) -> tuple[str, str, tuple[int, ...]]:
        """A new buffer that stores and loads may name from now on."""
        made = (self.fresh(letter), dtype, shape)
        self.buffers.append(made)
        return made

    def put(self, depth: int, line: str) -> None:
        """A line at a depth."""
        self.lines.append("    " * depth + line)

    # ------------------------------------------------------------------------- expressions

    def index(self, size: int) -> str:
        """An index of a dimension."""
        draw = self.draw
        loops = [name for name, dtype in self.variables if dtype == "int32"]
        text = draw.choice(loops) if loops and draw.chance(80) else str(draw.integer(0, size - 1))
        if loops and draw.chance(40):
            text = f"({text} * {draw.integer(1, 3)} + {draw.choice(loops)})"
        if draw.chance(20):
            text = f"({text} - {draw.integer(0, 5)})"
        if draw.chance(20):
            text = f"({text} // {draw.integer(1, 4)})"
        return f"({text}) % {size}"

    def place(self, name: str, shape: tuple[int, ...]) -> str:
        """An element of a buffer."""
        return f"{name}[{', '.join(map(self.index, shape))}]"

    def value(self, dtype: str, depth: int = 0) -> str:
        """An expression of a type."""
        draw = self.draw
        if depth >= TERMS or draw.chance(35):
            return self.leaf(dtype)
        if dtype == "bool":
            return self.truth(depth + 1)
        a, b = (self.value(dtype, depth + 1) for _ in range(2))
        kinds = [f"({a} {draw.choice('+-*')} {b})", f"T.{draw.choice(('min', 'max'))}({a}, {b})"]
        if draw.chance(30):
            choose = draw.choice(("T.Select", "T.if_then_else"))
            kinds.append(f"{choose}({self.value('bool', depth + 1)}, {a}, {b})")
        if dtype.startswith("float"):
            function = draw.choice(("exp", "tanh", "fabs", "floor"))
            kinds.append(f"T.{function}(T.min({a}, T.{dtype}(3.0)))")
        else:
            division = draw.choice(("floordiv", "floormod", "truncdiv", "truncmod"))
            kinds.append(f"T.{division}({a}, T.{dtype}({draw.integer(1, 7)}))")
            kinds.append(f"T.bitwise_{draw.choice(('and', 'or', 'xor'))}({a}, {b})")
        return draw.choice(kinds)

    def leaf(self, dtype: str) -> str:
        """A constant, a variable or an element."""
        draw = self.draw
        kind = draw.integer(0, 2)
        if kind == 1 and self.variables:
            text, have = draw.choice(self.variables)
        elif kind == 2 and self.buffers:
            name, have, shape = draw.choice(self.buffers)
            text = self.place(name, shape)
        elif dtype == "bool":
            return draw.choice(("T.bool(False)", "T.bool(True)"))
        else:
            number = draw.integer(0, 9) if dtype[0] == "u" else draw.integer(-9, 9)
            return f"T.{dtype}({number}{'.5' if dtype[0] == 'f' else ''})"
        return text if have == dtype else f'T.cast({text}, "{dtype}")'

    def truth(self, depth: int) -> str:
        """A condition."""
        draw = self.draw
        kind = draw.choice(("<", "<=", "==", "!=", "And", "Or", "Not"))
        if kind == "Not":
            return f"T.Not({self.value('bool', depth)})"
        if kind in ("And", "Or"):
            return f"T.{kind}({self.value('bool', depth)}, {self.value('bool', depth)})"
        dtype = draw.choice(COMPARED)
        return f"({self.value(dtype, depth)} {kind} {self.value(dtype, depth)})"

    # ------------------------------------------------------------------------- statements

    def body(self, depth: int, leaves: bool = False) -> None:
        """The statements inside of another; what they define ends with them."""
        variables, buffers = list(self.variables), list(self.buffers)
        if leaves:
            if self.draw.chance(50):
                self.statement(depth)
            self.put(depth, f"if {self.value('bool')}:")
            self.put(depth + 1, self.draw.choice(("break", "continue")))
        for _ in range(self.draw.integer(1, 3)):
            self.statement(depth)
        self.variables, self.buffers = variables, buffers

    def statement(self, depth: int) -> None:
        """A statement of a random kind."""
        store = self.store
        kinds = [store] if depth > DEEPEST else [
            store, store, store, self.loop, self.loop, self.if_, self.let, self.while_, self.memory]
        self.draw.choice(kinds)(depth)

    def store(self, depth: int) -> None:
        name, dtype, shape = self.draw.choice(self.buffers)
        self.put(depth, f"{self.place(name, shape)} = {self.value(dtype)}")

    def loop(self, depth: int) -> None:
        draw, name = self.draw, self.fresh("i")
        outer = [v for v, dtype in self.variables if dtype == "int32"]
        extent, low = str(draw.integer(0, 5)), draw.integer(-2, 2) if draw.chance(20) else 0
        kind = draw.choice(("serial", "serial", "unroll"))
        if outer and draw.chance(25):
            extent, kind = f"{draw.choice(outer)} % 3 + 1", "serial"
        self.put(depth, f"for {name} in T.{kind}({low}, {extent} + {low}):")
        self.variables.append((name, "int32"))
        self.body(depth + 1, draw.chance(25))
        self.variables.pop()

    def if_(self, depth: int) -> None:
        self.put(depth, f"if {self.value('bool')}:")
        self.body(depth + 1)
        if self.draw.chance(50):
            self.put(depth, "else:")
            self.body(depth + 1)

    def let(self, depth: int) -> None:
        name, dtype = self.fresh("x"), self.draw.choice(("int32", "float32", "int64"))
        self.put(depth, f"with T.LetStmt({self.value(dtype)}) as {name}:")
        self.variables.append((name, dtype))
        self.body(depth + 1)
        self.variables.pop()

    def while_(self, depth: int) -> None:
        name = self.fresh("w")
        self.put(depth, f'{name} = T.decl_buffer((1,), "int32", scope="local")')
        self.put(depth, f"{name}[0] = 0")
        self.put(depth, f"while {name}[0] < {self.draw.integer(1, 4)}:")
        self.put(depth + 1, f"{name}[0] = {name}[0] + 1")
        self.body(depth + 1, self.draw.chance(25))

    def memory(self, depth: int) -> None:
        draw, var = self.draw, self.fresh("i")
        dtype, size = draw.choice(DTYPES[:6]), draw.integer(1, 6)
        value = self.value(dtype)
        name, _, _ = self.buffer("t", dtype, (size,))
        self.put(depth, f'{name} = T.decl_buffer(({size},), "{dtype}")')
        self.put(depth, f"for {var} in range({size}):")
        self.put(depth + 1, f"{name}[{var}] = {value}")


def arguments(text: Text, seed: int) -> list[Any]:
    """Small whole numbers for the parameters."""
    rng = np.random.default_rng(seed)
    low = {"bool": (0, 2), "uint8": (0, 7)}
    return [rng.integers(*low.get(dtype, (-6, 7)), shape).astype(numpy_dtype(dtype))
            for _, dtype, shape in text.parameters]


def case(draw: Draw) -> None:
    """One program under all laws."""
    text = Text(draw)
    source = "\n".join(text.lines)
    harness.note(source)
    func = from_source(source)
    assert_structural_equal(from_source(func.script()), func)
    lowered = tvm.lower(func)["main"]
    compiled = tvm.build(func, target="llvm")
    inputs = arguments(text, draw.integer(0, 99))
    want = [a.copy() for a in inputs]
    evaluate(func, *want)
    mine = [a.copy() for a in inputs]
    interpret(func, *mine)
    for got, other in zip(mine, want):
        np.testing.assert_array_equal(got, other, err_msg="the quick interpreter")
    half = any(dtype == "float16" for _, dtype, _ in text.parameters)
    for what, run in (("lowered", lambda *a: interpret(lowered, *a)), ("machine code", compiled)):
        got = [a.copy() for a in inputs]
        run(*got)
        for mine, other in zip(got, want):
            np.testing.assert_allclose(
                np.asarray(mine, "float64"), np.asarray(other, "float64"),
                rtol=2e-3 if half else 1e-5, atol=1e-5, err_msg=what)
