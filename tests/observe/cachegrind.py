"""Runs a kernel under valgrind's cachegrind, with the caches and the addresses of the simulator.

The kernel is linked into an executable that does nothing else: no C library, its buffers in one
array that lies as the simulator's arena does. So what cachegrind counts is the kernel's own, but
for a handful of accesses of the stack.
"""

import platform
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from mlc_lab.backend import llvm
from mlc_lab.lower.pipeline import as_module
from mlc_lab.machine.caches import as_hierarchy
from mlc_lab.observe.instrument import CountingGen, instrument
from mlc_lab.runtime import jit

#: what this harness needs; a machine that has valgrind and lacks another part is set up wrong
VALGRIND = shutil.which("valgrind")
needs_valgrind = pytest.mark.skipif(
    VALGRIND is None or sys.platform != "linux" or platform.machine() != "x86_64",
    reason="valgrind is not installed, or this is no x86-64 Linux, which the harness is for",
)
# Valgrind 3.19 knows AVX2 and no AVX-512.
CPU = "haswell"


class Quiet(CountingGen):
    """Buffers where the simulator has them, but nothing is reported."""

    def report(self, *args):
        pass

    report_lanes = report


def executable(program, folder, registers, optimise):
    """Link the kernel into a program of its own; gives the path."""
    made = instrument(as_module(program), as_hierarchy("1K:2"), registers=registers)
    plan, where = made.plan, jit.machine(jit.host_cpu()[0], CPU, "", 3)
    emitter = type("Plain", (Quiet,), {"plan": plan})
    text, _, _ = llvm.generate(made.lowered, where, made.name, emitter)
    size = plan.mask + 1
    parameters = [p for p in plan.places.values() if p.kind == "parameter"]
    pointers = ", ".join(
        f"ptr getelementptr (i8, ptr @arena, i64 {p.base})" for p in parameters)
    kernel = re.search(r'define internal i32 (@\S+_kernel)\(', text)[1]
    start = f"""
; xor edi, edi; mov eax, 60; syscall: LLVM as we have it assembles no text.
@leave = internal constant [9 x i8] c"\\31\\FF\\B8\\3C\\00\\00\\00\\0F\\05", section ".text"
@arena = internal global [{size} x i8] zeroinitializer, align {max(size, 1 << 22)}
define void @_start() noreturn nounwind {{
  %r = call i32 {kernel}({pointers})
  call void @leave()
  unreachable
}}
"""
    text = text.replace("@sim_arena = external global ptr",
                        "@sim_arena = internal constant ptr @arena") + start
    obj = jit.compile_ir(text, where, level=3 if optimise else 0).obj
    (folder / "kernel.o").write_bytes(obj)
    path = folder / "kernel"
    # The packed functions in the object call tvm-ffi; nobody calls them here.
    subprocess.run(["ld", "-static", "-o", path, folder / "kernel.o",
                    "--unresolved-symbols=ignore-all"], check=True, capture_output=True)
    return path


def cachegrind(program, caches, folder, registers=False, optimise=False):
    """Counts of data accesses under cachegrind: reads, writes, misses of D1 and of LL."""
    first, last = as_hierarchy(caches)
    path = executable(program, folder, registers, optimise)
    out = folder / "counts"
    options = [f"--D1={first.size},{first.ways},{first.line}",
               f"--LL={last.size},{last.ways},{last.line}", f"--I1=32768,8,{first.line}"]
    done = subprocess.run(
        [VALGRIND, "--tool=cachegrind", "--cache-sim=yes", f"--cachegrind-out-file={out}",
         *options, str(path)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    told = out.read_text()
    names = re.search(r"^events: (.*)$", told, re.M)[1].split()
    values = map(int, re.search(r"^summary:\s+(.*)$", told, re.M)[1].split())
    count = dict(zip(names, values, strict=True))
    return SimpleNamespace(
        reads=count["Dr"], writes=count["Dw"], misses=count["D1mr"] + count["D1mw"],
        last_misses=count["DLmr"] + count["DLmw"], read_misses=count["D1mr"],
        write_misses=count["D1mw"])  # fmt: skip
