"""Measuring the machine: the numbers are plausible and the mistakes explained."""

import pytest

from mlc_lab.machine import peak


def test_the_peak_is_plausible_and_double_precision_is_half():
    single = peak.measure_peak("float32", 0.05)
    double = peak.measure_peak("float64", 0.05)
    assert 1e9 < single < 1e12 and 1.2 < single / double < 3
    assert peak.peak() == peak.peak()


def test_caches_are_faster_than_memory():
    near, far = (peak.measure_bandwidth(level, seconds=0.05) for level in ("L1", "memory"))
    assert 1e9 < far < near < 5e12
    assert peak.measure_bandwidth("L2", "triad", 0.02) > 1e9


def test_mistakes_are_explained():
    with pytest.raises(ValueError, match="not for 'int8'"):
        peak.measure_peak("int8")
    with pytest.raises(ValueError, match="not 'L9'"):
        peak.measure_bandwidth("L9")
    with pytest.raises(ValueError, match="not for 'write'"):
        peak.measure_bandwidth("L1", "write")
