"""Simplify by what elements of buffers are known to hold."""

import random
import textwrap

import numpy as np
import pytest

from mlc_lab.backend.interp import interpret
from mlc_lab.ir import structural_equal
from mlc_lab.ir.module import IRModule
from mlc_lab.ir.transform import PassContext
from mlc_lab.lower import Simplify
from mlc_lab.script import from_source

OPTIONS = {"tir.Simplify": {"propagate_knowns_to_prove_conditional": True,
                            "propagate_knowns_to_simplify_expressions": True}}


def program(text):
    return from_source(
        '@T.prim_func\ndef main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), '
        "n: T.int32):\n" + textwrap.indent(textwrap.dedent(text), "    "))


def simplified(func, run=True):
    with PassContext(config=OPTIONS):
        after = Simplify()(IRModule({"main": func}))["main"]
    rng = np.random.default_rng(0)
    for n in [0, 1, 2, 3, 4, 15, 2 ** 31 - 1] if run else []:
        given = rng.integers(0, 4, (2, 16), "int32")
        want, got = [[a.copy() for a in given] for _ in range(2)]
        for f, data in ((func, want), (after, got)):
            interpret(f, *data, n)
        assert all((a == b).all() for a, b in zip(want, got)), (func, after, n)
    return after


def becomes(before, after, run=True):
    got, want = simplified(program(before), run), Simplify()(IRModule({"main": program(after)}))
    assert structural_equal(got, want["main"]) is True, got.script()


def stays(text):
    becomes(text, text)


@pytest.mark.parametrize("loop, element", [
    ("for i in range(16):", "i"), ("for i in range(4, 20):", "i - 4"),
    ("for i in T.parallel(16):", "i"), ("for i in range(16):", "15 - (15 - i)")])
def test_what_a_loop_has_stored_decides_conditions_behind_it(loop, element):
    becomes(f"""
        {loop}
            A[{element}] = {element} + 1
        for j in range(16):
            if A[j] == j + 1:
                B[j] = 42
            else:
                B[j] = 7
    """, f"""
        {loop}
            A[{element}] = {element} + 1
        for j in range(16):
            B[j] = 42
    """)


def test_values_follow_one_from_another():
    becomes("""
        A[0] = 5
        A[0] = A[0] + 7
        B[A[0] - 12] = A[1]
    """, """
        A[0] = 5
        A[0] = 12
        B[A[0] - 12] = A[1]
    """)


def test_a_vector_is_known_element_by_element():
    becomes("""
        A[0:4] = T.Ramp(11, 2, 4)
        if A[2] == 15 and A[3] > 16:
            B[0] = 1
    """, """
        A[0:4] = T.Ramp(11, 2, 4)
        B[0] = 1
    """)


def test_what_is_assumed_is_known_where_it_is_assumed():
    becomes("""
        for i in range(16):
            T.evaluate(T.assume(i < 14 or A[i] == 0))
        for i in range(16):
            if 14 <= i:
                if A[i] == 0:
                    B[i] = 1
            else:
                if A[i] == 0:
                    B[i] = 2
    """, """
        for i in range(16):
            T.evaluate(T.assume(i < 14 or A[i] == 0))
        for i in range(16):
            if 14 <= i:
                B[i] = 1
            else:
                if A[i] == 0:
                    B[i] = 2
    """, run=False)  # the arguments of a run are not as assumed


def test_a_condition_is_known_until_its_element_is_written():
    becomes("""
        if A[0] == n:
            A[0] = A[0] + 1
            if A[0] == n:
                B[0] = 5
            else:
                B[0] = 10
    """, """
        if A[0] == n:
            A[0] = A[0] + 1
            B[0] = 10
    """)


def test_a_turn_finds_its_own_element_as_it_was_before_the_loop():
    becomes("""
        for i in range(16):
            B[i] = 0
        for i in range(16):
            if B[i] < 10:
                B[i] = A[i]
            else:
                B[i] = 3
    """, """
        for i in range(16):
            B[i] = 0
        for i in range(16):
            B[i] = A[i]
    """)


@pytest.mark.parametrize("text", [
    """
    A[0] = 0
    A[n % 16] = 1
    if A[0] == 0:
        B[0] = 1
    """,
    """
    for i in range(16):
        A[i] = 0
    for i in range(16):
        A[n % 16] = 1
        if A[i] == 0:
            B[i] = 1
    """,
    """
    for i in range(n % 3):
        A[0] = 4
    if A[0] == 4:
        B[0] = 1
    """,
    """
    for i in range(16):
        A[i] = 0
    for i in range(15):
        if A[i] == 0:
            A[i + 1] = 1
    """,
    """
    A[0] = n + 1
    if A[0] > n:
        B[0] = 1
    """,
    """
    if n > 3:
        A[0] = 1
    if A[0] == 1:
        B[0] = 1
    """,
    """
    A[0] = 0
    while B[0] < 3:
        B[0] = B[0] + 1
        if A[0] == 0:
            A[0] = B[0]
    """,
    """
    for i in range(16):
        A[i] = i
        if i == 4:
            T.break_loop()
    if A[9] == 9:
        B[0] = 1
    """])
def test_what_may_have_changed_is_not_known(text):
    stays(text)


def test_blocks_and_pointers_are_gone_over_without_what_is_known():
    stays("""
        A[0] = 0
        for i in range(16):
            with T.block("b"):
                v = T.axis.spatial(16, i)
                T.reads(A[0])
                T.writes(B[v])
                if A[0] == 0:
                    B[v] = 1
    """)
    stays("""
        A[0] = 0
        with T.LetStmt(T.address_of(A[0]), var=T.handle("int32")) as p:
            C = T.decl_buffer((16,), "int32", data=p)
            C[0] = 1
            if A[0] == 0:
                B[0] = 1
    """)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_mean_the_same(seed):
    """Stores, loops and conditions on a few elements, so that many are known and many change."""
    draw = random.Random(seed)

    def index(loops):
        kinds = ["0", "1", "n % 3", *(f"{v}" for v in loops), *(f"{v} + 1" for v in loops),
                 *(f"3 - {v}" for v in loops)]
        return draw.choice(kinds)

    def value(loops):
        return draw.choice([str(draw.randrange(3)), f"A[{index(loops)}]", f"B[{index(loops)}] + 1",
                            *loops])

    def condition(loops):
        op = draw.choice(["==", "!=", "<", ">="])
        return f"{draw.choice('AB')}[{index(loops)}] {op} {value(loops)}"

    def block(depth, loops):
        lines = []
        for _ in range(draw.randrange(1, 4)):
            kind = draw.randrange(6) if depth < 3 else 0
            if kind < 2:
                lines.append(f"{draw.choice('AB')}[{index(loops)}] = {value(loops)}")
                continue
            if kind < 4:
                var = f"i{depth}_{len(lines)}"
                lines.append(f"for {var} in range({draw.choice(['1', '2', '4', 'n % 3'])}):")
                inner = block(depth + 1, (*loops, var))
            else:
                lines.append(f"if {condition(loops)}:")
                inner = block(depth + 1, loops)
            lines += ["    " + line for line in inner]
            if kind == 5:
                lines.append("else:")
                lines += ["    " + line for line in block(depth + 1, loops)]
        return lines

    simplified(program("\n".join(block(0, ()))))
