"""Schedules of operators under the names TVM has for them: `topi.cuda.schedule_reduce(outs)`.

`topi.generic` and `topi.hls` inline what is cheap and leave the loops, `topi.x86` and
`topi.arm_cpu` use cores and vectors, `topi.cuda` binds loops to blocks and threads of a GPU. TVM
has a function for each operator; here the stages decide: what has a reduction is a reduction,
whatever it is called. The operators themselves are the same in each (`topi.cuda.conv2d_nchw` is
`topi.nn.conv2d_nchw`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from .. import te
from ..te.tensor import ComputeOp, Tensor
from ..tir.op import as_int

#: names of schedules that are not names of operators
_GROUPS = {"adaptive_pool", "broadcast", "conv2d", "conv3d", "depthwise_conv2d_nchw",
           "depthwise_conv2d_nhwc", "elemwise", "extern", "injective", "lrn", "pool", "pool_grad",
           "reduce", "softmax"}
#: tags of stages that are written into their readers
_CHEAP = ("broadcast", "elemwise", "injective")
_THREADS, _SUMMING, _LANES = 256, 64, 16


def _start(outs: Tensor | Sequence[Tensor]) -> tuple[Any, list[Any]]:
    """A schedule in which cheap stages are inlined, and the stages that are left to schedule."""
    results = [outs] if isinstance(outs, Tensor) else list(outs)
    s, left = te.create_schedule(results), []
    last = [s[result].op for result in results]
    for stage in s.stages:
        if not isinstance(stage.op, ComputeOp):
            continue
        if stage.op not in last and not stage.op.reduce_axis and (
                stage.op.tag.startswith(_CHEAP)):
            stage.compute_inline()
        else:
            left.append(stage)
    return s, left


def _generic(outs: Tensor | Sequence[Tensor], joined: bool = False) -> Any:
    return _start(outs)[0]


def _cpu(outs: Tensor | Sequence[Tensor], joined: bool = False) -> Any:
    s, stages = _start(outs)
    for stage in stages:
        axes = list(stage.op.axis)
        if not axes:
            continue
        if len(axes) > 1:
            outer = stage.fuse(*axes[:-1])
        else:
            outer = None
        last, extent = axes[-1], as_int(axes[-1].dom.extent)
        if not stage.op.reduce_axis and extent is not None and extent >= _LANES and (
                extent % _LANES == 0):
            rest, lanes = stage.split(last, factor=_LANES)
            stage.vectorize(lanes)
            outer = rest if outer is None else outer
        stage.parallel(last if outer is None else outer)
    return s


def _gpu(outs: Tensor | Sequence[Tensor], joined: bool = False) -> Any:
    """With `joined`, the threads of a block share each sum."""
    s, stages = _start(outs)
    for stage in stages:
        axes, sums = list(stage.op.axis), list(stage.op.reduce_axis)
        if sums and (joined or not axes) and _shareable(stage.op):
            if axes:
                stage.bind(stage.fuse(*axes) if len(axes) > 1 else axes[0],
                           te.thread_axis("blockIdx.x"))
            every = stage.fuse(*sums) if len(sums) > 1 else sums[0]
            stage.bind(stage.split(every, factor=_SUMMING)[1], te.thread_axis("threadIdx.x"))
        elif axes:
            every = stage.fuse(*axes) if len(axes) > 1 else axes[0]
            block, thread = stage.split(every, factor=_THREADS)
            stage.bind(block, te.thread_axis("blockIdx.x"))
            stage.bind(thread, te.thread_axis("threadIdx.x"))
    return s


def _shareable(op: Any) -> bool:
    """Whether threads may share a reduction: one of a single value is."""
    return op.num_outputs == 1


class OfTarget(ModuleType):
    """`topi.cuda` and the like: operators, and schedules of them for one kind of target."""

    def __init__(self, name: str, scheduler: Callable[..., Any]) -> None:
        super().__init__(f"{__package__}.{name}", scheduler.__doc__)
        self._scheduler = scheduler
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        topi = import_module(str(__package__))
        word = name.removeprefix("schedule_")
        known = word in _GROUPS or hasattr(topi, word) or hasattr(topi.nn, word)
        if name.startswith("_") or not known:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if word == name:
            return getattr(topi.nn, name, None) or getattr(topi, name)
        joined, scheduler = word in ("reduce", "softmax", "log_softmax"), self._scheduler

        def schedule(outs: Sequence[Any] | Any, layout: str = "") -> Any:
            return scheduler(outs, joined)

        schedule.__name__ = name
        schedule.__doc__ = f"A schedule of tensors made by {word}."
        return schedule


arm_cpu = OfTarget("arm_cpu", _cpu)
cuda = OfTarget("cuda", _gpu)
generic = OfTarget("generic", _generic)
hls = OfTarget("hls", _generic)
x86 = OfTarget("x86", _cpu)

__all__ = ["OfTarget", "arm_cpu", "cuda", "generic", "hls", "x86"]
