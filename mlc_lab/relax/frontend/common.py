"""What the frontends share: detached parameters, indices from the end, slices of symbolic sizes,
pooling that rounds up, and the list of what cannot be translated."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Sequence

import numpy as np

from ...arith import Analyzer
from ...ir.diagnostics import MLCError
from ...ir.module import IRModule
from ...tir import op as O
from ...tir.expr import PrimExpr, Range
from ...tir.functor import free_vars
from .. import op
from ..expr import Constant, Expr, PrimValue, const
from ..op.common import info_of
from ..op.registry import StructInfoError


class MissingOperators(MLCError, NotImplementedError):
    """A model uses operators that a frontend has no rule for.

    `missing` lists them all: (operator, where in the model), in the order of the model.
    """

    def __init__(self, frontend: str, missing: Sequence[tuple[str, str]], advice: str) -> None:
        self.missing = list(missing)
        kinds = list(dict.fromkeys(name for name, _ in self.missing))
        lines = [f"{frontend} has no rule for {len(kinds)} operator(s) of this model:"]
        for kind in kinds:
            lines.append(f"  {kind}")
            lines += [f"    {where}" for name, where in self.missing if name == kind]
        super().__init__("\n".join([*lines, advice]))


def detach_params(mod: IRModule) -> tuple[IRModule, dict[str, list[Any]]]:
    """The module without the attribute "params" of its functions, and those lists by function name.

    The functions take them after their inputs: `vm["main"](x, *params["main"])`.
    """
    out = mod.copy()
    params: dict[str, list[Any]] = {}
    for var, func in list(mod.functions.items()):
        if "params" in (func.attrs or {}):
            params[var.name_hint] = list(func.attrs["params"])
            out.update_func(var, func.without_attr("params"))
    return out, params


def located(error: Exception, place: str) -> Exception:
    """An error of a rule, with the place in the model in front of its message."""
    if isinstance(error, StructInfoError):
        return StructInfoError(f"{place}: {error.op}", error.reason)
    kind = type(error) if type(error) in (TypeError, ValueError, IndexError) else ValueError
    return kind(f"{place}: {error}")


def counted_from_front(values: np.ndarray, size: Any) -> np.ndarray | None:
    """Indices of which those below zero count from the end of a dimension, as indices from its
    front; None where the size is not known and something is below zero.

    Raises IndexError where one is outside of a dimension of known size.
    """
    if isinstance(size, int) and values.size:
        low, high = int(values.min()), int(values.max())
        if low < -size or high >= size:
            raise IndexError(f"the index {low if low < -size else high} is outside of a dimension "
                             f"of {size}")
    if not (values < 0).any():
        return values
    if not isinstance(size, int):
        return None
    return np.where(values < 0, values + size, values).astype(values.dtype)


def from_front(im: Any, indices: Expr, size: Any) -> Expr:
    """`counted_from_front` for a tensor of signed integers: constants now, others when they run."""
    dtype = info_of(indices).dtype
    if dtype.startswith("uint"):
        return indices
    if isinstance(indices, Constant):
        have = indices.data.numpy()
        values = counted_from_front(have, size)
        if values is not None:
            return indices if values is have else const(values, dtype)
    length = const(size, dtype) if isinstance(size, int) else PrimValue(O.cast(size, dtype))
    below = im.emit(op.less(indices, const(0, dtype)))
    return im.emit(op.where(below, im.emit(op.add(indices, length)), indices))


def analyzer_of(sizes: Iterable[Any], ranges: Mapping[str, tuple[int, int]] | None = None
                ) -> Analyzer:
    """An analyzer that knows between which numbers the symbols of sizes lie: 1 or more, or what
    `ranges` says by name."""
    analyzer = Analyzer()
    for var in dict.fromkeys(v for s in sizes if isinstance(s, PrimExpr) for v in free_vars(s)):
        low, high = (ranges or {}).get(var.name, (1, 2**40))
        analyzer.bind(var, Range(O.const(low, var.dtype), O.const(high + 1 - low, var.dtype)))
    return analyzer


def clamped(place: Any, size: Any, ranges: Mapping[str, tuple[int, int]] | None = None) -> Any:
    """A place of a slice, counted from the front, inside of a dimension. What may be below zero
    counts from the end."""
    if isinstance(place, int) and isinstance(size, int):
        return min(max(place + size if place < 0 else place, 0), size)
    if isinstance(place, int) and place < 0:
        place = size + place
    elif isinstance(place, PrimExpr) and not analyzer_of([place], ranges).can_prove(place >= 0):
        place = O.if_then_else(place < 0, place + size, place)
    analyzer = analyzer_of([place, size], ranges)
    if not analyzer.can_prove(O.convert(place) <= size):
        place = O.min_value_of(*(O.cast(O.convert(v), "int64") for v in (place, size)))
    if not analyzer.can_prove(O.convert(place) >= 0):
        place = O.max_value_of(place, 0)
    out = analyzer.simplify(O.convert(place))
    return out if O.as_int(out) is None else O.as_int(out)


def slice_bounds(start: Any, end: Any, size: Any,
                 ranges: Mapping[str, tuple[int, int]] | None = None) -> tuple[Any, Any]:
    """The first place of a slice and the one behind its last, both inside of the dimension."""
    start, end = clamped(start, size, ranges), size if end is None else clamped(end, size, ranges)
    if isinstance(start, int) and isinstance(end, int):
        return start, max(start, end)
    analyzer = analyzer_of([start, end], ranges)
    if not analyzer.can_prove(O.convert(start) <= end):
        end = analyzer.simplify(O.max_value_of(*(O.cast(O.convert(v), "int64")
                                                 for v in (start, end))))
    return start, end


def ceil_pool(im: Any, build: Any, x: Expr, kernel: Sequence[int], strides: Sequence[int],
              pads: Sequence[int], dilations: Sequence[int], include: bool) -> Expr:
    """Pooling with ceil_mode as torch and ONNX have it: every window begins inside, or in the
    padding before; one that would begin in the padding behind is none.

    `pads` are before all dimensions, then after; `include` counts padding in a mean. TVM's own
    ceil_mode keeps the windows that begin in the padding behind. Of a dimension of size n there
    are ceil((n + before) / stride) windows at most, which padding of a whole window less one gives
    without ceil_mode; so sizes may be symbolic.
    """
    rank = len(kernel)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    before, after = list(pads[:rank]), list(pads[rank:])
    late = [a - r + s > 0 for a, r, s in zip(after, reach, strides)]  # may begin behind
    if not any(late):
        return im.emit(build(x, kernel, strides, pads, dilations, True, include))
    if not include:
        wide = [min(r - 1, a + s - 1) for a, r, s in zip(after, reach, strides)]
        return im.emit(build(x, kernel, strides, [*before, *wide], dilations, False, False))
    # a mean with padding counted depends on where the padding ends: cut the windows off behind
    out = im.emit(build(x, kernel, strides, pads, dilations, True, True))
    lead = im.ndim(x) - rank
    have, sizes = im.shape(out), im.shape(x)
    cut = {}
    for k in range(rank):
        most = (sizes[lead + k] + before[k] + strides[k] - 1) // strides[k]
        known = isinstance(most, int) and isinstance(have[lead + k], int)
        if late[k] and not (known and have[lead + k] <= most):
            cut[lead + k] = most
    if not cut:
        return out
    return im.emit(op.strided_slice(out, list(cut), [0] * len(cut), list(cut.values()),
                                    assume_inbound=True))


def identifier(name: str) -> str:
    """A name of a framework as a name of a variable."""
    text = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    return text if text and not text[0].isdigit() else f"v_{text}"


__all__ = ["MissingOperators", "analyzer_of", "ceil_pool", "clamped", "counted_from_front",
           "detach_params", "from_front", "identifier", "located", "slice_bounds"]
