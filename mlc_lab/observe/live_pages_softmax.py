"""The pages "softmax" and "attention" (fused, tiled), and "online softmax" and "online attention":
a running maximum and sum, so that what a row needs is there after one pass over it.

No primitive leads from three passes to one: that the sum can be mended when the maximum grows is
algebra, exp(x - new) = exp(x - old) * exp(old - new). So these are forms of a program.
"""

from __future__ import annotations

from ..schedule import Schedule
from ..schedule.open_number import live
from ..script import from_source

SOFTMAX = (
    "A softmax of rows of 16,384 numbers, which are longer than the first cache. Three passes read "
    "each row three times: for its maximum, for the sum of the powers, for the result. The online "
    "form keeps a running maximum and sum: when a block of the row has a larger maximum, the sum "
    "so far is multiplied by exp(old maximum - new maximum). So a block is in the cache when it is "
    "read again, and two passes over memory are left, as long as a block fits. Form: {live:form}.")
ATTENTION = (
    "Attention of 64 queries to 1,024 keys, 16 queries at a time. With all keys at once the scores "
    "of these queries are larger than the first cache. Online, the keys come in blocks: with a "
    "running maximum and sum for each query, and a result so far that is multiplied by exp(old "
    "maximum - new maximum), the scores of a block never leave the cache. This is what "
    "FlashAttention does. Form: {live:form}.")

#: lanes of the vectors that the online forms are written with
_LANES = 16


def softmax(rows: int = 128, columns: int = 512) -> Schedule:
    """A softmax in four passes over each row, fused or one after the other."""
    sch = Schedule(from_source(f"""
@T.prim_func
def main(X: T.Buffer(({rows}, {columns}), "float32"), Y: T.Buffer(({rows}, {columns}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    largest = T.alloc_buffer(({rows},))
    powers = T.alloc_buffer(({rows}, {columns}))
    total = T.alloc_buffer(({rows},))
    for i, k in T.grid({rows}, {columns}):
        with T.block("largest"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                largest[vi] = T.float32("-inf")
            largest[vi] = T.max(largest[vi], X[vi, vk])
    for i, j in T.grid({rows}, {columns}):
        with T.block("powers"):
            vi, vj = T.axis.remap("SS", [i, j])
            powers[vi, vj] = T.exp(X[vi, vj] - largest[vi])
    for i, k in T.grid({rows}, {columns}):
        with T.block("total"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + powers[vi, vk]
    for i, j in T.grid({rows}, {columns}):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = powers[vi, vj] / total[vi]
"""))
    i, j = sch.get_loops(sch.get_block("Y"))
    i0, i1 = sch.split(i, factors=[None, live("rows", 1)])
    sch.compute_at(sch.get_block("total"), i0)
    sch.compute_at(sch.get_block("powers"), i0)
    sch.compute_at(sch.get_block("largest"), i0)
    sch.vectorize(sch.split(j, factors=[None, live("lanes", 8, [4, 8, 16, 32])])[1])
    return sch


def attention(queries: int = 64, keys: int = 256, size: int = 32, rows: int = 4) -> Schedule:
    """Attention in tiles of rows: scores, softmax and the sum of values of some rows at a time, so
    that what lies between them stays in the cache. The keys come as columns."""
    n, m, d = queries, keys, size
    sch = Schedule(from_source(f"""
@T.prim_func
def main(Q: T.Buffer(({n}, {d}), "float32"), K: T.Buffer(({d}, {m}), "float32"),
         V: T.Buffer(({m}, {d}), "float32"), Y: T.Buffer(({n}, {d}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    scores = T.alloc_buffer(({n}, {m}))
    largest = T.alloc_buffer(({n},))
    powers = T.alloc_buffer(({n}, {m}))
    total = T.alloc_buffer(({n},))
    mixed = T.alloc_buffer(({n}, {d}))
    for i, j, k in T.grid({n}, {m}, {d}):
        with T.block("scores"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                scores[vi, vj] = T.float32(0)
            scores[vi, vj] = scores[vi, vj] + Q[vi, vk] * K[vk, vj]
    for i, j in T.grid({n}, {m}):
        with T.block("largest"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                largest[vi] = T.float32("-inf")
            largest[vi] = T.max(largest[vi], scores[vi, vj])
    for i, j in T.grid({n}, {m}):
        with T.block("powers"):
            vi, vj = T.axis.remap("SS", [i, j])
            powers[vi, vj] = T.exp(scores[vi, vj] - largest[vi])
    for i, j in T.grid({n}, {m}):
        with T.block("total"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + powers[vi, vj]
    for i, j, k in T.grid({n}, {d}, {m}):
        with T.block("mixed"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                mixed[vi, vj] = T.float32(0)
            mixed[vi, vj] = mixed[vi, vj] + powers[vi, vk] * V[vk, vj]
    for i, j in T.grid({n}, {d}):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = mixed[vi, vj] / total[vi]
"""))
    i, _ = sch.get_loops(sch.get_block("Y"))
    i0, _ = sch.split(i, factors=[None, live("rows", rows)])
    for name in ("mixed", "total", "powers", "largest", "scores"):
        sch.compute_at(sch.get_block(name), i0, preserve_unit_loops=True)
    for name in ("scores", "mixed"):
        row, columns, part = sch.get_loops(sch.get_block(name))[-3:]
        c0, c1 = sch.split(columns, factors=[None, live(f"columns of {name}", 16)])
        sch.reorder(c0, part, row, c1)
        sch.vectorize(c1)
        sch.decompose_reduction(sch.get_block(name), part)
    sch.vectorize(sch.split(sch.get_loops(sch.get_block("powers"))[-1], factors=[None, 8])[1])
    return sch


