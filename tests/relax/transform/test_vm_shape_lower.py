"""VMShapeLower: what is checked at a function's entry and at its end, and in which order."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.relax.transform import VMShapeLower
from mlc_lab.script import ir as I
from mlc_lab.script import relax as R
from mlc_lab.script import tir as T


@I.ir_module
class Pair:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("m", 3), "float32")):
        R.func_attr({"relax.force_pure": True})
        return x


def calls(mod, name="main"):
    return [b.value.op.global_symbol for block in mod[name].body.blocks for b in block.bindings
            if isinstance(b.value, relax.Call) and isinstance(b.value.op, relax.ExternFunc)]


def texts(mod):
    return {a.value for block in mod["main"].body.blocks for b in block.bindings
            if isinstance(b.value, relax.Call) for a in b.value.args
            if isinstance(a, relax.StringImm)}


def test_kinds_are_checked_before_dimensions():
    assert calls(VMShapeLower()(Pair)) == ["vm.builtin.check_tensor_info"] * 2 + [
        "vm.builtin.match_shape"] * 2


def test_contexts_are_left_out_where_they_are_not_wanted():
    assert texts(VMShapeLower(emit_err_ctx=False)(Pair)) == {""}
    assert any("loc=param[1], param=y" in text for text in texts(VMShapeLower()(Pair)))


@I.ir_module
class Promise:
    """Of what the packed function gives, nothing is known but what is declared."""

    @R.function(pure=False)
    def main(x: R.Tensor(("n", "n"), "float32")) -> R.Tensor(("n * n",), "float32"):
        out = R.call_packed("test_promise.flat", x, sinfo_args=R.Object)
        return out


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_a_declared_result_is_checked_where_it_is_not_known(mode):
    vm = relax.VirtualMachine(relax.build(Promise, "llvm", exec_mode=mode), tvm.cpu())
    x = np.arange(9, dtype="float32").reshape(3, 3)

    def give(change):
        tvm.register_func("test_promise.flat",
                          lambda a: tvm.nd.array(change(a.numpy())), override=True)
        return vm["main"](tvm.nd.array(x))

    np.testing.assert_array_equal(give(lambda a: a.reshape(-1)).numpy(), x.reshape(-1))
    with pytest.raises(Exception, match="loc=return"):
        give(lambda a: a)  # two dimensions
    with pytest.raises(Exception, match="loc=return"):
        give(lambda a: a.reshape(-1)[:5].copy())


def test_a_result_that_is_known_is_not_checked_again():
    @I.ir_module
    class Known:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
            R.func_attr({"relax.force_pure": True})
            return x

    assert calls(VMShapeLower()(Known)) == ["vm.builtin.check_tensor_info",
                                            "vm.builtin.match_shape"]


def test_a_match_cast_keeps_what_it_says():
    @I.ir_module
    class Cast:
        @R.function
        def main(x: R.Object, y: R.Tensor(("n",), "float32")):
            R.func_attr({"relax.force_pure": True})
            n = T.int64()
            z = R.match_cast(x, R.Tensor((n,), "float32"))
            return z

    (block,) = VMShapeLower()(Cast)["main"].body.blocks
    assert isinstance(block.bindings[-1], relax.MatchCast)
