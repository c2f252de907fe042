"""Bags of embeddings: rows of a table, summed, averaged or compared bag by bag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import te
from ..te.tensor import Tensor
from ..tir import ir_builder
from ..tir import op as O
from .utils import rounded, sum_type

if TYPE_CHECKING:
    from collections.abc import Sequence


def embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scales: Tensor | None,
                  mode: int, skip: int, bags: Any) -> Tensor:
    """out[b] = reduction of weight[indices[k]] for k from offsets[b] to offsets[b + 1] or the end.

    `mode` is 0 (sum), 1 (mean) or 2 (maximum); each row is multiplied by scales[k] where they are
    given; the index `skip` counts as none. A bag of nothing is 0. Sums of 16-bit floats are kept in
    float32.
    """
    columns, total, wide = weight.shape[1], indices.shape[0], sum_type(weight.dtype)

    def body(ins: Any, outs: Sequence[Any]) -> Any:
        ib = ir_builder.create()
        table, which, begin = map(ib.buffer_ptr, ins[:3])
        by = ib.buffer_ptr(ins[3]) if scales is not None else None
        out = ib.buffer_ptr(outs[0])
        with ib.for_range(0, bags, "b", kind="parallel") as b:
            first = ib.allocate("int64", (2,), "bounds", scope="local")
            first[0] = begin[b]
            first[1] = O.cast(total, "int64")
            with ib.if_scope(b + 1 < offsets.shape[0]):
                first[1] = begin[O.min_value_of(b + 1, offsets.shape[0] - 1)]
            count = ib.allocate("int64", (1,), "count", scope="local")
            count[0] = O.const(0, "int64")
            with ib.for_range(0, columns, "c") as c:
                out[b, c] = O.const(0, wide)
            with ib.for_range(0, O.max_value_of(first[1] - first[0], O.const(0, "int64")),
                              "k") as k:
                at = O.cast(first[0] + k, total.dtype)
                row = which[at]
                with ib.if_scope(O.not_equal(row, O.const(skip, row.dtype))):
                    with ib.for_range(0, columns, "c") as c:
                        value = O.cast(table[row, c], wide)
                        if by is not None:
                            value = value * O.cast(by[at], wide)
                        if mode == 2:
                            better = O.logical_or(O.equal(count[0], 0), value > out[b, c])
                            out[b, c] = O.select(better, value, out[b, c])
                        else:
                            out[b, c] = out[b, c] + value
                    count[0] = count[0] + 1
            if mode == 1:
                with ib.for_range(0, columns, "c") as c:
                    out[b, c] = out[b, c] / O.cast(O.max_value_of(count[0], O.const(1, "int64")),
                                                   wide)
        return ib.get()

    inputs = [weight, indices, offsets] + ([] if scales is None else [scales])
    out = te.extern([(bags, columns)], inputs, body, dtype=wide, name="embedding_bag",
                    tag="embedding_bag")
    return rounded(out, weight.dtype)


__all__ = ["embedding_bag"]
