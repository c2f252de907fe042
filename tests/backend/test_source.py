"""Kernels as source: what stands in it, and what real compilers say of it."""

import re

import pytest

import mlc_lab as tvm
from mlc_lab.backend.device import nvrtc
from mlc_lab.backend.source import DIALECTS, kernel_source
from mlc_lab.ir.structural import structural_equal
from mlc_lab.lower import LowerError, lower
from mlc_lab.lower.origins import lower_with_blocks
from mlc_lab.lower.scalarize_vectors import ScalarizeVectors
from mlc_lab.script import from_source
from mlc_lab.target import Target

from lower.thread_sums import together

from .gpu_programs import PROGRAMS, elementwise, missing, tiled


def source(mod, target):
    return tvm.build(mod, target=target).imported_modules[0].get_source()


@pytest.mark.parametrize("target, words", [
    ("cuda", ['extern "C" __global__ void __launch_bounds__(16) main_kernel(', "__syncthreads();",
              "__shared__ __align__(16) float A_shared[128];", "*(float4*)(A_shared",
              "const float* __restrict__ A"]),
    ("opencl", ["reqd_work_group_size(16, 1, 1)", "barrier(CLK_LOCAL_MEM_FENCE);", "vload4(0, A",
                "__local float A_shared[128];"]),
    ("webgpu", ["@compute @workgroup_size(16, 1, 1)", "workgroupBarrier();",
                "var<workgroup> A_shared : array<f32, 128>;"]),
    ("metal", ["kernel void main_kernel(", "threadgroup_barrier(mem_flags::mem_threadgroup);",
               "device float* C [[buffer(2)]]"]),
])
def test_the_source_is_structured_and_keeps_names(target, words):
    text = source(tiled(), target)
    for word in [*words, "// block C_update", "// block A_shared", "k_0"]:
        assert word in text
    assert text.count("// block ") == 5


@pytest.mark.parametrize("target", ["cuda", "opencl", "metal"])
def test_the_address_of_a_vector_is_one_sum(target):
    """Term by term it would be computed in 64 bits, which costs a product a twentieth."""
    text = source(tiled(), target)
    assert "A_shared + (" in text or "A + (" in text
    assert re.search(r"\*\)\(\w+ \+ [^(]|vload\d\(0, \w+ \+ [^(]", text) is None


def test_a_module_says_its_source_by_any_of_its_names():
    device = tvm.build(tiled(), target="cuda").imported_modules[0]
    assert device.get_source() == device.get_source("cuda") == device.get_source("cu")
    assert device.type_key == "cuda" and device.function_names == ("main_kernel",)
    with pytest.raises(RuntimeError, match="the host's function launches"):
        device["main_kernel"]


def test_lowering_that_keeps_account_is_the_same_lowering():
    mod = tiled()
    lowered, _, blocks = lower_with_blocks(mod, Target("cuda"))
    assert structural_equal(lowered, lower(mod, target="cuda"))
    assert set(blocks.values()) >= {"C_init", "C_update", "A_shared", "B_shared", "C_local"}


def test_vectors_become_lanes():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for t in T.thread_binding(15, thread="threadIdx.x"):
        B[t * 4:t * 4 + 4] = A[t * 4 + 1:t * 4 + 5] * T.Broadcast(T.float32(2), 4)
        A[t * 4:t * 4 + 4] = A[t * 4 + 1:t * 4 + 5]
""")
    from mlc_lab.backend.interp import interpret
    import numpy as np

    for types, lanes in (((), ()), (("float32",), (4,))):
        got, want = ([np.arange(64, dtype="float32"), np.zeros(64, "float32")] for _ in "ab")
        lowered = lower(program, target="cuda", until="LowerIntrin")
        interpret(lowered, *want)
        interpret(ScalarizeVectors(types, lanes)(lowered), *got)
        assert all((a == b).all() for a, b in zip(got, want))


def test_what_a_language_does_not_have_is_refused():
    with pytest.raises(LowerError, match="WGSL has no float64"):
        source(elementwise("A[vi] + A[vi]", "float64"), "webgpu")
    with pytest.raises(LowerError, match="has the dtype int8, and memory in WGSL cannot hold it"):
        source(elementwise("A[vi] + A[vi]", "int8"), "webgpu")
    with pytest.raises(LowerError, match="Metal Shading Language has no float64"):
        source(elementwise("A[vi] + A[vi]", "float64"), "metal")


def test_words_of_a_language_are_not_taken_as_names():
    text = source(from_source("""
