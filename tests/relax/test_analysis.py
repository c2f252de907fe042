"""Questions about programs, and well-formedness with errors that point."""

import pytest
from relax.programs import PROGRAMS

from mlc_lab import relax
from mlc_lab.ir import GlobalVar, IRModule, WellFormedError
from mlc_lab.relax import analysis as A
from mlc_lab.script import from_source
from mlc_lab.tir import Var

T = relax.TensorStructInfo


def names(items):
    return [getattr(v, "name_hint", None) or v.name for v in items]


@pytest.fixture
def mod():
    return from_source(PROGRAMS["dataflow"])


def test_variables_and_uses(mod):
    func = mod["main"]
    assert names(A.bound_vars(func)) == ["x", "lv", "lv1", "gv"] and A.free_vars(func) == []
    assert names(A.all_vars(func)) == ["x", "lv", "lv1", "gv"]
    assert names(A.free_vars(func.body)) == ["x"]
    assert names(A.all_global_vars(func)) == ["double"] and A.called_global_vars(func) == []
    assert {v.name_hint: names(u) for v, u in A.udchain(func.body.blocks[0]).items()} == {
        "x": ["lv"], "lv": ["lv1"], "lv1": ["gv"], "gv": []}
    assert names(A.get_var2val(func)) == ["lv", "lv1", "gv"]
    assert list(A.name_to_binding(func)) == ["lv", "lv1", "gv"]
    assert names(A.defined_symbolic_vars(func)) == ["n"] and A.free_symbolic_vars(func) == []


def test_purity(mod):
    assert not A.contains_impure_call(mod["main"])
    other = from_source(PROGRAMS["everything"])["main"]
    assert A.find_impure_call(other).op.name == "relax.print"


def test_weights_are_known_at_compile_time():
    func = from_source('''
@R.function
def main(x: R.Tensor((2,), "float32"), w: R.Tensor((2,), "float32")):
    R.func_attr({"num_input": 1})
    with R.dataflow():
        a = R.exp(w)
        b = R.add(x, a)
        R.output(b)
    return b
''')
    assert names(A.computable_at_compile_time(func)) == ["w", "a"]


def test_recursion():
    mod = from_source('''
@I.ir_module
class Module:
    @R.function
    def a(x: R.Tensor) -> R.Tensor:
        y: R.Tensor = Module.b(x)
        return y
    @R.function
    def b(x: R.Tensor) -> R.Tensor:
        y: R.Tensor = Module.a(x)
        return y
    @R.function
    def c(x: R.Tensor) -> R.Tensor:
        y: R.Tensor = Module.c(x)
        return y
    @R.function
    def d(x: R.Tensor) -> R.Tensor:
        y: R.Tensor = Module.c(x)
        return y
''')
    assert sorted(map(names, A.detect_recursion(mod))) == [["a", "b"], ["c"]]


def broken(rule, build):
    with pytest.raises(WellFormedError) as caught:
        A.verify_well_formed(build)
    assert caught.value.rule == rule, str(caught.value)
    assert not A.well_formed(build)
    return str(caught.value)


def function(bindings, result, params, dataflow=False, **options):
    block = (relax.DataflowBlock if dataflow else relax.BindingBlock)(bindings)
    return relax.Function(params, relax.SeqExpr([block], result), **options)


X = relax.Var("x", T((2, 3)))
Y = relax.Var("y", T((2, 3)))
D = relax.DataflowVar("d", T((2, 3)))
N = Var("n", "int64")


def test_rules():
    exp = relax.op.exp
    text = broken("undefined_variable", function([relax.VarBinding(Y, exp(D))], Y, [X]))
    assert "^" in text and "y: R.Tensor" in text
    broken("bound_twice", function([relax.VarBinding(Y, exp(X)), relax.VarBinding(Y, exp(X))],
                                   Y, [X]))
    broken("bound_twice", function([relax.VarBinding(X, exp(X))], X, [X]))
    text = broken("escaping_variable", function([relax.VarBinding(D, exp(X))], D, [X], True))
    assert "R.output" in text
    broken("escaping_variable", function([relax.VarBinding(D, exp(X))], X, [X]))
    broken("not_normal", function([relax.VarBinding(Y, exp(exp(X)))], Y, [X]))
    broken("not_normal", function([], exp(X), [X]))
    symbolic = relax.Var("s", T((N,)))
    broken("undefined_symbol", function([relax.VarBinding(symbolic, relax.op.zeros((N,), "float32")
                                                          )], symbolic, [X]))
    broken("no_struct_info", function([relax.VarBinding(Y, relax.Call("relax.exp", [X]))], Y, [X]))
    wrong = relax.Var("w", T((9,)))
    broken("no_struct_info", function([relax.VarBinding(wrong, exp(X))], wrong, [X]))
    broken("return_type", function([], X, [X], ret_struct_info=T((5,))))
    void = relax.Var("v", relax.TupleStructInfo(()))
    broken("impure_in_pure", function([relax.VarBinding(void, relax.op.print(X))], X, [X]))
    broken("impure_in_dataflow", function([relax.VarBinding(void, relax.op.print(X))], X, [X],
                                          True, is_pure=False))
    assert A.well_formed(function([relax.VarBinding(void, relax.op.print(X))], X, [X],
                                  is_pure=False))
    assert A.well_formed(function([relax.VarBinding(void, relax.op.print(X))], X, [X],
                                  attrs={"relax.force_pure": True}))
    c = relax.Var("c", T((), "bool"))
    branch = relax.SeqExpr([], X)
    broken("if_in_dataflow", function([relax.VarBinding(Y, relax.If(c, branch, branch))], Y,
                                      [X, c], True))


