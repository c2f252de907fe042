"""Functions run on the virtual machine, in bytecode and in compiled form, with one answer."""

import threading
import traceback

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.script import ir as I
from mlc_lab.script import relax as R
from mlc_lab.script import tir as T


@I.ir_module
class Net:
    @R.function
    def main(
        x: R.Tensor((1, 16), "float32"), w: R.Tensor((16, 8), "float32"),
        b: R.Tensor((8,), "float32"),
    ):
        with R.dataflow():
            h = R.add(R.matmul(x, w), b)
            y = R.nn.relu(h)
            z = R.nn.softmax(y)
            R.output(z)
        return z

    @R.function
    def nested(x: R.Tensor((4,), "float32")):
        y = R.add(x, x)
        z = R.multiply(y, x)
        r = R.reshape(z, (2, 2))
        return (y, (r,))

    @R.function
    def passes_on(x: R.Tensor((4,), "float32")):
        y = R.add(x, x)
        return (x, y)

    @R.function
    def branch(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")) -> R.Tensor(
        (4,), "float32"
    ):
        if c:
            y = R.add(x, x)
        else:
            y = R.multiply(x, x)
        return y

    @R.function
    def symbolic(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")):
        n = T.int64()
        with R.dataflow():
            s = R.add(x, y)
            r = R.reshape(s, (n * 4,))
            t = R.nn.relu(r)
            R.output(t)
        return t

    @R.function
    def calls(x: R.Tensor((4,), "float32")) -> R.Tensor((2, 2), "float32"):
        cls = Net
        t = cls.nested(x)
        u = t[1]
        return u[0]


@pytest.fixture(scope="module")
def executable():
    return relax.build(Net, "llvm")


@pytest.fixture(params=["compiled", "bytecode"])
def vm(request, executable):
    return relax.VirtualMachine(executable, tvm.cpu(), exec_mode=request.param)


def net_args():
    rng = np.random.default_rng(1)
    return [rng.standard_normal(s).astype("float32") for s in ((1, 16), (16, 8), (8,))]


def net_answer(x, w, b):
    y = np.maximum(x @ w + b, 0)
    e = np.exp(y - y.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


V = np.arange(4, dtype="float32") - 1


def test_arrays_of_any_library_go_in(vm):
    torch = pytest.importorskip("torch")
    args = net_args()
    want = net_answer(*args)
    for convert in (lambda a: a, tvm.nd.array, torch.from_numpy):
        got = vm["main"](*map(convert, args))
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5)
    frozen = args[0].copy()
    frozen.flags.writeable = False
    if vm.exec_mode == "bytecode":
        np.testing.assert_allclose(vm["main"](frozen, *args[1:]).numpy(), want, rtol=1e-5)


def test_tuples_come_out(vm):
    y, (r,) = vm["nested"](V)
    np.testing.assert_array_equal(y.numpy(), 2 * V)
    np.testing.assert_array_equal(r.numpy(), (2 * V * V).reshape(2, 2))
    x, y = vm["passes_on"](V)
    np.testing.assert_array_equal(x.numpy(), V)
    np.testing.assert_array_equal(y.numpy(), 2 * V)


def test_results_are_independent_of_later_calls(vm):
    first = vm["nested"](V)[0]
    vm["nested"](V + 100)
    np.testing.assert_array_equal(first.numpy(), 2 * V)
    np.testing.assert_array_equal(np.from_dlpack(first), 2 * V)


def test_branches_and_calls_of_functions(vm):
    np.testing.assert_array_equal(vm["branch"](np.array(True), V).numpy(), 2 * V)
    np.testing.assert_array_equal(vm["branch"](np.array(False), V).numpy(), V * V)
    np.testing.assert_array_equal(vm["calls"](V).numpy(), (2 * V * V).reshape(2, 2))


@pytest.mark.parametrize("n", [1, 3, 20])
def test_symbolic_shapes(vm, n):
    x = np.random.default_rng(n).standard_normal((n, 4)).astype("float32")
    got = vm["symbolic"](x, x + 1).numpy()
    np.testing.assert_allclose(got, np.maximum(2 * x + 1, 0).reshape(-1), rtol=1e-6)


def test_what_has_a_compiled_form_and_why_the_rest_has_none(executable):
    assert set(executable.compiled) == {"main", "nested", "symbolic"}
    assert "branches" in executable.not_compiled["branch"]
    assert "argument" in executable.not_compiled["passes_on"]


@pytest.mark.parametrize("args, parts", [
    ((V,), ["nested", "2 dimensions", "1"]),
])
def test_too_many_dimensions(vm, args, parts):
    with pytest.raises(ValueError) as caught:
        vm["nested"](args[0].reshape(2, 2))
    assert "x" in str(caught.value) and "1 dimension" in str(caught.value)


def test_misfits_are_refused_with_the_place_and_both_sides(vm):
    x = np.zeros((3, 4), "float32")
    compiled = vm.exec_mode == "compiled"
    with pytest.raises(ValueError, match=r"\(y\): shape\[0\] is 5, expected 3" if compiled else
                       r"param=y.*dimension 0 is 5 and has to be 3"):
        vm["symbolic"](x, np.zeros((5, 4), "float32"))
    with pytest.raises(ValueError, match=r"\(x\): shape\[1\] is 5, expected 4" if compiled else
                       r"param=x.*dimension 1 is 5 and is declared as 4"):
        vm["symbolic"](np.zeros((3, 5), "float32"), x)
    with pytest.raises(TypeError, match=r"expected dtype float32, got float64" if compiled else
                       r"expected dtype float32.*float64"):
        vm["symbolic"](x.astype("float64"), x)
    with pytest.raises(TypeError, match=r"expected a tensor"):
        vm["symbolic"](x, 7)
    with pytest.raises(TypeError):
        vm["symbolic"](x)
    with pytest.raises(AttributeError, match="did you mean 'main'"):
        vm["maim"]


def test_stateful_calls(vm):
    args = net_args()
    vm.set_input("main", args[0], b=args[2], w=args[1])
    vm.invoke_stateful("main")
    np.testing.assert_allclose(vm.get_outputs("main").numpy(), net_answer(*args), rtol=1e-5)
    vm.set_input("passes_on", V)
    vm.invoke_stateful("passes_on")
    assert [t.shape for t in vm.get_outputs("passes_on")] == [(4,), (4,)]
    with pytest.raises(TypeError, match="missing"):
        vm.set_input("main", args[0])
    with pytest.raises(ValueError, match="set_input"):
        vm.invoke_stateful("nested")
    vm.save_function("main", "saved", *args)
    np.testing.assert_allclose(vm["saved"]().numpy(), net_answer(*args), rtol=1e-5)


def test_measuring(vm):
    args = net_args()
    assert vm.time_evaluator("main", tvm.cpu(), number=3)(*args).mean > 0
    assert vm.module.time_evaluator("main", tvm.cpu(), number=3)(*args).mean > 0
    with pytest.raises(ValueError, match="CPU"):
        vm.time_evaluator("main", tvm.cuda())


def test_threads_may_call_one_machine(vm):
    args = [tvm.nd.array(a) for a in net_args()]
    want = net_answer(*net_args())
    wrong = []

    def work():
        for _ in range(50):
            if not np.allclose(vm["main"](*args).numpy(), want, rtol=1e-4):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# ------------------------------------------------------------------------------ functions outside


@I.ir_module
class Extern:
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")):
        y = R.call_dps_packed("test_vm.double", (x,), out_sinfo=R.Tensor((4,), "float32"))
        z = R.call_packed(
            "test_vm.shift", y, R.prim_value(3), R.str("up"),
            sinfo_args=(R.Tensor((4,), "float32"),))
        return z


@pytest.fixture
def registered():
    torch = pytest.importorskip("torch")

    @tvm.register_func("test_vm.double", override=True)
    def double(x, out):
        torch.add(torch.from_dlpack(x), torch.from_dlpack(x), out=torch.from_dlpack(out))

    @tvm.register_func("test_vm.shift", override=True)
    def shift(x, by, direction):
        return tvm.nd.array(x.numpy() + (by if direction == "up" else -by))

    yield
    for name in ("test_vm.double", "test_vm.shift"):
        tvm.runtime.remove_global_func(name)


def test_registered_functions_are_called_without_copies(registered):
    vm = relax.VirtualMachine(relax.build(Extern, "llvm"), tvm.cpu())
    np.testing.assert_array_equal(vm["main"](V).numpy(), 2 * V + 3)


def test_a_function_registered_anew_is_the_one_called(registered):
    vm = relax.VirtualMachine(relax.build(Extern, "llvm"), tvm.cpu())
    vm["main"](V)
    tvm.register_func("test_vm.shift", lambda x, by, s: tvm.nd.array(x.numpy() * by), override=True)
    np.testing.assert_array_equal(vm["main"](V).numpy(), 6 * V)


def test_an_exception_keeps_its_traceback_and_leaves_the_machine_usable(registered):
    vm = relax.VirtualMachine(relax.build(Extern, "llvm"), tvm.cpu())

    def deep_inside(x):
        raise ValueError("no such thing")

    def failing(x, by, direction):
        return deep_inside(x)

    tvm.register_func("test_vm.shift", failing, override=True)
    with pytest.raises(ValueError, match="no such thing") as caught:
        vm["main"](V)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "deep_inside" in names
    tvm.register_func("test_vm.shift", lambda x, by, s: x, override=True)
    np.testing.assert_array_equal(vm["main"](V).numpy(), 2 * V)


def test_a_function_that_nobody_registered_is_named():
    @I.ir_module
    class Unknown:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            y = R.call_dps_packed("test_vm.nobody", (x,), out_sinfo=R.Tensor((4,), "float32"))
            return y

    vm = relax.VirtualMachine(relax.build(Unknown, "llvm"), tvm.cpu())
    with pytest.raises(ValueError, match="test_vm.nobody"):
        vm["main"](V)


def test_a_kernel_is_called_by_its_name_too():
    @I.ir_module
    class ByName:
        @T.prim_func
        def twice(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.block("y"):
                    vi = T.axis.spatial(4, i)
                    y[vi] = x[vi] * T.float32(2)

        @R.function
        def main(x: R.Tensor((4,), "float32")):
            y = R.call_dps_packed("twice", (x,), out_sinfo=R.Tensor((4,), "float32"))
            return y

    ex = relax.build(ByName, "llvm")
    for mode in ("compiled", "bytecode"):
        vm = relax.VirtualMachine(ex, tvm.cpu(), exec_mode=mode)
        np.testing.assert_array_equal(vm["main"](V).numpy(), 2 * V)


# ------------------------------------------------------------------------------ looking inside


def test_bytecode_prints_as_tvm_prints_it(executable):
    text = executable.as_text()
    assert "@main:\n" in text and "packed_func;" in text
    assert "  call  vm.builtin.alloc_storage in: %vm, c[" in text
    assert "  ret   %" in text
    assert "with ib.function(\"main\", num_inputs=3):" in executable.as_python()
    assert "Constant pool" in executable.stats()


def test_a_profile_has_every_call(vm):
    args = net_args()
    report = vm.profile("main", *args)
    names = {call.name for call in report.calls}
    assert "vm.builtin.alloc_tensor" in names and any(c.is_kernel for c in report.calls)
    assert "Duration (us)" in str(report) and "float32[1, 16]" in str(report)


def test_a_trace_shows_registers_and_memory(executable):
    vm = relax.VirtualMachine(executable, tvm.cpu())
    args = net_args()
    trace = vm.trace("main", *args, values=True)
    np.testing.assert_allclose(trace.result.numpy(), net_answer(*args), rtol=1e-5)
    assert len(trace) == len(executable.functions["main"].code) - 1
    last = trace[-1]
    assert last.registers["%0"] == {"kind": "tensor", "shape": [1, 16], "dtype": "float32"}
    assert trace.peak_bytes > 0
    assert any(step.storages and step.storages[0]["tensors"] for step in trace)
    inside = vm.trace("calls", V)
    assert {step.function for step in inside} == {"calls", "nested"}
    assert {step.depth for step in inside} == {0, 1}


def test_the_memory_plan_as_data():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((64, 64), "float32"))
    with bb.function("main", [x]):
        y = x
        for _ in range(10):
            y = bb.emit(relax.op.nn.relu(y))
        bb.emit_func_output(y)
    ex = relax.build(bb.get(), "llvm", pipeline="default_build")
    plan = relax.VirtualMachine(ex).memory_plan("main")
    size = 64 * 64 * 4
    assert len(plan["storages"]) == 3 and len(plan["tensors"]) == 10  # one is the result
    assert plan["planned"] == 3 * size and plan["unplanned"] == 10 * size
    assert plan["peak"] == 2 * size
    for storage in plan["storages"]:
        times = sorted((t["first"], t["last"]) for t in plan["tensors"]
                       if t["storage"] == storage["id"])
        assert all(a[1] < b[0] for a, b in zip(times, times[1:]))
    with pytest.raises(ValueError, match="as it runs"):
        relax.VirtualMachine(relax.build(Net, "llvm")).memory_plan("symbolic")


def test_an_instrument_sees_calls_and_may_skip_them(executable):
    vm = relax.VirtualMachine(executable, tvm.cpu())
    seen = []

    def watch(func, name, before, result, *args):
        seen.append((name, before))
        return relax.VMInstrumentReturnKind.NO_OP

    vm.set_instrument(watch)
    vm["main"](*net_args())
    assert seen and {before for _, before in seen} == {True, False}


def test_an_instrument_may_take_itself_off(executable):
    vm = relax.VirtualMachine(executable, tvm.cpu())
    seen = []

    def once(func, name, before, *rest):
        seen.append((name, before))
        vm.set_instrument(None)

    vm.set_instrument(once)
    vm["main"](*net_args())
    assert [before for _, before in seen] == [True, False]


def test_closures():
    @I.ir_module
    class Closures:
        @R.function
        def add(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor(
            (4,), "float32"
        ):
            z = R.add(x, y)
            return z

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Object:
            cls = Closures
            c = R.make_closure(cls.add, (x,))
            return c

        @R.function
        def both(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            cls = Closures
            c = R.make_closure(cls.add, (x,))
            y = R.invoke_pure_closure(c, (x,), sinfo_args=R.Tensor((4,), "float32"))
            return y

    vm = relax.VirtualMachine(relax.build(Closures, "llvm"), tvm.cpu())
    closure = vm["main"](V)
    np.testing.assert_array_equal(vm.invoke_closure(closure, V).numpy(), 2 * V)
    np.testing.assert_array_equal(vm["both"](V).numpy(), 2 * V)


def test_an_extern_function_of_the_module_is_called_by_its_symbol():
    @tvm.register_func("test.doubled", override=True)
    def doubled(x):
        return tvm.nd.array(2 * x.numpy())

    @I.ir_module
    class Module:
        ext = R.ExternFunc("test.doubled")

        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32")):
            return Module.ext(x)

    machine = relax.VirtualMachine(relax.build(Module, "llvm"), tvm.cpu())
    np.testing.assert_array_equal(machine["main"](np.ones(4, "float32")).numpy(), 2)


def tensors(value):
    return [value] if hasattr(value, "numpy") else [t for one in value for t in tensors(one)]


X = relax.TensorStructInfo((2, 3), "float32")
ONES = relax.const(np.ones((2, 3), "float32"))
PASSED_ON = {
    "a parameter": lambda x, v: x, "in tuples": lambda x, v: relax.Tuple([v, relax.Tuple([x])]),
    "one piece": lambda x, v: relax.op.split(x, 1), "dropout": lambda x, v: relax.op.nn.dropout(x),
    "a view": lambda x, v: relax.op.memory.view(x, (3, 2)),
    "where it lies": lambda x, v: relax.op.memory.ensure_zero_offset(x)}
COMPUTED = {
    "a sum": lambda x, v: v, "reshape": lambda x, v: relax.op.reshape(x, (3, 2)),
    "the same shape": lambda x, v: relax.op.reshape(x, (2, 3)),
    "flatten": lambda x, v: relax.op.flatten(x), "expand": lambda x, v: relax.op.expand_dims(x, 0),
    "the same axes": lambda x, v: relax.op.permute_dims(x, [0, 1]),
    "the same type": lambda x, v: relax.op.astype(x, "float32"),
    "all of it": lambda x, v: relax.op.strided_slice(x, [0], [0], [2]),
    "concat of one": lambda x, v: relax.op.concat([x], 0),
    "broadcast": lambda x, v: relax.op.broadcast_to(x, (2, 3)),
    "two pieces": lambda x, v: relax.op.split(x, 2), "of no axis": lambda x, v: relax.op.max(x, []),
    "no copies": lambda x, v: relax.op.repeat(x, 1, 0)}


@pytest.mark.parametrize("exec_mode", ["bytecode", "compiled"])
def test_results_are_their_own_memory_unless_they_are_passed_on(exec_mode):
    """The law of docs/numbers.md, "Memory of results"."""
    builder = relax.BlockBuilder()
    rows = {**PASSED_ON, **COMPUTED, "a constant": lambda x, v: ONES,
            "one value twice": lambda x, v: relax.Tuple([v, v])}
    for number, make in enumerate(rows.values()):
        x = relax.Var("x", X)
        with builder.function(f"f{number}", [x]):
            value = builder.emit(relax.op.add(x, x))
            builder.emit_func_output(builder.emit(make(x, value)))
    vm = relax.VirtualMachine(relax.build(builder.get(), "llvm", exec_mode=exec_mode), tvm.cpu())
    for number, name in enumerate(rows):
        given = np.arange(6, dtype="float32").reshape(2, 3)
        first, again = ([np.from_dlpack(t) for t in tensors(vm[f"f{number}"](given))]
                        for _ in range(2))
        shared = any(np.shares_memory(t, given) for t in first)
        assert shared == (name in PASSED_ON), name
        pairs = [(a, b) for k, a in enumerate(first) for b in first[:k]]
        assert any(np.shares_memory(*p) for p in pairs) == (name == "one value twice"), name
        later = any(np.shares_memory(a, b) for a in first for b in again)
        assert later == (name in PASSED_ON or name == "a constant"), name
