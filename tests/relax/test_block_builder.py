"""BlockBuilder: both styles of the course, normal form, tensor expressions, mistakes."""

import numpy as np
import pytest
from laws import check_roundtrip

from mlc_lab import relax, te, topi
from mlc_lab.ir import GlobalVar
from mlc_lab.relax.analysis import verify_well_formed, well_formed
from mlc_lab.relax.op import StructInfoError
from mlc_lab.tir import Var

T = relax.TensorStructInfo


def te_matmul(A, B):
    k = te.reduce_axis((0, A.shape[1]), name="k")
    return te.compute((A.shape[0], B.shape[1]), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k),
                      name="matmul")


def te_relu(A):
    return te.compute(A.shape, lambda i, j: te.max(A[i, j], 0.0), name="relu")


def inputs():
    return (relax.Var("A", T((128, 128), "float32")), relax.Var("B", T((128, 128), "float32")))


EXPECTED = '''
    @R.function
    def main(A: R.Tensor((128, 128), dtype="float32"), B: R.Tensor((128, 128), dtype="float32")) \
-> R.Tensor((128, 128), dtype="float32"):
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.te_matmul, (A, B), out_sinfo=R.Tensor((128, 128), dtype="float32"))
            lv1 = R.call_tir(cls.te_relu, (lv,), out_sinfo=R.Tensor((128, 128), dtype="float32"))
            gv: R.Tensor((128, 128), dtype="float32") = lv1
            R.output(gv)
        return gv
'''


@pytest.mark.parametrize("at_the_end", [True, False])
def test_both_styles_of_the_course(at_the_end):
    A, B = inputs()
    bb = relax.BlockBuilder()
    with bb.function("main") if at_the_end else bb.function("main", params=[A, B]):
        with bb.dataflow():
            C = bb.emit_te(te_matmul, A, B)
            D = bb.emit_te(te_relu, C)
            out = bb.emit_output(D)
        bb.emit_func_output(out, **({"params": [A, B]} if at_the_end else {}))
    mod = bb.get()
    assert type(C) is relax.DataflowVar and isinstance(C, relax.Var) and type(out) is relax.Var
    text = check_roundtrip(mod)
    assert text.endswith(EXPECTED.strip())
    assert "def te_matmul(A: T.Buffer((T.int64(128), T.int64(128)), \"float32\"), B: " in text
    assert "def te_relu(lv: T.Buffer(" in text and verify_well_formed(mod)


def test_nested_values_are_bound():
    x = relax.Var("x", T((2, 3)))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        out = bb.emit(relax.op.add(x, relax.op.multiply(x, relax.op.exp(x))))
        bb.emit_func_output((out, relax.op.sum(out)))
    func = bb.get()["main"]
    names = [b.value.op.name for b in func.body.blocks[0].bindings]
    assert names == ["relax.exp", "relax.multiply", "relax.add", "relax.sum"]
    assert isinstance(func.body.body, relax.Tuple) and well_formed(bb.get())


def test_a_te_function_is_made_once():
    x = relax.Var("x", T((4, 4)))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        a = bb.emit_te(topi.nn.relu, x)
        b = bb.emit_te(topi.nn.relu, a)
        c = bb.emit_te(topi.add, a, b, primfunc_name_hint="plus")
        d = bb.emit_te(topi.add, c, relax.const(1, "float32"))
        bb.emit_func_output(bb.emit_te(topi.add, d, relax.const(2, "float32")))
    assert [v.name_hint for v in bb.get().functions] == ["relu", "plus", "add", "main"]


def test_te_on_symbolic_shapes_passes_what_no_buffer_says():
    n, m = Var("n", "int64"), Var("m", "int64")
    x = relax.Var("x", T((n * 2, m), "float32"))
    s = relax.Var("s", relax.ShapeStructInfo([n]))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, s]):
        call = bb.call_te(lambda t, k: te.compute((t.shape[0], k), lambda i, j: t[i, 0]), x, n)
        out = bb.emit(call)
        bb.emit_func_output(out)
    assert call.struct_info == T((n * 2, n), "float32")
    assert list(call.args[2].values) == [n]
    check_roundtrip(bb.get())


