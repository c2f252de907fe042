"""Rules of products: of matrices, of any tensors by a formula, and attention."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ....ir.dtype import is_float
from ....topi.utils import sum_type
from ... import op
from ...expr import Constant
from ...op import nn
from .arithmetic import added
from .calling import ADVICE_EVAL
from .importer import Importer, is_tensor, rule
from .views import reshaped

if TYPE_CHECKING:
    from ...expr import Expr
    from .importer import Operand, Size


@rule("matmul", "mm", "bmm", "mv", "dot", "vdot", "inner", "imatmul", "linalg_matmul",
      "linalg_vecdot", "chain_matmul", "linalg_multi_dot")
def _matmul(im: Importer, a: Expr | list | tuple, b: Any = None, *, dim: int = -1) -> Any:
    name = str(im.node.target) if im.node is not None else ""
    if isinstance(a, (list, tuple)):  # several, one after another
        out = a[0]
        for m in a[1:]:
            out = _matmul(im, out, m)
        return out
    x, y = im.pair(a, b)
    if "vecdot" in name:
        return im.emit(op.sum(im.emit(op.multiply(x, y)), [dim]))
    if "inner" in name and 0 not in (im.ndim(x), im.ndim(y)):
        return _tensordot(im, x, y, [-1], [-1])
    if 0 in (im.ndim(x), im.ndim(y)):
        return im.emit(op.multiply(x, y))
    return im.emit(op.matmul(x, y, im.dtype(x)))


@rule("linear")
def linear(im: Importer, x: Expr, weight: Expr, bias: Expr | None = None) -> Any:
    """x weight^T + bias"""
    turned = weight if im.ndim(weight) == 1 else im.emit(op.permute_dims(weight))
    out = im.emit(op.matmul(x, turned, im.dtype(x)))
    return out if bias is None else im.emit(op.add(out, bias))


@rule("bilinear")
def _bilinear(im: Importer, input1: Expr, input2: Expr, weight: Expr, bias: Expr | None = None
              ) -> Any:
    """input1 weight[k] input2 for each k."""
    lead, count = im.shape(input1)[:-1], im.shape(weight)[0]
    a, b = (reshaped(im, t, [-1, im.shape(t)[-1]]) for t in (input1, input2))
    out = im.emit(op.einsum([a, weight, b], "bi,kij,bj->bk"))
    out = reshaped(im, out, [*lead, count])
    return out if bias is None else im.emit(op.add(out, bias))


def _scaled(im: Importer, x: Expr, by: Operand) -> Any:
    return x if by == 1 else im.emit(op.multiply(x, im.operand(by, im.dtype(x))))


def _sum_of(im: Importer, c: Expr, out: Expr, beta: Operand, alpha: Operand) -> Any:
    """beta c + alpha out, where beta 0 leaves out even what is not a number."""
    out = _scaled(im, out, alpha)
    return im.broadcast(out, im.common_shape(im.shape(out), im.shape(c))) if beta == 0 else added(
        im, out, _scaled(im, c, beta))


@rule("addmm", "baddbmm", "addmv", "sspaddmm")
def _addmm(im: Importer, c: Expr, a: Expr, b: Expr, *, beta: Operand = 1, alpha: Operand = 1
           ) -> Any:
    return _sum_of(im, c, im.emit(op.matmul(a, b, im.dtype(a))), beta, alpha)


@rule("addbmm")
def _addbmm(im: Importer, c: Expr, batch1: Expr, batch2: Expr, *, beta: Operand = 1,
            alpha: Operand = 1) -> Any:
    products = im.emit(op.matmul(batch1, batch2, im.dtype(batch1)))
    return _sum_of(im, c, im.emit(op.sum(products, [0])), beta, alpha)


@rule("addr")
def _addr(im: Importer, c: Expr, vec1: Expr, vec2: Expr, *, beta: Operand = 1, alpha: Operand = 1
          ) -> Any:
    return _sum_of(im, c, _outer(im, vec1, vec2), beta, alpha)


@rule("einsum")
def _einsum(im: Importer, equation: str, *operands: Any, path: Any = None) -> Any:
    given = list(operands[0]) if operands and isinstance(operands[0], (list, tuple)) else list(
        operands)
    dtype = im.dtype(given[0])
    for t in given[1:]:
        dtype = im.promoted_dtypes(dtype, im.dtype(t))
    equation = equation.replace(" ", "")
    inputs, arrow, kept = equation.partition("->")
    alone = [c for c in inputs if c.isalpha() and c not in kept and sum(
        c in part for part in inputs.split(",")) == 1]
    if arrow and alone and not is_float(dtype):  # summed by itself, as torch sums whole numbers
        dtype = "int64"
    return im.emit(op.einsum([im.cast(t, dtype) for t in given], equation))


@rule("outer", "ger")
def _outer(im: Importer, a: Expr, b: Expr) -> Any:
    a, b = im.pair(a, b)
    return im.emit(op.multiply(im.emit(op.expand_dims(a, [1])), im.emit(op.expand_dims(b, [0]))))


@rule("tensordot")
def _tensordot(im: Importer, a: Expr, b: Expr, dims: Any = 2, dims_other: Any = None) -> Any:
    """Products summed over dimensions of both, as one product of matrices.

    torch.tensordot names them by a number (the last of a, the first of b) or by two lists, ATen
    by two lists.
    """
    a, b = im.pair(a, b)
    if isinstance(dims, int):
        first, last = list(range(im.ndim(a) - dims, im.ndim(a))), list(range(dims))
    else:
        first, last = dims if dims_other is None else (dims, dims_other)
        first, last = [d % im.ndim(a) for d in first], [d % im.ndim(b) for d in last]

    def total(sizes: list[Any]) -> Any:
        out: Any = 1
        for s in sizes:
            out = out * s
        return out

    kept = [[d for d in range(im.ndim(t)) if d not in gone] for t, gone in ((a, first), (b, last))]
    sizes = [[im.shape(t)[d] for d in keep] for t, keep in zip((a, b), kept)]
    for p, q in zip(first, last):  # a dimension of 1 is repeated
        if im.same_size(im.shape(a)[p], 1) or im.same_size(im.shape(b)[q], 1):
            wide = [im.common_shape([im.shape(a)[p]], [im.shape(b)[q]])[0]]
            a = im.broadcast(a, [*im.shape(a)[:p], *wide, *im.shape(a)[p + 1:]])
            b = im.broadcast(b, [*im.shape(b)[:q], *wide, *im.shape(b)[q + 1:]])
    inner = total([im.shape(a)[d] for d in first])
    left = reshaped(im, im.emit(op.permute_dims(a, [*kept[0], *first])), [total(sizes[0]), inner])
    right = reshaped(im, im.emit(op.permute_dims(b, [*last, *kept[1]])), [inner, total(sizes[1])])
    return reshaped(im, im.emit(op.matmul(left, right)), [*sizes[0], *sizes[1]])


@rule("cdist", "_cdist_forward", "_euclidean_dist")
def _cdist(im: Importer, x1: Expr, x2: Expr, p: float = 2.0, compute_mode: Any = None) -> Any:
    """Distances between all rows of two matrices."""
    from .reductions import norm

    a, b = im.pair(x1, x2)
    a = im.emit(op.expand_dims(a, [im.ndim(a) - 1]))
    b = im.emit(op.expand_dims(b, [im.ndim(b) - 2]))
    away = im.emit(op.subtract(a, b))
    return norm(im, away, p, im.ndim(away) - 1)


@rule("pdist", "_pdist_forward")
def _pdist(im: Importer, x: Expr, p: float = 2.0) -> Any:
    """Distances between all pairs of rows."""
    import numpy as np

    count = im.shape(x)[0]
    if not isinstance(count, int):
        raise ValueError(f"pdist of {count} rows: their number must be known")
    places = np.triu_indices(count, 1)
    a, b = (im.emit(op.take(x, im.const(k, "int64"), 0)) for k in places)
    from .reductions import norm

    return norm(im, im.emit(op.subtract(a, b)), p, 1)


@rule("pairwise_distance")
def _pairwise_distance(im: Importer, x1: Expr, x2: Expr, p: float = 2.0, eps: float = 1e-6,
                       keepdim: bool = False) -> Any:
    from .reductions import norm

    away = im.emit(op.subtract(*im.pair(x1, x2)))
    away = im.emit(op.add(away, im.const(eps, im.dtype(away))))
    return norm(im, away, p, im.ndim(away) - 1, keepdim)


# ------------------------------------------------------------------------------- attention


@rule("scaled_dot_product_attention")
def _attention(im: Importer, query: Expr, key: Expr, value: Expr, attn_mask: Expr | None = None,
               dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
               enable_gqa: bool = False) -> Any:
    """softmax(q k^T scale + mask) v over the last two dimensions; a query that may look at nothing
    gets zeros."""
    if dropout_p:
        raise ValueError(f"dropout_p={dropout_p} draws numbers by chance: {ADVICE_EVAL}")
    q, k, v = query, key, value
    dtype = im.dtype(q)
    if enable_gqa:
        k, v = (_repeated_heads(im, t, im.shape(q)[-3]) for t in (k, v))
    width = im.shape(q)[-1]
    scale = 1 / math.sqrt(width) if scale is None else scale
    order = list(range(im.ndim(k)))
    order[-1], order[-2] = order[-2], order[-1]
    turned = im.emit(op.permute_dims(k, order))
    wide = sum_type(dtype)  # in which the scores stay until they are weights
    if wide == dtype:
        scores = im.emit(op.matmul(im.emit(op.multiply(q, im.const(scale, dtype))), turned))
    else:
        scores = im.emit(op.multiply(im.emit(op.matmul(q, turned, wide)), im.const(scale, wide)))
    if is_causal:
        scores = im.emit(op.add(scores, _causal(im, im.shape(q)[-2], im.shape(k)[-2], wide)))
    if attn_mask is not None and im.dtype(attn_mask) == "bool":
        scores = im.emit(op.where(attn_mask, scores, im.const(-math.inf, wide)))
    elif attn_mask is not None:
        scores = im.emit(op.add(scores, im.cast(attn_mask, wide)))
    out = im.emit(op.matmul(im.cast(im.emit(nn.softmax(scores, -1)), dtype), v))
    if attn_mask is None:
        return out
    blind = _blind(im, attn_mask)
    return out if blind is None else im.emit(op.where(blind, im.const(0, dtype), out))


def _repeated_heads(im: Importer, x: Expr, heads: Size) -> Any:
    """Heads of keys and values, each repeated for several heads of queries."""
    have = im.shape(x)[-3]
    if im.same_size(have, heads):
        return x
    if not all(isinstance(n, int) for n in (have, heads)) or heads % have:
        raise ValueError(f"enable_gqa with {heads} heads of queries and {have} of keys")
    return im.emit(op.repeat(x, heads // have, im.ndim(x) - 3))


def _blind(im: Importer, mask: Expr) -> Any:
    """Which queries a mask lets look at nothing, [.., queries, 1]; None if there are none such."""
    if isinstance(mask, Constant):
        import numpy as np

        have = mask.data.numpy()
        nothing = (~have if have.dtype == bool else have == -np.inf).all(-1, keepdims=True)
        return im.const(nothing, "bool") if nothing.any() else None
    last = [im.ndim(mask) - 1]
    if im.dtype(mask) != "bool":
        mask = im.emit(op.not_equal(mask, im.const(-math.inf, im.dtype(mask))))
    some = im.emit(op.max(im.cast(mask, "int8"), last, True))
    return im.emit(op.equal(some, im.const(0, "int8")))


def _causal(im: Importer, queries: Size, keys: Size, dtype: str) -> Any:
    """Minus infinity above the diagonal, made once for each pair of lengths."""
    def make() -> Any:
        filled = im.full([queries, keys], -math.inf, dtype)
        return im.emit(op.triu(filled, 1))

    return im.once(("causal", str(queries), str(keys), dtype), make)


@rule("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
      "_scaled_dot_product_efficient_attention", "_scaled_dot_product_attention_math")
def _attention_kernel(im: Importer, query: Expr, key: Expr, value: Expr, *rest: object,
                      attn_mask: Expr | None = None, scale: float | None = None,
                      enable_gqa: bool = False) -> Any:
    """The first result alone: what the kernels of torch keep for gradients is not computed."""
    numbers = [r for r in rest if not is_tensor(r) and r is not None]
    masks = [r for r in rest if is_tensor(r)]
    dropout = next((r for r in numbers if isinstance(r, float)), 0.0)
    causal = next((r for r in numbers if isinstance(r, bool)), False)
    mask = masks[0] if masks else attn_mask
    return (_attention(im, query, key, value, mask, dropout, causal, scale, enable_gqa),)


