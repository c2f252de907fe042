"""The pattern language: what matches, what is extracted, and rewrites."""

import pytest

from mlc_lab import relax
from mlc_lab.relax.analysis import get_var2val, verify_well_formed, well_formed
from mlc_lab.relax.dpl import (
    PatternContext,
    has_attr,
    has_dtype,
    is_call_dps_packed,
    is_call_tir,
    is_const,
    is_dfv,
    is_expr,
    is_gv,
    is_op,
    is_shape,
    is_tuple,
    is_tuple_get_item,
    is_var,
    make_fused_bias_activation_pattern,
    rewrite_bindings,
    rewrite_call,
    wildcard,
)
from mlc_lab.script import from_source

FUNC = '''
@R.function
def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")):
    with R.dataflow():
        a = R.matmul(x, w)
        s = R.sigmoid(a)
        b = R.multiply(a, s)
        c = R.add(b, R.const(1, "float32"))
        d = R.nn.relu(c)
        e = R.sum(d, axis=1)
        t = (d, e)
        f = t[1]
        g = R.reshape(f, (1, 2))
        h = R.call_dps_packed("lib.f", (g, g), R.Tensor((1, 2), "float32"))
        R.output(h)
    return h
'''


@pytest.fixture
def func():
    return from_source(FUNC)


@pytest.fixture
def values(func):
    return {v.name_hint: e for v, e in get_var2val(func).items()}


def test_leaves_and_calls(func, values):
    known = get_var2val(func)
    x = wildcard()
    silu = is_op("relax.multiply")(x, is_op("relax.sigmoid")(x))
    assert silu.match(values["b"], known)
    assert not silu.match(values["b"])  # without the bindings s is just a variable
    found = silu.extract_matched_expr(values["b"], known)
    assert found[x].name_hint == "a" and found[silu] is values["b"]
    assert not is_op("relax.multiply")(x, x).match(values["b"], known)
    assert is_op("relax.add")(wildcard(), is_const()).match(values["c"])
    assert is_op("relax.add")(is_dfv("b"), is_const()).match(values["c"])
    assert not is_op("relax.add")(is_var("q"), is_const()).match(values["c"])
    assert not is_op("relax.add")(wildcard()).match(values["c"])
    assert is_op("relax.add")(wildcard(), varg_default_wildcard=True).match(values["c"])
    assert is_expr(func.params[0]).match(func.params[0])


def test_conditions(func, values):
    known = get_var2val(func)
    any_ = wildcard()
    assert is_op("relax.sum")(any_).has_attr({"axis": [1], "keepdims": False}).match(values["e"])
    assert not has_attr({"axis": [0]}, is_op("relax.sum")(any_)).match(values["e"])
    assert wildcard().has_shape((2, 3)).match(values["b"])
    assert not wildcard().has_shape((3, 2)).match(values["b"])
    assert has_dtype("float32").match(values["b"]) and not has_dtype("int8").match(values["b"])
    info = relax.TensorStructInfo(None, "float32", ndim=2)
    assert wildcard().has_struct_info(info).match(values["b"])
    assert is_tuple([is_dfv("d"), is_dfv("e")]).match(values["t"])
    assert is_tuple([is_dfv("e"), is_dfv("d")], unordered=True).match(values["t"])
    assert is_tuple_get_item(is_tuple(None), 1).match(values["f"], known)
    assert not is_tuple_get_item(wildcard(), 0).match(values["f"], known)
    assert is_op("relax.reshape")(wildcard(), is_shape((1, 2))).match(values["g"])
    assert is_call_dps_packed("lib.f").match(values["h"])
    assert is_call_dps_packed("lib.f", [wildcard(), wildcard()]).match(values["h"])
    assert not is_call_dps_packed("other").match(values["h"])


