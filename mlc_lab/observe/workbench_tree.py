"""The tree of attempts of a workbench: what each node keeps, and walking about in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..schedule.schedule import Schedule
from .workbench_find import WorkbenchError


@dataclass
class Attempt:
    """A node of the tree. `schedule` is the schedule after it, None where it was refused.

    `program` is the number of its program in the recording, `lead` the look-ups it needed, `python`
    the call itself, `names` what the random variables are called in the Python.
    """

    id: int
    parent: int | None
    op: str
    python: str
    lead: list[str]
    program: int
    schedule: Schedule | None
    error: dict[str, Any] | None = None
    names: dict[Any, str] = field(default_factory=dict)
    children: list[int] = field(default_factory=list)
    #: where `redo` goes: the child that was left last
    onward: int | None = None
    #: of the last attempt of several that were made at once: the one at which that began
    began: int | None = None

    @property
    def reached(self) -> Schedule:
        """The schedule after it. Raises WorkbenchError where it was refused."""
        if self.schedule is None:
            raise WorkbenchError(f"attempt {self.id} was refused: there is no schedule after it")
        return self.schedule

    def to_dict(self) -> dict[str, Any]:
        """As plain data, without the schedule: its Python says how to make it again."""
        data = {name: getattr(self, name) for name in ("id", "parent", "op", "python", "lead",
                                                       "program")}  # fmt: skip
        if self.error is not None:
            data["error"] = self.error
        if self.began is not None:
            data["began"] = self.began
        return data


class AttemptTree:
    """Attempts, numbered as they were made, and the place in them. Nothing is ever taken out."""

    def __init__(self, root: Attempt) -> None:
        self.attempts = [root]
        self.at = root
        #: called with no argument after the tree, the place in it or a cost has changed
        self.listeners: list[Callable[[], None]] = []

    def node(self, number: int) -> Attempt:
        """A node by its number. Raises WorkbenchError if there is none."""
        if not (isinstance(number, int) and 0 <= number < len(self.attempts)):
            raise WorkbenchError(f"there is no attempt {number!r}; there are 0 to "
                                 f"{len(self.attempts) - 1}")  # fmt: skip
        return self.attempts[number]

    def path(self, node: Attempt | None = None) -> list[Attempt]:
        """The attempts from the start to a node (the current one)."""
        found = []
        at: Attempt | None = node or self.at
        while at is not None:
            found.append(at)
            at = None if at.parent is None else self.attempts[at.parent]
        return found[::-1]

    def goto(self, number: int) -> Attempt:
        """Go to a node; to a refused one means to the node that it was tried from.

        Raises WorkbenchError if there is no such node.
        """
        node = self.node(number)
        if node.schedule is None:
            node = self.attempts[node.parent or 0]
        for above in self.path(node)[:-1]:
            above.onward = next(n.id for n in self.path(node) if n.parent == above.id)
        self.at = node
        self._changed()
        return node

    def undo(self) -> Attempt:
        """One attempt back, or to where several that were made at once began; at the start, stay.
        """
        back = self.at.parent if self.at.began is None else self.at.began
        return self.at if back is None else self.goto(back)

    def redo(self) -> Attempt:
        """Forward to the attempt that was left last, over several that were made at once; where
        there is none, stay."""
        onward = at = self.at.onward
        while at is not None:
            node = self.attempts[at]
            if node.began == self.at.id:
                return self.goto(at)
            at = node.onward
        return self.at if onward is None else self.goto(onward)

    def _changed(self) -> None:
        """Tell the listeners."""
        for listener in list(self.listeners):
            listener()


__all__ = ["Attempt", "AttemptTree"]
