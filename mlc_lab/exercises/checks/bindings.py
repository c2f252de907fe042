"""Where a model goes wrong: the first of its operators whose value differs from the reference's.

Both models are run so that they return the value of each binding. Two bindings belong together that
have one name and shape; else those that are the same operator for the same time, where both models
have that operator equally often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.module import IRModule
from ...reading import MISTAKES, MLCError
from ...relax import expr as rx
from ...relax import transform
from ...relax.struct_info import TensorStructInfo
from .models import Model, model_of

#: bindings of a model that is looked at, and bytes of all their values
MOST, BYTES = 200, 1 << 28


#: what differs first between two arrays: the index of an element, or None
Differs = Callable[[np.ndarray, np.ndarray], "tuple[int, ...] | None"]


@dataclass
class Bound:
    """A binding: its name, which operator it is and for which time, its line, its value."""

    name: str
    key: tuple[str, int]
    line: str
    value: np.ndarray


def told(have: IRModule, want: IRModule, arrays: Sequence[np.ndarray], differs: Differs
         ) -> tuple[str, dict[str, Any]]:
    """Which operator goes wrong first, in words, and as the place of a row; empty where that is
    not known. It is an addition to what is wrong: where it cannot be found out, nothing is said."""
    try:
        found = first_wrong(have, want, arrays, differs)
    except (MLCError, *MISTAKES, RecursionError):
        return "", {}
    if found is None:
        return "", {}
    one, right, at = found
    element = f"{one.name}[{', '.join(map(str, at))}]" if at else one.name
    return (f". The first operator that differs is {one.line}: {element} is {one.value[at]:.7g}, "
            f"and should be {right[at]:.7g}", {"binding": one.name})


def first_wrong(have: IRModule, want: IRModule, arrays: Sequence[np.ndarray], differs: Differs
                ) -> tuple[Bound, np.ndarray, tuple[int, ...]] | None:
    """The first binding of a model that differs from its counterpart in the reference, what that
    has, and the first element that differs; None where no such is found. `differs(a, b)` gives the
    place where values differ, or None."""
    ours, theirs = bound(have, arrays), bound(want, arrays)
    named = {one.name: one for one in theirs}
    keyed = {one.key: one for one in theirs}
    count, other = (Counter(one.key[0] for one in each) for each in (ours, theirs))
    for one in ours:
        right = named.get(one.name)
        if right is None or right.value.shape != one.value.shape:
            right = keyed.get(one.key) if count[one.key[0]] == other[one.key[0]] else None
        if right is None or right.value.shape != one.value.shape:
            continue
        at = differs(one.value, right.value)
        if at is not None:
            return one, right.value, at
    return None


def bound(mod: IRModule, arrays: Sequence[np.ndarray]) -> list[Bound]:
    """The bindings of a model that are tensors, in order, with their values on some inputs."""
    open_mod = transform.ToNonDataflow()(mod)
    func = model_of(open_mod)
    if func is None or not isinstance(func.body, rx.SeqExpr):
        return []
    found = [b for block in func.body.blocks for b in block.bindings
             if isinstance(b.var.struct_info_, TensorStructInfo)]
    if not 0 < len(found) <= MOST:
        return []
    body = rx.SeqExpr(func.body.blocks, rx.Tuple([b.var for b in found]))
    telling = rx.Function(func.params, body, None, func.is_pure, func.attrs)
    values = Model(_with_main(open_mod, telling))(arrays)
    if len(values) != len(found) or sum(v.nbytes for v in values) > BYTES:
        return []
    out, seen = [], Counter[str]()
    for binding, value in zip(found, values):
        operator = _operator(binding)
        out.append(Bound(binding.var.name_hint, (operator, seen[operator]),
                         _line(binding), value))
        seen[operator] += 1
    return out


def _with_main(mod: IRModule, func: rx.Function) -> IRModule:
    functions: Mapping[Any, Any] = {
        gv: func if gv.name_hint == "main" else f for gv, f in mod.functions.items()}
    return IRModule(dict(functions))


def _operator(binding: Any) -> str:
    value = getattr(binding, "value", None)
    op = getattr(value, "op", None)
    return str(getattr(op, "name", None) or getattr(op, "name_hint", "") or type(value).__name__)


def _line(binding: Any) -> str:
    """A binding as a line of TVMScript, shortened."""
    text = " ".join(str(getattr(binding, "value", "")).split())
    return f"{binding.var.name_hint} = {text if len(text) <= 80 else text[:79] + '…'}"


__all__ = ["Bound", "bound", "first_wrong", "told"]
