"""Kernels for the tests of GPU sources and devices: a schedule each, and arrays for it."""

import os

import numpy as np
import pytest
from mlc_lab.ir import dtype as dt
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source
from mlc_lab.tir.op import as_int


def product(m=32, n=32, k=32, dtype="float32"):
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({m}, {k}), "{dtype}"), B: T.Buffer(({k}, {n}), "{dtype}"),
         C: T.Buffer(({m}, {n}), "{dtype}")):
    T.func_attr({{"tir.noalias": True}})
    for i, j, k in T.grid({m}, {n}, {k}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.{dtype}(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""")


def tiled(m=32, n=32, k=32, dtype="float32", vector=4, vthreads=False):
    """A product of tiles in shared memory, fetched together."""
    return tiled_schedule(m, n, k, dtype, vector, vthreads).mod


def tiled_schedule(m=32, n=32, k=32, dtype="float32", vector=4, vthreads=False):
    """The schedule of `tiled`, with its steps."""
    sch = Schedule(product(m, n, k, dtype))
    block = sch.get_block("C")
    local = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    i0, i1, i2 = sch.split(i, [None, 4, 4])
    j0, j1, j2 = sch.split(j, [None, 4, 4])
    k0, k1 = sch.split(k, [None, 8])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    sch.reverse_compute_at(local, j1)
    sch.bind(i0, "blockIdx.y")
    sch.bind(j0, "blockIdx.x")
    if vthreads:
        sch.bind(i1, "vthread.y")
        sch.bind(j1, "threadIdx.x")
        threads = 4
    else:
        sch.bind(sch.fuse(i1, j1), "threadIdx.x")
        threads = 16
    for at in (0, 1):
        copy = sch.cache_read(block, at, "shared")
        sch.compute_at(copy, k0)
        fused = sch.fuse(*sch.get_loops(copy)[-2:])
        _, tx, vec = sch.split(fused, [None, threads, vector])
        sch.vectorize(vec)
        sch.bind(tx, "threadIdx.x")
    sch.decompose_reduction(block, k0)
    return sch


#: m x n threads, rows and columns of results of each, depth and padding of `padded_tiles`
PADDED = [(4, 6, 3, 5, 4, 4), (8, 4, 3, 2, 12, 4), (2, 4, 3, 5, 8, 1), (8, 4, 3, 1, 12, 1),
          (4, 4, 3, 4, 12, 4), (8, 8, 4, 4, 12, 4), (8, 4, 1, 2, 12, 4), (3, 4, 4, 2, 8, 4)]


def padded_tiles(m, n, rows, columns, k, padding):
    """The schedule of a product whose tiles go to rows that `storage_align` has padded."""
    sch = Schedule(product(2 * m * rows, 2 * n * columns, 3 * k))
    block = sch.get_block("C")
    local = sch.cache_write(block, 0, "local")
    i, j, kk = sch.get_loops(block)
    i0, i1, i2 = sch.split(i, [None, m, rows])
    j0, j1, j2 = sch.split(j, [None, n, columns])
    k0, k1 = sch.split(kk, [None, k])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    sch.reverse_compute_at(local, j1)
    sch.bind(i0, "blockIdx.y")
    sch.bind(j0, "blockIdx.x")
    sch.bind(sch.fuse(i1, j1), "threadIdx.x")
    for at in (0, 1):
        copy = sch.cache_read(block, at, "shared")
        sch.compute_at(copy, k0)
        sch.storage_align(copy, 0, 0, 8, padding)
        fused = sch.fuse(*sch.get_loops(copy)[-2:])
        sch.bind(sch.split(fused, [None, m * n])[1], "threadIdx.x")
    sch.decompose_reduction(block, k0)
    return sch


def rows_sum(rows=6, width=40, threads=8, dtype="float32"):
    """A sum of each row across threads."""
    sch = Schedule(from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows}, {width}), "{dtype}"), C: T.Buffer(({rows},), "{dtype}")):
    for i, k in T.grid({rows}, {width}):
        with T.block("C"):
            v, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[v] = T.{dtype}(0)
            C[v] = C[v] + A[v, vk]
"""))
    i, k = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.bind(sch.split(k, [None, threads])[1], "threadIdx.x")
    return sch.mod


