"""The page "parallel sum": partial sums of several threads, side by side in memory or apart."""

from __future__ import annotations

from ..schedule import Schedule
from ..schedule.open_number import live
from ..script import from_source

PROSE = (
    "The sum of 65,536 numbers, in {live:chunks} chunks that run in parallel. Each chunk adds to a "
    "sum of its own, and the sums lie {live:floats apart} floats apart. No two threads touch the "
    "same sum. But a cache line holds 16 floats on most machines, and where the sums of two "
    "threads lie in one line, that line moves from core to core at each addition: false sharing. "
    "With compute_at each thread adds in a variable of its own, and stores its sum once. (What is "
    "no number is left out of the sum. Because of this condition the compiler does not do by "
    "itself what compute_at does.)")


def parallel_sum(size: int = 1 << 16) -> dict[str, Schedule]:
    """A sum in parallel by partial sums in memory: how many, how far apart, or in a variable of
    each thread. Where their lines are shared, that is false sharing."""
    return {str(chunks): _of_chunks(size, chunks) for chunks in (2, 4, 8, 16, 32)}


def _of_chunks(size: int, chunks: int) -> Schedule:
    part = size // chunks
    sch = Schedule(from_source(f"""
@T.prim_func
def main(A: T.Buffer(({size},), "float32"), S: T.Buffer((1,), "float32")):
    T.func_attr({{"tir.noalias": True}})
    sums = T.alloc_buffer(({chunks},))
    done = T.alloc_buffer(({chunks},))
    for c, k in T.grid({chunks}, {part}):
        with T.block("sums"):
            vc, vk = T.axis.remap("SR", [c, k])
            with T.init():
                sums[vc] = T.float32(0)
            if A[vc * {part} + vk] == A[vc * {part} + vk]:
                sums[vc] = sums[vc] + A[vc * {part} + vk]
    for c in range({chunks}):
        with T.block("done"):
            vc = T.axis.spatial({chunks}, c)
            done[vc] = sums[vc]
    for c in range({chunks}):
        with T.block("S"):
            vc = T.axis.reduce({chunks}, c)
            with T.init():
                S[0] = T.float32(0)
            S[0] = S[0] + done[vc]
"""))
    sums, done = sch.get_block("sums"), sch.get_block("done")
    sch.storage_align(sums, 0, axis=0, factor=live("floats apart", 1, [1, 2, 4, 8, 16]), offset=0)
    sch.parallel(sch.get_loops(sums)[0])
    (chunk,) = sch.get_loops(done)
    sch.parallel(chunk)
    # With its init in front of the loop, LLVM keeps a sum in a register after all.
    sch.compute_at(sums, chunk)
    return sch
