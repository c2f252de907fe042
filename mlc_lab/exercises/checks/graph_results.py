"""same_graph, moves: a Relax program computes what the reference does, and moves few bytes.

Only programs of operators are run here, and functions made of them: a kernel of somebody's could
write where it likes. Programs are compiled and compared on random inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir import dtype as dt
from ...observe.graph import graph_of
from ...relax.building import build
from ...relax.expr import Function
from ...relax.struct_info import TensorStructInfo
from ...relax.vm import VirtualMachine
from ...runtime import array, cpu
from ...tir.op import as_int
from ..answers import read
from ..result import Found
from . import bindings
from .equivalent import nasty_inputs

if TYPE_CHECKING:
    from ...ir.module import IRModule
    from ..answers import Answer
    from ..exercise import Variant

#: elements of a tensor of a program that is run
MOST_ELEMENTS = 1 << 22


def same_graph(answer: Answer, variant: Variant, *, nasty: bool = True) -> Found:
    """Whether `main` computes what that of the exercise's program, or of its reference, does.
    `nasty`: also on NaN and infinities, and on numbers of one sign."""
    right = variant.program if variant.program is not None else read(
        variant, variant.reference).mod
    assert answer.mod is not None and right is not None
    found = differing(answer.mod, right, nasty=nasty)
    return found or Found(True, "the same results on random inputs, and on NaN and infinities"
                          if nasty else "the same results on random inputs")


def moves(answer: Answer, variant: Variant, *, most: int) -> Found:
    """Whether the calls of `main` read and write `most` bytes at most, as the graph view counts."""
    assert answer.mod is not None
    have = graph_of(answer.mod).bytes_moved()
    if have is None:
        return Found(False, "how many bytes it moves is not known: give every tensor a shape of "
                     "numbers")
    if have > most:
        return Found(False, f"its calls move {have:,} bytes; {most:,} suffice. "
                     + _largest(answer.mod))
    return Found(True, f"its calls move {have:,} bytes")


def _largest(mod: IRModule) -> str:
    """Which call moves most."""
    nodes = [n for n in graph_of(mod).nodes if n["group"] is None and n.get("moved")]
    if not nodes:
        return ""
    top = max(nodes, key=lambda n: n["moved"])
    return f"{top['name']} = {top['label']} moves most: {top['moved']:,} bytes"


def difference(mod: IRModule, right: IRModule, cases: int = 2) -> str:
    """How `main` of a program differs from that of another one, in words; "" if it does not."""
    found = differing(mod, right, cases)
    return found.says if found else ""


def differing(mod: IRModule, right: IRModule, cases: int = 2, nasty: bool = True) -> Found | None:
    """The same, with the first operator that differs; None if there is no difference."""
    problem = unfit(mod, right)
    if problem:
        return Found(False, problem)
    machines = [VirtualMachine(build(m, "llvm"), cpu()) for m in (right, mod)]
    params = right["main"].params

    def random(seed: int) -> list[np.ndarray]:
        generator = np.random.default_rng(seed)
        return [_random(generator, p.struct_info) for p in params]

    inputs = [(random(seed), "") for seed in range(cases)] + (nasty_inputs(random) if nasty else [])
    for arrays, what in inputs:
        want, have = (_arrays(vm["main"](*map(array, arrays))) for vm in machines)
        if [a.shape for a in have] != [a.shape for a in want]:
            return Found(False, f"main returns {' and '.join(str(a.shape) for a in have)}; asked "
                         f"for is {' and '.join(str(a.shape) for a in want)}")
        for a, b in zip(have, want):
            at = _differs(a, b)
            if at is not None:
                more, place = bindings.told(mod, right, arrays, _differs)
                return Found(False, f"the result at {at} is {a[at]:.6g}, and should be "
                             f"{b[at]:.6g}{what}{more}", place)
    return None


def _differs(found: np.ndarray, expected: np.ndarray) -> tuple[int, ...] | None:
    """The first element that differs by more than rounding."""
    finite = expected[np.isfinite(expected)]  # an infinity is near to nothing but itself
    near = 1e-4 * max(1.0, float(np.abs(finite).max(initial=0)))
    with np.errstate(invalid="ignore"):
        bad = ~np.isclose(found, expected, rtol=1e-3, atol=near, equal_nan=True)
    if not bad.any():
        return None
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))


def unfit(mod: IRModule, right: IRModule) -> str:
    """Why the `main` of a program cannot be compared with that of another one, or ""."""
    functions = {gv.name_hint: f for gv, f in mod.functions.items()}
    if not isinstance(functions.get("main"), Function):
        return "there is no R.function main"
    kernels = [name for name, f in functions.items() if not isinstance(f, Function)]
    if kernels:
        return f"{kernels[0]} is a kernel; a graph of operators is asked for"
    have, want = ([p.struct_info for p in m["main"].params] for m in (mod, right))
    asked = ", ".join(f"{p.name_hint}: {_told(p.struct_info)}" for p in right["main"].params)
    if len(have) != len(want):
        return f"main has {len(have)} parameters, {len(want)} are asked for: {asked}"
    for number, (a, b) in enumerate(zip(have, want)):
        if _told(a) != _told(b):
            return f"parameter {number + 1} of main is {_told(a)}; asked for: {asked}"
    return ""


def _told(info: Any) -> str:
    shape = ", ".join(map(str, info.shape.values)) if getattr(info, "shape", None) else "?"
    return f"({shape}) {getattr(info, 'dtype', '')}".strip()


def _random(generator: Any, info: TensorStructInfo) -> np.ndarray:
    dims: Any = info.shape
    shape = [as_int(d) or 1 for d in dims.values]
    if int(np.prod(shape)) > MOST_ELEMENTS:
        raise ValueError(f"a parameter of {shape} is larger than what is run")
    kind = dt.numpy_dtype(info.dtype)
    if kind.kind == "f":
        return generator.uniform(-2, 2, shape).astype(kind)
    return generator.integers(0, 8, shape).astype(kind)


def _arrays(value: Any) -> list[np.ndarray]:
    """The tensors of a result."""
    if isinstance(value, (list, tuple)) or not hasattr(value, "numpy"):
        return [a for item in value for a in _arrays(item)]
    return [value.numpy()]


__all__ = ["difference", "moves", "same_graph", "unfit"]
