"""R in TVMScript: what is printed parses back to the same program, and mistakes are pointed at."""

import re

import numpy as np
import pytest
from laws import check_roundtrip
from relax.programs import PROGRAMS

from mlc_lab import relax
from mlc_lab.ir import IRModule, assert_structural_equal, structural_equal
from mlc_lab.ir.diagnostics import DiagnosticError
from mlc_lab.ir.serialize import load_json, save_json
from mlc_lab.script import from_source, print_with_spans
from mlc_lab.script import ir as I
from mlc_lab.script import relax as R
from mlc_lab.script import tir as T
from mlc_lab.tir import Var


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_programs_print_as_they_were_written(name):
    text = PROGRAMS[name]
    mod = from_source(text)
    printed = check_roundtrip(mod)
    assert printed.split("\n\n", 1)[1].strip() == text.strip()


def test_constants_with_metadata_come_back():
    weight = np.arange(6, dtype="float32").reshape(2, 3)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4, 2), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(relax.op.matmul(x, relax.const(weight)))
        builder.emit_func_output(out)
    mod = builder.get()
    assert 'metadata["relax.expr.Constant"][0]' in mod.script()
    assert mod.script().endswith("# Metadata omitted. Use show_meta=True in script() method to "
                                 "show it.")
    with pytest.raises(DiagnosticError, match="constants are not in this text"):
        from_source(mod.script())
    again = from_source(mod.script(show_meta=True))
    assert_structural_equal(mod, again)
    constant = again["main"].body.blocks[0].bindings[0].value.args[1]
    np.testing.assert_array_equal(constant.data.numpy(), weight)
    assert_structural_equal(mod, load_json(save_json(mod)))


def test_the_same_constant_is_one_entry_of_the_metadata():
    c = relax.const(np.ones((2, 2), "float32"))
    text = relax.op.add(c, c).__repr__()
    assert text.startswith('R.add(metadata["relax.expr.Constant"][0], '
                           'metadata["relax.expr.Constant"][0])')


def test_decorated_functions_are_parsed_where_they_stand():
    n = Var("n", "int64")

    @R.function
    def plain(x: R.Tensor((2, 3), "float32")):
        y = R.add(x, R.multiply(x, x))
        return y

    @R.function(private=True, pure=False)
    def outside_symbol(x: R.Tensor((n, 3), "float32")) -> R.Tensor((n, 3), "float32"):
        R.print(x)
        return x

    assert [b.var.name_hint for b in plain.body.blocks[0].bindings] == ["gv", "y"]
    assert plain.attrs["global_symbol"] == "plain"
    assert outside_symbol.params[0].struct_info.shape[0] is n
    assert not outside_symbol.is_pure and "global_symbol" not in outside_symbol.attrs


