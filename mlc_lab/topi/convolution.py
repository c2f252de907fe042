"""What a convolution or a pooling asks of its sizes, and the sizes of its result: for TE and for
Relax.

TE refuses what is surely wrong when an operator is written (`refuse`); Relax also leaves what
depends on symbolic sizes to run time.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence

from ..tir import op as O
from .utils import dilated, need, simplify, window_count


class Need(NamedTuple):
    """What a size must be: "same" as another, a "multiple" of it, or "at least" as large; and what
    to say where it is not."""

    size: Any
    must: str
    other: Any
    text: Callable[[], str]


class Tensors(NamedTuple):
    """The data and the weights of a convolution, in the words of a message."""

    data: str
    weight: str


#: how many elements each axis of the result has: N, C, then the spatial ones
Sizes = dict[str, Any]


def convolution(x: Mapping[str, Any], w: Mapping[str, Any], letters: Sequence[str],
                strides: Sequence[Any], padding: Sequence[Any], dilation: Sequence[Any],
                groups: int, tensors: Callable[[], Tensors]) -> tuple[Sizes, list[Need]]:
    """The result's sizes by letter, and what must be true.

    `x` has the sizes of the data by the letters N, C and `letters`, `w` those of the weights by O,
    I and `letters`. `padding` counts the elements before and after each axis together.
    """
    needs = [
        Need(x["C"], "same", _times(w["I"], groups), lambda: (
            f"the {tensors().data} has {_said(x['C'])} channels and the {tensors().weight} takes "
            f"{_said(w['I'])}" + (f" in each of {groups} groups" if groups > 1 else ""))),
        _whole_groups(w["O"], groups, lambda: f"output channels of the {tensors().weight}")]
    return _over_windows(needs, w["O"], x, w, letters, strides, padding, dilation, tensors)


def depthwise_convolution(x: Mapping[str, Any], w: Mapping[str, Any], letters: Sequence[str],
                          strides: Sequence[Any], padding: Sequence[Any], dilation: Sequence[Any],
                          tensors: Callable[[], Tensors]) -> tuple[Sizes, list[Need]]:
    """As `convolution`. The weights have C, the channels, and M, how many results each of them
    has."""
    needs = [Need(x["C"], "same", w["C"], lambda: (
        f"the {tensors().data} has {_said(x['C'])} channels and the {tensors().weight} is for "
        f"{_said(w['C'])}"))]
    return _over_windows(needs, simplify(x["C"] * w["M"]), x, w, letters, strides, padding,
                         dilation, tensors)


def _over_windows(needs: list[Need], channels: Any, x: Mapping[str, Any], w: Mapping[str, Any],
                  letters: Sequence[str], strides: Sequence[Any], padding: Sequence[Any],
                  dilation: Sequence[Any], tensors: Callable[[], Tensors]
                  ) -> tuple[Sizes, list[Need]]:
    out = {"N": x["N"], "C": channels}
    for c, s, p, d in zip(letters, strides, padding, dilation):
        out[c] = window_count(x[c], dilated(w[c], d), p, s)
    return out, [*needs, *_windows_not_empty(w, letters, tensors),
                 *_something_left(out, letters, tensors)]


def transposed_convolution(x: Mapping[str, Any], w: Mapping[str, Any], letters: Sequence[str],
                           strides: Sequence[Any], padding: Sequence[Any],
                           output_padding: Sequence[Any], dilation: Sequence[Any], groups: int,
                           tensors: Callable[[], Tensors]) -> tuple[Sizes, list[Need]]:
    """As `convolution`. The weights take the channels of the data as I and give O for each group;
    `output_padding` are elements at the end of an axis of the result."""
    needs = [
        Need(x["C"], "same", w["I"], lambda: (
            f"the {tensors().data} has {_said(x['C'])} channels and the {tensors().weight} takes "
            f"{_said(w['I'])}")),
        _whole_groups(x["C"], groups, lambda: f"channels of the {tensors().data}"),
        *_windows_not_empty(w, letters, tensors)]
    out = {"N": x["N"], "C": _times(w["O"], groups)}
    for c, s, p, e, d in zip(letters, strides, padding, output_padding, dilation):
        out[c] = simplify((x[c] - 1) * s + (w[c] - 1) * d - (p - e - 1))
    return out, needs + _something_left(out, letters, tensors)


def pooling(x: Mapping[str, Any], letters: Sequence[str], window: Sequence[Any],
            strides: Sequence[Any], padding: Sequence[Any], dilation: Sequence[Any],
            ceil_mode: bool, data: Callable[[], str]) -> tuple[Sizes, list[Need]]:
    """The sizes of the spatial axes after pooling, and what must be true.

    In `ceil_mode` the last window may hang over the end. `data` says in a message what is pooled.
    """
    out = {c: window_count(x[c], dilated(k, d), p, s, ceil_mode)
           for c, k, s, p, d in zip(letters, window, strides, padding, dilation)}
    return out, [Need(size, "at least", 1, lambda c=c: (
        f"a window of {list(window)} does not fit into {data()}: it leaves {_said(out[c])} along "
        f"{c}")) for c, size in out.items()]


def refuse(name: str, needs: Iterable[Need]) -> None:
    """Raise ValueError where one of the needs is surely not met."""
    for size, must, other, text in needs:
        have, wanted = O.as_int(size), O.as_int(other)
        if have is not None and wanted is not None:
            met = have == wanted if must == "same" else (
                have % wanted == 0 if must == "multiple" else have >= wanted)
            need(met, f"{name}: {text()}")


def _times(size: Any, groups: int) -> Any:
    return size if groups == 1 else simplify(size * groups)


def _whole_groups(channels: Any, groups: int, what: Callable[[], str]) -> Need:
    return Need(channels, "multiple", groups, lambda: (
        f"{groups} groups do not divide the {_said(channels)} {what()}"))


def _windows_not_empty(w: Mapping[str, Any], letters: Sequence[str],
                       tensors: Callable[[], Tensors]) -> list[Need]:
    return [Need(w[c], "at least", 1, lambda: f"the {tensors().weight} has no extent")
            for c in letters]


def _something_left(out: Sizes, letters: Sequence[str], tensors: Callable[[], Tensors]
                    ) -> list[Need]:
    """Of a batch of none there is nothing to compute, but along the spatial axes windows fit."""
    return [Need(out[c], "at least", 1, lambda c=c: (
        f"the {tensors().weight} reaches over the whole padded {tensors().data}, which leaves "
        f"{_said(out[c])} along {c}")) for c in letters]


def _said(size: Any) -> str:
    known = O.as_int(size)
    return str(size if known is None else known)


__all__ = ["Need", "Tensors", "convolution", "depthwise_convolution", "pooling",
           "refuse", "transposed_convolution"]
