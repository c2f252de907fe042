"""The `code` entry of a recording: lowered stages, LLVM IR and assembly of programs, and the source
of their kernels for GPUs, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..ir.module import IRModule
from ..lower.pipeline import is_gpu
from ..script import from_source
from ..target import Target
from ..tir.function import PrimFunc
from ..tir.functor import pre_order
from ..tir.stmt import For, ForKind
from .assembly import ir_width, machine_code, width_of
from .lowering import Line, Stage, lower_traced
from .recording import Recording
from .source_lines import KINDS, source_lines


def code_of(recording: Recording, programs: Iterable[int], target: Any = "llvm"
            ) -> dict[str, Any]:
    """The `code` of some programs of a recording (see the head of `recording.py`).

    What goes wrong on the way down is in the entry's `error`, beside what was made until then.
    """
    table: dict[tuple[Any, ...], int] = {}

    def numbers(lines: Iterable[Line], width: Callable[[str], int] | None = None) -> list[int]:
        found = []
        for text, origins in lines:
            line = (text, origins, width(text) if width is not None else 0)
            found.append(table.setdefault(line, len(table)))
        return found

    made = {}
    for program in programs:
        data: dict[str, Any] = {"stages": [], "llvm": [], "assembly": [], "mix": {}, "machine": "",
                                "error": ""}
        made[str(program)] = data
        stages: list[Stage] = []
        try:
            mod = _module(recording, program)
            threads = _has_threads(mod)
            device = target
            if threads:
                device = Target(target if is_gpu(target) else "cuda")
                data["sources"] = {kind: _source(
                    mod, device if kind == device.kind.name else Target(kind), numbers)
                    for kind in KINDS}
            lowered = lower_traced(mod, device)
            stages = lowered.stages
            if threads:
                raise ValueError("loops of this program are bound to GPU threads; the stages are "
                                 "those of a GPU, and LLVM makes no code of it for this machine: "
                                 "see its source in CUDA, OpenCL, WGSL, Metal or PTX")
            code = machine_code(lowered.module, lowered.origins, target)
            data["llvm"] = numbers(code.llvm, ir_width)
            data["assembly"] = numbers(code.assembly, width_of)
            data["mix"], data["machine"] = code.mix, code.machine
        except Exception as error:  # told to the reader of the view, who may have made the mistake
            stages = stages or getattr(error, "stages", [])
            data["error"] = f"{type(error).__name__}: {error}"
        data["stages"] = [{"name": stage.name, "changed": stage.changed,
                           "lines": numbers(stage.lines)} for stage in stages]
    lines = [[text, list(origins), width] for text, origins, width in table]
    return {"lines": lines, "programs": made}


def _source(mod: IRModule, target: Target, numbers: Callable[[Iterable[Line]], list[int]]
            ) -> dict[str, Any]:
    """The source of a program's kernels in the language of a target, or why there is none."""
    try:
        return {"lines": numbers(source_lines(mod, target)), "error": ""}
    except Exception as error:  # told to the reader of the view
        return {"lines": [], "error": f"{type(error).__name__}: {error}"}


def _module(recording: Recording, program: int) -> IRModule:
    """The module of a program: the one at hand, or what its text says."""
    if program < len(recording.modules):
        return recording.modules[program]
    return from_source(recording.text(program))


def _has_threads(mod: IRModule) -> bool:
    """Whether a loop of a program is bound to a GPU thread axis."""
    return any(type(node) is For and node.kind is ForKind.THREAD_BINDING
               for func in mod.functions.values() if isinstance(func, PrimFunc)
               for node in pre_order(func.body))


__all__ = ["code_of"]
