"""Random tensor programs: TVMScript text, and what numpy says they compute."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st


class Program:
    """A chain of stages over small arrays: `text` is its script, `reference` its answer."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.inputs: list[tuple[str, tuple[int, ...]]] = [("A", shape)]
        self.stages: list[tuple[str, tuple[int, ...], str]] = []
        self.steps: list = []
        self.last, self.shape = "A", shape

    def new_input(self, shape):
        name = f"X{len(self.inputs)}"
        self.inputs.append((name, shape))
        return name

    def stage(self, shape, loops, kinds, store, init=None, compute=None):
        """Add a block over `loops` (name, extent); `store` is its right hand side."""
        name = f"B{len(self.stages)}"
        variables = ", ".join("v" + n for n, _ in loops)
        lines = [f"for {', '.join(n for n, _ in loops)} in T.grid("
                 f"{', '.join(str(e) for _, e in loops)}):" if len(loops) > 1 else
                 f"for {loops[0][0]} in range({loops[0][1]}):",
                 f'    with T.block("{name}"):',
                 f'        {variables} = T.axis.remap("{kinds}", '
                 f"[{', '.join(n for n, _ in loops)}])" if len(loops) > 1 else
                 f"        {variables} = T.axis.spatial({loops[0][1]}, {loops[0][0]})"]
        at = ", ".join("v" + n for (n, _), k in zip(loops, kinds) if k == "S")
        if init is not None:
            lines += ["        with T.init():", f"            {name}[{at}] = T.float32({init})"]
        lines.append(f"        {name}[{at}] = {store.replace('@', f'{name}[{at}]')}")
        self.stages.append((name, shape, "\n".join(lines)))
        self.steps.append(compute)
        self.last, self.shape = name, shape

    @property
    def text(self) -> str:
        """The script of the program."""
        out = self.stages[-1]
        params = [*self.inputs, out[:2]]
        head = ", ".join(f'{n}: T.Buffer({s}, "float32")' for n, s in params)
        body = [f"{n} = T.alloc_buffer({s})" for n, s, _ in self.stages[:-1]]
        for _, _, stage in self.stages:
            body += stage.split("\n")
        return "@T.prim_func\ndef main(" + head + "):\n" + "\n".join(
            "    " + line for line in body) + "\n"

    def reference(self, *arrays):
        """What the program computes from its inputs."""
        value = arrays[0]
        rest = list(arrays[1:])
        for step in self.steps:
            value = step(value, rest)
        return value


def _names(shape):
    return [f"i{n}" for n in range(len(shape))]


def elementwise(draw, p):
    """f(x) at every place."""
    expr, fn = draw(st.sampled_from([
        ("{} * T.float32(2)", lambda x: x * 2), ("{} + T.float32(1)", lambda x: x + 1),
        ("T.max({}, T.float32(0))", lambda x: np.maximum(x, 0)),
        ("T.exp({} * T.float32(0.1))", lambda x: np.exp(x * np.float32(0.1)))]))
    loops = list(zip(_names(p.shape), p.shape))
    at = ", ".join("v" + n for n, _ in loops)
    p.stage(p.shape, loops, "S" * len(loops), expr.format(f"{p.last}[{at}]"),
            compute=lambda x, rest: fn(x).astype("float32"))


def broadcast(draw, p):
    """Add a vector along the last axis."""
    loops = list(zip(_names(p.shape), p.shape))
    at = ", ".join("v" + n for n, _ in loops)
    other = p.new_input((p.shape[-1],))
    p.stage(p.shape, loops, "S" * len(loops), f"{p.last}[{at}] + {other}[v{loops[-1][0]}]",
            compute=lambda x, rest: x + rest.pop(0))


def transpose(draw, p):
    """Permute the axes."""
    order = draw(st.permutations(range(len(p.shape))))
    shape = tuple(p.shape[o] for o in order)
    loops = list(zip(_names(shape), shape))
    source = [""] * len(order)
    for place, o in enumerate(order):
        source[o] = f"v{loops[place][0]}"
    p.stage(shape, loops, "S" * len(loops), f"{p.last}[{', '.join(source)}]",
            compute=lambda x, rest: x.transpose(order))


def reduction(draw, p):
    """Sum or maximum over the last axis."""
    if len(p.shape) < 2:
        return elementwise(draw, p)
    loops = list(zip([*_names(p.shape[:-1]), "k"], p.shape))
    at = ", ".join("v" + n for n, _ in loops)
    kinds = "S" * (len(loops) - 1) + "R"
    if draw(st.booleans()):
        p.stage(p.shape[:-1], loops, kinds, f"@ + {p.last}[{at}]", init=0,
                compute=lambda x, rest: x.sum(-1))
    else:
        p.stage(p.shape[:-1], loops, kinds, f"T.max(@, {p.last}[{at}])", init=-1e30,
                compute=lambda x, rest: x.max(-1))


def stencil(draw, p):
    """Sum of two neighbours along the first axis, which gets shorter."""
    if p.shape[0] < 4:
        return elementwise(draw, p)
    shape = (p.shape[0] - 2, *p.shape[1:])
    loops = list(zip(_names(shape), shape))
    rest_at = "".join(f", v{n}" for n, _ in loops[1:])
    first = loops[0][0]
    p.stage(shape, loops, "S" * len(loops),
            f"{p.last}[v{first}{rest_at}] + {p.last}[v{first} + 2{rest_at}]",
            compute=lambda x, rest: x[:-2] + x[2:])


def matmul(draw, p):
    """Multiply the last axis with a new matrix."""
    n, k = draw(st.integers(1, 6)), p.shape[-1]
    other = p.new_input((k, n))
    shape = (*p.shape[:-1], n)
    loops = [*zip(_names(p.shape[:-1]), p.shape[:-1]), ("j", n), ("k", k)]
    front = "".join(f"v{name}, " for name, _ in loops[:-2])
    p.stage(shape, loops, "S" * (len(loops) - 1) + "R",
            f"@ + {p.last}[{front}vk] * {other}[vk, vj]", init=0,
            compute=lambda x, rest: x @ rest.pop(0))


def reshape(draw, p):
    """Flatten into one axis."""
    total = int(np.prod(p.shape))
    source, left = [], total
    for dim in p.shape:
        left //= dim
        source.append(f"vi // {left} % {dim}" if left > 1 else f"vi % {dim}")
    if len(p.shape) > 1:
        source[0] = f"vi // {total // p.shape[0]}"
    else:
        source = ["vi"]
    p.stage((total,), [("i", total)], "S", f"{p.last}[{', '.join(source)}]",
            compute=lambda x, rest: x.reshape(-1))


STAGES = [elementwise, elementwise, broadcast, transpose, reduction, stencil, matmul, reshape]


@st.composite
def programs(draw):
    """A random program of one to four stages."""
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    p = Program(shape)
    for _ in range(draw(st.integers(1, 4))):
        draw(st.sampled_from(STAGES))(draw, p)
        if not p.shape:
            break
    return p
