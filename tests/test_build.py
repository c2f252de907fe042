"""build: from scheduled programs to calls, end to end."""

import subprocess
import sys

import numpy as np
import pytest

from mlc_lab import relax
from mlc_lab.build import build
from mlc_lab.ir.module import IRModule
from mlc_lab.runtime import array, cpu, empty, jit, load_module, native_library
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source
from mlc_lab.target import Target

MM_RELU = """
@T.prim_func
def mm_relu(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"),
            C: T.Buffer((128, 128), "float32")):
    Y = T.alloc_buffer((128, 128), "float32")
    for i, j, k in T.grid(128, 128, 128):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(128, 128):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
"""


@pytest.fixture(scope="module")
def mm_relu():
    return from_source(MM_RELU)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((128, 128)).astype("float32") for _ in range(2))
    return array(a), array(b), empty((128, 128)), np.maximum(a @ b, 0)


def check(module, data, name="mm_relu"):
    a, b, c, want = data
    c[:] = -1
    module[name](a, b, c)
    np.testing.assert_allclose(c.numpy(), want, rtol=1e-4, atol=1e-4)


def test_a_function_a_module_and_a_schedule_can_be_built(mm_relu, data):
    check(build(mm_relu), data)
    check(build(mm_relu, target="llvm"), data)
    check(build(mm_relu, "llvm"), data)
    check(build(IRModule({"mm_relu": mm_relu})), data)
    check(build(Schedule(mm_relu)), data, "main" if "main" in Schedule(mm_relu).mod else "mm_relu")
    check(build(mm_relu, name="other"), data, "other")
    with Target("llvm -num-cores=2"):
        module = build(mm_relu)
    check(module, data)
    a, b, c, want = data
    module(a, b, c)


def tiled(mm_relu):
    sch = Schedule(mm_relu)
    y, c = sch.get_block("Y"), sch.get_block("C")
    i, j, k = sch.get_loops(y)
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 16])
    sch.reorder(i0, j0, k, i1, j1)
    sch.reverse_compute_at(c, j0)
    sch.parallel(i0)
    sch.vectorize(j1)
    sch.vectorize(sch.get_loops(c)[-1])
    sch.unroll(i1)
    init = sch.decompose_reduction(y, k)
    sch.vectorize(sch.get_loops(init)[-1])
    return sch


@pytest.mark.parametrize("threads", [1, 2])
def test_a_tiled_parallel_vectorized_program(mm_relu, data, threads):
    before = native_library.num_threads()
    native_library.set_num_threads(threads)
    module = build(tiled(mm_relu).mod, target="llvm")
    (name,) = module.function_names
    check(module, data, name)
    native_library.set_num_threads(before)
    a, b, c, _ = data
    assert module.time_evaluator(name, cpu(), number=2, repeat=3)(a, b, c).mean > 0


def test_splits_that_do_not_divide(data):
    text = """
@T.prim_func
def main(A: T.Buffer((127,), "float32"), B: T.Buffer((127,), "float32")):
    for i in range(127):
        with T.block("B"):
            vi = T.axis.spatial(127, i)
            B[vi] = A[vi] * T.float32(2) + T.float32(1)
"""
    x = np.arange(127, dtype="float32")
    for factor in (4, 16, 100, 200):
        for kind in ("vectorize", "parallel", "unroll"):
            sch = Schedule(from_source(text))
            (i,) = sch.get_loops(sch.get_block("B"))
            outer, inner = sch.split(i, [None, factor])
            getattr(sch, kind)(inner if kind != "parallel" else outer)
            y = np.zeros(127, "float32")
            build(sch.mod)["main"](x, y)
            np.testing.assert_array_equal(y, x * 2 + 1)


