"""Comparing a block with the description of a tensor intrinsic, and putting the other half in.

The comparison walks both trees together. Loops correspond by order and extent, block iterators by
order, kind and extent (those of extent 1 may be missing on either side), buffers by where they
occur. An index of the block must be the start of the region that the block touches plus the
description's index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, NamedTuple, NoReturn

from ..arith import Analyzer
from ..arith.linear_form import follows
from ..ir.dtype import lanes_of
from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import (
    BufferLoad, Call, Cast, FloatImm, IntImm, PrimExpr, Range, StringImm, Var,
)
from ..tir.function import PrimFunc, TensorIntrin
from ..tir.functor import pre_order, substitute
from ..tir.stmt import (
    Block, BlockRealize, BufferRegion, BufferStore, For, ForKind, IfThenElse, LetStmt,
    MatchBufferRegion, SeqStmt, Stmt,
)
from .error import Refusal
from .provenance import came_from

if TYPE_CHECKING:
    from ..ir.node import Node


class Matched(NamedTuple):
    """Buffers of the block by buffers of the description, and where each one's part starts."""

    buffers: dict[Buffer, Buffer]
    starts: dict[Buffer, list[PrimExpr]]


def match_description(block: Block, desc: PrimFunc, name: str) -> Matched:
    """How `block` is an instance of the description; Refusal says where they part."""
    matcher = _Matcher(block, desc, name)
    root = desc.root
    if root.init is not None:
        matcher.fail(root.init, block, "the description's outermost block has an init")
    matcher.statement(block.body, root.body)
    matcher.results_are_apart()
    missing = [b.name for b in desc.buffers if b not in matcher.buffers]
    if missing:
        matcher.fail(None, block, f"the description does not use its buffer {missing[0]}")
    return Matched(matcher.buffers, matcher.starts)


