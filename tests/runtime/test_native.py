"""The native half of the runtime: argument checks, the thread pool, float16."""

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from mlc_lab.runtime import array, jit, linking, native_library
from tests.runtime.kernels import build, write_add, write_fill, write_shaped


@pytest.fixture(scope="module")
def add():
    return build(write_add, ["add"])["add"]


@pytest.fixture(scope="module")
def shaped():
    return build(write_shaped, ["shaped"])["shaped"]


def f32(n):
    return np.arange(n, dtype="float32")


def test_kernel_takes_tensors_and_numpy_arrays(add):
    out = array(np.zeros(5, "float32"))
    add(array(f32(5)), f32(5), 2, 1, out)
    np.testing.assert_array_equal(out.numpy(), f32(5) * 3 + 1)
    plain = np.zeros(5, "float32")
    add(f32(5), f32(5), 0.5, True, plain)
    np.testing.assert_array_equal(plain, f32(5) * 1.5 + 1)


def test_kernel_takes_torch_tensors(add):
    torch = pytest.importorskip("torch")
    out = torch.zeros(5)
    add(torch.ones(5), torch.ones(5), 2.0, 0, out)
    assert out.tolist() == [3] * 5


@pytest.mark.parametrize(
    "args, error, text",
    [
        ((1, 2), TypeError, r"add: expects 5 arguments, got 2"),
        (("x", 0, 0, 0, 0), TypeError, r"add: argument 1 \(A\): expected a tensor, got a string"),
        ((None, 0, 0, 0, 0), TypeError, r"expected a tensor, got None"),
        ((f32(3), f32(4), 0, 0, f32(3)), ValueError,
         r"argument 2 \(B\): shape\[0\] is 4, expected 3 \(n, from an earlier argument\)"),
        ((f32(3), f32(3), "y", 0, f32(3)), TypeError,
         r"argument 3 \(alpha\): expected a float, got a string"),
        ((f32(3), f32(3), 1, 1.5, f32(3)), TypeError,
         r"argument 4 \(shift\): expected an int, got a float"),
        ((f32(3), f32(3), 1, 1 << 40, f32(3)), ValueError,
         r"1099511627776 does not fit into int32"),
        ((f32(3), f32(3).astype("int64"), 1, 1, f32(3)), TypeError,
         r"argument 2 \(B\): expected dtype float32, got int64"),
        ((f32(3), np.zeros(3, bool), 1, 1, f32(3)), TypeError, r"dtype float32, got bool"),
        ((f32(4).reshape(2, 2), f32(3), 1, 1, f32(3)), ValueError,
         r"argument 1 \(A\): expected 1 dimensions, got 2"),
        ((f32(6)[::2], f32(3), 1, 1, f32(3)), ValueError,
         r"not compact: strides\[0\] is 2, expected 1"),
    ],
)
def test_wrong_arguments_are_refused(add, args, error, text):
    with pytest.raises(error, match=text):
        add(*args)


def test_misaligned_data_is_refused(add):
    raw = np.zeros(17, "uint8")
    start = 1 if raw.ctypes.data % 2 == 0 else 0
    odd = raw[start : start + 12].view("float32")
    with pytest.raises(ValueError, match="not aligned to 4 bytes"):
        add(odd, odd, 1, 1, odd)


def test_symbols_strides_pointers_and_bools(shaped):
    out = np.zeros(3, "int64")
    a, b = np.zeros((2, 4), "float32"), np.zeros((4, 5), "int8")
    shaped(a, b[:, :3], out, True, 4)
    assert out.tolist() == [4, 5, 1]
    shaped(a, np.ascontiguousarray(b[:, :3]), ctypes.c_void_p(out.ctypes.data), False, 4)
    assert out.tolist() == [4, 3, 0]
    with pytest.raises(ValueError, match=r"argument 5 \(n\): the value is 5, expected 4 \(n,"):
        shaped(a, b[:, :3], out, True, 5)
    with pytest.raises(ValueError, match=r"argument 1 \(A\): shape\[0\] is 3, expected 2"):
        shaped(np.zeros((3, 4), "float32"), b[:, :3], out, True, 4)
    with pytest.raises(ValueError, match=r"argument 2 \(B\): strides\[1\] is 2, expected 1"):
        shaped(a, np.zeros((4, 6), "int8")[:, ::2], out, True, 4)


@pytest.fixture
def fill():
    before = native_library.num_threads()
    yield build(write_fill, ["fill"], ["mlc_lab_parallel_launch"])["fill"]
    native_library.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_parallel_loops_cover_every_iteration(fill, threads):
    native_library.set_num_threads(threads)
    for n in (1, 2, 3, 7, 64, 1000, 12345):
        for _ in range(20):
            out = np.full(n, -1, "float32")
            fill(out)
            np.testing.assert_array_equal(out, f32(n))


