"""Passes over functions with symbolic dimensions, branches, inner functions and effects."""

import numpy as np
import pytest
from laws import check_roundtrip

from mlc_lab import relax
from mlc_lab.relax import transform as X
from mlc_lab.relax.transform.fuse_tir import FuseTIRError
from mlc_lab.relax.transform.grouping import GroupError
from mlc_lab.script import from_source

from .run import Run, same_results

HEADER = "from mlc_lab.script import ir as I, tir as T, relax as R\n\n@I.ir_module\nclass Module:\n"

PROGRAMS = {
    "rows": ('''
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 6), "float32")):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.nn.relu(a)
            c = R.exp(b)
            d = R.sum(c, axis=1)
            e = R.sqrt(d)
            R.output(e, c)
        return (e, c)
''', lambda n: [np.ones((n, 4), "float32"), np.ones((4, 6), "float32")]),
    "made of a shape": ('''
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.full((n, 4), R.const(2.0, "float32"), "float32")
            b = R.exp(a)
            c = R.add(b, x)
            d = R.reshape(c, (n * 4,))
            e = R.negative(d)
            R.output(e)
        return e
''', lambda n: [np.ones((n, 4), "float32")]),
    "only a shape": ('''
    @R.function
    def main(s: R.Shape(["n"])):
        n = T.int64()
        with R.dataflow():
            a = R.full((n,), R.const(2.0, "float32"), "float32")
            b = R.exp(a)
            c = R.negative(b)
            R.output(c)
        return c
''', lambda n: [(n,)]),
    "cast": ('''
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m", 4), "float32")):
        n = T.int64()
        with R.dataflow():
            z = R.match_cast(y, R.Tensor((n, 4), "float32"))
            a = R.add(x, z)
            b = R.exp(a)
            R.output(b)
        return b
''', lambda n: [np.ones((n, 4), "float32"), np.ones((n, 4), "float32")]),
    "branches": ('''
    @R.function
    def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")):
        with R.dataflow():
            a = R.exp(x)
            a2 = R.exp(x)
            b = R.add(a, a2)
            R.output(b)
        if c:
            d = R.exp(x)
            e = R.add(d, b)
            f = e
        else:
            d = R.negative(x)
            u = R.tanh(d)
            f = d
        g = R.add(f, b)
        return g
''', lambda n: [np.ones(4, "float32"), np.array(n % 2 == 0)]),
    "inner functions": ('''
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        y = R.exp(x)
        @R.function
        def inner(a: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            b = R.add(a, y)
            return b

        u: R.Tensor((4,), "float32") = inner(x)
        v: R.Tensor((4,), "float32") = inner(u)
        return v
''', lambda n: [np.ones(4, "float32")]),
    "inner functions that use sizes": ('''
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        @R.function
        def inner(a: R.Tensor((1,), "float32")) -> R.Tensor((1,), "float32"):
            @R.function
            def most(b: R.Tensor((n,), "float32")) -> R.Tensor((1,), "float32"):
                c = R.max(b, keepdims=True)
                return c

            d = R.broadcast_to(a, (n,))
            e = R.sum(d, keepdims=True)
            f = R.exp(d)
            g: R.Tensor((1,), "float32") = most(f)
            h = R.add(e, g)
            return h

        y = R.full((1,), R.const(2.0, "float32"), "float32")
        u: R.Tensor((1,), "float32") = inner(y)
        v = R.add(x, u)
        return v
''', lambda n: [np.ones(n, "float32")]),
}

PIPELINES = {
    "clean": [X.EliminateCommonSubexpr(), X.CanonicalizeBindings(), X.DeadCodeElimination()],
    "fold": [X.FoldConstant()],
    "plain": [X.ToNonDataflow(), X.ConvertToDataflow()],
    "lift": [X.LambdaLift()],
    "lift and inline": [X.LambdaLift(), X.InlinePrivateFunctions()],
    "fuse": [X.LambdaLift(), X.LegalizeOps(), X.AnnotateTIROpPattern(), X.FuseOps(3)],
    "fuse tir": [X.LambdaLift(), X.LegalizeOps(), X.AnnotateTIROpPattern(), X.FuseOps(3),
                 X.FuseTIR()],
}


def module(text):
    return from_source(HEADER + text)


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_meaning_is_kept(name, pipeline):
    text, inputs = PROGRAMS[name]
    mod = module(text)
    new = mod
    for step in PIPELINES[pipeline]:
        new = step(new)
        assert relax.analysis.well_formed(new), new.script()
    before, after = Run(X.LegalizeOps()(mod)), Run(X.LegalizeOps()(new))
    for n in (3, 4):
        same_results(after(*inputs(n)), before(*inputs(n)))


