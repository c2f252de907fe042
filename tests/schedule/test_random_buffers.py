"""Random sequences of the primitives that rewrite buffers and blocks keep what programs mean."""

import random

import pytest

from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.tir import IndexMap

from .common import chain, check, matmul, mm_relu, row_sum, stencil
from .test_padding import odd_matmul, pad2d
from .test_rfactor import row_max

PROGRAMS = [chain, matmul, mm_relu, row_sum, stencil, odd_matmul, pad2d, row_max]


def random_map(rng, rank, drop):
    """A map that shuffles indices, splits some and leaves some out."""
    order = [i for i in range(rank) if not (drop and rng.random() < 0.2)]
    rng.shuffle(order)
    parts = [(i, rng.choice([0, 0, 2, 4, 5])) for i in order]

    def index_map(*at):
        return [e for i, n in parts for e in ((at[i] // n, at[i] % n) if n else (at[i],))]

    return IndexMap.from_func(index_map, rank)


def random_step(sch, rng):
    """Apply one random primitive somewhere; it may be refused."""
    blocks = []

    def collect(scope):
        for child in sch.get_child_blocks(scope):
            blocks.append(child)
            collect(child)

    collect(sch.get_block("root"))
    block = rng.choice(blocks)
    stmt, loops = sch.get(block), sch.get_loops(block)
    rank = len(stmt.iter_vars)
    if not loops:
        return
    loop, scope = rng.choice(loops), rng.choice(["local", "shared", "global"])
    output = stmt.writes[0].buffer
    steps = [
        lambda: sch.split(loop, [None, rng.choice([2, 3, 4, 5])]),
        lambda: sch.reorder(*rng.sample(loops, min(2, len(loops)))),
        lambda: sch.cache_read(block, rng.randrange(2), scope),
        lambda: sch.cache_write(block, 0, scope),
        lambda: sch.set_scope(block, 0, scope),
        lambda: sch.rfactor(loop, rng.choice([0, 1, -1])),
        lambda: sch.decompose_reduction(block, loop),
        lambda: sch.blockize(loop, rng.choice([True, False])),
        lambda: sch.reindex(block, (rng.choice(["read", "write"]), 0)),
        lambda: sch.reindex_cache_read(block, 0, scope, random_map(rng, rank, True)),
        lambda: sch.reindex_cache_write(block, 0, scope, random_map(rng, rank, True)),
        lambda: sch.transform_block_layout(block, random_map(rng, rank, False)),
        lambda: sch.reorder_block_iter_var(block, rng.sample(range(rank), rank)),
        lambda: sch.pad_einsum(block, [rng.choice([1, 3, 4, 8]) for _ in range(rank)]),
        lambda: sch.decompose_padding(block, loop),
        lambda: sch.cache_inplace(block, 0, scope),
        lambda: sch.cache_index(block, scope),
        lambda: sch.rolling_buffer(block, 0),
        lambda: sch.compute_at(block, rng.choice(sch.get_loops(rng.choice(blocks)) or [loop])),
    ]
    if output not in sch.mod["main"].buffers:  # parameters would change the function's type
        layout = random_map(rng, len(output.shape), False)
        steps.append(lambda: sch.transform_layout(block, ("write", 0), layout,
                                                  pad_value=rng.choice([None, 1.0])))
    rng.choice(steps)()


@pytest.mark.parametrize("seed", range(24))
def test_any_sequence_keeps_the_meaning(seed):
    rng = random.Random(seed)
    sch = Schedule(rng.choice(PROGRAMS))
    before = sch.mod
    for _ in range(rng.randint(3, 7)):
        try:
            random_step(sch, rng)
        except ScheduleError:
            pass
    check(sch, before, rtol=1e-4)