def online_softmax(rows: int = 8, columns: int = 1 << 14) -> dict[str, Schedule]:
    """A softmax of long rows: in three passes, or with a running maximum and sum."""
    forms = {"3 passes": _three_passes(rows, columns)}
    for block in (64, 512, 4096, columns):
        forms[f"online {block}"] = _online(rows, columns, block)
    return forms


def _three_passes(rows: int, columns: int) -> Schedule:
    n, m, v = rows, columns // _LANES, _LANES
    sch = Schedule(from_source(f"""
@T.prim_func
def main(X: T.Buffer(({n}, {columns}), "float32"), Y: T.Buffer(({n}, {columns}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    lanes = T.alloc_buffer(({n}, {v}))
    largest = T.alloc_buffer(({n},))
    sums = T.alloc_buffer(({n}, {v}))
    total = T.alloc_buffer(({n},))
    for i, k, l in T.grid({n}, {m}, {v}):
        with T.block("lanes"):
            vi, vk, vl = T.axis.remap("SRS", [i, k, l])
            with T.init():
                lanes[vi, vl] = T.float32("-inf")
            lanes[vi, vl] = T.max(lanes[vi, vl], X[vi, vk * {v} + vl])
    for i, l in T.grid({n}, {v}):
        with T.block("largest"):
            vi, vl = T.axis.remap("SR", [i, l])
            with T.init():
                largest[vi] = T.float32("-inf")
            largest[vi] = T.max(largest[vi], lanes[vi, vl])
    for i, k, l in T.grid({n}, {m}, {v}):
        with T.block("sums"):
            vi, vk, vl = T.axis.remap("SRS", [i, k, l])
            with T.init():
                sums[vi, vl] = T.float32(0)
            sums[vi, vl] = sums[vi, vl] + T.exp(X[vi, vk * {v} + vl] - largest[vi])
    for i, l in T.grid({n}, {v}):
        with T.block("total"):
            vi, vl = T.axis.remap("SR", [i, l])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + sums[vi, vl]
    for i, j in T.grid({n}, {columns}):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.exp(X[vi, vj] - largest[vi]) / total[vi]
"""))
    row, column = sch.get_loops(sch.get_block("Y"))
    for name in ("total", "sums", "largest", "lanes"):
        sch.compute_at(sch.get_block(name), row)
    for name in ("lanes", "sums"):
        block = sch.get_block(name)
        sch.vectorize(sch.get_loops(block)[-1])
        sch.decompose_reduction(block, sch.get_loops(block)[1])
    sch.vectorize(sch.split(column, factors=[None, live("lanes", 16, [4, 8, 16, 32])])[1])
    return sch


