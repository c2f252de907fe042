"""The code that watches which thread uses which cache line; `sharing.py` reads what it leaves.

`SharingGen` writes a program with a call beside each access of memory in a parallel loop, and one
after each statement. `write_watch` defines what is called:

    void share_touch(i64 address, i64 bytes, i32 write)   an access
    void share_step()                                     a statement is through
    void share_enter(), share_thread(i64 thread), share_leave()     a parallel loop
    ptr  share_words()                                    the words below, by `Word`

    void share_merge(ptr log, ptr firsts, ptr ends, ptr moves, i64 lines, ptr scratch, i64 threads)

In the mode `MARK` it keeps of each line who used it first in which run of a parallel loop, and what
several threads did to it; in the other mode it logs the statements that use the lines which have a
part of the log. `share_merge` puts the statements of the threads in step, line by line.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from .. import tir
from ..backend.llvm_types import lane_bytes
from ..ir import dtype as dt
from ..runtime.llir import FunctionText, ModuleText
from .report_code import CountingGen, Place


class Word(IntEnum):
    """The words that the watching code and Python share."""

    MODE = 0
    THREAD = 1
    STEP = 2  # statements of this thread in this run of a parallel loop
    LONGEST = 3  # the most statements that a thread had in a run
    RUN = 4  # runs of parallel loops so far
    LINES = 5  # from here on addresses of tables
    FLAGS = 6
    EVENTS = 7
    LOG = 8


class _Bits(NamedTuple):
    """How many bits of an entry of the log each field has, the highest first."""

    run: int
    step: int
    thread: int
    write: int


BITS = _Bits(21, 32, 10, 1)
MARK = 0
#: an entry of `LINES` while marking: run, thread, whether several used it, whether one wrote
_RUN_AT, _THREAD_AT = 2 + BITS.thread, 2


class SharingGen(CountingGen):
    """Reports accesses of memory that threads have in common, and the statements of each thread."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.own: set[tir.Var] = set()  # memory allocated inside of the parallel loop

    def counted(self) -> bool:
        return self.in_parallel and super().counted() and self.node.buffer.data not in self.own

    def report(self, pointer: str, dtype: str, write: bool, predicate: str | None) -> None:
        if not self.counted():
            return
        lanes, element = dt.lanes_of(dtype), lane_bytes(dtype)
        address = self.arena_address(pointer)
        if predicate is None or lanes == 1:
            self._touch(address, lanes * element, write)
            return
        for at in range(lanes):
            bit = self.lane(predicate, "i1", lanes, at)
            lane = self.fold("add nsw", address, str(at * element))
            self._when(bit, lambda lane=lane: self._touch(lane, element, write))

    def report_lanes(self, pointers: str, element: int, lanes: int, mask: str, write: bool) -> None:
        if not self.counted():
            return
        for at in range(lanes):
            bit = self.lane(mask, "i1", lanes, at)
            address = self.arena_address(self.lane(pointers, "ptr", lanes, at))
            self._when(bit, lambda a=address: self._touch(a, element, write))

    def _touch(self, address: str, nbytes: int, write: bool) -> None:
        self.tell("share_touch", f"i64 {address}", f"i64 {nbytes}", f"i32 {int(write)}")

    def _stepping(self, write: Callable[[], None]) -> None:
        write()
        if self.in_parallel:
            self.tell("share_step")

    def stmt_store(self, s: tir.BufferStore) -> None:
        self._stepping(lambda: super(SharingGen, self).stmt_store(s))

    def stmt_evaluate(self, s: tir.Evaluate) -> None:
        self._stepping(lambda: super(SharingGen, self).stmt_evaluate(s))

    def enter_parallel(self) -> None:
        self.tell("share_enter")

    def on_thread(self, thread: str) -> None:
        self.tell("share_thread", f"i64 {thread}")

    def leave_parallel(self) -> None:
        self.tell("share_leave")

    def _in_arena(self, s: Any, place: Place) -> None:
        if self.in_parallel:
            self.own.add(s.buffer_var)
        super()._in_arena(s, place)


SharingGen.stmt_table = {**CountingGen.stmt_table, tir.BufferStore: SharingGen.stmt_store,
                         tir.Evaluate: SharingGen.stmt_evaluate}


def _slot(f: FunctionText, word: Word) -> str:
    return f.gep("i64", "@share", int(word))


def _get(f: FunctionText, word: Word) -> str:
    return f.load("i64", _slot(f, word))


def _set(f: FunctionText, word: Word, value: str) -> None:
    f.store("i64", value, _slot(f, word))


def _entry(f: FunctionText, table: Word, at: str) -> str:
    """The address of an entry of a table."""
    return f.gep("i64", f.load("ptr", _slot(f, table)), at)


