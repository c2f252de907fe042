"""Regions a block touches, found from its body (compared with TVM in tests/oracle)."""

import textwrap

import pytest

from mlc_lab.script import from_source
from mlc_lab.tir import pre_order
from mlc_lab.tir.access import block_access_regions
from mlc_lab.tir.stmt import Block


def regions(inner):
    """(reads, writes) of the block whose body is `inner`, as text."""
    func = from_source(
        '@T.prim_func\ndef f(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), '
        'N: T.Buffer((16,), "int32")):\n    for i in range(4):\n        with T.block("b"):\n'
        "            vi = T.axis.spatial(4, i)\n" + textwrap.indent(inner, " " * 12),
        check_well_formed=False)
    block = next(n for n in pre_order(func.body) if type(n) is Block and n.name_hint == "b")
    text = lambda part: ", ".join(map(repr, part))
    again = block_access_regions(block)
    assert text(again[0]) == text(block.reads) and text(again[1]) == text(block.writes)
    return text(block.reads), text(block.writes)


CASES = {
    "B[vi, 0] = A[vi, 1]": ("A[vi, 1]", "B[vi, 0]"),
    "B[vi, 0] = A[vi, 1] + A[vi + 2, 4]": ("A[vi:vi + 3, 1:5]", "B[vi, 0]"),
    "for k in range(4):\n    B[vi * 4 + k, k * 2] = A[k, 15 - k]": (
        "A[0:4, 12:16]", "B[vi * 4:vi * 4 + 4, 0:7]"),
    "for k in range(16):\n    B[k // 4, k % 4] = A[(vi * 4 + k) // 4, k // 8]": (
        "A[vi:vi + 4, 0:2]", "B[0:4, 0:4]"),
    "for k in range(8):\n    if k >= 2 and k < 6:\n        B[vi, k] = A[vi, k + 1]\n"
    "    else:\n        B[vi, 15] = 0.0": ("A[vi, 3:7]", "B[vi, 2:16]"),
    "for k in range(8):\n    B[vi, k] = T.if_then_else(k < 4, A[vi, k], A[vi, k + 4])": (
        "A[vi, 0:12]", "B[vi, 0:8]"),
    "B[vi, 0] = A[N[vi], N[vi + 1]]": ("A[N[vi], N[vi + 1]], N[vi:vi + 2]", "B[vi, 0]"),
    "B[vi, 0] = A[T.Cast('int32', B[vi, 1]), 0]": ("A[0:16, 0], B[vi, 1]", "B[vi, 0]"),
    "B[vi, T.Ramp(0, 2, 4)] = A[vi, T.Ramp(vi, 1, 4)]": ("A[vi, vi:vi + 4]", "B[vi, 0:7]"),
    "B[vi, T.Ramp(7, -2, 4)] = A[vi, T.Ramp(3 + vi, -1, 4)]": ("A[vi, vi:vi + 4]", "B[vi, 1:8]"),
    "x = vi * 2\nB[x, 0] = A[x + 1, 0]": ("A[vi * 2 + 1, 0]", "B[vi * 2, 0]"),
    "for k in range(vi):\n    B[vi, k] = A[k, k]": ("A[0:vi, 0:vi]", "B[vi, 0:vi]"),
    "for k in range(8):\n    if k == 3:\n        B[vi, k] = 0.0": ("", "B[vi, 3]"),
    "for k in range(8):\n    if not k < 3:\n        B[vi, k] = 0.0": ("", "B[vi, 3:8]"),
    "for k in range(8):\n    if 5 > k:\n        B[vi, k] = 0.0": ("", "B[vi, 0:5]"),
    "for k in range(2):\n    B[vi, k] = T.if_then_else(k >= 3, A[vi, k], T.float32(0))": (
        "A[vi, 3:3]", "B[vi, 0:2]"),
    "C = T.decl_buffer((4,), 'float32', data=A.data)\nC[0] = B[vi, 0]": ("B[vi, 0]", ""),
}


@pytest.mark.parametrize("inner", CASES)
def test_regions(inner):
    assert regions(inner) == CASES[inner]


def test_a_pointer_makes_its_buffer_opaque_and_access_ptr_does_not():
    func = from_source("""
        @T.prim_func
        def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
            with T.block("b"):
                T.reads(A[0:16])
                T.writes(B[0:16])
                T.evaluate(T.call_extern(
                    "int32", "f", A.data, A.access_ptr("r", offset=4, extent=2),
                    B.access_ptr("w")))
    """)
    reads, writes, opaque = block_access_regions(
        func.body.block, {b.data: b for b in func.buffers})
    assert [repr(r) for r in reads] == ["A[4:6]"]
    assert [repr(r) for r in writes] == ["B[0:16]"]
    assert [repr(r) for r in opaque] == ["A[0:16]"]


@pytest.mark.parametrize("inner", [
    "x0: T.int32 = {0}\n" + "\n".join(f"x{n + 1}: T.int32 = x{n} + x{n}" for n in range(64))
    + "\nB[x64, 0] = A[{0}, 0]",
    "".join("    " * n + f'with T.block("b{n}"):\n' + "    " * n + f"    v{n} = T.axis.spatial(16, "
            + (f"v{n - 1} + v{n - 1}" if n else "{0}") + ")\n" for n in range(16))
    + "    " * 16 + "B[v15, 0] = A[{0}, 0]"])
@pytest.mark.parametrize("at", ["vi", "k"])
def test_what_doubles_with_each_level_is_not_unfolded(inner, at):
    """It is 2 ** 64 parts, or 2 ** 15: the whole dimension is what is said of it."""
    text = inner.format(at)
    if at == "k":
        text = "for k in range(vi):\n" + textwrap.indent(text, "    ")
    reads, writes = regions(text)
    assert reads == ("A[vi, 0]" if at == "vi" else "A[0:vi, 0]") and writes == "B[0:16, 0]"


@pytest.mark.parametrize("places, said", [
    (range(1, 3), "A[T.min(vi % 7, vi % 11):"), (range(1, 1000), "A[0:16, 0]")])
def test_ends_that_cannot_be_compared_are_few(places, said):
    read = " + ".join(f"A[vi % {4 * k + 3}, 0]" for k in places)
    assert regions(f"B[vi, 0] = {read}")[0].startswith(said)

