"""Rows of operators that move elements."""

from __future__ import annotations

from typing import Any

from ... import te, topi
from ...tir import op as O
from ...topi.transform import injective
from ...topi.utils import simplify
from ..expr import Call, Expr, Tuple
from .common import attr_row, legalize, prim

attr_row("permute_dims", lambda x, attrs: topi.transpose(x, attrs.axes), "transpose")
attr_row("squeeze", lambda x, attrs: topi.squeeze(x, attrs.axis))
attr_row("tile", lambda x, attrs: topi.tile(x, attrs.repeats))
attr_row("flip", lambda x, attrs: topi.flip(x, attrs.axis))
attr_row("stack", lambda xs, attrs: topi.stack(xs, attrs.axis or 0))
attr_row("broadcast_to", lambda x, shape, attrs: topi.broadcast_to(x, shape))


@legalize("meshgrid")
def _meshgrid(bb: Any, call: Call) -> Expr:
    def meshgrid(xs: Any) -> Any:
        grids = topi.meshgrid(xs, call.attrs.indexing)
        return grids if len(grids) > 1 else grids[0]

    made = bb.call_te(meshgrid, *call.args)
    return made if len(call.struct_info.fields_) > 1 else Tuple([bb.emit(made)])


@legalize("reshape")
def _reshape(bb: Any, call: Call) -> Expr:
    return bb.call_te(topi.reshape, call.args[0], call.struct_info.shape,
                      primfunc_name_hint="reshape")


@legalize("flatten")
def _flatten(bb: Any, call: Call) -> Expr:
    return bb.call_te(topi.reshape, call.args[0], call.struct_info.shape,
                      primfunc_name_hint="reshape")


@legalize("nn.batch_flatten")
def _batch_flatten(bb: Any, call: Call) -> Expr:
    return bb.call_te(topi.reshape, call.args[0], call.struct_info.shape,
                      primfunc_name_hint="reshape")


@legalize("expand_dims")
def _expand_dims(bb: Any, call: Call) -> Expr:
    def expand_dims(x: Any, axes: Any) -> Any:
        ndim = x.ndim + len(axes)
        new = {a % ndim for a in axes}
        one = O.const(1, x.shape[0].dtype if x.ndim else "int64")
        rest = iter(x.shape)
        shape = [one if k in new else next(rest) for k in range(ndim)]
        return injective(shape, lambda *i: x(*[v for k, v in enumerate(i) if k not in new]),
                         "T_expand_dims" if len(new) == 1 else "expand_dims")

    return bb.call_te(expand_dims, call.args[0], list(call.attrs.axis))


@legalize("concat")
def _concat(bb: Any, call: Call) -> Expr:
    def concatenate(tensors: Any, axis: Any) -> Any:
        if axis is None:
            tensors, axis = [topi.reshape(t, (-1,)) for t in tensors], 0
        return topi.concatenate(tensors, axis)

    return bb.call_te(concatenate, call.args[0], call.attrs.axis)


@legalize("split")
def _split(bb: Any, call: Call) -> Expr:
    axis, cuts = call.attrs.axis, call.attrs.indices_or_sections
    info = call.args[0].struct_info
    fields = call.struct_info.fields_
    if not isinstance(cuts, tuple):  # where each piece begins: all have one size but the last
        size = fields[0].dims[axis % info.ndim]
        cuts = tuple(simplify(size * k) for k in range(1, cuts))

    def split(x: Any, indices: Any) -> Any:
        pieces = topi.split(x, indices, axis)
        return pieces if len(pieces) > 1 else pieces[0]

    if not cuts:  # one piece: the whole, still as a tuple
        return Tuple([call.args[0]])
    return bb.call_te(split, call.args[0], list(cuts))


@legalize("repeat")
def _repeat(bb: Any, call: Call) -> Expr:
    def repeat(x: Any, repeats: int, axis: Any) -> Any:
        if axis is None:
            x, axis = topi.reshape(x, (-1,)), 0
        return topi.repeat(x, repeats, axis)

    return bb.call_te(repeat, call.args[0], call.attrs.repeats, call.attrs.axis)


def _collapse(x: Any, shape: Any) -> Any:
    """The sum over what broadcasting `shape` to that of x repeats."""
    lead = x.ndim - len(shape)
    over = list(range(lead)) + [k + lead for k, d in enumerate(shape) if O.is_const_int(d, 1)
                                and not O.is_const_int(x.shape[k + lead], 1)]
    total = topi.sum(x, over, True) if over else topi.identity(x)
    return topi.reshape(total, shape) if lead else total


@legalize("collapse_sum_to")
def _collapse_sum_to(bb: Any, call: Call) -> Expr:
    return bb.call_te(_collapse, *call.args, primfunc_name_hint="collapse_sum")


@legalize("collapse_sum_like")
def _collapse_sum_like(bb: Any, call: Call) -> Expr:
    return bb.call_te(_collapse, call.args[0], call.args[1].struct_info.shape,
                      primfunc_name_hint="collapse_sum")


@legalize("layout_transform")
def _layout_transform(bb: Any, call: Call) -> Expr:
    from ...arith.index_map import padded_inverse
    from ...tir.functor import substitute

    index_map = call.attrs.index_map
    value = prim(call.attrs.pad_value) if call.attrs.pad_value is not None else 0
    shape = list(call.struct_info.dims)
    source = list(call.args[0].struct_info.dims)

    def layout_transform(x: Any) -> Any:
        back, outside = padded_inverse(index_map, source)

        def element(*i: Any) -> Any:
            table = dict(zip(back.initial_indices, i))
            read = x(*[substitute(e, table) for e in back.final_indices])
            if O.is_const_int(outside, 0):
                return read
            return O.if_then_else(substitute(outside, table), O.const(value, x.dtype), read)

        return te.compute(shape, element, name="te_layout_transform", tag="injective")

    return bb.call_te(layout_transform, call.args[0], primfunc_name_hint="te_layout_transform")
