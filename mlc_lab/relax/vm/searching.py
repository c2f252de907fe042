"""Operators whose result has a size that only the run knows, on numpy: nonzero and unique.

So is the check of a loss's targets. Loading this file registers them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime import array, register_func


def run_nonzero(x: Any) -> Any:
    """The indices of elements that are not 0, as [ndim, count]."""
    value = x.numpy()
    return array(np.ascontiguousarray(np.argwhere(value).T.astype("int64")))


def run_unique(x: Any, in_order: Any, index: Any, inverse: Any, counts: Any, axis: Any = None
               ) -> Any:
    """numpy.unique, its results in the order of Relax's operator."""
    flags = [bool(f) for f in (index, inverse, counts)]
    found = np.unique(x.numpy(), return_index=True, return_inverse=True, return_counts=True,
                      axis=None if axis is None else int(axis))
    values, *rest = found
    if not bool(in_order):  # in the order of first appearance
        order = np.argsort(rest[0], kind="stable")
        place = np.argsort(order, kind="stable")
        values = np.take(values, order, 0 if axis is None else int(axis))
        rest = [rest[0][order], place[rest[1]], rest[2][order]]
    out = [values, *(r.reshape(-1).astype("int64") for r, flag in zip(rest, flags) if flag)]
    out = [array(np.ascontiguousarray(o)) for o in out]
    return out[0] if len(out) == 1 else out


def run_checked_targets(targets: Any, classes: int, ignore_index: int) -> Any:
    """The targets of a loss, all of which are classes or `ignore_index`.

    Raises ValueError, naming the first that is neither.
    """
    values, classes, ignored = targets.numpy(), int(classes), int(ignore_index)
    outside = ((values < 0) | (values >= classes)) & (values != ignored)
    if outside.any():
        place = tuple(int(k) for k in np.argwhere(outside)[0])
        raise ValueError(f"R.nn.nll_loss: target {values[place]} at {list(place)} is no class: "
                         f"there are the classes 0 to {classes - 1}, and {ignored} is ignored")
    return array(values, targets.device)


for _name, _fn in (("relax.run.nonzero", run_nonzero), ("relax.run.unique", run_unique),
                   ("relax.run.checked_targets", run_checked_targets)):
    register_func(_name, _fn, override=True)

__all__ = ["run_checked_targets", "run_nonzero", "run_unique"]