def test_modules_of_the_course_parse():
    @I.ir_module
    class Mixed:
        @T.prim_func
        def linear0(x: T.handle, w: T.handle, z: T.handle):
            m, n = T.int64(), T.int64()
            X = T.match_buffer(x, (1, m), "float32")
            W = T.match_buffer(w, (n, m), "float32")
            Z = T.match_buffer(z, (1, n), "float32")
            for i, j, k in T.grid(1, n, m):
                with T.block("Z"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        Z[vi, vj] = 0.0
                    Z[vi, vj] += X[vi, vk] * W[vj, vk]

        @R.function
        def main(x: R.Tensor((1, "m"), "float32"), w0: R.Tensor(("n", "m"), "float32"),
                 w1: R.Tensor(("k", "n"), "float32")):
            m, n, k = T.int64(), T.int64(), T.int64()
            with R.dataflow():
                lv0 = R.call_dps_packed("env.linear", (x, w0), R.Tensor((1, n), "float32"))
                out = R.call_tir(linear0, (lv0, w1), (1, k), dtype="float32")
                R.output(out)
            return out

    check_roundtrip(Mixed)
    first, second = Mixed["main"].body.blocks[0].bindings
    assert first.value.args[0].global_symbol == "env.linear"
    assert second.value.args[0] is Mixed.get_global_var("linear0")
    assert second.var.struct_info == relax.TensorStructInfo(
        (1, Mixed["main"].params[2].struct_info.shape[0]), "float32")


def test_functions_are_known_to_those_before_them():
    mod = from_source('''
@I.ir_module
class Module:
    @R.function
    def a(x: R.Tensor((4, "n"), "float32")):
        cls = Module
        y = cls.b(x)
        return y
    @R.function
    def b(x: R.Tensor(("m", "n"), "float32")) -> R.Tensor(("n", "m"), "float32"):
        y = R.permute_dims(x)
        return y
''')
    n = mod["a"].params[0].struct_info.shape[1]
    assert mod["a"].ret_struct_info == relax.TensorStructInfo((n, 4), "float32")
    check_roundtrip(mod)


def test_emit_te_and_unpacking_in_a_script():
    from mlc_lab import topi

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2, 4), "float32")):
            a, b = R.split(x, 2, axis=1)
            y = R.emit_te(topi.add, a, b)
            return y

    assert [v.name_hint for v in Module.functions] == ["main", "add"]
    check_roundtrip(Module)


def test_macros_are_inlined_and_give_their_value():
    @R.macro
    def gate(x, scale):
        y = R.multiply(x, scale)
        return R.sigmoid(y)

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        a = gate(x, R.const(2.0, "float32"))
        b = R.add(gate(a, a), x)
        return b

    ops = [b.value.op.name.removeprefix("relax.") for b in main.body.blocks[0].bindings
           if isinstance(b.value, relax.Call)]
    assert ops == ["multiply", "sigmoid", "multiply", "sigmoid", "add"]
    check_roundtrip(main)


def test_names_that_clash_are_told_apart():
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        a = builder.emit(relax.op.exp(x), name_hint="x")
        b = builder.emit(relax.op.exp(a), name_hint="for")
        builder.emit_func_output(b)
    text = check_roundtrip(builder.get())
    assert re.findall(r"(\w+): R.Tensor\(\(4,\), dtype=\"float32\"\) = R.exp\((\w+)\)", text) == [
        ("x_1", "x"), ("for_1", "x_1")]


def test_every_binding_and_expression_has_its_place():
    mod = from_source(PROGRAMS["dataflow"])
    printed = print_with_spans(mod, exprs=True)
    lines = printed.text.split("\n")
    for binding in mod["main"].body.blocks[0].bindings:
        line0, col0, line1, col1 = printed.find(binding)
        assert line0 == line1 and lines[line0][col0:col1].replace("cls.", "") == repr(binding)
        value = printed.find(binding.value)
        assert lines[value[0]][value[1]:value[3]].startswith(repr(binding.value)[:10])


def test_pieces_print_alone():
    mod = from_source(PROGRAMS["dataflow"])
    func = mod["main"]
    block = func.body.blocks[0]
    assert repr(func.params[0]) == "x"
    assert repr(func.params[0].struct_info) == 'R.Tensor((n, 4), dtype="float32")'
    assert repr(block.bindings[1]) == (
        'lv1: R.Tensor((n, 4), dtype="float32") = R.add(lv, R.const(1.5, "float32"))')
    assert repr(block).startswith("with R.dataflow():\n    lv = R.call_tir(double, (x,)")
    assert repr(relax.ShapeExpr([1, 2])) == "R.shape([1, 2])"
    assert "def main" in repr(func)


def test_from_expr_and_attributes():
    func = from_source(PROGRAMS["dataflow"])["main"]
    mod = IRModule.from_expr(func.with_attr("global_symbol", "other"))
    assert [v.name_hint for v in mod.functions] == ["other"]
    assert func.with_attr("k", 2).attrs["k"].value == 2


