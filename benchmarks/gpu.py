"""Kernels for GPUs: beside kernels by hand on the same device, and what counts and builds take.

    python benchmarks/gpu.py                   # every row whose device is there
    python benchmarks/gpu.py --size 512 --only counts,launch

A product of float32 matrices, tiled with shared memory (64 x 64 tiles, 16 x 16 threads, 4 x 4
results each): on CUDA, beside cuBLAS (through torch) and apache-tvm's kernel of the same schedule
(`--tvm-kernel`, both compiled by NVRTC); on OpenCL and on WebGPU, beside the same kernel by hand,
called through pyopencl and wgpu by hand, in turns; on the simulated device; its counts; how long
it takes to its source;
launches of a kernel that does nothing; and a search of 200 trials by the model. Figures are medians
of one run. On a machine without a GPU, OpenCL is PoCL and WebGPU is lavapipe, both on the CPU.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from backend import gpu_programs  # noqa: E402
from observe.gpu.programs import square_tiles  # noqa: E402

import mlc_lab as tvm  # noqa: E402
from mlc_lab.runtime import driver  # noqa: E402
from mlc_lab.script import from_source  # noqa: E402

TILE, EACH, DEPTH = 64, 4, 8
NOTHING = '''
@T.prim_func
def main(A: T.Buffer((64,), "float32")):
    for t in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("A"):
            v = T.axis.spatial(64, t)
            A[v] = T.float32(1)
'''
OPENCL = """
__kernel void product(__global const float* restrict A, __global const float* restrict B,
                      __global float* restrict C) {
  __local float As[64 * 8]; __local float Bs[8 * 64];
  int tx = get_local_id(0), ty = get_local_id(1), bx = get_group_id(0), by = get_group_id(1);
  int t = ty * 16 + tx;
  float c[16];
  for (int i = 0; i < 16; ++i) c[i] = 0.0f;
  for (int k0 = 0; k0 < SIZE / 8; ++k0) {
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int v = 0; v < 2; ++v) {
      int at = t * 2 + v;
      As[at] = A[(by * 64 + at / 8) * SIZE + k0 * 8 + at % 8];
      Bs[at] = B[(k0 * 8 + at / 64) * SIZE + bx * 64 + at % 64];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < 8; ++k)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
          c[i * 4 + j] += As[(ty * 4 + i) * 8 + k] * Bs[k * 64 + tx * 4 + j];
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      C[(by * 64 + ty * 4 + i) * SIZE + bx * 64 + tx * 4 + j] = c[i * 4 + j];
}
"""
WGSL = """
@group(0) @binding(0) var<storage, read> A : array<f32>;
@group(0) @binding(1) var<storage, read> B : array<f32>;
@group(0) @binding(2) var<storage, read_write> C : array<f32>;
var<workgroup> As : array<f32, 512>;
var<workgroup> Bs : array<f32, 512>;
@compute @workgroup_size(16, 16, 1)
fn product(@builtin(workgroup_id) block : vec3<u32>,
           @builtin(local_invocation_id) own : vec3<u32>) {
  let tx = i32(own.x); let ty = i32(own.y); let bx = i32(block.x); let by = i32(block.y);
  let t = ty * 16 + tx;
  var c : array<f32, 16>;
  for (var i : i32 = 0; i < 16; i++) { c[i] = 0.0; }
  for (var k0 : i32 = 0; k0 < SIZE / 8; k0++) {
    workgroupBarrier();
    for (var v : i32 = 0; v < 2; v++) {
      let at = t * 2 + v;
      As[at] = A[(by * 64 + at / 8) * SIZE + k0 * 8 + at % 8];
      Bs[at] = B[(k0 * 8 + at / 64) * SIZE + bx * 64 + at % 64];
    }
    workgroupBarrier();
    for (var k : i32 = 0; k < 8; k++) {
      for (var i : i32 = 0; i < 4; i++) {
        for (var j : i32 = 0; j < 4; j++) {
          c[i * 4 + j] = c[i * 4 + j] + As[(ty * 4 + i) * 8 + k] * Bs[k * 64 + tx * 4 + j];
        }
      }
    }
  }
  for (var i : i32 = 0; i < 4; i++) {
    for (var j : i32 = 0; j < 4; j++) {
      C[(by * 64 + ty * 4 + i) * SIZE + bx * 64 + tx * 4 + j] = c[i * 4 + j];
    }
  }
}
"""
EMPTY_WGSL = """
@group(0) @binding(0) var<storage, read_write> A : array<f32>;
@compute @workgroup_size(64, 1, 1)
fn nothing(@builtin(local_invocation_id) own : vec3<u32>) { A[own.x] = 1.0; }
"""


def seconds(run, repeat=1):
    start = time.perf_counter()
    for _ in range(repeat):
        run()
    return (time.perf_counter() - start) / repeat


def in_turns(ours, by_hand, rounds, repeat=1):
    """Medians of two, measured in turns, after a first call of each."""
    ours()
    by_hand()
    pairs = [(seconds(ours, repeat), seconds(by_hand, repeat)) for _ in range(rounds)]
    return tuple(statistics.median(p[n] for p in pairs) for n in (0, 1))


def opencl_by_hand(n, a, b):
    """(a call, a function that gives its result)."""
    import pyopencl as cl

    dev = driver.driver_of("opencl")
    text = OPENCL.replace("SIZE", str(n))
    kernel = cl.Program(dev.context, text).build().product
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    c = np.zeros((n, n), "float32")
    memory = [cl.Buffer(dev.context, flags, hostbuf=x) for x in (a, b, c)]
    kernel.set_args(*memory)

    def run():
        cl.enqueue_nd_range_kernel(dev.queue, kernel, (n // 4, n // 4), (16, 16))
        dev.queue.finish()

    def result():
        cl.enqueue_copy(dev.queue, c, memory[2]).wait()
        return c

    return run, result


class ByWGPU:
    """A kernel through wgpu, without the lab's launches."""

    def __init__(self, text, entry, arrays, written):
        dev = driver.driver_of("webgpu")
        self.device, wgpu = dev.device, dev.wgpu
        use = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
        self.buffers = [self.device.create_buffer_with_data(data=x, usage=use) for x in arrays]
        kinds = ["storage" if at in written else "read-only-storage" for at in range(len(arrays))]
        layout = self.device.create_bind_group_layout(entries=[
            {"binding": at, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}}
            for at, kind in enumerate(kinds)])
        self.pipeline = self.device.create_compute_pipeline(
            layout=self.device.create_pipeline_layout(bind_group_layouts=[layout]),
            compute={"module": self.device.create_shader_module(code=text), "entry_point": entry})
        self.layout = layout

    def launch(self, grid):
        group = self.device.create_bind_group(layout=self.layout, entries=[
            {"binding": at, "resource": {"buffer": b, "offset": 0, "size": b.size}}
            for at, b in enumerate(self.buffers)])
        encoder = self.device.create_command_encoder()
        work = encoder.begin_compute_pass()
        work.set_pipeline(self.pipeline)
        work.set_bind_group(0, group)
        work.dispatch_workgroups(*grid)
        work.end()
        self.device.queue.submit([encoder.finish()])


