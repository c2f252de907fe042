"""The schedule of a product in square tiles of shared memory, for the lab's schedules and TVM's.

It imports nothing: `benchmarks/gpu_tvm_kernel.py` runs it where apache-tvm is, and the lab is not.
"""


def tile_squares(sch, block, tile, inner, depth, vector):
    """Tile a product, `inner` x `inner` elements a thread; copies load vectors of `vector`."""
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
