"""A roof that a program lies above was measured at a busy moment: it is measured again."""

import pytest

from mlc_lab.machine import peak
from mlc_lab.observe.recording import Program, Recording, Step
from mlc_lab.observe.roofline import roofline
from mlc_lab.observe.roofs import lift, sharing_of


@pytest.fixture
def measured(monkeypatch):
    """What measurements will find, one after the other, in GFLOP/s or GB/s."""
    found = {"peak": [], "read": []}
    monkeypatch.setattr(peak, "_best", {})
    monkeypatch.setattr(peak, "_times", peak.Counter())
    monkeypatch.setattr(peak, "measure_peak", lambda dtype: found["peak"].pop(0) * 1e9)
    monkeypatch.setattr(peak, "measure_bandwidth",
                        lambda level, kind, seconds: found["read"].pop(0) * 1e9)
    return found


def recording(gflops, peak_gflops=100.0, cores=1, misses=1000):
    """A recording of one program, of 64,000 operations, that moves lines of 64 bytes."""
    counts = {"levels": [{"name": "L1", "lookups": 9, "misses": misses, "bytes_in": 64 * misses,
                          "bytes_out": 0}],
              "reads": 1, "writes": 1, "bytes_read": 32_000, "bytes_written": 0, "flops": 64_000,
              "intensity": 1.0}
    cost = {"time": 1e-6, "gflops": gflops, "peak_fraction": gflops / peak_gflops,
            "counts": counts}
    made = Recording(title="p", programs=[Program([], cost)],
                     steps=[Step("start", "", 0, 0)])
    made.machine = {"cpu": "x", "cores": cores, "peak_gflops": peak_gflops,
                    "bandwidth": {"L1": 400.0, "memory": 50.0}}
    return made


def test_the_peak_is_measured_again_where_a_program_is_above_it(measured):
    measured["peak"] += [100, 90, 150]
    assert peak.peak() == 100e9 == peak.peak(reached=99e9)
    made = recording(120.0, misses=1)
    lift(made, "float32")
    assert made.machine["peak_gflops"] == 150 and measured["peak"] == []
    assert made.programs[0].cost["peak_fraction"] == pytest.approx(0.8)
    assert roofline(made).above() == []


def test_it_is_measured_again_a_few_times_only_and_what_is_above_is_said(measured):
    measured["peak"] += [100] * 4
    measured["read"] += [400] * 4
    made = recording(1000.0, misses=1)
    lift(made, "float32")
    lift(made, "float32")
    assert made.machine["peak_gflops"] == 100 and measured["peak"] == []
    (said,) = roofline(made).above()
    assert said == "Above the peak: it was measured while the machine was busy."
    assert said in roofline(made).svg()


def test_a_bandwidth_is_measured_again(measured):
    measured["read"] += [50, 110]
    made = recording(80.0)  # 64,000 operations, 64,000 bytes: 80 GB/s
    lift(made, "float32")
    assert made.machine["bandwidth"] == {"L1": 400.0, "memory": 110}
    assert measured["read"] == [] and made.machine["peak_gflops"] == 100
    measured["read"] += [60, 70]
    slow = recording(95.0)
    slow.machine["bandwidth"]["memory"] = 60.0
    lift(slow, "float32")  # a better one is known by now, and none is needed
    assert slow.machine["bandwidth"]["memory"] == 110 and measured["read"] == [60, 70]


def test_data_that_was_in_the_caches_is_said(measured):
    measured["read"] += [50] * 4
    made = recording(80.0)
    lift(made, "float32")
    (said,) = roofline(made).above()
    assert said.startswith("Above the roof of memory: bytes are counted from empty caches")
    assert roofline(made).above("L1") == []


def test_what_has_no_time_or_no_counts_asks_for_nothing(measured):
    made = recording(80.0)
    made.programs[0].cost = {"message": "not measured"}
    lift(made, "float32")
    made.programs[0].cost = {"gflops": 80.0, "counts": {"message": "not counted"}}
    lift(made, "float32")
    lift(recording(101.0, misses=0), "")  # a type whose peak is not known


def test_each_core_has_its_own_caches_but_for_the_last():
    assert sharing_of(["L1", "L2", "L3", "memory"], 4) == [4, 4, 1, 1]
    assert sharing_of(["L1", "memory"], 2) == [1, 1]
