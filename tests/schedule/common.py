"""What every schedule test checks, and the programs they start from."""

from __future__ import annotations

import numpy as np
import pytest

from mlc_lab.backend.interp import interpret
from mlc_lab.build import build
from mlc_lab.ir.dtype import is_float, numpy_dtype
from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.schedule import Schedule, ScheduleError, Trace
from mlc_lab.script import from_source, tir as T
from mlc_lab.tir.expr import IntImm


def random_arguments(func, seed=0):
    """Random arrays for the buffers of a function with constant shapes."""
    rng = np.random.default_rng(seed)
    out = []
    for buffer in func.buffers:
        shape = [d.value if isinstance(d, IntImm) else int(d) for d in buffer.shape]
        if is_float(buffer.dtype):
            out.append(rng.uniform(-1, 1, shape).astype(numpy_dtype(buffer.dtype)))
        else:
            out.append(rng.integers(0, 5, shape).astype(numpy_dtype(buffer.dtype)))
    return out


def run(mod, func_name="main", seed=0):
    """All arguments of a function after the interpreter ran it on random inputs."""
    func = mod[func_name]
    arguments = random_arguments(func, seed)
    interpret(func, *arguments)
    return arguments


def check(sch, original, func_name="main", rtol=1e-5):
    """A schedule kept its program's meaning, prints and parses, and its trace replays.

    `original` is the module it started from.
    """
    sch.state.verify()
    for seed in (0, 1):
        want, got = run(original, func_name, seed), run(sch.mod, func_name, seed)
        for a, b in zip(want, got):
            np.testing.assert_allclose(np.asarray(a, "float64"), np.asarray(b, "float64"),
                                       rtol=rtol, atol=1e-5)
    assert_structural_equal(from_source(sch.mod.script()), sch.mod)
    for trace in (Trace.from_python(str(sch.trace)), Trace.from_json(sch.trace.as_json())):
        again = Schedule(original)
        trace.apply_to_schedule(again)
        assert_structural_equal(again.mod, sch.mod)
        assert str(again.trace) == str(sch.trace)
    return sch


def kept(func, act):
    """What a primitive does to a program is accepted, and keeps the meaning. The schedule."""
    sch = Schedule(func)
    before = sch.mod
    act(sch)
    return check(sch, before)


def check_compiled(sch, original, *arguments, rtol=1e-5):
    """`check` where there are no arguments given, and machine code gives the same numbers.

    With `arguments` (of functions with symbolic sizes) only the numbers are compared.
    """
    if not arguments:
        check(sch, original, rtol=rtol)
        arguments = random_arguments(original["main"])
    want = [np.array(a) for a in arguments]
    interpret(original["main"], *want)
    for execute in (lambda *a: interpret(sch.mod["main"], *a), build(sch.mod, "llvm")["main"]):
        got = [np.array(a) for a in arguments]
        execute(*got)
        for a, b in zip(want, got):
            np.testing.assert_allclose(np.asarray(a, "float64"), np.asarray(b, "float64"),
                                       rtol=rtol, atol=1e-5)
    return sch


def refused(func, act, rule=None):
    """What a primitive would do is refused (by this rule), and changes nothing. The error."""
    sch = Schedule(func)
    with pytest.raises(ScheduleError) as caught:
        act(sch)
    assert rule is None or caught.value.rule == rule
    assert sch.steps[-1].after is sch.mod
    sch.state.verify()
    assert str(caught.value)
    return caught.value


def blocks_and_loops(sch, *names):
    """(block, loops...) of each named block."""
    out = []
    for name in names:
        block = sch.get_block(name)
        out.append((block, *sch.get_loops(block)))
    return out if len(out) > 1 else out[0]


@T.prim_func
def matmul(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"),
           C: T.Buffer((16, 16), "float32")):
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def mm_relu(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"),
            C: T.Buffer((16, 16), "float32")):
    Y = T.alloc_buffer((16, 16))
    for i, j, k in T.grid(16, 16, 16):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(Y[vi, vj], T.float32(0))


@T.prim_func
def chain(A: T.Buffer((16, 12), "float32"), D: T.Buffer((16, 12), "float32")):
    B = T.alloc_buffer((16, 12))
    C = T.alloc_buffer((16, 12))
    for i, j in T.grid(16, 12):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 12):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
    for i, j in T.grid(16, 12):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] * C[vi, vj]


@T.prim_func
def row_sum(A: T.Buffer((8, 24), "float32"), B: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 24):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def stencil(A: T.Buffer((18,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((18,))
    for i in range(18):
        with T.block("B"):
            vi = T.axis.spatial(18, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi] + B[vi + 1] + B[vi + 2]
