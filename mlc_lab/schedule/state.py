"""The state of a schedule: the program as a tree one can point into and replace parts of.

A `StmtSRef` is a stable reference to a block or a loop. Statements are immutable; replacing one
copies the path from it to the root (so everything else stays the same object), and the references
that pointed along that path are moved to the new statements. A loop keeps its reference as long as
its variable lives on, a block as long as its iterators do, so what a user holds stays valid.

After Feng et al., "TensorIR" (ASPLOS 2023), and TVM's schedule state.
"""

from __future__ import annotations

from enum import IntFlag
from typing import TYPE_CHECKING, Any, Iterator, Mapping

from ..arith import Analyzer
from ..ir.module import GlobalVar, IRModule
from ..tir.expr import Range, Var
from ..tir.function import PrimFunc
from ..tir.stmt import (
    Allocate, AllocateConst, AssertStmt, AttrStmt, Block, BlockRealize, DeclBuffer, For, IfThenElse,
    LetStmt, SeqStmt, Stmt, While, seq,
)
from .dependency import BlockScope, scope_of
from .error import Accepted, Refusal
from .provenance import came_from
from .truth import truthful

if TYPE_CHECKING:
    from .instruction import BlockRV

    _Loops = dict[Var, "StmtSRef"]
    _Blocks = dict[Any, "StmtSRef"]
    #: of every reference its statement and its parent
    Snapshot = Mapping["StmtSRef", tuple[Any, "StmtSRef | None"]]

#: statements that stand between a loop or block and the next one below it
_BODY_ONLY = (LetStmt, AttrStmt, AssertStmt, DeclBuffer, Allocate, AllocateConst, While)


class ScheduleDebugMask(IntFlag):
    """What `Schedule(..., debug_mask=)` has checked after every step.

    Either bit asks for all that `ScheduleState.verify` checks: no property of a block is cached.
    """

    VERIFY_SREF_TREE = 1
    VERIFY_CACHED_FLAGS = 2


class StmtSRef:
    """A stable reference to a Block or For. `stmt` is None once it is gone from the program."""

    __slots__ = ("stmt", "parent", "func", "__weakref__")

    def __init__(self, stmt: Stmt | None, parent: "StmtSRef | None", func: GlobalVar) -> None:
        self.stmt: Any = stmt
        self.parent, self.func = parent, func

    def same_as(self, other: object) -> bool:
        """Whether `other` is this very reference."""
        return self is other

    def __repr__(self) -> str:
        if self.stmt is None:
            return "StmtSRef(gone)"
        name = getattr(self.stmt, "name_hint", None) or self.stmt.loop_var.name
        return f"StmtSRef({type(self.stmt).__name__} {name})"


