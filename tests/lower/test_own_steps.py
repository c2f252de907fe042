"""Steps of one's own in lowering: passes between the phases, rules for intrinsics."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import te, tir
from mlc_lab.compat.passes import prim_func_pass
from mlc_lab.ir import register_intrin_lowering, register_op_attr
from mlc_lab.ir.transform import PassContext
from mlc_lab.tir.op.registering import _ATTRS


@pytest.fixture(autouse=True)
def nothing_stays_registered():
    before = {name: dict(attrs) for name, attrs in _ATTRS.items()}
    yield
    _ATTRS.clear()
    _ATTRS.update(before)


def doubled(fn, n=64):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: fn(A[i]), name="B")
    return te.create_schedule(B.op), [A, B]


def run(s, args, x):
    y = tvm.nd.empty(x.shape)
    tvm.build(s, args, "llvm")(tvm.nd.array(x), y)
    return y.numpy()


@prim_func_pass(opt_level=0)
def vectorize(func, mod, ctx):
    """Loops of a multiple of eight in vectors of eight."""
    def split(loop):
        outer, inner = te.var("outer"), te.var("inner")
        body = tir.substitute(loop.body, {loop.loop_var: outer * 8 + inner})
        body = tir.For(inner, 0, 8, tir.ForKind.VECTORIZED, body)
        return tir.For(outer, 0, loop.extent.value // 8, tir.ForKind.SERIAL, body)

    return func.with_body(tir.ir_transform(func.body, None, split, ["tir.For"]))


def test_a_pass_after_the_first_phase():
    s, args = doubled(lambda x: x * 2.0)
    assert "for i in T.serial(64, " in tvm.lower(s, args).script()
    with PassContext(config={"tir.add_lower_pass": [(1, vectorize)]}):
        assert "B[outer * 8:outer * 8 + 8] = A[outer * 8:" in tvm.lower(s, args).script()
        x = np.arange(64, dtype="float32")
        np.testing.assert_array_equal(run(s, args, x), 2 * x)


def test_every_phase_has_its_place():
    seen = []

    def looker(name):
        @prim_func_pass(opt_level=0, name=name)
        def look(func, mod, ctx):
            seen.append((name, "T.block" in func.script(), "T.vectorized" in func.script()))
            return func
        return look

    s, args = doubled(lambda x: x * 2.0)
    s[args[1]].vectorize(s[args[1]].split(args[1].op.axis[0], 8)[1])
    with PassContext(config={"tir.add_lower_pass": [(p, looker(f"p{p}")) for p in (3, 1, 0, 2)]}):
        tvm.lower(s, args)
        assert seen == [("p0", True, True), ("p1", False, True), ("p2", False, False),
                        ("p3", False, False)]
        seen.clear()
        tvm.lower(s, args, simple_mode=True)
    assert [name for name, *_ in seen] == ["p0", "p1", "p2", "p3"]
    with PassContext(config={"tir.add_lower_pass": [(4, vectorize)]}):
        with pytest.raises(ValueError, match="no phase 4"):
            tvm.lower(s, args)


def test_an_intrinsic_of_ones_own():
    register_op_attr("tir.third_power", "TCallEffectKind", tir.CallEffectKind.Pure)

    @register_intrin_lowering("tir.third_power", "llvm", level=99)
    def rule(call):
        (x,) = call.args
        return x * x * x

    s, args = doubled(lambda x: tir.call_intrin(x.dtype, "tir.third_power", x))
    assert "third_power" in tvm.lower(s, args).script()
    x = np.arange(64, dtype="float32")
    np.testing.assert_array_equal(run(s, args, x), x ** 3)


def test_a_rule_replaces_what_an_intrinsic_becomes():
    """For every target; the rule of the target itself comes first, and of levels the highest."""
    register_intrin_lowering("tir.exp", "default", f=lambda call: call.args[0] + 1.0)
    s, args = doubled(te.exp)
    x = np.arange(64, dtype="float32")
    np.testing.assert_array_equal(run(s, args, x), x + 1)
    register_intrin_lowering("tir.exp", "llvm", f=lambda call: tir.exp2(call.args[0]), level=11)
    register_intrin_lowering("tir.exp", "llvm", f=lambda call: call.args[0], level=9)
    np.testing.assert_allclose(run(s, args, x[:64] / 8), 2 ** (x / 8), rtol=1e-6)
    with pytest.raises(ValueError, match="level 11 already"):
        register_intrin_lowering("tir.exp", "llvm", f=lambda call: call, level=11)


def test_a_rule_may_leave_a_call_alone():
    register_intrin_lowering("tir.exp", "llvm", f=lambda call: call)
    s, args = doubled(te.exp)
    x = np.linspace(0, 1, 64, dtype="float32")
    np.testing.assert_allclose(run(s, args, x), np.exp(x), rtol=1e-5)


def test_a_pass_at_the_end_runs_for_a_gpu_too():
    seen = []

    @prim_func_pass(opt_level=0, name="look")
    def look(func, mod, ctx):
        seen.append(func.attrs["global_symbol"])
        return func

    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    sch.bind(sch.get_loops("B")[0], "threadIdx.x")
    with PassContext(config={"tir.add_lower_pass": [(3, look)]}):
        tvm.build(sch.mod, target="cuda")
    assert "main_kernel" in seen
