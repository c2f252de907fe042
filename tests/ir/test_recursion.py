"""Walks over deep trees get a larger stack, once, and leave everything as it was."""

import sys
import threading
import time
from contextvars import ContextVar

import pytest
from mlc_lab.ir import MLCError
from mlc_lab.ir.recursion import DepthError, depth, grows_stack, with_large_stack, with_room_for
from mlc_lab.target import Target
from mlc_lab.tir import IntImm, Var


def levels(n):
    """n calls inside each other."""
    return 0 if n == 0 else 1 + levels(n - 1)


def entered_from_c(n):
    """The same by way of a function written in C, which takes more stack."""
    return n and 1 + [*map(entered_from_c, [n - 1])][0]


#: Python 3.12 and 3.13 count calls by way of C on their own, up to a bound that cannot be raised
BOUNDED = (3, 12) <= sys.version_info < (3, 14)


@pytest.mark.parametrize("walk, deep", [(levels, 20_000),
                                        (entered_from_c, 3_000 if BOUNDED else 20_000)])
def test_a_deep_walk_runs_again_with_room(walk, deep):
    limit = sys.getrecursionlimit()
    with pytest.raises(RecursionError):
        walk(deep)
    assert grows_stack(walk)(deep) == walk(1) * deep
    assert sys.getrecursionlimit() == limit


@pytest.mark.skipif(not BOUNDED, reason="this version of Python has no such bound")
def test_what_python_bounds_itself_is_an_error_of_the_project():
    with pytest.raises(DepthError, match="nested too deeply"):
        grows_stack(entered_from_c)(40_000)


def test_a_walk_without_end_is_an_error_of_the_project():
    def forever(n):
        return forever(n + 1)

    with pytest.raises(DepthError, match="nested too deeply") as caught:
        grows_stack(forever)(0)
    assert isinstance(caught.value, MLCError) and isinstance(caught.value, RecursionError)
    assert levels(100) == 100


def test_shallow_walks_stay_in_their_thread():
    assert grows_stack(threading.get_ident)() == threading.get_ident()


def test_context_goes_along_and_errors_come_back():
    var = ContextVar("var", default=0)
    var.set(3)
    with Target("llvm -mcpu=skylake"):
        assert with_large_stack(lambda: (var.get(), Target.current().mcpu)) == (3, "skylake")
    with pytest.raises(KeyError, match="lost"):
        with_large_stack(lambda: {}["lost"])


def test_nested_walks_use_one_large_stack():
    threads = with_large_stack(lambda: (threading.get_ident(), grows_stack(levels)(50_000),
                                        with_large_stack(threading.get_ident)))
    assert threads[0] == threads[2] != threading.get_ident()


def test_two_threads_may_need_room_at_once():
    results = []
    workers = [threading.Thread(target=lambda: results.append(grows_stack(levels)(100_000)))
               for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == [100_000] * 4


def test_a_limit_is_not_lowered_under_a_thread_that_is_deep():
    """Python would end the process: "Cannot recover from stack overflow"."""
    usual, results = sys.getrecursionlimit(), []
    for turn in range(5):
        workers = [threading.Thread(target=lambda k=k, turn=turn: (
            time.sleep(k * 0.003 * turn), results.append(grows_stack(levels)(60_000 - 9_000 * k))))
            for k in range(6)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert len(results) == 30 and sys.getrecursionlimit() == usual


def test_depth_counts_levels_and_room_is_given_beforehand():
    x = Var("x", "int32")
    e = x
    for _ in range(300):
        e = e + x
    assert depth(x) == 1 and depth(x + IntImm("int32", 2) * x) == 3 and depth(e) == 301
    here = threading.get_ident()
    assert with_room_for(x, threading.get_ident) == here
    assert with_room_for(e, threading.get_ident) != here


def test_depth_of_a_shared_tree_is_found_at_once():
    e = Var("x", "int32")
    for _ in range(100):
        e = e + e
    assert depth(e) == 101
