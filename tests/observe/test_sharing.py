"""Cache lines that threads take from each other: exact, against a count as a reader would do it."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlc_lab.observe.counts import count_accesses
from mlc_lab.observe.measure import Unmeasurable
from mlc_lab.observe.sharing import count_sharing
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source

from .programs import matmul
from .slow_sharing import division, sharing



def sums(rows=8, columns=16, apart=1):
    """The sums of some rows, in memory, so many floats apart."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows}, {columns}), "float32"), S: T.Buffer(({rows * apart},), "float32")):
    for i in T.parallel({rows}):
        for k in range({columns}):
            S[i * {apart}] = S[i * {apart}] + A[i, k]
""")


def test_sums_side_by_side_move_at_each_addition():
    found = count_sharing(sums(), threads=2, line=64)
    assert (found.written, found.shared) == (1, 1)
    assert found.moves == 8 * 16 - 1  # each but the first takes the line from the other thread
    assert found.buffers == {"S": {"shared": 1, "moves": 127}}
    assert "1 of 1 lines" in str(found) and "S: 1 lines, 127 moves" in str(found)


def test_sums_a_line_apart_do_not_move():
    found = count_sharing(sums(apart=16), threads=2, line=64)
    assert (found.written, found.shared, found.moves, found.buffers) == (8, 0, 0, {})
    assert "none is used by two threads" in str(found)
    assert count_sharing(sums(apart=8), threads=2, line=64).shared == 0
    assert count_sharing(sums(apart=8), threads=8, line=64).shared == 4
    assert count_sharing(sums(apart=8), threads=8, line=32).shared == 0


def test_one_thread_shares_with_nobody():
    assert count_sharing(sums(), threads=1).moves == 0
    assert count_sharing(matmul(8), threads=4).shared == 0  # no parallel loop


def test_lines_that_are_only_read_are_not_shared():
    sch = Schedule(matmul(32))
    sch.parallel(sch.get_loops("C")[0])
    found = count_sharing(sch, threads=4, line=64)
    assert found.shared == found.moves == 0 and found.written == 32 * 32 * 4 // 64


def test_memory_allocated_in_the_loop_is_each_threads_own():
    mod = from_source("""
@T.prim_func
def main(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 64), "float32")):
    for i in T.parallel(8):
        row = T.alloc_buffer((64,))
        for k in range(64):
            row[k] = A[i, k] + T.float32(1)
        for k in range(64):
            B[i, k] = row[63 - k]
""")
    assert count_sharing(mod, threads=4, line=64, registers=False).shared == 0


def test_what_depends_on_data_is_counted_on_the_data():
    mod = from_source("""
@T.prim_func
def main(at: T.Buffer((4,), "int32"), C: T.Buffer((64,), "float32")):
    for i in T.parallel(4):
        if at[i] >= 0:
            C[at[i]] = C[at[i]] + T.float32(1)
""")
    def counted(*at):
        arrays = [np.array(at, "int32"), np.zeros(64, "float32")]
        found = count_sharing(mod, threads=4, line=64, arrays=arrays)
        assert not arrays[1].any()  # the arguments are copied
        return found.written, found.shared, found.moves

    assert counted(0, 16, 32, 48) == (4, 0, 0)
    assert counted(0, 1, 32, 33) == (2, 2, 2)
    assert counted(0, -1, -1, 1) == (1, 1, 1)


def test_the_counts_of_accesses_have_it_where_a_loop_is_parallel():
    counts = count_accesses(sums(), "32K:8", threads=2)
    assert counts.sharing == count_sharing(sums(), threads=2, line=64)
    assert counts.to_dict()["sharing"]["moves"] == 127
    assert "1 of 1 lines" in str(counts)
    assert count_accesses(matmul(8), "32K:8").to_dict()["sharing"] is None


@pytest.mark.parametrize("wrong", [{"threads": 0}, {"threads": 5000}, {"line": 48}, {"line": 0}])
def test_what_cannot_be_counted_is_refused(wrong):
    with pytest.raises(ValueError):
        count_sharing(sums(), **wrong)


def test_a_line_that_is_used_too_often_is_refused(monkeypatch):
    monkeypatch.setattr("mlc_lab.observe.sharing._MOST", 100)
    with pytest.raises(Unmeasurable, match="smaller program"):
        count_sharing(sums(), threads=2, line=64)


def test_a_log_that_is_too_long_is_read_in_parts(monkeypatch):
    mod = sums(32, 8, apart=5)
    whole = count_sharing(mod, threads=8, line=64)
    monkeypatch.setattr("mlc_lab.observe.sharing._BATCH", 100)
    assert count_sharing(mod, threads=8, line=64) == whole and whole.shared >= 4


@pytest.mark.parametrize("extent, threads", [(1, 2), (2, 4), (5, 2), (7, 3), (16, 2), (33, 4),
                                             (100, 8)])
def test_iterations_are_divided_as_the_pool_divides_them(extent, threads):
    """Each writes to a line of its own, or to one that all have: then it is used by all threads."""
    mine = division(extent, threads)
    assert sorted(i for part in mine for i in part) == list(range(extent))
    bounds = [i for part in mine[:-1] for i in part[-1:]]
    mod = from_source(f"""
