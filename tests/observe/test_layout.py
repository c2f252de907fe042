"""Graph layout: nothing overlaps, edges run downwards, and `dot` is not needed."""

import random
import shutil

import pytest

from mlc_lab.observe.layout import RISE, _isotonic, dot_source, place

ENGINES = ["built-in", pytest.param("dot", marks=pytest.mark.skipif(
    not shutil.which("dot"), reason="Graphviz is not installed"))]


def random_graph(seed, nodes):
    rng = random.Random(seed)
    sizes = {i: (rng.uniform(30, 200), rng.uniform(20, 60)) for i in range(nodes)}
    edges = [(rng.randrange(max(0, i - 9), i), i) for i in range(1, nodes)
             for _ in range(rng.randint(1, 2))]
    return sizes, list(dict.fromkeys(edges))


def overlap(a, b, sizes, at):
    return all(abs(at[a][d] - at[b][d]) < (sizes[a][d] + sizes[b][d]) / 2 - 0.1 for d in (0, 1))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(6))
def test_boxes_do_not_overlap_and_edges_run_down(engine, seed):
    sizes, edges = random_graph(seed, 40)
    found = place(sizes, edges, engine)
    nodes = list(sizes)
    assert not [(a, b) for i, a in enumerate(nodes) for b in nodes[:i]
                if overlap(a, b, sizes, found.at)]
    for (a, b), route in zip(edges, found.routes):
        assert found.at[a][1] < found.at[b][1]
        assert len(route) >= 2
        for node, (x, y) in ((a, route[0]), (b, route[-1])):
            beyond = [abs(p - c) - size / 2
                      for p, c, size in zip((x, y), found.at[node], sizes[node])]
            assert -2 <= max(beyond) <= 2  # on the border of the box
    for node, (x, y) in found.at.items():
        w, h = sizes[node]
        assert -0.6 <= x - w / 2 and x + w / 2 <= found.width + 0.6
        assert -0.6 <= y - h / 2 and y + h / 2 <= found.height + 0.6


def test_a_chain_is_straight():
    found = place(dict.fromkeys(range(5), (50, 20)), [(i, i + 1) for i in range(4)], "built-in")
    assert len({round(x) for x, _ in found.at.values()}) == 1
    assert found.height == 5 * 20 + 4 * RISE


def test_cycles_and_loops_are_drawn():
    sizes = dict.fromkeys("abc", (40, 20))
    found = place(sizes, [("a", "b"), ("b", "c"), ("c", "a"), ("b", "b")], "built-in")
    assert [found.at[n][1] for n in "abc"] == sorted(found.at[n][1] for n in "abc")
    assert all(found.routes)


def test_an_empty_graph_and_single_nodes():
    assert place({}, []).width == 0
    assert place({"a": (30, 10)}, [], "built-in").at == {"a": (15, 5)}


def test_isotonic_regression_pools_violators():
    assert _isotonic([1, 3, 2, 4], [1, 1, 1, 1]) == [1, 2.5, 2.5, 4]
    assert _isotonic([3, 1], [1, 3]) == [1.5, 1.5]


def test_dot_source_quotes_labels():
    text = dot_source({"a": (72, 36)}, [("a", "a")], {"a": 'say "hi"'})
    assert r'label="say \"hi\""' in text and "width=1.0000" in text
