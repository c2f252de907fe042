"""A database of made-up trials, for tests of the tuning board: nothing is measured."""

from mlc_lab.meta_schedule.database import Database, TuningRecord
from mlc_lab.meta_schedule.workload import count_flops
from mlc_lab.schedule import Schedule
from mlc_lab.script import ir_module
from mlc_lab.script import tir as T


@ir_module
class Product:
    @T.prim_func
    def main(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"),
             C: T.Buffer((32, 32), "float32")):
        T.func_attr({"tir.noalias": True})
        for i, j, k in T.grid(32, 32, 32):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def tiled(decision, kind=0):
    sch = Schedule(Product)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, 2, decision=decision))
    sch.reorder(i, j0, k, j1)
    choice = sch.sample_categorical([0, 16], [0.5, 0.5], decision=kind)
    sch.annotate(sch.get_loops(block)[0], "unroll", choice)
    return sch


def database():
    """Two searches: an evolutionary one of two rounds with a failure, and one at random."""
    found = Database.create("memory")
    workload = found.commit_workload(Product)
    machine = {"cpu": "a processor", "cores": 1, "peak_gflops": 10.0}
    flop = count_flops(Product)

    def add(session, trial, decision, time, **more):
        record = TuningRecord(
            tiled(decision, more.pop("kind", 0)).trace, workload, "llvm -num-cores=1",
            () if time is None else (time, time * 1.02, time * 1.1), task="product",
            session=session, trial=trial, flop=flop, **more)
        return found.commit_tuning_record(record)

    first = found.begin_session("product", workload, "llvm -num-cores=1", 6, 7, "a space", machine)
    a = add(first, 0, [32, 1], 80e-6, strategy="replay-trace")
    add(first, 1, [16, 2], 60e-6, strategy="replay-trace", kind=1)
    add(first, 2, [1, 32], None, strategy="replay-trace", status="timeout",
        reason="did not end within 10 s")
    b = add(first, 3, [8, 4], 40e-6, strategy="evolutionary", parent=a, generation=1,
            mutation="tile size of v3, v4", round=1, predicted=0.7)
    add(first, 4, [4, 8], 20e-6, strategy="evolutionary", parent=b, generation=2,
        mutation="tile size of v3, v4", round=1, predicted=0.9)
    add(first, 5, [2, 16], 50e-6, strategy="evolutionary", parent=b, generation=2, round=1,
        predicted=0.5, kind=1)
    found.update_session(first, state="done")
    second = found.begin_session("product", workload, "llvm -num-cores=1", 2, 8, "a space", machine)
    add(second, 0, [16, 2], 61e-6, strategy="replay-trace")
    add(second, 1, [4, 8], 22e-6, strategy="replay-trace")
    found.update_session(second, state="done")
    return found
