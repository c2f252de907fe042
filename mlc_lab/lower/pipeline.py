"""The way from scheduled TensorIR to flat loops, as a named list of passes.

    blocks                                    loops             memory              processor
    PlanAndUpdateBufferAllocationLocation  -> LoopPartition  -> StorageRewrite  ->  LowerIntrin
    LowerInitBlock                            VectorizeLoop     RemoveNoOp          SumLanes
    ConvertBlocksToOpaque                     UnrollLoop        Simplify            LimitUnroll
    CompactBufferAllocation                                                         SplitVector
    LowerMatchBuffer                                                                PlaceAllocations
    LowerOpaqueBlock
    FlattenBuffer
    Simplify

What comes out is what is compiled: the code generator (`backend/llvm.py`) translates it, statement
by statement.

For a GPU, VerifyKernels and LowerCrossThreadReduction go first, and LowerIntrin is followed by, in
place of the last four, which are for LLVM:

    InjectVirtualThread, UnifyThreadBinding, LowerWarpMemory, MergeSharedMemory, ThreadSync (before
    it there are no barriers between threads that exchange values), LowerThreadAllreduce,
    SplitHostDevice

The last one makes functions of the kernels, which the host's function calls.

`lower(mod)` runs all; `lower(mod, until="FlattenBuffer")` stops after a stage; `stages(mod)` keeps
the module after every stage, to be looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..ir.module import IRModule
from ..ir.transform import Pass, PassContext
from ..target import Target
from ..target.tags import TAGS
from ..tir.function import PrimFunc
from ..tir.functor import all_statements
from ..tir.stmt import For, ForKind
from .compact_buffer_allocation import CompactBufferAllocation
from .convert_blocks_to_opaque import ConvertBlocksToOpaque
from .flatten_buffer import FlattenBuffer
from .inject_software_pipeline import InjectSoftwarePipeline, has_async_copies
from .inject_virtual_thread import InjectVirtualThread
from .limit_unroll import LimitUnroll
from .loop_partition import LoopPartition
from .lower_cross_thread_reduction import LowerCrossThreadReduction
from .lower_init_block import LowerInitBlock
from .lower_intrin import LowerIntrin
from .lower_match_buffer import LowerMatchBuffer
from .lower_opaque_block import LowerOpaqueBlock
from .lower_thread_allreduce import LowerThreadAllreduce
from .lower_warp_memory import LowerWarpMemory
from .merge_shared_memory import MergeSharedMemory
from .place_allocations import PlaceAllocations
from .plan_and_update_buffer_allocation_location import PlanAndUpdateBufferAllocationLocation
from .remove_no_op import RemoveNoOp
from .simplify import Simplify
from .split_host_device import SplitHostDevice
from .split_vector import SplitVector
from .storage_rewrite import StorageRewrite
from .sum_lanes import SumLanes
from .thread_sync import ThreadSync
from .unify_thread_binding import UnifyThreadBinding
from .unroll_loop import UnrollLoop
from .vectorize_loop import VectorizeLoop
from .verify_kernels import VerifyKernels

if TYPE_CHECKING:
    from ..target.target import TargetLike

_GPU_KINDS = {"cuda", "nvptx", "rocm", "opencl", "metal", "vulkan", "webgpu"}


def _as_target(target: TargetLike) -> TargetLike:
    """A tag or the name of a kind as the target that it stands for."""
    if not isinstance(target, str):
        return target
    name = target.partition(" ")[0]
    return Target(target) if name in TAGS or name in _GPU_KINDS else target


def is_gpu(target: TargetLike) -> bool:
    """Whether a target (Target, string or None) has thread axes."""
    if target is None:
        return False
    target = _as_target(target)
    kind = getattr(getattr(target, "kind", None), "name", None)
    text = str(target)
    return (kind or text.split(" ")[0]) in _GPU_KINDS or "nvptx" in text or "amdgcn" in text


def has_thread_axes(mod: IRModule) -> bool:
    """Whether a function of the module binds a loop to a GPU thread axis (not a virtual one)."""
    return any(
        type(s) is For and s.kind is ForKind.THREAD_BINDING
        and s.thread_tag.startswith(("blockIdx", "threadIdx"))
        for func in mod.functions.values() if type(func) is PrimFunc
        for s in all_statements(func.body))


def default_passes(target: TargetLike = None, simple_mode: bool = False, gpu: bool | None = None
                   ) -> list[Pass]:
    """The passes for a target, in order. `simple_mode` keeps loops as they were written: no
    partition, vectors, unrolling or reuse of memory, nothing for LLVM, and kernels where they are.
    `gpu` admits thread axes (by default where the target has them)."""
    gpu = is_gpu(target) if gpu is None else gpu
    passes = [VerifyKernels(), LowerCrossThreadReduction()] if gpu else []
    passes += [
        PlanAndUpdateBufferAllocationLocation(), LowerInitBlock(), ConvertBlocksToOpaque(),
        CompactBufferAllocation(memory=False), LowerMatchBuffer(),
        InjectSoftwarePipeline(gpu, has_async_copies(_as_target(target))),
        LowerOpaqueBlock(gpu), FlattenBuffer(), Simplify(),
    ]
    if not simple_mode:
        passes += [LoopPartition(), VectorizeLoop(), UnrollLoop(), StorageRewrite(), RemoveNoOp(),
                   Simplify(), LowerIntrin(target)]
        if not gpu:
            passes += [SumLanes(), LimitUnroll(), SplitVector(), PlaceAllocations()]
    if gpu and simple_mode:
        passes += [LowerWarpMemory(), ThreadSync()]
    elif gpu:
        device = _as_target(target)
        passes += [InjectVirtualThread(), UnifyThreadBinding(), LowerWarpMemory(),
                   MergeSharedMemory(device if isinstance(device, Target) else None), ThreadSync(),
                   LowerThreadAllreduce(device), SplitHostDevice()]
    return passes


def _passes_of(mod: IRModule, target: TargetLike, simple_mode: bool) -> list[tuple[str, Pass]]:
    """The named passes for a module: without a target, its own thread axes say what it is for."""
    gpu = has_thread_axes(mod) if target is None else is_gpu(target)
    return named_passes(with_own(default_passes(target, simple_mode, gpu)))


def with_own(passes: list[Pass]) -> list[Pass]:
    """The passes with those of the PassContext's option "tir.add_lower_pass", (phase, pass) pairs:
    phase 0 is the program as it is given, 1 that with flat memory, 2 that with its loops rewritten,
    and 3 the end. Phases that are left out, in simple mode, count as the end."""
    own = PassContext.current().config.get("tir.add_lower_pass") or ()
    if not own:
        return passes
    phases: list[list[Pass]] = [[], [], [], []]
    for phase, step in own:
        if int(phase) not in range(4):
            raise ValueError(f"tir.add_lower_pass: there is no phase {phase}; they are 0 to 3")
        phases[int(phase)].append(step)
    out = phases.pop(0)
    ends = ["Simplify", "StorageRewrite"]
    for name, step in named_passes(passes):
        out.append(step)
        if ends and name == ends[0]:
            del ends[0]
            out += phases.pop(0)
    return [*out, *(step for phase in phases for step in phase)]


def stage_names(target: TargetLike = None) -> list[str]:
    """The names of the stages, as `until=` takes them."""
    return [name for name, _ in named_passes(default_passes(target))]


def named_passes(passes: Sequence[Pass]) -> list[tuple[str, Pass]]:
    """Passes by stage name; the second run of a pass is called e.g. Simplify_2."""
    seen: dict[str, int] = {}
    out = []
    for step in passes:
        name = step.info.name.rsplit(".", 1)[-1]
        seen[name] = seen.get(name, 0) + 1
        out.append((name if seen[name] == 1 else f"{name}_{seen[name]}", step))
    return out


def as_module(program: object) -> IRModule:
    """A PrimFunc, an IRModule or a Schedule as a module."""
    if isinstance(program, IRModule):
        return program
    if isinstance(program, PrimFunc):
        return IRModule.from_expr(program)
    mod = getattr(program, "mod", None)
    if isinstance(mod, IRModule):
        return mod
    raise TypeError("lower takes a PrimFunc, an IRModule or a Schedule, "
                    f"got {type(program).__name__}")


def lower(program: IRModule | PrimFunc, until: Any = None, target: TargetLike = None,
          simple_mode: bool = False, name: str = "main", binds: Any = None) -> IRModule:
    """The program in flat loops, ready for code generation.

    A schedule of te comes with its parameters: `lower(s, [A, B, C], name="f")`; `binds`, from
    tensors to buffers, gives them buffers of one's own.

    `until` names the last stage to run (see `stage_names()`). Without a `target` a program whose
    loops are bound to thread axes is lowered as the GPU kernel it is; with one, the target decides
    whether loops may be bound. Raises LowerError for what the target cannot run, ValueError for
    an unknown stage.
    """
    if isinstance(until, (list, tuple)) and (to_module := getattr(program, "to_module", None)):
        program, until = to_module(until, name, binds), None
    mod = as_module(program)
    named = _passes_of(mod, target, simple_mode)
    if until is not None and until not in [name for name, _ in named]:
        have = ", ".join(name for name, _ in named)
        raise ValueError(f"there is no lowering stage {until!r}; the stages are: {have}")
    for name, step in named:
        mod = step(mod)
        if name == until:
            break
    return mod


def stages(program: IRModule | PrimFunc, target: TargetLike = None, simple_mode: bool = False
           ) -> list[tuple[str, IRModule]]:
    """The module after each stage, by name; the first entry is ("input", the program itself).

    A stage that had nothing to do keeps the very same module, so `is` tells what changed.
    """
    mod = as_module(program)
    out = [("input", mod)]
    for name, step in _passes_of(mod, target, simple_mode):
        mod = step(mod)
        out.append((name, mod))
    return out
