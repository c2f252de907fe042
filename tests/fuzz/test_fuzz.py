"""Every target holds for the cases of a fixed seed."""

import pytest

from . import harness
from .targets import TARGETS, load


@pytest.mark.parametrize("name", TARGETS)
def test_the_laws_hold(name):
    try:
        module = load(name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        pytest.skip("torch is not installed")
    batch = harness.run(name, module.case, first_seed=2026, cases=TARGETS[name][1])
    assert batch.finding is None, "\n" + batch.finding.text()
