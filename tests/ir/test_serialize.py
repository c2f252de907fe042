"""Saving to JSON and loading back."""

import json

import numpy as np
import pytest

from mlc_lab.ir.module import IRModule
from mlc_lab.ir.serialize import SerializeError, load_json, save_json
from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.script import from_source
from mlc_lab.tir import IndexMap, TensorIntrin, expr, op

FUNC = from_source("""
    @T.prim_func
    def main(A: T.Buffer((16, 16), "float32"), b: T.handle):
        T.func_attr({"tir.noalias": True, "list": [1, 2.5, "x"]})
        n = T.int64()
        B = T.match_buffer(b, (n,), "float16", strides=("s",), offset_factor=4)
        for i in T.thread_binding(16, thread="threadIdx.x"):
            with T.block("x"):
                vi = T.axis.reduce(16, i)
                T.block_attr({"a": 1})
                with T.init():
                    A[0, 0] = T.float32("-inf")
                A[0, 0] = T.max(A[0, 0], A[vi, 1] * T.exp(A[vi, 2]))
""")


def test_what_is_shared_is_shared_again():
    loaded = load_json(save_json(FUNC))
    assert_structural_equal(FUNC, loaded)
    assert loaded.script() == FUNC.script()
    block = loaded.body.block.body.body.block
    assert block.body.buffer is loaded.buffer_map[loaded.params[0]]
    assert block.body.value.op is FUNC.body.block.body.body.block.body.value.op if hasattr(
        block.body.value, "op") else True


def test_modules_containers_and_plain_values():
    mod = IRModule({"main": FUNC}, {"key": op.const(1)})
    assert_structural_equal(load_json(save_json(mod)), mod)
    x = expr.Var("x", "int32")
    pair = load_json(save_json((x, [x + 1, None, True, 2.5, float("inf")], {"k": "v"})))
    assert pair[1][0].a is pair[0] and pair[1][1:] == [None, True, 2.5, float("inf")]
    assert pair[2] == {"k": "v"}


def test_arrays_index_maps_and_intrinsics():
    array = np.arange(6, dtype="float32").reshape(2, 3)
    assert (load_json(save_json({"a": array}))["a"] == array).all()
    mapping = load_json(save_json(IndexMap.from_func(lambda i, j: (i // 4, j, i % 4))))
    assert repr(mapping) == "lambda i, j: (i // 4, j, i % 4,)"
    assert_structural_equal(load_json(save_json(TensorIntrin(FUNC, FUNC))).desc, FUNC)


def test_a_deep_program_is_saved_without_recursion():
    x = expr.Var("x", "int32")
    total = x
    for _ in range(5000):
        total = total + x
    loaded = load_json(save_json(total))
    depth = 0
    while isinstance(loaded, expr.Add):
        loaded, depth = loaded.a, depth + 1
    assert depth == 5000


def test_damaged_texts_are_refused_clearly():
    text = save_json(FUNC)
    for bad in ("", "{}", "[1]", text[:-20], text.replace('"For"', '"Fur"'),
                json.dumps({"format": 99, "root": 1, "nodes": []}),
                json.dumps({"format": 1, "root": {"$": 5}, "nodes": []}),
                json.dumps({"format": 1, "root": {"$": 0},
                            "nodes": [["Not", [{"$": 0}]]]}),
                json.dumps({"format": 1, "root": {"$": 0}, "nodes": [["os", ["x"]]]})):
        with pytest.raises(SerializeError):
            load_json(bad)


def test_what_cannot_be_saved_says_so():
    with pytest.raises(SerializeError, match="cannot save a function"):
        save_json([lambda: None])
