"""Bytecode written by hand runs, is checked, and is what an executable prints of itself."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.relax.vm.exec_builder import ExecBuilderError

A, B = (np.random.default_rng(k).standard_normal(4).astype("float32") for k in (1, 2))


@pytest.fixture(autouse=True)
def functions():
    names = {"test_builder.sum": lambda a, b: tvm.nd.array(a.numpy() + b.numpy()),
             "test_builder.product": lambda a, b: tvm.nd.array(a.numpy() * b.numpy()),
             "test_builder.less": lambda a, b: a - b}
    for name, f in names.items():
        tvm.register_func(name, f, override=True)


def machine(builder):
    return relax.VirtualMachine(builder.get(), tvm.cpu())


def given(*arrays):
    return [tvm.nd.array(a) for a in arrays]


def test_a_function_calls_what_is_registered():
    builder = relax.ExecBuilder()
    with builder.function("main", num_inputs=2, param_names=["a", "b"]):
        builder.emit_call("test_builder.sum", args=[builder.r(0), builder.r(1)], dst=builder.r(2))
        builder.emit_call("test_builder.product", [builder.r(2), builder.r(1)], builder.r(3))
        builder.emit_ret(builder.r(3))
    have = machine(builder)["main"](*given(A, B))
    np.testing.assert_allclose(have.numpy(), (A + B) * B)


def branching(builder):
    with builder.function("main", num_inputs=3):
        builder.emit_if(builder.r(0), 3)
        builder.emit_call("test_builder.sum", [builder.r(1), builder.r(2)], builder.r(3))
        builder.emit_goto(2)
        builder.emit_call("test_builder.product", [builder.r(1), builder.r(2)], builder.r(3))
        builder.emit_ret(builder.r(3))
    return builder


@pytest.mark.parametrize("cond, want", [(1, A + B), (0, A * B)])
def test_jumps_go_over_instructions(cond, want):
    vm = machine(branching(relax.ExecBuilder()))
    np.testing.assert_allclose(vm["main"](cond, *given(A, B)).numpy(), want)


def test_functions_call_each_other_and_close_over_values():
    builder = relax.ExecBuilder()
    with builder.function("inner", num_inputs=2):
        builder.emit_call("test_builder.sum", [builder.r(0), builder.r(1)], builder.r(2))
        builder.emit_ret(builder.r(2))
    with builder.function("twice", num_inputs=1):
        builder.emit_call("inner", [builder.r(0), builder.r(0)], builder.r(1))
        builder.emit_ret(builder.r(1))
    with builder.function("closure", num_inputs=1):
        builder.emit_call("vm.builtin.make_closure", [builder.f("inner"), builder.r(0)],
                          builder.r(1))
        builder.emit_ret(builder.r(1))
    vm = machine(builder)
    a, b = given(A, B)
    np.testing.assert_allclose(vm["twice"](a).numpy(), A + A)
    np.testing.assert_allclose(vm.invoke_closure(vm["closure"](a), b).numpy(), A + B)


def test_constants_that_are_equal_have_one_place():
    builder = relax.ExecBuilder()
    with builder.function("main", num_inputs=0):
        for same in (lambda: "text", lambda: (2, 3), lambda: tvm.nd.array(A)):
            assert builder.convert_constant(same()) == builder.convert_constant(same())
        assert builder.convert_constant((2, 3)) != builder.convert_constant((2, 4))
        builder.emit_call("vm.builtin.shape_of", [tvm.nd.array(A)], builder.r(0))
        builder.emit_ret(builder.r(0))
    assert tuple(machine(builder)["main"]()) == (4,)
    with pytest.raises(TypeError, match="a constant of bytecode is"):
        builder.convert_constant(object())


def test_negative_numbers_are_arguments():
    builder = relax.ExecBuilder()
    with builder.function("main", num_inputs=1):
        builder.emit_call("test_builder.less", [builder.imm(-3), builder.r(0)], builder.r(1))
        builder.emit_ret(builder.r(1))
    assert machine(builder)["main"](4) == -7


def test_registers_are_numbered_in_order_of_use():
    def text(first, second):
        builder = relax.ExecBuilder()
        with builder.function("main", num_inputs=2):
            builder.emit_call("test_builder.sum", [builder.r(0), builder.r(1)], builder.r(first))
            builder.emit_call("test_builder.sum", [builder.r(1), builder.r(first)],
                              builder.r(second))
            builder.emit_ret(builder.r(second))
        return builder.get().as_text()

    assert text(100, 50) == text(2, 3)


def test_what_an_executable_prints_of_itself_makes_it_again():
    ex = branching(relax.ExecBuilder()).get()
    scope = {"rx": type("rx", (), {"Builder": relax.ExecBuilder})}
    exec(ex.as_python(), scope)
    assert scope["ib"].get().as_text() == ex.as_text()


@pytest.mark.parametrize("write, why", [
    (lambda b: b.emit_ret(b.r(1)), "reads register %1, to which nothing is written"),
    (lambda b: b.emit_call("f", [b.r(7)], b.r(1)), "reads register %7|no emit_ret"),
    (lambda b: b.emit_call("f", [b.r(0)], b.r(1)), "is the last one, and no emit_ret"),
    (lambda b: b.emit_goto(5), "jumps by 5, to no instruction"),
    (lambda b: b.emit_goto(0), "jumps by 0, to no instruction"),
    (lambda b: b.emit_ret(b.imm(3)), "a register is wanted here"),
    (lambda b: None, "has no instructions"),
])
def test_what_cannot_run_is_refused(write, why):
    builder = relax.ExecBuilder()
    with pytest.raises(ExecBuilderError, match=why):
        with builder.function("main", num_inputs=1):
            write(builder)
        builder.get()


def test_instructions_are_emitted_in_functions():
    builder = relax.ExecBuilder()
    with pytest.raises(ExecBuilderError, match="inside of a function"):
        builder.emit_ret(builder.r(0))
    with builder.function("main", num_inputs=1):
        with pytest.raises(ExecBuilderError, match="begins before main ends"):
            with builder.function("other"):
                pass
        builder.emit_ret(builder.r(0))
    with pytest.raises(ExecBuilderError, match="there is a function 'main' already"):
        with builder.function("main"):
            pass