def test_parallel_loops_from_many_threads_at_once(fill):
    native_library.set_num_threads(3)
    wrong = []

    def work():
        for _ in range(200):
            out = np.full(999, -1, "float32")
            fill(out)
            if (out != f32(999)).any():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_parallel_loops_after_the_workers_slept(fill):
    import time

    native_library.set_num_threads(2)
    for _ in range(3):
        out = np.full(100, -1, "float32")
        fill(out)
        np.testing.assert_array_equal(out, f32(100))
        time.sleep(0.05)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_parallel_loops_in_a_forked_process(fill):
    native_library.set_num_threads(2)
    fill(np.zeros(100, "float32"))
    child = os.fork()
    if child == 0:
        out = np.full(100, -1, "float32")
        fill(out)
        os._exit(0 if (out == f32(100)).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    fill(np.zeros(100, "float32"))


def test_a_process_with_workers_ends():
    code = (
        "import numpy as np\n"
        "from mlc_lab.runtime import native_library\n"
        "from tests.runtime.kernels import build, write_fill\n"
        "native_library.set_num_threads(4)\n"
        "f = build(write_fill, ['fill'], ['mlc_lab_parallel_launch'])['fill']\n"
        "x = np.zeros(100, 'float32'); f(x); print(int(x[99]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "99"


def test_thread_count_must_be_positive():
    with pytest.raises(ValueError, match="at least one"):
        native_library.set_num_threads(0)


def test_float16_conversions_agree_with_numpy():
    # Called through wrappers that pass bit patterns, since ctypes knows no half.
    text = """
declare half @__truncsfhf2(float)
declare half @__truncdfhf2(double)
declare float @__extendhfsf2(half)
define i16 @narrow32(float %x) {
  %h = call half @__truncsfhf2(float %x)
  %b = bitcast half %h to i16
  ret i16 %b
}
define i16 @narrow64(double %x) {
  %h = call half @__truncdfhf2(double %x)
  %b = bitcast half %h to i16
  ret i16 %b
}
define float @widen(i16 %b) {
  %h = bitcast i16 %b to half
  %x = call float @__extendhfsf2(half %h)
  ret float %x
}
"""
    names = ["narrow32", "narrow64", "widen"]
    needs = ["__truncsfhf2", "__truncdfhf2", "__extendhfsf2"]
    # Through assembled code, since on a processor with float16 LLVM replaces the calls.
    library = linking.link(jit.compile_ir(text).obj, names, native_library.native_symbols(needs))
    narrow32 = ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_float)(library.address("narrow32"))
    narrow64 = ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_double)(library.address("narrow64"))
    widen = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_uint16)(library.address("widen"))
    rng = np.random.default_rng(0)
    values = [0.0, -0.0, 65504, 65519.99, 65520, 1e9, -1e9, np.inf, 6e-8, 2.9e-8, 3e-8, 6.1e-5]
    values += (rng.standard_normal(500) * 10.0 ** rng.integers(-9, 6, 500)).tolist()
    with np.errstate(over="ignore"):
        for value in values:
            assert narrow32(value) == np.float16(np.float32(value)).view(np.uint16), value
            assert narrow64(value) == np.float16(np.float64(value)).view(np.uint16), value
    assert narrow32(np.nan) & 0x7C00 == 0x7C00 and narrow32(np.nan) & 0x3FF
    for bits in range(0, 65536, 7):
        expected = np.uint16(bits).view(np.float16)
        got = widen(bits)
        assert got == np.float32(expected) or (np.isnan(got) and np.isnan(expected)), bits


def test_engines_are_renewed_and_libraries_outlive_their_turn(monkeypatch):
    monkeypatch.setattr(linking._Engine, "LIBRARIES", 3)
    text = f'target triple = "{jit.host_machine().triple}"\ndefine i32 @f() {{\n  ret i32 7\n}}\n'
    obj = jit.compile_ir(text).obj
    libraries = [linking.link(obj, ["f"], {}) for _ in range(8)]
    engines = {id(library._engine): library._engine for library in libraries}
    assert len(engines) >= 3
    first = libraries[0]._engine
    assert first is not linking._Engine.current and not first.linker.closed
    call = ctypes.CFUNCTYPE(ctypes.c_int32)
    assert all(call(library.address("f"))() == 7 for library in libraries)
    address = libraries[0].find("f")
    assert call(address)() == 7
    kept = [library for library in libraries if library._engine is not first]
    libraries.clear()
    assert first.alive == 0 or first.linker.closed is False
    assert all(call(library.address("f"))() == 7 for library in kept)


def test_dropping_a_library_never_waits_for_the_linker():
    text = f'target triple = "{jit.host_machine().triple}"\ndefine i32 @f() {{\n  ret i32 7\n}}\n'
    obj = jit.compile_ir(text).obj
    library = linking.link(obj, ["f"], {})
    engine, alive = library._engine, library._engine.alive
    with linking._lock:  # as if another thread were linking
        del library
    assert engine.alive == alive
    again = linking.link(obj, ["f"], {})  # frees what was dropped before
    assert again._engine is not engine or engine.alive == alive


def test_a_pass_builder_serves_one_module(monkeypatch):
    """A run of LLVM's passes leaves pointers to its own stack in the builder: with a second module
    it printed lines by chance, from memory that was something else by then."""
    made = []
    create = jit.binding().create_pass_builder
    monkeypatch.setattr(jit.binding(), "create_pass_builder",
                        lambda *args: made.append(create(*args)) or made[-1])
    text = f'target triple = "{jit.host_machine().triple}"\ndefine i32 @f() {{\n  ret i32 7\n}}\n'
    for count in (1, 2, 3):
        jit.compile_ir(text)
        assert len(made) == count
