"""What lives in which vector register of an inner loop."""

import re

import pytest

from mlc_lab.observe.inner_loop import InnerLoop
from mlc_lab.observe.live_pages import convolution, matrix_product
from mlc_lab.observe.registers import accumulators, held, operands, sums
from mlc_lab.observe.why import inner_facts
from mlc_lab.script import from_source

PRODUCT = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(4):
        C[0:8] = C[0:8] + T.Broadcast(A[i], 8) * B[0:8]
""")
STORES = {7: [PRODUCT.body.body]}


def loop(*lines):
    kept = {n for n, line in enumerate(lines) if line.endswith("Reload")}
    return InnerLoop([line.partition(" #")[0] for line in lines], [(7,)] * len(lines), {7},
                     on_stack=kept)


def told(found):
    return {name: one["what"] for one in found for name in one["registers"]}


def test_a_product_in_registers_of_x86():
    found = told(held(loop(
        "vmovups (%rdx), %ymm1", "vbroadcastss 4(%rsi), %ymm2",
        "vfmadd231ps %ymm2, %ymm1, %ymm0", "vmovups 32(%rsp), %ymm3 # Reload",
        "vmulps %ymm1, %ymm2, %ymm4",
        "addq $4, %rsi", "jne .LBB0_1"), STORES))
    assert found == {
        "ymm0": "sums of C", "ymm1": "vectors of B", "ymm2": "an element of A in every lane",
        "ymm3": "a value that was kept on the stack", "ymm4": "values on their way"}


def test_a_product_in_registers_of_arm():
    found = told(held(loop(
        "ldr q1, [x1], #16", "ld1r {v2.4s}, [x2]", "fmla v0.4s, v1.4s, v2.4s", "b.ne .LBB0_1"),
        STORES))
    assert found["v0"] == "sums of C" and found["v1"] == "vectors of B"


def test_a_register_may_hold_one_thing_after_another():
    found = told(held(loop("vmovups (%rdx), %ymm1", "vbroadcastss 4(%rsi), %ymm1"), STORES))
    assert found == {"ymm1": "vectors of B, then an element of A in every lane"}


def test_where_the_result_is_stored_in_the_loop_it_may_be_loaded_too():
    found = told(held(loop("vmovups (%rdx), %ymm1", "vmovups %ymm1, (%rcx)"), STORES))
    assert found == {"ymm1": "vectors of C or B"}


@pytest.mark.parametrize(("page", "target", "vector", "element"), [
    (matrix_product(), "C", "B_global", "A"),
    (convolution()["vectors of channels"], "Y_global", "W_global", "X_global")])
def test_of_real_programs_each_register_is_named_for_its_buffer(page, target, vector, element):
    facts = inner_facts(page.mod)
    found = facts["held"]
    names = [name for one in found for name in one["registers"]]
    assert len(set(names)) == len(names)
    assert len({re.sub(r"\D", "", name) for name in names}) <= facts["of"]
    texts = " ".join(one["what"] for one in found)
    assert f"sums of {target}" in texts and f"vectors of {vector}" in texts
    # an operand that is read from memory into every lane of an FMA takes no register
    assert f"an element of {element}" in texts or any("{1to" in line for line in facts["text"])
    of_target = [one["registers"] for one in found if f"sums of {target}" in one["what"]]
    assert sum(map(len, of_target)) == facts["sums"]


def test_operands_have_the_result_first():
    assert operands("vfmadd231ps (%rax,%rcx,4), %ymm1, %ymm0") == ["%ymm0", "%ymm1",
                                                                   "(%rax,%rcx,4)"]
    assert sums(loop("vaddps %ymm1, %ymm0, %ymm0")) == {"%ymm0"}


@pytest.mark.parametrize(("lines", "registers", "memory"), [
    # what is added to comes from memory and goes there again
    (["vmovups (%r13), %ymm1", "vfmadd231ps %ymm2, %ymm3, %ymm1", "vmovups %ymm1, (%r13)"],
     set(), {"(%r13)"}),
    # at an address that comes from the stack, the same in each iteration
    (["movq 8(%rsp), %rax # Reload", "vaddps (%rax), %ymm0, %ymm1", "vmovups %ymm1, (%rax)",
      "movq 16(%rsp), %rax # Reload", "vaddps (%rax), %ymm0, %ymm1", "vmovups %ymm1, (%rax)"],
     set(), {"([8(%rsp)])", "([16(%rsp)])"}),
    # at the next address in each iteration: no sum
    (["vmovups (%r13), %ymm1", "vaddps %ymm2, %ymm1, %ymm1", "vmovups %ymm1, (%r13)",
      "addq $32, %r13"], set(), set()),
    # one sum in a register, one on the stack
    (["vaddps %ymm2, %ymm0, %ymm0", "vmovups 64(%rsp), %ymm1", "vaddps %ymm2, %ymm1, %ymm1",
      "vmovups %ymm1, 64(%rsp)", "addq $32, %rax"], {"%ymm0"}, {"64(%rsp)"}),
    # of ARM a register has several names
    (["ldr q0, [x8]", "fmla v0.4s, v1.4s, v2.4s", "str q0, [x8]"], set(), set()),
    (["fmla v0.4s, v1.4s, v2.4s", "str q0, [x8], #16"], {"v0"}, set()),
])
def test_a_sum_in_memory_is_no_sum_in_a_register(lines, registers, memory):
    one = loop(*lines)
    assert sums(one) == registers and accumulators(one) == registers | memory
