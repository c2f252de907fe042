"""decompose_padding: a block that pads becomes one that fills and one that copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...arith import Analyzer, detect_linear_equation
from ...arith.access import conjuncts
from ...tir import op
from ...tir.expr import (
    GE, GT, LE, LT, And, Call, FloatImm, IntImm, IterVar, PrimExpr, Range, Select, Var,
)
from ...tir.functor import free_vars, substitute
from ...tir.stmt import Block, BlockRealize, BufferStore, For, ForKind, Stmt, seq
from ..chain import SubstituteAccesses
from ..error import Refusal
from ..footprint import reads_memory
from ..guards import complete_block, is_block, is_loop
from ..independence import why_labels_are_false
from ..instruction import primitive
from ..provenance import came_from, renewed
from ..rewrite import copied_loop, fresh_vars
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..instruction import BlockRV


@primitive("DecomposePadding", moves=True)
def decompose_padding(state: ScheduleState, block: StmtSRef, loop: StmtSRef) -> BlockRV:
    """Split a block that stores a value or, outside of a box, a constant: first fill, then copy.

    The block `<block>_pad_const`, which is returned, stores the constant everywhere, right before
    `loop`. The block itself then runs over the box only, without a condition.

    Before::

        # A: (128,)
        for i in range(140):
            with T.block("B"):
                vi = T.axis.spatial(140, i)
                B[vi] = T.if_then_else(vi >= 6 and vi < 134, A[vi - 6], T.float32(0.0))

    After `sch.decompose_padding(B, i)`::

        for i in range(140):
            with T.block("B_pad_const"):
                vi = T.axis.spatial(140, i)
                B[vi] = T.float32(0.0)
        for i in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                B[vi + 6] = A[vi]

    Errors: the block is complete; its body is one store of `if_then_else(condition, value,
    constant)`, the condition bounds on single iterators that do not always hold; `loop` is around
    the block; different iterations store different elements. Where `loop` holds other blocks too,
    all is filled before it, and none of them reads the result before it is computed.
    """
    is_block(block)
    is_loop(loop)
    stmt: Block = block.stmt
    complete_block(state, block, state.scope_root(block))
    loops = state.loops_above(block)
    if loop not in loops:
        raise Refusal("loop_is_around_block", f"loop {loop.stmt.loop_var.name} is not around block "
                      f"{stmt.name_hint}", nodes=[loop.stmt, stmt],
                      hint="use one of sch.get_loops(block)")
    if why_labels_are_false(state, block) in ("spatial", "other"):
        raise Refusal("spatial_iterators_are_spatial", f"block {stmt.name_hint} stores the same "
                      "element at different values of its iterators: what is stored last could be "
                      "the constant, and would be the value", nodes=[stmt],
                      hint="store each element once, as B[vi, vj] does")
    inner = [s.stmt for s in loops[loops.index(loop):]]
    realize = state.realize_of(block)
    around = {s.stmt.loop_var: s.stmt.min for s in loops[:loops.index(loop)]
              if op.is_const_int(s.stmt.extent, 1)}
    alone = _alone(realize, inner)
    if len(alone) < len(inner):
        _may_be_filled_before(state, block, loop, inner, alone)
    store, condition, value, constant = _pattern(stmt)
    if around:  # a loop with one iteration, which both nests share, is its value
        realize = realize.replace(
            predicate=substitute(realize.predicate, around),
            iter_values=tuple(substitute(v, around) for v in realize.iter_values))
    bounds = _bounds(stmt, condition)
    _pads_something(stmt, bounds)
    fill, filler = _filling_nest(stmt, realize, store, constant, inner)
    nest, made = _copying_nest(stmt, realize, store, value, bounds, alone)
    if len(alone) == len(inner):
        state.replace(loop, seq(fill, nest), {stmt: made})
    else:
        state.replace(state.refs[alone[0]], nest, {stmt: made})
        state.replace(loop, seq(fill, loop.stmt))
    return state.refs[filler]


def _alone(realize: BlockRealize, loops: list[For]) -> list[For]:
    """Those of the loops around a block that hold nothing else."""
    at: Any = realize
    alone: list[For] = []
    for item in reversed(loops):
        if item.body is not at:
            break
        alone.insert(0, item)
        at = item
    return alone


def _may_be_filled_before(state: ScheduleState, block: StmtSRef, loop: StmtSRef,
                          loops: list[For], alone: list[For]) -> None:
    """Around other statements, all is filled before the first iteration. An element is always
    stored by the same values of the iterators, and so is padding in all iterations or in none; but
    nobody may have read it before it was stored."""
    stmt: Block = block.stmt
    graph = state.scope(state.scope_root(block))
    site = graph.site(stmt)
    depth = site.loops.index(loop.stmt)
    outside = loops[:len(loops) - len(alone)]
    unclear = [w for n, w in site.wrappers if n > depth]
    unclear += [lp for lp in outside if lp.kind is ForKind.THREAD_BINDING]
    unclear += [lp for lp in loops if reads_memory(lp.extent) or reads_memory(lp.min)]
    if any(reads_memory(e) for e in (site.node.predicate, *site.node.iter_values)):
        unclear.append(site.node)
    if not alone or unclear:
        raise Refusal("one_block_under_loop", f"loop {outside[-1].loop_var.name} holds more than "
                      f"block {stmt.name_hint}, and which elements to fill before it is not known "
                      "there", nodes=unclear[:1] or [outside[-1]])
    for other in graph.sites:
        if other.index < site.index and loop.stmt in other.loops and (
                not other.reads.isdisjoint(site.writes)):
            raise Refusal("readers_follow", f"{other.name} reads what block {stmt.name_hint} "
                          f"stores, and comes before it in loop {loop.stmt.loop_var.name}: filled "
                          "before that loop, it would read the constant", nodes=[other.node],
                          hint="use an inner loop, which holds nothing else")


def _pattern(stmt: Block) -> tuple[BufferStore, PrimExpr, PrimExpr, PrimExpr]:
    store = stmt.body
    if type(store) is BufferStore and stmt.init is None:
        value: Any = store.value
        parts: tuple[Any, ...] = ()
        if type(value) is Call and getattr(value.op, "name", "") == "tir.if_then_else":
            parts = value.args
        elif type(value) is Select:
            parts = (value.condition, value.true_value, value.false_value)
        if len(parts) == 3 and isinstance(parts[2], (IntImm, FloatImm)):
            condition, inside, outside = parts
            return store, condition, inside, outside
    raise Refusal("padding_pattern", f"block {stmt.name_hint} does not pad: its body is not one "
                  "store of T.if_then_else(condition, value, constant)", nodes=[stmt])


def _is_likely(e: PrimExpr) -> bool:
    return type(e) is Call and getattr(e.op, "name", "") == "tir.likely"


def _bounds(stmt: Block, condition: PrimExpr) -> dict[Var, tuple[int, int]]:
    """The box in which the condition holds: [low, high) of each iterator."""
    box: dict[Var, tuple[int, int]] = {}
    for iv in stmt.iter_vars:
        low, extent = op.as_int(iv.dom.min), op.as_int(iv.dom.extent)
        if low is not None and extent is not None:
            box[iv.var] = (low, low + extent)
    parts = [condition]
    while parts:
        part: Any = parts.pop()
        if type(part) is And:
            parts += [part.a, part.b]
            continue
        if _is_likely(part):
            parts.append(part.args[0])
            continue
        if isinstance(part, (GE, GT)):
            part = (LE if type(part) is GE else LT)(part.b, part.a)
        # a <= b is b - a >= 0; a < b is b - a - 1 >= 0
        strict = type(part) is LT
        used = [v for v in free_vars(part) if v in box] if type(part) in (LT, LE) else []
        found = detect_linear_equation(op.sub(part.b, part.a), used) if len(used) == 1 else []
        numbers = [op.as_int(Analyzer().simplify(c)) for c in found]
        factor, rest = numbers if len(numbers) == 2 else (None, None)
        if factor is None or rest is None or abs(factor) != 1:
            raise Refusal("condition_is_a_box", f"{part!r} is not a bound on one iterator: where "
                          "the value is stored is not a box", nodes=[stmt],
                          hint="write the condition as T.And of bounds such as 6 <= vi, vi < 134")
        rest -= strict
        low, high = box[used[0]]
        box[used[0]] = (max(low, -rest), high) if factor == 1 else (low, min(high, rest + 1))
    for iv in stmt.iter_vars:
        if iv.var in box and box[iv.var][0] >= box[iv.var][1]:
            raise Refusal("condition_is_a_box", f"the condition never holds for {iv.var.name}",
                          nodes=[stmt])
    return box


def _pads_something(stmt: Block, bounds: dict[Var, tuple[int, int]]) -> None:
    if all(bounds.get(iv.var) == (low, low + extent) for iv in stmt.iter_vars
           if (low := op.as_int(iv.dom.min)) is not None
           and (extent := op.as_int(iv.dom.extent)) is not None):
        raise Refusal("padding_pattern", f"block {stmt.name_hint} does not pad: its condition "
                      "holds everywhere, so the constant would be stored in vain", nodes=[stmt])


def _filling_nest(stmt: Block, realize: BlockRealize, store: BufferStore, constant: PrimExpr,
                  inner: list[For]) -> tuple[Stmt, Block]:
    table: dict[Var, PrimExpr] = {}
    fresh = {lp.loop_var: renewed(lp.loop_var) for lp in inner}
    iters = [substitute(iv, fresh) for iv in fresh_vars(stmt.iter_vars, table)]
    made = Block(iters, [], [substitute(w, table) for w in stmt.writes],
                 stmt.name_hint + "_pad_const",
                 BufferStore(store.buffer, constant, [substitute(i, table) for i in store.indices]))
    came_from(made, stmt)
    nest: Stmt = BlockRealize([substitute(v, fresh) for v in realize.iter_values],
                              substitute(realize.predicate, fresh), made)
    for loop in reversed(inner):
        nest = copied_loop(loop, fresh, nest)
    return nest, made


def _copying_nest(stmt: Block, realize: BlockRealize, store: BufferStore, value: PrimExpr,
                  bounds: dict[Var, tuple[int, int]], inner: list[For]) -> tuple[Stmt, Block]:
    analyzer = Analyzer()
    loops = {lp.loop_var: lp for lp in inner}
    table: dict[Var, PrimExpr] = {}
    iters: list[IterVar] = []
    values: list[PrimExpr] = []
    inside: list[PrimExpr] = []
    used: set[Var] = set()
    # loops that keep their extents: others' bounds name them, or all nests of a kernel share them
    kept = {v for lp in inner for e in (lp.min, lp.extent) for v in free_vars(e)}
    kept |= {lp.loop_var for lp in inner if lp.kind is ForKind.THREAD_BINDING}
    for iv, bound in zip(stmt.iter_vars, realize.iter_values):
        start, end = op.as_int(iv.dom.min) or 0, op.as_int(iv.dom.extent) or 0
        low, high = bounds.get(iv.var, (start, start + end))
        var = renewed(iv.var)
        if (low, high) == (start, start + end):
            table[iv.var] = var
            iters.append(iv.replace(var=var))
            values.append(bound)
            continue
        dtype = iv.var.dtype
        extent = IntImm(dtype, high - low)
        iters.append(IterVar(Range.from_min_extent(IntImm(dtype, 0), extent), var, iv.iter_type))
        table[iv.var] = op.add(var, IntImm(dtype, low))
        loop = loops.get(bound) if isinstance(bound, Var) else None
        if loop is not None and bound not in used and sum(
            bound in free_vars(v) for v in realize.iter_values) == 1 and bound not in free_vars(
            realize.predicate) and op.is_const_int(loop.min, 0) and op.as_int(
            loop.extent) == start + end and start == 0 and bound not in kept:
            used.add(loop.loop_var)
            loops[loop.loop_var] = loop.replace(extent=extent)
            values.append(bound)
            continue
        values.append(analyzer.simplify(op.sub(bound, IntImm(dtype, low))))
        if low > start:
            inside.append(analyzer.rewrite_simplify(op.less_equal(IntImm(dtype, low), bound)))
        if high < start + end:
            inside.append(analyzer.rewrite_simplify(op.less(bound, IntImm(dtype, high))))
    to = SubstituteAccesses(table, iters)
    made = stmt.replace(iter_vars=tuple(iters), reads=tuple(to.visit(r) for r in stmt.reads),
                        writes=tuple(to.visit(w) for w in stmt.writes),
                        body=to.visit(BufferStore(store.buffer, value, store.indices)))
    predicate: PrimExpr = op.const(True)
    for part in (*inside, *conjuncts(realize.predicate)):
        predicate = op.logical_and(predicate, part)
    nest: Stmt = BlockRealize(values, predicate, made)
    for loop in reversed(inner):
        nest = loops[loop.loop_var].replace(body=nest)
    return nest, made
