"""A CUDA device: what it has beyond other devices. `test_real_devices.py` has what all do.

The tests of NVRTC and of the source need no device; the others are part of the suite where there is
one (`cuda_tests.py`).
"""

import importlib.util

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.backend.device import nvrtc
from mlc_lab.backend.device.real import KernelError
from mlc_lab.lower import lower
from mlc_lab.runtime.driver import driver_of
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source

from .gpu_programs import arguments, elementwise, missing, product, tiled


@pytest.fixture
def dev():
    return tvm.cuda(0)


def shared_product(tile=128, depth=64, size=256):
    """A product whose tiles take 2 * tile * depth * 4 bytes of shared memory."""
    sch = Schedule(product(size, size, size))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1, i2 = sch.split(i, [None, 16, tile // 16])
    j0, j1, j2 = sch.split(j, [None, 16, tile // 16])
    k0, k1 = sch.split(k, [None, depth])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    local = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(local, j1)
    sch.bind(i0, "blockIdx.y")
    sch.bind(j0, "blockIdx.x")
    sch.bind(i1, "threadIdx.y")
    sch.bind(j1, "threadIdx.x")
    for at in (0, 1):
        copy = sch.cache_read(block, at, "shared")
        sch.compute_at(copy, k0)
        _, ty, tx = sch.split(sch.fuse(*sch.get_loops(copy)[-2:]), [None, 16, 16])
        sch.bind(ty, "threadIdx.y")
        sch.bind(tx, "threadIdx.x")
    sch.decompose_reduction(block, k0)
    return sch.mod


LARGE = {"kind": "cuda", "max_shared_memory_per_block": 101376}


def typed(dtype, n=64):
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({n},), "{dtype}"), B: T.Buffer(({n},), "{dtype}")):
    for t in T.thread_binding({n}, thread="threadIdx.x"):
        with T.block("B"):
            v = T.axis.spatial({n}, t)
            B[v] = T.max(A[v] * A[v] + T.{dtype}(1), A[v])
""")


# -- without a device ---------------------------------------------------------------------------


def test_shared_memory_above_48_kb_comes_with_the_launch():
    source = tvm.build(shared_product(), target=LARGE).imported_modules[0].get_source()
    assert "extern __shared__ __align__(16) unsigned char shared_memory[];" in source
    assert "float* const B_shared = (float*)(shared_memory + 32768);" in source
    small = tvm.build(shared_product(64, 8), target="cuda").imported_modules[0].get_source()
    assert "extern __shared__" not in small and "__shared__ __align__(16) float" in small


def test_nvrtc_compiles_dynamic_shared_memory_and_types():
    if not nvrtc.available():
        missing("cuda", "NVRTC is not there")
    from mlc_lab.backend.source import sources
    from mlc_lab.target import Target

    kernel = sources(lower(shared_product(), target=Target(LARGE)), "cuda")["main_kernel"]
    assert kernel.shared_bytes == kernel.dynamic_shared == 65536
    assert nvrtc.compile_cuda(kernel.text, "main", "sm_90")[:4] == b"\x7fELF"
    text = sources(lower(typed("int8"), target="cuda"), "cuda")["main_kernel"].text
    assert b".target sm_80" in nvrtc.compile_cuda(text, "main", "sm_80", "ptx")


def test_nvrtc_compiles_the_division_of_64_bits():
    """A type of two words cannot be called: `long long(0)`."""
    if not nvrtc.available():
        missing("cuda", "NVRTC is not there")
    mod = from_source('''
@T.prim_func
def main(A: T.Buffer((64,), "int64"), n: T.int64):
    for t in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("A"):
            v = T.axis.spatial(64, t)
            A[v] = A[v] % n + A[v] // n
''')
    from mlc_lab.backend.source import sources

    text = sources(lower(mod, target="cuda"), "cuda")["main_kernel"].text
    assert "floormod" in text
    nvrtc.compile_cuda(text, "main", "sm_90")


def test_an_architecture_newer_than_the_compiler_gets_ptx():
    if not nvrtc.available():
        missing("cuda", "NVRTC is not there")
    assert nvrtc.architecture_for(90) == "sm_90"
    assert nvrtc.architecture_for(999) == f"compute_{nvrtc.architectures()[-1]}"


def test_nvrtc_says_what_is_wrong():
    if not nvrtc.available():
        missing("cuda", "NVRTC is not there")
    with pytest.raises(nvrtc.CompileError, match=r"k\.cu\(1\): error"):
        nvrtc.compile_cuda("wrong", "k", "sm_90")


# -- on a device --------------------------------------------------------------------------------


def test_attributes(dev):
    assert dev.exist and not dev.simulated and dev.device_name
    assert dev.warp_size == 32 and dev.max_threads_per_block == 1024
    assert float(dev.compute_version) >= 5 and dev.multi_processor_count > 0
    assert 0 < dev.available_global_memory <= dev.total_global_memory
    assert dev.max_shared_memory_per_block >= 49152 and dev.max_thread_dimensions[2] == 64


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "float64", "int64", "uint8"])
def test_types(dev, dtype):
    values = tvm.nd.array(np.arange(64) % 7 - (0 if dtype == "uint8" else 3), tvm.cpu(0)).numpy()
    a, b = (tvm.nd.empty((64,), dtype, dev) for _ in "ab")
    a.copyfrom(values.astype("float32") if "float" in dtype else values.astype(dtype))
    tvm.build(typed(dtype), target="cuda")["main"](a, b)
    np.testing.assert_array_equal(b.numpy().astype("float64"), values * values + 1.0)


def test_dynamic_shared_memory(dev):
    a, b, c = arguments(shared_product())
    there = [tvm.nd.array(x, dev) for x in (a, b, c)]
    tvm.build(shared_product(), target=LARGE)["main"](*there)
    np.testing.assert_allclose(there[2].numpy(), a @ b, rtol=1e-4, atol=1e-4)


def test_torch_shares_memory_both_ways(dev):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    a, b, c = arguments(tiled())
    rt = tvm.build(tiled(), target="cuda")
    x, y = (torch.from_numpy(v).cuda() for v in (a, b))
    out = torch.zeros(c.shape, device="cuda")
    rt["main"](x * 2, y, out)  # torch's work before it is seen
    torch.testing.assert_close(out, (x * 2) @ y, rtol=1e-4, atol=1e-4)
    mine = tvm.nd.array(a, dev)
    view = torch.from_dlpack(mine)
    assert view.is_cuda and view.data_ptr() == mine.data_ptr()
    view += 1
    np.testing.assert_allclose(mine.numpy(), a + 1)
    np.testing.assert_array_equal(tvm.nd.from_dlpack(x.T).numpy(), a.T)
    with pytest.raises(ValueError, match="must be compact"):
        rt["main"](x.T, y, out)
    del mine
    np.testing.assert_allclose(view.cpu().numpy(), a + 1)


def test_time_by_events(dev):
    sch = Schedule(product(256, 256, 256))
    i, j, _ = sch.get_loops(sch.get_block("C"))
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    there = [tvm.nd.array(x, dev) for x in arguments(sch.mod)]
    rt = tvm.build(sch.mod, target="cuda")
    warm = rt.time_evaluator("main", dev, number=20, repeat=5)(*there)
    assert warm.clock == "" and 1e-6 < warm.median < 1e-2
    cold = rt.time_evaluator("main", dev, number=1, repeat=5, cache_flush_bytes=1 << 28)(*there)
    assert cold.median > 1e-6
    held = len(driver_of("cuda").memories)
    grown = rt.time_evaluator("main", dev, number=1, repeat=2, min_repeat_ms=5)(*there)
    assert grown.median < 1e-2 and len(driver_of("cuda").memories) == held


def test_a_search_measures_on_the_device(dev, tmp_path, capsys):
    from mlc_lab import meta_schedule as ms

    database = ms.tune_tir(product(128, 128, 128), target="nvidia/nvidia-h100", work_dir=tmp_path,
                           max_trials_global=4, num_trials_per_iter=4)
    assert database.get_all_tuning_records()
    assert "modelled" not in capsys.readouterr().out


def test_memory_that_runs_out(dev):
    held = len(driver_of("cuda").memories)
    with pytest.raises(MemoryError, match="free tensors that are not needed"):
        tvm.nd.empty((1 << 42,), "float32", dev)
    assert len(driver_of("cuda").memories) == held
    np.testing.assert_array_equal(tvm.nd.array(np.ones(4), dev).numpy(), np.ones(4))


OUTSIDE = '''
@T.prim_func
def main(A: T.Buffer((64,), "float32"), at: T.int64):
    for t in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("A"):
            v = T.axis.spatial(64, t)
            T.reads()
            T.writes(A[0:64])
            A[v * at] = T.float32(1)
'''


def test_an_illegal_address_is_reported_and_the_process_lives(dev):
    """In a process of its own, since other libraries lose the context too."""
    import subprocess
    import sys

    script = f"""
import numpy as np
import mlc_lab as tvm
from mlc_lab.backend.device.real import KernelError
from mlc_lab.script import from_source
rt = tvm.build(from_source({OUTSIDE!r}), target="cuda")
x = tvm.nd.array(np.zeros(64, "float32"), tvm.cuda(0))
rt["main"](x, 1 << 40)
for wanted in ("ILLEGAL_ADDRESS", ("is lost: make it again", "start it anew")):
    try:
        x.numpy()
    except KernelError as error:
        words = str(error)
        assert any(w in words for w in ([wanted] if isinstance(wanted, str) else wanted)), words
        print(words)
    else:
        raise AssertionError("no error")
try:
    y = tvm.nd.array(np.zeros(64, "float32"), tvm.cuda(0))
    rt["main"](y, 1)
    assert y.numpy().sum() == 64
    print("RENEWED")
except KernelError as error:
    assert "start it anew" in str(error)
    print("NOT RENEWED")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "main_kernel" in done.stdout and "RENEWED" in done.stdout


def test_a_kernel_that_does_not_compile_shows_the_statement(dev):
    mod = elementwise('T.call_pure_extern("float32", "no_such_function", A[vi])')
    with pytest.raises(KernelError, match=r"line \d+, of block B: B\["):
        tvm.build(mod, target="cuda")


def test_the_bindings_are_not_loaded_before_a_device_is_asked_for():
    import subprocess
    import sys

    script = "import sys, mlc_lab; raise SystemExit('cuda.bindings' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
    assert importlib.util.find_spec("mlc_lab.backend.device.cuda")
