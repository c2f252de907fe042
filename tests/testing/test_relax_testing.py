"""`relax.testing`: models that emit into a builder, functions to call, and subroutines."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax, tir
from mlc_lab.testing.relax import nn
from mlc_lab.testing.relax.vm import check_saved_func

RNG = np.random.default_rng(0)


def two_layers(batch):
    bb = relax.BlockBuilder()
    with bb.function("main"):
        model = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 4, bias=False),
                              nn.LogSoftmax())
        data = nn.Placeholder((batch, 8), name="data")
        bb.emit_func_output(model(data), params=[data, *model.parameters()])
    return bb.get()


@pytest.mark.parametrize("batch", [3, tir.Var("n", "int64")])
def test_a_model_of_modules_computes_what_numpy_does(batch):
    mod = two_layers(batch)
    assert relax.analysis.well_formed(mod)
    given = [RNG.standard_normal(shape).astype("float32") for shape in ((8, 6), (6,), (6, 4))]
    x = RNG.standard_normal((3, 8)).astype("float32")
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    got = check_saved_func(vm, "main", *map(tvm.nd.array, (x, *given))).numpy()
    want = np.maximum(x @ given[0] + given[1], 0) @ given[2]
    want -= np.log(np.exp(want).sum(-1, keepdims=True))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_parameters_are_variables_with_names_of_their_own_and_zeros_fill_them():
    mod = two_layers(3)
    assert [p.name_hint for p in mod["main"].params] == [
        "data", "linear_weight", "linear_bias", "linear_weight1"]
    zeros = nn.init_params(mod)
    assert [z.shape for z in zeros] == [(8, 6), (6,), (6, 4)]
    assert not any(z.numpy().any() for z in zeros)
    with pytest.raises(TypeError, match="only one of fixed size"):
        nn.init_params(mod_of_unknown())
    with pytest.raises(TypeError, match="list or a tuple"):
        nn.Placeholder(3)
    with pytest.raises(RuntimeError, match="bb.function"):
        nn.ReLU()(nn.Placeholder((2,)))


def mod_of_unknown():
    bb = relax.BlockBuilder()
    with bb.function("main"):
        weight = nn.Parameter((tir.Var("n", "int64"),), name="w")
        bb.emit_func_output(nn.ReLU()(weight), params=[weight])
    return bb.get()


def test_checkpoints_mark_the_segments():
    bb = relax.BlockBuilder()
    with bb.function("main"):
        x = nn.Placeholder((4,), name="x")
        with bb.dataflow():
            out = bb.emit_output(nn.emit_checkpoint_sequential(
                [relax.op.sin, relax.op.cos, relax.op.exp], [0, 2], x))
        bb.emit_func_output(out, params=[x])
    text = bb.get().script()
    assert text.count("start_checkpoint") == text.count("end_checkpoint") == 1
    assert "x_scp" in text and "_ecp" in text
    with pytest.raises(ValueError, match="4 segments"):
        nn.emit_checkpoint_sequential([relax.op.sin], 4, x)


def test_functions_of_the_registry_that_programs_call():
    a = tvm.nd.array(np.array([[1.0, 2.0]], "float32"))
    out = tvm.nd.array(np.zeros((1, 4), "float32"))
    tvm.get_global_func("test.vm.tile")(a, out)
    assert out.numpy().tolist() == [[1, 2, 1, 2]]
    assert tvm.get_global_func("test.vm.add")(a, a).numpy().tolist() == [[2, 4]]
    assert tvm.get_global_func("test.vm.add_scalar")(2, 3) == 5
