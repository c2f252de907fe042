"""Random legal schedules of small programs: the lowered program leaves the same numbers."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlc_lab.lower import lower
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import tir as T
from .programs import arguments, chain, conv_padded, matmul, mm_relu, run, softmax

PROGRAMS = {"matmul": matmul, "mm_relu": mm_relu, "chain": chain, "conv": conv_padded,
            "softmax": softmax}


@T.prim_func
def strided_sum(A: T.Buffer((5, 24), "int32"), B: T.Buffer((5, 7), "int32")):
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    for i, j, k in T.grid(5, 7, 5):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                B[vi, vj] = 0
            B[vi, vj] = B[vi, vj] + A[vi, vj * 3 + vk] * (vi + 1)


PROGRAMS["strided_sum"] = strided_sum


def leaf_blocks(s):
    return list(s.get_child_blocks(s.get_block("root")))


class Driver:
    """Draws schedule steps; a refused step changes nothing."""

    def __init__(self, data, program):
        self.data, self.s = data, Schedule(program)

    def pick(self, items):
        return self.data.draw(st.sampled_from(items))

    def step(self):
        s = self.s
        block = self.pick(leaf_blocks(s))
        kind = self.pick(["split", "split", "fuse", "reorder", "vectorize", "unroll", "parallel",
                          "compute_at", "reverse_compute_at", "cache_read", "cache_write",
                          "decompose", "auto_unroll", "inline"])
        loops = s.get_loops(block)
        if kind == "inline":
            s.compute_inline(block)
        elif kind == "cache_read":
            s.cache_read(block, 0, self.pick(["global", "local"]))
        elif kind == "cache_write":
            s.cache_write(block, 0, self.pick(["global", "local"]))
        elif not loops:
            return
        elif kind == "split":
            s.split(self.pick(loops), [None, self.data.draw(st.integers(2, 8))])
        elif kind == "fuse":
            at = self.data.draw(st.integers(0, len(loops) - 1))
            s.fuse(*loops[at:at + 2])
        elif kind == "reorder":
            s.reorder(*self.data.draw(st.permutations(loops)))
        elif kind == "vectorize":
            s.vectorize(loops[-1])
        elif kind == "unroll":
            s.unroll(self.pick(loops))
        elif kind == "parallel":
            s.parallel(loops[0])
        elif kind == "decompose":
            s.decompose_reduction(block, self.pick(loops))
        elif kind == "auto_unroll":
            s.annotate(self.pick(loops), "pragma_auto_unroll_max_step",
                       self.pick([4, 16, 64]))
        else:
            other = self.pick(leaf_blocks(s))
            target = s.get_loops(other)
            if target:
                getattr(s, kind)(block, self.pick(target))


@pytest.mark.parametrize("name", list(PROGRAMS))
@given(data=st.data())
@settings(max_examples=12, deadline=None, derandomize=True,
          suppress_health_check=list(HealthCheck))
def test_lowered_schedule_means_the_same(name, data):
    driver = Driver(data, PROGRAMS[name])
    for _ in range(data.draw(st.integers(1, 9))):
        try:
            driver.step()
        except ScheduleError:
            pass
    mod = driver.s.mod
    func = mod["main"]
    args = arguments(func)
    scheduled = run(mod, args)
    lowered = lower(mod)
    got = run(lowered, args)
    for a, b in zip(got, scheduled):  # not a bit may change
        np.testing.assert_array_equal(a, b, err_msg=f"{mod.script()}\n{lowered.script()}")