class _Matcher:
    def __init__(self, block: Block, desc: PrimFunc, name: str) -> None:
        self.block, self.desc, self.name = block, desc, name
        self.regions: dict[Buffer, BufferRegion] = {}
        for region in (*block.reads, *block.writes):
            self.regions.setdefault(region.buffer, region)
        self.wanted: dict[Buffer, BufferRegion] = {}
        root = desc.root
        for region in (*root.reads, *root.writes):
            self.wanted.setdefault(region.buffer, region)
        self.vars: dict[Var, PrimExpr] = {}
        self.buffers: dict[Buffer, Buffer] = {}
        self.starts: dict[Buffer, list[PrimExpr]] = {}
        self.analyzer = Analyzer()

    def fail(self, theirs: Node | None, ours: Node | None, why: str) -> NoReturn:
        """Refuse, pointing at our part and quoting theirs."""
        quote = ""
        if theirs is not None:
            first = repr(theirs).strip().split("\n")[0]
            quote = f"; the description has {first}"
        raise Refusal("block_is_the_described_one", f"block {self.block.name_hint} does not "
                      f"compute what intrinsic {self.name!r} describes: {why}{quote}",
                      nodes=[ours if ours is not None else self.block],
                      hint="split, reorder and decompose_reduction until the loop nest reads like "
                      "the description")

    def results_are_apart(self) -> None:
        """What an implementation writes is not what it reads by another name."""
        if self.block.match_buffers:
            self.fail(None, self.block, "it has views by T.match_buffer already")
        results = {n.buffer for n in pre_order(self.desc.body) if type(n) is BufferStore}
        for wanted, buffer in self.buffers.items():
            for result in results:
                if result is not wanted and result in self.buffers and (
                        self.buffers[result].data is buffer.data):
                    self.fail(None, self.block, f"{buffer.name} stands for {wanted.name} and for "
                              f"the result {result.name}, which the implementation may take for "
                              "different memory")

    # ---------------------------------------------------------------- statements

    def statement(self, ours: Any, theirs: Any) -> None:
        """Match two statements."""
        while type(theirs) is For and op.is_const_int(theirs.extent, 1) and not (
                type(ours) is For and op.is_const_int(ours.extent, 1)):
            self.vars[theirs.loop_var] = theirs.min
            theirs = theirs.body
        while type(ours) is For and op.is_const_int(ours.extent, 1) and type(theirs) is not For:
            ours = ours.body
        if type(ours) is not type(theirs):
            self.fail(theirs, ours, f"a {type(ours).__name__} stands where the description has a "
                      f"{type(theirs).__name__}")
        handler = _STATEMENTS.get(ours.__class__)
        if handler is None:
            self.fail(theirs, ours, f"{type(ours).__name__} is not compared")
        handler(self, ours, theirs)

    def loop(self, ours: For, theirs: For) -> None:
        if not self.same_number(ours.extent, theirs.extent):
            self.fail(theirs, ours, f"loop {ours.loop_var.name} runs {ours.extent!r} times, not "
                      f"{theirs.extent!r}")
        if not self.same_number(ours.min, theirs.min):
            self.fail(theirs, ours, f"loop {ours.loop_var.name} starts at {ours.min!r}, not at "
                      f"{theirs.min!r}")
        if ours.kind is not theirs.kind and theirs.kind is not ForKind.SERIAL:
            self.fail(theirs, ours, f"loop {ours.loop_var.name} is {ours.kind.name.lower()}, not "
                      f"{theirs.kind.name.lower()}")
        self.vars[theirs.loop_var] = ours.loop_var
        self.analyzer.bind(ours.loop_var, Range.from_min_extent(ours.min, ours.extent))
        self.statement(ours.body, theirs.body)

    def sequence(self, ours: SeqStmt, theirs: SeqStmt) -> None:
        if len(ours.seq) != len(theirs.seq):
            self.fail(theirs, ours, f"there are {len(ours.seq)} statements, not {len(theirs.seq)}")
        for a, b in zip(ours.seq, theirs.seq):
            self.statement(a, b)

    def realize(self, ours: BlockRealize, theirs: BlockRealize) -> None:
        mine, other = ours.block, theirs.block
        pairs = iter(zip(mine.iter_vars, ours.iter_values))
        have = next(pairs, None)
        for iv, value in zip(other.iter_vars, theirs.iter_values):
            while have is not None and op.is_const_int(have[0].dom.extent, 1) and (
                    not op.is_const_int(iv.dom.extent, 1)):
                have = next(pairs, None)
            if have is None or have[0].iter_type != iv.iter_type or not (
                    self.same_number(have[0].dom.extent, iv.dom.extent)
                    and self.same_number(have[0].dom.min, iv.dom.min)):
                if op.is_const_int(iv.dom.extent, 1):
                    self.vars[iv.var] = iv.dom.min
                    continue
                self.fail(other, mine, f"its iterators do not correspond to iterator {iv.var.name} "
                          f"(extent {iv.dom.extent!r})")
            self.expression(have[1], value, ours)
            self.vars[iv.var] = have[0].var
            self.analyzer.bind(have[0].var, have[0].dom)
            have = next(pairs, None)
        while have is not None:
            if not op.is_const_int(have[0].dom.extent, 1):
                self.fail(other, mine, f"it has one more iterator, {have[0].var.name}")
            have = next(pairs, None)
        if not op.is_const_int(ours.predicate, 1) or not op.is_const_int(theirs.predicate, 1):
            self.expression(ours.predicate, theirs.predicate, ours)
        if (mine.init is None) is not (other.init is None):
            self.fail(other, mine, "only one of the two has an init")
        if mine.init is not None:
            self.statement(mine.init, other.init)
        if mine.alloc_buffers or other.alloc_buffers or mine.match_buffers or other.match_buffers:
            self.fail(other, mine, "blocks that allocate or match buffers are not compared")
        self.statement(mine.body, other.body)

    def store(self, ours: BufferStore, theirs: BufferStore) -> None:
        self.access(ours, theirs)
        self.expression(ours.value, theirs.value, ours)

    def condition(self, ours: IfThenElse, theirs: IfThenElse) -> None:
        self.expression(ours.condition, theirs.condition, ours)
        self.statement(ours.then_case, theirs.then_case)
        if (ours.else_case is None) is not (theirs.else_case is None):
            self.fail(theirs, ours, "only one of the two has an else")
        if ours.else_case is not None:
            self.statement(ours.else_case, theirs.else_case)

    def let(self, ours: LetStmt, theirs: LetStmt) -> None:
        self.expression(ours.value, theirs.value, ours)
        self.vars[theirs.var] = ours.var
        self.statement(ours.body, theirs.body)

    # ---------------------------------------------------------------- expressions

    def same_number(self, ours: Any, theirs: Any) -> bool:
        a, b = op.as_int(ours), op.as_int(theirs)
        if a is not None and b is not None:
            return a == b
        theirs = substitute(theirs, self.vars)
        return bool(self.analyzer.can_prove(op.equal(ours, op.cast(theirs, ours.dtype))))

    def expression(self, ours: Any, theirs: Any, at: Node | None) -> None:
        """Match two expressions; `at` is the statement of ours."""
        if isinstance(theirs, Var):
            mapped = self.vars.get(theirs)
            if mapped is ours or mapped is not None and self.same_number(ours, mapped):
                return
            self.fail(theirs, at, f"{ours!r} stands where the description has {theirs.name}")
        if type(ours) is not type(theirs):
            if isinstance(ours, Var) and op.is_const_int(theirs):
                if self.same_number(ours, theirs):
                    return
            self.fail(theirs, at, f"it computes {ours!r}")
        if type(ours) is BufferLoad:
            self.access(ours, theirs, at)
            return
        if isinstance(ours, (IntImm, FloatImm, StringImm)):
            if ours.value != theirs.value or ours.dtype != theirs.dtype:
                self.fail(theirs, at, f"it uses the constant {ours!r}")
            return
        if ours.dtype != theirs.dtype and not (isinstance(ours.dtype, str)
                                               and ours.dtype in ("int32", "int64")):
            self.fail(theirs, at, f"{ours!r} has the type {ours.dtype}, not {theirs.dtype}")
        if type(ours) is Call and ours.op is not theirs.op:
            self.fail(theirs, at, f"it calls {getattr(ours.op, 'name', ours.op)}")
        if type(ours) is Cast and ours.dtype != theirs.dtype:
            self.fail(theirs, at, f"it casts to {ours.dtype}")
        mine, other = ours.children(), theirs.children()
        if len(mine) != len(other):
            self.fail(theirs, at, f"it computes {ours!r}")
        for a, b in zip(mine, other):
            self.expression(a, b, at)

    def access(self, ours: Any, theirs: Any, at: Node | None = None) -> None:
        """Match an access of a buffer: ours must be the start of the part plus theirs."""
        buffer, wanted = ours.buffer, theirs.buffer
        at = ours if at is None else at
        if self.buffers.setdefault(wanted, buffer) is not buffer:
            self.fail(theirs, at, f"{buffer.name} stands where {self.buffers[wanted].name} stood "
                      f"before for {wanted.name}")
        starts = self.starts.get(buffer)
        if starts is None:
            starts = self.starts[buffer] = self.start_of(buffer, wanted, at)
        extra = len(ours.indices) - len(theirs.indices)
        for axis, (index, start) in enumerate(zip(ours.indices, starts)):
            expected: PrimExpr = start
            if lanes_of(index.dtype) > 1:
                self.fail(theirs, at, f"dimension {axis} of {buffer.name} is accessed as a vector")
            if axis >= extra:
                inner = substitute(theirs.indices[axis - extra], self.vars)
                expected = op.add(start, op.cast(inner, start.dtype))
            if not self.analyzer.can_prove(op.equal(index, expected)):
                self.fail(theirs, at, f"dimension {axis} of {buffer.name} is read or written at "
                          f"{index!r}, where {expected!r} is expected")

    def start_of(self, buffer: Buffer, wanted: Buffer, at: Any) -> list[PrimExpr]:
        """Where the part of `buffer` that the block touches starts; its size is checked."""
        if buffer.dtype != wanted.dtype:
            self.fail(None, at, f"{buffer.name} holds {buffer.dtype}, the description's "
                      f"{wanted.name} {wanted.dtype}")
        if buffer.scope != wanted.scope:
            self.fail(None, at, f"{buffer.name} is in {buffer.scope} memory, the description's "
                      f"{wanted.name} in {wanted.scope}")
        region, theirs = self.regions.get(buffer), self.wanted.get(wanted)
        if region is None or theirs is None:
            self.fail(None, at, f"{buffer.name} or {wanted.name} is not in the regions that the "
                      "blocks declare")
        for block in (self.block, self.desc.root):
            first, *rest = [r for r in (*block.reads, *block.writes)
                            if r.buffer in (buffer, wanted)]
            for other in rest:
                if not all(self.same_number(a, b) for x, y in zip(first.region, other.region)
                           for a, b in ((x.min, y.min), (x.extent, y.extent))):
                    self.fail(None, at, f"{block.name_hint} reads {first!r} and writes {other!r}, "
                              "and a view shows one part")
        self.stays_inside(region, at)
        extra = len(region.region) - len(theirs.region)
        if extra < 0:
            self.fail(None, at, f"{buffer.name} has fewer dimensions than {wanted.name}")
        starts: list[PrimExpr] = []
        for axis, rng in enumerate(region.region):
            want = theirs.region[axis - extra].extent if axis >= extra else IntImm("int32", 1)
            if not self.same_number(rng.extent, want):
                self.fail(None, at, f"it touches {rng.extent!r} elements of {buffer.name} in "
                          f"dimension {axis}, the description {want!r}")
            start = rng.min
            if axis >= extra and not op.is_const_int(theirs.region[axis - extra].min, 0):
                start = op.sub(start, op.cast(theirs.region[axis - extra].min, start.dtype))
            starts.append(start)
        return starts

    def stays_inside(self, region: BufferRegion, at: Node | None) -> None:
        """An implementation may touch all of a view: none of it may lie outside of the buffer."""
        loops = [(iv.var, iv.dom.min, iv.dom.extent) for iv in self.block.iter_vars]
        for rng, dim in zip(region.region, region.buffer.shape):
            for inside in (op.greater_equal(rng.min, 0), op.less_equal(rng.min + rng.extent, dim)):
                if not op.is_const_int(inside, 1) and not follows(inside, loops):
                    self.fail(None, at, f"of the part {region!r} that it touches some may lie "
                              f"outside of {region.buffer.name}, where only its conditions keep "
                              "it from going")