def test_symbols_that_a_te_function_captures_become_its_own():
    n, m = Var("n", "int64"), Var("m", "int64")
    x, s = relax.Var("x", T((n, 4), "float32")), relax.Var("s", relax.ShapeStructInfo([m]))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, s]):
        call = bb.call_te(lambda t: te.compute((n, m), lambda i, j: t[i, 0] + m), x)
        bb.emit_func_output(bb.emit(call))
    assert call.struct_info == T((n, m), "float32") and list(call.args[2].values) == [m]
    assert check_roundtrip(bb.get()) and verify_well_formed(bb.get())


def test_te_takes_lists_numbers_and_tuples():
    x = relax.Var("x", T((2, 3)))
    t = relax.Var("t", relax.TupleStructInfo([T((2, 3)), T((2, 3))]))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, t]):
        a = bb.emit_te(topi.concatenate, [x, x], axis=0)
        b = bb.emit_te(topi.concatenate, t, 1)
        pieces = bb.emit_te(topi.split, x, 3, axis=1)
        bb.emit_func_output((a, b, pieces))
    assert a.struct_info == T((4, 3)) and b.struct_info == T((2, 6))
    assert pieces.struct_info == relax.TupleStructInfo([T((2, 1))] * 3)
    assert well_formed(bb.get())


