"""Rules of operators that give views: the elements of a tensor, or some of them, in another form.

Beside its rule each has a way back in `WAYS_BACK`, for programs that write to views (see
`aliasing.py`): `(importer, whole, part, *arguments of the operator) -> whole`, the value it is a
view of with `part` in its place. Where there is none, the places of the elements are found by the
rule itself, from a tensor that holds its own places.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ....above import above
from ....tir import op as O
from ... import op
from ...expr import PrimValue, ShapeExpr
from ...op.reshaping import quotient
from ..common import slice_bounds
from .importer import Importer, is_tensor, rule

if TYPE_CHECKING:
    from ...expr import Expr
    from .importer import Size, Sizes, Steps

#: torch's way to say "to the end"
END = 2**63 - 1

#: operator -> its way back; of operators with several results it takes `piece=` too
WAYS_BACK: dict[str, Callable[..., Any]] = {}


def way_back(*names: str) -> Callable[[Callable], Callable]:
    """A decorator: the function is the way back of these operators."""
    def add(fn: Callable) -> Callable:
        for name in names:
            WAYS_BACK[name] = fn
        return fn

    return add


def given_sizes(first: Any, rest: Sequence[Any] = ()) -> list[Any]:
    """Sizes given as one list or one by one."""
    given = list(first) if isinstance(first, (list, tuple)) else [first, *rest]
    return [g.value if isinstance(g, PrimValue) else g for g in given]


def reshaped(im: Importer, x: Expr, sizes: Sequence[Any]) -> Any:
    """The elements in another shape, of which one size may be -1."""
    sizes = list(sizes)
    for k, s in enumerate(sizes):
        if isinstance(s, int) and s == -1:
            sizes[k] = quotient(im.shape(x), [s for n, s in enumerate(sizes) if n != k])
    return im.emit(op.reshape(x, ShapeExpr(sizes)))


# ------------------------------------------------------------------------------- one order


@rule("view", "reshape", "_unsafe_view", "view_copy", "_reshape_copy", "_reshape_alias")
def _reshape(im: Importer, x: Expr, *shape: Size, size: Sizes | None = None) -> Any:
    if len(shape) == 1 and type(shape[0]).__name__ == "dtype":
        raise ValueError("a view as another dtype is not translated: cast with .to(dtype), or "
                         "keep the numbers in the dtype they are used in")
    first = shape[0] if shape else size
    return reshaped(im, x, given_sizes(first, shape[1:]))


@rule("view_as", "reshape_as")
def _view_as(im: Importer, x: Expr, other: Expr) -> Any:
    return reshaped(im, x, im.shape(other))


@rule("flatten")
def _flatten(im: Importer, x: Expr, start_dim: int = 0, end_dim: int = -1) -> Any:
    sizes = im.shape(x)
    if not sizes:
        return reshaped(im, x, [1])
    first, last = (im.axis(d, len(sizes)) for d in (start_dim, end_dim))
    total: Any = 1
    for d in sizes[first:last + 1]:
        total = total * d
    return reshaped(im, x, [*sizes[:first], total, *sizes[last + 1:]])


@rule("ravel")
def _ravel(im: Importer, x: Expr) -> Any:
    return _flatten(im, x)


@rule("unflatten")
def _unflatten(im: Importer, x: Expr, dim: int, sizes: Sequence[Size]) -> Any:
    have = im.shape(x)
    dim = im.axis(dim, len(have))
    parts = list(sizes)
    for k, s in enumerate(parts):
        if isinstance(s, int) and s == -1:
            parts[k] = quotient([have[dim]], [s for n, s in enumerate(parts) if n != k])
    return reshaped(im, x, [*have[:dim], *parts, *have[dim + 1:]])


@rule("unsqueeze", "unsqueeze_copy")
def _unsqueeze(im: Importer, x: Expr, dim: int) -> Any:
    return im.emit(op.expand_dims(x, im.axis(dim, im.ndim(x) + 1)))


@rule("squeeze", "squeeze_copy")
def _squeeze(im: Importer, x: Expr, dim: Steps | None = None) -> Any:
    sizes = im.shape(x)
    if dim is None:
        gone = [k for k, d in enumerate(sizes) if isinstance(d, int) and d == 1]
    else:
        several = dim if isinstance(dim, (list, tuple)) else [dim]
        gone = [im.axis(k, len(sizes)) for k in several] if sizes else []
        gone = [k for k in gone if isinstance(sizes[k], int) and sizes[k] == 1]
    return im.emit(op.squeeze(x, gone)) if gone else x


@way_back("view", "reshape", "_unsafe_view", "_reshape_alias", "view_as", "reshape_as", "flatten",
          "ravel", "unflatten", "unsqueeze", "squeeze", "atleast_1d", "atleast_2d")
def _same_order(im: Importer, whole: Expr, part: Expr, *args: object, **kwargs: object) -> Any:
    return reshaped(im, part, im.shape(whole))


@way_back("detach", "alias", "contiguous", "to", "type", "type_as", "float", "double", "half",
          "long", "int", "bool", "bfloat16", "cpu", "identity", "dropout", "dropout1d",
          "dropout2d", "dropout3d", "alpha_dropout", "feature_dropout", "feature_alpha_dropout",
          "positive", "requires_grad", "lift_fresh", "getattr", "data", "conj", "resolve_conj",
          "resolve_neg", "real", "stochastic_depth")
def _itself(im: Importer, whole: Expr, part: Expr, *args: object, **kwargs: object) -> Any:
    """What gives its argument itself, where it gives a view at all."""
    if im.dtype(whole) != im.dtype(part) or im.ndim(whole) != im.ndim(part):
        raise ValueError("what is written to is a view in another dtype or of a part of a number, "
                         "which is not translated: write to the tensor itself")
    return part


# ------------------------------------------------------------------------------- orders


def _swapped(count: int, dim0: int, dim1: int) -> list[int]:
    order = list(range(count))
    if not count:
        return order
    a, b = Importer.axis(dim0, count), Importer.axis(dim1, count)
    order[a], order[b] = order[b], order[a]
    return order


def _turned(count: int) -> list[int]:
    return _swapped(count, -2, -1) if count > 1 else list(range(count))


def _moved(count: int, source: int | Sequence[int], destination: int | Sequence[int]) -> list[int]:
    first, last = ([Importer.axis(d, count) for d in (v if isinstance(v, (list, tuple)) else [v])]
                   for v in (source, destination))
    order: list[Any] = [None] * count
    for a, b in zip(first, last):
        order[b] = a
    rest = (d for d in range(count) if d not in first)
    return [next(rest) if d is None else d for d in order]


def _named(count: int, *order: Any, dims: Any = None) -> list[int]:
    given = given_sizes(order[0] if order else dims, order[1:])
    return [Importer.axis(d, count) for d in given]


#: operator -> the order it puts dimensions in, by their number and its arguments
ORDERS: dict[tuple[str, ...], Callable[..., list[int]]] = {
    ("permute", "permute_copy"): _named,
    ("transpose", "swapaxes", "swapdims", "transpose_copy"): _swapped,
    ("movedim", "moveaxis"): _moved,
    ("t", "t_copy", "mT", "mH", "matrix_H", "adjoint"): _turned,
    ("T", "numpy_T", "H"): lambda count: list(range(count))[::-1],
}


def _order_rules(names: tuple[str, ...], order: Callable[..., list[int]]) -> None:
    def translate(im: Importer, x: Expr, *args: object, **kwargs: object) -> Any:
        found = order(im.ndim(x), *args, **kwargs)
        return x if found == list(range(len(found))) else im.emit(op.permute_dims(x, found))

    kind = inspect.Parameter
    own = list(inspect.signature(order).parameters.values())[1:]
    translate.__signature__ = inspect.Signature([
        kind("im", kind.POSITIONAL_OR_KEYWORD), kind("x", kind.POSITIONAL_OR_KEYWORD), *own])
    rule(*names)(translate)

    @way_back(*names)
    def back(im: Importer, whole: Expr, part: Expr, *args: object, **kwargs: object) -> Any:
        found = order(im.ndim(whole), *args, **kwargs)
        inverse = [found.index(k) for k in range(len(found))]
        return part if inverse == sorted(inverse) else im.emit(op.permute_dims(part, inverse))


for _names, _order in ORDERS.items():
    _order_rules(_names, _order)


# ------------------------------------------------------------------------------- parts


@rule("select", "select_copy")
def _select(im: Importer, x: Expr, dim: int, index: Size) -> Any:
    dim = im.axis(dim, im.ndim(x))
    size = im.shape(x)[dim]
    if is_tensor(index):
        return above("take of torch")(im, x, index, dim)
    begin = from_end(index, size)
    if isinstance(begin, int) and isinstance(size, int) and not 0 <= begin < size:
        raise IndexError(f"the index {index} is outside of a dimension of {size}")
    if not isinstance(size, int):
        im.need_size(size, begin + 1 if not isinstance(index, int) or index >= 0 else -index)
    part = im.emit(op.strided_slice(x, [dim], [begin], [begin + 1], assume_inbound=True))
    return im.emit(op.squeeze(part, [dim]))


@way_back("select")
def _select_back(im: Importer, whole: Expr, part: Expr, dim: int, index: Size) -> Any:
    dim = im.axis(dim, im.ndim(whole))
    if is_tensor(index):
        raise ValueError("a write to a part whose place is in a tensor is not translated: use "
                         "index_put or torch.where")
    begin = from_end(index, im.shape(whole)[dim])
    return im.emit(op.slice_scatter(whole, im.emit(op.expand_dims(part, dim)), begin, begin + 1, 1,
                                    dim))


def from_end(index: Size, size: Size) -> Any:
    """An index that may count from the end, from the front."""
    return size + index if isinstance(index, int) and index < 0 else index


def bounds(im: Importer, x: Expr, dim: int, start: Size | None, end: Size | None, step: Size
           ) -> tuple[Any, ...]:
    """The first place and the one behind the last of a slice, both inside of the dimension, and
    whether the slice is the whole dimension."""
    size = im.shape(x)[dim]
    if isinstance(end, int) and end >= END // 2:
        end = None
    start, end = slice_bounds(0 if start is None else start, end, size, im.ranges)
    whole = im.same_size(start, 0) and im.same_size(end, size) and step == 1
    return start, end, whole


@rule("slice", "slice_copy")
def _slice(im: Importer, x: Expr, dim: int = 0, start: Size | None = None, end: Size | None = None,
           step: Size = 1) -> Any:
    dim = im.axis(dim, im.ndim(x))
    if isinstance(step, int) and step < 1:
        raise ValueError(f"a slice takes every step-th element, step is {step}: use flip for the "
                         "other direction")
    low, high, whole = bounds(im, x, dim, start, end, step)
    if whole:
        return x
    return im.emit(op.strided_slice(x, [dim], [low], [high], [step], assume_inbound=True))


@way_back("slice")
def _slice_back(im: Importer, whole: Expr, part: Expr, dim: int = 0, start: Size | None = None,
                end: Size | None = None, step: Size = 1) -> Any:
    dim = im.axis(dim, im.ndim(whole))
    low, high, everything = bounds(im, whole, dim, start, end, step)
    if everything:
        return part
    return im.emit(op.slice_scatter(whole, part, low, high, step, dim))


@rule("narrow", "narrow_copy")
def _narrow(im: Importer, x: Expr, dim: int, start: Size, length: Size) -> Any:
    first, last = _narrowed(im, x, dim, start, length)
    return _slice(im, x, dim, first, last)


@way_back("narrow")
def _narrow_back(im: Importer, whole: Expr, part: Expr, dim: int, start: Size, length: Size) -> Any:
    first, last = _narrowed(im, whole, dim, start, length)
    return _slice_back(im, whole, part, dim, first, last)


def _narrowed(im: Importer, x: Expr, dim: int, start: Size, length: Size) -> tuple[Any, Any]:
    if is_tensor(start):
        raise ValueError("narrow from a place that is in a tensor is not translated: give a number")
    size = im.shape(x)[dim]
    first = from_end(start, size)
    if not isinstance(size, int):
        im.need_size(size, first + length)
    elif isinstance(first, int) and isinstance(length, int) and not (
            0 <= first <= first + length <= size):
        raise ValueError(f"narrow takes {length} element(s) from place {start} of a dimension of "
                         f"{size}")
    return first, first + length


# ------------------------------------------------------------------------------- pieces


def _cuts(im: Importer, x: Expr, split_size: Any, dim: int) -> list[Any]:
    """Where the pieces of a split begin, but the first."""
    size = im.shape(x)[dim]
    if isinstance(split_size, (list, tuple)):
        if all(isinstance(s, int) for s in (size, *split_size)) and (
                min(split_size, default=0) < 0 or sum(split_size) != size):
            raise ValueError(f"parts of {list(split_size)} of a dimension of {size}: they must "
                             "fill it")
        cuts, total = [], 0
        for s in split_size[:-1]:
            total = total + s
            cuts.append(total)
        if split_size and not isinstance(size, int):
            im.need_size(size, total + split_size[-1])
        return cuts
    if isinstance(size, int) and isinstance(split_size, int):
        if split_size < 0 or split_size == 0 and size > 0:
            raise ValueError(f"parts of {split_size} of a dimension of {size}: the size of a part "
                             "must be positive")
        if split_size == 0:
            return []
        return list(range(split_size, size, split_size))
    parts = im.fake(im.node) if im.node is not None else None
    if isinstance(parts, (list, tuple)):  # torch counts on this many
        cuts = [split_size * k for k in range(1, len(parts))]
        if cuts:
            im.need_size(size, cuts[-1])
        return cuts
    raise ValueError(f"a dimension of size {size} in parts of {split_size}: how many there are is "
                     "not known. Give the sizes of the parts, or chunk(x, number)")


def _cut(im: Importer, x: Expr, cuts: list[Any], dim: int) -> tuple[Any, ...]:
    if not cuts:
        return (x,)
    parts = im.emit(op.split(x, cuts, dim))
    return tuple(im.emit(parts[k]) for k in range(len(cuts) + 1))


@rule("split", "split_with_sizes", "split_copy", "split_with_sizes_copy")
def _split(im: Importer, x: Expr, split_size: Sizes, dim: int = 0) -> tuple[Any, ...]:
    dim = im.axis(dim, im.ndim(x))
    return _cut(im, x, _cuts(im, x, split_size, dim), dim)


@rule("chunk")
def _chunk(im: Importer, x: Expr, chunks: int, dim: int = 0) -> Any:
    dim = im.axis(dim, im.ndim(x))
    size = im.shape(x)[dim]
    if chunks < 1:
        raise ValueError(f"chunk into {chunks} parts: there must be 1 at the least")
    if not isinstance(size, int):
        parts = im.emit(op.split(x, chunks, dim))
        return tuple(im.emit(parts[k]) for k in range(chunks))
    return _split(im, x, max(-(-size // chunks), 1), dim)


@rule("tensor_split")
def _tensor_split(im: Importer, x: Expr, sections: Any, dim: int = 0) -> Any:
    dim = im.axis(dim, im.ndim(x))
    size = im.shape(x)[dim]
    if is_tensor(sections):
        raise ValueError("tensor_split at places that are in a tensor is not translated: give "
                         "numbers")
    if isinstance(sections, (list, tuple)):
        ends = [bounds(im, x, dim, 0, s, 1)[1] for s in sections]
        begins = [0, *ends]
        return tuple(_slice(im, x, dim, a, b) for a, b in zip(begins, [*ends, size]))
    if isinstance(sections, int) and sections < 1:
        raise ValueError(f"tensor_split into {sections} parts: there must be 1 at the least")
    if not isinstance(size, int):  # the first n % sections of them are larger by 1
        each, more = size // sections, size % sections
        ends = [k * each + O.min_value_of(more, k) for k in range(sections)]
        return tuple(_slice(im, x, dim, a, b) for a, b in zip(ends, [*ends[1:], size]))
    each, more = divmod(size, sections)
    cuts = [k * each + min(k, more) for k in range(1, sections)]
    return _cut(im, x, cuts, dim)


def _along(name: str, dim_of: Callable[[int], int]) -> None:
    """hsplit, vsplit, dsplit: tensor_split along a dimension of their own."""
    @rule(name)
    def translate(im: Importer, x: Expr, sections: Any) -> Any:
        return _tensor_split(im, x, sections, dim_of(im.ndim(x)))

    @way_back(name)
    def back(im: Importer, whole: Expr, part: Expr, sections: Any, *, piece: int) -> Any:
        return _pieces_back(im, whole, part, sections, dim_of(im.ndim(whole)), piece=piece,
                            split=_tensor_split)


_along("hsplit", lambda count: 0 if count == 1 else 1)
_along("vsplit", lambda count: 0)
_along("dsplit", lambda count: 2)


def _pieces_back(im: Importer, whole: Expr, part: Any, *args: Any, piece: int,
                 split: Callable[..., Any], dim: int | None = None) -> Any:
    """All pieces joined again, one of them another."""
    kwargs = {} if dim is None else {"dim": dim}
    pieces = list(split(im, whole, *args, **kwargs))
    pieces[piece] = part
    along = dim if dim is not None else args[1] if len(args) > 1 else 0
    return im.emit(op.concat(pieces, along)) if len(pieces) > 1 else part


for _name, _rule in (("split", _split), ("split_with_sizes", _split), ("chunk", _chunk),
                     ("tensor_split", _tensor_split)):
    way_back(_name)(lambda im, whole, part, *args, piece, _rule=_rule, **kwargs: _pieces_back(
        im, whole, part, *args, piece=piece, split=_rule, **kwargs))


@rule("unbind", "unbind_copy")
def _unbind(im: Importer, x: Expr, dim: int = 0) -> Any:
    size = im.shape(x)[dim]
    if not isinstance(size, int):
        raise ValueError(f"unbind of a dimension of size {size}: the number of results must be "
                         "known")
    return tuple(_select(im, x, dim, k) for k in range(size))


@way_back("unbind")
def _unbind_back(im: Importer, whole: Expr, part: Expr, dim: int = 0, *, piece: int) -> Any:
    return _select_back(im, whole, part, dim, piece)


__all__ = ["END", "ORDERS", "WAYS_BACK", "bounds", "from_end", "given_sizes", "reshaped",
           "way_back"]
