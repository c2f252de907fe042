"""Quick counts: of loops whose iterations do alike one is run, of blocks those of one
multiprocessor. They are the counts of everything."""

import random

import numpy as np
import pytest
from backend.gpu_programs import product, tiled

from mlc_lab import count_gpu
from mlc_lab.backend.interp_memory import OutOfBounds
from mlc_lab.meta_schedule.context import TuneContext
from mlc_lab.meta_schedule.trace_extents import drawn_tiles
from mlc_lab.observe.gpu import counts as counting
from mlc_lab.schedule import Trace

from .programs import copies, kernel, square_tiles, through_shared

TAG = "nvidia/geforce-rtx-2080-ti"


def random_schedules(mod, count):
    """Schedules of a product from the space of the search."""
    made = TuneContext(mod, target=TAG, rand_state=1)
    space, rng, out = made.generate_design_space()[0], random.Random(3), []
    while len(out) < count:
        decisions = {**space.trace.decisions, **drawn_tiles(space.trace, rng)}
        for at, inst in enumerate(space.trace.insts):
            if inst.kind.name == "SampleCategorical":
                decisions[at] = rng.randrange(len(inst.args["candidates"]))
        trace = Trace(space.trace.insts, decisions)
        if all(step.admits(trace) for step in made.space_generator.postprocs):
            sch = made.replay(trace)
            if sch is not None:
                out.append(sch.mod)
    return out


def told(k):
    """What must be the same."""
    return (k.instructions, k.sites, k.branches, k.divergent, k.barriers, k.waits, k.lanes_active,
            k.occupancy)


def ranks(values):
    return np.argsort(np.argsort(values))


@pytest.fixture(scope="module")
def schedules():
    return random_schedules(product(64, 64, 64), 50)


def test_blocks_of_one_multiprocessor_count_as_all_do(schedules):
    quick, exact = [], []
    for mod in schedules:
        (a,), (b,) = count_gpu(mod, TAG, quick=True), count_gpu(mod, TAG)
        assert a.blocks_run <= b.blocks_run == b.blocks
        if a.blocks_run < counting.MIXED or a.blocks_run == b.blocks:
            assert told(a) == told(b)
        quick.append(a.modelled.seconds)
        exact.append(b.modelled.seconds)
    assert np.corrcoef(ranks(quick), ranks(exact))[0, 1] > 0.99
    off = np.abs(np.array(quick) / exact - 1)  # the first level is another one
    assert np.median(off) < 0.001 and off.max() < 0.5


def test_loops_are_multiplied_exactly(schedules, monkeypatch):
    programs = [*schedules[:12], square_tiles(64, 32, 4, 8, 2), tiled(32, 32, 64),
                tiled(32, 32, 64, vthreads=True), tiled(32, 32, 64, "float16", 2),
                copies("b * 32 + t", grid=8), through_shared("t * 2", "t * 2")]
    fast = [count_gpu(mod, TAG)[0] for mod in programs]
    monkeypatch.setattr(counting._Counter, "multiplies", False)
    for mod, k in zip(programs, fast):
        (slow,) = count_gpu(mod, TAG)
        assert told(k) == told(slow) and k.traffic == slow.traffic


LOOP = '''
for i in range(100):
    B[t] = B[t] + A[{index}]
'''


@pytest.mark.parametrize("index", [
    "i * 8 + t", "i * 2 + t", "i + t", "t * 32 + i // 2", "(i * 40) % 64 + t", "t * 101 + 99 - i"])
def test_iterations_that_move_by_less_than_a_sector(index, monkeypatch):
    mod = kernel(LOOP.format(index=index).strip(),
                 'A: T.Buffer((4096,), "float32"), B: T.Buffer((32,), "float32")')
    (fast,) = count_gpu(mod, TAG)
    monkeypatch.setattr(counting._Counter, "multiplies", False)
    (slow,) = count_gpu(mod, TAG)
    assert told(fast) == told(slow) and fast.traffic == slow.traffic


def test_an_iteration_that_is_not_run_is_still_checked():
    mod = kernel("for i in range(100):\n    B[t] = B[t] + A[i * 8 + t]",
                 'A: T.Buffer((800,), "float32"), B: T.Buffer((32,), "float32")')
    with pytest.raises(OutOfBounds, match="which has 800"):
        count_gpu(mod, TAG)


def test_a_condition_on_the_loop_is_followed():
    mod = kernel("for i in range(100):\n    if i < 3:\n        B[t] = B[t] + A[i * 32 + t]",
                 'A: T.Buffer((4096,), "float32"), B: T.Buffer((32,), "float32")')
    (k,) = count_gpu(mod, TAG)
    assert k.site("A").requests == 3


def test_halves_of_a_word_are_no_whole_words():
    """Two lanes share a word; moved by half a word, their pairs are others."""
    mod = kernel('''
S = T.decl_buffer((512,), "float16", scope="shared")
for i in range(100):
    S[t * 2 + i] = A[t]
''', 'A: T.Buffer((32,), "float16")')
    (k,) = count_gpu(mod, TAG)
    assert k.site("S", write=True).requests == 100


def test_memory_beyond_the_second_level_is_counted_by_all_multiprocessors():
    mod = copies("b * 256 + t", 256, 8192, 256 * 8192)
    (a,), (b,) = count_gpu(mod, TAG, quick=True), count_gpu(mod, TAG)
    assert a.traffic == b.traffic and a.blocks_run == b.blocks_run