def test_match_cast_names_dimensions():
    n = Var("n", "int64")
    x = relax.Var("x", T(ndim=2, dtype="float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        y = bb.match_cast(x, T((n, 4), "float32"))
        bb.emit_func_output(bb.emit(relax.op.exp(y)))
    func = bb.get()["main"]
    assert isinstance(func.body.blocks[0].bindings[0], relax.MatchCast)
    # n is no dimension of a parameter: the caller cannot know it
    assert func.ret_struct_info == T(None, "float32", ndim=2)
    assert check_roundtrip(bb.get()) and verify_well_formed(bb.get())


def test_lookup_and_names():
    x = relax.Var("x", T((2,)))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        call = relax.op.exp(x)
        a = bb.emit(call)
        b = bb.emit(relax.op.exp(a), name_hint="result")
        bb.emit_func_output(b)
    assert bb.lookup_binding(a) is call and bb.lookup_binding(x) is None
    assert (a.name_hint, b.name_hint) == ("gv", "result")
    assert bb.get_unique_name("gv") == "gv1"


def test_functions_of_the_module_can_be_called():
    x = relax.Var("x", T((2, 3)))
    n = Var("n", "int64")
    y = relax.Var("y", T((n, 3)))
    bb = relax.BlockBuilder()
    with bb.function("double", [y], private=True):
        bb.emit_func_output(bb.emit(relax.op.add(y, y)))
    gv = bb.get().get_global_var("double")
    with bb.function("main", [x]):
        out = bb.emit(gv(x))
        bb.emit_func_output(out)
    assert out.struct_info == T((2, 3))
    assert check_roundtrip(bb.get())
    with pytest.raises(StructInfoError, match=r"double: argument 1 must be Tensor\(\(2, 3\)"):
        with bb.function("bad", [x]):
            bb.emit(gv(relax.const(np.zeros((2, 4), "float32"))))
    with pytest.raises(StructInfoError, match="takes 1 argument"):
        with bb.function("bad2", [x]):
            bb.emit(gv(x, x))


def test_update_and_add_functions():
    x = relax.Var("x", T((2,)))
    bb = relax.BlockBuilder()
    func = relax.Function([x], x)
    a, b = bb.add_func(func, "f"), bb.add_func(relax.Function([relax.Var("z", T((2,)))], x), "f")
    assert isinstance(a, GlobalVar) and (a.name_hint, b.name_hint) == ("f", "f1")
    assert bb.add_func(func, "other") is a
    bb.update_func(a, relax.Function([x], relax.Tuple([x])))
    assert a.struct_info.ret == relax.TupleStructInfo([T((2,))])


@pytest.mark.parametrize("action, message", [
    (lambda bb, x: bb.emit(relax.op.add(x, relax.const(np.zeros((4, 3), "float32")))),
     r"x1 has shape \(2, 3\) and x2 has shape \(4, 3\)"),
    (lambda bb, x: bb.emit_te(topi.matmul, x, x), "."),
    (lambda bb, x: bb.emit_te(lambda t: t, x), "gives back its input"),
    (lambda bb, x: bb.emit_te(lambda t: 3, x), "must give te tensors"),
    (lambda bb, x: bb.emit(None), "None is no Relax expression"),
    (lambda bb, x: bb.emit_func_output(x, [x]), "given twice"),
])
def test_mistakes_are_refused_where_they_are_made(action, message):
    x = relax.Var("x", T((2, 3)))
    bb = relax.BlockBuilder()
    with pytest.raises(Exception, match=message):
        with bb.function("main", [x]):
            action(bb, x)


def test_what_is_out_of_place_is_said():
    x = relax.Var("x", T((2, 3)))
    with pytest.raises(RuntimeError, match="no block to emit into"):
        relax.BlockBuilder().emit(relax.op.exp(x))
    with pytest.raises(RuntimeError, match="has no result"):
        with relax.BlockBuilder().function("main", [x]):
            pass
    bb = relax.BlockBuilder()
    with pytest.raises(RuntimeError, match="parameters of 'main' are not given"):
        with bb.function("main"):
            bb.emit_func_output(x)
    with pytest.raises(ValueError, match="no struct info: write"):
        bb.function("main", [relax.Var("y")])
    with pytest.raises(ValueError, match="must be known to make a tensor expression"):
        u = relax.Var("u", T(ndim=2))
        with relax.BlockBuilder().function("main", [u]) as _:
            relax.BlockBuilder().call_te(topi.nn.relu, u)


def test_a_builder_is_usable_after_a_mistake():
    x = relax.Var("x", T((2, 3)))
    bb = relax.BlockBuilder()
    with pytest.raises(StructInfoError):
        with bb.function("main", [x]):
            with bb.dataflow():
                bb.emit(relax.op.matmul(x, x))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(relax.op.exp(x)))
    assert well_formed(bb.get())


def test_branches_are_normalized():
    x, c = relax.Var("x", T((2,))), relax.Var("c", T((), "bool"))
    bb = relax.BlockBuilder()
    with bb.function("main", [c, x]):
        out = bb.emit(relax.If(c, relax.op.exp(relax.op.exp(x)), x))
        bb.emit_func_output(out)
    branch = bb.lookup_binding(out).true_branch
    assert isinstance(branch, relax.SeqExpr) and len(branch.blocks[0].bindings) == 2
    check_roundtrip(bb.get())
    verify_well_formed(bb.get())


def test_blocks_by_hand_under_tvms_names():
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    builder._begin_dataflow_block()
    builder.emit_output(builder.emit(relax.op.exp(x)))
    inner = builder._end_block()
    builder._begin_binding_block()
    builder.emit(relax.op.exp(x))
    outer = builder._end_block()
    assert type(inner) is relax.DataflowBlock and type(outer) is relax.BindingBlock
    assert [b.var.name_hint for b in (*inner.bindings, *outer.bindings)] == ["lv", "gv", "gv1"]


def test_a_dataflow_block_without_bindings_leaves_one_block_that_parses_back():
    x = relax.Var("x", T((2,)))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        first = bb.emit(relax.op.exp(x))
        with bb.dataflow():
            pass
        bb.emit_func_output(bb.emit(relax.op.exp(first)))
    assert len(bb.get()["main"].body.blocks) == 1
    check_roundtrip(bb.get())


def test_blocks_that_are_no_longer_dataflow_are_joined_with_their_neighbours():
    x = relax.Var("x", T((2,)))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            first = bb.emit_output(relax.op.exp(x))
        bb.emit_func_output(bb.emit(relax.op.exp(first)))
    plain = relax.transform.ToNonDataflow()(bb.get())
    assert len(plain["main"].body.blocks) == 1
    check_roundtrip(plain)


def test_the_result_of_a_function_does_not_belong_in_a_dataflow_block():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2, 3), "float32"))
    with pytest.raises(RuntimeError, match="after the block"):
        with bb.function("main", [x]):
            with bb.dataflow():
                bb.emit_func_output(bb.emit(relax.op.add(x, x)))
