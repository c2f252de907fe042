"""Object code in executable memory, without a linker program: `link` and the `Library` it makes."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import sys
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from .jit import binding, host_machine

__all__ = ["Library", "in_process", "link"]

_lock = threading.Lock()
_numbers = itertools.count()
#: the engines and trackers of libraries that nothing refers to any more
_dropped: deque[tuple[_Engine, list[Any]]] = deque()


class _Engine:
    """A linker of object code into memory.

    LLVM's engine frees the code of a library that is dropped, but keeps its tables, 10 kB, for as
    long as it lives. So an engine links a limited number of libraries, and is freed with the last
    of them; the next libraries get a new one.
    """

    #: how many libraries an engine links; making an engine takes as long as linking three
    LIBRARIES = 100
    current: _Engine | None = None

    def __init__(self) -> None:
        self.linker = binding().create_lljit_compiler(
            host_machine().linker_machine(), use_jit_link=os.name != "nt", suppress_errors=False
        )
        # it is freed by `drop` alone, not in the arbitrary order of Python's shutdown
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.linker))
        self.linked = self.alive = 0

    @classmethod
    def take(cls) -> _Engine:
        """The engine for the next library. The caller holds the lock."""
        if cls.current is None or cls.current.linked >= cls.LIBRARIES:
            last, cls.current = cls.current, cls()
            if last is not None:
                last.close_if_unused()
        cls.current.linked += 1
        cls.current.alive += 1
        return cls.current

    def drop(self) -> None:
        """A library is gone. The caller holds the lock."""
        self.alive -= 1
        self.close_if_unused()

    def close_if_unused(self) -> None:
        """Free the engine when it links no more libraries and all that it linked are gone."""
        if self.alive == 0 and self is not _Engine.current:
            self.linker.close()
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(self.linker))


class Library:
    """Object code in executable memory; the memory is freed with this object."""

    def __init__(self, engine: _Engine, tracker: Any, keep: tuple[Any, ...]) -> None:
        self._engine = engine
        self._trackers = [tracker]
        self._keep = keep

    def address(self, name: str) -> int:
        """The address of an exported symbol; KeyError when it was not asked for at linking."""
        return self._trackers[0][name]

    def find(self, name: str) -> int | None:
        """The address of any symbol of the library, or None."""
        try:
            found = self._engine.linker.lookup(self._trackers[0].name, name)
        except RuntimeError:
            return None
        self._trackers.append(found)
        return found[name]

    def __del__(self) -> None:
        # The garbage collector may call this at any moment, in a thread that holds LLVM's lock
        # while another one holds ours and waits for LLVM's. So this must not block.
        if not sys.is_finalizing():
            _dropped.append((self._engine, self._trackers))
            if _lock.acquire(blocking=False):
                try:
                    _free_dropped()
                finally:
                    _lock.release()


def _free_dropped() -> None:
    """Free what dropped libraries held. The caller holds the lock."""
    while _dropped:
        engine, trackers = _dropped.popleft()
        for tracker in trackers:
            tracker.close()
        engine.drop()


def link(
    obj: bytes | Iterable[bytes], exports: Iterable[str], symbols: Mapping[str, int],
    keep: tuple[Any, ...] = (),
) -> Library:
    """Link object code, of one module or of several that use each other, into this process.

    ``symbols`` gives addresses for undefined names beyond those of the process itself. Raises
    RuntimeError naming what is missing.
    """
    builder = binding().JITLibraryBuilder()
    for one in [obj] if isinstance(obj, bytes) else obj:
        builder.add_object_img(one)
    builder.add_current_process()
    for name in exports:
        builder.export_symbol(name)
    for name, address in symbols.items():
        builder.import_symbol(name, address)
    with _lock:
        _free_dropped()
        engine = _Engine.take()
        try:
            tracker = builder.link(engine.linker, f"mlc_lab.{next(_numbers)}")
        except BaseException:
            engine.drop()
            raise
        return Library(engine, tracker, keep)


def in_process(name: str) -> bool:
    """Whether some library in this process defines the symbol."""
    return binding().address_of_symbol(name) is not None or _in_c_library(name)


@functools.cache
def _in_c_library(name: str) -> bool:
    try:
        library = ctypes.CDLL(None) if os.name != "nt" else ctypes.cdll.msvcrt
        return hasattr(library, name)
    except (OSError, TypeError):
        return False
