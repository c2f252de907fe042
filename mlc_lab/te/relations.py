"""What became of the loops of a stage: how they were made of each other, and what each is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..tir.expr import IterVar, PrimExpr, StringImm
from ..tir.op import convert


class Split(NamedTuple):
    """`parent` became `outer` and `inner`; `factor` or `nparts` says how."""

    parent: IterVar
    outer: IterVar
    inner: IterVar
    factor: PrimExpr | None
    nparts: PrimExpr | None


class Fuse(NamedTuple):
    """`outer` and `inner` became `fused`."""

    outer: IterVar
    inner: IterVar
    fused: IterVar


class Singleton(NamedTuple):
    """A loop of one iteration around everything."""

    iter: IterVar


class IterVarAttr:
    """What is said of one loop of a stage."""

    def __init__(self, iter_type: int) -> None:
        self.iter_type = iter_type
        self.bind_thread: IterVar | None = None
        self.tensor_intrin: Any = None
        self.pragma_keys: list[StringImm] = []
        self.pragma_values: list[PrimExpr] = []

    def __repr__(self) -> str:
        return f"IterVarAttr(iter_type={self.iter_type})"


#: what a method of a stage makes of a loop
_KIND = {"parallel": IterVar.Parallelized, "vectorize": IterVar.Vectorized,
         "unroll": IterVar.Unrolled, "tensorize": IterVar.Tensorized}


def relations(steps: Iterable[tuple[str, tuple, tuple]]) -> list[Split | Fuse | Singleton]:
    """How the loops of a stage were made of each other, from the steps it recorded."""
    out: list[Split | Fuse | Singleton] = []
    for method, args, results in steps:
        if method == "split":
            factor, nparts = (None if e is None else convert(e) for e in args[1:3])
            outer, inner = results
            out.append(Split(args[0], outer, inner, factor, nparts))
        elif method == "fuse" and not args:
            out.append(Singleton(*results))
        elif method == "fuse":  # one after another, as TVM says it
            out += [Fuse(args[0], inner, results[0]) for inner in args[1:]]
    return out


def iter_var_attrs(steps: Iterable[tuple[str, tuple, tuple]],
                   intrinsics: Mapping[IterVar, Any],
                   threads: Mapping[IterVar, IterVar]) -> dict[IterVar, IterVarAttr]:
    """What the steps of a stage say of each loop that they speak of."""
    out: dict[IterVar, IterVarAttr] = {}

    def of(axis: IterVar) -> IterVarAttr:
        return out.setdefault(axis, IterVarAttr(axis.iter_type))

    for method, args, _ in steps:
        if method in _KIND:
            of(args[0]).iter_type = _KIND[method]
        elif method == "pragma":
            of(args[0]).pragma_keys.append(StringImm(args[1]))
            of(args[0]).pragma_values.append(convert(args[2]))
    for axis, intrin in intrinsics.items():
        of(axis).tensor_intrin = intrin
    for axis, thread in threads.items():
        of(axis).bind_thread = thread
    return out


__all__ = ["Fuse", "IterVarAttr", "Singleton", "Split", "iter_var_attrs", "relations"]
