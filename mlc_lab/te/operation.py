"""Making tensor expressions: placeholder, compute, extern, and the axes they run over."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Mapping, Sequence

from ..ir.dtype import canonical
from ..tir import op as tir_op
from ..tir.buffer import Buffer, decl_buffer, extent_of
from ..tir.expr import IntImm, IterVar, PrimExpr, Range, SizeVar, Var, const_index
from ..tir.function import PrimFunc
from ..tir.stmt import Evaluate, Stmt
from .tag import tagged
from .tensor import (
    ComputeOp, ExternOp, PlaceholderOp, ScanOp, Tensor, TensorSlice,
)
from .tensor_compute import IntrinCall, tensor_compute


def _shape(shape: Sequence[Any] | int | PrimExpr) -> tuple[PrimExpr, ...]:
    return tuple(map(extent_of, shape if isinstance(shape, (tuple, list)) else (shape,)))


def _from_zero(extent: PrimExpr) -> Range:
    return Range.from_min_extent(IntImm(extent.dtype, 0), extent)


def var(name: str = "tindex", dtype: str = "int32", span: object = None) -> Var:
    """A symbolic size or scalar parameter."""
    return Var(name, dtype)


def size_var(name: str = "size", dtype: str = "int32", span: object = None) -> SizeVar:
    """A symbolic size, known not to be negative."""
    return SizeVar(name, dtype)


def placeholder(shape: Sequence[Any] | int | PrimExpr, dtype: str | None = None,
                name: str = "placeholder") -> Tensor:
    """An input tensor of `shape` elements of `dtype` (float32 by default)."""
    return PlaceholderOp(name, _shape(shape), canonical(dtype or "float32")).output(0)


def reduce_axis(dom: Any, name: str = "rv", thread_tag: str = "", span: object = None) -> IterVar:
    """An axis to reduce over. `dom` is (begin, end), a Range, or the end alone."""
    if not isinstance(dom, Range):
        if isinstance(dom, (tuple, list)):
            if len(dom) != 2:
                raise ValueError(f"reduce_axis takes (begin, end), got {tuple(dom)}")
            begin, end = const_index(dom[0]), extent_of(dom[1])
            # a plain 0 takes the type of the other bound
            begin = tir_op.cast(begin, end.dtype) if isinstance(begin, IntImm) else begin
            extent = tir_op.sub(end, begin)
            dom = Range.from_min_extent(tir_op.cast(begin, extent.dtype), extent)
        else:
            dom = _from_zero(extent_of(dom))
    return IterVar(dom, Var(name, dom.extent.dtype), IterVar.CommReduce, thread_tag)


def thread_axis(dom: Any = None, tag: str = "", name: str = "", span: object = None
                ) -> IterVar[Range | None]:
    """A GPU thread axis: `thread_axis("threadIdx.x")` or `thread_axis((0, 64), "threadIdx.x")`."""
    if isinstance(dom, str):
        tag, dom = dom, None
    if not tag:
        raise ValueError('thread_axis needs a tag such as "threadIdx.x"')
    if dom is not None and not isinstance(dom, Range):
        dom = Range(*dom) if isinstance(dom, (tuple, list)) else Range(dom)
    return IterVar(dom, Var(name or tag, "int32"), IterVar.ThreadIndex, tag)


def _axis_names(fcompute: Callable, ndim: int, varargs_names: Sequence[str] | None) -> list[str]:
    """Names of the axes: the function's own argument names; `i0`, `i1`, ... for `*args`."""
    spec = inspect.getfullargspec(fcompute)
    names = list(spec.args)
    if inspect.ismethod(fcompute):
        names = names[1:]
    if spec.varargs is not None:
        missing = ndim - len(names)
        names += list(varargs_names) if varargs_names else [f"i{i}" for i in range(missing)]
    elif not names and ndim:
        names = [f"i{i}" for i in range(ndim)]
    if len(names) > ndim:
        raise _not_as_many(names, ndim)
    return names


