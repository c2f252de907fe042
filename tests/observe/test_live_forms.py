"""Forms of a program on one page, copies that are left out, and the pages made of them."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import live
from mlc_lab.lower.pipeline import as_module
from mlc_lab.observe.beginning import beginning
from mlc_lab.observe.counts import count_accesses
from mlc_lab.observe.live import Choices
from mlc_lab.observe.live_pages import PAGES
from mlc_lab.observe.measure import only_function, random_arrays
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source

from .programs import matmul
from .test_live import tiled
from .test_sharing import sums


def by_rows():
    """The product in another form, with a knob that the first one has, too, and one of its own."""
    sch = Schedule(matmul(32))
    i, j, k = sch.get_loops("C")
    j0, j1 = sch.split(j, factors=[None, live("tile", 8)])
    i0, i1 = sch.split(i, factors=[None, live("rows", 4)])
    sch.reorder(i0, j0, k, i1, j1)
    return sch


@pytest.fixture
def lab():
    made = Choices({"columns": tiled(), "rows": by_rows()}, caches="1K:2, 8K:4", form="tiles of")
    yield made
    made.close()


def test_knobs_that_are_called_alike_are_one(lab):
    assert [(k.kind, k.name, k.forms) for k in lab.knobs] == [
        ("form", "tiles of", ()), ("number", "tile", ()),
        ("order", "order of loops (columns)", (0,)),
        ("switch", "vectorize j_1", (0,)), ("switch", "decompose_reduction C, p", (0,)),
        ("number", "rows", (1,)), ("order", "order of loops (rows)", (1,))]
    assert lab.knobs[0].to_dict()["labels"] == ["columns", "rows"]


def test_a_form_has_its_own_schedule_and_the_numbers_of_both(lab):
    first = lab.point(lab.first)
    other = lab.point([1, 4, *lab.first[2:]])
    assert "factors=[None, 16]" in other.python and "factors=[None, 4]" in other.python
    assert "vectorize" in first.python and "vectorize" not in other.python
    assert lab.measure(other)["equal"] is True
    lab.count(first), lab.count(other)
    assert lab.why(first, other)


def test_what_a_form_does_not_have_makes_no_other_state(lab):
    own = [2, [0, 1, 2, 3, 4]]
    off = [1, 3, [0, 1, 2, 3], False, True, *own]
    assert lab.point(off) is lab.point([1, 3, [1, 0, 2, 3], True, True, *own])
    assert list(lab.neighbours(off, 3)) == [lab.plain(off)]
    assert [s[0] for s in lab.neighbours(off, 0)] == [0, 1]


def test_forms_with_one_name_and_other_choices_are_told_apart():
    lab = Choices({"small": by_rows(), "large": tiled([4, 8], 8)})
    assert [k.name for k in lab.knobs if "tile" in k.name] == ["tile (small)", "tile (large)"]
    numbers = Choices({"2": tiled(), "4": tiled()}, form="chunks")
    assert (numbers.knobs[0].kind, numbers.knobs[0].labels) == ("number", ("2", "4"))
    with pytest.raises(ValueError, match="no schedule"):
        Choices({})


def test_a_copy_is_left_out_with_all_that_is_about_it():
    sch = Schedule(matmul(32))
    i, j, k = sch.get_loops("C")
    copy = sch.cache_read("C", 1, "global")
    sch.compute_at(copy, i)
    sch.vectorize(sch.get_loops(copy)[-1])
    lab = Choices(sch, begin={"cache_read": False})
    assert [k.name for k in lab.knobs] == ["cache_read B", "compute_at B_global, i",
                                           "vectorize ax1"]
    assert "B_global" in "\n".join(lab.lines(lab.point([True, True, True])))
    assert "B_global" not in "\n".join(lab.lines(lab.point(lab.first)))
    assert "copy" not in lab.point(lab.first).python and "vec" not in lab.point(lab.first).python


def test_what_is_chosen_at_first_can_be_said():
    lab = Choices(tiled(), begin={"tile": 16, "vectorize": False,
                                  "order": ["j_0", "i", "p", "j_1"]})
    assert lab.first == [4, [1, 0, 2, 3], False, True]
    for wrong in ({"tile": 5}, {"tiles": 4}, {"": True}):
        with pytest.raises(ValueError):
            Choices(tiled(), begin=wrong)


def test_the_beginning_of_a_parallel_run_has_work_for_all_threads():
    mod = as_module(sums(8, 4000))
    short, share = beginning(mod, None, 2000)
    assert share < 0.1
    assert "T.parallel(8)" in short.script() and "4000" not in short.script().split("for k")[1]
    found = count_accesses(short, "32K:8", threads=2).sharing
    assert found.shared == 1 and found.moves > 1000


@pytest.mark.parametrize("name", PAGES)
def test_the_counts_of_a_page_are_those_of_its_programs(name):
    page = PAGES[name]
    lab = Choices(page.make(), caches="8K:8, 128K:8", form=page.form, begin=page.begin)
    for state in list(lab.neighbours(lab.first, 0))[:2]:
        point = lab.point(state)
        if point.error is None:
            expected = count_accesses(lab.module(point), "8K:8, 128K:8").to_dict()
            assert lab.count(point)["counts"] == expected
    lab.close()


def convolved(x, w):
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    return np.einsum("cyxrs,fcrs->fyx", windows, w)


def softmax(x):
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("name, reference", [
    ("matrix product", np.matmul), ("transpose", np.transpose), ("convolution", convolved),
    ("softmax", softmax), ("online softmax", softmax),
    ("attention", lambda q, k, v: softmax(q @ k) @ v),
    ("online attention", lambda q, k, v: softmax(q @ k) @ v),
    ("parallel sum", lambda a: np.nansum(a)[None]),
])
def test_every_form_computes_what_numpy_computes(name, reference):
    page = PAGES[name]
    lab = Choices(page.make(), form=page.form, begin=page.begin)
    for state in lab.neighbours(lab.first, 0):
        point = lab.point(state)
        if point.error is not None:
            continue
        arrays = random_arrays(only_function(lab.module(point))[1])
        arrays[0].flat[::7] *= 10  # maxima far apart
        if name == "parallel sum":
            arrays[0][5] = np.nan
        tensors = [tvm.nd.array(a) for a in arrays]
        tvm.build(lab.module(point), "llvm")(*tensors)
        expected = reference(*[a.astype("float64") for a in arrays[:-1]])
        # the parallel sum adds 65,536 numbers of both signs
        near = 1e-2 if name == "parallel sum" else 2e-4
        np.testing.assert_allclose(tensors[-1].numpy(), expected, rtol=2e-4, atol=near)


def test_sums_that_lie_apart_are_not_shared():
    page = PAGES["parallel sum"]
    lab = Choices(page.make(), form=page.form, begin=page.begin)
    near, apart = lab.point(lab.first), lab.point([lab.first[0], 4, *lab.first[2:]])
    found = [count_accesses(lab.module(p), "32K:8, 1M:8", threads=4).sharing for p in (near, apart)]
    assert found[0].buffers.keys() == {"sums"} and found[0].moves > 60_000
    assert found[1].shared == found[1].moves == 0


@pytest.mark.parametrize("name, fewer", [("online softmax", 0.8), ("online attention", 0.2)])
def test_online_forms_miss_less_often(name, fewer):
    lab = Choices(PAGES[name].make())
    misses = [count_accesses(lab.module(lab.point(s)), "32K:8, 1M:8").levels[0].misses
              for s in list(lab.neighbours(lab.first, 0))[:3]]
    assert max(misses[1:]) < fewer * misses[0]
    text = lab.lines(lab.point([1, *lab.first[1:]]))
    assert any("T.exp" in line for line in text)


def test_programs_without_parallel_loops_have_no_moves():
    lab = Choices(tiled(), caches="1K:2")
    point = lab.point(lab.first)
    lab.count(point)
    assert "moves" not in lab.short(point)
    lab.close()
    parallel = Schedule(from_source(sums(8, 16).script()))
    assert count_accesses(parallel, "1K:2", threads=2).to_dict()["sharing"]["threads"] == 2