def _online(rows: int, columns: int, block: int) -> Schedule:
    """The maximum and sum of each lane are kept apart, and put together at the end of the row."""
    n, b, v = rows, block // _LANES, _LANES
    sch = Schedule(from_source(f"""
@T.prim_func
def main(X: T.Buffer(({n}, {columns}), "float32"), Y: T.Buffer(({n}, {columns}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    here = T.alloc_buffer(({v},))
    lanes = T.alloc_buffer(({v},))
    sums = T.alloc_buffer(({v},))
    largest = T.alloc_buffer((1,))
    total = T.alloc_buffer((1,))
    for i in range({n}):
        for l in T.vectorized({v}):
            lanes[l] = T.float32("-inf")
            sums[l] = T.float32(0)
        for o in range({columns // block}):
            for l in T.vectorized({v}):
                here[l] = lanes[l]
            for k in range({b}):
                for l in T.vectorized({v}):
                    here[l] = T.max(here[l], X[i, o * {block} + k * {v} + l])
            for l in T.vectorized({v}):
                sums[l] = sums[l] * T.exp(lanes[l] - here[l])
                lanes[l] = here[l]
            for k in range({b}):
                for l in T.vectorized({v}):
                    sums[l] = sums[l] + T.exp(X[i, o * {block} + k * {v} + l] - lanes[l])
        largest[0] = T.float32("-inf")
        total[0] = T.float32(0)
        for l in range({v}):
            largest[0] = T.max(largest[0], lanes[l])
        for l in range({v}):
            total[0] = total[0] + sums[l] * T.exp(lanes[l] - largest[0])
        for j in range({columns}):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.exp(X[vi, vj] - largest[0]) / total[0]
"""))
    column = sch.get_loops(sch.get_block("Y"))[-1]
    sch.vectorize(sch.split(column, factors=[None, live("lanes", 16, [4, 8, 16, 32])])[1])
    return sch


def online_attention(queries: int = 64, keys: int = 1024, size: int = 32) -> dict[str, Schedule]:
    """Attention of some queries at a time: to all keys at once, or to blocks of them with a running
    maximum and sum. The keys come as columns."""
    forms = {"all keys": attention(queries, keys, size, rows=_ROWS)}
    for block in (16, 64, 256):
        forms[f"online {block}"] = _online_attention(queries, keys, size, block)
    return forms


#: queries at a time of the online forms
_ROWS = 16


def _online_attention(queries: int, keys: int, size: int, block: int) -> Schedule:
    r, v, at = _ROWS, _LANES, f"o * {block} + j"
    return Schedule(from_source(f"""
@T.prim_func
def main(Q: T.Buffer(({queries}, {size}), "float32"), K: T.Buffer(({size}, {keys}), "float32"),
         V: T.Buffer(({keys}, {size}), "float32"), Y: T.Buffer(({queries}, {size}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    scores = T.alloc_buffer(({r}, {block}))
    here = T.alloc_buffer(({v},))
    sums = T.alloc_buffer(({v},))
    new = T.alloc_buffer((1,))
    scale = T.alloc_buffer((1,))
    largest = T.alloc_buffer(({r},))
    total = T.alloc_buffer(({r},))
    mixed = T.alloc_buffer(({r}, {size}))
    for i in range({queries // r}):
        for q in range({r}):
            largest[q] = T.float32("-inf")
            total[q] = T.float32(0)
            for d in T.vectorized({size}):
                mixed[q, d] = T.float32(0)
        for o in range({keys // block}):
            for c in range({block // v}):
                for q in range({r}):
                    for l in T.vectorized({v}):
                        scores[q, c * {v} + l] = T.float32(0)
                for k in range({size}):
                    for q in T.unroll({r}):
                        for l in T.vectorized({v}):
                            scores[q, c * {v} + l] = (scores[q, c * {v} + l] + Q[i * {r} + q, k]
                                                      * K[k, o * {block} + c * {v} + l])
            for q in range({r}):
                for l in T.vectorized({v}):
                    here[l] = T.float32("-inf")
                    sums[l] = T.float32(0)
                for c in range({block // v}):
                    for l in T.vectorized({v}):
                        here[l] = T.max(here[l], scores[q, c * {v} + l])
                new[0] = largest[q]
                for l in range({v}):
                    new[0] = T.max(new[0], here[l])
                scale[0] = T.exp(largest[q] - new[0])
                largest[q] = new[0]
                for c in range({block // v}):
                    for l in T.vectorized({v}):
                        scores[q, c * {v} + l] = T.exp(scores[q, c * {v} + l] - new[0])
                        sums[l] = sums[l] + scores[q, c * {v} + l]
                total[q] = total[q] * scale[0]
                for l in range({v}):
                    total[q] = total[q] + sums[l]
                for d in T.vectorized({size}):
                    mixed[q, d] = mixed[q, d] * scale[0]
            for e in range({size // v}):
                for j in range({block}):
                    for q in T.unroll({r}):
                        for l in T.vectorized({v}):
                            mixed[q, e * {v} + l] = (mixed[q, e * {v} + l]
                                                     + scores[q, j] * V[{at}, e * {v} + l])
        for q in range({r}):
            for d in T.vectorized({size}):
                Y[i * {r} + q, d] = mixed[q, d] / total[q]
"""))


__all__ = ["ATTENTION", "SOFTMAX", "attention", "online_attention", "online_softmax", "softmax"]
