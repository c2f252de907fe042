"""The three walks of docs/architecture.md, gone: every file that one names is passed, in its order.

Calls are noted while the program of the walk runs. A walk names files, some of them with a function
("`state.py`, `replace`"); each must be called after the one named before it. Constructors do not
count: a list of passes is made before the first of them runs.
"""

import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.script import from_source

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(mlc_lab/[\w/]+\.py)`(?:, `(\w+)`)?")
MATMUL = from_source("""
@T.prim_func
def main(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 50), "float32"),
         C: T.Buffer((32, 50), "float32")):
    for i, j, k in T.grid(32, 50, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""")
OPTIMIZED = 1  # the flag of a code object that is a function, and no body of a class or module


def steps(title):
    """The files, with functions or "", that each step of a walk names, in their order."""
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    parts = re.split(r"^(?=\d+\. )", section, flags=re.M)[1:]
    assert [part.partition(".")[0] for part in parts] == [str(n + 1) for n in range(len(parts))]
    return [NAMED.findall(part.partition("\n\n")[0]) for part in parts]


class Calls:
    """While it is entered: the calls in the files that a walk names, in all threads."""

    def __init__(self, files):
        self.names = {str(ROOT / file): file for file in files}
        self.made = []  # (file, function)

    def __enter__(self):
        threading.setprofile(self.note)
        sys.setprofile(self.note)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        threading.setprofile(None)

    def note(self, frame, event, _):
        if event == "call":
            code = frame.f_code
            file = self.names.get(code.co_filename)
            if file and code.co_flags & OPTIMIZED:
                self.made.append((file, code.co_name))


def is_meant(call, file, wanted):
    """Whether a call is of the function that a walk names, or of any but a constructor."""
    where, function = call
    constructs = function == "__init__" or function[0].isupper()
    return where == file and (function == wanted if wanted else not constructs)


def check(walk, made):
    """That calls follow a walk. Between two steps of it other files may be passed."""
    passed = {file for file, _ in made}
    assert [file for step in walk for file, _ in step if file not in passed] == []
    at = 0
    for number, step in enumerate(walk, 1):
        file, wanted = step[0]
        later = [k for k in range(at, len(made)) if is_meant(made[k], file, wanted)]
        assert later, f"step {number}: no call of {file} {wanted} after step {number - 1}"
        at = later[0]


def files(walk):
    return {file for step in walk for file, _ in step}


def test_a_loop_factor():
    def go():
        sch = tvm.tir.Schedule(MATMUL)
        i, j, k = sch.get_loops(sch.get_block("C"))
        with Calls(files(walk)) as calls:
            j_0, j_1 = sch.split(j, factors=[None, 32])
            sch.reorder(i, j_0, k, j_1)
            sch.vectorize(j_1)
            tvm.build(sch.mod)["main"]
        return calls.made

    walk = steps("A loop factor: from `sch.split` to machine code")
    go()  # what is loaded late is there now
    check(walk, go())


def test_a_convolution():
    torch = pytest.importorskip("torch")
    from mlc_lab import relax
    from mlc_lab.relax.frontend.torch import from_exported_program

    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                                torch.nn.Conv2d(8, 8, 3), torch.nn.ReLU())
    x = torch.randn(1, 3, 12, 12)
    program = torch.export.export(model.eval(), (x,))
    walk = steps("A convolution: from torch to a kernel")
    relax.build(from_exported_program(program))  # what is loaded late is there now
    with Calls(files(walk)) as calls:
        vm = relax.VirtualMachine(relax.build(from_exported_program(program)), tvm.cpu())
        (found,) = vm["main"](tvm.nd.array(x.numpy()))
    check(walk, calls.made)
    np.testing.assert_allclose(found.numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_one_trial(tmp_path):
    from mlc_lab import meta_schedule as ms

    walk = steps("One trial of a search")
    with Calls(files(walk)) as calls:
        ms.tune_tir(MATMUL, "llvm --num-cores=1", tmp_path, 14, seed=1, verbose=False)
    check(walk, calls.made)


def test_a_step_out_of_order_is_found():
    walk = [[("a.py", "")], [("b.py", "run"), ("c.py", "")]]
    check(walk, [("a.py", "f"), ("b.py", "run"), ("c.py", "f")])
    with pytest.raises(AssertionError, match="step 2"):
        check(walk, [("b.py", "run"), ("a.py", "f"), ("b.py", "Make"), ("c.py", "f")])
    with pytest.raises(AssertionError, match="c.py"):
        check(walk, [("a.py", "f"), ("b.py", "run")])
