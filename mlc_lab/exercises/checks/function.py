"""function: what functions of an answer compute on inputs whose right results they are not told.

They run in a process of their own (`workers/confined.py`), which ends with the last row. The
exercise's `by` calls them there and compares what comes back here, where alone it is known what is
right: all that an answer can do is to return something else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...ir.diagnostics import DiagnosticError
from ...ir.module import IRModule
from ...observe.outside import why_not
from ...reading import DataError
from ...script import from_source
from ...workers.confined import MEMORY, SECONDS, Confined, Failed, Stopped
from ..result import Found

if TYPE_CHECKING:
    from ..answers import Answer
    from ..exercise import Variant

#: what an answer sees that works on programs; they travel as TVMScript
PROGRAMS = """
import numpy as np
from mlc_lab import compat, relax, te, tir, topi
compat.install()
import tvm
from mlc_lab.script import from_source
from tvm.script import relax as R, tir as T
import mlc_lab.relax.dpl, mlc_lab.relax.transform, mlc_lab.relax.analysis
import mlc_lab.runtime  # some of its libraries make a file when they are loaded
given = {"tvm": tvm, "relax": relax, "te": te, "tir": tir, "topi": topi, "R": R, "T": T, "np": np}
"""
#: lines of an answer that are shown around the one at fault
_AROUND = 2


def function(answer: Answer, variant: Variant, *, by: Callable[[Callable[..., Any]], Found],
             prelude: str = "", seconds: float = SECONDS, memory: int = MEMORY,
             decides: bool = False) -> Found:
    """What `by(call)` finds; `call(name, *args, ask={})` calls a function of the answer.

    `prelude` is Python that runs before, and says how plain data becomes arguments and results
    plain data (`workers/confined_child.py`). `seconds` of processor time, `memory` in bytes, of all
    rows. Where a row `decides`, those after it have points only if it is passed.
    """
    if answer.stopped:
        return Found(False, answer.stopped)
    try:
        if prelude not in answer.runs:
            answer.runs[prelude] = Confined(answer.text, prelude, seconds, memory=memory)
        return by(answer.runs[prelude].call)
    except Stopped as error:
        answer.stopped = str(error)
        return Found(False, answer.stopped)
    except Failed as error:
        at = f"line {error.line}: " if error.line else ""
        return Found(False, at + str(error), place(answer.text, error.line))


def place(text: str, line: int) -> dict[str, Any]:
    """The lines around one of an answer, that one marked."""
    lines = text.split("\n")
    if not 0 < line <= len(lines):
        return {}
    first = max(0, line - 1 - _AROUND)
    shown = [("> " if n + 1 == line else "  ") + lines[n]
             for n in range(first, min(len(lines), line + _AROUND))]
    return {"text": "\n".join(shown)}


def program_in(text: object, what: str = "what it makes") -> IRModule:
    """A program that a function gave as TVMScript, parsed and not run. Raises DataError."""
    if not isinstance(text, str):
        raise DataError(f"{what} is no program")
    try:
        mod = from_source(text)
    except DiagnosticError as error:
        raise DataError(f"{what} is no program that can run: {error.message}") from None
    if not isinstance(mod, IRModule):
        mod = IRModule({"main": mod})
    outside = why_not(mod)
    if outside:
        raise DataError(f"{what}: {outside}")
    return mod


__all__ = ["PROGRAMS", "function", "place", "program_in"]
