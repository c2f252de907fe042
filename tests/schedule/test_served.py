"""Whether a write fills what a read needs: what is claimed holds where everything is tried."""

import random

import pytest

from mlc_lab.schedule.footprint import footprint, loops_of
from mlc_lab.schedule.served import all_served, serves
from mlc_lab.schedule import Schedule
from mlc_lab.script import tir as T
from mlc_lab.tir import Var, decl_buffer
from mlc_lab.tir.expr import IntImm

from .test_conflict import everything, random_access


@pytest.mark.parametrize("seed", range(200))
def test_what_is_called_served_was_written_in_the_same_iteration(seed):
    rng = random.Random(seed)
    buffer = decl_buffer([4] * rng.randint(1, 2), "float32", "A")
    around = [(Var(f"i{n}", "int32"), IntImm("int32", 0), IntImm("int32", rng.randint(1, 3)))
              for n in range(rng.randint(1, 2))]
    write, read = (random_access(rng, buffer, around, w) for w in (True, False))
    if serves(write, read, around):
        filled = everything(write, around)
        inside = {(at, e) for at, e in everything(read, around) if all(0 <= x < 4 for x in e)}
        assert inside <= filled


def served(func, depth):
    """Whether each iteration of the first loops around block C fills what it reads of B."""
    sch = Schedule(func)
    loops = [sch.get(rv) for rv in sch.get_loops(sch.get_block("C"))][:depth]
    accesses = [a for a in footprint(loops[-1].body) if a.buffer.name == "B"]
    return all_served(accesses, loops_of(loops))


def test_tiles_of_a_stencil_are_filled_though_they_do_not_divide():
    @T.prim_func
    def func(A: T.Buffer((30,), "float32"), C: T.Buffer((28,), "float32")):
        B = T.alloc_buffer((30,))
        for i in range(4):
            for x, y in T.grid(2, 6):
                with T.block("B"):
                    v = T.axis.spatial(30, i * 8 + (x * 6 + y))
                    T.where(x * 6 + y < 10 and i * 8 + (x * 6 + y) < 30)
                    B[v] = A[v]
            for x in range(8):
                with T.block("C"):
                    v = T.axis.spatial(28, i * 8 + x)
                    T.where(i * 8 + x < 28)
                    C[v] = B[v] + B[v + 2]

    assert served(func, 1)


def test_elements_that_are_shared_out_by_quotient_and_remainder_are_filled():
    @T.prim_func
    def func(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
        B = T.alloc_buffer((16, 16))
        for i, k in T.grid(2, 4):
            for f, g in T.grid(8, 8):
                with T.block("B"):
                    v0 = T.axis.spatial(16, i * 8 + (f * 8 + g) // 4)
                    v1 = T.axis.spatial(16, k * 4 + (f * 8 + g) % 4)
                    T.where(f * 8 + g < 32)
                    B[v0, v1] = A[v0, v1]
            for x, y in T.grid(8, 4):
                with T.block("C"):
                    v0 = T.axis.spatial(16, i * 8 + x)
                    v1 = T.axis.spatial(16, k * 4 + y)
                    C[v0, v1] = B[v0, v1]

    assert served(func, 2)


def test_a_sum_is_filled_by_its_init_and_not_by_the_one_of_a_neighbour():
    @T.prim_func
    def func(A: T.Buffer((8, 4), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((9,))
        for i in range(8):
            for k in range(4):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]

    @T.prim_func
    def ahead(A: T.Buffer((8, 4), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((9,))
        for i in range(8):
            for k in range(4):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi + 1]

    assert served(func, 1)
    assert not served(ahead, 1)
