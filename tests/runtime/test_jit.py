"""Compiling with LLVM: what it keeps, and in which order it lets go."""

import subprocess
import sys


KEPT = """
import gc, sys
from mlc_lab.runtime import jit

frames = []


def keep(frame, event, arg):
    if frame.f_code.co_filename == jit.__file__:
        frames.append([frame, frame.f_locals, frames])


text = "define i32 @f(i32 %x) {\\n  %y = add i32 %x, 1\\n  ret i32 %y\\n}\\n"
for _ in range(40):
    sys.setprofile(keep)
    made = jit.compile_ir(text)
    made.ll, made.asm, made.obj
    for wrong in ("define i32 @f(", text.replace("%y = add i32 %x", "%y = add i64 %x")):
        try:
            jit.compile_ir(text, imports=[wrong])
        except ValueError:
            pass
    sys.setprofile(None)
    frames = []
    gc.collect()
print("alive")
"""


def test_frames_that_something_keeps_do_not_end_the_process():
    """A profiler or a traceback may keep LLVM's modules in a cycle with their context."""
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, timeout=300)
    assert done.stdout == "alive\n", done.stderr
