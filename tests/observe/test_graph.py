"""The computation graph as data: what its nodes and edges say of a module."""

import json

import pytest

from mlc_lab import relax
from mlc_lab.ir.module import IRModule
from mlc_lab.observe.graph import Graph, GraphError, graph_of
from mlc_lab.script import from_source
from .graphs import chain, fused_module


@pytest.fixture(scope="module")
def graph():
    return graph_of(fused_module())


def by_label(graph, label):
    return [n for n in graph.nodes if n["label"] == label]


def test_nodes_and_their_kinds(graph):
    kinds = [(n["kind"], n["label"]) for n in graph.nodes if n["group"] is None]
    assert kinds == [("param", "x"), ("group", "fused_add_add"), ("group", "fused_add_add"),
                     ("op", "nn.relu"), ("extern", "env.linear"), ("output", "output")]
    assert [n["kind"] for n in graph.nodes if n["group"]] == ["kernel"] * 4
    assert {n["type"] for n in graph.nodes if n["kind"] != "output"} == {"1x128 float32"}
    assert graph.texts[by_label(graph, "add")[0]["text"]].count("T_add[") == 2


def test_constants_stand_in_the_node_that_takes_them(graph):
    (linear,) = by_label(graph, "env.linear")
    assert linear["constants"] == [{"type": "128x128 float32", "bytes": 65536}]


def test_a_constant_is_not_a_node_whatever_it_is_handed_to():
    mod = from_source("""
@I.ir_module
class Module:
    @R.function(private=True)
    def fused(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")
              ) -> R.Tensor((4,), "float32"):
        R.func_attr({"Primitive": True})
        with R.dataflow():
            a = R.add(x, w)
            R.output(a)
        return a

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Module
        with R.dataflow():
            w = R.const([1.0, 2.0, 3.0, 4.0], "float32")
            a = R.multiply(x, w)
            b = cls.fused(a, w)
            R.output(b)
        return b, R.const(1.0, "float32")
""")
    graph = graph_of(mod)
    assert [n["kind"] for n in graph.nodes] == ["param", "op", "group", "op", "constant", "output"]
    vector = {"type": "4 float32", "bytes": 16}
    assert [n["constants"] for n in graph.nodes[1:4]] == [[vector]] * 3


def test_edges_follow_the_data(graph):
    names = {n["id"]: n["name"] for n in graph.nodes}
    first, second = (g["id"] for g in by_label(graph, "fused_add_add"))
    assert [names[e["from"]] for e in graph.edges if e["to"] == second and
            names[e["from"]] != "lv1"] == ["lv0", "x"]
    assert {e["label"] for e in graph.edges} == {"1x128 float32"}
    inner = [n["id"] for n in graph.nodes if n["group"] == first]
    assert [e["to"] for e in graph.edges if e["from"] == inner[0]] == [inner[1]]


def test_bytes_moved_count_what_leaves_a_call(graph):
    (relu,) = by_label(graph, "nn.relu")
    assert relu["moved"] == 2 * 512
    fused = by_label(graph, "fused_add_add")
    assert [f["moved"] for f in fused] == [3 * 512] * 2  # two arguments and a result
    assert graph.bytes_moved() == 2 * 3 * 512 + 2 * 512 + (2 * 512 + 65536)


def test_layouts_shut_and_open(graph):
    shut, opened = graph.layout(()), graph.layout()
    assert len(shut["boxes"]) == 6 and len(opened["boxes"]) == 10
    boxes = {b[0]: b[1:] for b in opened["boxes"]}
    for node in graph.nodes:
        if node["group"]:
            x, y, w, h = boxes[node["id"]]
            gx, gy, gw, gh = boxes[node["group"]]
            assert gx < x and gy < y and x + w < gx + gw and y + h < gy + gh
    one = graph.layout([graph.groups()[0]])
    assert len(one["boxes"]) == 8


def test_json_goes_there_and_back(graph):
    again = Graph.from_dict(json.loads(graph.to_json()))
    assert again == graph
    with pytest.raises(GraphError, match="not a graph"):
        Graph.from_dict({"format": "other"})
    with pytest.raises(GraphError, match="version 9"):
        Graph.from_dict({"format": "mlc-lab/graph", "version": 9})


def test_pictures(graph):
    pytest.importorskip("graphviz")
    assert graph.svg().count("<rect") == 11  # ten boxes and the ground
    assert graph.dot().count("subgraph cluster_") == 2
    assert "fused_add_add" in graph.html()


def test_which_function_is_meant():
    mod = fused_module()
    assert graph_of(mod, "fused_add_add").title == "fused_add_add"
    with pytest.raises(GraphError, match="no Relax function 'nope'; it has: .*main"):
        graph_of(mod, "nope")
    with pytest.raises(GraphError, match="are: none"):
        graph_of(IRModule({}))
    with pytest.raises(GraphError, match="not of a int"):
        graph_of(3)


def test_symbolic_shapes_have_no_size():
    from mlc_lab import tir

    n = tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo((n, 4), "float32"))
    func = relax.Function([x], relax.SeqExpr([], relax.op.nn.relu(x)), x.struct_info_)
    graph = graph_of(func)
    assert graph.nodes[0]["type"] == "nx4 float32" and graph.nodes[0]["bytes"] is None
    assert graph.bytes_moved() is None


def test_a_thousand_nodes():
    graph = graph_of(chain(1000))
    assert len(graph.layout(engine="built-in")["boxes"]) == 1002
