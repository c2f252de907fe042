"""Rules of sequences of tensors. How many there are, and which one is taken, is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import op
from .given import Items
from .importer import RULES, Importer, rule


def _items(value: Any) -> Items:
    if not isinstance(value, Items):
        raise ValueError("a sequence that is an input of the model, or that a run makes, is not "
                         "translated: give its tensors one by one")
    return value


def _place(im: Importer, value: Any, most: int, count: int) -> int:
    """A position, counted from the front; `count` where none is given."""
    if value is None:
        return count
    place = int(im.number(value, "the position"))
    if not -count <= place < most:
        raise IndexError(f"the position {place} of a sequence of {count} tensors")
    return place + count if place < 0 else place


@rule("SequenceConstruct")
def _construct(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    return Items(inputs)


@rule("SequenceEmpty")
def _empty(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    attrs.get("dtype")  # that of what comes into it
    return Items()


@rule("SequenceAt")
def _at(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    items = _items(inputs[0])
    return items[_place(im, inputs[1], len(items), len(items))]


@rule("SequenceInsert")
def _insert(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    items, value, place = [*inputs, None][:3]
    items = Items(_items(items))
    items.insert(_place(im, place, len(items) + 1, len(items)), value)
    return items


@rule("SequenceErase")
def _erase(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    items, place = [*inputs, None][:2]
    items = Items(_items(items))
    del items[len(items) - 1 if place is None else _place(im, place, len(items), len(items))]
    return items


@rule("SequenceLength")
def _length(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    return np.array(len(_items(inputs[0])), "int64")


@rule("ConcatFromSequence")
def _concat(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    items, axis = _items(inputs[0]), attrs["axis"]
    if attrs.get("new_axis", 0):
        return im.emit(op.stack([im.tensor(v) for v in items], axis))
    return RULES["Concat"](im, list(items), {"axis": axis})


@rule("SplitToSequence")
def _split(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    x, parts = [*inputs, None][:2]
    axis, keep = attrs.get("axis", 0), attrs.get("keepdims", 1)
    size = im.shape(x)[axis]
    if parts is None or not im.shape(parts):
        each = 1 if parts is None else int(im.number(parts, "the size of the parts"))
        if not isinstance(size, int):
            raise ValueError(f"how many parts a dimension of size {size} has is not known: give "
                             "its size in shape_dict")
        cuts = list(range(each, size, each))
    else:
        cuts = [int(c) for c in np.cumsum(im.numbers(parts, "the sizes of the parts"))[:-1]]
    x = im.tensor(x)
    made = im.emit(op.split(x, cuts, axis)) if cuts else None
    out = [x] if made is None else [im.emit(made[k]) for k in range(len(cuts) + 1)]
    if parts is None and not keep:
        out = [im.emit(op.squeeze(v, [axis])) for v in out]
    return Items(out)
