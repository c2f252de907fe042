"""Random tensor expressions and te schedules against numpy.

A case is a chain of stages: elementwise ones, shifted reads, choices by the value of floats, sums,
products and maxima over ranges that may depend on the element, start anywhere, and be empty; sizes
are numbers, whole quotients, or symbolic. Some stages in between are arguments too. Its function as
it is and after a random te schedule gives what numpy gives; what is refused says so as a
ScheduleError or a ValueError.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

import mlc_lab as tvm
from mlc_lab import te, tir
from mlc_lab.backend.interp import interpret
from mlc_lab.schedule import ScheduleError

from . import harness

#: values are whole numbers, so that sums are exact in any order
LIMIT = 2.0**22


class Chain:
    """The stages of a case: tensors, and the arrays they must equal."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.lines: list[str] = []
        rows, columns = draw.integer(1, 7), draw.integer(1, 6)
        self.size = te.var("n") if draw.chance(25) else None
        shape: list[Any] = [rows if self.size is None else self.size, columns]
        if draw.chance(20):
            shape[1] = columns * 4 / 4  # whole, but no int
        rng = np.random.default_rng(draw.integer(0, 99))
        self.rows, self.columns = rows, columns
        self.inputs = [te.placeholder(shape, name=f"A{i}") for i in range(2)]
        arrays = [rng.integers(-3, 4, (rows, columns)).astype("float32") for _ in self.inputs]
        self.tensors, self.arrays = list(self.inputs), arrays
        self.note(f"A0, A1: {shape}")

    def note(self, text: str) -> None:
        self.lines.append(text)

    def add(self) -> None:
        """One more stage, of a random kind."""
        kind = self.draw.choice([self.elementwise, self.shifted, self.chosen, self.reduced,
                                 self.reduced, self.reduced])
        x = self.draw.integer(0, len(self.tensors) - 1)
        y = self.draw.integer(0, len(self.tensors) - 1)
        name = f"S{len(self.tensors)}"
        array, tensor = kind(name, x, y)
        if np.abs(array).max(initial=0) < LIMIT:
            self.tensors.append(tensor)
            self.arrays.append(array.astype("float32"))
        else:
            self.lines.pop()

    def compute(self, name: str, fn: Callable) -> Any:
        return te.compute(self.inputs[0].shape, fn, name=name)

    def elementwise(self, name: str, x: int, y: int) -> tuple[np.ndarray, Any]:
        a, b = self.tensors[x], self.tensors[y]
        self.note(f"{name} = {a.name} * 2 - {b.name}")
        return (self.arrays[x] * 2 - self.arrays[y],
                self.compute(name, lambda i, j: a[i, j] * 2 - b[i, j]))

    def shifted(self, name: str, x: int, y: int) -> tuple[np.ndarray, Any]:
        a, b = self.tensors[x], self.tensors[y]
        by = self.draw.integer(1, 2)
        self.note(f"{name} = {a.name} + {b.name}, {by} rows on, or 0")
        want = np.zeros_like(self.arrays[x])
        want[:-by] = self.arrays[y][by:]
        rows = self.inputs[0].shape[0]
        return self.arrays[x] + want, self.compute(name, lambda i, j: a[i, j] + tir.if_then_else(
            i + by < rows, b[i + by, j], tir.const(0, "float32")))

    def chosen(self, name: str, x: int, y: int) -> tuple[np.ndarray, Any]:
        a, b = self.tensors[x], self.tensors[y]
        self.note(f"{name} = {a.name} if {a.name} < {b.name} else -{b.name}")
        return (np.where(self.arrays[x] < self.arrays[y], self.arrays[x], -self.arrays[y]),
                self.compute(name, lambda i, j: tir.Select(a[i, j] < b[i, j], a[i, j], -b[i, j])))

    def reduced(self, name: str, x: int, y: int) -> tuple[np.ndarray, Any]:
        a, b = self.tensors[x], self.tensors[y]
        rows, cols = self.inputs[0].shape
        ends = {
            "all columns": (lambda i, j: 0, lambda i, j: cols, lambda i, j, n, m: (0, m)),
            "from 1": (lambda i, j: min(1, self.columns), lambda i, j: cols,
                       lambda i, j, n, m: (min(1, m), m)),
            "to j": (lambda i, j: 0, lambda i, j: j + 1, lambda i, j, n, m: (0, j + 1)),
            "before j": (lambda i, j: 0, lambda i, j: j, lambda i, j, n, m: (0, j)),
            "from j": (lambda i, j: j, lambda i, j: cols, lambda i, j, n, m: (j, m)),
            "window": (lambda i, j: tir.max(j - 1, 0), lambda i, j: tir.min(j + 2, cols),
                       lambda i, j, n, m: (max(j - 1, 0), min(j + 2, m))),
            "part": (lambda i, j: j // 2, lambda i, j: j // 2 + (j + 1) // 2,
                     lambda i, j, n, m: (j // 2, j // 2 + (j + 1) // 2)),
            "no axes": None,
        }
        which = self.draw.choice(list(ends))
        reduce, start, combine = self.draw.choice([
            (te.sum, 0.0, np.sum), (te.max, None, np.max), (te.min, None, np.min)])
        self.note(f"{name} = {reduce.__name__} of {a.name}[i, k] + {b.name}[i, j], {which}")
        n, m = self.rows, self.columns
        if which == "no axes":
            return self.arrays[x] + self.arrays[y], self.compute(
                name, lambda i, j: reduce(a[i, j] + b[i, j], axis=[]))
        low, high, bounds = ends[which]
        if start is None:
            info = np.finfo("float32")
            start = float(info.min if reduce is te.max else info.max)
        want = np.full((n, m), start, "float64")
        for i, j in np.ndindex(n, m):
            first, last = bounds(i, j, n, m)
            if last > first:
                want[i, j] = combine(self.arrays[x][i, first:last] + self.arrays[y][i, j])
        if reduce is not te.sum and np.abs(want).max(initial=0) > LIMIT:
            want = np.clip(want, -9, 9)  # an empty maximum is clipped where it is read
            raw, clip = reduce, True
        else:
            raw, clip = reduce, False

        def body(i: Any, j: Any) -> Any:
            k = te.reduce_axis((low(i, j), high(i, j)), "k")
            return raw(a[i, k] + b[i, j], axis=k)

        tensor = self.compute(name, body)
        if clip:
            held = tensor
            tensor = self.compute(name + "c", lambda i, j: tir.max(
                tir.min(held[i, j], tir.const(9, "float32")), tir.const(-9, "float32")))
        return want, tensor


def scheduled(draw: Any, s: Any, ops: list, note: Callable[[str], None]) -> None:
    """Random steps of a te schedule; what is refused at once is left out."""
    for _ in range(draw.integer(0, 7)):
        op = draw.choice(ops)
        other = draw.choice(ops)
        step = draw.choice(["split", "nparts", "fuse", "reorder", "unroll", "vectorize", "parallel",
                            "compute_at", "compute_at", "compute_inline", "cache_write",
                            "cache_read", "rfactor"])
        with contextlib.suppress(ValueError, ScheduleError):
            stage = s[op]
            leaves = list(stage.leaf_iter_vars)
            axis = draw.choice(leaves)
            factor = draw.integer(1, 4)
            if step == "split":
                stage.split(axis, factor=factor)
            elif step == "nparts":
                stage.split(axis, nparts=factor)
            elif step == "fuse":
                at = draw.integer(0, max(len(leaves) - 2, 0))
                stage.fuse(*leaves[at:at + 2])
            elif step == "reorder":
                stage.reorder(*draw.permutation(leaves))
            elif step in ("unroll", "vectorize", "parallel"):
                getattr(stage, step)(axis)
            elif step == "compute_at":
                axis = draw.choice(list(s[other].leaf_iter_vars))
                stage.compute_at(s[other], axis)
            elif step == "compute_inline":
                stage.compute_inline()
            elif step == "cache_write":
                ops.append(s.cache_write(op.output(0), "local").op)
            elif step == "cache_read":
                s.cache_read(op.output(0), "local", [s[other].op])
            else:
                ops.append(s.rfactor(op.output(0), axis).op)
            note(f"{step} {op.name} {axis.var.name} {factor} {other.name}")


def case(draw: Any) -> None:
    """One chain, as it is and scheduled."""
    chain = Chain(draw)
    for _ in range(draw.integer(1, 4)):
        chain.add()
    last = len(chain.tensors) - 1
    if last < 2:
        return
    shown = [i for i in range(2, last) if draw.chance(25)] + [last]
    harness.note("\n".join([*chain.lines, f"arguments: {[chain.tensors[i].name for i in shown]}"]))
    args = [*chain.inputs, *(chain.tensors[i] for i in shown)]
    want = [chain.arrays[i] for i in shown]
    func = te.create_prim_func(args)
    check(lambda *a: interpret(func, *a), chain, want, "the interpreter")
    check(tvm.build(func, "llvm"), chain, want, "machine code")
    steps: list[str] = []
    s = te.create_schedule(chain.tensors[last].op)
    ops = [stage.op for stage in s.stages if isinstance(stage.op, te.tensor.ComputeOp)]
    scheduled(draw, s, ops, steps.append)
    harness.note("\n".join(steps))
    try:
        mod = s.to_module(args)
    except (ScheduleError, ValueError) as error:
        harness.counts["refused " + getattr(error, "rule", "ValueError")] += 1
        return
    harness.counts["accepted"] += 1
    harness.note(mod.script())
    check(lambda *a: interpret(mod, *a), chain, want, "the interpreter, scheduled")
    check(tvm.build(mod, "llvm")["main"], chain, want, "machine code, scheduled")


def check(run: Callable, chain: Chain, want: list[np.ndarray], what: str) -> None:
    """What a function computes is what numpy does."""
    got = [np.full_like(w, 77) for w in want]
    run(*[a.copy() for a in chain.arrays[:2]], *got)
    for g, w in zip(got, want):
        np.testing.assert_array_equal(g, w, err_msg=what)
