"""Programs that the lowering tests run, and the check that every stage keeps their meaning."""

import numpy as np
from mlc_lab.backend.interp import interpret
from mlc_lab.ir import dtype as dt
from mlc_lab.lower import stages
from mlc_lab.script import tir as T
from mlc_lab.tir.op import as_int

from tests.fuzz.defined import undefined


def arguments(func, sizes=None, seed=0):
    """Random arrays for the buffers of a function; `sizes` gives symbolic dimensions by name."""
    rng = np.random.default_rng(seed)
    out = []
    for buffer in func.buffers:
        shape = [as_int(d) if as_int(d) is not None else sizes[d.name] for d in buffer.shape]
        kind = dt.numpy_dtype(buffer.dtype)
        if kind.kind == "f":
            out.append(rng.uniform(-2, 2, shape).astype(kind))
        else:
            out.append(rng.integers(0, 50, shape).astype(kind))
    return out


def run(mod, args):
    """The arrays after a run on copies of `args`."""
    copies = [a.copy() for a in args]
    interpret(mod, *copies, func_name="main")
    return copies


def check_stages(program, sizes=None, target=None, rtol=0.0):
    """Every stage leaves the same numbers as the program itself, and uses nothing before it is
    defined; returns the stages by name."""
    found = stages(program, target)
    args = arguments(found[0][1]["main"], sizes)
    want = run(found[0][1], args)
    before = found[0][1]
    for name, mod in found[1:]:
        if mod is before:
            continue
        before = mod
        try:
            assert not undefined(mod), f"undefined: {undefined(mod)}"
            got = run(mod, args)
            for a, b in zip(got, want):
                np.testing.assert_allclose(a, b, rtol=rtol, equal_nan=False)
        except Exception as error:
            raise AssertionError(f"stage {name}: {error}\n{mod.script()}") from error
    return dict(found)


@T.prim_func
def matmul(A: T.Buffer((13, 17), "float32"), B: T.Buffer((17, 22), "float32"),
           C: T.Buffer((13, 22), "float32")):
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    for i, j, k in T.grid(13, 22, 17):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def mm_relu(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"),
            D: T.Buffer((16, 16), "float32")):
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    C = T.alloc_buffer((16, 16), "float32")
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(16, 16):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))


@T.prim_func
def chain(A: T.Buffer((40,), "float32"), D: T.Buffer((40,), "float32")):
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    B = T.alloc_buffer((40,), "float32")
    C = T.alloc_buffer((40,), "float32")
    for i in range(40):
        with T.block("B"):
            vi = T.axis.spatial(40, i)
            B[vi] = A[vi] * 2.0
    for i in range(40):
        with T.block("C"):
            vi = T.axis.spatial(40, i)
            C[vi] = B[vi] + 1.0
    for i in range(40):
        with T.block("D"):
            vi = T.axis.spatial(40, i)
            D[vi] = C[vi] * C[vi]


@T.prim_func
def conv_padded(A: T.Buffer((2, 8, 9), "float32"), W: T.Buffer((3, 2, 3, 3), "float32"),
                C: T.Buffer((3, 8, 9), "float32")):
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    P = T.alloc_buffer((2, 10, 11), "float32")
    for c, h, w in T.grid(2, 10, 11):
        with T.block("pad"):
            vc, vh, vw = T.axis.remap("SSS", [c, h, w])
            P[vc, vh, vw] = T.if_then_else(
                1 <= vh and vh < 9 and 1 <= vw and vw < 10, A[vc, vh - 1, vw - 1], T.float32(0))
    for o, h, w, c, y, x in T.grid(3, 8, 9, 2, 3, 3):
        with T.block("conv"):
            vo, vh, vw, vc, vy, vx = T.axis.remap("SSSRRR", [o, h, w, c, y, x])
            with T.init():
                C[vo, vh, vw] = T.float32(0)
            C[vo, vh, vw] = C[vo, vh, vw] + P[vc, vh + vy, vw + vx] * W[vo, vc, vy, vx]


@T.prim_func
def softmax(A: T.Buffer((6, 10), "float32"), B: T.Buffer((6, 10), "float32")):
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    top = T.alloc_buffer((6,), "float32")
    total = T.alloc_buffer((6,), "float32")
    expo = T.alloc_buffer((6, 10), "float32")
    for i, k in T.grid(6, 10):
        with T.block("max"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                top[vi] = T.min_value("float32")
            top[vi] = T.max(top[vi], A[vi, vk])
    for i, k in T.grid(6, 10):
        with T.block("exp"):
            vi, vk = T.axis.remap("SS", [i, k])
            expo[vi, vk] = T.exp(A[vi, vk] - top[vi])
    for i, k in T.grid(6, 10):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + expo[vi, vk]
    for i, k in T.grid(6, 10):
        with T.block("norm"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = expo[vi, vk] / total[vi]


@T.prim_func
def symbolic(a: T.handle, b: T.handle):
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    n = T.int64()
    A = T.match_buffer(a, (n, 12), "float32")
    B = T.match_buffer(b, (n, 12), "float32")
    for i, j in T.grid(n, 12):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            vj = T.axis.spatial(12, j)
            B[vi, vj] = A[vi, vj] * 3.0