class ScheduleState:
    """The module under schedule with a reference for every block and loop of it."""

    #: whether it is only asked if a primitive may act; set on a copy that is thrown away
    asking = False

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod.copy()
        self.refs: dict[Stmt, Any] = {}  # StmtSRefs, which callers get as random variables
        self.roots: dict[GlobalVar, StmtSRef] = {}
        self.cache: dict[Any, Any] = {}
        self._inner: dict[Stmt, dict[Any, Any]] = {}
        for var, func in self.mod.functions.items():
            if isinstance(func, PrimFunc) and type(func.body) is BlockRealize:
                true = truthful(func)
                if true.root in self.refs:  # one function under two names
                    true = true.with_body(_renewed(true.body))
                if true is not func:
                    func = self.mod.functions[var] = true
                root = StmtSRef(func.root, None, var)
                self.roots[var] = root
                self.refs[func.root] = root
                self._index(func.root, root, {}, {})

    # ------------------------------------------------------------------ reading

    def get_sref(self, stmt: Stmt) -> StmtSRef | None:
        """The reference of a block or loop of the module; None if it is not in it."""
        return self.refs.get(stmt)

    def root_of(self, sref: StmtSRef) -> StmtSRef:
        """The root block of the function `sref` is in."""
        return self.roots[sref.func]

    def func_of(self, sref: StmtSRef) -> PrimFunc:
        """The function `sref` is in."""
        return self.mod.functions[sref.func]

    def scope_root(self, sref: StmtSRef) -> StmtSRef:
        """The block whose body `sref` is scheduled in: its nearest enclosing block."""
        parent = sref.parent
        while parent is not None and type(parent.stmt) is not Block:
            parent = parent.parent
        if parent is None:
            raise Refusal("has_scope", "the root block has no enclosing block; most primitives act "
                          "on blocks below it", nodes=[sref.stmt],
                          hint="pick one of the blocks under the root: sch.get_child_blocks(root)")
        return parent

    def loops_above(self, sref: StmtSRef) -> list[StmtSRef]:
        """The loops around a block or loop up to its scope root, outermost first."""
        out: list[StmtSRef] = []
        parent = sref.parent
        while parent is not None and type(parent.stmt) is For:
            out.append(parent)
            parent = parent.parent
        out.reverse()
        return out

    def realize_of(self, block: StmtSRef) -> BlockRealize:
        """The BlockRealize that executes a block."""
        found = self.func_of(block).body if block.parent is None else _find_realize(
            block.parent.stmt, block.stmt)
        assert type(found) is BlockRealize, "the reference tree is out of step with the program"
        return found

    def child_blocks(self, sref: StmtSRef) -> list[BlockRV]:
        """The blocks directly below a block or loop, in program order."""
        return [self.refs[r.block] for r in child_realizes(sref.stmt)]

    def scope(self, scope_root: StmtSRef) -> BlockScope:
        """Dependences among the blocks of a scope (computed once per version of it)."""
        return scope_of(scope_root.stmt)

    def facts(self, scope_root: StmtSRef) -> dict[Any, Any]:
        """Where to keep what is found out about this version of a scope, by question.

        Nothing is around the outermost block: what holds of it is remembered with the program, and
        may hold no reference to this state. What is around others changes with every step.
        """
        if scope_root.parent is None:
            return self.scope(scope_root).facts
        return self._inner.setdefault(scope_root.stmt, {})

    def learn(self, other: "ScheduleState") -> None:
        """Keep what a copy of this state found out about the parts of the program that are as here:
        the next one asks it again."""
        for key, value in other.cache.items():
            if getattr(key[1], "block", key[1]) in self.refs:
                self.cache.setdefault(key, value)

    def loop_domains(self, sref: StmtSRef, analyzer: Analyzer | None = None,
                     above_scope: bool = False) -> dict[Var, Range]:
        """Domain of every loop variable around `sref`, in its scope or up to the function."""
        out: dict[Var, Range] = {}
        parent = sref.parent
        chain: list[For] = []
        while parent is not None:
            if type(parent.stmt) is For:
                chain.append(parent.stmt)
            elif not above_scope:
                break
            parent = parent.parent
        for loop in reversed(chain):
            dom = Range.from_min_extent(loop.min, loop.extent)
            out[loop.loop_var] = dom
            if analyzer is not None:
                analyzer.bind(loop.loop_var, dom)
        return out

    def loop_domains_into(self, sref: StmtSRef, analyzer: Analyzer) -> None:
        """Tell `analyzer` the domain of the loop `sref` (if it is one) and of all loops above."""
        chain: list[For] = []
        at: StmtSRef | None = sref
        while at is not None:
            if type(at.stmt) is For:
                chain.append(at.stmt)
            at = at.parent
        for loop in reversed(chain):
            analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))

    def ancestors(self, sref: StmtSRef) -> Iterator[StmtSRef]:
        """`sref`'s parents, nearest first."""
        parent = sref.parent
        while parent is not None:
            yield parent
            parent = parent.parent

    def accepted(self) -> None:
        """A primitive says that all its rules hold and what follows only builds the new program:
        where it is only asked whether it may act, it ends here. Annotations are looked at after
        the program is built."""
        if self.asking and not any(ref.stmt.annotations for ref in self.refs.values()):
            raise Accepted

    # ------------------------------------------------------------------ writing

    def replace(self, src: StmtSRef, new: Stmt,
                block_reuse: Mapping[Block, Block] | None = None) -> None:
        """Put `new` in the place of the statement of `src`.

        A loop may be replaced by a loop, a BlockRealize or a sequence of them; a block by a block.
        `block_reuse` maps old blocks to the new blocks that take over their references; blocks
        that share an iterator variable are matched without being named.
        """
        old = src.stmt
        if new is old:
            return
        removed_loops: dict[Var, StmtSRef] = {}
        removed_blocks: dict[Block, StmtSRef] = {}
        kept = _shared_nodes(new, self.refs)
        self._collect(old, kept, removed_loops, removed_blocks)
        reuse: dict[Block, StmtSRef] = {}
        by_iter: dict[Var, StmtSRef] = {}
        for block, sref in removed_blocks.items():
            if block.iter_vars:
                by_iter[block.iter_vars[0].var] = sref
        for old_block, new_block in (block_reuse or {}).items():
            came_from(new_block, old_block)
            sref = removed_blocks.get(old_block) or self.refs.get(old_block)
            if sref is not None:
                reuse[new_block] = sref
                if old_block.iter_vars:
                    by_iter.pop(old_block.iter_vars[0].var, None)
        parent = src.parent
        self._inner.clear()
        for stmt, sref in list(self._entries(removed_loops, removed_blocks)):
            if self.refs.get(stmt) is sref:
                del self.refs[stmt]
        self._pending = (by_iter, set(removed_loops.values()) | set(removed_blocks.values()))
        alive = self._index_top(new, parent, src, removed_loops, reuse)
        for sref in self._pending[1] - alive:
            sref.stmt = None
            sref.parent = None
        self._rebuild_path(src, parent, old, new)

    @staticmethod
    def _entries(loops: _Loops, blocks: _Blocks) -> Iterator[tuple[Stmt, StmtSRef]]:
        for sref in loops.values():
            yield sref.stmt, sref
        for sref in blocks.values():
            yield sref.stmt, sref

    def _collect(self, stmt: Stmt, kept: set[Stmt], loops: _Loops, blocks: _Blocks) -> None:
        """References of everything under an old statement that is not shared with the new."""
        stack = [stmt]
        while stack:
            item = stack.pop()
            if type(item) is For or type(item) is Block:
                if item in kept:
                    continue
                sref = self.refs.get(item)
                if sref is not None:
                    if type(item) is For:
                        loops[item.loop_var] = sref
                    else:
                        blocks[item] = sref
            stack += sub_statements(item)[::-1]

    def _index_top(self, new: Stmt, parent: StmtSRef | None, src: StmtSRef, loops: _Loops,
                   reuse: _Blocks) -> set[StmtSRef]:
        alive: set[StmtSRef] = set()
        by_iter = self._pending[0]

        def walk(stmt: Stmt, above: StmtSRef | None) -> None:
            kind = type(stmt)
            if kind is For or kind is Block:
                known = self.refs.get(stmt)
                if known is not None and known not in alive:
                    known.parent = above
                    return
                if type(stmt) is For:
                    sref = loops.get(stmt.loop_var)
                else:
                    sref = reuse.get(stmt)
                    if sref is None and type(stmt) is Block and stmt.iter_vars:
                        sref = by_iter.get(stmt.iter_vars[0].var)
                if sref is None or sref in alive:
                    sref = StmtSRef(stmt, above, src.func)
                sref.stmt, sref.parent = stmt, above
                alive.add(sref)
                self.refs[stmt] = sref
                above = sref
            for item in sub_statements(stmt):
                walk(item, above)

        if parent is None and type(new) is Block and new not in reuse:
            reuse[new] = src  # the root block keeps its reference
        walk(new, parent)
        return alive

    def _index(self, stmt: Stmt, above: StmtSRef, loops: _Loops, reuse: _Blocks) -> None:
        """Make references for everything under `stmt`, whose own reference is `above`."""
        for item in sub_statements(stmt):
            if type(item) in (For, Block):
                sref = self.refs.get(item)
                if sref is None or item in self.refs and sref.func is not above.func:
                    sref = StmtSRef(item, above, above.func)
                    self.refs[item] = sref
                self._index(item, sref, loops, reuse)
            else:
                self._index(item, above, loops, reuse)

    def _rebuild_path(self, src: StmtSRef, parent: StmtSRef | None, old: Stmt, new: Stmt) -> None:
        while parent is not None:
            before = parent.stmt
            after = before.replace(body=swap(before.body, old, new))
            self.refs.pop(before, None)
            self.refs[after] = parent
            parent.stmt = after
            old, new = before, after
            parent = parent.parent
        func = self.mod.functions[src.func]
        assert type(new) is Block, "the root of a function stays a block"
        self.mod = self.mod.copy()
        self.mod.functions[src.func] = func.with_body(func.body.replace(block=new))

    def update_func(self, sref: StmtSRef, func: PrimFunc) -> None:
        """Replace the function itself (its signature) around the same body."""
        self.mod = self.mod.copy()
        self.mod.functions[sref.func] = func.with_body(self.mod.functions[sref.func].body)

    # ------------------------------------------------------------------ copies

    def copy(self) -> tuple["ScheduleState", dict[StmtSRef, StmtSRef]]:
        """A state of its own over the same (immutable) program, and old -> new references."""
        new = ScheduleState.__new__(ScheduleState)
        new.mod = self.mod
        new.cache = dict(self.cache)
        new._inner = {}
        table = {sref: StmtSRef(sref.stmt, None, sref.func) for sref in self.refs.values()}
        for old, fresh in table.items():
            if old.parent is not None:
                fresh.parent = table[old.parent]
        new.refs = {stmt: table[sref] for stmt, sref in self.refs.items()}
        new.roots = {var: table[sref] for var, sref in self.roots.items()}
        return new, table

    def restore(self, mod: IRModule, refs: Snapshot) -> None:
        """Go back to a snapshot taken by `snapshot`."""
        self.mod = mod
        self._inner.clear()
        self.refs = {}
        for sref, (stmt, parent) in refs.items():
            sref.stmt, sref.parent = stmt, parent
            self.refs[stmt] = sref

    def snapshot(self) -> tuple[IRModule, Snapshot]:
        """What `restore` needs: the module and where every reference points."""
        return self.mod, {s: (s.stmt, s.parent) for s in self.refs.values()}

    def verify(self) -> None:
        """Check that references and program agree (used by tests and debug_mask)."""
        seen: set[Stmt] = set()

        def walk(stmt: Stmt, above: StmtSRef | None, var: GlobalVar) -> None:
            if type(stmt) in (For, Block):
                sref = self.refs.get(stmt)
                assert sref is not None and sref.stmt is stmt, f"no reference to {stmt!r}"
                assert sref.parent is above, f"wrong parent of {sref!r}: {sref.parent} not {above}"
                assert sref.func is var
                seen.add(stmt)
                above = sref
            for item in sub_statements(stmt):
                walk(item, above, var)

        for var, func in self.mod.functions.items():
            if isinstance(func, PrimFunc) and type(func.body) is BlockRealize:
                walk(func.body, None, var)
        assert seen == set(self.refs), "references to statements that are gone"


