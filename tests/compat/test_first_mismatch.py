"""Where two programs first differ, as a path in each of them."""

from mlc_lab import tir
from mlc_lab.compat.namespaces import ir_base
from mlc_lab.ir import structural_equal
from mlc_lab.runtime.object_path import ObjectPath

ROOT = ObjectPath.root()


def paths(a, b):
    """The two paths, which must be the same the other way round."""
    found = ir_base.get_first_structural_mismatch(a, b)
    back = ir_base.get_first_structural_mismatch(b, a)
    assert found is not None and found == back[::-1]
    return found


def statements(*values):
    return tir.SeqStmt([tir.Evaluate(v) for v in values])


def test_the_first_difference_is_a_path_in_both():
    x = tir.Var("x", "int32")
    a, b = statements(x, x + 1, x + 2), statements(x, x + 1, x + 9)
    want = ROOT.attr("seq").array_index(2).attr("value").attr("b").attr("value")
    assert paths(a, b) == (want, want)
    assert ir_base.get_first_structural_mismatch(a, a) is None


def test_a_difference_within_comes_before_one_in_length():
    x = tir.Var("x", "int32")
    a, b = statements(x, x + 1, x + 2), statements(x, x + 2)
    assert str(paths(a, b)[0]) == "<root>.seq[1].value.b.value"
    lhs, rhs = paths(statements(x, x + 1, x + 2), statements(x, x + 1))
    seq = ROOT.attr("seq")
    assert (lhs, rhs) == (seq.array_index(2), seq.missing_array_element(2))


def test_parameters_types_and_buffers():
    x, y, z = tir.Var("x", "int32"), tir.Var("y", "int32"), tir.Var("z", "float32")
    body = tir.Evaluate(0)
    lhs, rhs = paths(tir.PrimFunc([x, y], body), tir.PrimFunc([x, z], body))
    assert lhs == rhs == ROOT.attr("params").array_index(1).attr("dtype")
    h = tir.Var("h", "handle")
    one, other = (tir.PrimFunc([h], body, buffer_map={h: tir.decl_buffer(shape)})
                  for shape in ((10, 10), (10, 20)))
    lhs, rhs = paths(one, other)
    held = ROOT.attr("buffer_map").map_value(h)
    assert lhs == rhs == held.attr("shape").array_index(1).attr("value")
    lhs, rhs = paths(one, tir.PrimFunc([h], body))
    assert (lhs, rhs) == (held, ROOT.attr("buffer_map").missing_map_entry())


def test_what_differs_is_the_same_answer_either_way():
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    assert structural_equal(x, y) == structural_equal(y, x) == False  # noqa: E712
    assert structural_equal(x, y) != structural_equal(x, x)


def test_arrays_of_the_runtime_are_compared_element_by_element():
    from mlc_lab.runtime import convert

    lhs, rhs = paths(convert([1, 2, 3]), convert([1, 2]))
    assert (lhs, rhs) == (ROOT.array_index(2), ROOT.missing_array_element(2))
    assert structural_equal(convert([1, 2]), convert([1, 2]))
