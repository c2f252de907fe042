"""What TVM's classes of a search are printed as, and how their numbers are read."""

import pytest

from mlc_lab import meta_schedule as ms
from mlc_lab.meta_schedule.measure.runner import RunnerResult
from mlc_lab.meta_schedule.workload import TensorInfo


def test_times_have_their_numbers_as_values():
    times = RunnerResult([0.5, 1.5]).run_secs
    assert times == [0.5, 1.5] and times[0].value == 0.5 and str(times) == "[0.5, 1.5]"


def test_arguments_are_printed_as_tvm_prints_them():
    info = TensorInfo("float32", (1, 3))
    assert str(info) == 'TensorInfo("float32", [1, 3])' and info.as_json()[2] == [1, 3]


def test_times_of_parts_are_added_up():
    with ms.Profiler() as profiler:
        for _ in range(2):
            with ms.Profiler.timeit("part"):
                pass
        assert ms.Profiler.current() is profiler
    found = profiler.get()
    assert list(found) == ["part", "Total"] and 0 < found["part"] < found["Total"]
    assert profiler.table().startswith("Total")
    with ms.Profiler.timeit("nothing"):
        assert ms.Profiler.current() is None


def test_a_context_may_have_no_program():
    context = ms.TuneContext(target="llvm")
    assert context.args_info == []
    with pytest.raises(ms.SpaceError, match="has no program"):
        context.generate_design_space()
