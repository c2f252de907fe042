"""Barriers stand where threads need them, and nowhere else.

Of a lowered kernel no two threads clash, and without any one of its barriers two do.
"""

import itertools
import random

import numpy as np
import pytest
from backend.gpu_programs import PADDED, padded_tiles, tiled_schedule

import mlc_lab as tvm
from mlc_lab.ir.transform import PassContext
from mlc_lab.lower import LowerError
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source
from mlc_lab.tir import stmt as S
from mlc_lab.tir.functor import Mutator, all_statements
from mlc_lab.lower.common import function_pass


def is_barrier(s):
    return type(s) is S.Evaluate and getattr(s.value.op, "name", "") == "tir.tvm_storage_sync"


def kernel_of(program):
    mod = tvm.lower(program, target="cuda")
    (found,) = [f for v, f in mod.functions.items() if v.name_hint.endswith("_kernel")]
    return found


def barriers(s):
    return sum(map(is_barrier, all_statements(s)))


def in_loops(func):
    """How many barriers each outermost loop with barriers has."""
    found = []

    def walk(s):
        if type(s) is S.For:
            found.append(barriers(s))
            return
        for child in s.children():
            if isinstance(child, S.Stmt):
                walk(child)

    walk(func.body)
    return [n for n in found if n]


class Without(Mutator):
    """A program without its n-th barrier."""

    def __init__(self, number):
        super().__init__()
        self.number = number

    def visit_Evaluate(self, node):
        if is_barrier(node):
            self.number -= 1
            if self.number < 0:
                self.number = 1 << 30
                return S.seq()
        return node


def races_without(program, number):
    drop = function_pass("Drop", lambda f, ctx: f.with_body(Without(number).visit(f.body)))
    with PassContext(config={"tir.add_lower_pass": [(3, drop)]}):
        return tvm.find_races(program, "cuda")


def each_is_needed(program):
    assert not tvm.find_races(program, "cuda")
    for number in range(barriers(kernel_of(program).body)):
        assert races_without(program, number), f"barrier {number} is not needed"


def pipeline(stages, orders, **how):
    sch = tiled_schedule(**how)
    k0 = next(rv for rv in sch.get_loops(sch.get_block("C_update"))
              if sch.get(rv).loop_var.name == "k_0")
    sch.annotate(k0, "software_pipeline_stage", stages)
    sch.annotate(k0, "software_pipeline_order", orders)
    return sch.mod


@pytest.mark.parametrize("stages, orders, count", [
    ([0, 0, 1], [0, 1, 2], 2), ([0, 0, 1], [1, 2, 0], 2), ([0, 0, 2], [0, 1, 2], 2),
    ([0, 0, 2], [1, 2, 0], 2), ([0, 0, 3], [1, 2, 0], 2),
])
def test_a_pipeline_waits_once_an_iteration(stages, orders, count):
    """And once for its end."""
    mod = pipeline(stages, orders, k=64)
    func = kernel_of(mod)
    assert in_loops(func) == [1]
    assert barriers(func.body) == count
    each_is_needed(mod)
    (counts,) = tvm.count_gpu(mod, "cuda")
    assert counts.barriers


def test_without_a_pipeline_it_waits_twice():
    mod = tiled_schedule(k=64).mod
    assert in_loops(kernel_of(mod)) == [2]
    each_is_needed(mod)


def test_virtual_threads_change_nothing():
    mod = pipeline([0, 0, 1], [0, 1, 2], k=64, vthreads=True)
    assert in_loops(kernel_of(mod)) == [1]
    each_is_needed(mod)


def test_a_pipeline_of_a_length_that_is_not_known():
    program = from_source("""
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 32), "float32")
    C = T.match_buffer(c, (n, 32), "float32")
    for t in T.thread_binding(32, thread="threadIdx.x"):
        for k in T.serial(n, annotations={"software_pipeline_stage": [0, 1],
                                          "software_pipeline_order": [0, 1]}):
            with T.block(""):
                T.reads(A[k, 0:32])
                T.writes(C[k, 0:32])
                B = T.alloc_buffer((32,), scope="shared")
                with T.block("B"):
                    T.reads(A[k, t])
                    T.writes(B[t])
                    B[t] = A[k, t] * T.float32(2)
                with T.block("C"):
                    T.reads(B[31 - t])
                    T.writes(C[k, t])
                    C[k, t] = B[31 - t]
""")
    assert in_loops(kernel_of(program)) == [1]
    for n in (1, 2, 5):
        a = np.random.rand(n, 32).astype("float32")
        given = [tvm.nd.array(x, tvm.cuda(0)) for x in (a, np.zeros_like(a))]
        tvm.build(program, target="cuda")(*given)
        np.testing.assert_array_equal(given[1].numpy(), 2 * a[:, ::-1])
        assert not tvm.find_races(program, "cuda", sizes={"n": n})
    assert in_loops(kernel_of(pipeline([0, 1, 2], [2, 1, 0], k=64))) == [1]


