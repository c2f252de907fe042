"""Random legal schedules of random programs keep their meaning: interpreter against numpy."""

import numpy as np
from hypothesis import HealthCheck, given, settings, strategies as st

from mlc_lab.backend.interp import interpret
from mlc_lab.build import build
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source

from .common import chain, check, matmul, mm_relu, random_arguments, row_sum, run, stencil
from .programs import programs

PROGRAMS = [matmul, mm_relu, chain, row_sum, stencil]


def a_random_step(draw, sch):
    """Try one primitive with random arguments; a refusal is fine, wrong code is not."""
    root = sch.get_block("root")
    blocks = sch.get_child_blocks(root)
    block = draw(st.sampled_from(blocks))
    loops = sch.get_loops(block)
    loop = draw(st.sampled_from(loops)) if loops else None
    other = draw(st.sampled_from(blocks))
    other_loops = sch.get_loops(other)
    choice = draw(st.sampled_from([
        "split", "split", "fuse", "reorder", "parallel", "vectorize", "unroll", "compute_at",
        "reverse_compute_at", "compute_inline", "reverse_compute_inline", "decompose_reduction",
        "cache_read", "cache_write", "rfactor"]))
    try:
        if choice == "split" and loop is not None:
            sch.split(loop, factors=draw(st.sampled_from(
                [[None, 2], [None, 3], [2, None], [None, 5], [2, None, 2]])))
        elif choice == "fuse" and len(loops) > 1:
            at = draw(st.integers(0, len(loops) - 2))
            sch.fuse(loops[at], loops[at + 1])
        elif choice == "reorder" and len(loops) > 1:
            sch.reorder(*draw(st.permutations(loops)))
        elif choice in ("parallel", "vectorize", "unroll") and loop is not None:
            getattr(sch, choice)(loop)
        elif choice in ("compute_at", "reverse_compute_at") and other_loops:
            getattr(sch, choice)(block, draw(st.sampled_from(other_loops)))
        elif choice in ("compute_inline", "reverse_compute_inline"):
            getattr(sch, choice)(block)
        elif choice == "decompose_reduction" and loop is not None:
            sch.decompose_reduction(block, loop)
        elif choice == "cache_read":
            sch.cache_read(block, 0, "global")
        elif choice == "cache_write":
            sch.cache_write(block, 0, "global")
        elif choice == "rfactor" and loop is not None:
            sch.rfactor(loop, factor_axis=0)
    except ScheduleError:
        pass


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_schedules_keep_the_meaning(data):
    func = data.draw(st.sampled_from(PROGRAMS))
    sch = Schedule(func)
    for _ in range(data.draw(st.integers(1, 7))):
        a_random_step(data.draw, sch)
    check(sch, Schedule(func).mod)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.data())
def test_random_programs_under_random_schedules_keep_the_meaning(program, data):
    func = from_source(program.text)
    inputs = random_arguments(func)[:-1]
    want = program.reference(*inputs)
    sch = Schedule(func)
    for _ in range(data.draw(st.integers(0, 6))):
        a_random_step(data.draw, sch)
    check(sch, Schedule(func).mod)
    for execute in (lambda *args: interpret(sch.mod["main"], *args),
                    build(sch.mod, target="llvm")["main"]):
        out = np.full(want.shape, np.nan, "float32")
        execute(*inputs, out)
        np.testing.assert_allclose(out, want, rtol=1e-3, atol=1e-4)


def test_the_programs_compute_what_numpy_computes():
    a, b, c = run(Schedule(mm_relu).mod)
    np.testing.assert_allclose(c, np.maximum(a @ b, 0), rtol=1e-5, atol=1e-5)
    a, b, c = run(Schedule(matmul).mod)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-6)
    a, d = run(Schedule(chain).mod)
    np.testing.assert_allclose(d, (a * 2 + 1) ** 2, rtol=1e-5)
    a, b = run(Schedule(row_sum).mod)
    np.testing.assert_allclose(b, a.sum(1), rtol=1e-4, atol=1e-6)
    a, c = run(Schedule(stencil).mod)
    np.testing.assert_allclose(c, 2 * (a[:-2] + a[1:-1] + a[2:]), rtol=1e-5, atol=1e-6)
