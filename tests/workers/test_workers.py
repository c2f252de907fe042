"""Worker processes: pools that outlive them, limits, and messages that execute nothing."""

import json
import math
import os
import pickle
import time
from pathlib import Path

import numpy as np
import pytest

from mlc_lab.ir import IRModule, assert_structural_equal
from mlc_lab.script import from_source
from mlc_lab.workers.messages import LENGTH, decode, encode
from mlc_lab.workers.pool import Worker, WorkerPool


@pytest.fixture(autouse=True)
def service(monkeypatch):
    """The service `crashing` is beside this file."""
    old = os.environ.get("PYTHONPATH")
    here = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", here + (os.pathsep + old if old else ""))


def test_a_pool_outlives_its_workers():
    pool = WorkerPool(1, lambda: Worker("crashing"))
    try:
        first = pool.submit({"do": "ping"}, 60).result()
        assert first["status"] == "ok"
        died = pool.submit({"do": "crash"}, 60).result()
        assert died["status"] == "crash" and "SIGSEGV" in died["reason"]
        hung = pool.submit({"do": "hang"}, 0.5).result()
        assert hung["status"] == "timeout" and "0.5 s" in hung["reason"]
        again = pool.submit({"do": "ping"}, 60).result()
        assert again["status"] == "ok" and again["pid"] != first["pid"]
        unknown = pool.submit({"do": "sing"}, 60).result()
        assert unknown["status"] == "error"
        odd = pool.submit({"do": "ping", "what": lambda: None}, 60).result()
        assert odd["status"] == "error" and "cannot be sent" in odd["reason"]
    finally:
        pool.close()


def test_no_search_for_garbage_walks_over_what_was_imported():
    worker = Worker("crashing")
    try:
        found = worker.call({"do": "searched"}, 60)
        assert found["left"] > 10 * found["walked"]
    finally:
        worker.close()


def test_memory_is_limited():
    pool = WorkerPool(1, lambda: Worker("crashing", memory=256 << 20))
    try:
        reply = pool.submit({"do": "take", "bytes": 1 << 30}, 60).result()
        assert reply["status"] == "memory"
        small = pool.submit({"do": "take", "bytes": 1 << 20}, 60).result()
        assert small["status"] == "ok"
    finally:
        pool.close()


def test_what_has_not_begun_can_be_dropped():
    pool = WorkerPool(1, lambda: Worker("crashing"))
    try:
        pool.submit({"do": "ping"}, 60).result()
        running = pool.submit({"do": "hang"}, 1)
        waiting = pool.submit({"do": "ping"}, 60)
        time.sleep(0.2)
        pool.cancel()
        assert waiting.cancelled() and running.result()["status"] == "timeout"
    finally:
        pool.close()


@pytest.mark.parametrize("data", [
    pickle.dumps(print), LENGTH.pack(1 << 60), LENGTH.pack(4) + b"true",
    LENGTH.pack(12) + LENGTH.pack(4) + b"null", LENGTH.pack(16) + LENGTH.pack(8) + b'{"$": 1}'],
    ids=["pickle", "length", "short", "null", "kind"])
def test_nonsense_among_the_answers_is_a_crash(data):
    """It is not executed, and the next request finds a worker that is whole."""
    pool = WorkerPool(1, lambda: Worker("crashing"))
    try:
        assert pool.submit({"do": "garble", "bytes": data}, 20).result()["status"] in (
            "crash", "timeout")
        assert pool.submit({"do": "ping"}, 60).result()["status"] == "ok"
    finally:
        pool.close()


def test_values_travel_as_they_are():
    function = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    for i in range(4):
        A[i] = T.float32(1)
""")
    value = {"text": "x", "none": None, "flag": True, "number": 3, "list": [1, [2.5, -math.inf]],
             "raw": b"\0\xff", "by number": {0: np.arange(3), 1: b""},
             "$": "a key like the mark", "half": np.ones((2, 0, 3), "float16"),
             "scalar": np.float64(2.5), "swapped": np.arange(6).reshape(2, 3).T}
    back = decode(encode(value))
    assert list(back) == list(value)
    for key, old in value.items():
        new = back[key]
        if isinstance(old, np.ndarray):
            assert new.dtype == old.dtype and np.array_equal(new, old)
        elif key == "by number":
            assert np.array_equal(new[0], old[0]) and new[1] == b""
        else:
            assert new == old
    module = decode(encode([IRModule({"main": function})]))[0]
    assert_structural_equal(module["main"], function)
    for odd in (print, object(), np.array([object()]), {"deep": [lambda: 0]}, {(1, 2): 3}):
        with pytest.raises(TypeError, match="cannot be sent to a worker"):
            encode(odd)


def test_damaged_messages_are_refused():
    whole = encode({"a": b"12345", "b": np.arange(4), "c": [1, {"d": "e"}]})
    rng = np.random.default_rng(0)
    for _ in range(2000):
        data = bytearray(whole)
        for at in rng.integers(0, len(data), rng.integers(1, 4)):
            data[at] = rng.integers(0, 256)
        try:
            decode(bytes(data[:rng.integers(0, len(data) + 1)] if rng.random() < 0.3 else data))
        except (ValueError, json.JSONDecodeError):
            pass


def test_a_worker_tells_what_it_has_before_its_answer():
    worker, heard = Worker("crashing"), []
    try:
        asked = {"do": "count", "upto": 3, "wait": 0.1}
        reply = worker.call(asked, 60, lambda event: heard.append((event["number"], time.time())))
        assert reply == {"status": "ok", "upto": 3} and [n for n, _ in heard] == [0, 1, 2]
        assert heard[2][1] - heard[0][1] > 0.1  # each as it came, and not all at the end
        assert worker.call(asked, 60) == reply  # nobody listens
        assert worker.call({"do": "ping"}, 60)["status"] == "ok"
        del heard[:]
        died = worker.call({**asked, "die": 2}, 60, heard.append)
        assert died["status"] == "crash" and len(heard) == 2
    finally:
        worker.close()
    worker, start = Worker("crashing"), time.monotonic()
    # what is told does not prolong the time that there is
    slow = worker.call({"do": "count", "upto": 99, "wait": 0.5}, 4)
    assert slow["status"] == "timeout" and time.monotonic() - start < 15 and not worker.alive
