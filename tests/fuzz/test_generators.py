"""What the generators promise: programs that are well formed, steps for every primitive."""

import random

import pytest
from laws import check_program

from mlc_lab.schedule import InstructionKind, Schedule
from mlc_lab.script import tir as T
from mlc_lab.tir import verify_well_formed

from .harness import Draw
from .intrinsics import made_from
from .programs import program
from .steps import PRIMITIVES


def drawn(seed):
    return program(Draw(random.Random(seed).randint))


@pytest.mark.parametrize("seed", range(40))
def test_programs_are_well_formed_and_print_as_they_parse(seed):
    func = drawn(seed).parse()
    if func is not None:
        assert verify_well_formed(func)
        check_program(func)


def test_the_same_integers_draw_the_same_program():
    assert drawn(5).text == drawn(5).text


def test_few_programs_read_what_nobody_wrote():
    assert sum(drawn(seed).parse() is None for seed in range(60)) < 12


def test_every_primitive_that_changes_programs_is_tried():
    names = {kind.method for kind in InstructionKind.registry.values()
             if not kind.pure or kind.sampling}
    assert names <= set(PRIMITIVES)


@pytest.mark.parametrize("seed", range(6))
def test_an_intrinsic_made_of_an_inner_loop_fits_it(seed):
    @T.prim_func
    def main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((4, 6), "float32")):
        for i, j_0, j_1 in T.grid(4, 3, 2):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial(6, j_0 * 2 + j_1)
                B[vi, vj] = A[vi, vj] + T.float32(1)

    sch = Schedule(main)
    at = sch.get_loops("B")[seed % 3]
    other = sch.copy()
    made = other.get(other.blockize(at))
    assert made_from(made, "fuzz_made_0", Draw(random.Random(seed).randint))
    sch.tensorize(at, "fuzz_made_0")
