"""Rows of operators whose result has a size that only the run knows, and of hints.

`nonzero` and `unique` become calls of functions registered here, on numpy; so does the check of a
loss's targets.
"""

from __future__ import annotations

from typing import Any

from ..expr import Call, Expr, ExternFunc
from .common import legalize, prim


def _packed(name: str) -> Any:
    def row(bb: Any, call: Call) -> Expr:
        return Call(ExternFunc(name), call.args, None, [call.struct_info])

    return row


legalize("nonzero")(_packed("relax.run.nonzero"))
legalize("unique")(_packed("relax.run.unique"))


def _itself(bb: Any, call: Call) -> Expr:
    return call.args[0]


for _name in ("to_vdevice", "hint_on_device", "builtin.stop_lift_params"):
    legalize(_name)(_itself)


def run_nonzero(x: Any) -> Any:
    """The indices of elements that are not 0, as [ndim, count]."""
    import numpy as np

    from ...runtime import array

    value = x.numpy()
    return array(np.ascontiguousarray(np.argwhere(value).T.astype("int64")))


def run_unique(x: Any, in_order: Any, index: Any, inverse: Any, counts: Any, axis: Any = None
               ) -> Any:
    """numpy.unique, its results in the order of Relax's operator."""
    import numpy as np

    from ...runtime import array

    flags = [bool(prim(f)) for f in (index, inverse, counts)]
    found = np.unique(x.numpy(), return_index=True, return_inverse=True, return_counts=True,
                      axis=None if axis is None else int(prim(axis)))
    values, *rest = found
    if not bool(prim(in_order)):  # in the order of first appearance
        order = np.argsort(rest[0], kind="stable")
        place = np.argsort(order, kind="stable")
        values = np.take(values, order, 0 if axis is None else int(prim(axis)))
        rest = [rest[0][order], place[rest[1]], rest[2][order]]
    out = [values, *(r.reshape(-1).astype("int64") for r, flag in zip(rest, flags) if flag)]
    out = [array(np.ascontiguousarray(o)) for o in out]
    return out[0] if len(out) == 1 else out


def run_checked_targets(targets: Any, classes: int, ignore_index: int) -> Any:
    """The targets of a loss, all of which are classes or `ignore_index`.

    Raises ValueError, naming the first that is neither.
    """
    import numpy as np

    from ...runtime import array

    values, classes, ignored = targets.numpy(), int(prim(classes)), int(prim(ignore_index))
    outside = ((values < 0) | (values >= classes)) & (values != ignored)
    if outside.any():
        place = tuple(int(k) for k in np.argwhere(outside)[0])
        raise ValueError(f"R.nn.nll_loss: target {values[place]} at {list(place)} is no class: "
                         f"there are the classes 0 to {classes - 1}, and {ignored} is ignored")
    return array(values, targets.device)


def _register() -> None:
    from ...runtime import register_func

    for name, fn in (("relax.run.nonzero", run_nonzero), ("relax.run.unique", run_unique),
                     ("relax.run.checked_targets", run_checked_targets)):
        register_func(name, fn, override=True)


_register()
