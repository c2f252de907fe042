"""Linear algebra: matmul, linear, outer, einsum."""

from __future__ import annotations

from string import ascii_letters
from typing import Any

from ...tir import expr as E
from ...tir import op as O
from ..expr import Call, Expr
from ..struct_info import StructInfo, TensorStructInfo
from .common import (
    broadcast_dims, dim_text, dims_of, join_dtype, misfit, need_ndim, need_same, show, tensor_of,
)
from .declare import Dtype, Tensor, Tensors, Text, constructor, operator
from .elementwise import add
from .later import te, topi, utils
from .reshaping import permute_dims


def _infer_matmul(call: Call, a: TensorStructInfo, b: TensorStructInfo) -> StructInfo:
    names = ("x1", "x2")
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
    ka, kb = da[-1], db[-2:][0]
    need_same(call, ka, kb, lambda: f"x1 is {show(a)} and x2 is {show(b)}: the reduced dimensions "
                                    f"{dim_text(ka)} and {dim_text(kb)} differ")
    batch = broadcast_dims(call, da[:-2], db[:-2], names)
    if batch is None:
        return tensor_of(None, dtype, ndim)
    return tensor_of((*batch, *da[-2:-1], *db[1:][-1:]), dtype)


@operator("relax.matmul", _infer_matmul, precision="always")
def matmul(x1: Tensor, x2: Tensor, out_dtype: Dtype = None) -> Tensor:
    """Matrix product of the last two dimensions, the others broadcast, as numpy.matmul."""
    dtype = out_dtype or x1.dtype
    wide = utils.sum_type(dtype)
    row, column = x1.ndim == 1, x2.ndim == 1
    left, right = list(x1.shape[:-2]), list(x2.shape[:-2])
    batch = topi.broadcast.broadcast_shape(left, right)
    k = te.reduce_axis((0, x1.shape[-1]), name="k")
    shape = [*batch, *([] if row else [x1.shape[-2]]), *([] if column else [x2.shape[-1]])]

    def lead(dims: list, i: Any) -> list:
        at = i[len(batch) - len(dims):len(batch)]
        return [E.IntImm(d.dtype, 0) if O.is_const_int(d, 1) and not O.is_const_int(s, 1) else x
                for d, s, x in zip(dims, batch[len(batch) - len(dims):], at)]

    def element(*i: Any) -> Any:
        inner = i[len(batch):]
        x = x1(*lead(left, i), *([] if row else [inner[0]]), k)
        y = x2(*lead(right, i), k, *([] if column else [inner[-1]]))
        return te.sum(O.cast(x, wide) * O.cast(y, wide), axis=k)

    return utils.rounded(te.compute(shape, element, name="matmul", tag="matmul"), dtype)


@constructor("relax.linear")
def linear(data: Any, weight: Any, bias: Any = None, out_dtype: Any = None) -> Expr:
    """data @ weight.T + bias: a layer of torch's nn.Linear. Built of the three operators."""
    product = matmul(data, permute_dims(weight), out_dtype)
    return product if bias is None else add(product, bias)


def _infer_outer(call: Call, a: TensorStructInfo, b: TensorStructInfo) -> StructInfo:
    need_ndim(call, a, 1, "x1")
    need_ndim(call, b, 1, "x2")
    dtype = join_dtype(call, a.dtype, b.dtype, ("x1", "x2"))
    dims = dims_of((a, b))
    return tensor_of(None if dims is None else [d[0] for d in dims], dtype, 2)


@operator("relax.outer", _infer_outer)
def outer(x1: Tensor, x2: Tensor) -> Tensor:
    """The outer product of two vectors."""
    return te.compute((x1.shape[0], x2.shape[0]), lambda i, j: x1(i) * x2(j), name="outer",
                      tag="injective")


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


def _infer_einsum(call: Call, infos: tuple[TensorStructInfo, ...]) -> StructInfo:
    if not infos:
        raise misfit(call, "there is no operand")
    dtype = infos[0].dtype
    for k, info in enumerate(infos[1:], 1):
        dtype = join_dtype(call, dtype, info.dtype, ("operand 1", f"operand {k + 1}"))
    shapes = dims_of(infos)
    if shapes is None:
        return TensorStructInfo(None, dtype)
    inputs, result = parse_subscripts(call, call.attrs.subscripts, [i.ndim for i in infos])
    sizes: dict[str, Any] = {}
    for letters, info, dims in zip(inputs, infos, shapes):
        for letter, dim in zip(letters, dims):
            have = sizes.get(letter)
            first = dims[letters.index(letter)]
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


@operator("relax.einsum", _infer_einsum)
def einsum(operands: Tensors, subscripts: Text) -> Tensor:
    """Einstein's sum, as numpy.einsum(subscripts, *operands)."""
    return topi.einsum(subscripts, *operands)