def function_named(state: ScheduleState, name: Any) -> GlobalVar:
    """The function of the module that has this name."""
    for var in state.mod.functions:
        if var.name_hint == getattr(name, "name_hint", name):
            return var
    have = ", ".join(v.name_hint for v in state.mod.functions) or "none"
    raise Refusal("function_exists", f"the module has no function {name!r}; it has: {have}")


def sub_statements(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements directly inside a statement.

    A block's init is part of the block, as in TVM: loops and blocks in it cannot be scheduled until
    decompose_reduction makes a block of it.
    """
    s: Any = stmt
    kind = s.__class__
    if kind is For or kind is Block:  # most of a program, asked for at every step
        return (s.body,)
    if kind is BlockRealize:
        return (s.block,)
    if kind is SeqStmt:
        return s.seq
    if kind is IfThenElse:
        return (s.then_case,) if s.else_case is None else (s.then_case, s.else_case)
    return (s.body,) if kind in _BODY_ONLY else ()



def child_realizes(stmt: Stmt) -> list[BlockRealize]:
    """The BlockRealizes below a block or loop, not looking into blocks."""
    out: list[BlockRealize] = []
    stack = [*sub_statements(stmt)[::-1]]
    while stack:
        item = stack.pop()
        if type(item) is BlockRealize:
            out.append(item)
        else:
            stack += sub_statements(item)[::-1]
    return out


def blocks_under(stmt: Stmt) -> list[Block]:
    """A block and all blocks below it, those within blocks as well."""
    out: list[Block] = []
    stack = [stmt]
    while stack:
        item = stack.pop()
        if type(item) is Block:
            out.append(item)
        stack += sub_statements(item)[::-1]
    return out


def _find_realize(stmt: Stmt, block: Block) -> BlockRealize | None:
    for item in sub_statements(stmt):
        if type(item) is BlockRealize:
            if item.block is block:
                return item
        elif type(item) not in (For, Block):
            found = _find_realize(item, block)
            if found is not None:
                return found
    return None


def swap(stmt: Stmt, old: Stmt, new: Stmt) -> Stmt:
    """`stmt` with the loop or block `old` (not below other loops or blocks) replaced."""
    if stmt is old:
        return new
    if type(stmt) is For or type(stmt) is Block:
        return stmt
    if type(stmt) is SeqStmt:
        items = [swap(s, old, new) for s in stmt.seq]
        return stmt if all(a is b for a, b in zip(items, stmt.seq)) else seq(*items)
    if type(stmt) is BlockRealize:
        if stmt.block is not old:
            return stmt
        return new if type(new) is not Block else stmt.replace(block=new)
    if type(stmt) is IfThenElse:
        then = swap(stmt.then_case, old, new)
        other = swap(stmt.else_case, old, new) if stmt.else_case is not None else None
        if then is stmt.then_case and other is stmt.else_case:
            return stmt
        return IfThenElse(stmt.condition, then, other)
    if isinstance(stmt, _BODY_ONLY):
        body = swap(stmt.body, old, new)
        return stmt if body is stmt.body else stmt.replace(body=body)
    return stmt


def _shared_nodes(new: Stmt, refs: Mapping[Stmt, StmtSRef]) -> set[Stmt]:
    """Blocks and loops of the new tree that are referenced already: they are taken over whole."""
    found: set[Stmt] = set()
    stack = [new]
    while stack:
        item = stack.pop()
        if (type(item) is For or type(item) is Block) and item in refs:
            found.add(item)
        else:
            stack += sub_statements(item)
    return found


def _renewed(stmt: Stmt) -> Stmt:
    """The same statement with blocks and loops that are objects of their own."""
    new = stmt.map_children(lambda s: _renewed(s) if isinstance(s, Stmt) else s)
    return stmt.replace() if new is stmt and type(stmt) in (For, Block) else new