def groups_sum():
    """Sums of rows, several rows a block, the number of threads no power of two."""
    sch = Schedule(from_source("""
@T.prim_func
def main(A: T.Buffer((8, 36), "float32"), C: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 36):
        with T.block("C"):
            v, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[v] = T.float32(0)
            C[v] = C[v] + A[v, vk]
"""))
    i, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 4])
    sch.bind(i0, "blockIdx.x")
    sch.bind(i1, "threadIdx.y")
    sch.bind(sch.split(k, [None, 6])[1], "threadIdx.x")
    return sch.mod


def argmax():
    """Value and place of the largest of each row, across threads."""
    sch = Schedule(from_source("""
@T.prim_func
def main(A: T.Buffer((4, 12), "float32"), C: T.Buffer((4,), "float32"),
         D: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 12):
        with T.block("C"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                D[v] = -1
                C[v] = T.min_value("float32")
            a: T.int32 = T.Select(C[v] > A[v, r] or C[v] == A[v, r] and D[v] < r, D[v], r)
            b: T.float32 = T.Select(C[v] > A[v, r], C[v], A[v, r])
            D[v] = a
            C[v] = b
"""))
    i, k = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.bind(sch.split(k, [None, 4])[1], "threadIdx.x")
    return sch.mod


def transposed():
    """A transpose through padded shared memory."""
    sch = Schedule(from_source("""
@T.prim_func
def main(A: T.Buffer((32, 48), "float32"), B: T.Buffer((48, 32), "float32")):
    for i, j in T.grid(48, 32):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi]
"""))
    block = sch.get_block("B")
    copy = sch.cache_read(block, 0, "shared")
    i, j = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 8])
    j0, j1 = sch.split(j, [None, 8])
    sch.reorder(i0, j0, i1, j1)
    sch.bind(i0, "blockIdx.y")
    sch.bind(j0, "blockIdx.x")
    sch.compute_at(copy, j0)
    for b in (copy, block):
        y, x = sch.get_loops(b)[-2:]
        sch.bind(y, "threadIdx.y")
        sch.bind(x, "threadIdx.x")
    sch.storage_align(copy, 0, 0, 8, 1)
    return sch.mod


def bound(program, *names, threads=16):
    """The first loop of each block over blocks and threads, of all its loops fused."""
    sch = Schedule(program)
    for name in names:
        loops = sch.get_loops(name)
        fused = sch.fuse(*loops) if len(loops) > 1 else loops[0]
        i0, i1 = sch.split(fused, [None, threads])
        sch.bind(i0, "blockIdx.x")
        sch.bind(i1, "threadIdx.x")
    return sch.mod


def uneven():
    """A product whose last block of threads is not full."""
    sch = Schedule(product(7, 9, 5))
    i, j, _ = sch.get_loops("C")
    i0, i1 = sch.split(sch.fuse(i, j), [None, 16])
    sch.bind(i0, "blockIdx.x")
    sch.bind(i1, "threadIdx.x")
    return sch.mod


def symbolic():
    return bound(from_source("""
@T.prim_func
def main(a: T.handle, b: T.handle, scale: T.float32):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] * scale + T.cast(vi, "float32")
"""), "B")


def elementwise(expression, dtype="float32", out=None):
    return bound(from_source(f"""
@T.prim_func
def main(A: T.Buffer((70,), "{dtype}"), B: T.Buffer((70,), "{out or dtype}")):
    for i in range(70):
        with T.block("B"):
            vi = T.axis.spatial(70, i)
            B[vi] = {expression}
"""), "B")


def two_kernels():
    """The second kernel reads what the first has written, in memory of the program."""
    return bound(from_source("""
@T.prim_func
def main(A: T.Buffer((40,), "float32"), C: T.Buffer((40,), "float32")):
    B = T.alloc_buffer((40,), "float32")
    for i in range(40):
        with T.block("B"):
            vi = T.axis.spatial(40, i)
            B[vi] = A[vi] * T.float32(3)
    for i in range(40):
        with T.block("C"):
            vi = T.axis.spatial(40, i)
            C[vi] = B[39 - vi] + T.float32(1)
"""), "B", "C")


def scalars():
    """Numbers of three types as arguments, one of which is a loop's extent in each thread."""
    return bound(from_source("""
@T.prim_func
def main(A: T.Buffer((60,), "float32"), B: T.Buffer((60,), "float32"), n: T.int32,
         scale: T.float32, flip: T.bool):
    for i in range(60):
        with T.block("B"):
            vi = T.axis.spatial(60, i)
            B[vi] = T.float32(0)
            for k in range(n):
                B[vi] = B[vi] + A[T.Select(flip, 59 - vi, vi)] * scale + T.cast(k, "float32")
"""), "B")


