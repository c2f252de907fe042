"""What blocks declare, held against what they do: each iterator, load and store is watched.

`T.reads` and `T.writes` promise what a block touches, the domains of its iterators which instances
of it there are, and every rule about moving it rests on them. A run of the definition
(`backend/meaning.py`) that checks each element that is touched says whether the promise is kept,
also where nothing can be proven about it.
"""

from __future__ import annotations

import itertools
from unittest import mock

from mlc_lab.backend import meaning
from mlc_lab.backend.interp_memory import DivisionByZero, OutOfBounds
from mlc_lab.ir import dtype as dt
from mlc_lab.tir import stmt as S

#: the statements that `meaning` runs, and the functions through which it touches memory
_RUN, _READ, _WRITE, _FRESH = meaning.run, meaning.read, meaning.write, meaning.fresh


class Undeclared(AssertionError):
    """A block does what it does not declare."""


class _Frame:
    """One run of a block: the places in memory that it may read and write."""

    def __init__(self, block: S.Block, env: meaning.Env) -> None:
        self.block = block
        self.reads = _addresses(block.reads, env)
        self.writes = _addresses(block.writes, env)
        self.own: list[range] = []  # memory that is made inside

    def check(self, at: int, write: bool) -> None:
        """An element is touched: it is declared, or the block's own."""
        if any(at in mine for mine in self.own) or at in self.writes and (
                write or self.block.init is not None):
            return
        if write or at not in self.reads:
            raise Undeclared(f"block {self.block.name_hint} {'writes' if write else 'reads'} what "
                             "it does not declare")


class _Watch:
    """The blocks that are entered, outermost first."""

    def __init__(self, roots: set[S.Block]) -> None:
        self.frames: list[_Frame] = []
        #: the outermost blocks of functions, which need not declare what they touch
        self.roots = roots

    def run(self, s, env):
        """`meaning.run`, which also knows what a block may touch."""
        entered = type(s) is S.Block and (
            s not in self.roots or bool(s.reads or s.writes or s.iter_vars))
        if entered:
            frames, self.frames = self.frames, []  # what a region says is not touched by the block
            frame = _Frame(s, env)
            for iv in s.iter_vars:
                low, extent = meaning.value(iv.dom.min, env), meaning.value(iv.dom.extent, env)
                if not low <= env[iv.var] < low + extent:
                    raise Undeclared(f"block {s.name_hint} runs for {iv.var.name} = {env[iv.var]}, "
                                     f"which is outside of its domain {iv.dom!r}")
            self.frames = [*frames, frame]
        try:
            yield from _RUN(s, env)
        finally:  # also where a loop is left
            if entered:
                self.frames = frames

    def touch(self, memory, at: int, dtype: str, write: bool) -> None:
        """One element is touched."""
        where = _start(memory) + at * dt.bytes_of(dtype)
        for frame in self.frames:
            frame.check(where, write)
            if write:  # what it has written it may read
                frame.reads.add(where)

    def read(self, memory, at, dtype):
        """`meaning.read`, watched."""
        self.touch(memory, at, dtype, False)
        return _READ(memory, at, dtype)

    def write(self, memory, at, dtype, number):
        """`meaning.write`, watched."""
        self.touch(memory, at, dtype, True)
        _WRITE(memory, at, dtype, number)

    def fresh(self, var, dtype, extents, env):
        """`meaning.fresh`: what is made in a block is not declared by it."""
        memory = _FRESH(var, dtype, extents, env)
        for frame in self.frames:
            frame.own.append(range(_start(memory), _start(memory) + len(memory)))
        return memory


def _start(memory) -> int:
    return memory.__array_interface__["data"][0]


def _addresses(regions, env: meaning.Env) -> set[int]:
    """Where the elements of regions are in memory, as far as they are in the buffers' shapes. One
    whose place is read from outside of a buffer declares nothing: `B[at[v]]` of a block that reads
    it under a condition on v; so does one at a remainder by a size of 0, in a loop that is empty
    then."""
    found: set[int] = set()
    for region in regions:
        where = meaning.view(region.buffer, env)
        try:
            starts = [meaning.value(r.min, env) for r in region.region]
            sizes = [meaning.value(r.extent, env) for r in region.region]
        except (OutOfBounds, DivisionByZero):
            continue
        spans = [range(max(a, 0), min(a + n, dim))
                 for a, n, dim in zip(starts, sizes, where.shape)]
        width = dt.lanes_of(where.dtype)
        for at in itertools.product(*spans):
            place = where.offset + sum(i * s for i, s in zip(at, where.strides))
            first = _start(where.memory) + place * dt.bytes_of(where.dtype)
            step = dt.bytes_of(where.dtype) // width
            found.update(range(first, first + width * step, step))
    return found


def check_declared(mod, arguments) -> None:
    """Run a module on arrays; raises Undeclared where a block does what it does not declare."""
    watch = _Watch({f.root for f in mod.functions.values() if type(f.body) is S.BlockRealize})
    with mock.patch.multiple(meaning, run=watch.run, read=watch.read, write=watch.write,
                             fresh=watch.fresh):
        meaning.evaluate(mod, *arguments)
