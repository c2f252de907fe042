"""Saving to JSON and loading back."""

import json

import numpy as np
import pytest

from mlc_lab.ir.module import IRModule
from mlc_lab.ir.serialize import SerializeError, load_json, save_json
from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.reading import MLCError
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


def changed(change):
    """The JSON of FUNC after a change of its records by (name, fields)."""
    data = json.loads(save_json(FUNC))
    change(data, {r[0]: r[1] for r in data["nodes"]})
    return json.dumps(data)


def double(data, by_name):
    first = len(data["nodes"])
    data["nodes"].append(["IntImm", ["int32", 1]])
    for k in range(60):
        data["nodes"].append(["Add", [{"$": first + k}, {"$": first + k}]])
    data["root"] = {"$": first + 60}


def far(data, by_name):
    first = len(data["nodes"])
    data["nodes"] += [["IntImm", ["int32", 5]], ["IntImm", ["int32", (1 << 31) - 1]]]
    by_name["For"][1:3] = [{"$": first}, {"$": first + 1}]


@pytest.mark.parametrize("change, words", [
    (lambda d, n: n["Max"].__setitem__(0, 1), "'a' is a int"),
    (lambda d, n: n["For"].__setitem__(0, None), "'loop_var'"),
    (lambda d, n: n["For"].__setitem__(3, {"e": ["ForKind", 77]}), "77"),
    (lambda d, n: n["For"].__setitem__(4, {"$": 10**30}), "it refers to node 1000"),
    (lambda d, n: n["For"].__setitem__(4, {"$": -1}), "node -1"),
    (lambda d, n: n["For"].__setitem__(4, {"$": True}), "node True"),
    (lambda d, n: n["For"].__setitem__(4, {"$": 0}), "refers to itself"),
    (lambda d, n: n["For"].__setitem__(1, n["BufferStore"][1]), "are whole numbers"),
    (lambda d, n: n["For"].pop(), "6 fields in place of 7"),
    (lambda d, n: n["For"].__setitem__(6, {"d": [[[1], 2]]}), "damaged"),
    (lambda d, n: n["For"].__setitem__(6, {"d": [[1, 2]]}), "'annotations'"),
    (lambda d, n: n["For"].__setitem__(6, {"d": 1, "t": 2}), "damaged"),
    (lambda d, n: n["For"].__setitem__(6, {"x": 1}), "tag 'x'"),
    (lambda d, n: n["Block"].__setitem__(3, ["x"]), "'name_hint'"),
    (lambda d, n: n["Block"].__setitem__(1, {"t": [{"t": []}]}), "'reads'"),
    (lambda d, n: n["IntImm"].__setitem__(1, 10**30), "fits no"),
    (lambda d, n: n["IntImm"].__setitem__(0, "float77"), "'dtype'"),
    (lambda d, n: n["BufferStore"].__setitem__(2, {"t": []}), "2 dimension"),
    (lambda d, n: n["BlockRealize"].__setitem__(0, {"t": []}), "differ in number"),
    (lambda d, n: n["PrimFunc"].__setitem__(1, {"d": [["A", 1]]}), "'buffer_map'"),
    (lambda d, n: d["nodes"].append("x"), "list of names"),
    (lambda d, n: d.__setitem__("nodes", {}), "list of names"),
    (lambda d, n: d.__setitem__("format", None), "format None"),
    (lambda d, n: d.__setitem__("root", {"a": ["O", [1], ""]}), "unknown dtype 'O'"),
    (lambda d, n: d.__setitem__("root", {"a": ["float32", [-1], ""]}), "sizes"),
    (lambda d, n: d.__setitem__("root", {"a": ["float32", [10**9], "AAAA"]}), "damaged"),
    (lambda d, n: d.__setitem__("root", {"a": ["float32", [1], "?"]}), "damaged"),
    (double, "too many parts"),
    (lambda d, n: n["FloatImm"].__setitem__(0, "int32"), "is an IntImm"),
    (lambda d, n: n["IntImm"].__setitem__(1, {"e": ["ForKind", 1]}), "'value'"),
    (lambda d, n: n["IntImm"].__setitem__(1, True), "no whole number"),
    (lambda d, n: n["Buffer"].__setitem__(6, -64), "data_alignment of buffer . is -64"),
    (lambda d, n: n["Buffer"].__setitem__(7, -1), "offset_factor"),
    (lambda d, n: n["Buffer"].__setitem__(2, {"t": [n["BufferStore"][1]]}), "a size of buffer"),
    (lambda d, n: n["Buffer"].__setitem__(9, {"t": [7]}), "axis separators"),
    (lambda d, n: n["IterVar"].__setitem__(0, None), "has no domain"),
    (lambda d, n: n["IterVar"].__setitem__(2, 1), "of a wrong kind"),
    (lambda d, n: n["Max"].__setitem__(0, n["PrimFunc"][0]["t"][0]), "not with a handle"),
    (lambda d, n: n["Max"].__setitem__(0, n["For"][1]), "of the types int32 and float32"),
    (lambda d, n: n["PrimFunc"].__setitem__(3, True), "no type: a bool"),
    (far, "2147483647 numbers from 5 on"),
])
def test_a_field_that_does_not_fit_its_declaration_is_refused(change, words):
    with pytest.raises(SerializeError, match=words):
        load_json(changed(change))


