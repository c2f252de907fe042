"""Rules that pick elements by conditions, by lengths and by places of a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....tir.expr import SizeVar
from ... import op
from ...struct_info import TensorStructInfo
from .given import Sizes
from .importer import Importer, rule

if TYPE_CHECKING:
    from .importer import Given


def _line(im: Importer, size: Any, rank: int, axis: int) -> Any:
    """0, 1, .. along one of `rank` dimensions."""
    line = im.emit(op.arange(0, size, 1, "int64"))
    return im.emit(op.reshape(line, [1] * axis + [size] + [1] * (rank - 1 - axis)))


def _along(im: Importer, x: Given, rank: int, axis: int) -> Any:
    """A vector along one of `rank` dimensions."""
    x = im.emit(op.astype(im.tensor(x), "int64"))
    return im.emit(op.reshape(x, [1] * axis + im.shape(x) + [1] * (rank - 1 - axis)))


@rule("Compress")
def _compress(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    """The slices for which a condition holds. How many they are may be for the run to say."""
    x, condition = inputs
    x = im.tensor(x)
    axis = attrs.get("axis")
    if axis is None:
        total: Any = 1
        for s in im.shape(x):
            total = total * s
        x, axis = im.emit(op.reshape(x, [total])), 0
    if im.known(condition):
        return im.emit(op.take(x, im.tensor(np.flatnonzero(condition)), axis))
    name = im.builder.get_unique_name("count")
    places = im.builder.match_cast(im.emit(op.nonzero(im.tensor(condition))), TensorStructInfo(
        [1, SizeVar(name, "int64")], "int64"))
    return im.emit(op.take(x, im.emit(op.squeeze(places, [0])), axis))


@rule("ReverseSequence")
def _reverse_sequence(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    """The first elements along one axis backwards, as many as another axis says."""
    x = im.tensor(inputs[0])
    time, batch = attrs.get("time_axis", 0), attrs.get("batch_axis", 1)
    sizes = im.shape(x)
    here, count = _line(im, sizes[time], len(sizes), time), _along(
        im, inputs[1], len(sizes), batch)
    back = im.emit(op.subtract(im.emit(op.subtract(count, im.tensor(np.asarray(1, "int64")))),
                               here))
    at = im.emit(op.where(im.emit(op.less(here, count)), back, here))
    return im.emit(op.gather_elements(x, im.emit(op.broadcast_to(at, sizes)), time))


@rule("TensorScatter")
def _tensor_scatter(im: Importer, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    """A cache with new slices in it, from a place that each batch has."""
    cache, update, begin = [*inputs, None][:3]
    cache, update = im.tensor(cache), im.tensor(update)
    sizes = im.shape(update)
    axis = attrs.get("axis", -2) % len(sizes)
    at = _line(im, sizes[axis], len(sizes), axis)
    if begin is not None:
        at = im.emit(op.add(at, _along(im, begin, len(sizes), 0)))
    if attrs.get("mode", "linear") == "circular":
        room = im.emit(op.reshape(im.tensor(Sizes([im.shape(cache)[axis]])), []))
        at = im.emit(op.floor_mod(at, room))
    return im.emit(op.scatter_elements(cache, im.emit(op.broadcast_to(at, sizes)), update, axis))
