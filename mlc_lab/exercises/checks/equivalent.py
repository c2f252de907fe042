"""equivalent: the answer computes what the exercise's program, or its reference, computes.

Small programs are interpreted, which finds reads of what was never written and of what is outside
of a buffer; large ones are compiled. Inputs are random, then nasty: NaN, infinities, -0.0, the
extremes of integers. Where they differ, the first wrong element is told, and in which iteration it
was written last, by which statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend.interp import AccessLog, InterpError, interpret
from ...build import build
from ...ir import dtype as dt
from ...ir.module import IRModule
from ...observe.inner_loop import statements_run
from ...observe.measure import TOLERANCE, only_function, random_arrays
from ...script.spans import script_with_marks
from ...tir import stmt as s
from ...tir.function import PrimFunc
from ...tir.functor import all_statements
from ...tir.op import as_int
from ..answers import read
from ..result import Found

if TYPE_CHECKING:
    from ..answers import Answer
    from ..exercise import Variant

#: statements of a program that is interpreted, and of one that is run at all
INTERPRETED, RUN = 60_000, 2_000_000_000
#: bytes that a program may allocate
MEMORY = 1 << 30


def equivalent(answer: Answer, variant: Variant, *, nasty: bool = True, cases: int = 3,
               like: IRModule | None = None) -> Found:
    """Whether the answer computes the same. `nasty`: also on NaN, infinities, extremes; `cases`:
    how many random inputs; `like`: what it is compared with, by default `program_of`."""
    right = program_of(variant) if like is None else like
    have, want = only_function(_mod(answer))[1], only_function(right)[1]
    problem = _signature(have, want) or too_large(_mod(answer))
    if problem:
        return Found(False, problem)
    small = max(statements_run(_mod(answer)), statements_run(right)) <= INTERPRETED
    run = _interpreted if small else _compiled
    for seed in range(cases + (2 if nasty else 0)):
        arrays = _nasty(want, seed) if seed >= cases else random_arrays(want, seed=seed)
        expected = run(right, arrays)
        try:
            found = run(_mod(answer), arrays)
        except InterpError as error:
            return Found(False, f"the program stops: {error}")
        wrong = first_difference(found, expected)
        if wrong is not None:
            return _told(answer, arrays, found, expected, wrong, small,
                         "" if seed < cases else _what(arrays))
    return Found(True, f"the same results on {cases} random inputs"
                 + (", and on NaN, infinities and extremes" if nasty else ""))


def program_of(variant: Variant) -> IRModule:
    """What an answer has to compute: the exercise's program, or its reference, if that is one."""
    if variant.exercise.kind == "program":
        found = read(variant, variant.reference).mod
        assert found is not None
        return found
    assert variant.program is not None
    return variant.program


def _mod(answer: Answer) -> IRModule:
    assert answer.mod is not None
    return answer.mod


def _signature(have: PrimFunc, want: PrimFunc) -> str:
    """How the parameters differ from what is asked for, or nothing."""
    ours, theirs = ([f.buffer_map.get(p) for p in f.params] for f in (have, want))
    asked = ", ".join("a scalar" if b is None else f"{b.name}: {tuple(b.shape)} {b.dtype}"
                      for b in theirs)
    if len(ours) != len(theirs):
        return (f"the function has {len(ours)} parameters, {len(theirs)} are asked for: {asked}")
    for number, (a, b) in enumerate(zip(ours, theirs)):
        if (a is None) != (b is None) or a is not None and b is not None and (
                a.dtype != b.dtype or [str(d) for d in a.shape] != [str(d) for d in b.shape]):
            given = "a scalar" if a is None else f"{tuple(a.shape)} {a.dtype}"
            return f"parameter {number + 1} is {given}; asked for: {asked}"
    return ""


def too_large(mod: IRModule) -> str:
    """Why a program is not run, or nothing: it would take years, or all of the memory."""
    run = statements_run(mod)
    if run > RUN:
        return f"it would run {run:,} statements; an answer runs {RUN:,} at most"
    asked = 0
    for func in mod.functions.values():
        if not isinstance(func, PrimFunc):
            continue
        buffers = [b for st in all_statements(func.body) if type(st) is s.Block
                   for b in st.alloc_buffers] + list(func.buffer_map.values())
        for buffer in buffers:
            size = dt.bytes_of(buffer.dtype)
            for dim in buffer.shape:
                size *= as_int(dim) or 1
            asked += size
    return "" if asked <= MEMORY else (
        f"it takes {asked:,} bytes of memory; an answer has {MEMORY:,}")


