"""Random well-formed tensor programs: TVMScript of a few small stages, as people write it or not.

What is drawn goes from the plain (a map over a new buffer) to what few write but all may: updates
in place, reads before writes, several writers of one buffer, "spatial" iterators that are none,
reductions whose order matters, triangular and repeated loops, iterators that are fused, split or
cut off by `T.where`, data-dependent indices, nested blocks, views, aliases, statements outside of
blocks, regions that do not tell the truth. A program reads nothing that was not written before and
nothing outside of its buffers: the interpreter watches, and what breaks the rule is no case.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field

import numpy as np

from mlc_lab.backend.interp import InterpError, interpret
from mlc_lab.ir import dtype as dt
from mlc_lab.script import from_source

from .pieces import Array, Dim
from .stages import Stages


#: the arguments that programs run with
SEEDS = (0, 1)


@dataclass
class Program:
    """A program and what its arguments are like."""

    text: str
    params: list[Array]
    sizes: dict[str, int] = field(default_factory=dict)
    #: the sizes of the last seed: a schedule is right for all of them
    others: dict[str, int] = field(default_factory=dict)

    def arguments(self, seed: int) -> list[np.ndarray]:
        """Small whole numbers, so that sums and products are exact in any order."""
        rng = np.random.default_rng(seed)
        out = []
        for array in self.params:
            low, high = (0, array.limit) if array.limit is not None else (
                (0, 4) if array.dtype == "bool" or array.dtype.startswith("uint") else (-3, 4))
            sizes = self.others if seed == SEEDS[-1] else self.sizes
            values = rng.integers(low, high, [sizes.get(d.text, d.value) for d in array.dims])
            if array.dtype == "bool":
                values = values % 2
            values = values.astype(dt.numpy_dtype(array.dtype))
            if array.strides is not None and seed % 2:  # a part of larger memory
                values = np.repeat(values, 2, -1)[..., ::2]
            out.append(values)
        return out

    def parse(self):
        """The PrimFunc, or None if it is no case: what it reads must have been written."""
        func = from_source(self.text)
        try:
            for seed in SEEDS:  # conditions may depend on data
                interpret(func, *self.arguments(seed), check_uninitialized=True)
        except InterpError:
            return None
        return func


class Generator(Stages):
    """Draws one program."""

    def program(self) -> Program:
        draw = self.draw
        for _ in range(draw.choice([1, 2])):
            self.array(kind="input")
        if draw.chance(self.odd // 2):
            self.array(kind="output")
        if draw.chance(self.odd // 2):
            index = self.array([Dim("4", 4)], "input", draw.choice(["int32", "int64"]))
            index.limit = draw.choice([2, 3, 4])
        if self.sizes and not any(d.text == "n" for a in self.arrays for d in a.dims):
            self.array([Dim("n", self.sizes["n"])], "input")
        body: list[str] = []
        for _ in range(draw.choice([2, 1, 3, 4, 5])):
            body += self.stage([])
        body += self.results()
        params = [a for a in self.arrays if a.kind != "local"]
        if draw.chance(self.odd // 4):
            strided = draw.choice(params)
            strided.strides = [self.name("s") for _ in strided.dims]
        allocs = [f'{a.name} = T.alloc_buffer({a.shape}, "{a.dtype}")'
                  for a in self.arrays if a.kind == "local"]
        others = {name: draw.choice([size, 0, 1, 2, 4, 7]) for name, size in self.sizes.items()}
        return Program(self.script(params, [*allocs, *body]), params, self.sizes, others)

    def results(self) -> list[str]:
        """Stages that bring to light what the local buffers hold."""
        out: list[str] = []
        local = [a for a in self.arrays if a.kind == "local" and a.ready]
        for array in local:
            if array is local[-1] or self.draw.chance(40):
                result = self.array(list(array.dims), "output", array.dtype)
                names = [self.name("v") for _ in array.dims]
                loops, lines, _ = self.nest([(n, d, "S") for n, d in zip(names, array.dims)], [])
                at = ", ".join(names)
                out += self.block(loops, lines, [], [f"{result.name}[{at}] = {array.name}[{at}]"])
        return out

    def script(self, params: list[Array], body: list[str]) -> str:
        strides = [s for a in params for s in a.strides or ()]
        handles = bool(self.sizes or strides)
        lines = []
        if handles:
            head = ", ".join(f"p{a.name}: T.handle" for a in params)
            lines += [f"{n} = T.int32()" for n in (*self.sizes, *strides)]
            lines += [f'{a.name} = T.match_buffer(p{a.name}, {a.shape}, "{a.dtype}"'
                      + (f", strides=[{', '.join(a.strides)}])" if a.strides else ")")
                      for a in params]
        else:
            head = ", ".join(f'{a.name}: T.Buffer({a.shape}, "{a.dtype}")' for a in params)
        return f"@T.prim_func\ndef main({head}):\n" + textwrap.indent(
            "\n".join([*lines, *body]), "    ") + "\n"


def program(draw) -> Program:
    """A random program."""
    return Generator(draw).program()
