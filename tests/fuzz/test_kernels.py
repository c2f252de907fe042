"""Kernels that were wrong once."""

import random

import pytest

from .harness import Draw
from .kernels import case


@pytest.mark.parametrize("seed", [100003, 100004, 100006])
def test_loops_with_barriers_are_not_cut_at_another_place_in_each_thread(seed):
    case(Draw(random.Random(seed).randint))