def symbolic_kernels():
    """Two kernels of symbolic sizes, with memory of the program between them."""
    return bound(from_source("""
@T.prim_func
def main(a: T.handle, c: T.handle):
    m, n = T.int32(), T.int32()
    A = T.match_buffer(a, (m, n), "float32")
    C = T.match_buffer(c, (n, m), "float32")
    B = T.alloc_buffer((n, m), "float32")
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi] * T.float32(2)
    for i, j in T.grid(n, m):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[n - 1 - vi, vj] + T.float32(1)
"""), "B", "C")


def vectors():
    """Each thread loads and stores four numbers at once."""
    sch = Schedule(from_source("""
@T.prim_func
def main(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    for i in range(256):
        with T.block("B"):
            vi = T.axis.spatial(256, i)
            B[vi] = T.max(A[vi], T.float32(0)) * T.float32(3) + A[vi]
"""))
    i0, i1, i2 = sch.split(sch.get_loops("B")[0], [None, 16, 4])
    sch.bind(i0, "blockIdx.x")
    sch.bind(i1, "threadIdx.x")
    sch.vectorize(i2)
    return sch.mod


def padded():
    """A shifted picture, with a border."""
    return bound(from_source("""
@T.prim_func
def main(X: T.Buffer((9, 9), "float32"), Y: T.Buffer((9, 9), "float32")):
    for i, j in T.grid(9, 9):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.if_then_else(vi >= 1 and vj < 8, X[vi - 1, vj + 1], T.float32(-1))
"""), "Y")


#: name -> a scheduled program
PROGRAMS = {
    "tiled": tiled, "tiled, other sizes": lambda: tiled(48, 16, 24), "uneven": uneven,
    "tiled, virtual threads": lambda: tiled(vthreads=True),
    "tiled, whole numbers": lambda: tiled(dtype="int32", vector=2),
    "sum": rows_sum, "sum, uneven": lambda: rows_sum(5, 37, 6), "sum of groups": groups_sum,
    "argmax": argmax, "transpose": transposed, "symbolic": symbolic, "two kernels": two_kernels,
    "padded": padded, "scalars": scalars, "symbolic kernels": symbolic_kernels,
    "vectors": vectors,
    "functions": lambda: elementwise(
        "T.exp(A[vi]) + T.sigmoid(A[vi]) * T.tanh(A[vi]) - T.sqrt(T.abs(A[vi]))"
        " + T.floor(A[vi]) * T.erf(A[vi]) + T.log(T.abs(A[vi]) + T.float32(1))"),
    "extremes": lambda: elementwise(
        "T.max(T.min(A[vi], T.float32(1)), T.float32(-1)) + T.round(A[vi]) + T.pow(T.abs(A[vi]), "
        "T.float32(1.5)) + T.Select(A[vi] > T.float32(0), T.float32(2), T.float32(3))"),
    "divisions": lambda: elementwise(
        "(A[vi] - 25) // 7 * 100 + (A[vi] - 25) % 7 + T.truncdiv(A[vi] - 25, 3)"
        " + T.shift_right(A[vi] - 25, 1) + T.bitwise_and(A[vi], 12) + (A[vi] - 25) // 8", "int32"),
    "casts": lambda: elementwise("T.cast(A[vi] * T.float32(2), \"int32\") % 5", "float32",
                                 "int32"),
}


def missing(kind, why):
    """Skip a test for want of a device or compiler; fail where MLC_LAB_MUST_HAVE lists it."""
    needed = os.environ.get("MLC_LAB_MUST_HAVE", "").split(",")
    stop = pytest.fail if kind in needed else pytest.skip
    stop(f"{why} (see docs/gpu.md)")


def arguments(mod, seed=0):
    """Random arrays and numbers for the parameters of main; symbolic sizes are 53."""
    func = mod["main"]
    rng = np.random.default_rng(seed)
    out = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is None:
            out.append(1.5 if dt.is_float(param.dtype) else 1 if param.dtype == "bool" else 3)
            continue
        shape = [53 if as_int(d) is None else as_int(d) for d in buffer.shape]
        kind = dt.numpy_dtype(buffer.dtype)
        if kind.kind == "f":
            out.append(rng.uniform(-2, 2, shape).astype(kind))
        else:
            out.append(rng.integers(0, 50, shape).astype(kind))
    return out