def test_symbolic_shapes_are_bound_at_the_call():
    text = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int64()
    m = T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (m, n), "float32")
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vj, vi] = A[vi, vj]
"""
    f = build(from_source(text))["main"]
    for shape in ((3, 5), (1, 1), (0, 4), (17, 33)):
        x = np.random.default_rng(0).standard_normal(shape).astype("float32")
        y = np.zeros(shape[::-1], "float32")
        f(x, y)
        np.testing.assert_array_equal(y, x.T)
    with pytest.raises(ValueError, match=r"argument 2 \(B\): shape\[0\] is 4, expected 5 \(m"):
        f(np.zeros((3, 5), "float32"), np.zeros((4, 3), "float32"))


def test_wrong_arguments_are_named(mm_relu, data):
    f = build(mm_relu)["mm_relu"]
    a, b, c, _ = data
    with pytest.raises(ValueError, match=r"mm_relu: argument 1 \(A\): shape\[0\] is 64, expected"):
        f(np.zeros((64, 128), "float32"), b, c)
    with pytest.raises(TypeError, match=r"argument 2 \(B\): expected dtype float32, got float64"):
        f(a, np.zeros((128, 128)), c)
    with pytest.raises(TypeError, match="expects 3 arguments, got 2"):
        f(a, b)


@pytest.mark.parametrize(
    "target, word",
    [
        ("llvm -mtriple=aarch64-linux-gnu", "fmla"),
        ("llvm -mtriple=wasm32-unknown-unknown", "f32x4"),
        ("llvm -mtriple=riscv64-linux-gnu", "fmadd.s"),
        ("nvptx -mcpu=sm_80", "fma.rn.f32"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512", "zmm"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64", "mulps"),
    ],
)
def test_code_for_other_machines_is_shown(mm_relu, target, word):
    sch = Schedule(mm_relu)
    j = sch.get_loops(sch.get_block("C"))[-1]
    sch.vectorize(sch.split(j, [None, 16])[1])
    i, j, k = sch.get_loops(sch.get_block("Y"))
    sch.reorder(k, j)
    sch.vectorize(sch.split(j, [None, 16])[1])
    module = build(sch.mod, target=target)
    assert word in module.get_source("asm"), module.get_source("asm")[:3000]


def test_code_for_other_machines_refuses_to_run(mm_relu):
    module = build(mm_relu, target="llvm -mtriple=aarch64-linux-gnu")
    if jit.host_cpu()[0].startswith("aarch64"):
        pytest.skip("this is such a machine")
    with pytest.raises(RuntimeError, match="the code is for aarch64-linux-gnu"):
        module["mm_relu"]
    text = "@T.prim_func\ndef main(A: T.Buffer((4,))):\n    A[0] = T.float32(1)"
    with pytest.raises(RuntimeError, match="cannot be called here"):
        build(from_source(text), target="nvptx")["main"]


def test_what_cannot_be_built_is_explained(mm_relu):
    with pytest.raises(TypeError, match="cannot build a str"):
        build("mm_relu")
    with pytest.raises(ValueError, match="cannot be built for the target kind 'hexagon'"):
        build(mm_relu, target="hexagon")
    with pytest.raises(ValueError, match="no code generator for the triple 'nonsense'"):
        build(mm_relu, target="llvm -mtriple=nonsense")
    sch = Schedule(mm_relu)
    sch.bind(sch.get_loops(sch.get_block("C"))[0], "threadIdx.x")
    with pytest.raises(ValueError, match="thread.*lower"):
        build(sch.mod)
    with pytest.raises(ValueError, match=r"Y is written outside of a kernel(?s:.*)sch.bind"):
        build(sch.mod, target="nvptx")
    with pytest.raises(ValueError, match=r"'rocm'.*\"nvptx\" \(PTX to be read.*interpret"):
        build(sch.mod, target="rocm")
    with pytest.raises(ValueError, match=r"Y is written outside of a kernel(?s:.*)sch.bind"):
        build(sch.mod, target="cuda")


def test_exported_programs_load_again(mm_relu, data, tmp_path):
    path = build(tiled(mm_relu).mod).export_library(tmp_path / "mm.o")
    module = load_module(path)
    check(module, data, module.function_names[0])


def test_float_types_and_math():
    text = """
@T.prim_func
def main(A: T.Buffer((64,), "{t}"), B: T.Buffer((64,), "{t}")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = T.sigmoid(A[vi]) * A[vi] + T.tanh(A[vi])
"""
    x = np.linspace(-4, 4, 64)
    want = x / (1 + np.exp(-x)) + np.tanh(x)
    for dtype, tolerance in (("float16", 3e-3), ("float32", 1e-6), ("float64", 1e-14)):
        for vector in (False, True):
            sch = Schedule(from_source(text.format(t=dtype)))
            if vector:
                (i,) = sch.get_loops(sch.get_block("B"))
                sch.vectorize(sch.split(i, [None, 8])[1])
            y = np.zeros(64, dtype)
            build(sch.mod)["main"](x.astype(dtype), y)
            np.testing.assert_allclose(y, want, rtol=tolerance, atol=tolerance)


def test_a_processor_that_llvm_does_not_know_is_refused():
    mod = from_source(MM_RELU)
    with pytest.raises(ValueError, match="LLVM knows no processor 'nosuch' for"):
        build(mod, target="llvm -mcpu=nosuch")
    assert build(mod, target="llvm -mcpu=x86-64 -mtriple=x86_64-linux-gnu") is not None


#: growth(run, before, count): what each of `count` runs adds to the memory of the process, and to
#: what is allocated in it (NaN where the C library does not say)
GROWTH = """
import ctypes
import gc

class Heap(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "free", "small", "mapped", "in_maps", "a", "b", "used", "unused", "top")]

