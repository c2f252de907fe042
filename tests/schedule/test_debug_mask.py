"""What `debug_mask=` has checked after every step."""

import pytest

from mlc_lab.schedule import Schedule, ScheduleDebugMask, ScheduleState

from .common import matmul


@pytest.mark.parametrize(("mask", "times"), [
    (ScheduleDebugMask.VERIFY_SREF_TREE, 1), (ScheduleDebugMask.VERIFY_CACHED_FLAGS, 1),
    (ScheduleDebugMask.VERIFY_SREF_TREE | ScheduleDebugMask.VERIFY_CACHED_FLAGS, 1),
    ("all", 1), (-1, 1), ("none", 0), (0, 0), (ScheduleDebugMask(0), 0),
])
def test_the_state_is_checked_after_a_step_by_any_bit(monkeypatch, mask, times):
    sch = Schedule(matmul, debug_mask=mask)
    loop = sch.get_loops("C")[0]
    checked = []
    monkeypatch.setattr(ScheduleState, "verify", lambda self: checked.append(self))
    sch.split(loop, [None, 4])
    assert len(checked) == times
