"""The same program is written the same way by apache-tvm, and blocks read and write the same."""

import re


from mlc_lab.script import from_source
from script.programs import BODIES, HEADER, SIGNATURE

from .bridge import ask, needs_oracle

pytestmark = needs_oracle

#: apache-tvm 0.27 keeps Python's own booleans in attributes and folds nothing in `T.Ramp`
DIFFERENT = {"what_would_fold_is_kept"}

#: blocks without T.reads and T.writes: what the parser finds
ACCESSES = {
    "constants": "B[vi, 0] = A[vi, 1] + A[vi, 3]",
    "offsets": "B[vi * 2, 0] = A[vi * 2 + 1, 0] + A[vi * 2, 4]",
    "below": "B[vi, 0] = A[vi - 1, 3]",
    "loop": "for k in range(4):\n    B[vi, k * 4 + 1] = A[vi + k, 0]",
    "divided": "for k in range(4):\n    B[k // 2, k % 3] = A[vi, 15 - k]",
    "two_loops": "for k, l in T.grid(4, 4):\n    B[vi, k * 4 + l] = A[k + l, vi]",
    "condition": "for k in range(8):\n    if k < 4:\n        B[vi, k] = A[vi + k, 1]",
    "choice": "B[vi, 0] = T.if_then_else(vi > 1 and vi < 5, A[vi - 1, 3], T.float32(0.0))",
    "indirect": "B[vi, 0] = A[T.Cast(\"int32\", A[vi, 0]), 0]",
    "nested": "for k in range(4):\n    with T.block(\"inner\"):\n"
              "        vk = T.axis.spatial(4, k)\n        B[vi, vk * 2] = A[vi + vk, vk]",
    "vector": "B[vi, T.Ramp(0, 1, 8)] = A[vi, T.Ramp(8, 1, 8)]",
    "own_memory": "C = T.alloc_buffer((4, 4))\nC[0, 0] = A[vi, 0]\nB[vi, 0] = C[0, 0]",
    "indirect_once": "B[vi, 0] = A[0, T.Cast(\"int32\", B[vi, 1])]",
    "indirect_twice": "B[vi, 0] = A[T.Cast(\"int32\", A[vi, 1]), 0]",
    "while": "while A[vi, 0] < T.float32(1.0):\n    B[vi, 0] = A[vi, 1]",
    "store_then_load": "B[vi, 0] = A[vi, 0]\nB[vi, 1] = B[vi, 0]",
    "reduction": "with T.init():\n    B[vi, 0] = T.float32(0.0)\n"
                 "B[vi, 0] = B[vi, 0] + A[vi, 0]",
    "matched": "M = T.match_buffer(A[vi, 0:8], (8,), offset_factor=1)\n"
               "for k in range(4):\n    B[vi, k] = M[k + 1]",
}


def block_with(name, inner):
    """A function with one block of a given body."""
    kind = "reduce" if name == "reduction" else "spatial"
    inner = "\n".join("            " + line for line in inner.split("\n"))
    return (f'{HEADER}{SIGNATURE}\n    for i in range(8):\n        with T.block("b"):\n'
            f"            vi = T.axis.{kind}(8, i)\n{inner}")


def same_dialect(text):
    """Drop what only apache-tvm 0.27 writes."""
    text = text.replace("# from tvm.tirx.layout import Axis\n", "")
    return re.sub(r"T\.tvm_storage_sync\(([^,)]*), T\.bool\(False\), -1\)",
                  r"T.tvm_storage_sync(\1)", text)


def test_programs_are_written_as_tvm_writes_them():
    names = [n for n in BODIES if n not in DIFFERENT]
    answers = ask([{"program": HEADER + SIGNATURE + BODIES[n]} for n in names])
    wrong = []
    for name, answer in zip(names, answers):
        mine = from_source(HEADER + SIGNATURE + BODIES[name]).script()
        if "error" in answer:
            wrong.append(f"{name}: {answer['error'][-400:]}")
        elif function_of(answer["script"]) != function_of(mine):
            wrong.append(f"{name}:\n{answer['script']}\n--- here ---\n{mine}")
    assert not wrong, "\n".join(wrong)


def test_accesses_are_found_as_tvm_finds_them():
    answers = ask([{"program": block_with(n, t)} for n, t in ACCESSES.items()])
    wrong = []
    for (name, text), answer in zip(ACCESSES.items(), answers):
        mine = from_source(block_with(name, text)).script()
        if "error" in answer:
            wrong.append(f"{name}: {answer['error'][-400:]}")
        elif accesses(answer["script"]) != accesses(mine):
            wrong.append(f"{name}: {accesses(answer['script'])} against {accesses(mine)}")
    assert not wrong, "\n".join(wrong)


def function_of(text):
    """The text from the function's head on, as lines without indentation of a module."""
    lines = same_dialect(text).split("\n")
    at = next(k for k, line in enumerate(lines) if line.lstrip().startswith("def "))
    deep = len(lines[at]) - len(lines[at].lstrip())
    return [line[deep:] for line in lines[at:]]


def accesses(text):
    """The T.reads and T.writes lines."""
    return [line.strip() for line in text.split("\n") if "T.reads(" in line or "T.writes(" in line]