def test_struct_info_outside_a_script_makes_its_own_symbols():
    info = R.Tensor(("n", 4, "n"), "float32").as_struct_info()
    assert info.shape[0] is info.shape[2] and info.shape[0].name == "n"
    assert R.Tensor((1, 2), "float32") == relax.TensorStructInfo((1, 2), "float32")
    assert structural_equal(relax.Var("x", R.Shape(["n"])).struct_info,
                            relax.ShapeStructInfo([Var("n", "int64")]), map_free_vars=True)


_HEAD = "@R.function\ndef f(x: R.Tensor((2, 3), 'float32'), y: R.Tensor((4, 3), 'float32')):\n"


@pytest.mark.parametrize("body, line, column, message", [
    ("    with R.dataflow():\n        z = R.multiply(x, R.add(x, y))\n        R.output(z)\n"
     "    return z", 4, 27, r"\(2, 3\) and x2 has shape \(4, 3\)"),
    ("    with R.dataflow():\n        z = R.exp(x)\n        w = R.exp(z)\n        R.output(w)\n"
     "    return z", 7, 12, "seen only inside its dataflow block"),
    ("    z = R.addd(x, x)\n    return z", 3, 11, "no name 'addd'"),
    ("    z: R.Tensor((9,), 'float32') = R.exp(x)\n    return z", 3, 36, "declared"),
    ("    R.print(x)\n    return x", 3, 5, "impure_in_pure"),
    ("    z = R.exp(x)", 2, 1, "returns nothing"),
    ("    return x\n    z = R.exp(x)", 4, 5, "after the return"),
    ("    with R.dataflow():\n        return x\n", 4, 9, "cannot return"),
    ("    for i in range(3):\n        z = x\n    return z", 3, 5, "no statement of a Relax"),
    ("    x[0] = y\n    return x", 3, 5, "only names can be assigned"),
    ("    if x:\n        z = x\n    else:\n        z = y\n    return z", 3, 8, "bool scalar"),
    ("    z = R.matmul(x, y, out_type='float32')\n    return z", 3, 9, "unexpected keyword"),
    ("    z = R.match_cast(x, R.Tensor((m, 3), 'float32'))\n    return z", 3, 35, "undefined name"),
    ("    with R.dataflow():\n        z = R.exp(x)\n        R.output(w)\n    return z", 5, 18,
     "not bound in this dataflow block"),
    ("    a, b = x\n    return a", 3, 5, "cannot be bound to 2 names"),
])
def test_mistakes_are_pointed_at(body, line, column, message):
    with pytest.raises(DiagnosticError, match=message) as caught:
        from_source(_HEAD + body)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_tensorir_functions_are_called_through_call_tir():
    text = PROGRAMS["dataflow"].replace(
        'R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((n, 4), dtype="float32"))',
        "cls.double(x)")
    with pytest.raises(DiagnosticError, match=r"call it with R.call_tir\(cls.double"):
        from_source(text)


def test_branches_must_agree_on_a_name():
    text = ("@R.function\ndef f(c: R.Tensor((), 'bool'), x: R.Tensor((2,), 'float32')):\n"
            "    if c:\n        a = x\n    else:\n        b = x\n    return a")
    with pytest.raises(DiagnosticError, match="the same name, not 'a' and 'b'"):
        from_source(text)