def exchange(index, other=None, scope="shared", where="True"):
    """Threads store to memory and load from it, in a loop."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((8, 8), "int32"), D: T.Buffer((64,), "int32"), C: T.Buffer((8, 8), "int32")):
    S = T.alloc_buffer((64,), "int32", scope="shared")
    for t in T.thread_binding(8, thread="threadIdx.x"):
        for i in range(8):
            with T.block("S"):
                v, vi = T.axis.opaque(8, t), T.axis.opaque(8, i)
                T.where({where})
                T.reads(S[0:64], D[0:64], A[0:8, 0:8])
                T.writes(S[0:64], D[0:64], C[0:8, 0:8])
                {"S" if scope == "shared" else "D"}[{index}] = A[v, vi]
                C[v, vi] = {"S" if scope == "shared" else "D"}[{other or index}]
""")


@pytest.mark.parametrize("scope", ["shared", "global"])
@pytest.mark.parametrize("index, other, where, count", [
    ("v", None, "True", 0),
    ("v * 8 + vi", None, "True", 0),
    ("v * 8 + vi", None, "t < 6", 0),
    ("vi", None, "t == 0", 0),
    ("7 - v", "7 - v", "True", 0),
    ("(v + vi) % 8", None, "True", 1),  # another thread's, an iteration later
    ("v", "7 - v", "True", 2),
    ("v + vi % 2 * 8", "7 - v + vi % 2 * 8", "True", 1),  # two versions
    ("v + vi % 3 * 8", "7 - v + (vi + 2) % 3 * 8", "i > 3", 1),
    ("v + vi * 8", "7 - v + vi * 8", "True", 1),
])
def test_what_threads_exchange(scope, index, other, where, count):
    program = exchange(index, other, scope, where)
    found = barriers(kernel_of(program).body)
    races = tvm.find_races(program, "cuda")
    assert not races, races
    if count:
        assert found >= count
        if found == count:
            each_is_needed(program)
    else:
        assert not found


def random_tiles(rng):
    """A product with tiles in shared memory, its loop a random pipeline."""
    sch = tiled_schedule(16, 16, rng.choice([8, 16, 24, 32, 40]), vector=rng.choice([1, 2, 4]),
                         vthreads=rng.random() < 0.5)
    loops = sch.get_loops(sch.get_block("C_update"))
    k0 = next(rv for rv in loops if sch.get(rv).loop_var.name == "k_0")
    stages = sorted(rng.randint(0, 3) for _ in range(3))
    orders = rng.sample(range(3), 3)
    sch.annotate(k0, "software_pipeline_stage", stages)
    sch.annotate(k0, "software_pipeline_order", orders)
    if rng.random() < 0.5:
        sch.annotate(k0, "pragma_auto_unroll_max_step", 64)
        sch.annotate(k0, "pragma_unroll_explicit", 1)
    return sch


def test_random_pipelines_have_no_races():
    done = 0
    for seed in itertools.count():
        sch = random_tiles(random.Random(seed))
        try:
            tvm.lower(sch.mod, target="cuda")
        except LowerError:
            continue
        assert not tvm.find_races(sch.mod, "cuda"), f"seed {seed}\n{sch.mod.script()}"
        done += 1
        if done == 12:
            break


