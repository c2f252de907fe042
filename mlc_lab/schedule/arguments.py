"""Arguments of primitives by their kinds: what does not fit is refused by the argument's name.

A primitive declares the kinds in its signature (`factors: Sequence[Any]`). Blocks and loops are not
looked at here: guards say which of the two a primitive takes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..ir.containers import is_sequence
from ..reading import shown
from ..tir.expr import FloatImm, IntImm, PrimExpr, StringImm
from ..tir.function import IndexMap
from .error import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from inspect import Parameter
    from .instruction import InstructionKind
    from .schedule import Schedule

    #: (schedule, value of an argument) -> the value that is taken; raises _Unfit
    Check = Callable[["Schedule", Any], Any]

_LARGEST = 1 << 63


class _Unfit(Exception):
    """A value is not of the kind that is declared."""


def _whole(sch: Schedule, value: Any) -> Any:
    """A whole number, or a random variable of one."""
    if type(value) is not int:
        if isinstance(value, PrimExpr):
            if type(sch.resolve(value)) not in (int, bool):
                raise _Unfit
            return value
        try:
            value = operator.index(value)
        except TypeError:
            raise _Unfit from None
    if not -_LARGEST <= value < _LARGEST:
        raise _Unfit
    return value


def _real(sch: Schedule, value: Any) -> Any:
    if isinstance(value, (IntImm, FloatImm)):
        value = value.value
    if isinstance(value, (int, float)):
        if not math.isfinite(value):
            raise _Unfit
        return value
    try:
        return operator.index(value)
    except TypeError:
        pass
    if type(value).__module__ != "numpy" or not hasattr(value, "__float__"):
        raise _Unfit
    return float(value)


def _flag(sch: Schedule, value: Any) -> Any:
    if type(value) is bool:
        return value
    if isinstance(value, (int, IntImm)) or type(value).__module__ == "numpy":
        number = int(value) if getattr(value, "ndim", 0) == 0 else None
        if number in (0, 1):
            return bool(number)
    raise _Unfit


def _text(sch: Schedule, value: object) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, StringImm):
        return value.value
    raise _Unfit


def _factor(sch: Schedule, value: object) -> Any:
    """A factor may also be an expression of the function's sizes."""
    if value is None:
        return value
    if isinstance(value, PrimExpr):
        if not str(value.dtype).startswith(("int", "uint")):
            raise _Unfit
        return value
    return _whole(sch, value)


def _optional(check: Check) -> Check:
    return lambda sch, value: None if value is None else check(sch, value)


def _each(check: Check) -> Check:
    def of_a_sequence(sch: Schedule, value: Any) -> Any:
        if not is_sequence(value):
            if isinstance(value, (str, bytes, dict, PrimExpr)) or not (
                    hasattr(value, "__len__") and hasattr(value, "__getitem__")):
                raise _Unfit
            value = list(value)
        checked = [check(sch, v) for v in value]
        return tuple(checked) if type(value) is tuple else checked

    return of_a_sequence


#: the declared kind -> what gives the value or raises _Unfit, and what is expected in words
_CHECKS: dict[str, tuple[Check, str]] = {
    "int": (_whole, "a whole number"),
    "int | None": (_optional(_whole), "a whole number or None"),
    "bool": (_flag, "True or False"),
    "str": (_text, "a string"),
    "str | None": (_optional(_text), "a string or None"),
    "Sequence[int]": (_each(_whole), "a list of whole numbers"),
    "Sequence[int] | None": (_optional(_each(_whole)), "a list of whole numbers, or None"),
    "Sequence[float]": (_each(_real), "a list of numbers"),
    "Sequence[int | PrimExpr | None]": (
        _each(_factor), "a list of whole numbers, of which one may be None, such as [None, 8]"),
}


def checks_of(params: Sequence[Parameter]) -> list[tuple[str, Check, str]]:
    """The checks for the parameters of a primitive: (name, check, what is expected)."""
    return [(p.name, *_CHECKS[p.annotation]) for p in params if p.annotation in _CHECKS]


def fitting(sch: Schedule, kind: InstructionKind, args: dict[str, Any]) -> None:
    """Refuse arguments of the wrong kinds; numbers of numpy become Python's."""
    for name, check, expected in kind.checks:
        value = args[name]
        try:
            args[name] = check(sch, value)
        except _Unfit:
            raise unfit(name, value, expected) from None


def unfit(name: str, value: object, expected: str) -> Refusal:
    """The refusal of an argument of the wrong kind."""
    return Refusal("argument_kinds", f"{name}= is {shown(value)}: it must be {expected}")


def mapping(name: str, given: object, make: Callable[[], Any]) -> Any:
    """What `make` makes of a function that is the argument `name`.

    Where the function fails, or gives what are no indices, that is told as a refusal.
    """
    if not callable(given) or isinstance(given, (IndexMap, type)):
        raise unfit(name, given, "a function of indices, such as lambda i, j: (j, i)")
    try:
        return make()
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise Refusal("argument_kinds", f"{name}= is a function that gives no indices: "
                      f"{type(error).__name__}: {error}",
                      hint="it takes one variable an index and returns a tuple of expressions, "
                      "such as lambda i, j: (j, i)") from error


def number_in_range(value: float) -> bool:
    """Whether a number can be written down in a program: finite, at most 64 bits."""
    return -_LARGEST <= value < _LARGEST if isinstance(value, int) else math.isfinite(value)


__all__ = ["checks_of", "fitting", "mapping", "number_in_range", "unfit"]
