"""equivalent: the answer computes what the exercise's program, or its reference, computes.

Programs are compiled and run; small ones are interpreted before, which finds what is outside of a
buffer, and a schedule of a large one is replayed where the exercise has a `small` program, and
interpreted there. Inputs are random, then nasty: NaN, infinities, -0.0, the
extremes of integers, and numbers of one sign (a maximum that begins with 0). Where they differ, the
first wrong element is told, in which iteration it was written last, by which statement, and what
went wrong before (`earlier.py`). Sizes that are symbols are given numbers: small ones, one, and
some that no tile divides. A model (a Relax `main`) is built and run as a whole, see `models.py`;
there one parameter at a time is nasty, see `nasty_inputs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend.device import simulated
from ...backend.interp import AccessLog, InterpError, OutOfBounds, interpret
from ...build import build
from ...ir.module import IRModule
from ...lower import lower
from ...observe.access import accesses
from ...observe.inner_loop import statements_run
from ...observe.instrument import Element
from ...observe.measure import TOLERANCE, only_function, random_arrays
from ...observe.outside import why_not
from ...reading import MISTAKES, MLCError
from ...schedule import Schedule
from ...script.spans import script_with_marks
from ...tir import stmt as s
from ...tir.function import PrimFunc
from ...tir.expr import Var
from ...tir.functor import all_statements, substitute
from ..answers import Answer, read
from ..result import Found
from . import bindings
from .earlier import earlier
from .models import Model, lowered, model_of, random_inputs, registered, signature_differs
from .work import STEPS, too_large, work

if TYPE_CHECKING:
    from ..exercise import Variant

#: changes arrays in place, and says what they are then
Given = Callable[[Sequence[np.ndarray]], str]
#: statements of a program that is interpreted
INTERPRETED = 60_000
#: what is said of a result that machine code alone has
COMPILED = " (compiled; interpreted it is right)"
#: and of one whose accesses are gone through for the last write of an element
TRACED = 50_000_000


def equivalent(answer: Answer, variant: Variant, *, nasty: bool = True, cases: int = 3,
               of: IRModule | None = None, given: Given | None = None) -> Found:
    """Whether the answer computes the same. `nasty`: also on NaN, infinities, extremes, and on
    numbers of one sign; `cases`: how many random inputs; `of`: another program than the exercise's
    to compare with; `given`: changes random arrays of a tensor program in place, and says in words
    what is special about them."""
    right = program_of(variant) if of is None else of
    if model_of(right) is not None:
        return _models(answer, variant, right, cases, nasty)
    have, want = only_function(_mod(answer))[1], only_function(right)[1]
    problem = _signature(have, want)
    if problem:
        return Found(False, problem)
    runs = cases + (4 if nasty else 0)
    for seed in range(runs):
        sizes = _sizes(want, seed)
        wrong = _wrong(answer, right, sizes, seed, cases, runs, given)
        if wrong is not None:
            return _smallest(answer, right, sizes, seed, cases, given) or wrong
    wrong = _smaller(answer, variant) if of is None and given is None else None
    return wrong or Found(True, _same_on(cases, nasty))


def _smaller(answer: Answer, variant: Variant) -> Found | None:
    """What is wrong where the schedule of a large program is replayed on the exercise's small one,
    which is interpreted; None where nothing is, or where it does not fit."""
    small = variant.small_program
    if answer.sch is None or small is None or _is_small(variant.program, {}):
        return None
    if any(inst.args.get("disable_predication") or inst.kind.method.startswith("unsafe")
           for inst in answer.sch.trace.insts):
        return None  # it says itself that it is right for this shape alone
    sch = Schedule(small, seed=1)
    try:
        answer.sch.trace.apply_to_schedule(sch)
    except (MLCError, *MISTAKES):
        return None  # its factors are of the large one
    if not (_is_small(sch.mod, {}) and _is_small(small, {})):
        return None
    wrong = _wrong(Answer("schedule", sch.mod), small, {}, 0, 1, 1)
    if wrong is not None:
        wrong.says = f"on a smaller shape: {wrong.says}"
    return wrong


def _smallest(answer: Answer, right: IRModule, sizes: Mapping[str, int], seed: int, cases: int,
              given: Given | None = None) -> Found | None:
    """What is wrong for smaller numbers of the symbols than those that were found, the smallest
    first: a mistake from 3 on is understood at 3. None where only these, or none, are wrong."""
    for most in range(1, max(sizes.values(), default=0)):
        smaller = {name: min(most, size) for name, size in sizes.items()}
        wrong = _wrong(answer, right, smaller, seed, cases, 1, given)
        if wrong is not None:
            return wrong
    return None


def _wrong(answer: Answer, right: IRModule, sizes: dict[str, int], seed: int, cases: int,
           runs: int, given: Given | None = None) -> Found | None:
    """What is wrong on the inputs of a number, of which those from `cases` on are nasty; `runs`:
    how many there are; `given`: what is done to the others."""
    mod = _mod(answer)
    have, want = only_function(mod)[1], only_function(right)[1]
    arrays = random_arrays(want, sizes, seed)
    if seed < cases:
        what = f" ({given(arrays)})" if given is not None else ""
    else:
        what = _make_nasty(arrays, seed) if seed < cases + 2 else (
            _make_signed(arrays, -1 if seed == cases + 2 else 1))
    ours = _named(have, arrays)
    small = _is_small(mod, ours) and _is_small(right, sizes)
    uncounted = not work(mod, ours).counted
    problem = too_large(mod, ours, runs, interpreted=small and uncounted)
    if problem:
        return Found(False, problem)
    ways = (_interpreted, run_compiled) if small and not uncounted else (
        _interpreted if small else run_compiled,)
    for run in ways:
        expected = run(right, arrays)
        try:
            found = run(mod, arrays)
        except InterpError as error:
            return Found(False, f"the program stops{_given(sizes)}: {error}",
                         _where(mod, error, ours))
        wrong = first_difference(found, expected)
        if wrong is not None:
            return _told(answer, right, arrays, found, expected, wrong, run is _interpreted, ours,
                         _given(sizes) + what + (COMPILED if run is not ways[0] else ""))
    return None


def _is_small(mod: IRModule | None, sizes: Mapping[str, int]) -> bool:
    """Whether a program is interpreted."""
    return mod is not None and work(mod, sizes).statements <= INTERPRETED


def _same_on(cases: int, nasty: bool) -> str:
    """On what an answer computes the same."""
    if cases == 1:
        return ("the same results on random inputs, and on NaN, infinities and extremes" if nasty
                else "the same results on random inputs")
    return (f"the same results on {cases} random inputs, and on NaN, infinities and extremes"
            if nasty else f"the same results on {cases} random inputs")


def _models(answer: Answer, variant: Variant, right: IRModule, cases: int, nasty: bool) -> Found:
    """The same of a model."""
    mod = _mod(answer)
    problem = signature_differs(mod, right) or too_large(lowered(mod))
    if problem:
        return Found(False, problem)
    with registered(variant.library):
        ours, theirs = Model(mod), Model(right)
        inputs = [(random_inputs(right, seed), "") for seed in range(cases)]
        if nasty:
            inputs += nasty_inputs(lambda seed: random_inputs(right, seed))
        for arrays, what in inputs:
            expected, found = theirs(arrays), ours(arrays)
            asked, given = (", ".join(f"{a.shape} {a.dtype}" for a in x) for x in (expected, found))
            if asked != given:
                return Found(False, f"main returns {given}; asked for: {asked}")
            wrong = first_difference(found, expected)
            if wrong is not None:
                number, at = wrong
                have, want = (_number(a[number][at]) for a in (found, expected))
                element = f"element {list(at)} of result {number + 1}"
                more, place = bindings.told(mod, right, arrays, _differs)
                return Found(False, f"{element} is {have}, and should be {want}{what}{more}",
                             {"element": element, "expected": want, "found": have, **place})
    return Found(True, _same_on(cases, nasty))


def _differs(found: np.ndarray, expected: np.ndarray) -> tuple[int, ...] | None:
    wrong = first_difference([found], [expected])
    return None if wrong is None else wrong[1]


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
    shapes = [_shapes(buffers) for buffers in (ours, theirs)]
    asked = ", ".join("a scalar" if b is None else f"{b.name}: {tuple(b.shape)} {b.dtype}"
                      for b in theirs)
    if len(ours) != len(theirs):
        return (f"the function has {len(ours)} parameters, {len(theirs)} are asked for: {asked}")
    for number, (a, b) in enumerate(zip(ours, theirs)):
        if (a is None) != (b is None) or a is not None and b is not None and (
                a.dtype != b.dtype or shapes[0][number] != shapes[1][number]):
            given = "a scalar" if a is None else f"{tuple(a.shape)} {a.dtype}"
            return f"parameter {number + 1} is {given}; asked for: {asked}"
    return ""


def _shapes(buffers: Sequence[Any]) -> list[list[str]]:
    """The shapes of parameters, their symbols named in the order in which they come first."""
    names: dict[Var, Any] = {}
    for buffer in buffers:
        for dim in buffer.shape if buffer is not None else ():
            if isinstance(dim, Var):
                names.setdefault(dim, Var(f"n{len(names)}", dim.dtype))
    return [[str(substitute(dim, names)) for dim in b.shape] if b is not None else []
            for b in buffers]


def _sizes(func: PrimFunc, seed: int) -> dict[str, int]:
    """Numbers for the symbols in the shapes of parameters: distinct ones first, then all one."""
    found = dict.fromkeys(dim.name for b in func.buffer_map.values() for dim in b.shape
                          if isinstance(dim, Var))
    values = np.random.default_rng(seed).permutation([2, 3, 5, 7, 8, 12, 13, 16, 17, 19])
    return {name: 1 if seed == 1 else int(value) for name, value in zip(found, values)}


def _named(func: PrimFunc, arrays: Sequence[np.ndarray]) -> dict[str, int]:
    """The numbers that arrays give to the symbols in the shapes of a function's parameters."""
    buffers = [func.buffer_map.get(p) for p in func.params]
    return {dim.name: int(size) for buffer, array in zip(buffers, arrays) if buffer is not None
            for dim, size in zip(buffer.shape, array.shape) if isinstance(dim, Var)}


