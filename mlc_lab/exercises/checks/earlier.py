"""Where a wrong element comes from, before the statement that wrote it last.

Two things are looked for, on the inputs on which an answer is wrong. An element that was read
before anything had been written to it: the sum that nobody set to zero. And an intermediate buffer
that the reference has too, by name and shape, with other values in it: the mistake was made there.
Only small programs come here; they are interpreted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...backend.interp import AccessLog, interpret
from ...ir.module import IRModule
from ...observe.measure import only_function
from ...reading import MISTAKES, MLCError
from ...tir.buffer import Buffer
from ...tir.expr import Var
from ...tir.function import PrimFunc
from ...tir.op import as_int
from ...tir.stmt import BlockRealize

#: what differs first between two arrays: the index of an element, or None
Differs = Callable[[np.ndarray, np.ndarray], "tuple[int, ...] | None"]


@dataclass
class Earlier:
    """In words, and the load or store that it is about."""

    says: str
    node: Any


def earlier(have: IRModule, want: IRModule, arrays: Sequence[np.ndarray], differs: Differs
            ) -> Earlier | None:
    """What went wrong before the last write, or None. It is an addition to what is wrong: where it
    cannot be found out, nothing is said."""
    try:
        return _stale(have, want, arrays) or _other_values(have, want, arrays, differs)
    except (MLCError, *MISTAKES, RecursionError):
        return None


def _stale(have: IRModule, want: IRModule, arrays: Sequence[np.ndarray]) -> Earlier | None:
    """The first element that is read before it is written, of a buffer that the program writes,
    unless the reference reads that parameter so too: then it is an input."""
    found, stored = _read_first(have, arrays)
    func, other = only_function(have)[1], only_function(want)[1]
    right = _read_first(want, arrays)[0]
    fine = {number for number in range(len(other.params)) if _data(other, number) in right}
    mine = {_data(func, number): number for number in range(len(func.params))}
    for data, (access, log) in found.items():
        if data not in stored or mine.get(data) in fine:
            continue
        loops = dict(zip((v.name for v in log.loops[access.site]), access.iteration))
        return Earlier(f"before that, {_element(access)} was read at {_at(loops)}, and nothing had "
                       "been written to it yet", log.nodes[access.site])
    return None


def _read_first(mod: IRModule, arrays: Sequence[np.ndarray]
                ) -> tuple[dict[Var, tuple[Any, AccessLog]], set[Var]]:
    """The first read of an element that nothing has written, by the memory of its buffer; and the
    memory of the buffers that are written."""
    log = AccessLog()
    interpret(mod, *[a.copy() for a in arrays], record=log, func_name=only_function(mod)[0])
    written: set[tuple[Var, int]] = set()
    first: dict[Var, Any] = {}
    for access in log.accesses:
        data = access.buffer.data
        if access.write:
            written.add((data, access.index))
        elif data not in first and (data, access.index) not in written:
            first[data] = access
    return {data: (access, log) for data, access in first.items()}, {data for data, _ in written}


def _other_values(have: IRModule, want: IRModule, arrays: Sequence[np.ndarray], differs: Differs
                  ) -> Earlier | None:
    """The first buffer between the parameters whose values are not those of the reference's."""
    (name, ours), (other, theirs) = only_function(have), only_function(want)
    mine, right = _between(ours), _between(theirs)
    for label in mine:
        if label in right and _kind(mine[label]) == _kind(right[label]) is not None:
            values, log = _seen(name, ours, mine[label], arrays)
            expected, _ = _seen(other, theirs, right[label], arrays)
            at = differs(values, expected)
            if at is None:
                continue
            index = int(np.ravel_multi_index(at, values.shape)) if at else 0
            writes = [a for a in log.accesses if a.write and a.index == index
                      and a.buffer.data is mine[label].data]
            if not writes:
                continue
            loops = dict(zip((v.name for v in log.loops[writes[-1].site]), writes[-1].iteration))
            element = f"{label}[{', '.join(map(str, at))}]"
            return Earlier(f"before that, {element} became {values[at]:.7g} at {_at(loops)}, and "
                           f"is {expected[at]:.7g} in the reference", log.nodes[writes[-1].site])
    return None


def _between(func: PrimFunc) -> dict[str, Buffer]:
    """The buffers that the root block allocates, by name."""
    root = func.body.block if type(func.body) is BlockRealize else None
    return {buffer.name: buffer for buffer in root.alloc_buffers} if root is not None else {}


def _kind(buffer: Buffer) -> tuple[str, tuple[int, ...]] | None:
    """Data type and shape, if that is known."""
    shape = [as_int(dim) for dim in buffer.shape]
    return None if None in shape else (buffer.dtype, tuple(shape))  # type: ignore[arg-type]


def _seen(name: str, func: PrimFunc, buffer: Buffer, arrays: Sequence[np.ndarray]
          ) -> tuple[np.ndarray, AccessLog]:
    """What a buffer that the root block allocates holds at the end: it becomes a parameter."""
    assert type(func.body) is BlockRealize  # `_between` found the buffer in it
    root = func.body.block
    kept = [b for b in root.alloc_buffers if b is not buffer]
    param = Var(buffer.name, "handle")
    body = func.body.replace(block=root.replace(alloc_buffers=tuple(kept)))
    shown = func.replace(params=(*func.params, param), body=body,
                         buffer_map={**func.buffer_map, param: buffer})
    dtype, shape = _kind(buffer) or ("", ())
    values = np.zeros(shape, dtype)
    log = AccessLog()
    interpret(IRModule({name: shown}), *[a.copy() for a in arrays], values, record=log,
              func_name=name)
    return values, log


def _data(func: PrimFunc, number: int) -> Var | None:
    buffer = func.buffer_map.get(func.params[number])
    return None if buffer is None else buffer.data


def _element(access: Any) -> str:
    """The element of an access by its indices, as "C[0, 1]"."""
    shape = [as_int(dim) for dim in access.buffer.shape]
    if None in shape or access.buffer.strides or not shape:
        return access.buffer.name
    at = np.unravel_index(access.index, shape)  # type: ignore[arg-type]
    return f"{access.buffer.name}[{', '.join(str(int(i)) for i in at)}]"


def _at(loops: dict[str, int]) -> str:
    return ", ".join(f"{k} = {v}" for k, v in loops.items()) or "the beginning"


__all__ = ["Earlier", "earlier"]
