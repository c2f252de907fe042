"""Copies that an unrolled loop leaves are run by a loop, and counted as they stand."""

import numpy as np
import pytest

from mlc_lab import build
from mlc_lab.lower import lower
from mlc_lab.lower.pipeline import as_module
from mlc_lab.machine.caches import as_hierarchy
from mlc_lab.observe import rolled
from mlc_lab.observe.access import accesses
from mlc_lab.observe.counts import count_accesses
from mlc_lab.observe.instrument import instrument
from mlc_lab.observe.live import Choices
from mlc_lab.observe.live_pages import PAGES
from mlc_lab.script import from_source
from mlc_lab.tir.functor import all_statements
from mlc_lab.tir.stmt import SeqStmt

CACHES = "1K:2, 8K:4"
SEVERAL = """
@T.prim_func
def main(A: T.Buffer((200,), "float32"), K: T.Buffer((64,), "int32"),
         B: T.Buffer((80,), "float32"), C: T.Buffer((64,), "float32")):
    T.func_attr({"tir.noalias": True})
    for j in range(3):
        for i in T.unroll(21):
            B[i * 3 + j] = A[i * 7 + j] + A[K[i + j] % 64]
            C[62 - i] = B[i + 1] * T.float32(2) + A[i]
    for i in T.unroll(40):
        C[i] = C[i] + T.Cast("float32", i)
"""
PARALLEL = """
@T.prim_func
def main(A: T.Buffer((8, 32), "float32"), S: T.Buffer((200,), "float32")):
    for i in T.parallel(8):
        for j in T.unroll(32):
            S[i + j * 5] = S[i + j * 5] + A[i, j]
"""


def unrolled_product(rows, columns):
    """The ready-made page with a body of many copies."""
    page = PAGES["matrix product"]
    lab = Choices(page.make(64), form=page.form)
    state = list(lab.first)
    for at, label in ((0, rows), (1, columns), (2, "2"), (3, "4")):
        state[at] = lab.knobs[at].labels.index(label)
    return lab.module(lab.point(state))


def programs():
    written = {"several": SEVERAL, "parallel": PARALLEL}
    return {**{name: as_module(from_source(text)) for name, text in written.items()},
            "product": unrolled_product("8", "32")}


def told(mod, **options):
    trace = accesses(mod, threads=4, **options)
    return [(trace.places[b].name, e, n, w, t, v) for b, e, n, w, t, v in zip(
        trace.buffer.tolist(), trace.element.tolist(), trace.nbytes.tolist(), trace.write.tolist(),
        trace.thread.tolist(), map(tuple, trace.values.tolist()))]


@pytest.mark.parametrize("name", ["several", "parallel", "product"])
def test_a_loop_over_copies_makes_the_same_accesses(name, monkeypatch):
    mod = programs()[name]
    order = told(mod)
    counts = count_accesses(mod, CACHES, threads=4)
    found = [run for s in all_statements(next(iter(lower(mod).functions.values())).body)
             if type(s) is SeqStmt for run in rolled.runs(s.seq)]
    assert found and all(run.count >= 16 for run in found)
    monkeypatch.setattr(rolled, "_LEAST", 1 << 30)
    assert order == told(mod)
    assert counts.to_dict() == count_accesses(mod, CACHES, threads=4).to_dict()


@pytest.mark.parametrize("name", ["several", "product"])
def test_a_program_that_is_counted_still_computes(name):
    mod = programs()[name]
    made = instrument(mod, as_hierarchy(CACHES))
    given = [a.copy() for a in made.arguments]
    made.run(*made.arguments)
    build(mod)["main"](*given)
    for a, b in zip(given, made.arguments):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_of_a_body_of_thousands_of_statements_few_are_left():
    mod = lower(as_module(unrolled_product("64", "64")))
    copies = max((s.seq for f in mod.functions.values() for s in all_statements(f.body)
                  if type(s) is SeqStmt), key=len)
    assert len(copies) > 1000 and len(rolled.runs(copies)) < 40

def test_statements_that_differ_in_more_than_an_index_are_no_copies():
    body = next(iter(lower(from_source(SEVERAL)).functions.values())).body
    items = next(s.seq for s in all_statements(body) if type(s) is SeqStmt)
    assert not rolled.runs(items[-40:])  # each casts another number
