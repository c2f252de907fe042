"""Programs whose accesses are counted in the tests."""

from mlc_lab.script import tir as T


def matmul(n, m=None, k=None):
    """C = A B in float32, n x k times k x m."""
    m, k = m or n, k or n

    @T.prim_func
    def main(A: T.Buffer((n, k), "float32"), B: T.Buffer((k, m), "float32"),
             C: T.Buffer((n, m), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, p in T.grid(n, m, k):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, p])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] += A[vi, vk] * B[vk, vj]

    return main


def tiled(n, rows=4, columns=16, lanes=8, parallel=False):
    """A schedule of the product: tiles of C in registers, B packed."""
    from mlc_lab.tir import Schedule

    sch = Schedule(matmul(n))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i_0, i_1 = sch.split(i, [None, rows])
    j_0, j_1 = sch.split(j, [None, columns])
    sch.reorder(j_0, i_0, k, i_1, j_1)
    tile = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(tile, i_0)
    packed = sch.cache_read(block, 1, "global")
    sch.compute_at(packed, j_0)
    sch.vectorize(sch.split(sch.get_loops(packed)[-1], [None, lanes])[1])
    outer, inner = sch.split(j_1, [None, lanes])
    sch.vectorize(inner)
    sch.unroll(i_1)
    sch.unroll(outer)
    write_rows, write_columns = sch.get_loops(tile)[-2:]
    sch.unroll(write_rows)
    sch.vectorize(sch.split(write_columns, [None, lanes])[1])
    if parallel:
        sch.parallel(j_0)
    sch.decompose_reduction(block, k)
    return sch