@T.prim_func
def main(C: T.Buffer(({extent + 1},), "float32")):
    for i in T.parallel({extent}):
        C[i] = T.float32(1)
        C[i + 1] = T.float32(1)
""")
    # neighbours share an element exactly where one thread's iterations end
    assert count_sharing(mod, threads=threads, line=4).shared == len(bounds)


# ------------------------------------------------------------------------------ random programs


@st.composite
def nests(draw):
    """A parallel loop around statements and inner loops, as text and as its statements."""
    extent = draw(st.integers(2, 9))
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        inner = draw(st.sampled_from([0, 0, 1, 3, 5]))
        index = [draw(st.integers(0, 5)) for _ in range(6)]
        parts.append((inner, index, draw(st.booleans()), draw(st.sampled_from([1, 1, 4]))))
    return extent, parts


def text_of(loops):
    lines = ["@T.prim_func", "def main(X: T.Buffer((256,), 'float32'), Y: T.Buffer((256,), "
             "'float32')):"]
    for extent, parts in loops:
        lines.append(f"    for i in T.parallel({extent}):")
        for inner, (a, b, c, d, e, f), reads, lanes in parts:
            at = "        "
            if inner:
                lines.append(f"{at}for k in range({inner}):")
                at += "    "
            k = "k" if inner else "0"
            store, load = f"i * {a} + {k} * {b} + {c}", f"i * {d} + {k} * {e} + {f}"
            if lanes > 1:
                store = f"({store}) : ({store}) + {lanes}"
                load = f"({load}) : ({load}) + {lanes}"
            value = f"X[{store}] + Y[{load}]" if reads else f"Y[{load}]"
            lines.append(f"{at}X[{store}] = {value}")
    return "\n".join(lines) + "\n"


def runs_of(loops, line):
    """The statements of each iteration of each parallel loop; Y lies in lines of its own."""
    per, runs = line // 4, []
    for extent, parts in loops:
        run = []
        for i in range(extent):
            statements = []
            for inner, (a, b, c, d, e, f), reads, lanes in parts:
                for k in range(max(inner, 1)):
                    store, load = i * a + k * b + c, i * d + k * e + f
                    made = [("Y", (load + n) // per) for n in range(lanes)]
                    mine = [("X", (store + n) // per) for n in range(lanes)]
                    first = mine if reads else []
                    statements.append([(x, False) for x in [*first, *made]]
                                      + [(x, True) for x in mine])
            run.append(statements)
        runs.append(run)
    return runs


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(nests(), min_size=1, max_size=2), st.integers(2, 5), st.sampled_from([16, 64]))
def test_random_programs_are_counted_as_by_hand(loops, threads, line):
    found = count_sharing(from_source(text_of(loops)), threads=threads, line=line)
    written, shared, moves = sharing(runs_of(loops, line), threads)
    assert (found.written, found.shared) == (len(written), len(shared))
    assert found.moves == sum(moves.values())
    assert found.buffers == ({"X": {"shared": len(shared), "moves": found.moves}} if shared else {})
