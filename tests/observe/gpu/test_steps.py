"""Counts of a GPU for each step of a schedule."""

from backend.gpu_programs import product

from mlc_lab import count_gpu
from mlc_lab.observe.recording import Recording
from mlc_lab.observe.session import explore, record
from mlc_lab.schedule import Schedule

TAG = "nvidia/geforce-rtx-2080-ti"


def schedule():
    sch = Schedule(product(32, 32, 32))
    i, j, _ = sch.get_loops(sch.get_block("C"))
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    return sch


def test_each_step_has_its_counts():
    sch = schedule()
    recording = record(sch).count_gpu(TAG)
    first, blocks, threads = [p.cost["gpu"] for p in recording.programs]
    assert "no loop is bound" in first["message"]
    (counted,) = count_gpu(sch, TAG, quick=True)
    assert threads["seconds"] == counted.modelled.seconds < blocks["seconds"]
    assert ["blocks of threads", "32 of 32"] in threads["rows"]
    assert Recording.from_dict(recording.to_dict()).programs[2].cost["gpu"] == threads


def test_explore_for_a_gpu_counts_instead_of_measuring():
    view = explore(schedule(), target=TAG)
    cost = view.source.programs[-1].cost
    assert cost["gpu"]["name"] == TAG and "time" not in cost


def test_what_cannot_be_counted_is_told():
    sch = schedule()
    costs = record(sch).count_gpu(TAG, budget_s=-1).programs
    assert "used up" in costs[-1].cost["gpu"]["message"]
    assert record(sch).count_gpu("webgpu").programs[-1].cost["gpu"]["seconds"] > 0
