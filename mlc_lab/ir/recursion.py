"""Recursive walks over very deep trees: run again with a larger stack when one runs out.

Visitors recurse, which keeps them short and readable; Python stops them after a thousand frames. A
program of 2,000 stages or a sum of 50,000 terms needs more. So what walks over a whole program is
marked `@grows_stack`: if it runs out of frames, it runs once more in a thread whose stack is large
enough for `MAX_FRAMES`. Programs of common size never pay for it. The walks build new trees and
change nothing in place, so running one again from the start is safe.
"""

from __future__ import annotations

import contextvars
import functools
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from .diagnostics import MLCError

P = ParamSpec("P")
R = TypeVar("R")

#: the most frames of a deep walk, and the bytes of stack a frame may take: 100 where Python calls
#: Python, up to 2,500 where a frame is entered from C (the key function of a sort, say). The
#: system gives the pages of a stack only when they are touched.
_SMALL = sys.platform == "win32" or sys.maxsize < 1 << 32  # stacks end at 256 MiB there
MAX_FRAMES, FRAME_BYTES = 65_000 if _SMALL else 500_000, 4096


class DepthError(MLCError, RecursionError):
    """A program is nested more deeply than any walk over it can go."""


class _Room(threading.local):
    """Whether the running thread is one with a large stack, and whether it is in a deep walk."""

    large = False
    walking = False


_room = _Room()
_lock = threading.Lock()
_users = 0
#: the limit of frames before it was raised; None while it is not
_usual_limit: int | None = None


@contextmanager
def _frame_limit(frames: int) -> Generator[None, None, None]:
    """The interpreter's limit of frames, raised while any deep walk runs."""
    global _users, _usual_limit
    with _lock:
        if _usual_limit is None:
            _usual_limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(sys.getrecursionlimit(), frames))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
        _lower_limit()


def _lower_limit() -> None:
    """Give the interpreter its usual limit of frames again, once no thread has more of them: Python
    ends the process where a limit falls far below the frames that a thread has."""
    global _usual_limit
    with _lock:
        if _users or _usual_limit is None:
            return
        turns = sys.getswitchinterval()
        sys.setswitchinterval(1000)  # no thread goes deeper between the look and the change
        try:
            room = _usual_limit - 100
            frames: dict[int, FrameType] = vars(sys)["_current_frames"]()  # of every thread
            if all(_shallow(frame, room) for frame in frames.values()):
                sys.setrecursionlimit(_usual_limit)
                _usual_limit = None
        finally:
            sys.setswitchinterval(turns)


def _shallow(frame: FrameType | None, most: int) -> bool:
    while frame is not None and most > 0:
        frame, most = frame.f_back, most - 1
    return frame is None


def _run_in_thread(action: Callable[[], None]) -> None:
    """Run an action to its end in a thread with as large a stack as the system gives."""
    frames = MAX_FRAMES
    while True:
        with _frame_limit(frames):
            with _lock:
                usual = threading.stack_size(frames * FRAME_BYTES)
                try:
                    thread = threading.Thread(target=action, name="deep walk", daemon=True)
                    thread.start()
                except RuntimeError:  # there is no such room: a limit of the process
                    thread = None
                finally:
                    threading.stack_size(usual)
            if thread is not None:
                thread.join()
                return
        if frames < 10_000:
            raise DepthError("this is nested too deeply for the stack of this process, and the "
                             "system gives no room for a larger one")
        frames //= 4


def with_large_stack(action: Callable[[], R]) -> R:
    """The result of `action`, run in a thread with a large stack (or in this one if it has one).

    Context variables are those of the caller. Raises what the action raises; DepthError where even
    the large stack is too small.
    """
    if _room.large:
        return action()
    result: list[tuple[bool, Any]] = []
    context = contextvars.copy_context()

    def attempt() -> None:
        _room.large = True
        try:
            result.append((True, context.run(action)))
        except BaseException as error:  # handed to the caller's thread below
            result.append((False, error))

    _run_in_thread(attempt)
    good, value = result[0]
    if good:
        return value
    if isinstance(value, RecursionError) and not isinstance(value, DepthError):
        error = DepthError("this is nested too deeply: a walk over it took more frames than a "
                           "stack has room for. Cut it into several functions or bindings")
        vars(error).update(vars(value))  # a parser notes the place that it had reached
        raise error from None
    raise value


def grows_stack(fn: Callable[P, R]) -> Callable[P, R]:
    """Decorator: a function that walks over whole programs, and may run again from its start.

    It must not change anything before it has succeeded.
    """
    def attempt(*args: P.args, **kwargs: P.kwargs) -> R:
        """Run it here, and again where there is room if this stack is too small."""
        try:
            return fn(*args, **kwargs)
        except RecursionError:
            if _room.large:
                raise
        return with_large_stack(lambda: fn(*args, **kwargs))

    @functools.wraps(fn)
    def walk(*args: P.args, **kwargs: P.kwargs) -> R:
        if _room.walking:
            return attempt(*args, **kwargs)
        if _usual_limit is not None and not _room.large:
            # another thread has raised the limit, which this stack would be too small for
            return with_large_stack(lambda: fn(*args, **kwargs))
        _room.walking = True
        try:
            return attempt(*args, **kwargs)
        finally:
            _room.walking = False
            if _usual_limit is not None and not _room.large:
                _lower_limit()

    return walk


def with_room_for(root: object, action: Callable[[], R]) -> R:
    """The result of `action`, which walks over a node and must not begin twice: it gets a large
    stack beforehand where the node is deep."""
    if _room.large or depth(root) <= USUAL_DEPTH:
        return action()
    return with_large_stack(action)


#: walks over a node of no more levels do without a large stack
USUAL_DEPTH = 150


def depth(root: object) -> int:
    """How many nodes lie on the longest way down from a node, itself included."""
    level: dict[int, Any] = {id(root): root}
    levels = 0
    while level:
        levels += 1
        level = {id(item): item for node in level.values() for item in node.children()}
    return levels


__all__ = ["MAX_FRAMES", "USUAL_DEPTH", "DepthError", "depth", "grows_stack", "with_large_stack",
           "with_room_for"]
