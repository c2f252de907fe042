"""Small programs that the tests of meta_schedule tune: those of the benchmark, and more."""

from benchmarks import programs
from benchmarks.programs import stochastic_schedule_mm as stochastic  # noqa: F401
from mlc_lab.script import from_source

DENSE_BIAS_RELU = """
@T.prim_func
def main(X: T.Buffer((8, 48), "float32"), W: T.Buffer((32, 48), "float32"),
         B: T.Buffer((32,), "float32"), Z: T.Buffer((8, 32), "float32")):
    T.func_attr({"tir.noalias": True})
    Y = T.alloc_buffer((8, 32), "float32")
    D = T.alloc_buffer((8, 32), "float32")
    for i, j, k in T.grid(8, 32, 48):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
    for i, j in T.grid(8, 32):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = Y[vi, vj] + B[vj]
    for i, j in T.grid(8, 32):
        with T.block("Z"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = T.max(D[vi, vj], T.float32(0))
"""

CONV_PADDED = """
@T.prim_func
def main(X: T.Buffer((1, 4, 8, 16), "float32"), W: T.Buffer((6, 4, 3, 3), "float32"),
         Y: T.Buffer((1, 6, 8, 16), "float32")):
    T.func_attr({"tir.noalias": True})
    P = T.alloc_buffer((1, 4, 10, 18))
    for n, c, y, x in T.grid(1, 4, 10, 18):
        with T.block("P"):
            vn, vc, vy, vx = T.axis.remap("SSSS", [n, c, y, x])
            P[vn, vc, vy, vx] = T.if_then_else(
                1 <= vy and vy < 9 and 1 <= vx and vx < 17, X[vn, vc, vy - 1, vx - 1],
                T.float32(0))
    for n, f, y, x, c, r, s in T.grid(1, 6, 8, 16, 4, 3, 3):
        with T.block("Y"):
            vn, vf, vy, vx, vc, vr, vs = T.axis.remap("SSSSRRR", [n, f, y, x, c, r, s])
            with T.init():
                Y[vn, vf, vy, vx] = T.float32(0)
            Y[vn, vf, vy, vx] = Y[vn, vf, vy, vx] + P[vn, vc, vy + vr, vx + vs] * W[vf, vc, vr, vs]
"""

BATCH_MATMUL = """
@T.prim_func
def main(A: T.Buffer((2, 8, 24), "float32"), B: T.Buffer((2, 24, 32), "float32"),
         C: T.Buffer((2, 8, 32), "float32")):
    for b, i, j, k in T.grid(2, 8, 32, 24):
        with T.block("C"):
            vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
            with T.init():
                C[vb, vi, vj] = T.float32(0)
            C[vb, vi, vj] = C[vb, vi, vj] + A[vb, vi, vk] * B[vb, vk, vj]
"""

ROW_SUM = """
@T.prim_func
def main(X: T.Buffer((12, 128), "float32"), Y: T.Buffer((12,), "float32")):
    for i, k in T.grid(12, 128):
        with T.block("Y"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                Y[vi] = T.float32(0)
            Y[vi] = Y[vi] + X[vi, vk]
"""

COLUMN_SUM = """
@T.prim_func
def main(X: T.Buffer((12, 64), "float32"), Y: T.Buffer((64,), "float32")):
    for i, k in T.grid(64, 12):
        with T.block("Y"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                Y[vi] = T.float32(0)
            Y[vi] = Y[vi] + X[vk, vi]
"""

CHAIN = """
@T.prim_func
def main(A: T.Buffer((8, 64), "float32"), C: T.Buffer((8, 64), "float32")):
    B = T.alloc_buffer((8, 64))
    for i, j in T.grid(8, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(8, 64):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.exp(B[vi, vj])
"""

PROGRAMS = {
    "matmul": programs.matmul(48), "softmax": programs.softmax(16, 64), "dense": DENSE_BIAS_RELU,
    "conv": CONV_PADDED, "batch": BATCH_MATMUL, "row sum": ROW_SUM, "column sum": COLUMN_SUM,
    "chain": CHAIN,
}
TARGET = "llvm --num-cores=1"


def matmul(n=32):
    """A matrix product of n x n."""
    return from_source(programs.matmul(n))
