"""relax.build: from a module of Relax and TensorIR functions to an executable."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Mapping

from ..backend import llvm
from ..ir.module import IRModule
from ..ir.transform import Pass, PassContext, PassInfo, PassInstrument
from ..lower import lower
from ..machine.of_target import machine_of
from ..reading.collector import collects_rarely
from ..target import Target
from .pipeline import default_pipeline, get_pipeline
from .vm.bytecode import Executable
from .vm.codegen import generate, kernels_of
from .vm.native import compile_functions, fill_constants

if TYPE_CHECKING:
    from ..target.target import TargetLike

EXEC_MODES = ("compiled", "bytecode")


@collects_rarely
def build(
    mod: Any,
    target: TargetLike = None,
    params: Mapping[str, Any] | None = None,
    pipeline: object = "default",
    exec_mode: str = "compiled",
    *,
    relax_pipeline: object = None,
    tir_pipeline: object = None,
    system_lib: bool | None = None,
) -> Executable:
    """Build a module for the virtual machine.

    Parameters
    ----------
    mod : IRModule or Function
        Functions of Relax and of TensorIR.
    target : Target, str or dict
        By default the current target, or this machine. For a GPU, such as "cuda", "opencl" or
        "webgpu", kernels without threads get a default schedule (`dlight.gpu`), and tensors are
        on the device.
    params : dict
        Values for parameters of ``main``, by name: they become constants.
    pipeline : str, Pass or None
        What is done to the module first: ``"default"`` fuses and schedules, ``"default_build"``
        does not fuse, None expects a module that is lowered already. Also ``relax_pipeline``.
    exec_mode : str
        ``"compiled"``: a function without branches that calls only kernels becomes one native
        function, others bytecode. ``"bytecode"``: all become bytecode.
    tir_pipeline : Pass, optional
        Done to the kernels before they are lowered.
    system_lib : bool, optional
        ValueError for True: no library is linked into another program here.

    Returns
    -------
    An executable for ``relax.VirtualMachine``, which says what memory results are.

    Raises
    ------
    ValueError, TypeError
        For operators without an implementation (all are named), ill-formed functions, targets
        that cannot be built for.
    """
    if exec_mode not in EXEC_MODES:
        raise ValueError(f"exec_mode is one of {', '.join(map(repr, EXEC_MODES))}, not "
                         f"{exec_mode!r}")
    if system_lib:
        raise ValueError("system_lib=True makes TVM link what is built into a C++ program, which "
                         "is not possible here; ex.export_library(path) writes a library to load")
    mod = _as_module(mod)
    where = Target(target if target is not None else Target.current() or "llvm")
    gpu = where.kind.name != "llvm"
    if gpu:
        from ..backend.source import DIALECTS  # not loaded for a CPU

        if where.kind.name not in DIALECTS:
            raise ValueError(f"graphs are built for this machine's processor (\"llvm\") and for "
                             f"{', '.join(DIALECTS)}, not for {where.kind.name!r}")
        exec_mode = "bytecode"  # of the host's part, which launches kernels
    if params:
        from .transform import BindParams

        mod = BindParams("main", dict(params))(mod)
    with where:
        if relax_pipeline is not None:
            pipeline = relax_pipeline
        with _BeforeSchedules() as seen:
            if pipeline is not None:
                mod = _pipeline(pipeline, where)(mod)
        executable = generate(mod)
        executable.unscheduled = seen.mod
        kernels = kernels_of(mod)
        if tir_pipeline is not None and tir_pipeline != "default":
            kernels = _pipeline(tir_pipeline, where)(kernels)
        link(executable, kernels, where, exec_mode)
    return executable


def link(executable: Executable, kernels: IRModule, where: Target, exec_mode: str) -> None:
    """Compile the kernels that bytecode calls, and in the mode "compiled" functions, into the
    executable."""
    executable.target, executable.exec_mode = str(where), exec_mode
    executable.kernels = kernels
    if where.kind.name != "llvm":
        executable.device = where.kind.name
        if len(kernels):
            from ..backend.device import gpu_module

            executable.lib = gpu_module.build(kernels, where)
    elif len(kernels):
        extra = None
        if exec_mode == "compiled":
            extra = compile_functions(executable, {v.name_hint for v in kernels.functions})
        # a function that outlives its executable still reads the constants
        executable.lib = llvm.build(lower(kernels, target=where), machine_of(where), None,
                                    extra, (executable.constants,))
        fill_constants(executable)


class _BeforeSchedules(PassInstrument):
    """Keeps the module that goes into the default schedules: its graph of kernels, for views."""

    mod: IRModule | None = None

    def __enter__(self) -> "_BeforeSchedules":
        self.context, self.thread = PassContext.current(), threading.get_ident()
        self.context.instruments.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        self.context.instruments.remove(self)

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name == "ApplyDefaultSchedule" and threading.get_ident() == self.thread:
            self.mod = mod


def _pipeline(pipeline: object, target: Target) -> Any:
    if isinstance(pipeline, str):
        if pipeline == "default":
            return default_pipeline(target)
        return get_pipeline(pipeline)
    if isinstance(pipeline, Pass) or callable(pipeline):
        return pipeline
    raise TypeError(f"a pipeline is a pass or the name of one, not a {type(pipeline).__name__}")


def _as_module(mod: Any) -> IRModule:
    from .expr import Function

    if isinstance(mod, Function):
        return IRModule.from_expr(mod)
    if isinstance(mod, IRModule):
        return mod
    raise TypeError(f"relax.build takes an IRModule, not a {type(mod).__name__}")


__all__ = ["build", "link"]
