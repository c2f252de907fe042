"""Modules that become functions of their own: `define_subroutine`."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.relax.frontend import nn

RNG = np.random.default_rng(0)


class Gate(nn.Module):
    """x * sigmoid(x), in a function."""

    define_subroutine = True

    def forward(self, state):
        return nn.op.silu(state)


class GatedLayer(nn.Module):
    """A product and a gate, in a function that calls the gate's."""

    define_subroutine = True

    def __init__(self, rows, columns, scale=1.0):
        self.weight = nn.Parameter((rows, columns), dtype="float32")
        self.gate, self.scale = Gate(), scale

    def forward(self, x):
        return self.gate(nn.op.matmul(x, self.weight)) * self.scale


class Stack(nn.Module):
    """Layers one after the other."""

    def __init__(self, *layers):
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        return self.layers(x)


def exported(model, columns=8, **options):
    return model.export_tvm({"forward": {"x": nn.spec.Tensor(("n", columns), "float32")}},
                            **options)


def test_calls_with_the_same_shapes_share_a_function_and_give_what_numpy_does():
    mod, params = exported(Stack(GatedLayer(8, 8), GatedLayer(8, 8), GatedLayer(8, 4)))
    assert relax.analysis.well_formed(mod)
    assert sorted(v.name_hint for v in mod.functions) == [
        "forward", "gate", "gate1", "gated_layer", "gated_layer1"]
    assert [p.name_hint for p in mod["gated_layer"].params] == ["x", "weight"]
    assert "global_symbol" not in mod["gated_layer"].attrs
    given = [RNG.standard_normal([int(d) for d in p.shape]).astype("float32") for _, p in params]
    x = RNG.standard_normal((5, 8)).astype("float32")
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    got = vm["forward"](*map(tvm.nd.array, (x, *given))).numpy()
    for weight in given:
        x = x @ weight
        x = x / (1 + np.exp(-x))
    np.testing.assert_allclose(got, x, rtol=1e-4, atol=1e-5)


def test_functions_that_differ_in_what_they_compute_are_two():
    mod, _ = exported(Stack(GatedLayer(8, 8), GatedLayer(8, 8, scale=2.0)))
    assert len([v for v in mod.functions if v.name_hint.startswith("gated_layer")]) == 2


def test_each_export_has_functions_of_its_own():
    model = Stack(GatedLayer(8, 8))
    first, second = exported(model)[0], exported(model)[0]
    tvm.ir.assert_structural_equal(first, second)
    assert relax.analysis.well_formed(second)


def test_a_size_that_no_argument_has_is_an_argument():
    class Widen(nn.Module):
        define_subroutine = True

        def forward(self, x, to):
            return nn.op.broadcast_to(x, [to, 8])

    class Outer(nn.Module):
        def __init__(self):
            self.widen = Widen()

        def forward(self, x, y):
            return self.widen(x, to=y.shape[0]) + y

    mod, _ = Outer().export_tvm({"forward": {"x": nn.spec.Tensor((1, 8), "float32"),
                                             "y": nn.spec.Tensor(("n", 8), "float32")}})
    assert relax.analysis.well_formed(mod)
    x, y = (RNG.standard_normal(s).astype("float32") for s in ((1, 8), (3, 8)))
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    np.testing.assert_allclose(vm["forward"](tvm.nd.array(x), tvm.nd.array(y)).numpy(), x + y)


def test_a_module_may_give_several_tensors():
    class Halves(nn.Module):
        define_subroutine = True

        def forward(self, x):
            return nn.op.split(x, 2, axis=1)

    class Outer(nn.Module):
        def __init__(self):
            self.halves = Halves()

        def forward(self, x):
            a, b = self.halves(x)
            return a - b

    mod, _ = exported(Outer())
    x = RNG.standard_normal((3, 8)).astype("float32")
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    np.testing.assert_allclose(vm["forward"](tvm.nd.array(x)).numpy(), x[:, :4] - x[:, 4:])


def test_what_prints_cannot_be_a_function_of_its_own():
    class Prints(nn.Module):
        define_subroutine = True

        def forward(self, x):
            nn.op.print_(x)
            return x

    with pytest.raises(ValueError, match="Prints has define_subroutine, and prints"):
        exported(Stack(Prints()), debug=True)


def test_without_the_choice_nothing_changes():
    class Plain(GatedLayer):
        define_subroutine = False

        def __init__(self):
            super().__init__(8, 8)
            self.gate = nn.SiLU()

    mod, _ = exported(Stack(Plain()))
    assert [v.name_hint for v in mod.functions] == ["forward"]