def write_watch(m: ModuleText, line: int) -> None:
    """Define what the program calls, for lines of so many bytes."""
    m.globals.append(f"@share = internal global [{len(Word)} x i64] zeroinitializer, align 64")
    shift = line.bit_length() - 1
    _write_mark(m)
    _write_log(m)
    _write_merge(m)
    params = [("i64", "address"), ("i64", "bytes"), ("i32", "write")]
    with m.function("void", "share_touch", params, "", "nounwind") as f:
        write = f.op("zext i32 %write to i64")
        low = f.op(f"lshr i64 %address, {shift}")
        high = f.op(f"lshr i64 {f.op('sub i64 ' + f.op('add i64 %address, %bytes') + ', 1')}, "
                    f"{shift}")
        marks = f.op(f"icmp eq i64 {_get(f, Word.MODE)}, {MARK}")
        with f.for_range(low, f.op(f"add i64 {high}, 1")) as at:
            with f.if_(marks):
                f.call("void", "share_mark", [f"i64 {at}", f"i64 {write}"])
            with f.else_(marks):
                f.call("void", "share_log", [f"i64 {at}", f"i64 {write}"])
        f.ret()
    _write_loops(m)
    with m.function("ptr", "share_words", []) as f:
        f.ret("ptr @share")


def _write_mark(m: ModuleText) -> None:
    """`share_mark(line, write)`: who used the line in this run, and the flags of it."""
    params = [("i64", "line"), ("i64", "write")]
    with m.function("void", "share_mark", params, "internal", "nounwind") as f:
        events = _entry(f, Word.EVENTS, "%line")
        f.store("i64", f.op(f"add i64 {f.load('i64', events)}, 1"), events)
        slot = _entry(f, Word.LINES, "%line")
        old, run, thread = f.load("i64", slot), _get(f, Word.RUN), _get(f, Word.THREAD)
        mine = f.op(f"or i64 {f.op(f'shl i64 {run}, {_RUN_AT}')}, "
                    f"{f.op(f'shl i64 {thread}, {_THREAD_AT}')}")
        differing = f.op(f"xor i64 {old}, {mine}")
        same_run = f.op(f"icmp eq i64 {f.op(f'lshr i64 {differing}, {_RUN_AT}')}, 0")
        same = f.op(f"icmp ult i64 {differing}, {1 << _THREAD_AT}")
        other = f.op(f"xor i1 {same}, true")
        several = f.op(f"select i1 {other}, i64 2, i64 0")
        kept = f.op(f"or i64 {old}, {several}")
        new = f.op(f"or i64 {f.op(f'select i1 {same_run}, i64 {kept}, i64 {mine}')}, %write")
        f.store("i64", new, slot)
        both = f.op(f"icmp eq i64 {f.op(f'and i64 {new}, 3')}, 3")
        flags = f.op(f"or i64 {f.op(f'zext i1 {both} to i64')}, {f.op('shl i64 %write, 1')}")
        with f.else_(f.op(f"icmp eq i64 {flags}, 0")):
            told = _entry(f, Word.FLAGS, "%line")
            f.store("i64", f.op(f"or i64 {f.load('i64', told)}, {flags}"), told)
        f.ret()


def _write_log(m: ModuleText) -> None:
    """`share_log(line, write)`: an entry, if the line has a part of the log: its place is in
    `LINES`. One statement is one entry."""
    params = [("i64", "line"), ("i64", "write")]
    with m.function("void", "share_log", params, "internal", "nounwind") as f:
        place = _entry(f, Word.LINES, "%line")
        at = f.load("i64", place)
        with f.if_(f.op(f"icmp eq i64 {at}, 0")):
            f.ret()
        entry = _get(f, Word.RUN)
        for bits, value in ((BITS.step, _get(f, Word.STEP)), (BITS.thread, _get(f, Word.THREAD)),
                            (BITS.write, "%write")):
            entry = f.op(f"or i64 {f.op(f'shl i64 {entry}, {bits}')}, {value}")
        log = f.load("ptr", _slot(f, Word.LOG))
        before = f.gep("i64", log, f.op(f"sub i64 {at}, 1"))
        old = f.load("i64", before)
        with f.if_(f.op(f"icmp ult i64 {f.op(f'xor i64 {old}, {entry}')}, {1 << BITS.write}")):
            f.store("i64", f.op(f"or i64 {old}, {entry}"), before)
            f.ret()
        f.store("i64", entry, f.gep("i64", log, at))
        f.store("i64", f.op(f"add i64 {at}, 1"), place)
        f.ret()