def _not_as_many(names: Sequence[str], ndim: int) -> ValueError:
    return ValueError(f"fcompute takes {len(names)} indices ({', '.join(names)}) and the shape "
                      f"has {ndim} dimensions: they must be as many")


def compute(shape: Sequence[Any] | int | PrimExpr, fcompute: Callable, name: str = "compute",
            tag: str = "", attrs: Mapping[str, Any] | None = None,
            varargs_names: Sequence[str] | None = None) -> Any:
    """A tensor of `shape` whose element at i, j, ... is `fcompute(i, j, ...)`.

    `fcompute` returns an expression, a reduction (`te.sum(..., axis=k)`), or a tuple or list of
    either; then there are as many output tensors, in a tuple. Or it returns a call of an intrinsic
    (`te.decl_tensor_intrin`), which computes the dimensions that `fcompute` has no index of. The
    argument names become the names of the axes. In `attrs`, `layout_free_placeholders` lists inputs
    whose layout may be changed; the rest annotates the block.
    """
    shape = _shape(shape)
    names = _axis_names(fcompute, len(shape), varargs_names)
    axis = [IterVar(_from_zero(extent), Var(n, extent.dtype), IterVar.DataPar)
            for n, extent in zip(names, shape)]
    body = fcompute(*[iv.var for iv in axis])
    if isinstance(body, IntrinCall):
        done = tensor_compute(name, tagged(tag), attrs, shape, axis, body)
        return done.output(0) if done.num_outputs == 1 else done.outputs
    if len(names) < len(shape):
        raise _not_as_many(names, len(shape))
    several = isinstance(body, (tuple, list))
    values = [_value(e, name) for e in (body if several else (body,))]
    if not values:
        raise ValueError(f"fcompute of {name} returned no value")
    made = ComputeOp(name, tagged(tag), attrs, axis, values)
    return made.outputs if several else made.output(0)


def _value(e: Any, name: str) -> PrimExpr:
    if e is None:
        raise TypeError(f"fcompute of {name} returned None: it must return the element")
    if isinstance(e, Tensor):
        if e.ndim:
            raise TypeError(f"fcompute of {name} returned the whole tensor {e.name}: it must "
                            "return an element, such as " + e.name + "[i, j]")
        return e()
    return e.asobject() if isinstance(e, TensorSlice) else tir_op.convert(e)


def extern(shape: Any, inputs: Sequence[Tensor], fcompute: Callable, name: str = "extern",
           dtype: Any = None, in_buffers: Any = None, out_buffers: Any = None, tag: str = "",
           attrs: Mapping[str, Any] | None = None) -> Any:
    """Tensors made by foreign code: `fcompute(ins, outs)` gets buffers, returns a call or Stmt.

    `shape` is one shape or a list of them; `dtype` one dtype or a list (by default that of the
    first input). For instance `lambda ins, outs: tvm.tir.call_packed("f", ins[0], outs[0])`.
    """
    shapes = [shape] if not isinstance(shape, (list, tuple)) or not shape or not isinstance(
        shape[0], (list, tuple)) else list(shape)
    shapes = [_shape(s) for s in shapes]
    for item in inputs:
        if not isinstance(item, Tensor):
            raise TypeError(f"inputs of extern {name} are te tensors, got {type(item).__name__}")
    ins = _listed(in_buffers) if in_buffers else [
        decl_buffer(t.shape, t.dtype, t.op.name) for t in inputs]
    if dtype is None:
        kinds = {t.dtype for t in inputs}
        if len(kinds) != 1 and out_buffers is None:
            raise ValueError(f"extern {name}: say dtype=, the inputs do not settle it")
        dtype = next(iter(kinds), None)
    dtypes = list(dtype) if isinstance(dtype, (list, tuple)) else [dtype] * len(shapes)
    outs = _listed(out_buffers) if out_buffers else [
        decl_buffer(s, d, name) for s, d in zip(shapes, dtypes)]
    body = fcompute(ins, outs)
    if isinstance(body, PrimExpr):
        body = Evaluate(body)
    if not isinstance(body, Stmt):
        raise TypeError(f"fcompute of extern {name} must return a call or a statement, "
                        f"got {type(body).__name__}")
    made = ExternOp(name, tag, attrs, inputs, ins, outs, body)
    return made.output(0) if len(outs) == 1 else list(made.outputs)


