"""renew_defs: a function again, with variables and buffers of its own."""

from __future__ import annotations

from ..ir.serialize import load_json, save_json
from .function import PrimFunc
from .functor import free_vars, substitute


def renew_defs(func: PrimFunc) -> PrimFunc:
    """The same function with variables and buffers of its own: all that it binds is new."""
    new = load_json(save_json(func))
    held = [v for b in func.buffer_map.values() for part in (b.data, *b.shape, *b.strides,
                                                             b.elem_offset)
            if part is not None for v in free_vars(part)]
    bound = {*func.params, *held}
    free = {ours: theirs for ours, theirs in zip(free_vars(new), free_vars(func))
            if theirs not in bound}
    return new.with_body(substitute(new.body, free)) if free else new


__all__ = ["renew_defs"]
