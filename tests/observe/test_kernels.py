"""The kernels of a run: their nodes in the graph, their programs and schedules, what they wrote."""

import numpy as np
import pytest

import mlc_lab
from mlc_lab import relax
from mlc_lab.ir import structural_equal
from mlc_lab.observe.kernels import Kernels

from .pipelines import module


@pytest.fixture(scope="module")
def executable():
    return relax.build(module(), "llvm")


@pytest.fixture(scope="module")
def run(executable):
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(s).astype("float32") for s in ((1, 64), (64, 32), (32, 10))]
    return relax.VirtualMachine(executable, mlc_lab.cpu()).trace("main", *args).show()


def kernels_of(run):
    return [step for step in run.data["steps"] if step["kernel"]]


def test_a_kernel_is_a_node_of_the_graph(run):
    nodes = [run.data["nodes"][step["node"]] for step in kernels_of(run)]
    assert [node["label"] for node in nodes] == [step["name"] for step in kernels_of(run)]
    first, second, third = nodes
    assert [t["name"] for t in first["takes"]] == ["x", "w0"]
    assert second["takes"][0]["node"] == run.data["nodes"].index(first)
    assert third["takes"][0]["node"] == run.data["nodes"].index(second)


def test_what_kernels_wrote_is_what_they_give(run):
    last = kernels_of(run)[-1]
    ((_, index),) = last["wrote"].items()
    softmax = run.data["values"][index]
    assert softmax["shape"] == [1, 10] and sum(softmax["numbers"]) == pytest.approx(1, abs=1e-4)
    given = [run.data["values"][n] for n in run.data["given"].values()]
    assert [g["shape"] for g in given] == [[1, 64], [64, 32], [32, 10]]
    assert given[1]["picture"] and not given[0]["picture"]


def test_the_schedule_of_a_kernel_ends_in_what_was_compiled(executable, run):
    for name in run.kernels.names():
        sch = run.kernels.schedule(name)
        (built,) = [f for v, f in executable.kernels.functions.items() if v.name_hint == name]
        assert structural_equal(sch.mod["main"].replace(attrs=built.attrs), built)
        recording, note = run.kernels.recording(name)
        assert len(recording.steps) > 1 and "default schedule" in note


def test_a_kernel_that_was_scheduled_before_is_shown_as_it_was_compiled():
    mod = relax.get_pipeline("kernels")(module())
    from mlc_lab.dlight import ApplyDefaultSchedule

    ex = relax.build(ApplyDefaultSchedule()(mod), "llvm", pipeline="scheduled")
    kernels = Kernels(ex, "main")
    name = kernels.names()[0]
    assert kernels.schedule(name) is None
    recording, note = kernels.recording(name)
    assert len(recording.steps) == 1 and "as it was compiled" in note


def test_of_an_executable_from_a_file_there_are_no_programs(executable, tmp_path):
    path = tmp_path / "model.so"
    executable.export_library(str(path))
    vm = relax.VirtualMachine(relax.vm.load(str(path)), mlc_lab.cpu())
    run = vm.trace("main", *[np.ones(s, "float32") for s in ((1, 64), (64, 32), (32, 10))]).show()
    assert run.data["nodes"] == [] and kernels_of(run)[0]["node"] is None
    assert kernels_of(run)[0]["wrote"]
    with pytest.raises(KeyError, match="no program"):
        run.kernels.recording(kernels_of(run)[0]["name"])


def test_building_leaves_the_instruments_as_they_were():
    from mlc_lab.ir.transform import PassContext

    before = list(PassContext.current().instruments)
    relax.build(module(), "llvm")
    assert PassContext.current().instruments == before