def test_symbolic_groups_take_the_dimensions_that_no_argument_gives():
    mod = module(PROGRAMS["only a shape"][0])
    for step in PIPELINES["fuse"]:
        mod = step(mod)
    fused = mod["fused_full_tir_exp_tir_negative"]
    assert [p.name_hint for p in fused.params] == ["tir_vars"]
    mod = X.FuseTIR()(mod)
    assert [p.name for p in mod["fused_full_tir_exp_tir_negative"].params[1:]] == ["n"]


def test_a_known_dimension_takes_the_place_of_the_one_that_a_cast_defines():
    mod = X.CanonicalizeBindings()(module('''
    @R.function
    def main(x: R.Tensor((4, 8), "float32")):
        m = T.int64()
        y = R.match_cast(x, R.Tensor((m, 8), "float32"))
        z = R.exp(y)
        return z
'''))
    assert [int(d) for d in mod["main"].ret_struct_info.dims] == [4, 8]
    assert len(mod["main"].body.blocks[0].bindings) == 1


def test_effects_are_kept():
    mod = module('''
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")):
        u = R.exp(x)
        p = R.print(x, format="{}")
        q = R.print(x, format="{}")
        return x
''')
    new = X.DeadCodeElimination()(X.EliminateCommonSubexpr()(mod))
    assert [b.value.op.name for b in new["main"].body.blocks[0].bindings] == ["relax.print"] * 2


def test_params_are_bound_by_name_by_variable_and_checked():
    mod = module('''
    @R.function
    def main(x: R.Tensor((1, "m"), "float32"), w: R.Tensor(("n", "m"), "float32"),
             b: R.Tensor(("n",), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.multiply(w, x)
            c = R.add(a, R.reshape(b, (n, 1)))
            R.output(c)
        return c
''')
    w, b = np.ones((3, 4), "float32"), np.ones(3, "float32")
    new = X.BindParams("main", {"w": w, mod["main"].params[2]: b})(mod)
    assert [int(d) for d in new["main"].params[0].struct_info.dims] == [1, 4]
    assert [int(d) for d in new["main"].ret_struct_info.dims] == [3, 4]
    same = mod["main"].bind_params({"w": w, "b": b})
    assert len(same.params) == 1
    with pytest.raises(ValueError, match="no parameter 'v'; it has: x, w, b"):
        X.BindParams("main", {"v": w})(mod)
    with pytest.raises(ValueError, match="'w'"):
        X.BindParams("main", {"w": b})(mod)
    with pytest.raises(ValueError, match="other values bound"):
        X.BindParams("main", {"w": w, "b": np.ones(5, "float32")})(mod)
    with pytest.raises(ValueError, match="symbolic dimension 'k'"):
        X.BindSymbolicVars({"k": 3}, "main")(mod)


def test_what_cannot_be_one_kernel_is_refused_with_its_reason():
    mod = module('''
    @R.function(private=True)
    def f(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Primitive": 1})
        with R.dataflow():
            gv = R.exp(x)
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        gv: R.Tensor((4,), "float32") = cls.f(x)
        return gv
''')
    with pytest.raises(FuseTIRError, match="'f'.*relax.exp.*LegalizeOps"):
        X.FuseTIR()(mod)


def test_groups_that_wait_for_each_other_are_refused():
    from mlc_lab.relax.transform.grouping import Group, fuse_groups

    mod = module('''
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.negative(a)
            c = R.tanh(b)
            R.output(c)
        return c
''')
    a, b, c = mod["main"].body.blocks[0].bindings
    group = Group({})
    group.bindings = [a, c]
    with pytest.raises(GroupError, match="between two of them"):
        fuse_groups(mod.copy(), mod["main"], {a.var: group, c.var: group})


def canonical(text):
    from mlc_lab.relax.analysis import well_formed
    from mlc_lab.relax.transform import CanonicalizeBindings
    from mlc_lab.script import from_source

    mod = CanonicalizeBindings()(from_source("@I.ir_module\nclass M:\n    @R.function\n" + text))
    assert well_formed(mod)
    return mod["main"]


def test_a_match_cast_to_a_dimension_of_a_parameter_is_a_check_that_stays():
    func = canonical('''
    def main(a: R.Tensor(("m",), "float32"), x: R.Tensor(("k",), "float32")):
        m = T.int64()
        z = R.match_cast(x, R.Tensor((m,), "float32"))
        return R.add(a, z)
''')
    a, x = func.params
    assert a.struct_info.dims[0] is not x.struct_info.dims[0]
    assert type(func.body.blocks[0].bindings[0]).__name__ == "MatchCast"


