"""Where a program touches the buffers it allocates: every access with the loops around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import And, BufferLoad, Call, IntImm, IterVar, PrimExpr, Range, Var
from ..tir.functor import Visitor, leaves_loop, pre_order, substitute
from ..tir.stmt import (
    BlockRealize, BufferStore, DeclBuffer, For, IfThenElse, LetStmt, Stmt, While,
)
from .analyzer import Analyzer
from .int_set import IntSet, union
from .interval_arithmetic import eval_set
from .region import estimate_region_strict_bound

if TYPE_CHECKING:
    from collections.abc import Iterable

#: calls that take the address of what they are given
POINTER_CALLS = {"tir.address_of", "tir.tvm_access_ptr"}


class Access:
    """One access (or the declared region of a block that uses pointers) of a buffer.

    `region` holds (min, extent) per dimension, block iterators replaced by what is bound to them.
    `path` are the loops and block realizations around it, outermost first. `guarded` says that it
    may not happen though its loops run. `inits` are the blocks in whose `init` it stands, each with
    what is bound to its iterators of reductions.
    `predicates` are those of the blocks around, each with the depth of its block in `path`.
    """

    __slots__ = ("buffer", "write", "region", "path", "guarded", "inits", "order", "lets",
                 "predicates")

    def __init__(self, buffer: Buffer, write: bool, region: tuple, walk: "Accesses") -> None:
        self.buffer, self.write = buffer, write
        self.region = tuple((walk.resolve(low), walk.resolve(size)) for low, size in region)
        self.path = tuple(walk.path)
        self.guarded = walk.guards > 0
        self.inits = walk.inits
        self.order = walk.order
        self.lets = walk.lets
        self.predicates = tuple(walk.predicates)

    def domains(self, depth: int) -> dict[Var, Any]:
        """Domains of the loops around this access from `path[depth]` inwards.

        The threads of a GPU block share `shared` memory: for such a buffer their loops count
        wherever they stand (of a warp's memory, those of threadIdx.x).
        """
        table: dict[Var, Any] = {v: IntSet.everything() for v in self.lets}
        scope = self.buffer.data.storage_scope
        sharers = "threadIdx." if scope.startswith("shared") else "threadIdx.x"
        together = scope.startswith(("shared", "warp"))
        for at, item in enumerate(self.path):
            if type(item) is For and (at >= depth or together and item.thread_binding is not None
                                      and item.thread_binding.thread_tag.startswith(sharers)):
                table[item.loop_var] = Range.from_min_extent(item.min, item.extent)
        return table

    def bounds(self, depth: int, analyzer: Analyzer) -> list[IntSet]:
        """What is touched while the loops from `path[depth]` inwards run, one set a dimension."""
        domains = self.domains(depth)
        cuts = [c for at, e in self.predicates if at >= depth for c in conjuncts(e)
                if is_about(c, domains)]
        if cuts and not self.lets:
            region = [Range.from_min_extent(low, size) for low, size in self.region]
            exact = estimate_region_strict_bound(region, domains, op.all(*cuts), analyzer)
            if exact is not None:
                return exact
        out = []
        for low, size in self.region:
            if depends_on_data(low):
                out.append(IntSet.everything())
            else:
                out.append(eval_set(Range.from_min_extent(low, size), domains, analyzer))
        return out


def conjuncts(e: PrimExpr) -> list[PrimExpr]:
    """The parts of a conjunction; none of what is always true."""
    if type(e) is And:
        return conjuncts(e.a) + conjuncts(e.b)
    if type(e) is Call and getattr(e.op, "name", "") == "tir.likely":
        return conjuncts(e.args[0])
    return [] if type(e) is IntImm and e.value == 1 else [e]


def depends_on_data(e: PrimExpr) -> bool:
    """Whether an expression reads memory, or calls what may."""
    return any(type(item) in (BufferLoad, Call) for item in pre_order(e))


def is_about(e: PrimExpr, domains: Any) -> bool:
    """Whether a condition is on these variables only."""
    return all(item in domains for item in pre_order(e) if isinstance(item, Var))


class Accesses(Visitor):
    """Collects the accesses of `wanted` buffers under a statement.

    `pointers` holds buffers whose data pointer is used in a way that no region describes.
    """

    def __init__(self, wanted: Callable[[Buffer], bool]) -> None:
        self.wanted = wanted
        self.found: dict[Buffer, list[Access]] = {}
        self.pointers: set[Var] = set()
        self.path: list[Stmt] = []
        self.values: dict[Var, PrimExpr] = {}
        self.guards, self.order = 0, 0
        self.inits: tuple[tuple[BlockRealize, list[PrimExpr]], ...] = ()
        self.lets: tuple[Var, ...] = ()
        self.predicates: list[tuple[int, PrimExpr]] = []
        self.data: dict[Var, Buffer] = {}

    def resolve(self, e: PrimExpr) -> PrimExpr:
        """An expression in terms of loop variables."""
        if type(e) is IntImm or not self.values:
            return e
        if isinstance(e, Var):
            return self.values.get(e, e)
        return substitute(e, self.values)

    def _add(self, buffer: Buffer, write: bool, region: tuple) -> None:
        self.order += 1
        self.data[buffer.data] = buffer
        self.found.setdefault(buffer, []).append(Access(buffer, write, region, self))

    def visit_BufferLoad(self, node: BufferLoad) -> None:
        if self.wanted(node.buffer):
            self._add(node.buffer, False, points(node.indices))
        for index in node.indices:
            self.visit(index)

    def visit_BufferStore(self, node: BufferStore) -> None:
        self.visit(node.value)
        for index in node.indices:
            self.visit(index)
        if self.wanted(node.buffer):
            self._add(node.buffer, True, points(node.indices))

    def visit_Call(self, node: Call) -> None:
        if getattr(node.op, "name", "") == "tir.tvm_thread_allreduce":
            self._reduced_by_threads(node)
            return
        for arg in node.args:
            if type(arg) is Buffer:
                self.pointers.add(arg.data)
            elif getattr(node.op, "name", "") in POINTER_CALLS and type(arg) is BufferLoad:
                self.pointers.add(arg.buffer.data)
            else:
                if getattr(node.op, "name", "") == "tir.if_then_else":
                    self.guards += 1
                    self.visit(arg)
                    self.guards -= 1
                else:
                    self.visit(arg)

    def _reduced_by_threads(self, node: Call) -> None:
        """A count, so many values that threads bring, a condition, so many elements that get what
        comes out, and threads."""
        count = op.as_int(node.args[0]) or 0
        for at, arg in enumerate(node.args):
            if at > count + 1 and type(arg) is BufferLoad:
                for index in arg.indices:
                    self.visit(index)
                if self.wanted(arg.buffer):
                    self._add(arg.buffer, True, points(arg.indices))
            else:
                self.visit(arg)

    def visit_Var(self, node: Var) -> None:
        if node.dtype == "handle":
            self.pointers.add(node)

    def visit_For(self, node: For) -> None:
        self.visit(node.min)
        self.visit(node.extent)
        self.path.append(node)
        left = leaves_loop(node.body)  # then a part of it may not run
        self.guards += left
        self.visit(node.body)
        self.guards -= left
        self.path.pop()

    def visit_While(self, node: While) -> None:
        self.visit(node.condition)
        self.guards += 1
        self.visit(node.body)
        self.guards -= 1

    def visit_IfThenElse(self, node: IfThenElse) -> None:
        self.visit(node.condition)
        self.guards += 1
        self.visit(node.then_case)
        if node.else_case is not None:
            self.visit(node.else_case)
        self.guards -= 1

    def visit_DeclBuffer(self, node: DeclBuffer) -> None:
        self.pointers.add(node.buffer.data)  # an alias, whose accesses are not collected here
        self.visit(node.body)

    def visit_LetStmt(self, node: LetStmt) -> None:
        self.visit(node.value)
        before = self.lets
        self.lets = (*before, node.var)
        self.visit(node.body)
        self.lets = before

    def visit_BlockRealize(self, node: BlockRealize) -> None:
        block = node.block
        for value in node.iter_values:
            self.visit(value)
        if type(node.predicate) is not IntImm:
            self.visit(node.predicate)
        for iv, value in zip(block.iter_vars, [self.resolve(v) for v in node.iter_values]):
            self.values[iv.var] = value
        before = len(self.predicates)
        if type(node.predicate) is not IntImm:
            self.predicates.append((len(self.path), self.resolve(node.predicate)))
        self.path.append(node)
        for match in block.match_buffers:
            if self.wanted(match.source.buffer):
                region = tuple((r.min, r.extent) for r in match.source.region)
                self._add(match.source.buffer, False, region)
                self._add(match.source.buffer, True, region)
        if block.init is not None:
            before_init = self.inits
            reduced = [self.values[iv.var] for iv in block.iter_vars
                       if iv.iter_type == IterVar.CommReduce]
            self.inits = (*before_init, (node, reduced))
            self.visit(block.init)
            self.inits = before_init
        self.visit(block.body)
        self.path.pop()
        del self.predicates[before:]


def points(indices: tuple) -> tuple:
    """Indices as (min, extent) pairs; of a ramp the range of its lanes, else undefined."""
    out = []
    for index in indices:
        if "x" in index.dtype:
            base = getattr(index, "base", None)
            stride = getattr(index, "stride", None)
            if base is not None and isinstance(stride, IntImm) and stride.value > 0:
                span = (index.lanes - 1) * stride.value + 1
                out.append((base, IntImm(base.dtype, span)))
                continue
            out.append((Call("int32", "tir.undef", ()), IntImm("int32", 1)))
        else:
            out.append((index, IntImm(index.dtype, 1)))
    return tuple(out)


def hull(accesses: list[Access], depth: int, analyzer: Analyzer) -> list[IntSet]:
    """The box around all that `accesses` touch while the loops from `depth` inwards run."""
    boxes = [a.bounds(depth, analyzer) for a in accesses]
    return [union(list(sets), analyzer) for sets in zip(*boxes)]


def bind_loops(analyzer: Analyzer, path: Iterable[Stmt]) -> None:
    """Tell an analyzer the domains of the loops on a path."""
    for item in path:
        if type(item) is For:
            analyzer.bind(item.loop_var, Range.from_min_extent(item.min, item.extent), True)


__all__ = ["Access", "Accesses", "bind_loops", "conjuncts", "depends_on_data", "hull", "is_about",
           "points"]