def test_alternatives(values):
    either = is_op("relax.add")(wildcard(), wildcard()) | is_op("relax.nn.relu")(wildcard())
    assert either.match(values["c"]) and either.match(values["d"])
    assert not either.match(values["e"])
    both = has_dtype("float32") & is_op("relax.nn.relu")(wildcard())
    assert both.match(values["d"]) and not both.match(values["c"])
    assert (~both).match(values["c"]) and not (~both).match(values["d"])


def test_a_failed_alternative_leaves_nothing_behind(func, values):
    x, y = wildcard(), wildcard()
    wrong = is_op("relax.multiply")(y, is_op("relax.exp")(x))
    right = is_op("relax.multiply")(x, is_op("relax.sigmoid")(x))
    found = (wrong | right).extract_matched_expr(values["b"], get_var2val(func))
    assert y not in found and found[x].name_hint == "a"


def test_functions_of_the_module():
    mod = from_source('''
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(x: T.Buffer((T.int64(4),), "float32"), y: T.Buffer((T.int64(4),), "float32")):
        for i in range(T.int64(4)):
            with T.block("b"):
                vi = T.axis.spatial(T.int64(4), i)
                y[vi] = x[vi]
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        y = R.call_tir(Module.f, (x,), R.Tensor((4,), "float32"))
        return y
''')
    value = mod["main"].body.blocks[0].bindings[0].value
    assert is_call_tir("f").match(value) and not is_call_tir("g").match(value)
    assert is_gv("f").match(value.args[0])


def test_rewrite_call(func):
    x = wildcard()
    silu = is_op("relax.multiply")(x, is_op("relax.sigmoid")(x))
    new = rewrite_call(silu, lambda expr, found: relax.op.nn.silu(found[x]), func)
    ops = [getattr(getattr(b.value, "op", None), "name", None) for b in new.body.blocks[0].bindings]
    assert ops[:3] == ["relax.matmul", "relax.nn.silu", "relax.add"] and well_formed(new)
    assert rewrite_call(silu, lambda expr, found: expr, func) is func


def test_rewrites_see_what_was_rewritten_before():
    func = from_source('''
@R.function
def main(x: R.Tensor((2,), "float32")):
    with R.dataflow():
        a = R.negative(x)
        b = R.negative(a)
        c = R.negative(b)
        d = R.negative(c)
        R.output(d)
    return d
''')
    x = wildcard()
    twice = is_op("relax.negative")(is_op("relax.negative")(x))
    new = rewrite_call(twice, lambda expr, found: found[x], func)
    assert "negative" not in str(new) and well_formed(new)


def test_uses_between_patterns(func):
    block = func.body.blocks[0]
    with PatternContext() as ctx:
        add = is_op("relax.add")(wildcard(), is_const())
        relu = is_op("relax.nn.relu")(wildcard())
        add >> relu
        found = ctx.match_dfb(block)
    assert found[add].name_hint == "c" and found[relu].name_hint == "d"
    with PatternContext() as ctx:
        product = is_op("relax.matmul")(wildcard(), wildcard())
        gate = is_op("relax.sigmoid")(wildcard())
        product >> gate
        assert ctx.match_dfb(block) is None  # the product is used twice
    with PatternContext() as ctx:
        product = is_op("relax.matmul")(wildcard(), wildcard())
        gate, scale = is_op("relax.sigmoid")(wildcard()), is_op("relax.multiply")(
            wildcard(), wildcard())
        product.fork_to(gate, scale)
        gate ^ scale
        found = ctx.match_dfb(block)
    assert [found[p].name_hint for p in (product, gate, scale)] == ["a", "s", "b"]


def test_rewrite_bindings(func):
    with PatternContext() as ctx:
        add = is_op("relax.add")(wildcard(), is_const())
        relu = is_op("relax.nn.relu")(wildcard())
        add >> relu
    new = rewrite_bindings(
        ctx, lambda found, bound: {found[relu]: relax.op.abs(bound[found[add]].args[0])}, func)
    assert "R.abs" in str(new) and "R.nn.relu" not in str(new) and well_formed(new)


