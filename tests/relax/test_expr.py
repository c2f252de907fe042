"""Nodes of Relax: construction, struct info, constants, and what is refused."""

import numpy as np
import pytest

from mlc_lab import nd, relax
from mlc_lab.ir import structural_equal, structural_hash
from mlc_lab.ir.serialize import load_json, save_json
from mlc_lab.tir import Var

T = relax.TensorStructInfo


def test_constants_take_arrays_numbers_and_dtypes():
    assert relax.const(1.5).struct_info == T((), "float32")
    assert relax.const(3).struct_info == T((), "int32")
    assert relax.const(True).struct_info == T((), "bool")
    assert relax.const([1.0, 2.0]).struct_info == T((2,), "float32")
    assert relax.const(np.zeros((2, 3))).struct_info == T((2, 3), "float64")
    assert relax.const(np.zeros(2), "float16").struct_info == T((2,), "float16")
    assert relax.const(np.zeros((2, 3), "float32"), T((2, 3), "float32")).data.shape == (2, 3)
    assert relax.const(nd.array(np.ones(2, "int8"))).struct_info == T((2,), "int8")
    with pytest.raises(ValueError, match="declared"):
        relax.const(np.zeros((2, 3), "float32"), T((3, 2), "float32"))


def test_bfloat16_constants():
    c = relax.const(1.5, "bfloat16")
    assert c.struct_info == T((), "bfloat16")


def test_leaves_know_their_struct_info():
    n = Var("n", "int64")
    x = relax.Var("x", T((n,)))
    assert relax.ShapeExpr([n, 2]).struct_info == relax.ShapeStructInfo([n, 2])
    assert relax.PrimValue(3).struct_info.dtype == "int64"
    assert relax.Tuple([x, x]).struct_info == relax.TupleStructInfo([T((n,)), T((n,))])
    assert relax.TupleGetItem(relax.Tuple([x, relax.const(1)]), 1).struct_info == T((), "int32")
    with pytest.raises(IndexError, match="item 2 of a tuple that has 2"):
        relax.TupleGetItem(relax.Tuple([x, x]), 2)
    with pytest.raises(ValueError, match="not known yet"):
        relax.Var("y").struct_info


def test_a_tuple_has_fields_as_in_tvm():
    x = relax.Var("x", T((1,)))
    pair = relax.Tuple([x, relax.Tuple([])])
    assert pair.fields == (x, pair.fields[1]) and len(pair) == 2
    assert pair.struct_info.fields[0] == T((1,))


def test_python_operators_build_calls():
    x = relax.Var("x", T((2, 3)))
    assert (x + x).op.name == "relax.add" and (2 * x).op.name == "relax.multiply"
    assert (x - 1).args[1].struct_info == T(())
    assert (-x).op.name == "relax.negative" and (x < 0).struct_info == T((2, 3), "bool")
    assert (x ** 2).op.name == "relax.power" and x.astype("int8").struct_info == T((2, 3), "int8")
    assert x != relax.Var("x", T((2, 3)))  # == is identity, as in TVM


def test_functions_derive_what_they_give():
    n = Var("n", "int64")
    x = relax.Var("x", T((n, 4)))
    func = relax.Function([x], x)
    assert func.ret_struct_info == T((n, 4))
    assert func.struct_info == relax.FuncStructInfo([T((n, 4))], T((n, 4)), True)
    with pytest.raises(ValueError, match="no struct info"):
        relax.Function([relax.Var("y")], x)
    with pytest.raises(TypeError, match="variables"):
        relax.Function([relax.const(1)], x)


def test_equality_is_up_to_names_of_what_is_bound():
    def build(name, dim):
        n = Var(dim, "int64")
        x = relax.Var(name, T((n,)))
        binding = relax.VarBinding(relax.Var("y", T((n,))), x + x)
        return relax.Function([x], relax.SeqExpr([relax.BindingBlock([binding])], x))

    a, b = build("x", "n"), build("z", "m")
    assert structural_equal(a, b) is True and structural_hash(a) == structural_hash(b)
    x = relax.Var("x", T((2,)))
    assert not structural_equal(relax.Function([x], x), a)
    assert not structural_equal(x + x, x * x)
    assert "attrs" in repr(structural_equal(relax.op.sum(x, 0), relax.op.sum(x, 0, True)))


def test_json_keeps_calls_constants_and_attributes():
    x = relax.Var("x", T((2, 3)))
    call = relax.op.sum(relax.op.matmul(x, relax.const(np.ones((3, 4), "float32"))), axis=[1])
    again = load_json(save_json(relax.Function([x], call)))
    assert structural_equal(again, relax.Function([x], call)) is True
    assert again.body.body.attrs.axis == (1,)


def test_attributes_read_like_fields():
    call = relax.op.sum(relax.Var("x", T((2, 3))), axis=[1], keepdims=True)
    assert call.attrs.axis == (1,) and call.attrs["keepdims"] is True
    with pytest.raises(AttributeError, match="it has: axis, keepdims"):
        call.attrs.axes


def test_a_declared_result_stays_as_it_is_written():
    """Where the body gives the same size in other words; one that says less is made precise."""
    from mlc_lab.script import from_source

    text = """
@R.function
def main(x: R.Tensor((2, "n"), "float32")) -> R.Tensor({declared}, dtype="float32"):
    n = T.int64()
    gv: R.Tensor((n * 2,), "float32") = R.reshape(x, R.shape([n * 2]))
    return gv
"""
    for declared, shown in (("('2 * n',)", "2 * n"), ("ndim=1", "n * 2")):
        func = from_source(text.replace("{declared}", declared))
        assert shown in repr(func.ret_struct_info)
        again = from_source(func.script())
        assert repr(again.ret_struct_info) == repr(func.ret_struct_info)
