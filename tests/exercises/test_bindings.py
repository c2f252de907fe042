"""A wrong model: the first operator whose value differs from the reference's, and its graph."""

import numpy as np
import pytest

from mlc_lab import exercises
from mlc_lab.exercises.answers import read
from mlc_lab.exercises.checks.bindings import bound, first_wrong, told
from mlc_lab.exercises.checks.graph_results import difference, differing
from mlc_lab.exercises.judging import marks
from mlc_lab.exercises.watching import watched
from mlc_lab.script import from_source

RIGHT = ("a = R.exp(x)", "b = R.add(a, x)", "c = R.multiply(b, a)", "y = R.sum(c, axis=[1])")


def model(*lines):
    body = "\n".join(" " * 12 + line for line in lines)
    return from_source(f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")):
        with R.dataflow():
{body}
            R.output({lines[-1].split(" ")[0]})
        return {lines[-1].split(" ")[0]}
""")


def differs(a, b):
    bad = ~np.isclose(a, b, rtol=1e-4)
    return tuple(int(i) for i in np.argwhere(bad)[0]) if bad.any() else None


X = [np.arange(6, dtype="float32").reshape(2, 3) / 6]


def test_each_binding_has_its_value():
    found = bound(model(*RIGHT), X)
    assert [one.name for one in found] == list("abcy")
    assert [one.key for one in found][:2] == [("relax.exp", 0), ("relax.add", 0)]
    np.testing.assert_allclose(found[1].value, np.exp(X[0]) + X[0], rtol=1e-6)


@pytest.mark.parametrize("lines, name", [
    ((RIGHT[0], "b = R.subtract(a, x)", *RIGHT[2:]), "b"),
    ((*RIGHT[:2], "c = R.multiply(b, x)", RIGHT[3]), "c"),
    # other names: the same operator for the same time
    (("lv = R.exp(x)", "lv1 = R.add(x, x)", "lv2 = R.multiply(lv1, lv)",
      "gv = R.sum(lv2, axis=[1])"), "lv1"),
    # one more operator on the way, which the reference does not have
    (("a = R.exp(x)", "n = R.negative(x)", "b = R.subtract(a, n)", "c = R.multiply(b, b)",
      RIGHT[3]), "c"),
    (RIGHT, None),
])
def test_the_first_that_differs_is_named(lines, name):
    found = first_wrong(model(*lines), model(*RIGHT), X, differs)
    assert (found and found[0].name) == name
    says, place = told(model(*lines), model(*RIGHT), X, differs)
    assert place == ({"binding": name} if name else {})
    assert not name or f"The first operator that differs is {name} = R." in says


@pytest.mark.parametrize("id, number, name", [("06.1", 0, "h2"), ("06.3", 2, "sum1"),
                                              ("12.3", 3, "y"), ("12.3", 4, "s")])
def test_wrong_answers_are_told_and_open_in_the_graph(id, number, name):
    variant = exercises.get(id).variant(1)
    answer = variant.wrong[number].answer
    row = marks(variant, answer).rows[0]
    assert row.place["binding"] == name and f"differs is {name} = R." in row.says
    shown = watched(read(variant, answer).mod, row.place)
    node = next(n for n in shown["graph"]["nodes"] if n["id"] == shown["selected"])
    assert node["name"] == name


@pytest.mark.parametrize("id, line, more", [
    ("06.1", "h0 = R.matmul(x, w1)", "d = R.subtract(h0, h0)\n            h = R.subtract(h0, d)"),
])
def test_a_model_that_is_wrong_for_an_infinity_is_no_right_one(id, line, more):
    variant = exercises.get(id).variant(1)
    answer = variant.reference.replace(line, f"{line}\n            {more}").replace(
        "R.add(h0, b1)", "R.add(h, b1)")
    assert "d = R.subtract" in answer
    row = marks(variant, answer).rows[0]
    assert not row.passed and row.points == 0 and "infinities" in row.says


def test_a_graph_that_is_wrong_for_an_infinity_differs():
    twisted = (*RIGHT[:2], "d = R.subtract(b, b)", "e = R.subtract(b, d)",
               "c = R.multiply(e, a)", RIGHT[3])
    assert "infinities" in difference(model(*twisted), model(*RIGHT))
    assert differing(model(*twisted), model(*RIGHT), nasty=False) is None
    assert difference(model(*RIGHT), model(*RIGHT)) == ""
