"""What search, default schedules and views are told of a machine is the same."""

import pytest

from mlc_lab.machine import CacheHierarchy, cache_bytes, hardware_of, vector_bits, vector_unit


@pytest.mark.parametrize("target", [
    "llvm", "llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512", "llvm -mcpu=haswell -mattr=-avx2",
    "llvm -mtriple=aarch64-linux-gnu", "llvm -mtriple=x86_64-linux-gnu -mattr=+avx512f",
])
def test_a_search_knows_the_vectors_that_schedules_know(target):
    unit, core = vector_unit(target), hardware_of(target)
    assert (core.vector_bytes * 8, core.registers) == unit
    assert core.lanes("float32") == unit.lanes(32)


def test_this_machine():
    assert vector_unit("llvm").bits == vector_bits() in (128, 256, 512)
    levels = CacheHierarchy.machine().levels
    assert cache_bytes() == {level.name: level.size for level in levels}
    assert hardware_of("llvm").caches[0] == levels[0]
