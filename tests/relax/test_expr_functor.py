"""Visitors and mutators, as the course writes them."""

import pytest
from relax.programs import PROGRAMS

from mlc_lab import relax, tir
from mlc_lab.ir import assert_structural_equal
from mlc_lab.relax.analysis import well_formed
from mlc_lab.relax.expr_functor import (
    PyExprMutator,
    PyExprVisitor,
    mutator,
    post_order_visit,
    visitor,
)
from mlc_lab.reading import MLCError
from mlc_lab.script import from_source

MOD = '''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32")):
        cls = Module
        with R.dataflow():
            lv0 = R.multiply(x, y)
            gv0 = R.add(lv0, y)
            R.output(gv0)
        return gv0
'''


def ewise_fma_mod():
    return from_source(MOD)


@mutator
class EwiseFMARewriter(PyExprMutator):
    """The rewriter of the course's chapter on graph optimisation."""

    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        add_op, multiply_op = "relax.add", "relax.multiply"
        if getattr(call.op, "name", None) != add_op:
            return call
        value = self.lookup_binding(call.args[0])
        if value is None or getattr(value.op, "name", None) != multiply_op:
            return call
        fma = relax.op.ewise_fma(value.args[0], value.args[1], call.args[1])
        return fma


def test_the_rewriter_of_the_course():
    mod = ewise_fma_mod()
    new = EwiseFMARewriter().visit_expr(mod["main"])
    last = new.body.blocks[0].bindings[-1]
    assert last.value.op.name == "relax.ewise_fma"
    cleaned = relax.analysis.remove_all_unused(new)
    assert len(cleaned.body.blocks[0].bindings) == 1


def test_a_mutator_that_changes_nothing_gives_the_same_object():
    for text in (MOD, PROGRAMS["dataflow"]):
        mod = from_source(text)
        assert PyExprMutator(mod).visit_expr(mod["main"]) is mod["main"]


def test_everything_survives_being_rebuilt():
    class Rebuild(PyExprMutator):
        def visit_var_def_(self, var):
            new = type(var).from_fields(var.name_hint, var.struct_info_)
            self.set_var_remap(var, new)
            return new

    mod = from_source(PROGRAMS["everything"])
    new = Rebuild(mod).visit_expr(mod["main"])
    assert new is not mod["main"]
    assert_structural_equal(new, mod["main"])


def test_nested_values_from_a_method_are_bound():
    @mutator
    class Square(PyExprMutator):
        def visit_call_(self, call):
            if call.op.name == "relax.multiply":
                a, b = call.args
                return relax.op.add(relax.op.exp(relax.op.add(relax.op.log(a), relax.op.log(b))), a)
            return super().visit_call_(call)

    mod = ewise_fma_mod()
    new = Square(mod).visit_expr(mod["main"])
    assert [b.value.op.name for b in new.body.blocks[0].bindings] == [
        f"relax.{n}" for n in ("log", "log", "add", "exp", "add", "add")]
    mod.update_func(mod.get_global_var("main"), new)
    assert well_formed(mod)


def test_struct_info_follows_a_change():
    class Half(PyExprMutator):
        def visit_call_(self, call):
            call = self.visit_expr_post_order(call)
            if call.op.name == "relax.multiply":
                return relax.op.astype(call, "float16")
            return relax.op.astype(call.args[0], "float16")

    new = Half(None).visit_expr(ewise_fma_mod()["main"])
    assert new.ret_struct_info == relax.TensorStructInfo((3, 4), "float16")
    assert new.body.body.struct_info == new.ret_struct_info


def test_builder_of_a_mutator_keeps_the_module():
    @mutator
    class Lower(PyExprMutator):
        def __init__(self, mod):
            super().__init__(mod)
            self.mod_ = mod

        def visit_call_(self, call):
            call = self.visit_expr_post_order(call)
            if call.op.name == "relax.add":
                from mlc_lab import topi

                return self.builder_.call_te(topi.add, *call.args)
            return call

        def transform(self):
            for var, func in self.mod_.functions.items():
                if isinstance(func, relax.Function):
                    self.builder_.update_func(var, self.visit_expr(func))
            return self.builder_.get()

    mod = ewise_fma_mod()
    new = Lower(mod).transform()
    assert [v.name_hint for v in new.functions] == ["main", "add"]
    assert len(mod.functions) == 1 and well_formed(new)


def test_visitor_sees_everything_in_order():
    @visitor
    class Names(PyExprVisitor):
        def __init__(self):
            self.seen = []

        def visit_call_(self, call):
            self.visit_expr_post_order(call)
            self.seen.append(getattr(call.op, "name", None))

        def visit_var_def_(self, var):
            self.seen.append(var.name_hint)

    names = Names()
    names.visit_expr(ewise_fma_mod()["main"])
    assert names.seen == ["x", "y", "relax.multiply", "lv0", "relax.add", "gv0"]


def test_post_order_visit_sees_each_expression_once():
    func = from_source(PROGRAMS["everything"])["main"]
    seen = []
    post_order_visit(func, seen.append)
    assert seen[-1] is func and len(seen) == len({id(s) for s in seen})


def test_decorators_refuse_other_classes():
    with pytest.raises(TypeError, match="subclass of PyExprMutator"):
        mutator(int)


def test_a_node_of_another_language_is_refused():
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    wrong = relax.Call(relax.op.add(x, x).op, [x, tir.FloatImm("float32", 1.0)])
    with pytest.raises(MLCError, match="FloatImm is no Relax expression"):
        post_order_visit(wrong, lambda node: None)
