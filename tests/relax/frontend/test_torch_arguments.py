"""Each argument of each operator of ATen that has a rule is honoured or refused."""

import random

import pytest

torch = pytest.importorskip("torch")

from tests.fuzz.harness import Draw
from tests.fuzz.imports import drawn, lost_arguments, name_of, overloads

#: parts of the table of overloads, a test each
PARTS = 8


def has_sample(overload):
    return any(drawn(Draw(random.Random(seed).randint), overload) is not None
               for seed in range(60))


def test_each_operator_with_a_rule_has_a_sample():
    by_name = {}
    for overload in overloads():
        by_name.setdefault(name_of(overload), []).append(overload)
    assert [name for name, kinds in by_name.items() if not any(map(has_sample, kinds))] == []


@pytest.mark.parametrize("part", range(PARTS))
def test_no_argument_is_dropped(part):
    """Calls which differ in one argument, for which torch differs, are not the same program."""
    tried, lost = 0, []
    for overload in overloads()[part::PARTS]:
        number, found = lost_arguments(overload, seeds=6)
        tried += number
        lost += found
    assert lost == [] and tried > 30
