"""Linear algebra: matmul, linear, outer, einsum."""

from __future__ import annotations

from string import ascii_letters
from typing import Any

from ...arith import Analyzer
from ...tir import expr as E
from ..expr import Call, Expr, as_expr
from ..struct_info import StructInfo, TensorStructInfo
from .common import (
    as_tuple_expr, broadcast_dims, dim_text, dtype_attr, join_dtype, misfit, need_ndim, need_same,
    show, tensor_info, tensor_list, tensor_of,
)
from .registry import make_call, register_op


def matmul(x1: Any, x2: Any, out_dtype: Any = None) -> Expr:
    """Matrix product of the last two dimensions, the others broadcast, as numpy.matmul."""
    return make_call("relax.matmul", (as_expr(x1), as_expr(x2)), {
        "out_dtype": dtype_attr(out_dtype)})


def _infer_matmul(call: Call) -> StructInfo:
    names = ("x1", "x2")
    a, b = tensor_info(call, 0, "x1"), tensor_info(call, 1, "x2")
    dtype = call.attrs.out_dtype
    if dtype == "void":
        dtype = join_dtype(call, a.dtype, b.dtype, names)
    if a.ndim == -1 or b.ndim == -1:
        return TensorStructInfo(None, dtype)
    for name, info in zip(names, (a, b)):
        if info.ndim == 0:
            raise misfit(call, f"{name} must have at least one dimension, it is {show(info)}")
    ndim = max(a.ndim, b.ndim) if min(a.ndim, b.ndim) >= 2 else a.ndim + b.ndim - 2 if (
        a.ndim == 1 or b.ndim == 1) and max(a.ndim, b.ndim) > 1 else 0
    if a.dims is None or b.dims is None:
        return tensor_of(None, dtype, ndim)
    da, db = a.dims, b.dims
    ka, kb = da[-1], db[-2] if len(db) > 1 else db[0]
    analyzer = Analyzer()
    need_same(call, ka, kb, lambda: f"x1 is {show(a)} and x2 is {show(b)}: the reduced dimensions "
                                    f"{dim_text(ka)} and {dim_text(kb)} differ")
    batch = broadcast_dims(call, da[:-2], db[:-2], names, analyzer)
    if batch is None:
        return tensor_of(None, dtype, ndim)
    tail = (() if len(da) == 1 else (da[-2],)) + (() if len(db) == 1 else (db[-1],))
    return tensor_of(batch + tail, dtype)


register_op("relax.matmul", _infer_matmul)


def linear(data: Any, weight: Any, bias: Any = None, out_dtype: Any = None) -> Expr:
    """data @ weight.T + bias: a layer of torch's nn.Linear. Built of the three operators."""
    from .elementwise import add  # a name made from a table
    from .manipulate import permute_dims

    product = matmul(data, permute_dims(weight), out_dtype)
    return product if bias is None else add(product, bias)


def outer(x1: Any, x2: Any) -> Expr:
    """The outer product of two vectors."""
    return make_call("relax.outer", (as_expr(x1), as_expr(x2)))


def _infer_outer(call: Call) -> StructInfo:
    a, b = tensor_info(call, 0, "x1"), tensor_info(call, 1, "x2")
    need_ndim(call, a, 1, "x1")
    need_ndim(call, b, 1, "x2")
    dtype = join_dtype(call, a.dtype, b.dtype, ("x1", "x2"))
    known = a.dims is not None and b.dims is not None
    return tensor_of((a.dims[0], b.dims[0]) if known else None, dtype, 2)


register_op("relax.outer", _infer_outer)


def einsum(operands: Any, subscripts: str) -> Expr:
    """Einstein's sum, as numpy.einsum(subscripts, *operands)."""
    return make_call("relax.einsum", (as_tuple_expr(operands),), {"subscripts": str(subscripts)})


def parse_subscripts(call: Any, subscripts: str, ndims: list[int]) -> tuple[list[str], str]:
    """The letters of each operand and of the result; an ellipsis becomes capital letters."""
    text = subscripts.replace(" ", "")
    strange = set(text.replace("->", "", 1).replace("...", "")) - {",", *ascii_letters}
    if strange:
        raise misfit(call, f"{subscripts!r}: {sorted(strange)[0]!r} is no letter from a to z")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(ndims):
        raise misfit(call, f"{subscripts!r} names {len(parts)} operand(s), there are {len(ndims)}")
    extra = [n - len(p.replace("...", "")) if "..." in p else 0 for p, n in zip(parts, ndims)]
    most = max(extra, default=0)
    capitals = [chr(0x391 + k) for k in range(most)]  # letters a subscript cannot hold
    out = []
    for part, ndim, count in zip(parts, ndims, extra):
        full = part.replace("...", "".join(capitals[most - count:]))
        if len(full) != ndim:
            raise misfit(call, f"{part!r} of {subscripts!r} names {len(full)} dimension(s), the "
                               f"operand has {ndim}")
        out.append(full)
    if arrow:
        return out, right.replace("...", "".join(capitals))
    letters = "".join(out)
    once = sorted(c for c in set(letters) if letters.count(c) == 1 and c not in capitals)
    return out, "".join(capitals) + "".join(once)


def _infer_einsum(call: Call) -> StructInfo:
    infos = tensor_list(call)
    if not infos:
        raise misfit(call, "there is no operand")
    dtype = infos[0].dtype
    for k, info in enumerate(infos[1:], 1):
        dtype = join_dtype(call, dtype, info.dtype, ("operand 1", f"operand {k + 1}"))
    if any(i.dims is None for i in infos):
        return TensorStructInfo(None, dtype)
    inputs, result = parse_subscripts(call, call.attrs.subscripts, [i.ndim for i in infos])
    sizes: dict[str, Any] = {}
    for letters, info in zip(inputs, infos):
        for letter, dim in zip(letters, info.dims):
            have = sizes.get(letter)
            first = info.dims[letters.index(letter)]
            need_same(call, first, dim, lambda x=letter, a=first, b=dim, info=info: (
                f"{call.attrs.subscripts!r}: {x!r} is both {dim_text(a)} and {dim_text(b)} in one "
                f"operand, {show(info)}"))
            if have is None or (type(have) is E.IntImm and have.value == 1):
                sizes[letter] = dim
            elif not (type(dim) is E.IntImm and dim.value == 1):
                need_same(call, have, dim, lambda x=letter, a=have, b=dim: (
                    f"{call.attrs.subscripts!r} on {' and '.join(map(show, infos))}: {x!r} is "
                    f"both {dim_text(a)} and {dim_text(b)}"))
    if len(set(result)) != len(result):
        raise misfit(call, f"{call.attrs.subscripts!r} names a letter of the result twice")
    missing = [c for c in result if c not in sizes]
    if missing:
        raise misfit(call, f"{call.attrs.subscripts!r}: {missing[0]!r} of the result is in no "
                           "operand")
    return tensor_of([sizes[c] for c in result], dtype)


register_op("relax.einsum", _infer_einsum)
__all__ = ["einsum", "linear", "matmul", "outer", "parse_subscripts"]