@T.prim_func
def main(float: T.Buffer((8,), "float32"), kernel: T.Buffer((8,), "float32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("B"):
            v = T.axis.spatial(8, t)
            kernel[v] = float[v]
"""), "opencl")
    assert "kernel_1[threadIdx_x] = float_1[threadIdx_x];" in text


@pytest.mark.parametrize("name", PROGRAMS)
def test_nvrtc_compiles_it(name):
    """To PTX, for three architectures, without a GPU."""
    if not nvrtc.available():
        missing("cuda", "NVRTC is not there")
    text = source(PROGRAMS[name](), "cuda")
    for arch in ("sm_75", "sm_80", "sm_90"):
        ptx = nvrtc.compile_cuda(text, "kernel", arch, "ptx").decode()
        assert f".target {arch}" in ptx and "main_kernel" in ptx


def test_kernel_source_can_be_asked_for_alone():
    mod = lower(tiled(vector=1), target="cuda")
    for kind in DIALECTS:
        made = kernel_source(mod["main_kernel"], "main_kernel", kind)
        assert made.block == (16, 1, 1) and made.shared_bytes > 0
        assert [p.read_only for p in made.pointers] == [True, True, False]


# -- shuffles -------------------------------------------------------------------------------------

def kernel_text(mod, target):
    """The source alone, which the device here may not take."""
    kind = Target(target).kind.name
    return kernel_source(lower(mod, target=target)["main_kernel"], "main_kernel", kind).text


SUBGROUPS = " -supports_subgroups=1 -thread_warp_size=32"


@pytest.mark.parametrize("target, words", [
    ("cuda", ["__shfl_down_sync(", ", red_cross_thread_C[0], 16)", "__shfl_sync("]),
    ("apple/m1-gpu", ["simd_shuffle_down(red_cross_thread_C[0], (ushort)(16))", "simd_shuffle("]),
    ("webgpu" + SUBGROUPS, ["enable subgroups;", "subgroupShuffle(",
                            "subgroupShuffleDown(red_cross_thread_C[0], u32(16))"]),
    ("opencl" + SUBGROUPS, ["cl_khr_subgroup_shuffle_relative : enable", "sub_group_shuffle(",
                            "sub_group_shuffle_down(red_cross_thread_C[0], (uint)(16))"]),
])
def test_each_dialect_has_its_shuffles(target, words):
    text = kernel_text(together(threads=32), target)
    for word in words:
        assert word in text, text
    assert "barrier" not in text.lower() and "__syncthreads" not in text


def test_webgpu_numbers_the_threads_of_subgroups_along_one_axis():
    text = kernel_text(together(threads=8, beside=4), "webgpu" + SUBGROUPS)
    assert "@workgroup_size(32, 1, 1)" in text and "local_invocation_index" in text
    assert "let threadIdx = vec3<u32>(thread % 8u, thread / 8u % 4u, thread / 32u);" in text


def test_a_shuffle_of_a_part_of_a_warp_is_refused_where_there_is_none():
    mod = from_source("""
@T.prim_func
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        B[t] = T.tvm_warp_shuffle_up(T.uint32(255), A[t], 1, 8, 32)
""")
    assert "__shfl_up_sync(255u, A[threadIdx_x], 1, 8)" in kernel_text(mod, "cuda")
    with pytest.raises(LowerError, match="no shuffle among 8 of 32 lanes; take whole warps"):
        kernel_text(mod, "apple/m1-gpu")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "uint16", "int64"])
def test_nvrtc_compiles_shuffles_of_all_types(dtype):
    if not nvrtc.available():
        missing("cuda", "NVRTC is not there")
    text = kernel_text(together("argmax", dtype, 2, 100, 100), "cuda")
    for arch in ("sm_75", "sm_80", "sm_90"):
        assert "shfl.sync" in nvrtc.compile_cuda(text, "kernel", arch, "ptx").decode()