def test_three_products_of_one_input_become_one():
    func = from_source('''
@R.function
def main(x: R.Tensor((4, 8), "float32"), w0: R.Tensor((8, 8), "float32"),
         w1: R.Tensor((8, 8), "float32"), w2: R.Tensor((8, 8), "float32")):
    with R.dataflow():
        q = R.matmul(x, w0)
        k = R.matmul(x, w1)
        v = R.matmul(x, w2)
        R.output(q, k, v)
    return (q, k, v)
''')
    with PatternContext() as ctx:
        inp, weights = wildcard(), [wildcard() for _ in range(3)]
        products = [is_op("relax.matmul")(inp, w) for w in weights]
        inp.fork_to(*products)

    def merge(found, bound):
        ws = [found[w] for w in weights]
        joined = relax.op.split(relax.op.matmul(found[inp], relax.op.concat(ws, 1)), 3, 1)
        return {found[p]: joined[k] for k, p in enumerate(products)}

    with ctx:
        found = ctx.match_dfb(func.body.blocks[0])
    assert {found[p].name_hint for p in products} == {"q", "k", "v"}
    new = rewrite_bindings(ctx, merge, func)
    assert verify_well_formed(new) and str(new).count("R.split(") == 1
    assert str(new).count("R.matmul(") == 1


def test_constructors_are_found_where_tvm_has_them():
    from mlc_lab.relax.dpl.pattern import is_op as same

    assert same is is_op


def test_outside_a_context():
    with pytest.raises(RuntimeError, match="PatternContext"):
        wildcard() >> wildcard()


def test_a_tuple_of_any_fields_in_any_order():
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    pattern = is_tuple(None, unordered=True)
    assert pattern.match(relax.Tuple([x, x])) and not pattern.match(x)


def test_an_operator_has_no_struct_info():
    info = relax.TensorStructInfo((2,), "float32")
    x = relax.Var("x", info)
    for function in (wildcard().has_dtype("float32"), wildcard().has_shape((2,)),
                     wildcard().has_struct_info(info)):
        assert not function(wildcard(), wildcard()).match(relax.op.add(x, x))
        assert function.match(x)


def test_library_patterns(func):
    pattern = make_fused_bias_activation_pattern("relax.matmul", True, "relax.nn.relu")
    assert not pattern.match(get_var2val(func)[func.body.body], get_var2val(func))


def test_items_of_patterns_and_what_they_ask_for():
    pair = is_tuple([wildcard(), is_dfv()])
    a, b = relax.Var("a"), relax.DataflowVar("b")
    value = relax.Tuple([a, b])
    assert pair[1].match(relax.TupleGetItem(value, 1)) and pair[-1].index == 1
    assert pair[None].match(relax.TupleGetItem(value, 0))
    assert not pair[0].match(relax.TupleGetItem(value, 1))
    with pytest.raises(IndexError, match="2 field"):
        pair[2]
    assert list(is_shape([2, 3])) == [2, 3] and len(is_shape([2, 3])) == 2
    assert has_dtype("float16").dtype == "float16"
    assert wildcard().has_shape([2, 3]).shape == (2, 3)


def test_a_chain_has_a_double():
    call = 'R.call_dps_packed("{}", ({},), out_sinfo=R.Tensor((4,), "float32"))'.format
    func = from_source(f"""
@R.function
def main(x: R.Tensor((4,), "float32")):
    with R.dataflow():
        a = {call("f", "x")}
        b = {call("g", "a")}
        c = {call("f", "x")}
        d = {call("g", "c")}
        e = R.add(b, d)
        R.output(e)
    return e
""")
    with PatternContext() as ctx:
        first = is_call_dps_packed("f") >> is_call_dps_packed("g")
        second = first.dup()
        assert not set(first.patterns) & set(second.patterns)
        is_var("x").fork_to(first, second)
        found = ctx.match_dfb(func.body.blocks[0])
    names = [found[p].name_hint for p in (*first.patterns, *second.patterns)]
    assert sorted(names) == ["a", "b", "c", "d"] and ord(names[1]) == ord(names[0]) + 1