_STATEMENTS: dict[type[Stmt], Callable[[_Matcher, Any, Any], None]] = {
    For: _Matcher.loop, SeqStmt: _Matcher.sequence, BlockRealize: _Matcher.realize,
    BufferStore: _Matcher.store, IfThenElse: _Matcher.condition, LetStmt: _Matcher.let}


# ------------------------------------------------------------------------------- the other half


def instantiate(block: Block, intrinsic: TensorIntrin, matched: Matched) -> Block:
    """`block` with the implementation as its body, on views of the parts it touches."""
    wide = any(start.dtype == "int64" for starts in matched.starts.values() for start in starts)
    impl = _fresh(intrinsic.impl, wide)
    root = impl.root
    regions: dict[Buffer, BufferRegion] = {}
    for region in (*root.reads, *root.writes):
        regions.setdefault(region.buffer, region)
    views: list[MatchBufferRegion] = []
    for position, buffer in enumerate(impl.buffers):
        current = matched.buffers[intrinsic.desc.buffers[position]]
        starts = matched.starts[current]
        declared = regions.get(buffer)
        sizes = [r.extent for r in declared.region] if declared is not None else list(buffer.shape)
        extra = len(starts) - len(sizes)
        ranges: list[Range] = []
        for axis, start in enumerate(starts):
            extent = op.cast(sizes[axis - extra], start.dtype) if axis >= extra else IntImm(
                start.dtype, 1)
            ranges.append(Range.from_min_extent(start, extent))
        came_from(buffer, current)
        views.append(MatchBufferRegion(buffer, BufferRegion(current, tuple(ranges))))
    for node in pre_order(root.body):
        if type(node) in (For, Block):
            came_from(node, block)
            for iv in getattr(node, "iter_vars", ()):
                came_from(iv.var, block)
    for buffer in root.alloc_buffers:
        came_from(buffer, block)
    return block.replace(body=root.body, match_buffers=tuple(views), alloc_buffers=(
        *block.alloc_buffers, *root.alloc_buffers),
        annotations={**block.annotations, **root.annotations})