def memory():
    gc.collect()
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * 4096
    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return resident, float("nan")
    ask.restype = Heap
    heap = ask()
    return resident, heap.used + heap.in_maps

def growth(run, before, count):
    for k in range(before):
        run(k)
    start = memory()
    for k in range(count):
        run(k)
    return [(b - a) / count for a, b in zip(start, memory())]
"""

BUILDS = """
from mlc_lab import build
from mlc_lab.runtime import jit
from mlc_lab.script import from_source

func = from_source('''
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i] + T.float32(1)
''')

# engines of the linker are renewed every 100
print(*growth(lambda k: build(func, target="llvm"), 200, 300))
print(*growth(lambda k: jit._pass_builder(jit.host_machine(), 3, True, True, True), 200, 300))
"""

GRAPHS = """
import weakref
import numpy as np
from mlc_lab import cpu, relax
from mlc_lab.relax import op

def run(k):
    weights = [relax.const(np.full(shape, k, "float32")) for shape in ((16, 64), (64, 8))]
    x = relax.Var("x", relax.TensorStructInfo((4, 16), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            hidden = builder.emit(op.nn.relu(op.matmul(x, weights[0])))
            out = builder.emit_output(op.matmul(hidden, weights[1]))
        builder.emit_func_output(out)
    mod = builder.get()
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), cpu())
    vm["main"](np.ones((4, 16), "float32"))
    return [weakref.ref(one) for one in (mod, mod["main"], *weights)]

kept = run(0)
run(1)
gc.collect()
print(sum(ref() is not None for ref in kept))
# engines of the linker are renewed every 100
print(*growth(run, 200, 200))
"""


def measured(code):
    """The numbers that a program prints."""
    done = subprocess.run([sys.executable, "-c", GROWTH + code], capture_output=True, text=True,
                          check=True)
    return [float(word) for word in done.stdout.split()]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_builds_leave_no_memory_behind():
    """10,000 builds may grow the process by 20 MB. Nearly all of it is a table of callbacks that
    llvmlite allocates for each pass builder and does not free."""
    resident, used, _, by_builders = measured(BUILDS)
    assert resident < 2_000, "bytes a build"
    assert not used - by_builders > 200, "bytes a build, without what llvmlite keeps"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_builds_of_graphs_leave_no_memory_behind():
    """And nothing keeps a model or its weights, which are 6 kB here."""
    alive, resident, used = measured(GRAPHS)
    assert not alive, "of a model that was dropped"
    assert resident < 4_000, "bytes a build"
    assert not used > 2_000, "bytes a build"


@pytest.mark.parametrize("level, has", [("detail", 3), ("fast", 1), ("none", 0)])
def test_a_refusal_says_as_much_as_is_asked(mm_relu, level, has):
    sch = Schedule(mm_relu, error_render_level=level)
    for schedule in (sch, sch.copy()):
        *_, k = schedule.get_loops("Y")
        with pytest.raises(ScheduleError) as refused:
            schedule.parallel(k)
        text = str(refused.value)
        assert text.startswith("sch.parallel(") and "was refused" in text
        assert sum(word in text for word in ("why:", "clash:", "where:")) == has
    with pytest.raises(ValueError, match="one of 'detail', 'fast', 'none', not 'all'"):
        Schedule(mm_relu, error_render_level="all")


def test_options_of_tvm_that_would_do_nothing_are_refused(mm_relu):
    with pytest.raises(ValueError, match="runtime='crt'"):
        build(mm_relu, runtime="crt")
    assert build(mm_relu, runtime="cpp")["mm_relu"]
    relu = from_source("""
@R.function
def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
    return R.nn.relu(x)
""")
    with pytest.raises(ValueError, match="system_lib=True"):
        relax.build(relu, system_lib=True)
    made, two = relax.build(relu, system_lib=False), array(np.array([-1, 2], "float32"))
    with pytest.raises(ValueError, match="memory_cfg is"):
        relax.VirtualMachine(made, cpu(), memory_cfg="arena")
    for memory in ("naive", "pooled", {cpu(): "naive"}):
        assert relax.VirtualMachine(made, cpu(), memory)["main"](two).numpy()[1] == 2