def _given(sizes: dict[str, int]) -> str:
    return f" (for {', '.join(f'{k} = {v}' for k, v in sizes.items())})" if sizes else ""


def _interpreted(mod: IRModule, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    out = [a.copy() for a in arrays]
    interpret(mod, *out, func_name=only_function(mod)[0], most_steps=STEPS)
    return out


#: functions that were compiled last, with what they were made of
_built: list[tuple[IRModule, Callable[..., Any]]] = []


def _compiled(mod: IRModule) -> Callable[..., Any]:
    """A program as machine code; the last ones are kept."""
    for known, function in _built:
        if known is mod:
            return function
    name, func = only_function(mod)
    if any(type(x) is s.For and x.thread_tag for x in all_statements(func.body)):
        # kernels as machine code for the CPU, on arrays of the host
        function = simulated.build(lower(mod, target="cuda"))[name]
    else:
        function = build(mod, "llvm")[name]
    _built[:] = [(mod, function), *_built[:1]]
    return function


def run_compiled(mod: IRModule, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What a program makes of arrays, as machine code; kernels of a GPU run on the CPU."""
    out = [a.copy() for a in arrays]
    with np.errstate(all="ignore"):
        _compiled(mod)(*out)
    return out


def nasty_inputs(random: Callable[[int], list[np.ndarray]]) -> list[tuple[list[np.ndarray], str]]:
    """Inputs of a model that need care, and what they are in words. `random` makes random ones.

    One parameter at a time has infinities and NaN: in all at once, what a product makes of them is
    NaN nearly everywhere, and hides what else is wrong. Integers stay as they are: most are indices
    of `take` and its like, which a model may not leave. Numbers of one sign are small ones, since a
    model squares and exponentiates what it is given."""
    found: list[tuple[list[np.ndarray], str]] = []
    for number, array in enumerate(random(0)):
        for seed in (0, 1) if array.dtype.kind == "f" else ():
            arrays = random(seed)
            found.append((arrays, _make_nasty(arrays[number:number + 1], seed)))
    for seed, sign in enumerate((-1, 1)):
        arrays = random(seed)
        if any(array.dtype.kind == "f" for array in arrays):
            found.append((arrays, _make_signed(arrays, sign, 1)))
    return found


def _make_signed(arrays: Sequence[np.ndarray], sign: int, scale: int = 100) -> str:
    """Make all floats large and of one sign, and say so."""
    for array in arrays:
        if array.dtype.kind == "f":
            array[...] = sign * scale * (1 + np.abs(array))
    return f" (all numbers of the input are {'negative' if sign < 0 else 'positive'})"


def _make_nasty(arrays: Sequence[np.ndarray], seed: int) -> str:
    """Put a few values that need care into random inputs, and say which."""
    generator = np.random.default_rng(seed)
    for array in arrays:
        if array.dtype.kind == "f":
            values: list[Any] = [np.nan, np.inf, -np.inf, -0.0, 0.0]
        elif array.dtype.kind in "iu":
            info = np.iinfo(array.dtype)
            values = [info.max, info.min, 0]
        else:
            continue
        for value in values[seed % 2::2]:
            if array.size:
                array.flat[generator.integers(0, array.size)] = value
    kinds = {a.dtype.kind for a in arrays}
    floats = ["NaN, infinities or negative zeros"] if "f" in kinds else []
    ints = ["extremes of integers"] if kinds & {"i", "u"} else []
    return f" (in the input are {' and '.join(floats + ints)})"


def first_difference(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]
                     ) -> tuple[int, tuple[int, ...]] | None:
    """Which element of which parameter is wrong first, or None."""
    for number, (a, b) in enumerate(zip(found, expected, strict=True)):
        if not b.size:
            continue
        if b.dtype.kind in "biu":  # exactly: float64 has not all integers of 64 bits
            bad = a != b
            if bad.any():
                return number, _first(bad)
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        finite = np.abs(y[np.isfinite(y)])
        near = TOLERANCE.get(str(b.dtype), 0.0) * max(float(finite.max()) if finite.size else 0.0,
                                                      1e-30)
        with np.errstate(invalid="ignore"):
            bad = ~((x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= near))
        if bad.any():
            return number, _first(bad)
    return None


def _first(bad: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))


def _told(answer: Answer, right: IRModule, arrays: Sequence[np.ndarray],
          found: Sequence[np.ndarray], expected: Sequence[np.ndarray],
          wrong: tuple[int, tuple[int, ...]], small: bool, sizes: dict[str, int], inputs: str
          ) -> Found:
    """What is wrong, where, who wrote it, and what went wrong before."""
    name, func = only_function(_mod(answer))
    number, at = wrong
    buffer = func.buffer_map[func.params[number]]
    element = f"{buffer.name}[{', '.join(map(str, at))}]"
    have, want = (_number(a[number][at]) for a in (found, expected))
    place: dict[str, Any] = {"element": element, "expected": want, "found": have,
                             **({"sizes": sizes} if sizes else {})}
    says = f"{element} is {have}, and should be {want}{inputs}"
    if small:
        writer = _last_writer(_mod(answer), name, arrays, buffer, at, expected[number].shape)
        if writer is None:
            says += "; no statement has written it"
        else:
            node, iteration = writer
            place["iteration"] = iteration
            before = earlier(_mod(answer), right, arrays, _differs)
            place["text"] = script_with_marks(
                _mod(answer), [node, *([before.node] if before else [])], {}, 2)
            values = ", ".join(f"{k} = {v}" for k, v in iteration.items())
            says += (f"; it was written last at {values}" if values else "; it was written once")
            says += f"; {before.says}" if before else ""
    else:
        iteration, text = _last_of(_mod(answer), buffer.name, at, arrays, sizes)
        if iteration:
            place.update(iteration=iteration, text=text)
            values = ", ".join(f"{k} = {v}" for k, v in iteration.items())
            says += f"; it was written last at {values}"
    return Found(False, says, place)


def _where(mod: IRModule, error: InterpError, sizes: dict[str, int]) -> dict[str, Any]:
    """Where a program stopped that reached outside of a buffer: the element, the statement."""
    if not isinstance(error, OutOfBounds) or error.node is None:
        return {}
    return {"element": error.element, "write": type(error.node) is s.BufferStore,
            "text": script_with_marks(mod, [error.node], {}, 2),
            **({"sizes": sizes} if sizes else {})}


def _number(value: Any) -> str:
    return str(value.item()) if value.dtype.kind != "f" else f"{float(value):.7g}"


def _last_of(mod: IRModule, buffer: str, at: tuple[int, ...], arrays: Sequence[np.ndarray],
             sizes: Mapping[str, int]) -> tuple[dict[str, int], str]:
    """Of a program that is too long to be interpreted, the loop variables of the last write of an
    element, and the statement, of the lowered program where there are several. It is an addition
    to what is wrong: where it cannot be found out, or takes long, nothing is said."""
    if statements_run(mod, sizes) > TRACED or why_not(mod):
        return {}, ""
    options: dict[str, Any] = {"limit": 1, "sizes": sizes, "threads": 1,
                               "arrays": [a.copy() for a in arrays]}
    try:
        last = accesses(mod, last_of=Element(buffer, at, True), **options).last
        trace = accesses(mod, first=last, **options) if last >= 0 else None
    except (MLCError, *MISTAKES, RecursionError):
        return {}, ""
    if trace is None or not len(trace):
        return {}, ""
    site = trace.sites[int(trace.site[0])]
    line = trace.lines[int(trace.site[0])]
    lines = trace.text.splitlines()
    told = lines[line].strip() if line is not None and line < len(lines) else ""
    stores = [x for x in all_statements(only_function(mod)[1].body)
              if type(x) is s.BufferStore and x.buffer.name == buffer]
    if len(stores) == 1:  # it is clear which it was, in the student's own words
        told = script_with_marks(mod, stores, {}, 2)
    return dict(zip((v.name for v in site.loops), map(int, trace.values[0]))), told


def _last_writer(mod: IRModule, name: str, arrays: Sequence[np.ndarray], buffer: Any,
                 at: tuple[int, ...], shape: tuple[int, ...]
                 ) -> tuple[Any, dict[str, int]] | None:
    """The statement that wrote an element last, and the loop variables then."""
    index = int(np.ravel_multi_index(at, shape)) if at else 0
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


__all__ = ["equivalent", "first_difference", "nasty_inputs", "program_of", "run_compiled"]