def _write_merge(m: ModuleText) -> None:
    """`share_merge`: each line's entries, from `firsts` to `ends`, are in order of run, thread and
    statement; go through them in order of run, statement and thread, and count the moves."""
    params = [(kind, name) for kind, name in (
        ("ptr", "log"), ("ptr", "firsts"), ("ptr", "ends"), ("ptr", "moves"), ("i64", "lines"),
        ("ptr", "scratch"), ("i64", "threads"))]
    with m.function("void", "share_merge", params, "", "nounwind") as f:
        at = f.var("i64")
        with f.for_range("0", "%lines") as line:
            f.store("i64", f.load("i64", f.gep("i64", "%firsts", line)), at)
            last = f.load("i64", f.gep("i64", "%ends", line))
            slot = f.gep("i64", "%moves", line)
            with f.loop():
                first = f.load("i64", at)
                with f.else_(f.op(f"icmp slt i64 {first}, {last}")):
                    f.break_()
                f.store("i64", f.call("i64", "share_run", [
                    "ptr %log", f"i64 {first}", f"i64 {last}", "ptr %scratch", "i64 %threads",
                    f"ptr {slot}"]), at)
        f.ret()
    params = [("ptr", "log"), ("i64", "first"), ("i64", "last"), ("ptr", "scratch"),
              ("i64", "threads"), ("ptr", "moves")]
    with m.function("i64", "share_run", params, "internal", "nounwind") as f:
        # `place` and `end`: what is left of each thread's entries; `seen`: the write that it has
        # seen last, of all writes by number.
        place, end, seen = "%scratch", f.gep("i64", "%scratch", "%threads"), f.gep(
            "i64", "%scratch", f.op("shl i64 %threads, 1"))
        with f.for_range("0", "%threads") as t:
            for table in (place, end, seen):
                f.store("i64", "0", f.gep("i64", table, t))
        _find_parts(f, place, end)
        writes = f.var("i64", "0")
        with f.loop():
            best, key = f.var("i64"), f.var("i64")
            f.store("i64", "-1", best)
            f.store("i64", "-1", key)
            with f.for_range("0", "%threads") as t:
                here = f.load("i64", f.gep("i64", place, t))
                with f.if_(f.op(f"icmp slt i64 {here}, {f.load('i64', f.gep('i64', end, t))}")):
                    entry = f.load("i64", f.gep("i64", "%log", here))
                    with f.if_(f.op(f"icmp ult i64 {entry}, {f.load('i64', key)}")):
                        f.store("i64", entry, key)
                        f.store("i64", t, best)
            thread, entry = f.load("i64", best), f.load("i64", key)
            with f.if_(f.op(f"icmp slt i64 {thread}, 0")):
                f.break_()
            here = f.gep("i64", place, thread)
            f.store("i64", f.op(f"add i64 {f.load('i64', here)}, 1"), here)
            saw, known = f.load("i64", writes), f.gep("i64", seen, thread)
            with f.else_(f.op(f"icmp eq i64 {f.load('i64', known)}, {saw}")):
                f.store("i64", f.op(f"add i64 {f.load('i64', '%moves')}, 1"), "%moves")
            now = f.op(f"add i64 {saw}, {f.op(f'and i64 {entry}, 1')}")
            f.store("i64", now, writes)
            f.store("i64", now, known)
        f.ret(f"i64 {f.load('i64', '%after')}")


def _find_parts(f: FunctionText, place: str, end: str) -> None:
    """Where the entries of each thread begin and end in the run that the first entry is of;
    `%after` is where the next run begins."""
    f.entry.append("  %after = alloca i64")
    f.store("i64", "%first", "%after")
    above = BITS.step + BITS.thread + BITS.write
    run = f.op(f"lshr i64 {f.load('i64', f.gep('i64', '%log', '%first'))}, {above}")
    with f.loop():
        at = f.load("i64", "%after")
        with f.else_(f.op(f"icmp slt i64 {at}, %last")):
            f.break_()
        entry = f.load("i64", f.gep("i64", "%log", at))
        with f.else_(f.op(f"icmp eq i64 {f.op(f'lshr i64 {entry}, {above}')}, {run}")):
            f.break_()
        thread = f.op(f"and i64 {f.op(f'lshr i64 {entry}, {BITS.write}')}, "
                      f"{(1 << BITS.thread) - 1}")
        stop = f.gep("i64", end, thread)
        with f.if_(f.op(f"icmp eq i64 {f.load('i64', stop)}, 0")):
            f.store("i64", at, f.gep("i64", place, thread))
        next_ = f.op(f"add i64 {at}, 1")
        f.store("i64", next_, stop)
        f.store("i64", next_, "%after")


def _write_loops(m: ModuleText) -> None:
    """The beginning and end of a parallel loop, its threads, and their statements."""
    with m.function("void", "share_step", [], "", "alwaysinline nounwind") as f:
        _set(f, Word.STEP, f.op(f"add i64 {_get(f, Word.STEP)}, 1"))
        f.ret()
    m.declare("i64", "llvm.smax.i64", ["i64", "i64"])

    def begin(f: FunctionText, thread: str) -> None:
        most, step = _get(f, Word.LONGEST), _get(f, Word.STEP)
        _set(f, Word.LONGEST, f.op(f"call i64 @llvm.smax.i64(i64 {most}, i64 {step})"))
        _set(f, Word.STEP, "0")
        _set(f, Word.THREAD, thread)

    with m.function("void", "share_enter", [], "", "nounwind") as f:
        _set(f, Word.RUN, f.op(f"add i64 {_get(f, Word.RUN)}, 1"))
        f.ret()
    with m.function("void", "share_thread", [("i64", "thread")], "", "nounwind") as f:
        with f.else_(f.op(f"icmp eq i64 %thread, {_get(f, Word.THREAD)}")):
            begin(f, "%thread")
        f.ret()
    with m.function("void", "share_leave", [], "", "nounwind") as f:
        begin(f, "0")
        f.ret()


__all__ = ["BITS", "MARK", "SharingGen", "Word", "write_watch"]
