"""Small kernels, written as they run, whose counts can be worked out by hand."""

from backend.gpu_programs import product

from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source

from .square_tiles import tile_squares


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
    tile_squares(sch, sch.get_block("C"), tile, inner, depth, vector)
    return sch.mod
