"""Reading large texts pauses the search for garbage, and takes it up again."""

import gc

import pytest
from mlc_lab.reading.collector import makes_many
from mlc_lab.script import from_source


@makes_many
def outer(fail=False):
    assert not gc.isenabled()
    inner()
    assert not gc.isenabled()
    if fail:
        raise ValueError


@makes_many
def inner():
    assert not gc.isenabled()


def test_the_search_is_paused_and_taken_up_again():
    assert gc.isenabled()
    outer()
    assert gc.isenabled()
    with pytest.raises(ValueError):
        outer(fail=True)
    assert gc.isenabled()


def test_no_search_while_a_long_script_is_read():
    text = "@T.prim_func\ndef main(A: T.Buffer((4,), 'float32')):\n" + (
        "    A[0] = A[1] + T.float32(1)\n" * 3_000)
    met = []
    gc.callbacks.append(lambda phase, info: met.append(phase))
    try:
        from_source(text)
    finally:
        gc.callbacks.pop()
    assert len(met) <= 8  # before and after it
