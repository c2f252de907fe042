"""A scan as TensorIR: the first rows, then a loop over time around one block, the step.

    for scan_t in range(1, m):
        with T.block("scan"):
            v_t = T.axis.scan((1, m), scan_t)
            state = T.match_buffer(scan[0:m, 0:n], (m, n))
            update = T.match_buffer(scan[0:m, 0:n], (m, n))
            for i in range(n):
                with T.block("update"):
                    v_i = T.axis.spatial(n, i)
                    update[v_t, v_i] = state[v_t - 1, v_i] + X[v_t, v_i]

A step reads rows before v_t, through `state`, and writes row v_t, through `update`: these share no
element, so within a step the stages are scheduled like any others. Where it cannot be proved that
only earlier rows are read, both stand for one buffer, and what would need the proof is refused.
"""

from __future__ import annotations

from typing import Any, Sequence

from ..arith import Analyzer
from ..tir import op as O
from ..tir.buffer import Buffer, decl_buffer
from ..tir.expr import IntImm, IterVar, ProducerLoad, Range, Reduce, Var
from ..tir.functor import pre_order
from ..tir.stmt import (
    Block, BlockRealize, BufferRegion, For, ForKind, MatchBufferRegion, Stmt, seq,
)
from .tensor import ComputeOp, ScanOp, Tensor


def scan_statement(builder: Any, op: ScanOp) -> Stmt:
    """The statements of a scan; `builder` is the state of a create_prim_func."""
    first = _first_rows(builder, op)
    time = op.scan_axis
    dom = Range.from_min_extent(builder.widened(time.dom.min), builder.widened(time.dom.extent))
    loop = Var(f"{op.name}_t", dom.extent.dtype)
    now = Var(f"v_{op.update[-1].op.axis[0].var.name}", dom.extent.dtype)
    steps = op.steps()
    matches = _views(builder, op, steps)
    builder.block_names[op] = name = builder.fresh(op.name)
    rows: list[Buffer] = []
    inside: list[Stmt] = []
    for step in steps:
        for tensor in step.outputs:
            if tensor not in builder.buffers:
                builder.buffers[tensor] = builder.buffer_of(tensor)
                (rows if _is_row(tensor, steps) else builder.allocated).append(
                    builder.buffers[tensor])
        inside.append(_step(builder, step, now))
    block = builder.with_regions(Block([IterVar(dom, now, IterVar.Ordered)], (), (), name,
                                       seq(*inside), None, rows, matches))
    body = BlockRealize([loop], True, block)
    return seq(*first, For(loop, dom.min, dom.extent, ForKind.SERIAL, body))


def _first_rows(builder: Any, op: ScanOp) -> list[Stmt]:
    first: list[Stmt] = []
    for tensor, init in zip(op.outputs, op.init):
        buffer = builder.buffers[tensor]
        if isinstance(init.op, ComputeOp) and init not in builder.buffers:
            builder.buffers[init] = buffer
            first.append(builder.of_compute(init.op))
        else:  # given from outside, or used elsewhere too: its rows are copied
            copy = _copy_of(init, f"{op.name}_init")
            builder.buffers[copy] = buffer
            first.append(builder.of_compute(copy.op))
    return first


def _views(builder: Any, op: ScanOp, steps: Sequence[ComputeOp]) -> list[MatchBufferRegion]:
    """Views of the rows computed before and of the row of a step, where these are separate."""
    separate = _reads_earlier_rows(op, steps)
    matches = []
    for tensor, state, update in zip(op.outputs, op.states, op.update):
        buffer = builder.buffers[tensor]
        for which in (state, update):
            view = decl_buffer(buffer.shape, buffer.dtype, which.op.name) if separate else buffer
            builder.buffers[which] = view
            if separate:
                matches.append(MatchBufferRegion(view, BufferRegion.full_region(buffer)))
    return matches


def _loads(op: ComputeOp) -> list[ProducerLoad]:
    return [e for value in op.body for e in pre_order(value) if type(e) is ProducerLoad]


def _reads_earlier_rows(op: ScanOp, steps: Sequence[ComputeOp]) -> bool:
    """Whether every step at time t provably reads rows of the states before t only."""
    analyzer = Analyzer()
    return all(analyzer.can_prove(O.less(load.indices[0], step.axis[0].var))
               for step in steps for load in _loads(step) if load.producer in op.states)


def _is_row(tensor: Tensor, steps: Sequence[ComputeOp]) -> bool:
    """Whether the steps read only the row of the current time of a tensor."""
    return all(load.indices[0] is step.axis[0].var
               for step in steps for load in _loads(step) if load.producer is tensor)


def _step(builder: Any, op: ComputeOp, now: Var) -> Stmt:
    """The row of an operation at the time `now`."""
    axes = [*op.axis[1:], *op.reduce_axis]
    doms = [Range.from_min_extent(builder.widened(iv.dom.min), builder.widened(iv.dom.extent))
            for iv in axes]
    loops = [Var(iv.var.name, d.extent.dtype) for iv, d in zip(axes, doms)]
    which = [None] if isinstance(op.body[0], Reduce) else list(range(op.num_outputs))
    names = [builder.fresh(op.name if len(which) == 1 else f"{op.name}_v{i}") for i in which]
    builder.block_names[op] = names[0]
    body = seq(*(builder.block(op, name, axes, doms, loops, i, {op.axis[0].var: now})
                 for name, i in zip(names, which)))
    for var, dom in zip(reversed(loops), reversed(doms)):
        body = For(var, dom.min, dom.extent, ForKind.SERIAL, body)
    return body


def _copy_of(tensor: Tensor, name: str) -> Tensor:
    """A computation that gives the elements of a tensor again."""
    axis = [IterVar(Range.from_min_extent(IntImm(d.dtype, 0), d), Var(f"i{k}", d.dtype),
                    IterVar.DataPar) for k, d in enumerate(tensor.shape)]
    return ComputeOp(name, "", None, axis, [tensor(*[iv.var for iv in axis])]).output(0)


__all__ = ["scan_statement"]
