"""The functions of intrinsics whose result type their rows leave open: `tvm_access_ptr`, `ptx_mma`.

The type of such a call is written (first or last among the arguments), that of an argument, or
always the same. The tables in `intrinsic.py` say which; TVMScript writes and reads calls by them,
too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ...ir import dtype as dt
from ..expr import BufferLoad, Call, PrimExpr
from .conversion import convert
from .intrinsic import DTYPE_FIRST, DTYPE_LAST, GIVEN_DTYPES, INTRINSICS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..buffer import Buffer
    from ..expr import ExprLike


def call_given(op: str, values: Sequence[Any], dtype: str | None = None,
               annotations: Mapping[str, Any] | None = None) -> Call:
    """A call of an intrinsic of "given" type. TypeError where an argument is missing that has it.

    `dtype` is the result type where it was written; it may stand among the values as a str.
    """
    values, short = list(values), op.rpartition(".")[2]
    if dtype is None and op in DTYPE_FIRST | DTYPE_LAST:
        if not values:
            where = "first" if op in DTYPE_FIRST else "last"
            raise TypeError(f"{short} takes a dtype as its {where} argument")
        dtype = dt.canonical(str(values.pop(0 if op in DTYPE_FIRST else -1)))
    if dtype is None:
        rule = GIVEN_DTYPES.get(op, "int32")
        if isinstance(rule, int):
            if len(values) <= rule:
                raise TypeError(f"{short} takes at least {rule + 1} argument(s), got {len(values)}")
            dtype = values[rule].dtype
        else:
            dtype = rule
    return Call(str(dtype), op, tuple(values), annotations)


def address_of(buffer_load: PrimExpr | Buffer, span: object = None) -> PrimExpr:
    """The pointer to an element, or to the first one of a buffer."""
    if not isinstance(buffer_load, PrimExpr):
        buffer_load = BufferLoad(buffer_load, [0] * len(buffer_load.shape))
    return Call("handle", "tir.address_of", (buffer_load,))


def type_annotation(dtype: str) -> PrimExpr:
    """A dtype as an argument of an intrinsic."""
    return Call(dt.canonical(dtype), "tir.type_annotation", ())


def tvm_access_ptr(ptype: str | PrimExpr, data: PrimExpr, offset: ExprLike, extent: ExprLike,
                   rw_mask: ExprLike) -> PrimExpr:
    """The pointer to a part of a buffer, of elements of type `ptype`."""
    kind = type_annotation(ptype) if isinstance(ptype, str) else ptype
    return call_given("tir.tvm_access_ptr", [kind, *map(convert, (data, offset, extent, rw_mask))])


def dp4a(vec1: PrimExpr, vec2: PrimExpr, acc: ExprLike = 0) -> PrimExpr:
    """The dot product of two vectors of four int8, added to `acc`."""
    return call_given("tir.dp4a", [vec1, vec2, convert(acc)])


def _function(name: str, arity: int | None, doc: str) -> Callable[..., PrimExpr]:
    """The function that builds calls of an intrinsic."""
    op = f"tir.{name}"
    typed = op in DTYPE_FIRST | DTYPE_LAST

    def build(*args: ExprLike | str, dtype: str | None = None, span: object = None) -> PrimExpr:
        values: list[Any] = list(args)
        if typed and dtype is None and values:
            dtype = str(values.pop(0 if op in DTYPE_FIRST else -1))
        if arity is not None and len(values) != arity:
            raise TypeError(f"{name} takes {arity} argument(s){' after the dtype' * typed}, "
                            f"got {len(values)}")
        return call_given(op, [convert(v) for v in values],
                          None if dtype is None else dt.canonical(dtype))

    build.__name__ = name
    build.__doc__ = doc
    return build


#: built elsewhere: `ret`, `if_then_else`, `reinterpret`, and calls by name
_ELSEWHERE = {"ret", "if_then_else", "reinterpret", "call_extern", "call_pure_extern",
              "call_llvm_intrin", "call_llvm_pure_intrin", "tvm_call_packed", "large_uint_imm",
              "tvm_call_packed_lowered", "tvm_call_cpacked"}
_MADE = {row.name: _function(row.name, row.arity, row.doc) for row in INTRINSICS
         if (row.result == "given" or row.arity is None)
         and row.name not in globals() and row.name not in _ELSEWHERE}
globals().update(_MADE, __all__=["address_of", "dp4a", "tvm_access_ptr", "type_annotation",
                                 *_MADE])
