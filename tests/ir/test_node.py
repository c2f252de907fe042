"""What follows from declaring a node: immutability, traversal, replacement, pickling, sameness."""

import pickle

import pytest

from mlc_lab.ir.structural import structural_equal, structural_hash
from mlc_lab.tir import Add, Buffer, For, ForKind, IntImm, Let, Var, decl_buffer
from mlc_lab.tir.stmt import BufferStore, Evaluate


def loop(name="i", extent=8):
    i = Var(name)
    buffer = decl_buffer((extent,), name="A")
    return For(i, 0, extent, ForKind.SERIAL, BufferStore(buffer, buffer[i] + 1.0, [i])), buffer


def test_a_node_cannot_be_changed():
    node = Add(Var("a"), Var("b"))
    with pytest.raises(AttributeError, match="immutable"):
        node.a = Var("c")
    with pytest.raises(AttributeError, match="immutable"):
        del node.a


def test_replace_shares_the_other_fields_and_refuses_unknown_names():
    a, b, c = Var("a"), Var("b"), Var("c")
    node = Add(a, b)
    new = node.replace(b=c)
    assert new.a is a and new.b is c and node.b is b
    with pytest.raises(TypeError, match="no field"):
        node.replace(nope=c)


def test_map_children_returns_the_same_object_when_nothing_changes():
    node, _ = loop()
    assert node.map_children(lambda x: x) is node
    body = Evaluate(IntImm("int32", 0))
    new = node.map_children(lambda x: body if x is node.body else x)
    assert new is not node and new.body is body and new.loop_var is node.loop_var


def test_identity_is_hash_and_membership():
    a, b = Var("a"), Var("a")
    assert {a: 1}[a] == 1 and b not in {a: 1}


def test_a_node_survives_pickling():
    node, _ = loop()
    copy = pickle.loads(pickle.dumps(node))
    assert structural_equal(node, copy, map_free_vars=True)


def test_loops_are_equal_up_to_the_name_of_their_variable():
    i, j = Var("i"), Var("j")
    buffer = decl_buffer((8,), name="A")
    one = For(i, 0, 8, 0, BufferStore(buffer, buffer[i] + 1.0, [i]))
    two = For(j, 0, 8, 0, BufferStore(buffer, buffer[j] + 1.0, [j]))
    assert structural_equal(one, two)
    assert structural_hash(one) == structural_hash(two)


def test_a_mismatch_says_where():
    (one, _), (two, _) = loop(extent=8), loop(extent=9)
    answer = structural_equal(one, two, map_free_vars=True)
    assert not answer
    assert answer.path == "extent.value" and "8 against 9" in repr(answer)


def test_free_variables_must_be_the_same_unless_mapped():
    a, b = Var("a"), Var("b")
    assert not structural_equal(a + 1, b + 1)
    assert structural_equal(a + 1, b + 1, map_free_vars=True)
    assert not structural_equal(a + a, a + b, map_free_vars=True)
    assert not structural_equal(a + b, a + a, map_free_vars=True)


def test_loop_kind_and_annotations_count():
    node, _ = loop()
    assert not structural_equal(node, node.replace(kind=ForKind.PARALLEL))
    assert not structural_equal(node, node.replace(annotations={"x": IntImm("int32", 1)}))


def test_buffers_are_compared_by_what_they_are():
    one, two = decl_buffer((8,), "float32"), decl_buffer((8,), "float64")
    assert isinstance(one, Buffer)
    i = Var("i")
    left, right = (For(i, 0, 8, 0, BufferStore(b, b[i], [i])) for b in (one, two))
    assert not structural_equal(left, right)


def test_an_expression_that_binds_may_stand_in_several_places():
    n, v, w, x = Var("n"), Var("v"), Var("w"), Var("v")
    once = Let(v, n, v + 1)
    shared, apart = Add(once, once), Add(Let(w, n, w + 1), Let(x, n, x + 1))
    for a, b in ((shared, apart), (apart, shared)):
        assert structural_equal(a, b) and structural_hash(a) == structural_hash(b)
    assert not structural_equal(shared, Add(once, Let(w, n, v + 1)))
    # the variable of the inner one hides that of the outer one
    nested, clear = Let(v, n, Let(v, v + 1, v)), Let(w, n, Let(x, w + 1, x))
    assert structural_equal(nested, clear) and structural_hash(nested) == structural_hash(clear)
    assert not structural_equal(nested, Let(w, n, Let(x, w + 1, w)))
