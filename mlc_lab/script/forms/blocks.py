"""Forms about blocks: T.block, T.init, the axes, T.where, T.reads, T.writes, T.block_attr."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ...ir import dtype as dt
from ...tir import expr as E
from ...tir import op as O
from ...tir import stmt as S
from ...tir.buffer import Buffer
from .. import tir as T
from ..regions import extent_between
from ..values import Pending
from .table import form

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ...tir.expr import ExprLike, Range
    from ..parser import Parser


class BlockScope:
    """What `with T.block(name)` opens."""

    def __init__(self, name: str, realize: bool) -> None:
        self.name, self.realize = name, realize


class InitScope:
    """What `with T.init()` opens."""


def need_block(parser: Parser, word: str) -> Any:
    """The block being parsed. Raises ValueError outside of blocks."""
    if not parser.blocks:
        raise ValueError(f"T.{word} must be inside a block (with T.block(...):)")
    return parser.blocks[-1]


def _once(given: object, word: str) -> None:
    """ValueError where a block has been told by a word before."""
    if given:
        raise ValueError(f"the block has a T.{word}(...) already: put all into one")


@form("block")
def block_form(parser: Parser, name: str = "", no_realize: bool = False) -> BlockScope:
    """with T.block("C"): ..."""
    return BlockScope(name, not no_realize)


@form("init")
def init_form(parser: Parser) -> InitScope:
    """with T.init(): ..."""
    return InitScope()


def _domain(dom: Range | Sequence[ExprLike] | ExprLike) -> E.Range:
    """The domain of a block iterator: an extent, or (begin, end)."""
    if isinstance(dom, E.Range):
        return dom
    if isinstance(dom, (tuple, list)):
        if len(dom) != 2:
            raise TypeError("the domain of an axis is an extent or (begin, end)")
        low, high = (E.const_index(T.as_expr(d)) for d in dom)
        if low.dtype != high.dtype:
            low, high = O.match_types(low, high)
        return E.Range.from_min_extent(low, extent_between(low, high))
    extent = E.const_index(T.as_expr(dom))
    return E.Range.from_min_extent(E.IntImm(extent.dtype, 0), extent)


def _add_axis(parser: Parser, dom: E.Range, value: ExprLike, kind: int) -> Pending:
    block = need_block(parser, "axis")
    dtype = dom.extent.dtype
    if isinstance(value, int) and not isinstance(value, bool):
        value = E.IntImm(dtype, value)
    value = E.const_index(T.as_expr(value))
    slot = len(block.iter_vars)
    block.iter_vars.append(None)
    block.iter_values.append(value)

    def finish(name: str) -> E.Var:
        var = E.Var(name, dtype)
        parser.budget.bind(var, value)
        block.iter_vars[slot] = E.IterVar(dom, var, kind)
        return var

    return Pending(finish)


def _axis(word: str, kind: int) -> Callable:
    @form(f"axis.{word}")
    def axis(parser: Parser, dom: Range | Sequence[ExprLike] | ExprLike,
             value: ExprLike | None = None, dtype: str = "int32") -> Pending:
        if value is None:
            raise TypeError(f"T.axis.{word} takes the domain and the value it is bound to, for "
                            f"example T.axis.{word}(128, i)")
        return _add_axis(parser, _domain(dom), value, kind)

    return axis


for _word, _kind in (("spatial", 0), ("reduce", 2), ("scan", 3), ("opaque", 4)):
    _axis(_word, _kind)


@form("axis.remap")
def remap(parser: Parser, kinds: str, bindings: Any, dtype: str = "int32") -> Any:
    """Several axes at once, each over the domain of its loop."""
    bindings = bindings if isinstance(bindings, (list, tuple)) else [bindings]
    if not isinstance(kinds, str) or len(kinds) != len(bindings):
        raise ValueError(f"T.axis.remap got {len(kinds)} kind(s) and {len(bindings)} loop(s): "
                         "one letter for each loop")
    out = []
    for letter, value in zip(kinds, bindings):
        if letter not in "SR":
            raise ValueError(f"T.axis.remap knows the kinds S and R, not {letter!r}")
        dom = parser.loops.get(value) if isinstance(value, E.Var) else None
        if dom is None:
            raise ValueError(f"T.axis.remap binds axes to loop variables, {value!r} is none",)
        out.append(_add_axis(parser, dom, value, 0 if letter == "S" else 2))
    return out[0] if len(out) == 1 else out


@form("where")
def where(parser: Parser, predicate: ExprLike) -> None:
    """The block only runs where the condition holds."""
    block = need_block(parser, "where")
    _once(block.predicate is not None, "where")
    predicate = O.convert(T.as_expr(predicate))
    if not dt.is_bool(predicate.dtype):
        raise TypeError(f"T.where takes a condition, got a value of type {predicate.dtype}")
    block.predicate = predicate


def as_region(value: object) -> S.BufferRegion:
    """A region given as A, A[i, j] or A[0:4, j]. Raises TypeError for anything else."""
    if isinstance(value, S.BufferRegion):
        return value
    if isinstance(value, Buffer):
        return S.BufferRegion.full_region(value)
    if isinstance(value, E.BufferLoad):
        ranges = []
        for index in value.indices:
            if type(index) is E.Ramp:
                ranges.append(E.Range.from_min_extent(
                    index.base, E.IntImm(index.base.dtype, index.lanes)))
            else:
                ranges.append(E.Range.from_min_extent(index, E.IntImm(index.dtype, 1)))
        return S.BufferRegion(value.buffer, tuple(ranges))
    raise TypeError("expected a region of a buffer such as A[0:16, i]")


def _regions(items: tuple) -> list[S.BufferRegion]:
    out: list[S.BufferRegion] = []
    for item in items:
        if isinstance(item, (list, tuple)):
            out += _regions(tuple(item))
        else:
            out.append(as_region(item))
    return out


@form("reads")
def reads(parser: Parser, *regions: object) -> None:
    """What the block reads."""
    block = need_block(parser, "reads")
    _once(block.reads is not None, "reads")
    block.reads = _regions(regions)


@form("writes")
def writes(parser: Parser, *regions: object) -> None:
    """What the block writes."""
    block = need_block(parser, "writes")
    _once(block.writes is not None, "writes")
    block.writes = _regions(regions)


@form("block_attr")
def block_attr(parser: Parser, attrs: dict) -> None:
    """Annotations of the block."""
    block = need_block(parser, "block_attr")
    _once(block.annotated, "block_attr")
    block.annotated = True
    block.annotations.update({k: S.annotation_value(v) for k, v in attrs.items()})


__all__ = ["BlockScope", "InitScope", "as_region", "need_block"]