def _interpreted(mod: IRModule, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    out = [a.copy() for a in arrays]
    interpret(mod, *out, func_name=only_function(mod)[0])
    return out


def _compiled(mod: IRModule, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    out = [a.copy() for a in arrays]
    with np.errstate(all="ignore"):
        build(mod, "llvm")[only_function(mod)[0]](*out)
    return out


def _nasty(func: PrimFunc, seed: int) -> list[np.ndarray]:
    """Random inputs with a few values in them that need care."""
    generator = np.random.default_rng(seed)
    arrays = random_arrays(func, seed=seed)
    for array in arrays:
        if array.dtype.kind == "f":
            values: list[Any] = [np.nan, np.inf, -np.inf, -0.0, 0.0]
        elif array.dtype.kind in "iu":
            info = np.iinfo(array.dtype)
            values = [info.max, info.min, 0]
        else:
            continue
        for value in values[seed % 2::2]:
            array.flat[generator.integers(0, max(array.size, 1))] = value
    return arrays


def _what(arrays: Sequence[np.ndarray]) -> str:
    kinds = {a.dtype.kind for a in arrays}
    floats = ["NaN, infinities or -0.0"] if "f" in kinds else []
    ints = ["extremes of integers"] if kinds & {"i", "u"} else []
    return f" (in the input are {' and '.join(floats + ints)})"


def first_difference(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]
                     ) -> tuple[int, tuple[int, ...]] | None:
    """Which element of which parameter is wrong first, or None."""
    for number, (a, b) in enumerate(zip(found, expected, strict=True)):
        if not b.size:
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        finite = np.abs(y[np.isfinite(y)])
        near = TOLERANCE.get(str(b.dtype), 0.0) * max(float(finite.max()) if finite.size else 0.0,
                                                      1e-30)
        with np.errstate(invalid="ignore"):
            bad = ~((x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= near))
        if bad.any():
            at = np.unravel_index(int(np.argmax(bad)), bad.shape)
            return number, tuple(int(i) for i in at)
    return None


def _told(answer: Answer, arrays: Sequence[np.ndarray], found: Sequence[np.ndarray],
          expected: Sequence[np.ndarray], wrong: tuple[int, tuple[int, ...]], small: bool,
          inputs: str) -> Found:
    """What is wrong, where, and who wrote it."""
    name, func = only_function(_mod(answer))
    number, at = wrong
    buffer = func.buffer_map[func.params[number]]
    element = f"{buffer.name}[{', '.join(map(str, at))}]"
    have, want = (_number(a[number][at]) for a in (found, expected))
    place: dict[str, Any] = {"element": element, "expected": want, "found": have}
    says = f"{element} is {have}, and should be {want}{inputs}"
    if small:
        writer = _last_writer(_mod(answer), name, arrays, buffer, at)
        if writer is None:
            says += "; no statement has written it"
        else:
            node, iteration = writer
            place["iteration"] = iteration
            place["text"] = script_with_marks(_mod(answer), [node], {}, 2)
            values = ", ".join(f"{k} = {v}" for k, v in iteration.items())
            says += f"; it was written last at {values or 'once'}"
    return Found(False, says, place)


def _number(value: Any) -> str:
    return str(value.item()) if value.dtype.kind != "f" else f"{float(value):.7g}"


def _last_writer(mod: IRModule, name: str, arrays: Sequence[np.ndarray], buffer: Any,
                 at: tuple[int, ...]) -> tuple[Any, dict[str, int]] | None:
    """The statement that wrote an element last, and the loop variables then."""
    index = int(np.ravel_multi_index(at, arrays[0].shape if not at else tuple(
        as_int(d) or 1 for d in buffer.shape))) if at else 0
    last: list[Any] = [None]

    class Log(AccessLog):
        def __call__(self, access: Any) -> None:
            if access.write and access.index == index and access.buffer.data is buffer.data:
                last[0] = access

    log = Log()
    interpret(mod, *[a.copy() for a in arrays], record=log, func_name=name)
    if last[0] is None:
        return None
    loops = [v.name for v in log.loops[last[0].site]]
    return log.nodes[last[0].site], dict(zip(loops, last[0].iteration))


__all__ = ["equivalent", "first_difference", "program_of", "too_large"]
