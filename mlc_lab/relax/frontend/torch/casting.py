"""Rules of limits, of casts, of what gives its argument itself, and of what fills a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....tir import op as O
from ... import op
from .importer import Importer, dtype_name, is_tensor, rule

if TYPE_CHECKING:
    from ...expr import Expr
    from .importer import Operand

# ------------------------------------------------------------------------------- limits, casts


@rule("clamp", "clip")
def clamped(im: Importer, x: Operand, min: Operand | None = None, max: Operand | None = None
            ) -> Any:
    """x between two limits, of which either may be missing, a number or a tensor."""
    if not is_tensor(x):
        return O.min_value_of(O.max_value_of(x, min), max)
    given = [v for v in (min, max) if v is not None]
    dtype = im.dtype(x)
    for v in given:
        dtype = im.promoted(im.cast(x, dtype), v)
    x = im.cast(x, dtype)
    if len(given) == 2 and all(isinstance(v, (int, float)) for v in given) and (
            dtype == "float32" and min <= max):  # type: ignore[operator]
        return im.emit(op.clip(x, min, max))
    # of limits that cross, or are NaN, the upper one has the last word: clip is the other way about
    if min is not None:
        x = im.emit(op.maximum(x, im.operand(min, dtype)))
    if max is not None:
        x = im.emit(op.minimum(x, im.operand(max, dtype)))
    return x


@rule("clamp_min")
def _clamp_min(im: Importer, x: Operand, min: Operand | None) -> Any:
    return clamped(im, x, min)


@rule("clamp_max")
def _clamp_max(im: Importer, x: Operand, max: Operand | None) -> Any:
    return clamped(im, x, None, max)


@rule("to", "_to_copy", "type", "_to_dtype", "asarray")
def _to(im: Importer, x: Operand, *args: object, dtype: object = None, other: object = None) -> Any:
    if other is not None:
        args = (other, *args)
    for a in args:
        if is_tensor(a):
            dtype = im.dtype(a)
        elif type(a).__name__ == "dtype" or isinstance(a, str) and a.startswith("torch."):
            dtype = a
    return x if dtype is None else im.cast(x, dtype_name(dtype))


@rule("type_as")
def _type_as(im: Importer, x: Operand, other: object) -> Any:
    return im.cast(x, im.dtype(other))


def _cast_rule(name: str, dtype: str) -> None:
    @rule(name)
    def translate(im: Importer, x: Operand) -> Any:
        return im.cast(x, dtype)


for _method, _dtype in (("float", "float32"), ("double", "float64"), ("half", "float16"),
                        ("long", "int64"), ("int", "int32"), ("bool", "bool"),
                        ("bfloat16", "bfloat16"), ("short", "int16"), ("char", "int8"),
                        ("byte", "uint8")):
    _cast_rule(_method, _dtype)


@rule("clone", "contiguous", "detach", "detach_", "alias", "alias_copy", "detach_copy", "cpu",
      "lift_fresh_copy", "lift_fresh", "lift", "requires_grad_", "identity", "resolve_conj",
      "resolve_neg", "conj", "conj_physical", "real", "data")
def same(im: Importer, x: Operand) -> Any:
    """What changes nothing."""
    return x


@rule("copy")
def _copy(im: Importer, x: Expr, src: Operand) -> Any:
    return im.filled(x, src)


@rule("fill")
def _fill(im: Importer, x: Expr, value: Operand) -> Any:
    return im.filled(x, value)


@rule("zero")
def _zero(im: Importer, x: Expr) -> Any:
    return im.zeros(im.shape(x), im.dtype(x))


__all__ = ["clamped", "same"]
