"""A module and schedules of it that the tests of observing share."""

from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source

SOURCE = '''
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 24), "float32"), B: T.Buffer((24, 32), "float32"),
             C: T.Buffer((16, 32), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        Y = T.alloc_buffer((16, 32))
        for i, j, k in T.grid(16, 32, 24):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(16, 32):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
'''


def module():
    return from_source(SOURCE)


def schedule(sch=None):
    """Six steps of which one is refused; `get_block` and `get_loops` in between."""
    sch = sch or Schedule(module())
    block = sch.get_block("Y")
    i, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, factors=[None, 8])
    sch.reorder(i, j0, k, j1)
    relu = sch.get_block("C")
    sch.reverse_compute_at(relu, j0)
    try:
        sch.vectorize(k)
    except ScheduleError:
        pass
    sch.vectorize(j1)
    sch.decompose_reduction(block, k)
    return sch