def test_a_match_cast_that_says_nothing_may_be_the_output_of_its_block():
    func = canonical('''
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            lv = R.exp(x)
            gv = R.match_cast(lv, R.Tensor((4,), "float32"))
            R.output(gv)
        return gv
''')
    assert [b.var.name_hint for b in func.body.blocks[0].bindings] == ["gv"]


@pytest.mark.parametrize("kind, item", [("{}", ""), ("R.Tuple({})", "[0]")])
def test_what_follows_a_match_cast_is_inferred_from_the_known_dimensions(kind, item):
    func = canonical(f'''
    def main(x: {kind.format('R.Tensor(("m", "n"), "float32")')}):
        o, p = T.int64(), T.int64()
        z = R.match_cast(x, {kind.format('R.Tensor((o, p), "float32")')})
        q = R.add(z{item}, x{item})
        return R.exp(q)
''')
    info = func.params[0].struct_info
    assert func.ret_struct_info == (info.fields[0] if item else info)
    assert "match_cast" not in func.script()


def test_match_casts_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match="must be consistent: m is 16 by one"):
        canonical('''
    def main(x: R.Tensor((16,), "float32"), y: R.Tensor((32,), "float32")):
        m = T.int64()
        a = R.match_cast(x, R.Tensor((m,), "float32"))
        b = R.match_cast(y, R.Tensor((m,), "float32"))
        return (a, b)
''')


@pytest.mark.parametrize("exported", [False, True])
def test_functions_that_stay_share_no_variables_with_those_that_they_are_fused_into(exported):
    mod = from_source(HEADER + '''
    @R.function
    def main(x: R.Tensor((), "float32")):
        with R.dataflow():
            y = R.divide(x, R.add(R.abs(x), R.const(1.0, "float32")))
            R.output(y)
        return y
''')
    passes = [X.LegalizeOps(), X.AnnotateTIROpPattern(), X.FuseOps(), X.FuseTIR()]
    for step in (*passes[:1], *([X.AttachGlobalSymbol()] if exported else []), *passes[1:]):
        mod = step(mod)
    assert len(mod.functions) == (5 if exported else 2)
    check_roundtrip(mod)


@pytest.mark.parametrize("names, given", [
    ('["n"]', "(n,)"),  # all by a parameter
    ('["n", "n"]', "(n, n)"),  # twice
    ('["n * 2", "n"]', "(n * 2, n)"),  # and what follows from it
    ("[3]", "(3,)"), ('[3, "n"]', "(3, n)"),  # a constant says nothing new
])
def test_a_kernel_takes_each_number_that_a_variable_names_once(names, given):
    """Groups have numbers as parameters; those that were bound since, or are formulas, are none of
    the kernel."""
    known = "n" in names
    rows, main, twice = ("n", '"n"', '"n * 2"') if known else ("3", "3", "6")
    mod = from_source(HEADER + f'''
    @T.prim_func(private=True)
    def double(a: T.handle, b: T.handle, m: T.int64):
        A = T.match_buffer(a, (m * T.int64(2),))
        B = T.match_buffer(b, (m * T.int64(2),))
        for i in range(m * T.int64(2)):
            with T.block("B"):
                vi = T.axis.spatial(m * T.int64(2), i)
                B[vi] = A[vi] * T.float32(2)

    @R.function(private=True)
    def group(x: R.Tensor(({twice},), "float32"), s: R.Shape({names})
              ) -> R.Tensor(({twice},), "float32"):
        {"n = T.int64()" if known else ""}
        R.func_attr({{"Primitive": 1}})
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor(({rows} * 2,), "float32"),
                           tir_vars=R.shape([{rows}]))
            b = R.call_tir(cls.double, (a,), out_sinfo=R.Tensor(({rows} * 2,), "float32"),
                           tir_vars=R.shape([{rows}]))
            R.output(b)
        return b

    @R.function
    def main(y: R.Tensor(({main},), "float32")) -> R.Tensor(({twice},), "float32"):
        {"n = T.int64()" if known else ""}
        cls = Module
        with R.dataflow():
            x = R.concat((y, y), axis=0)
            z: R.Tensor(({rows} * 2,), "float32") = cls.group(x, R.shape({given}))
            R.output(z)
        return z
''')
    fused = X.FuseTIR()(X.LegalizeOps()(mod))
    assert len(fused["group"].params) == 2 + known
    y = np.arange(3, dtype="float32")
    for built in (fused, X.LegalizeOps()(mod)):
        vm = relax.VirtualMachine(relax.build(built, pipeline="default_build"))
        np.testing.assert_array_equal(vm["main"](y).numpy(), np.concatenate([y, y]) * 4)