def test_a_node_that_stands_where_no_script_has_one_is_refused_when_printed():
    def spoil(data, by_name):
        buffer = next(i for i, r in enumerate(data["nodes"]) if r[0] == "Buffer")
        data["nodes"].append(["Op", ["tir.exp"]])
        data["nodes"].append(["Call", ["float32", {"$": len(data["nodes"]) - 1},
                                       {"t": [{"$": buffer}]}, None]])
        data["nodes"].append(["Evaluate", [{"$": len(data["nodes"]) - 1}]])
        by_name["PrimFunc"][4] = {"$": len(data["nodes"]) - 1}

    with pytest.raises(MLCError, match="a Buffer stands where"):
        load_json(changed(spoil)).script()


@pytest.mark.parametrize("text", [
    "[" * 100_000, '{"format": 1, "root": ' + '{"l": [' * 50_000, '{"a": NaN}', "\0", "\ud800",
    "1" * 10_000, b"\xff", None, 17,
])
def test_texts_that_json_readers_stumble_over_are_refused(text):
    with pytest.raises(SerializeError):
        load_json(text)


def test_every_declaration_can_be_checked():
    import mlc_lab.relax  # noqa: F401  (its nodes)
    from mlc_lab.ir.field_types import misfit
    from mlc_lab.ir.node import NODE_TYPES

    for cls in NODE_TYPES.values():
        assert misfit(cls, [object()] * len(cls.fields)) or not cls.fields or all(
            text == "Any" for text in cls.__annotations__.values())


def test_an_array_of_the_other_byte_order_is_the_same_array():
    array = np.arange(6, dtype=">f4")
    assert (load_json(save_json(array)) == array).all()


GRAPH = """
@R.function
def main(x: R.Tensor((2,), "float32")):
    with R.dataflow():
        y = R.add(x, R.add(x, x))
        R.output(y)
    return y
"""


@pytest.mark.parametrize("change", [
    lambda n: n["relax.Var"].__setitem__(1, None),
    lambda n: n["relax.VarBinding"].__setitem__(1, n["relax.Function"][1]),
    lambda n: n["relax.Call"].__setitem__(1, {"t": [n["relax.Function"][1]]}),
])
def test_a_graph_that_no_script_has_is_refused_when_printed(change):
    data = json.loads(save_json(from_source("from tvm.script import relax as R\n" + GRAPH)))
    change({r[0]: r[1] for r in reversed(data["nodes"])})
    with pytest.raises(MLCError):
        load_json(json.dumps(data)).script()
