"""Arithmetic means the same everywhere: interpreter, scalar and vector code, folded, simplified.

A case is a few random expressions over arrays of special values. The definition
(`backend/meaning.py`) says what each element is. If it divides by zero, the others may raise too,
or give anything; else all give the same bits (but for the payload of a NaN).
"""

from __future__ import annotations

import warnings

import numpy as np

from mlc_lab import tir
from mlc_lab.arith import Analyzer
from mlc_lab.backend.interp import InterpError, interpret
from mlc_lab.backend.meaning import evaluate
from mlc_lab.build import build
from mlc_lab.ir import dtype as dt
from mlc_lab.ir.module import IRModule
from mlc_lab.lower.pipeline import lower
from mlc_lab.runtime import array, empty

from .harness import Draw, counts, note
from .values import DTYPES, Expressions, as_array, folded, random_value

LANES = 8


def program(inputs: list[tir.Buffer], values: list[tir.PrimExpr], kind: int, var: tir.Var
            ) -> tir.PrimFunc:
    """Each value stored to an output of its own, for each i; outputs come after the inputs."""
    outs = [tir.decl_buffer((LANES,), v.dtype, f"O{n}") for n, v in enumerate(values)]
    loops = []
    for out, value in zip(outs, values):
        i = tir.Var("i", "int32")
        body = tir.BufferStore(out, tir.substitute(value, {var: i}), [i])
        loops.append(tir.For(i, 0, LANES, kind, body))
    return tir.PrimFunc([*inputs, *outs], tir.SeqStmt(tuple(loops)) if len(loops) > 1 else loops[0],
                        attrs={"global_symbol": "main", "tir.noalias": True})


def tensor(values: np.ndarray, dtype: str):
    return empty(values.shape, dtype).copyfrom(values) if dtype == "bfloat16" else array(values)


def outputs(func: tir.PrimFunc, count: int) -> list[str]:
    return [func.buffer_map[p].dtype for p in func.params[-count:]]


def by_machine(func: tir.PrimFunc, arrays: list, dtypes: list[str]) -> list[np.ndarray]:
    outs = [empty((LANES,), d) for d in dtypes]
    build(IRModule({"main": func}))["main"](*arrays, *outs)
    return [o.numpy() for o in outs]


def by_interpreter(func, arrays: list, dtypes: list[str], run=interpret) -> list[np.ndarray]:
    outs = [np.zeros(LANES, dt.numpy_dtype(d)) for d in dtypes]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(func, *arrays, *outs)
    return outs


def check(what: str, got: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    for k, (a, b) in enumerate(zip(got, wanted)):
        a, b = (x.view(np.uint16) if x.dtype.name == "bfloat16" else x for x in (a, b))
        if a.dtype == np.uint16 and b.dtype == np.uint16:
            nan = ((a & 0x7FFF) > 0x7F80) & ((b & 0x7FFF) > 0x7F80)
            same = (a == b) | nan
        else:
            same = (a == b) & (np.signbit(a) == np.signbit(b) if a.dtype.kind == "f" else True)
            if a.dtype.kind == "f":
                same = same | (np.isnan(a) & np.isnan(b))
        assert same.all(), f"{what}: output {k} is {a}, it should be {b}"


def case(draw: Draw) -> None:
    """A few expressions, run in every way there is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _case(draw)


def _case(draw: Draw) -> None:
    dtypes = [draw.choice(DTYPES) for _ in range(draw.integer(1, 3))]
    inputs = [tir.decl_buffer((LANES,), d, "ABC"[n]) for n, d in enumerate(dtypes)]
    data = [as_array([random_value(draw, d) for _ in range(LANES)], d) for d in dtypes]
    i = tir.Var("i", "int32")
    leaves: dict[str, list] = {}
    for buffer in inputs:
        leaves.setdefault(buffer.dtype, []).append(tir.BufferLoad(buffer, [i]))
    maker = Expressions(draw, leaves)
    values = [maker.make(draw.choice(DTYPES), draw.integer(1, 4))
              for _ in range(draw.integer(1, 4))]
    plain = program(inputs, values, tir.ForKind.SERIAL, i)
    note(plain.script())
    for buffer, x in zip(inputs, data):
        note(f"{buffer.name} = {x.tolist() if x.dtype.name != 'bfloat16' else x}")
    wanted_types = outputs(plain, len(values))
    tensors = [tensor(x, d) for x, d in zip(data, dtypes)]
    forms = _forms(values, inputs, i)
    try:
        wanted = by_interpreter(plain, data, wanted_types, evaluate)
    except InterpError as error:
        assert isinstance(error, ZeroDivisionError), error
        counts["division by zero"] += 1
        for func in forms.values():  # each may raise; none may end the process
            for run, args in ((by_machine, tensors), (by_interpreter, data)):
                try:
                    run(func, args, wanted_types)
                except ZeroDivisionError:
                    counts["division by zero, raised"] += 1
        return
    counts["expressions"] += len(values)
    for name, func in forms.items():
        check(f"interpreter, {name}", by_interpreter(func, data, wanted_types), wanted)
        if name == "vectors":
            check("the definition", by_interpreter(func, data, wanted_types, evaluate), wanted)
        check(f"machine, {name}", by_machine(func, tensors, wanted_types), wanted)
        lowered = lower(IRModule({"main": func}))
        check(f"interpreter, {name}, lowered", by_interpreter(lowered, data, wanted_types), wanted)
    _constants(values, inputs, data, wanted, draw.integer(0, LANES - 1))


def _forms(values: list, inputs: list, i: tir.Var) -> dict[str, tir.PrimFunc]:
    """The same program in other words."""
    analyzer = Analyzer()
    analyzer.bind(i, tir.Range(0, LANES))
    return {
        "scalar": program(inputs, values, tir.ForKind.SERIAL, i),
        "vectors": program(inputs, values, tir.ForKind.VECTORIZED, i),
        "unrolled": program(inputs, values, tir.ForKind.UNROLLED, i),
        "built with folding": program(inputs, [_built(v) for v in values], tir.ForKind.SERIAL, i),
        "simplified": program(inputs, [analyzer.simplify(v) for v in values],
                              tir.ForKind.VECTORIZED, i),
    }


def _built(value: tir.PrimExpr, table: dict | None = None) -> tir.PrimExpr:
    try:
        return folded(value, table or {})
    except ZeroDivisionError:  # a constant divided by the constant zero is refused
        return value


def _constants(values: list, inputs: list, data: list, wanted: list, lane: int) -> None:
    """One lane with its numbers written into the expression: what is folded is right."""
    table = {}
    for buffer, x in zip(inputs, data):
        number = tir.numbers.bfloat16_values(x[lane].view(np.uint16)) if (
            buffer.dtype == "bfloat16") else x[lane]
        table[buffer] = tir.FloatImm(buffer.dtype, float(number)) if dt.is_float(
            buffer.dtype) else tir.IntImm(buffer.dtype, int(number))
    i = tir.Var("i", "int32")
    whole = [_built(v, table) for v in values]
    if any(type(item) is tir.BufferLoad for v in whole for item in tir.functor.pre_order(v)):
        return  # a division of constants by zero on a side that is not taken
    simple = [Analyzer().simplify(v) for v in whole]
    dtypes = [v.dtype for v in values]
    for name, some in (("constants", whole), ("constants, simplified", simple)):
        func = program([], some, tir.ForKind.SERIAL, i)
        one = [np.repeat(w[lane], LANES) for w in wanted]
        check(f"interpreter, {name}", by_interpreter(func, [], dtypes), one)
        check(f"machine, {name}", by_machine(func, [], dtypes), one)
