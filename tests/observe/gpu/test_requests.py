"""Sectors and bank conflicts of single requests, worked out by hand."""

import numpy as np
import pytest
from mlc_lab.observe.gpu.requests import NONE, passes, sectors

LANES = np.arange(32, dtype=np.int64)


def count(addresses, nbytes=4):
    return len(sectors(np.asarray(addresses, np.int64).reshape(1, -1), nbytes)[1])


@pytest.mark.parametrize(("stride", "wanted"), [(1, 4), (2, 8), (4, 16), (8, 32), (32, 32)])
def test_sectors_by_stride(stride, wanted):
    """32 floats one after the other are 128 bytes: 4 sectors. From stride 8 on each has its own."""
    assert count(LANES * stride * 4) == wanted


def test_sectors_of_special_requests():
    assert count(LANES * 0 + 64) == 1  # all lanes the same word
    assert count(LANES * 4 + 4) == 5  # not at a multiple of 32 bytes
    assert count(LANES * 16, 16) == 16  # float4: 512 bytes
    assert count(LANES * 2, 2) == 2  # float16: 64 bytes
    assert count(np.where(LANES < 5, LANES * 4, NONE)) == 1
    assert count(np.full(32, NONE)) == 0
    assert count(LANES[::-1] * 4) == 4  # the order of lanes does not matter


def test_sectors_of_several_warps_are_told_apart():
    warp, sector = sectors(np.stack([LANES * 4, LANES * 4 + 32]), 4)
    assert warp.tolist() == [0] * 4 + [1] * 4 and sector.tolist() == [0, 1, 2, 3, 1, 2, 3, 4]


def conflicts(words, nbytes=4):
    found, least = passes(np.asarray(words, np.int64).reshape(1, -1) * 4, nbytes)
    return found - least


@pytest.mark.parametrize(("stride", "wanted"), [(0, 0), (1, 0), (2, 1), (3, 0), (4, 3), (32, 31),
                                                (33, 0)])
def test_conflicts_by_stride(stride, wanted):
    """A stride of 32 words puts all lanes into one bank, and one of 33 (a padded row) into none."""
    assert conflicts(LANES * stride) == wanted


def test_conflicts_of_special_requests():
    assert conflicts(LANES // 2) == 0  # pairs of lanes share a word
    assert conflicts(np.where(LANES < 16, 0, 32)) == 1  # two words of one bank
    assert conflicts(LANES * 4, 16) == 0  # float4: four quarters, each without conflict
    assert passes(LANES.reshape(1, -1) * 16, 16) == (4, 4)
    assert conflicts(LANES * 8, 16) == 4  # every other float4: two lanes a bank in each quarter
    assert passes(LANES.reshape(1, -1) * 8, 8) == (2, 2)
    assert passes(np.full((1, 32), NONE), 4) == (0, 0)
    assert passes(LANES.reshape(1, -1), 1) == (1, 1)  # bytes: four lanes a word
