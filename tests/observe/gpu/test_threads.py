"""What the threads of a block do: recorded, it agrees with the counts."""

import json

import pytest
from backend.gpu_programs import tiled

import mlc_lab
from mlc_lab.observe.gpu import threads
from mlc_lab.observe.measure import Unmeasurable

from .programs import copies, kernel, square_tiles, through_shared

TAG = "nvidia/geforce-rtx-2080-ti"


@pytest.mark.parametrize("mod", [
    square_tiles(32, 16, 2), tiled(32, 32, 32, vthreads=True), copies("t * 2 + b", grid=3),
    through_shared("t * 2", "t * 33 % 32")], ids=["tiles", "virtual threads", "copies", "shared"])
def test_it_agrees_with_the_counts(mod):
    (k,) = mlc_lab.count_gpu(mod, TAG)
    found = {}
    barriers = 0
    for block in range(k.blocks):
        data = mlc_lab.record_threads(mod, TAG, block=block).data
        assert data["total"] == len(data["events"])
        for site, *rest in data["events"]:
            if site < 0:
                barriers += 1
                continue
            lanes, _, asked = rest
            active = [n for n in data["lanes"][lanes] if n is not None]
            assert active and len(asked) == k.warps
            row = found.setdefault(site, [0, 0])
            row[0] += sum(n > 0 for n in asked)
            row[1] += sum(asked)
    assert barriers == k.barriers * k.blocks
    assert list(found.values()) == [[s.requests, s.sectors or s.passes] for s in k.sites]


def test_elements_are_those_of_the_program():
    data = mlc_lab.record_threads(copies("t * 3 + b", block=40, grid=2), TAG, block=1).data
    site, lanes, shift, asked = data["events"][0]
    assert data["buffers"][data["sites"][site]["buffer"]]["name"] == "A"
    at = data["lanes"][lanes]
    assert [n + shift for n in at[:40]] == [t * 3 + 1 for t in range(40)]
    assert at[40:] == [None] * 24 and len(asked) == 2


def test_it_is_plain_data_and_says_what_would_lift_the_occupancy():
    data = mlc_lab.record_threads(square_tiles(32, 16, 2), TAG).data
    assert json.loads(json.dumps(data)) == data
    o = data["occupancy"]
    for name, rows in o["lifted"].items():
        (own,) = [row for row in rows if row[0] == o["now"][name]]
        assert own[1:] == [o["blocks"], o["warps"], o["limit"]]
        assert rows == sorted(rows)


def test_only_the_first_events_are_kept(monkeypatch):
    monkeypatch.setattr(threads, "MOST", 10)
    data = mlc_lab.record_threads(square_tiles(32, 16, 2), TAG).data
    assert len(data["events"]) == 10 < data["total"]


def test_what_is_not_there_is_refused():
    mod = copies("t", grid=3)
    with pytest.raises(ValueError, match="has 3 blocks.*no block 3"):
        mlc_lab.record_threads(mod, TAG, block=3)
    with pytest.raises(ValueError, match="no kernel 'other'; there are 0: main_kernel"):
        mlc_lab.record_threads(mod, TAG, kernel="other")
    missed = kernel('if t < 3:\n    T.tvm_storage_sync("shared")\n    B[t] = A[t]',
                    'A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")')
    with pytest.raises(Unmeasurable, match="wait for ever"):
        mlc_lab.record_threads(missed, TAG)
