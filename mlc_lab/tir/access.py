"""What a block reads and writes: what `T.reads` and `T.writes` say, found from the block's body.

Each index is an interval over the loops inside the block; accesses of one buffer are united into
one box. What cannot be bounded becomes the whole dimension, as in TVM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Mapping

from ..ir.node import Node
from ..ir.recursion import grows_stack
from . import op as O
from .buffer import Buffer
from .expr import (
    EQ, GE, GT, LE, LT, NE, Add, And, BufferLoad, Call, Cast, FloorDiv, FloorMod, IntImm, Let, Max,
    Min, Mul, Not, Or, Ramp, Range, Select, Sub, Var,
)
from .functor import pre_order, substitute
from .stmt import (
    Allocate, AllocateConst, Block, BlockRealize, BufferRegion, BufferStore, DeclBuffer, For,
    IfThenElse, LetStmt, MatchBufferRegion, Stmt,
)

if TYPE_CHECKING:
    from typing_extensions import TypeAlias

    from .expr import PrimExpr

    #: the least and the greatest value of an index; None where one of them is not known
    Interval: TypeAlias = "tuple[PrimExpr, PrimExpr] | None"
    #: what of each buffer is touched
    Boxes: TypeAlias = "dict[Buffer, list[Interval]]"
    #: a sum: factors of variables and opaque terms, the constant under None
    Terms: TypeAlias = "dict[PrimExpr | None, int]"
    Regions: TypeAlias = "tuple[BufferRegion, ...]"

_OPPOSITE = {LT: GE, LE: GT, GT: LE, GE: LT, EQ: NE, NE: EQ}
_MIRROR = {LT: GT, LE: GE, GT: LT, GE: LE, EQ: EQ, NE: NE}
#: ends that cannot be compared, of which the least or the greatest is taken; more bound nothing
_ENDS = 16
#: parts of a bound that names and iterators were put into; one that has more bounds nothing
_PARTS = 2_000


def contains_block(node: Stmt) -> bool:
    """Whether there is a block at or under a statement."""
    stack: list[Any] = [node]
    while stack:
        item = stack.pop()
        if type(item) is BlockRealize:
            return True
        stack.extend(k for k in item.children() if isinstance(k, Stmt))
    return False


@grows_stack
def block_access_regions(block: Block, buffer_var_map: Mapping[Var, Buffer] | None = None
                         ) -> tuple[Regions, Regions, Regions]:
    """(reads, writes, opaque): the boxes a block touches, in order of first access.

    `buffer_var_map` gives the buffer of each data pointer; a pointer used by itself (not through an
    access) makes its buffer opaque. In a block with an init, buffers it writes are left out of the
    reads. Buffers whose memory is made inside the block are left out of everything.
    """
    found = _Detector(buffer_var_map or {})
    for match in block.match_buffers:
        found.matches[match.buffer] = match
    own = set(block.alloc_buffers)
    for iv in block.iter_vars:
        found.visit(iv.dom)
    if block.init is not None:
        found.visit(block.init)
    found.visit(block.body)
    found.changed = found.inner.union(
        (b.data for b in (*found.writes, *found.opaque, *own)),
        (b.data for b in found.matches), (b.data for b in found.declared))
    skip: set[Buffer] = set()
    if block.init is not None:
        skip = {region.buffer for region in found.collect(found.writes, own)}
    return (tuple(found.collect(found.reads, own | skip)),
            tuple(found.collect(found.writes, own)),
            tuple(found.collect(found.opaque, own)))


class _Detector:
    def __init__(self, pointers: Mapping[Var, Buffer]) -> None:
        self.pointers = pointers
        self.bounds: dict[Var, Interval] = {}
        self.lets: dict[Var, PrimExpr] = {}
        #: what `lets` take their values from, while `bounds` are as they are
        self.known: dict[Var, Interval] = {}
        self.matches: dict[Buffer, MatchBufferRegion] = {}
        self.reads: Boxes = {}
        self.writes: Boxes = {}
        self.opaque: Boxes = {}
        #: pointers to memory made inside the block
        self.inner: set[Var] = set()
        #: pointers to memory that is not, inside the block, what it is where the block is entered
        self.changed: set[Var] = set()
        self.declared: set[Buffer] = set()

    # ------------------------------------------------------------------------- walking

    def visit(self, node: Any) -> None:
        kind = node.__class__
        if kind is Allocate or kind is AllocateConst:
            self.inner.add(node.buffer_var)
        elif kind is DeclBuffer:
            self.declared.add(node.buffer)
        if kind is BufferLoad:
            self.touch(self.reads, node.buffer, [self.interval(i) for i in node.indices])
        elif kind is BufferStore:
            self.touch(self.writes, node.buffer, [self.interval(i) for i in node.indices])
        elif kind is For:
            self.visit(node.min)
            self.visit(node.extent)
            self.bounds[node.loop_var] = self.span(node.min, node.extent)
            self.known = {}
            self.visit(node.body)
            del self.bounds[node.loop_var]
            self.known = {}
            return
        elif kind is LetStmt or kind is Let:
            self.visit(node.value)
            self.lets[node.var] = node.value
            self.known.pop(node.var, None)
            self.visit(node.body)
            del self.lets[node.var]
            return
        elif kind is BlockRealize:
            self.realize(node)
            return
        elif kind is IfThenElse:
            self.visit(node.condition)
            self.under(node.condition, node.then_case)
            if node.else_case is not None:
                self.under(Not(node.condition), node.else_case)
            return
        elif kind is Call and getattr(node.op, "name", "") == "tir.if_then_else":
            condition, yes, no = node.args
            self.visit(condition)
            self.under(condition, yes)
            self.under(Not(condition), no)
            return
        elif kind is Call and self.pointer_call(node):
            return
        elif kind is Var and node in self.pointers:
            buffer = self.pointers[node]
            self.touch(self.opaque, buffer, [None] * len(buffer.shape))
            return
        for item in node.children():
            self.visit(item)

    def under(self, condition: PrimExpr, node: Node) -> None:
        """Visit a node with the loops' bounds narrowed by a condition that holds there."""
        saved, before = dict(self.bounds), self.known
        for var, low, high in self.narrowed(condition, True):
            known = self.bounds[var]
            if known is not None:
                self.bounds[var] = (known[0] if low is None else _larger(known[0], low),
                                    known[1] if high is None else _lesser(known[1], high))
        self.known = {}
        self.visit(node)
        self.bounds, self.known = saved, before

    def narrowed(self, condition: Any, holds: bool) -> Iterator[
            tuple[Var, PrimExpr | None, PrimExpr | None]]:
        """(loop variable, lower bound, upper bound) that a condition gives, None where it gives
        none. Knows comparisons of `variable + constant` with what no inner loop changes."""
        kind = condition.__class__
        if kind is Not:
            yield from self.narrowed(condition.a, not holds)
            return
        if kind is (And if holds else Or):
            yield from self.narrowed(condition.a, holds)
            yield from self.narrowed(condition.b, holds)
            return
        if kind is Call and getattr(condition.op, "name", "") == "tir.likely":
            yield from self.narrowed(condition.args[0], holds)
            return
        if kind not in _OPPOSITE:
            return
        if not holds:
            kind = _OPPOSITE[kind]
        terms = _difference(condition.a, condition.b)
        for var in [t for t in terms if isinstance(t, Var) and t in self.bounds]:
            factor = terms[var]
            rest = {k: -v * factor for k, v in terms.items() if k is not var}
            if factor not in (1, -1) or any(self.varies(k) for k in rest if k is not None):
                continue
            limit = _sum(rest, var.dtype) if rest else IntImm(var.dtype, 0)
            op = kind if factor == 1 else _MIRROR[kind]
            if op is LT:
                yield var, None, O.sub(limit, 1)
            elif op is LE:
                yield var, None, limit
            elif op is GT:
                yield var, O.add(limit, 1), None
            elif op is GE:
                yield var, limit, None
            elif op is EQ:
                yield var, limit, limit

    def span(self, low: PrimExpr, extent: PrimExpr) -> Interval:
        """The interval min .. min + extent - 1, with what its ends depend on relaxed."""
        first = self.interval(low)
        last = self.interval(O.sub(O.add(low, extent), 1))
        return None if first is None or last is None else (first[0], last[1])

    def pointer_call(self, call: Call) -> bool:
        """Calls that name what they access: tvm_access_ptr with its mask."""
        if getattr(call.op, "name", "") != "tir.tvm_access_ptr" or len(call.args) != 5:
            return False
        data, offset, extent, mask = call.args[1:]
        buffer = self.pointers.get(data)
        if buffer is None or type(mask) is not IntImm:
            return False
        region: list[Interval]
        if len(buffer.shape) == 1:
            region = [self.span(offset, extent)]
        else:
            region = [None] * len(buffer.shape)
        if mask.value & 1:
            self.touch(self.reads, buffer, region)
        if mask.value & 2:
            self.touch(self.writes, buffer, region)
        self.visit(offset)
        self.visit(extent)
        return True

    def realize(self, node: BlockRealize) -> None:
        """A nested block touches what it says, at the values its iterators get."""
        block = node.block
        table = {iv.var: value for iv, value in zip(block.iter_vars, node.iter_values)}
        for value in node.iter_values:
            self.visit(value)
        local = set(block.alloc_buffers) | {m.buffer for m in block.match_buffers}
        for home, regions in ((self.reads, block.reads), (self.writes, block.writes)):
            for region in regions:
                if region.buffer in local:
                    continue
                box = [_small(self.span(substitute(r.min, table), substitute(r.extent, table)))
                       for r in region.region]
                self.touch(home, region.buffer, box)

    # ------------------------------------------------------------------------- intervals

    def interval(self, e: Any) -> Interval:
        """The values an index takes, relaxed over the loops inside the block."""
        kind = e.__class__
        if isinstance(e, Var):
            if e in self.bounds:
                return self.bounds[e]
            if e in self.lets:
                if e not in self.known:
                    self.known[e] = _small(self.interval(self.lets[e]))
                return self.known[e]
            return e, e
        if kind is IntImm:
            return e, e
        if not self.varies(e):
            return None if _calls(e) else (e, e)
        if kind is Ramp:
            last = O.add(e.base, O.mul(e.stride, IntImm(e.stride.dtype, e.lanes - 1)))
            return self.union(self.interval(e.base), self.interval(last))  # it may go backwards
        if kind is Cast:
            inner = self.interval(e.value)
            return inner and (O.cast(inner[0], e.dtype), O.cast(inner[1], e.dtype))
        if kind in (Add, Sub, Mul, FloorDiv, FloorMod, Min, Max):
            return self.combine(kind, self.interval(e.a), self.interval(e.b))
        if kind is Select or (kind is Call and getattr(e.op, "name", "") == "tir.if_then_else"):
            a, b = (self.interval(x) for x in e.children()[1:3])
            return self.union(a, b)
        return None

    def varies(self, e: Any) -> bool:
        """Whether an expression depends on a loop inside the block."""
        if isinstance(e, Var):
            return e in self.bounds or e in self.lets
        if type(e) is Ramp:
            return True
        return any(self.varies(k) for k in e.children())

    @staticmethod
    def combine(kind: type, a: Interval, b: Interval) -> Interval:
        if a is None or b is None:
            if kind is FloorMod and b is not None and b[0] is b[1] and type(b[0]) is IntImm and (
                    b[0].value > 0):
                return IntImm(b[0].dtype, 0), IntImm(b[0].dtype, b[0].value - 1)
            return None
        if kind is Add:
            return O.add(a[0], b[0]), O.add(a[1], b[1])
        if kind is Sub:
            return O.sub(a[0], b[1]), O.sub(a[1], b[0])
        if kind is Min:
            return O.min_value_of(a[0], b[0]), O.min_value_of(a[1], b[1])
        if kind is Max:
            return O.max_value_of(a[0], b[0]), O.max_value_of(a[1], b[1])
        if kind is Mul and a[0] is a[1] and type(a[0]) is IntImm:
            a, b = b, a
        if b[0] is not b[1] or type(b[0]) is not IntImm:
            return None
        factor = b[0].value
        if kind is Mul:
            low, high = O.mul(a[0], b[0]), O.mul(a[1], b[0])
            return (low, high) if factor >= 0 else (high, low)
        if factor <= 0:
            return None
        if kind is FloorDiv:
            return _divided(a[0], b[0]), _divided(a[1], b[0])
        if type(a[0]) is IntImm and type(a[1]) is IntImm and (
                a[0].value // factor == a[1].value // factor):
            return O.floormod(a[0], b[0]), O.floormod(a[1], b[0])
        return IntImm(b[0].dtype, 0), IntImm(b[0].dtype, factor - 1)

    @staticmethod
    def union(a: Interval, b: Interval) -> Interval:
        """The smallest interval over two, ends compared where their difference is constant; None
        for one end that is known and one that is read from memory, as that may be read at no place
        at all where only the other access is made."""
        if a is None or b is None:
            return None
        low, high = _smaller(a[0], b[0], True), _smaller(a[1], b[1], False)
        if any(not any(end is e for e in ends) and _loads(end) for end, ends in (
                (low, (a[0], b[0])), (high, (a[1], b[1])))):
            return None
        return None if _ends(low, Min) > _ENDS or _ends(high, Max) > _ENDS else (low, high)

    # ------------------------------------------------------------------------- regions

    def touch(self, home: Boxes, buffer: Buffer, box: list[Interval]) -> None:
        """Add an access; a matched buffer counts as its source."""
        match = self.matches.get(buffer)
        if match is not None:
            buffer, box = self.through(match, box)
        known = home.get(buffer)
        home[buffer] = box if known is None else [self.union(a, b) for a, b in zip(known, box)]

    def through(self, match: MatchBufferRegion, box: list[Interval]
                ) -> tuple[Buffer, list[Interval]]:
        """An access of a matched buffer in terms of its source: offsets added, unit dims kept."""
        source = match.source
        out: list[Interval] = []
        skip = len(source.region) - len(box)
        for axis, r in enumerate(source.region):
            inner = box[axis - skip] if axis >= skip else None
            if axis < skip:
                out.append((r.min, r.min))
            elif inner is None:
                out.append((r.min, O.sub(O.add(r.min, r.extent), 1)))
            else:
                out.append((O.add(r.min, inner[0]), O.add(r.min, inner[1])))
        if source.buffer in self.matches:
            return self.through(self.matches[source.buffer], out)
        return source.buffer, out

    def unknown_outside(self, e: Any) -> bool:
        """Whether an index is not what it seems where the block is entered: made of a floating
        point value in memory, or of memory that the block makes or writes itself."""
        kind = e.__class__
        if kind is Var or kind is IntImm:
            return False
        if kind is BufferLoad and (
                e.dtype.startswith(("float", "bfloat")) or e.buffer.data in self.changed):
            return True
        return any(map(self.unknown_outside, e.children()))

    def collect(self, home: Boxes, skip: set[Buffer]) -> list[BufferRegion]:
        """The boxes as regions."""
        out: list[BufferRegion] = []
        for buffer, box in home.items():
            if buffer in skip or buffer in self.declared or buffer.data in self.inner:
                continue
            ranges: list[Range] = []
            for dim, interval in zip(buffer.shape, box):
                if interval is None or any(map(self.unknown_outside, interval)):
                    ranges.append(Range.from_min_extent(IntImm(dim.dtype, 0), dim))
                    continue
                low, high = interval
                if low is high:
                    extent = IntImm(low.dtype, 1)
                else:
                    extent = _extent(low, high)
                    if type(extent) is IntImm and extent.value < 0:  # conditions that never hold
                        extent = IntImm(extent.dtype, 0)
                ranges.append(Range.from_min_extent(_tidy(low), extent))
            out.append(BufferRegion(buffer, tuple(ranges)))
        return out


def _loads(e: PrimExpr) -> bool:
    """Whether an expression reads memory."""
    return any(type(n) is BufferLoad for n in pre_order(e))


def _ends(e: PrimExpr, kind: type) -> int:
    """How many values an expression is the least, or the greatest, of."""
    stack: list[Any] = [e]
    count = 0
    while stack:
        item = stack.pop()
        if type(item) is kind:
            stack += (item.a, item.b)
        else:
            count += 1
    return count


def _small(interval: Interval) -> Interval:
    """An interval, or None where its ends are too large to go on with: names that mention one
    another twice, and iterators of nested blocks, double with each level."""
    if interval is None:
        return None
    stack, count = list(interval), 0
    while stack:
        count += 1
        if count > _PARTS:
            return None
        stack += stack.pop().children()
    return interval


def _calls(e: Any) -> bool:
    """Whether an intrinsic is called in an index: as in TVM nothing is then known of it."""
    kind = e.__class__
    if kind is Var or kind is IntImm or kind is BufferLoad:
        return False
    return kind is Call or any(_calls(k) for k in e.children())


def _terms(e: Any, factor: int, out: Terms) -> None:
    """e as {variable or opaque term: factor}, the constant under None."""
    kind = e.__class__
    if kind is IntImm:
        out[None] = out.get(None, 0) + factor * e.value
    elif kind is Add:
        _terms(e.a, factor, out)
        _terms(e.b, factor, out)
    elif kind is Sub:
        _terms(e.a, factor, out)
        _terms(e.b, -factor, out)
    elif kind is Mul and type(e.b) is IntImm:
        _terms(e.a, factor * e.b.value, out)
    elif kind is Mul and type(e.a) is IntImm:
        _terms(e.b, factor * e.a.value, out)
    else:
        if not isinstance(e, Var):
            from ..ir.structural import structural_equal

            e = next((t for t in out if t is not None and structural_equal(t, e)), e)
        out[e] = out.get(e, 0) + factor


def _difference(a: PrimExpr, b: PrimExpr) -> Terms:
    out: Terms = {}
    _terms(a, 1, out)
    _terms(b, -1, out)
    return {k: v for k, v in out.items() if v != 0}


def _smaller(a: PrimExpr, b: PrimExpr, want_min: bool) -> PrimExpr:
    if a is b:
        return a
    rest = _difference(a, b)
    if not rest or set(rest) == {None}:
        return a if (rest.get(None, 0) <= 0) == want_min or not rest else b
    return O.min_value_of(a, b) if want_min else O.max_value_of(a, b)


def _larger(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The larger of two lower bounds; the first where they cannot be compared."""
    rest = _difference(a, b)
    return b if set(rest) == {None} and rest[None] < 0 else a


def _lesser(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The smaller of two upper bounds; the first where they cannot be compared."""
    rest = _difference(a, b)
    return b if set(rest) == {None} and rest[None] > 0 else a


def _divided(e: PrimExpr, by: IntImm) -> PrimExpr:
    """e // by, with the multiples of `by` in a sum divided one by one."""
    terms: Terms = {}
    _terms(e, 1, terms)
    constant = terms.pop(None, 0)
    if all(factor % by.value == 0 for factor in terms.values()):
        terms = {k: v // by.value for k, v in terms.items() if v}
        if constant // by.value or not terms:
            terms[None] = constant // by.value
        return _sum(terms, e.dtype)
    return O.floordiv(e, by)


def _extent(low: PrimExpr, high: PrimExpr) -> PrimExpr:
    """high - low + 1; a constant where the symbolic parts cancel."""
    rest = _difference(high, low)
    constant = rest.pop(None, 0) + 1
    if not rest:
        return O.const(constant, low.dtype)
    if type(low) is IntImm and low.value == 0:
        return _sum({**rest, **({None: constant} if constant else {})}, low.dtype)
    return O.sub(O.add(high, 1), low)


def _tidy(e: PrimExpr) -> PrimExpr:
    """x + 3 - 1 as x + 2: constants gathered at the end of a sum that has several."""
    count = 0
    stack: list[Any] = [e]
    while stack:
        item = stack.pop()
        if type(item) is IntImm:
            count += 1
        elif type(item) in (Add, Sub):
            stack += [item.a, item.b]
    if count < 2:
        return e
    terms: Terms = {}
    _terms(e, 1, terms)
    constant = terms.pop(None, 0)
    return _sum({**terms, **({None: constant} if constant or not terms else {})}, e.dtype)


def _sum(terms: Terms, dtype: str) -> Any:
    """The expression of {term: factor}: terms in order, those subtracted after the others."""
    result: Any = None
    for term, factor in sorted(terms.items(), key=lambda item: item[1] < 0):
        size = abs(factor)
        part = O.const(size, dtype) if term is None else (
            term if size == 1 else O.mul(term, O.const(size, dtype)))
        if result is None:
            result = part if factor >= 0 else O.mul(part, O.const(-1, dtype))
        else:
            result = O.add(result, part) if factor > 0 else O.sub(result, part)
    return result


__all__ = ["block_access_regions", "contains_block"]
