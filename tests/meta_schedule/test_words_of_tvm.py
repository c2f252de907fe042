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


def test_a_random_model_goes_on_where_it_was_saved(tmp_path):
    from mlc_lab.meta_schedule.cost_model import RandomModel
    from mlc_lab.reading.errors import DataError

    model, context = RandomModel(seed=3), ms.TuneContext()
    model.predict(context, [None] * 5)
    model.save(str(tmp_path / "model"))
    first = model.predict(context, [None] * 7)
    model.load(str(tmp_path / "model"))
    assert (model.predict(context, [None] * 7) == first).all()
    for text in ("{}", "[1]", '{"random_model": {"bit_generator": "PCG64"}, "max_range": 1}', "x"):
        (tmp_path / "other").write_text(text)
        with pytest.raises(DataError):
            model.load(str(tmp_path / "other"))


@pytest.mark.parametrize("name", ["f_build", "f_export"])
def test_functions_that_nobody_has_registered_are_refused(name):
    with pytest.raises(ValueError, match=f"{name}='mine'.*no global function 'mine'"):
        ms.builder.LocalBuilder(**{name: "mine"})