def random_exchange(rng):
    """Statements of one loop that put values into versions of a tile and get them from there."""
    count = rng.choice([2, 3, 4])
    lines = []
    for number in range(rng.randint(2, 4)):
        version = f"(k + {rng.randint(0, 3)}) % {count} * 8"
        place = rng.choice(["t", "7 - t", "(t + k) % 8", "(t + 3) % 8"])
        if rng.random() < 0.5:
            lines.append(f"S[{version} + {place}] = A[t] + k * {number}")
        else:
            lines.append(f"C[{number}, k, t] = S[{version} + {place}]")
    body = "\n".join("            " + line for line in lines)
    inner = rng.random() < 0.3
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((4, 12, 8), "int32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("all"):
            T.reads(A[0:8])
            T.writes(C[0:4, 0:12, 0:8])
            S = T.alloc_buffer(({8 * count},), "int32", scope="shared")
            for z in range({8 * count}):
                if t == 0:
                    S[z] = z
            for {"q, k in T.grid(2, 12)" if inner else f"k in range({rng.randint(2, 12)})"}:
    {body.replace(chr(10), chr(10) + "    ")}
            C[0, 0, t] = C[0, 0, t] + S[t]
""")


def test_random_versions_have_no_races():
    for seed in range(60):
        program = random_exchange(random.Random(seed))
        races = tvm.find_races(program, "cuda")
        assert not races, f"seed {seed}\n{program.script()}\n{kernel_of(program)}\n{races}"


def test_a_schedule_that_needs_no_barrier_has_none():
    """Each thread keeps a row of its own in shared memory."""
    sch = Schedule(from_source("""
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), C: T.Buffer((8, 4), "float32")):
    B = T.alloc_buffer((8, 4), scope="shared")
    for i, j in T.grid(8, 4):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = A[v, w] + T.float32(1)
    for i, j in T.grid(8, 4):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = B[v, w] * T.float32(2)
"""))
    block = sch.get_block("C")
    i, j = sch.get_loops(block)
    sch.compute_at(sch.get_block("B"), j)
    sch.bind(i, "threadIdx.x")
    assert not barriers(kernel_of(sch.mod).body)
    assert not tvm.find_races(sch.mod, "cuda")


def filled(store, where="True", extent="4"):
    """Eight threads fill shared memory in a loop, then read what others have stored."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), C: T.Buffer((8, 64), "int32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        S = T.decl_buffer((64,), "int32", scope="shared")
        for k in range({extent}):
            if {where}:
                S[{store}] = A[k, t]
        for j in range(64):
            C[t, j] = S[63 - j]
""")


@pytest.mark.parametrize("store, where, count", [
    ("k * 8 + t", "True", []),
    ("(k * 8 + t) // 12 * 16 + (k * 8 + t) % 12", "True", []),  # rows of 12, padded to 16
    ("(k * 8 + t) % 20", "k * 8 + t < 20", []),
    ("t", "True", []),  # a thread's own, stored several times
    ("t * 2 + k % 2", "True", []),
    ("k + t", "True", [1]),  # other threads have stored there the iteration before
    ("t // 2", "t % 2 == k % 2", [1]),
    ("(k * 8 + t) % 20", "True", [1]),
    ("t", "k < t", []),
    ("(k + t) % 8", "k == 2", []),
])
def test_only_iterations_whose_threads_meet_wait(store, where, count):
    """A barrier stands in a loop where another thread stores to the same element in another
    iteration; else all of the loop is waited for once."""
    program = filled(store, where)
    found = in_loops(kernel_of(program))
    assert found == count
    assert barriers(kernel_of(program).body) == len(count) + 1
    assert not tvm.find_races(program, "cuda")


@pytest.mark.parametrize("index, count", [("k * 8 + t * 8 % 56", [1]), ("k % 2 * 4 + t * 8", [])])
def test_vectors_are_compared_by_their_lanes(index, count):
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 64), "int32"), C: T.Buffer((8, 96), "int32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        S = T.decl_buffer((96,), "int32", scope="shared")
        for k in range(4):
            S[T.Ramp({index}, 1, 4)] = A[k, T.Ramp(t * 8, 1, 4)]
        for j in range(96):
            C[t, j] = S[95 - j]
""")
    assert in_loops(kernel_of(program)) == count


def test_loops_whose_names_depend_on_the_thread_are_left_as_they_are():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), C: T.Buffer((8, 64), "int32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        S = T.decl_buffer((64,), "int32", scope="shared")
        for k in range(4):
            x: T.int32 = 7 - t + k
            S[x] = A[k, t]
        for j in range(64):
            C[t, j] = S[63 - j]
""")
    assert in_loops(kernel_of(program)) == [1]
    assert not tvm.find_races(program, "cuda")


@pytest.mark.parametrize("sizes", PADDED)
def test_tiles_with_padded_rows_are_fetched_without_waiting(sizes):
    """Threads fetch a tile together in several rounds: it waits twice, as without padding."""
    sch = padded_tiles(*sizes)
    kernel = kernel_of(sch.mod)
    assert in_loops(kernel) == [2], kernel.script()
    assert not tvm.find_races(sch.mod, "cuda")
