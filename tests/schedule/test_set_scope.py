"""set_scope, unsafe_set_dtype and storage_align: properties of a buffer that a block writes."""

import numpy as np
import pytest

from mlc_lab.schedule import ScheduleError

from .common import chain, check, mm_relu, run
from .test_cache_read import start


def test_the_buffer_moves_and_is_renamed():
    sch, before = start(chain)
    sch.set_scope("B", 0, "shared")
    assert 'B_shared = T.alloc_buffer((16, 12), scope="shared")' in sch.mod.script()
    sch.set_scope("C", "C", "shared.dyn")
    assert 'C_shared_dyn = T.alloc_buffer((16, 12), scope="shared.dyn")' in sch.mod.script()
    check(sch, before)


def test_the_same_scope_changes_nothing():
    sch, before = start(chain)
    sch.set_scope("B", 0, "global")
    assert sch.mod.script() == before.script()
    check(sch, before)


def test_it_works_on_a_decomposed_reduction():
    sch, before = start(mm_relu)
    block = sch.get_block("Y")
    sch.decompose_reduction(block, sch.get_loops(block)[2])
    sch.set_scope(block, 0, "local")
    check(sch, before)


@pytest.mark.parametrize("rule, step", [
    ("storage_scope_exists", lambda s: s.set_scope("B", 0, "heap")),
    ("buffer_index_in_range", lambda s: s.set_scope("B", 1, "local")),
    ("buffer_is_allocated_here", lambda s: s.set_scope("D", 0, "local")),
    ("buffer_is_allocated_here", lambda s: s.unsafe_set_dtype("D", 0, "float16")),
    ("dtype_exists", lambda s: s.unsafe_set_dtype("B", 0, "float17")),
    ("buffer_is_allocated_here", lambda s: s.storage_align("D", 0, 0, 32, 8)),
    ("axis_in_range", lambda s: s.storage_align("B", 0, 2, 32, 8)),
    ("factor_is_positive", lambda s: s.storage_align("B", 0, 0, 0, 8)),
])
def test_it_is_refused(rule, step):
    sch, before = start(chain)
    with pytest.raises(ScheduleError) as caught:
        step(sch)
    assert caught.value.rule == rule
    assert sch.mod.script() == before.script()


def test_a_buffer_in_another_dtype_rounds_what_goes_through_it():
    sch, before = start(chain)
    sch.unsafe_set_dtype("B", 0, "float16")
    assert 'T.Cast("float16"' in sch.mod.script() and 'T.Cast("float32", B' in sch.mod.script()
    a, want = run(before)
    _, got = run(sch.mod)
    assert not np.array_equal(want, got)
    b = (a * np.float32(2)).astype("float16").astype("float32")
    np.testing.assert_allclose(got, (b + 1) ** 2, rtol=1e-6)


def test_alignments_are_noted_on_the_block_and_replaced():
    sch, before = start(chain)
    sch.storage_align("B", 0, axis=0, factor=32, offset=8)
    sch.storage_align("B", 0, axis=1, factor=4, offset=1)
    sch.storage_align("B", 0, axis=-2, factor=32, offset=9)
    assert 'T.block_attr({"buffer_dim_align": [[0, 0, 32, 9], [0, 1, 4, 1]]})' in sch.mod.script()
    check(sch, before)