def _fresh(func: PrimFunc, wide: bool = False) -> PrimFunc:
    """A copy of a function that shares no variable and no buffer with it. The sizes and offsets of
    its parameters are int64 where those of what they are views of are (`wide`)."""
    table: dict[Var, Var] = {}
    if wide:
        table.update((v, Var(v.name, "int64")) for b in func.buffers
                     for v in (*b.shape, *b.strides, b.elem_offset)
                     if isinstance(v, Var) and v.dtype == "int32")

    def define(var: Any) -> None:
        if isinstance(var, Var) and var not in table:
            annotation = var.type_annotation
            table[var] = Var(var.name, annotation if annotation is not None else var.dtype)

    def define_buffer(buffer: Buffer) -> None:
        for var in (buffer.data, *buffer.shape, *buffer.strides, buffer.elem_offset):
            define(var)

    for buffer in func.buffers:
        define_buffer(buffer)
    for node in pre_order(func.body):
        if type(node) is For:
            define(node.loop_var)
        elif type(node) is LetStmt:
            define(node.var)
        elif type(node) is Block:
            for iv in node.iter_vars:
                define(iv.var)
            for buffer in node.alloc_buffers:
                define_buffer(buffer)
            for match in node.match_buffers:
                define_buffer(match.buffer)
    buffers: dict[Buffer, Buffer] = {}
    for buffer in func.buffers:
        sizes, steps, (start,) = (
            [op.cast(s, "int64") if wide else s for s in (substitute(e, table) for e in part)]
            for part in (buffer.shape, buffer.strides, (buffer.elem_offset,)))
        buffers[buffer] = buffer.replace(data=table[buffer.data], shape=tuple(sizes),
                                         strides=tuple(steps), elem_offset=start)
    body: Stmt = substitute(func.body, table, buffers)
    return func.replace(body=body, buffer_map={
        p: buffers[b] for p, b in func.buffer_map.items()})


__all__ = ["Matched", "instantiate", "match_description"]
