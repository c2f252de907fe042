"""Small kernels, written as they run, whose counts can be worked out by hand."""

from backend.gpu_programs import product

from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source


def kernel(body, params, block=32, grid=1):
    """One block of statements in `grid` blocks of `block` threads; b and t are their numbers."""
    lines = "\n".join(f"            {line}" for line in body.splitlines())
    return from_source(f"""
@T.prim_func
def main({params}):
    for b in T.thread_binding({grid}, thread="blockIdx.x"):
        for t in T.thread_binding({block}, thread="threadIdx.x"):
{lines}
""")


def copies(index, block=32, grid=1, size=4096):
    """B[thread] = A[index]."""
    return kernel(f"B[b * {block} + t] = A[{index}]",
                  f'A: T.Buffer(({size},), "float32"), B: T.Buffer(({block * grid},), "float32")',
                  block, grid)


def through_shared(store, load, size=1056):
    """Each thread stores to and loads from shared memory once."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        S = T.decl_buffer(({size},), "float32", scope="shared")
        S[{store}] = A[t]
        B[t] = S[{load}]
""")


def square_tiles(n=64, tile=32, inner=4, depth=8, vector=2):
    """A product in square tiles of shared memory, `inner` x `inner` elements a thread."""
    sch = Schedule(product(n, n, n))
    block = sch.get_block("C")
    local = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    side = tile // inner
    i0, i1, i2 = sch.split(i, [None, side, inner])
    j0, j1, j2 = sch.split(j, [None, side, inner])
    k0, k1 = sch.split(k, [None, depth])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    sch.reverse_compute_at(local, j1)
    for loop, axis in zip((i0, j0, i1, j1), ("blockIdx.y", "blockIdx.x", "threadIdx.y",
                                             "threadIdx.x")):
        sch.bind(loop, axis)
    for at in (0, 1):
        copy = sch.cache_read(block, at, "shared")
        sch.compute_at(copy, k0)
        fused = sch.fuse(*sch.get_loops(copy)[-2:])
        _, ty, tx, vec = sch.split(fused, [None, side, side, vector])
        sch.vectorize(vec)
        sch.bind(ty, "threadIdx.y")
        sch.bind(tx, "threadIdx.x")
    sch.decompose_reduction(block, k0)
    return sch.mod
