"""JSON texts: read with their depth and numbers bounded, each mistake with its line and column."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from . import limits
from .errors import DataError, LimitError

#: digits that a whole number may have; texts have longer ones in strings only
_DIGITS = limits.INT_BITS * 3 // 10
_LONG_NUMBER = re.compile(rf"[0-9]{{{_DIGITS + 1}}}")
#: what a number that is too large for a double may look like
_HUGE_NUMBER = re.compile(r"[0-9][eE]\+?[0-9]{3}|[0-9]{300}")
_STRINGS = re.compile(rb'"[^"]*"')
_AS_SQUARE = bytes.maketrans(b"{}", b"[]")
_REST = bytes(set(range(256)) - set(b'[]{}"'))


def read_json(text: str | bytes, what: str, unique: bool = True) -> Any:
    """The value of a JSON text; `what` names the text in messages, such as "this trace".

    Refused besides what is not JSON: NaN and infinities, numbers that no type holds, levels beyond
    `limits.JSON_DEPTH`, and (with `unique`) an object with a key twice. Raises DataError.
    """
    if isinstance(text, (bytes, bytearray)):
        try:
            text = bytes(text).decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{what} is not JSON: it is no UTF-8 text, byte {error.start} is wrong"
                            ) from None
    if not isinstance(text, str):
        raise DataError(f"{what} is not JSON: expected a text, got a {type(text).__name__}")
    if len(text) > limits.TEXT:
        raise LimitError(f"{what} has {len(text)} characters, the bound is {limits.TEXT}")
    if text.count("[") + text.count("{") > limits.JSON_DEPTH:
        _check_depth(text, what)

    def integer(digits: str) -> int:
        if len(digits) > _DIGITS:
            raise ValueError
        return int(digits)

    def finite(digits: str) -> float:
        if not math.isfinite(float(digits)):
            raise ValueError
        return float(digits)

    def constant(word: str) -> NoReturn:
        raise DataError(f"{what} is not JSON: it contains {word}, and JSON has finite numbers only")

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            met: set[str] = set()
            twice = next(k for k, _ in pairs if k in met or met.add(k))
            raise DataError(f"{what} is damaged: an object has the key {twice[:60]!r} twice")
        return made

    try:
        return json.loads(text, parse_constant=constant,
                          parse_int=integer if _LONG_NUMBER.search(text) else None,
                          parse_float=finite if _HUGE_NUMBER.search(text) else None,
                          object_pairs_hook=members if unique else None)
    except json.JSONDecodeError as error:
        raise DataError(f"{what} is not JSON: {error.msg}, line {error.lineno}, column "
                        f"{error.colno}") from None
    except DataError:
        raise
    except ValueError:  # Python makes no number of so many digits
        raise LimitError(f"{what} contains a number that fits no type") from None


def _check_depth(text: str, what: str) -> None:
    """Raise LimitError where lists and objects are nested too deeply."""
    if "\\" in text:  # so that the next quotation mark ends a string
        text = text.replace("\\\\", "").replace('\\"', "")
    code = text.encode(errors="replace").translate(_AS_SQUARE, _REST)
    code = _STRINGS.sub(b"", code)
    depth, before = 0, len(code) + 1
    while len(code) < before and depth <= limits.JSON_DEPTH:
        depth, before = depth + 1, len(code)
        code = code.replace(b"[]", b"")  # the innermost level goes
    if depth + code.count(b"[") > limits.JSON_DEPTH:
        raise LimitError(f"{what} is nested more than {limits.JSON_DEPTH} levels deep",
                         "no text that was saved here is")


__all__ = ["read_json"]