def test_functions_have_symbolic_variables_of_their_own():
    param = relax.Var("x", T((N,)))
    other = relax.Var("y", T((N,)))
    mod = IRModule({"f": function([], param, [param]), "g": function([], other, [other])})
    with pytest.raises(WellFormedError, match="both define the symbolic variable n"):
        A.verify_well_formed(mod)


def test_calls_of_the_module_are_checked(mod):
    func = function([relax.VarBinding(Y, relax.op.call_tir(relax.GlobalVar("f"), [X], T((2, 3))))],
                    Y, [X])
    other = mod.copy()
    other.update_func("g", func)
    assert "no function 'f'" in broken("unknown_function", other)
    gv = mod.get_global_var("double")
    other.update_func("g", function(
        [relax.VarBinding(Y, relax.op.call_tir(gv, [X], T((2, 3))))], Y, [X]))
    assert "argument 1" in broken("tir_arguments", other)
    other.update_func("g", function(
        [relax.VarBinding(Y, relax.op.call_tir(gv, [X, X], T((2, 3))))], Y, [X]))
    assert "takes 2 parameter(s); the call gives 2 argument(s), 1 output(s)" in broken(
        "tir_arguments", other)


def test_lowered_functions_call_kernels_directly(mod):
    gv = mod.get_global_var("double")
    void = relax.Var("v", relax.TupleStructInfo(()))
    call = relax.BlockBuilder(mod).normalize(relax.Call(gv, [X, X]))
    assert call.struct_info == relax.TupleStructInfo(())
    other = mod.copy()
    other.update_func("g", function([relax.VarBinding(void, call)], X, [X]))
    assert "R.call_tir" in broken("tir_arguments", other)
    other.update_func("g", function([relax.VarBinding(void, call)], X, [X], is_pure=False))
    assert A.well_formed(other)


def test_static_types(mod):
    info = relax.TupleStructInfo([T((N, 2)), relax.ShapeStructInfo((N,))])
    assert A.get_static_type(info) == relax.TupleStructInfo(
        [T(ndim=2), relax.ShapeStructInfo(ndim=1)])


def test_a_body_is_cleaned_as_a_function_is():
    func = from_source("""
@R.function
def f(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
    with R.dataflow():
        a = R.exp(x)
        unused = R.sin(a)
        R.output(a)
    return a
""")
    body = relax.analysis.remove_all_unused(func.body)
    assert [b.var.name_hint for b in body.blocks[0].bindings] == ["a"]
    assert relax.analysis.remove_all_unused(body) is body


def test_more_rules_of_a_program():
    n, x = Var("n", "int64"), relax.Var("x", T((4,), "float32"))
    y = relax.Var("y", T((n,), "float32"))
    body = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(y, relax.op.exp(x))])], y)
    free = relax.Function([x], body, T(ndim=1, dtype="float32"))
    assert not A.well_formed(free, check_struct_info=False)
    plain = relax.Function([x], relax.SeqExpr([], x), T((4,), "float32"))
    assert A.well_formed(IRModule({GlobalVar("f"): plain.with_attr("global_symbol", "f")}))
    with pytest.raises(WellFormedError, match="global_symbol"):
        A.verify_well_formed(IRModule({GlobalVar("f"): plain.with_attr("global_symbol", "g")}))
    c, z = relax.Var("c", T((), "bool")), relax.Var("z", T((4,), "float32"))
    branch = relax.SeqExpr([], x)
    chosen = relax.VarBinding(z, relax.If(relax.TupleGetItem(relax.Tuple([c]), 0), branch, branch))
    with pytest.raises(WellFormedError, match="not_normal"):
        A.verify_well_formed(relax.Function(
            [x, c], relax.SeqExpr([relax.BindingBlock([chosen])], z), T((4,), "float32")))
