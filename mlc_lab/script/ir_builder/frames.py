"""What is open while a program is built: the builder, and in it one frame in another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from ...tir.buffer import Buffer
from ...tir.expr import IterVar
from ...tir.stmt import Stmt, seq

if TYPE_CHECKING:
    from types import TracebackType


class IRBuilder:
    """Takes what is built inside its `with` block; `get` gives the outermost of it."""

    _open: list[IRBuilder] = []

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        #: what a variable or buffer is called now
        self.renamed: dict[Any, Any] = {}
        self._result: Any = None

    def __enter__(self) -> IRBuilder:
        IRBuilder._open.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        IRBuilder._open.remove(self)

    @staticmethod
    def current() -> IRBuilder:
        """The innermost builder. ValueError where there is none."""
        if not IRBuilder._open:
            raise ValueError("no IRBuilder is open: write `with IRBuilder() as ib:` around this")
        return IRBuilder._open[-1]

    @staticmethod
    def is_in_scope() -> bool:
        """Whether a builder is open."""
        return bool(IRBuilder._open)

    def get(self) -> Any:
        """What was built. ValueError where nothing was."""
        if self._result is None:
            raise ValueError("nothing was built yet: get() comes after the frames are closed")
        return self._result

    @staticmethod
    def name(s: str, v: Any) -> Any:
        """A variable, iterator or buffer under a name, to be used in place of `v`."""
        if isinstance(v, IterVar):
            named: Any = v.replace(var=IRBuilder.name(s, v.var))
        elif isinstance(v, Buffer):
            named = v.replace(name=s)
        else:
            named = v.with_name(s)
        if IRBuilder._open:
            IRBuilder.current().renamed[v] = named
        return named

    @staticmethod
    def name_many(s: Sequence[str], vs: Sequence[Any]) -> list[Any]:
        """Several at once. ValueError where there are not as many names as values."""
        if len(s) != len(vs):
            raise ValueError(f"{len(s)} names for {len(vs)} values")
        return [IRBuilder.name(name, value) for name, value in zip(s, vs)]

    def called(self, v: Any) -> Any:
        """A variable or buffer as it is called now."""
        while v in self.renamed:
            v = self.renamed[v]
        return v

    def add(self, made: Any) -> None:
        """Take what a closed frame, or a statement, gives."""
        if self.frames:
            self.frames[-1].take(made)
        elif self._result is None:
            self._result = made
        else:
            raise ValueError("a builder has one result, and there is one already: put statements "
                             "that follow each other into a frame, as T.prim_func()")

    def innermost(self, kind: type[Frame], word: str) -> Any:
        """The innermost open frame, which must be of a kind. ValueError where it is not."""
        if not self.frames or not isinstance(self.frames[-1], kind):
            raise ValueError(f"{word} stands directly in a {kind.word}")
        return self.frames[-1]

    def enclosing(self, kind: type[Frame]) -> Any:
        """The innermost open frame of a kind; None where there is none."""
        return next((f for f in reversed(self.frames) if isinstance(f, kind)), None)


class Frame:
    """Something that holds statements; `finish(body)` makes a node of them when it closes."""

    #: what a refusal calls it
    word = "frame"

    def __init__(self, finish: Callable[[Stmt], Any], value: Any = None) -> None:
        self.finish, self.value = finish, value
        self.statements: list[Any] = []

    def take(self, made: Any) -> None:
        """One more statement."""
        if not isinstance(made, Stmt):
            raise ValueError(f"a {self.word} holds statements, and no {type(made).__name__}")
        self.statements.append(made)

    def made(self) -> Any:
        """What it is when it closes."""
        return self.finish(seq(*self.statements))

    def __enter__(self) -> Any:
        IRBuilder.current().frames.append(self)
        return self if self.value is None else self.value

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        builder = IRBuilder.current()
        builder.frames.pop()
        if error is None:
            builder.add(self.made())


class Frames:
    """Several frames that open and close as one: `T.grid`."""

    def __init__(self, frames: Sequence[Frame]) -> None:
        self.frames = frames

    def __enter__(self) -> list[Any]:
        return [frame.__enter__() for frame in self.frames]

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        for frame in reversed(self.frames):
            frame.__exit__(kind, error, trace)


__all__ = ["Frame", "Frames", "IRBuilder"]
