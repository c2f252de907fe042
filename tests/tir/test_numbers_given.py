"""Constructors of nodes take Python numbers, iterators and lists, as TVM's do."""

import pytest

from mlc_lab import te, tir
from mlc_lab.ir import structural_equal


def test_a_number_takes_the_type_of_the_other_operand():
    x, y = tir.Var("x", "int64"), tir.Var("y", "float32")
    assert structural_equal(tir.EQ(x, 0), tir.EQ(x, tir.IntImm("int64", 0)))
    assert tir.Add(1, x).a.dtype == "int64"
    assert structural_equal(tir.Max(y, 2), tir.Max(y, tir.FloatImm("float32", 2.0)))


def test_an_iterator_stands_for_its_variable():
    axis = te.reduce_axis((0, 8), "k")
    assert tir.Add(axis, 1).a is axis.var


def test_numbers_alone_are_of_the_default_types():
    assert tir.Evaluate(0).value.dtype == "int32"
    assert tir.Not(True).a.dtype == "bool"
    assert tir.Cast("float32", 1).value.dtype == "int32"
    assert tir.Broadcast(0.5, 4).dtype == "float32x4"
    assert tir.Ramp(0, 1, tir.IntImm("int64", 4)).lanes == 4
    call = tir.Call("int32", "tir.likely", [1])
    assert call.args[0].dtype == "int32"


def test_statements_take_numbers_of_the_type_that_they_are_for():
    buffer = tir.decl_buffer((4,), "float16", name="A")
    store = tir.BufferStore(buffer, 1, [0])
    assert store.value.dtype == "float16"
    loop = tir.For(tir.Var("i", "int64"), 0, 4, 0, store)
    assert loop.min.dtype == loop.extent.dtype == "int64"
    let = tir.LetStmt(tir.Var("v", "float64"), 1, store)
    assert let.value.dtype == "float64"
    assert tir.AttrStmt(buffer.data, "pragma_x", 1, store).value.value == 1
    assert tir.AssertStmt(True, "must hold", store).message.value == "must hold"
    allocate = tir.Allocate(buffer.data, "float16", [4, 4], True, store)
    assert [e.value for e in allocate.extents] == [4, 4] and allocate.annotations == {}


def test_conditions_and_attributes_are_given_as_they_are_said():
    nothing = tir.Evaluate(0)
    block = tir.Block([], [], [], "b", nothing)
    for made in (tir.IfThenElse(True, nothing), tir.IfThenElse(False, nothing, nothing),
                 tir.BlockRealize([], 1, block), tir.AttrStmt("node", "key", "text", nothing),
                 tir.AttrStmt("node", "key", True, nothing)):
        assert isinstance(made.script(), str)
    assert structural_equal(tir.BlockRealize([], 1, block), tir.BlockRealize([], True, block))
    assert tir.AttrStmt("node", "key", 1.5, nothing).value.dtype == "float32"
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    total = tir.Reduce(tir.CommReducer([x], [y], [x + y], [0]), [1], [te.reduce_axis((0, 4))],
                       True, 0)
    assert total.dtype == "int32" and total.init == () and isinstance(total.script(), str)


def test_lists_are_taken_for_tuples():
    buffer = tir.decl_buffer((4,), "float32", name="A")
    region = tir.BufferRegion(buffer, [tir.Range(0, 4)])
    assert type(region.region) is tuple
    a, b = tir.Var("a", "float32"), tir.Var("b", "float32")
    assert tir.CommReducer([a], [b], [a + b], [0.0]).identity_element[0].dtype == "float32"
    assert type(tir.Shuffle([a, b], [0, 1]).vectors) is tuple


def test_lanes_that_are_no_constant_are_refused():
    with pytest.raises(TypeError, match="lanes of a vector are a constant"):
        tir.Broadcast(tir.Var("x", "int32"), tir.Var("n", "int32"))
