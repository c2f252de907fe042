"""Whole models, functions of Relax: are they what is asked for, and do they compute the same?

A model is built and run as `relax.build` does it. What it calls by name is only what the exercise
has put at its disposal (`library`), which is registered for as long as the model runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import runtime
from ...ir import dtype as dt
from ...relax import VirtualMachine, building, transform
from ...relax import expr as rx
from ...relax.struct_info import TensorStructInfo
from ...tir.op import as_int

if TYPE_CHECKING:
    from ...ir.module import IRModule


def model_of(mod: IRModule) -> rx.Function | None:
    """The function `main` of a module, where it is one of Relax."""
    found = {gv.name_hint: f for gv, f in mod.functions.items()}.get("main")
    return found if isinstance(found, rx.Function) else None


def signature_differs(have: IRModule, want: IRModule) -> str:
    """How the parameters and the result of `main` differ from what is asked for, or nothing."""
    ours, theirs = model_of(have), model_of(want)
    assert theirs is not None
    if ours is None:
        return "there is no function main of Relax: write it under @R.function"
    asked = ", ".join(f"{p.name}: {p.struct_info}" for p in theirs.params)
    if len(ours.params) != len(theirs.params):
        return (f"main has {len(ours.params)} parameters, {len(theirs.params)} are asked for: "
                f"{asked}")
    for number, (a, b) in enumerate(zip(ours.params, theirs.params, strict=True)):
        if str(a.struct_info) != str(b.struct_info):
            return f"parameter {number + 1} of main is {a.struct_info}; asked for: {asked}"
    return ""


def lowered(mod: IRModule) -> IRModule:
    """A module whose operators have become kernels."""
    return transform.LegalizeOps()(mod)


def random_inputs(mod: IRModule, seed: int) -> list[np.ndarray]:
    """Random arrays for the parameters of `main`: floats in [-1, 1), integers in [0, 8). Raises
    ValueError where a parameter is no tensor of a known shape."""
    generator, arrays = np.random.default_rng(seed), []
    func = model_of(mod)
    assert func is not None
    for param in func.params:
        info = param.struct_info
        shape = info.shape.values if isinstance(info, TensorStructInfo) and (
            isinstance(info.shape, rx.ShapeExpr)) else [None]
        sizes = [n for n in (as_int(d) for d in shape if d is not None) if n is not None]
        if not isinstance(info, TensorStructInfo) or len(sizes) < len(shape):
            raise ValueError(f"the shape of the parameter {param.name} is not known")
        kind = dt.numpy_dtype(info.dtype)
        arrays.append(generator.uniform(-1, 1, sizes).astype(kind) if dt.is_float(info.dtype)
                      else generator.integers(0, 8, sizes).astype(kind))
    return arrays


@contextlib.contextmanager
def registered(library: Mapping[str, Any]) -> Iterator[None]:
    """The functions that a model may call by name, as long as it runs; what had their names before
    has them again."""
    before = {name: runtime.get_global_func(name, allow_missing=True) for name in library}
    for name, function in library.items():
        runtime.register_func(name, function, override=True)
    try:
        yield
    finally:
        for name, function in before.items():
            runtime.remove_global_func(name)
            if function is not None:
                runtime.register_func(name, function)


class Model:
    """A built model, to be called with arrays."""

    def __init__(self, mod: IRModule) -> None:
        self.machine = VirtualMachine(building.build(mod, "llvm"), runtime.cpu())

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results, a tuple's one after the other."""
        with np.errstate(all="ignore"):  # what it calls may be NumPy, and be given infinities
            return _flat(self.machine["main"](*[runtime.array(a) for a in arrays]))


def _flat(result: Any) -> list[np.ndarray]:
    if hasattr(result, "numpy"):
        return [np.array(result.numpy())]
    return [array for part in result for array in _flat(part)]


__all__ = ["Model", "lowered", "model_of", "random_inputs", "registered", "signature_differs"]
