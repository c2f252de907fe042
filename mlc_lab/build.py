"""build: from a tensor program to callable machine code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import tir
from .ir.module import IRModule
from .reading.collector import collects_rarely
from .runtime import Module
from .target import Target

if TYPE_CHECKING:
    from .target.target import TargetLike

__all__ = ["BUILDERS", "build", "compile"]


@collects_rarely
def build(
    inputs: object,
    args: Sequence[Any] | None = None,
    target: TargetLike = None,
    target_host: TargetLike = None,
    runtime: object = None,
    name: str | None = None,
    binds: Mapping[Any, Any] | None = None,
) -> Module:
    """Lower and compile a program for a target.

    Parameters
    ----------
    inputs : PrimFunc, IRModule, tir.Schedule, or te.Schedule
        The program. A te.Schedule comes with ``args``, the tensors that are its parameters. A dict
        from targets to modules builds each for its target.
    target : Target, str or dict
        By default the current target (``with Target(...)``), or this machine.
    runtime : str or object with a name
        TVM's runtime: "cpp" is the only one, ValueError for another.
    name : str
        The name of the function when ``inputs`` is a single function.
    binds : dict of te.Tensor to tir.Buffer
        Buffers of one's own for parameters of a te.Schedule, e.g. with strides.

    Returns
    -------
    A runtime module: ``module["name"](a, b, c)``.

    Raises
    ------
    ValueError, TypeError
        For what cannot be lowered or has no machine code; the text says why.
    """
    if isinstance(args, (str, Target, Mapping)) and target is None:
        args, target = None, args  # build(mod, "llvm")
    if runtime is not None and str(getattr(runtime, "name", runtime)) != "cpp":
        raise ValueError(f'runtime={runtime!r}: kernels run in this process, which TVM calls '
                         '"cpp"; leave it out')
    if isinstance(inputs, Mapping) and not isinstance(inputs, IRModule):
        modules = [build(mod, None, where, target_host) for where, mod in inputs.items()]
        for other in modules[1:]:
            modules[0].import_module(other)
        return modules[0]
    target = _target(target, target_host)
    mod = as_module(inputs, args, name, binds)
    if target.kind.name not in BUILDERS:
        have = ", ".join(f'"{kind}" {_MADE_FOR.get(kind, "")}'.rstrip() for kind in BUILDERS)
        raise ValueError(
            f"programs cannot be built for the target kind {target.kind.name!r} here. Those that "
            f"can be: {have}. {_GPU_HELP}"
        )
    return BUILDERS[target.kind.name](mod, target)


def compile(mod: Any, target: TargetLike = None, *, relax_pipeline: object = "default",
            tir_pipeline: object = "default") -> Any:
    """Build a module of either kind: with functions of Relax an executable, else a runtime module.

    See `relax.build` and `build`.
    """
    if isinstance(mod, IRModule) and any(
            type(func).__module__.startswith("mlc_lab.relax") for func in mod.functions.values()):
        from .relax.building import build as build_graph

        return build_graph(mod, target, relax_pipeline=relax_pipeline, tir_pipeline=tir_pipeline)
    return build(mod, target=target)


def _target(target: TargetLike, host: TargetLike) -> Target:
    if target is None:
        target = Target.current() or "llvm"
    return Target(target, host) if host is not None else Target(target)


def as_module(inputs: Any, args: Sequence[Any] | None = None, name: str | None = None,
              binds: Mapping[Any, Any] | None = None) -> IRModule:
    """A program in any of its forms as a module."""
    if isinstance(inputs, IRModule):
        return inputs
    if isinstance(inputs, tir.PrimFunc):
        symbol = (inputs.attrs or {}).get("global_symbol")
        name = name or (str(symbol) if symbol is not None else "main")
        return IRModule({name: inputs.with_attr("global_symbol", name)})
    to_module = getattr(inputs, "to_module", None)  # a schedule of te
    if to_module is not None and args is not None:
        return to_module(args, name or "main", binds)
    if isinstance(getattr(inputs, "mod", None), IRModule):  # a tir.Schedule
        return inputs.mod
    if isinstance(inputs, (list, tuple)) and inputs and hasattr(inputs[0], "op"):
        from .te import create_prim_func

        return as_module(create_prim_func(list(inputs)), None, name)
    raise TypeError(
        f"cannot build a {type(inputs).__name__}: give a PrimFunc, an IRModule or a Schedule"
        + (" (a te schedule needs its arguments too: build(s, [A, B, C]))" if args is None else "")
    )


def _build_llvm(mod: IRModule, target: Target) -> Module:
    from .backend import llvm
    from .lower import lower
    from .machine.of_target import machine_of

    where = machine_of(target)
    return llvm.build(lower(mod, target=target), where, llvm.entry_of(mod))


def _build_gpu(mod: IRModule, target: Target) -> Module:
    from .backend.device import gpu_module

    return gpu_module.build(mod, target)


def _build_nvptx(mod: IRModule, target: Target) -> Module:
    """Kernels where loops are bound to threads; else functions that one thread runs."""
    from .backend import llvm, ptx
    from .lower import lower
    from .lower.pipeline import has_thread_axes

    if has_thread_axes(mod):
        return ptx.build(mod, target)
    where = ptx.machine(target)
    alone = Target({"kind": "llvm", "mtriple": where.triple, "mcpu": where.cpu})
    return llvm.build(lower(mod, target=alone), where, llvm.entry_of(mod))


#: what the builders make, for the text of a refusal
_MADE_FOR = {
    "llvm": "(this machine, and others by -mtriple)",
    "cuda": "(a GPU, or the simulated device)", "opencl": "(the same)", "metal": "(the same)",
    "webgpu": "(the same)",
    "nvptx": "(PTX to be read)",
}
_GPU_HELP = ("A GPU program can be looked at with lower(program).show() and run with "
             "mlc_lab.backend.interp.interpret(program, *arrays)")

#: the builder of each target kind, `build(mod, target) -> Module`; other backends add theirs, with
#: a row in `mlc_lab.target.KINDS`
BUILDERS = {
    "llvm": _build_llvm, "nvptx": _build_nvptx,
    "cuda": _build_gpu, "opencl": _build_gpu, "metal": _build_gpu, "webgpu": _build_gpu,
}
