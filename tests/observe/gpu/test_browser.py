"""Kernels for the reader's browser: what a page gets of them."""

import base64
import json

import numpy as np
import pytest
from backend.gpu_programs import product

import mlc_lab
from mlc_lab.lower import LowerError
from mlc_lab.observe.gpu.browser import numbers
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source

from .programs import copies, square_tiles

SCALED = from_source("""
@T.prim_func
def main(A: T.Buffer((64,), "float16"), n: T.int32, B: T.Buffer((64,), "float16")):
    S = T.alloc_buffer((64,), "float16")
    for t in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("S"):
            v = T.axis.spatial(64, t)
            S[v] = A[v] + T.float16(1)
    for t in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("B"):
            v = T.axis.spatial(64, t)
            B[v] = T.if_then_else(v < n, S[v], T.float16(0))
""")


def test_it_has_all_that_a_run_needs():
    made = mlc_lab.in_browser(square_tiles(64), names=["tiles"])
    json.dumps(made.data, allow_nan=False)
    (variant,) = made.data["variants"]
    (kernel,) = variant["kernels"]
    assert kernel["read_only"] == [True, True, False]
    assert "@workgroup_size(8, 8, 1)" in kernel["text"]
    assert variant["launches"] == [
        {"kernel": 0, "grid": [2, 2, 1], "buffers": [0, 1, 2], "scalars": ""}]
    assert variant["buffers"] == [64 * 64 * 4] * 3
    assert dict(variant["counts"])["barriers a block"] == "16" and variant["seconds"] > 0
    assert made.data["flop"] == 2 * 64 ** 3


def test_the_right_result_is_that_of_numpy():
    arrays = mlc_lab.in_browser(square_tiles(128), count=False).data["arrays"]
    a, b = (numbers("float32", 128 * 128, row["seed"]).reshape(128, 128) for row in arrays[:2])
    assert [row["expected"] is None for row in arrays] == [True, True, False]
    expected, right = arrays[2]["expected"], (a.astype("float64") @ b).reshape(-1)
    assert expected["every"] == 4 and expected["group"] == 16
    np.testing.assert_allclose(expected["values"], right[::4], atol=1e-4)
    np.testing.assert_allclose(expected["sums"], right.reshape(-1, 16).sum(1), atol=1e-3)


def test_several_launches_numbers_and_memory_in_between():
    made = mlc_lab.in_browser(SCALED, arrays=[np.arange(64, dtype="float16"), 5,
                                              np.zeros(64, "float16")]).data
    (variant,) = made["variants"]
    assert len(variant["launches"]) == 2 and len(variant["buffers"]) == 3
    assert base64.b64decode(variant["launches"][1]["scalars"]) == b"\5\0\0\0"
    assert made["arrays"][1]["expected"]["values"][:7] == [1, 2, 3, 4, 5, 0, 0]
    assert "seed" not in made["arrays"][0]  # a page makes no float16


def test_choices_are_compiled_and_those_that_cannot_be_say_why():
    made = mlc_lab.in_browser(lambda tile: square_tiles(128, tile, 4), names=["tiles"],
                              choices={"tile": [32, 128]}, count=False).data
    assert [v["picked"] for v in made["variants"]] == [{"tile": 32}, {"tile": 128}]
    assert made["variants"][0]["error"] == ""
    assert "1024 threads" in made["variants"][1]["error"]


def test_what_is_refused():
    with pytest.raises(ValueError, match="there is nothing to run"):
        mlc_lab.in_browser()
    with pytest.raises(ValueError, match='"webgpu", not for \'cuda\''):
        mlc_lab.in_browser(copies("t"), target="cuda")
    with pytest.raises(ValueError, match="programs of one page compute the same"):
        mlc_lab.in_browser(copies("t"), square_tiles(64), count=False)
    with pytest.raises(ValueError, match="makes? 100 programs"):
        mlc_lab.in_browser(lambda a: copies("t"), choices={"a": list(range(100))})
    with pytest.raises(ValueError, match="choices\\['a'\\]"):
        mlc_lab.in_browser(lambda a: copies("t"), choices={"a": []})
    with pytest.raises(ValueError, match="2 programs take as many names"):
        mlc_lab.in_browser(copies("t"), copies("t"), names=["one"])
    with pytest.raises(ValueError, match="none of the choices"):
        mlc_lab.in_browser(lambda tile: square_tiles(128, tile, 4), choices={"tile": [128]})
    with pytest.raises(LowerError):
        mlc_lab.in_browser(Schedule(product(16, 16, 16)))
