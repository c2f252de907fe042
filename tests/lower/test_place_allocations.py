"""PlaceAllocations: which memory lies on the stack, and what is freed on every way out."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mlc_lab.build import build
from mlc_lab.lower import PlaceAllocations, lower
from mlc_lab.lower.place_allocations import is_on_stack
from mlc_lab.script import from_source
from mlc_lab.tir import stmt as S
from mlc_lab.tir.functor import pre_order


def chain(sizes, dtype="float32"):
    """A program in which all of so many buffers are in use at the same time."""
    lines = ["@T.prim_func",
             f'def main(A: T.Buffer((4,), "{dtype}"), C: T.Buffer((4,), "{dtype}")):']
    lines += [f'    B{n} = T.alloc_buffer(({size},), "{dtype}")' for n, size in enumerate(sizes)]
    lines += ["    for t in range(2):"]
    for n, size in enumerate(sizes):
        lines += [f"        for i in range({size}):",
                  f"            B{n}[i] = A[i % 4] + T.{dtype}({n})"]
    lines += ["    for i in range(4):", f"        C[i] = T.{dtype}(0)"]
    for n in range(len(sizes)):
        lines += ["    for i in range(4):", f"        C[i] = C[i] + B{n}[i]"]
    return from_source("\n".join(lines))


def placed(func):
    """Of each allocation of a lowered function: its elements, and whether it is on the stack."""
    mod = lower(func)
    assert PlaceAllocations()(mod) is mod
    return [(int(n.extents[0]), is_on_stack(n)) for n in pre_order(mod["main"].body)
            if type(n) is S.Allocate]


def test_small_pieces_lie_on_the_stack():
    assert placed(chain([4096, 4097, 8])) == [(4096, True), (4097, False), (8, True)]
    assert placed(chain([2048, 2049], "float64")) == [(2048, True), (2049, False)]


def test_a_stack_is_small():
    """One that holds all of these would be larger than that of a process."""
    found = placed(chain([4096] * 600))
    assert [stack for _, stack in found] == [True] * 16 + [False] * 584


@pytest.mark.slow
def test_many_pieces_together():
    a, c = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    build(chain([4096] * 600))["main"](a, c)
    np.testing.assert_array_equal(c, 600 * a + sum(range(600)))


def test_what_a_program_says_of_its_stack_is_not_heeded():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    big = T.allocate([1073741824], "float32", "global", annotations={"on_stack": True})
    b = T.Buffer((1073741824,), "float32", data=big)
    for i in range(4):
        b[i] = A[i]
    for i in range(4):
        A[i] = b[i] + T.float32(1)
""")
    mod = PlaceAllocations()(lower(func, until="SplitVector"))
    assert not any(is_on_stack(n) for n in pre_order(mod["main"].body) if type(n) is S.Allocate)


def test_memory_is_freed_where_an_assertion_fails():
    """In a process of its own: threads of other tests reserve addresses meanwhile."""
    code = "from lower.test_place_allocations import failures; print(failures())"
    folder = str(Path(__file__).resolve().parent.parent)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join([folder, *sys.path])})
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 50_000  # pages: 200 MB of 9.6 GB


def failures():
    """How many pages of addresses a process has more after 50 failures; 0 where it is not told.

    Each failure leaves three pieces of 64 MiB: kept, they would fill the memory."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), n: T.int32):
    B = T.alloc_buffer((16777216,), "float32")
    C = T.alloc_buffer((16777216,), "float32")
    D = T.alloc_buffer((16777216,), "float32")
    for i in range(4):
        B[i * 4000000] = A[i]
    for i in range(4):
        C[i * 4000000] = B[i * 4000000]
    for i in range(4):
        D[i * 4000000] = B[i * 4000000] + C[i * 4000000]
        assert n > 0, "n is positive"
    for i in range(4):
        A[i] = D[i * 4000000] + B[i * 4000000] + C[i * 4000000]
""")
    run, a = build(func)["main"], np.ones(4, "float32")
    statm = Path("/proc/self/statm")
    before = int(statm.read_text().split()[0]) if statm.exists() else 0
    for _ in range(50):
        with pytest.raises(AssertionError, match="n is positive"):
            run(a, 0)
    after = int(statm.read_text().split()[0]) if statm.exists() else 0
    run(a, 1)
    np.testing.assert_array_equal(a, 4)
    return after - before
