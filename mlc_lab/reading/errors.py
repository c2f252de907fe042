"""The base of the errors for what is wrong with a program, a text or a file."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Iterable

#: characters of another message that are told
_LONG = 2000
#: letters of a name for which similar ones are looked for
_NAME = 80


class MLCError(Exception):
    """Base of the errors this project raises on purpose."""


class DataError(MLCError, ValueError):
    """A text or file is not what it should be. The message says where it is not, and what to do."""

    def __init__(self, message: str = "") -> None:
        super().__init__(shortened(message))


#: what code may raise that is given what does not fit: mistakes in what was read
MISTAKES = (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, AssertionError,
            RuntimeError, MLCError)


class LimitError(DataError):
    """A text or file asks for more than is allowed; see `limits.py`.

    `hint` says what to do, `line` and `column` (from 1) where it is, where that is known.
    """

    def __init__(self, message: str, hint: str = "", line: int = 1, column: int = 1) -> None:
        self.hint, self.line, self.column = hint, line, column
        super().__init__(message)


def reason(error: BaseException) -> str:
    """What an error says, for a message of which it is a part."""
    if isinstance(error, KeyError) and error.args:
        return f"no key {error.args[0]!r}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return shortened(str(error) or type(error).__name__)


def shortened(text: str) -> str:
    """A message, its middle left out where it quotes too much of what was read."""
    return text if len(text) <= _LONG else f"{text[: _LONG // 2]} ... {text[-_LONG // 2:]}"


def shown(value: object, most: int = 80) -> str:
    """The repr of what was read, shortened, for a message."""
    text = repr(value[: most + 1] if isinstance(value, (str, bytes)) else value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def similar(name: str, known: Iterable[str], count: int = 1) -> list[str]:
    """Up to `count` of the known names that `name` may be a misspelling of, the best first."""
    if len(name) > _NAME:
        return []
    return get_close_matches(name, [k for k in known if len(k) <= _NAME], count)
