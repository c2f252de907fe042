"""What TVM's classes of a search are printed as, and how their numbers are read."""

from mlc_lab.meta_schedule.measure.runner import RunnerResult
from mlc_lab.meta_schedule.workload import TensorInfo


def test_times_have_their_numbers_as_values():
    times = RunnerResult([0.5, 1.5]).run_secs
    assert times == [0.5, 1.5] and times[0].value == 0.5 and str(times) == "[0.5, 1.5]"


def test_arguments_are_printed_as_tvm_prints_them():
    info = TensorInfo("float32", (1, 3))
    assert str(info) == 'TensorInfo("float32", [1, 3])' and info.as_json()[2] == [1, 3]