def test_symbols_keep_their_kind():
    from mlc_lab.tir import SizeVar

    n = SizeVar("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo((n, 4), "float32"))
    check_roundtrip(IRModule({"main": relax.Function([x], x, attrs={"global_symbol": "main"})}))


def test_a_local_function_may_call_itself():
    mod = from_source('''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), dtype="float32"), c: R.Tensor((), dtype="bool")) -> R.Tensor((4,), dtype="float32"):
        @R.function
        def loop(y: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
            if c:
                r: R.Tensor((4,), dtype="float32") = y
            else:
                z: R.Tensor((4,), dtype="float32") = R.exp(y)
                w: R.Tensor((4,), dtype="float32") = loop(z)
                r: R.Tensor((4,), dtype="float32") = w
            return r

        out: R.Tensor((4,), dtype="float32") = loop(x)
        return out
''')  # noqa: E501
    check_roundtrip(mod)


def test_other_vintages():
    assert relax.DynTensorType(2, "float32") == relax.TensorStructInfo(None, "float32", ndim=2)
    assert relax.const(np.ones((2, 2), "float32"), relax.DynTensorType(2, "float32")).data.shape
    func = from_source("@R.function\ndef f(x: R.Any) -> R.Any:\n    return x")
    assert func.ret_struct_info == relax.ObjectStructInfo()
    with pytest.raises(AttributeError, match="R has no name"):
        R.nothing_of_the_kind


def test_numbers_at_the_edges_come_back():
    x = relax.Var("x", relax.TensorStructInfo((), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        out = x
        for value in (float("inf"), float("-inf"), float("nan"), 1e30, 1e-7, -0.0):
            out = builder.emit(relax.op.add(out, relax.const(value, "float32")))
        builder.emit_func_output(out)
    check_roundtrip(builder.get())


def refused(text, match):
    with pytest.raises(DiagnosticError, match=match):
        from_source("@R.function\n" + text)


def test_statements_without_effect_are_refused():
    refused('def f(x: R.Tensor((4,))):\n    R.add(x, x)\n    return x', "is lost")
    refused('def f(c: R.Tensor((), "bool"), x: R.Tensor((4,))):\n    if c:\n        R.add(x, x)\n'
            '    else:\n        R.exp(x)\n    return x', "is lost")


def test_a_branch_gives_a_value():
    refused('def f(c: R.Tensor((), "bool"), x: R.Tensor((4,))):\n    if c:\n        y = R.exp(x)\n'
            '    else:\n        y: R.Tensor((4,))\n    return y', "y is declared and gets no value")


def test_nothing_follows_r_output():
    head = 'def f(x: R.Tensor((4,))):\n    with R.dataflow():\n        y = R.exp(x)\n'
    for line in ("z = R.exp(y)", "R.output(y)"):
        refused(f"{head}        R.output(y)\n        {line}\n    return y", "after R.output")


def test_branches_may_end_in_calls_for_their_effect():
    named, plain = (from_source(f'''
@R.function(pure=False)
def f(c: R.Tensor((), "bool"), x: R.Tensor((), "int32")):
    if c:
        {name}R.print(x, format="yes {{}}")
    else:
        {name}R.print(x, format="no {{}}")
    return x
''') for name in ("y = ", ""))
    assert_structural_equal(named, plain)
    check_roundtrip(plain)


def test_a_declared_result_that_says_less_is_made_precise():
    func = from_source('@R.function\ndef f(x: R.Tensor((4,), "float32")) -> R.Tensor:\n'
                       '    return x')
    assert func.ret_struct_info == relax.TensorStructInfo((4,), "float32")
    func = from_source('@R.function\ndef f(x: R.Tensor) -> R.Tensor((4,), "int8"):\n'
                       '    return x')
    assert func.ret_struct_info == relax.TensorStructInfo((4,), "int8")


def test_none_as_result_is_the_empty_tuple():
    func = from_source("@R.function\ndef f(x: R.Tensor) -> None:\n    return R.tuple()")
    assert func.ret_struct_info == relax.TupleStructInfo(())


def test_a_function_may_be_defined_in_a_dataflow_block():
    func = from_source('''
@R.function
def f(x: R.Tensor((4,), "float32")):
    with R.dataflow():
        @R.function
        def twice(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return R.add(y, y)
        z = twice(x)
        R.output(z)
    return z
''')
    assert type(func.body.blocks[0].bindings[0].var) is relax.DataflowVar
    check_roundtrip(func)


def test_functions_of_the_module_are_values():
    mod = from_source('''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        g = Module.twice
        return (g, g(x))

    @R.function
    def twice(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.add(x, x)
''')
    assert mod["main"].ret_struct_info.fields[0] == mod["twice"].struct_info
    check_roundtrip(mod)


def test_an_extern_function_may_belong_to_the_module():
    mod = from_source('''
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")):
        return Module.ext(x)

    ext = R.ExternFunc("my.ext")
''')
    assert mod["ext"].global_symbol == "my.ext"
    check_roundtrip(mod)


def test_allocation_is_no_effect():
    check_roundtrip(from_source('''
@R.function
def f(x: R.Tensor((4,), "float32")):
    y = R.builtin.alloc_tensor(R.shape([4]), dtype="float32", runtime_device_index=0)
    return y
'''))


def test_private_functions_have_no_symbol():
    with pytest.raises(DiagnosticError, match="private and yet"):
        from_source('@R.function(private=True)\ndef f(x: R.Tensor):\n'
                    '    R.func_attr({"global_symbol": "f"})\n    return x')


@pytest.mark.parametrize("ndim", [-2, "1"])
def test_ndim_is_a_number_of_dimensions(ndim):
    with pytest.raises(ValueError, match="number of dimensions"):
        relax.TensorStructInfo(ndim=ndim)


def test_an_index_map_comes_back_with_its_dtype():
    x = relax.Var("x", relax.TensorStructInfo((6,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(
            relax.op.layout_transform(x, lambda i: (i // 4, i % 4), pad_value=7.0)))
    check_roundtrip(builder.get())


HEAD = """
from tvm.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    I.module_attrs({attrs})

    @R.function
    def f(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return x

    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")):
        R.func_attr({func_attrs})
        cls = Module
        y = R.call_packed({call}, sinfo_args=(R.Tensor((4,), "float32"),))
        return y
"""


@pytest.mark.parametrize("change, words", [
    ({"attrs": "{1: 2}"}, "I.module_attrs takes a dict by names"),
    ({"attrs": "[1]"}, "I.module_attrs takes a dict by names"),
    ({"attrs": ""}, "I.module_attrs takes a dict by names"),
    ({"func_attrs": "{True: 2}"}, "R.func_attr takes a dict by names"),
    ({"call": "cls.f, x"}, "call_packed takes the name of a packed function"),
])
def test_attributes_have_names_and_packed_functions_too(change, words):
    good = {"attrs": '{"a": 1}', "func_attrs": '{"b": 2}', "call": '"f", x, sizes=[1, (2, 3)]'}
    mod = from_source(HEAD.format(**good))
    assert_structural_equal(from_source(mod.script()), mod)
    with pytest.raises(DiagnosticError, match=words):
        from_source(HEAD.format(**{**good, **change}))


def test_a_bare_tuple_after_the_arrow_leaves_the_rest_to_be_found():
    text = """
@R.function
def f(x: R.Tensor((2,), "float32")) -> R.Tuple:
    gv = VALUE
    return gv
"""
    func = from_source(text.replace("VALUE", "(x, x)"))
    assert len(func.ret_struct_info.fields) == 2
    with pytest.raises(DiagnosticError, match="declared to give a tuple"):
        from_source(text.replace("VALUE", "R.exp(x)"))


def test_a_symbol_may_be_made_by_its_name():
    func = from_source("""
@R.function
def f(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n * 2", 1), "float32"):
    n = T.Var("n", "int64")
    gv = R.reshape(x, (n * 2, 1))
    return gv
""")
    n, rows = func.params[0].struct_info.shape[0], func.ret_struct_info.shape[0]
    assert structural_equal(rows, n * 2)


def test_a_variable_of_a_kernel_may_be_made_by_its_name():
    func = from_source("""
@T.prim_func
def f(a: T.handle):
    m = T.Var("m", "int32")
    A = T.match_buffer(a, (m,), "float32")
    A[0] = T.float32(1)
""")
    assert func.buffer_map[func.params[0]].shape[0].name == "m"
