"""Vectors of which only some lanes are accessed, and vectors of indices: what is counted."""

import numpy as np
import pytest

from mlc_lab import tir
from mlc_lab.backend.llvm_emit import CodegenError
from mlc_lab.ir.module import IRModule
from mlc_lab.observe.access import accesses
from mlc_lab.observe.counts import count_accesses
from mlc_lab.tir import Broadcast, BufferLoad, BufferStore, Ramp, decl_buffer
from mlc_lab.tir.op import const

CACHES = "256:2:16"  # four floats a line


def module(buffers, body):
    params = [tir.Var(b.name.lower(), "handle") for b in buffers]
    func = tir.PrimFunc(params, body, None, dict(zip(params, buffers, strict=True)))
    return IRModule({"main": func.with_attr("global_symbol", "main")})


def floats(size, name):
    return decl_buffer((size,), "float32", name)


def masked(lanes, limit, stride=1):
    """B[0:lanes] = A[0:lanes * stride:stride], of which only lanes below `limit` are touched."""
    a, b = floats(lanes * stride, "A"), floats(lanes, "B")
    at = Ramp(const(0), const(1), lanes)
    inside = tir.LT(at, Broadcast(const(limit), lanes))
    load = BufferLoad(a, [Ramp(const(0), const(stride), lanes)], inside)
    return module([a, b], BufferStore(b, load, [at], inside))


def elements(trace, name):
    return [int(e) for b, e in zip(trace.buffer, trace.element, strict=True)
            if trace.places[b].name == name]


@pytest.mark.parametrize("limit", [0, 1, 4, 5, 8])
def test_lanes_that_are_masked_off_touch_no_line(limit):
    mod = masked(8, limit)
    trace = accesses(mod)
    assert elements(trace, "A") == elements(trace, "B") == list(range(limit))
    counts = count_accesses(mod, CACHES)
    assert (counts.reads, counts.writes) == (1, 1)  # a masked vector is one access
    lines = -(-limit // 4)
    assert counts.by_buffer()["A"]["misses"] == counts.by_buffer()["B"]["misses"] == [lines]
    assert counts.levels[0].misses == 2 * lines


def test_a_masked_gather_touches_the_lanes_chosen():
    mod = masked(8, 5, stride=3)
    assert elements(accesses(mod), "A") == [0, 3, 6, 9, 12]
    counts = count_accesses(mod, CACHES)
    assert counts.reads == 5  # a gather is an access for each lane
    assert counts.by_buffer()["A"]["misses"] == [4]  # lines 0, 1, 2 and 3


def test_indices_that_are_loaded_are_followed():
    index, a, b = decl_buffer((8,), "int32", "I"), floats(64, "A"), floats(8, "B")
    at = Ramp(const(0), const(1), 8)
    body = BufferStore(b, BufferLoad(a, [BufferLoad(index, [at])]), [at])
    order = np.array([0, 9, 2, 63, 4, 40, 6, 7], "int32")
    data = [order, np.arange(64, dtype="float32"), np.zeros(8, "float32")]
    trace = accesses(module([index, a, b], body), arrays=data)
    assert elements(trace, "A") == order.tolist()
    assert elements(trace, "I") == elements(trace, "B") == [0]


def test_a_mask_too_wide_to_count_is_refused_with_advice():
    with pytest.raises(CodegenError, match="split the vectorized loop"):
        count_accesses(masked(128, 100), CACHES)
    assert len(accesses(masked(128, 100))) == 200
