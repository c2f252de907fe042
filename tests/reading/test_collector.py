"""Reading large texts pauses the search for garbage; a compilation searches less often."""

import gc

import pytest
from mlc_lab.reading.collector import RARELY, collects_rarely, makes_many
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


def test_a_search_is_rarer_during_a_compilation_and_as_before_after_it():
    usual = gc.get_threshold()
    seen = []

    @collects_rarely
    def inner():
        seen.append(gc.get_threshold())

    @collects_rarely
    def outer(fails):
        inner()
        seen.append(gc.get_threshold())
        if fails:
            raise KeyError

    outer(False)
    with pytest.raises(KeyError):
        outer(True)
    assert {first for first, *_ in seen} == {RARELY} and gc.get_threshold() == usual
    gc.set_threshold(0)
    try:
        inner()  # whoever has switched it off keeps it off
        assert seen[-1][0] == 0 == gc.get_threshold()[0]
    finally:
        gc.set_threshold(*usual)
