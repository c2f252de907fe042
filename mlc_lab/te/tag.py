"""tag_scope: what is computed within it bears a tag, by which schedules know it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any

_current: ContextVar[str] = ContextVar("tag", default="")


class TagScope:
    """A context, or a decorator of functions that run in one. One within another is refused."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self._token: Token[str] | None = None

    def __enter__(self) -> TagScope:
        if _current.get():
            raise ValueError(f"tag_scope {self.tag!r} within that of {_current.get()!r}: "
                             "what is computed bears one tag")
        self._token = _current.set(self.tag)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._token is not None:
            _current.reset(self._token)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def tagged(*args: Any, **kwargs: Any) -> Any:
            with TagScope(self.tag):
                return func(*args, **kwargs)

        return tagged


def tag_scope(tag: str) -> TagScope:
    """`with te.tag_scope("conv"): ...` or `@te.tag_scope("conv")`."""
    return TagScope(tag)


def tagged(tag: str) -> str:
    """The tag that was given to an operation, or that of the scope that it is made in."""
    return tag or _current.get()


__all__ = ["TagScope", "tag_scope", "tagged"]
