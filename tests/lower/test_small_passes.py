"""Passes of a few lines: targets, entries, filters, serial loops, safe choices, own variables."""

import numpy as np
import pytest

from mlc_lab import tir
from mlc_lab.backend.interp import interpret
from mlc_lab.ir import structural_equal
from mlc_lab.ir.module import IRModule
from mlc_lab.lower import (
    AnnotateEntryFunc, BindTarget, ConvertForLoopsToSerial, ConvertSSA, Filter, LowerError,
    RewriteUnsafeSelect,
)
from mlc_lab.script import from_source
from mlc_lab.target import Target


def module(*names, private=False):
    text = "@T.prim_func(private=True)\n" if private else "@T.prim_func\n"
    funcs = {n: from_source(text + f"def {n}(A: T.Buffer((8,), 'float32')):\n"
                            "    for i in T.parallel(8):\n        A[i] = A[i] + T.float32(1)\n")
             for n in names}
    return IRModule(funcs)


def test_functions_say_what_they_are_compiled_for():
    target = Target("cuda", host="llvm")
    out = BindTarget(target)(module("f"))["f"].attrs["target"]
    assert out.kind.name == "cuda" and out.host.kind.name == "llvm"
    assert BindTarget(target)(module("f", private=True))["f"].attrs["target"].host is None
    mod = IRModule({"f": module("f")["f"].with_attr("target", Target("opencl"))})
    kept = BindTarget(target)(mod)["f"].attrs["target"]
    assert kept.kind.name == "opencl" and kept.host.kind.name == "llvm"
    assert BindTarget("cuda")(mod) is mod


def test_the_entry_of_a_module():
    assert AnnotateEntryFunc()(module("f", private=True))["f"].attrs["tir.is_entry_func"]
    with pytest.raises(LowerError, match="2 functions that could be the entry"):
        AnnotateEntryFunc()(module("f", "g"))


def test_functions_are_filtered():
    mod = module("f", "g")
    out = Filter(lambda func: func.attrs["global_symbol"] == "g")(mod)
    assert [v.name_hint for v in out.functions] == ["g"]


def test_parallel_loops_become_serial():
    out = ConvertForLoopsToSerial()(module("f"))["f"]
    assert out.body.kind is tir.ForKind.SERIAL


def test_a_choice_whose_arm_may_fail_is_made_first():
    func = from_source("""
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = T.Select(i > 0, A[i - 1], T.float32(0)) + T.Select(
                i > 2, T.float32(1), T.float32(2))
    """)
    out = RewriteUnsafeSelect()(IRModule({"main": func}))
    value = out["main"].body.body.value
    assert value.a.op.name == "tir.if_then_else" and isinstance(value.b, tir.Select)
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    interpret(out, a, b)
    np.testing.assert_array_equal(b, np.r_[0, a[:-1]] + np.where(np.arange(8) > 2, 1, 2))


def test_each_variable_is_bound_once():
    var = tir.Var("v", "int32")
    inner = tir.LetStmt(var, 16, tir.Evaluate(var))
    func = tir.PrimFunc([], tir.LetStmt(var, 32, tir.SeqStmt(
        [tir.Evaluate(var), inner, tir.Evaluate(var)])))
    out = ConvertSSA()(IRModule({"f": func}))["f"].body
    first, second, third = out.body.seq
    assert first.value is third.value is out.var is var
    assert second.var is not var and second.body.value is second.var
    func = module("f")["f"]
    shared = IRModule({"f": func, "g": func.with_attr("global_symbol", "g")})
    out = ConvertSSA()(shared)
    assert out["f"] is func and out["g"].params[0] is not func.params[0]
    assert all(structural_equal(out[n], shared[n]) for n in ("f", "g"))
    assert ConvertSSA()(out) is out


def test_targets_of_functions_are_printed_and_parsed():
    mod = BindTarget(Target("cuda", host="llvm"))(module("f"))
    text = mod.script()
    assert "T.target({" in text
    again = from_source(text)["f"]
    assert again.attrs["target"] == mod["f"].attrs["target"]
    assert again.attrs["target"].host.kind.name == "llvm"
    assert structural_equal(again, mod["f"])