def product(kind, n, rounds):
    """The product on a real device, beside one by hand."""
    if driver.driver_of(kind).simulated:
        print(f"product {n} by {kind}: no device here")
        return
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, (n, n)).astype("float32") for _ in "ab")
    rt = tvm.build(square_tiles(n, TILE, EACH, DEPTH), target=kind)
    dev = tvm.device(kind, 0)
    there = [tvm.nd.array(x, dev) for x in (a, b, np.zeros((n, n), "float32"))]

    def ours():
        rt["main"](*there)
        dev.sync()

    if kind == "opencl":
        by_hand, result = opencl_by_hand(n, a, b)
    else:
        kernel = ByWGPU(WGSL.replace("SIZE", str(n)), "product",
                        [a, b, np.zeros((n, n), "float32")], {2})

        def by_hand():
            kernel.launch((n // TILE, n // TILE, 1))
            dev.sync()

        def result():
            data = kernel.device.queue.read_buffer(kernel.buffers[2])
            return np.frombuffer(data, "float32").reshape(n, n)

    mine, theirs = in_turns(ours, by_hand, rounds)
    for got in (there[2].numpy(), result()):
        np.testing.assert_allclose(got, a @ b, rtol=1e-3, atol=1e-3)
    print(f"product {n} by {kind} ({driver.driver_of(kind).name}): {mine * 1e3:.1f} ms, by hand "
          f"{theirs * 1e3:.1f} ms; {theirs / mine:.2f} of its speed")


def cuda(n, rounds, tvm_kernel):
    """The product on a CUDA device, beside cuBLAS and beside the kernel that apache-tvm makes."""
    dev = driver.driver_of("cuda")
    if dev.simulated:
        print(f"product {n} on CUDA: no device here")
        return
    from mlc_lab.backend.source import KernelSource

    a, b = (np.random.default_rng(0).uniform(-1, 1, (n, n)).astype("float32") for _ in "ab")
    rt = tvm.build(square_tiles(n, TILE, EACH, DEPTH), target="cuda")
    there = [tvm.nd.array(x, tvm.cuda(0)) for x in (a, b, np.zeros((n, n), "float32"))]
    runs = {"ours": lambda: rt["main"](*there)}
    if tvm_kernel:
        text = Path(tvm_kernel).read_text()
        text = text[text.index('extern "C"'):]  # without the headers, which it does not use
        side = TILE // EACH
        kernel = dev.compile(KernelSource("main_kernel", text, [], [], (side, side, 1), {}, 0))
        pointers = [x.data_ptr() for x in there]
        runs["TVM's"] = lambda: dev.launch(kernel, pointers, [], (n // TILE, n // TILE, 1),
                                           (side, side, 1))
    times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            there[2].copyfrom(np.zeros((n, n), "float32"))
            with dev.clock(run) as clock:
                clock(20)
                times[name].append(clock(100) / 100)
            np.testing.assert_allclose(there[2].numpy(), a @ b, rtol=1e-3, atol=1e-3)
    middle = {name: statistics.median(found) for name, found in times.items()}
    by_cublas = cublas(a, b, rounds)
    if by_cublas:
        middle["cuBLAS"] = by_cublas
    mine = middle.pop("ours")
    others = "; ".join(f"{name} {t / 1e3:.1f} us, {t / mine:.2f} of its speed"
                       for name, t in middle.items())
    print(f"product {n} on CUDA ({dev.name}): {mine / 1e3:.1f} us, "
          f"{2 * n ** 3 / mine / 1e3:.1f} TFLOP/s; {others}")


def cublas(a, b, rounds):
    """Nanoseconds of the product by torch, in float32 without TF32; None without its CUDA."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    x, y = (torch.from_numpy(v).cuda() for v in (a, b))
    out = torch.empty(a.shape, device="cuda")
    times = []
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
        for _ in range(20):
            torch.matmul(x, y, out=out)
        begin.record()
        for _ in range(100):
            torch.matmul(x, y, out=out)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e4)
    return statistics.median(times)


def simulated(n, rounds):
    """The product on the simulated device."""
    os.environ["MLC_LAB_DEVICE"] = "simulated"
    driver.driver_of.cache_clear()
    a, b = (np.random.default_rng(0).uniform(-1, 1, (n, n)).astype("float32") for _ in "ab")
    rt = tvm.build(square_tiles(n, TILE, EACH, DEPTH), target="cuda")
    there = [tvm.nd.array(x, tvm.cuda(0)) for x in (a, b, np.zeros((n, n), "float32"))]
    took = statistics.median(seconds(lambda: rt["main"](*there)) for _ in range(rounds))
    np.testing.assert_allclose(there[2].numpy(), a @ b, rtol=1e-3, atol=1e-3)
    print(f"product {n} on the simulated device: {took:.2f} s")


def counts(n):
    """Counts of the product."""
    mod = square_tiles(n // 2, TILE, EACH, DEPTH)
    start = time.perf_counter()
    found = tvm.count_gpu(mod, target="nvidia/geforce-rtx-2080-ti")
    print(f"counts of product {n // 2}: {time.perf_counter() - start:.2f} s; "
          f"{found[0].modelled}")


def source(n, rounds):
    """From the module to the source of its kernels."""
    from mlc_lab.backend.source import sources
    from mlc_lab.lower import lower

    mod = square_tiles(n, TILE, EACH, DEPTH)
    took = statistics.median(
        seconds(lambda: sources(lower(mod, target="cuda"), "cuda")) for _ in range(rounds + 4))
    print(f"module to source: {took * 1e3:.1f} ms")


def launch(rounds):
    """A kernel that does nearly nothing, enqueued."""
    if driver.driver_of("webgpu").simulated:
        print("launch: no WebGPU device here")
        return
    rt = tvm.build(from_source(NOTHING), target="webgpu")
    x = tvm.nd.array(np.zeros(64, "float32"), tvm.webgpu(0))
    kernel = ByWGPU(EMPTY_WGSL, "nothing", [np.zeros(64, "float32")], {0})
    mine, theirs = in_turns(lambda: rt["main"](x), lambda: kernel.launch((1, 1, 1)),
                            rounds * 5, 50)
    tvm.webgpu(0).sync()
    print(f"launch of an empty kernel by webgpu: {mine * 1e6:.0f} us, by hand "
          f"{theirs * 1e6:.0f} us; {mine / theirs:.2f} of its time")


def tune(n):
    """A search by the model for a GPU that is not there, beside the default schedule."""
    from mlc_lab import meta_schedule as ms
    from mlc_lab.meta_schedule.space_generator.post_order_apply import default_schedule
    from mlc_lab.meta_schedule.workload import as_workload
    from mlc_lab.target import Target

    os.environ["MLC_LAB_DEVICE"] = "simulated"
    driver.driver_of.cache_clear()
    tag, mod = "nvidia/geforce-rtx-2080-ti", gpu_programs.product(n, n, n)
    before = tvm.count_gpu(default_schedule(as_workload(mod), Target(tag)), tag).seconds
    with tempfile.TemporaryDirectory() as folder:
        start, own = time.perf_counter(), time.process_time()
        database = ms.tune_tir(mod, target=tag, work_dir=folder, max_trials_global=200, seed=0)
        took, own = time.perf_counter() - start, time.process_time() - own
        best = min(record.time for record in database.get_all_tuning_records() if record.time)
    print(f"200 trials of a product of {n} by the model: {took:.1f} s (this process was busy for "
          f"{own:.1f} s); {before / best:.2f} times the default schedule's modelled speed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="cuda,opencl,webgpu,launch,source,counts,simulated,tune")
    parser.add_argument("--tvm-kernel", help="a file with the source that gpu_tvm_kernel.py writes")
    options = parser.parse_args()
    n, wanted = options.size, options.only.split(",")
    if "cuda" in wanted:
        cuda(n, options.rounds, options.tvm_kernel)
    for kind in ("opencl", "webgpu"):
        if kind in wanted:
            product(kind, n, options.rounds)
    if "launch" in wanted:
        launch(options.rounds)
    if "source" in wanted:
        source(n, options.rounds)
    if "counts" in wanted:
        counts(n)
    if "simulated" in wanted:
        simulated(n, options.rounds)
    if "tune" in wanted:
        tune(n // 2)


if __name__ == "__main__":
    main()
