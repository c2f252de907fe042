"""Where the parts of a program come from: what each primitive says when it makes something new.

A primitive that creates a loop, an iterator, a block or a buffer calls `came_from(new, *sources)`
at the place of creation. `Schedule` collects what is said while a primitive runs and keeps it with
the step (`Step.origins`), so a view can show the ancestors and descendants of anything. What a
primitive keeps needs no word: it is the same object, or the same variable, before and after.

A loop stands for its variable and may be given as either; an iterator is its variable; blocks and
buffers are themselves. A source need not be of the same kind: the block that cache_read makes
comes from the buffer it copies. Intermediate objects may be named too: a reader of the notes
follows them through.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..tir.expr import Var

Made = TypeVar("Made")
#: (what is new, what it came from)
Note = tuple[Any, tuple[Any, ...]]

_notes: ContextVar[list[Note] | None] = ContextVar("schedule_notes", default=None)


class noting:
    """Context: collects what is said with `came_from` inside of it, in the list that it gives."""

    __slots__ = ("_token",)

    def __enter__(self) -> list[Note]:
        notes: list[Note] = []
        self._token = _notes.set(notes)
        return notes

    def __exit__(self, *_: object) -> None:
        _notes.reset(self._token)


def came_from(new: Made, *sources: Node) -> Made:
    """Say that `new` came from `sources` (nodes, variables or buffers). Returns `new`."""
    notes = _notes.get()
    if notes is not None:
        notes.append((new, sources))
    return new


def renewed(var: Var) -> Any:
    """A new variable of the same name and type, which comes from `var`."""
    return came_from(var.with_name(var.name), var)


__all__ = ["Note", "came_from", "noting", "renewed"]