def scan(init: Any, update: Any, state_placeholder: Any, inputs: Any = None, name: str = "scan",
         tag: str = "", attrs: Mapping[str, Any] | None = None) -> Any:
    """Tensors made by a recurrence along their first axis.

    `init` gives the first rows, `update` the row at t from rows before it, which it reads through
    `state_placeholder`. Each may be a list, for several states. A running sum:

        X, state = te.placeholder((m, n)), te.placeholder((m, n))
        init = te.compute((1, n), lambda _, i: X[0, i])
        update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i])
        total = te.scan(init, update, state, inputs=[X])

    Raises ValueError where the numbers of dimensions or dtypes do not fit.
    """
    def several(value: Any) -> list[Tensor]:
        return [value] if isinstance(value, Tensor) else list(value or ())

    inits, updates, states = several(init), several(update), several(state_placeholder)
    if not len(inits) == len(updates) == len(states) or not states:
        raise ValueError(f"scan {name}: there are {len(inits)} init, {len(updates)} update and "
                         f"{len(states)} state tensors; they must be as many")
    for first, row, state in zip(inits, updates, states):
        if not (first.ndim == row.ndim == state.ndim and first.dtype == row.dtype == state.dtype):
            raise ValueError(f"scan {name}: {first}, {row} and {state} must have as many "
                             "dimensions and one dtype")
        if not isinstance(state.op, PlaceholderOp):
            raise ValueError(f"scan {name}: the state {state.name} must be a placeholder")
        if not isinstance(row.op, ComputeOp):
            raise ValueError(f"scan {name}: the update {row.name} must be a te.compute")
    begin = inits[0].shape[0]
    extent = tir_op.sub(states[0].shape[0], begin)
    axis = IterVar(Range.from_min_extent(begin, extent), Var(f"{name}.idx", extent.dtype),
                   IterVar.Ordered)
    made = ScanOp(name, tag, attrs, axis, inits, updates, states, several(inputs))
    return made.output(0) if len(states) == 1 else list(made.outputs)


def _listed(buffers: Any) -> list[Buffer]:
    return [buffers] if isinstance(buffers, Buffer) else list(buffers)


def extern_primfunc(inputs: Sequence[Tensor], primfunc: PrimFunc, name: str | None = None,
                    **attrs: Mapping[str, Any] | None) -> Any:
    """The tensors that a PrimFunc computes; its first parameters are `inputs`, the rest outputs."""
    buffers = primfunc.buffers
    count = len(inputs)
    if count >= len(buffers):
        raise ValueError(f"the function has {len(buffers)} buffers and {count} of them are "
                         "inputs: nothing is left for the outputs")
    for tensor, buffer in zip(inputs, buffers):
        if tensor.dtype != buffer.dtype or tensor.ndim != buffer.ndim:
            raise ValueError(f"{tensor.name} ({tensor.dtype}, {tensor.ndim} dimensions) does not "
                             f"fit the parameter {buffer.name} ({buffer.dtype}, {buffer.ndim})")
    body = primfunc.body
    block = getattr(body, "block", None)
    if block is not None and not block.iter_vars and not block.alloc_buffers:
        body = block.body  # the root block is implied
    made = ExternOp(name or str((primfunc.attrs or {}).get("global_symbol", "extern")), "", attrs,
                    inputs, buffers[:count], buffers[count:], body)
    return made.output(0) if len(buffers) - count == 1 else list(made.outputs)


__all__ = ["compute", "extern", "extern_primfunc", "placeholder", "reduce_axis", "scan",
           "size_var", "thread_axis", "var"]
