"""CUDA C, as NVRTC and nvcc compile it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dialect import C_WORDS, Dialect

if TYPE_CHECKING:
    from .generator import KernelGen

TYPES = {
    "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short",
    "uint16": "unsigned short", "int32": "int", "uint32": "unsigned int", "int64": "long long",
    "uint64": "unsigned long long", "float16": "half", "bfloat16": "__nv_bfloat16",
    "float32": "float", "float64": "double",
}


#: bytes of shared memory that a kernel can name itself; more of it comes with the launch
_STATIC_SHARED = 49152


def _shared(gen: KernelGen, shared: list[str]) -> list[str]:
    """The declarations of shared memory: arrays, or parts of one whose size the launch gives."""
    if gen.shared_bytes <= _STATIC_SHARED:
        return [f"__shared__ {line}" for line in shared]
    whole, at = gen.unique("shared_memory"), 0
    lines = [f"extern __shared__ __align__(16) unsigned char {whole}[];"]
    for kind, name, nbytes in gen.shared_arrays:
        lines.append(f"{kind}* const {name} = ({kind}*)({whole} + {at});")
        at += -(-nbytes // 16) * 16
    gen.dynamic_shared = at
    return lines


def _frame(gen: KernelGen, shared: list[str], body: list[str]) -> list[str]:
    params = []
    for p in gen.pointers:
        const = "const " if p.read_only else ""
        restrict = " __restrict__" if gen.noalias else ""
        params.append(f"{const}{p.type}*{restrict} {p.name}")
    params += [f"{s.type} {s.name}" for s in gen.scalars]
    bounds = f" __launch_bounds__({gen.block_size})" if gen.block_size else ""
    return [
        f'extern "C" __global__ void{bounds} {gen.name}(', f"    {', '.join(params)}) {{",
        *(f"  const {gen.type_of(a.dtype)} {a.name} = {a.tag};" for a in gen.axes),
        *(f"  {line}" for line in _shared(gen, shared)), *body, "}",
    ]


def _preamble(used: set[str]) -> list[str]:
    out = []
    if "float16" in used:
        out.append("#include <cuda_fp16.h>")
    if "bfloat16" in used:
        out.append("#include <cuda_bf16.h>")
    return out


_FLOATS = """exp exp2 exp10 log log2 log10 log1p sqrt sin cos tan asin acos atan sinh cosh tanh
asinh acosh atanh erf atan2 hypot copysign fmod pow floor ceil trunc fabs fma nextafter""".split()

#: asynchronous copies, in groups; before sm_80 they are plain ones
_COPY_ASYNC = """\
template <int N> __device__ inline void copy_async(void* to, const void* from) {{
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::
      "r"((unsigned int)__cvta_generic_to_shared(to)), "l"(from), "n"(N) : "memory");
#else
  for (int i = 0; i < N; i += 4) *(int*)((char*)to + i) = *(const int*)((const char*)from + i);
#endif
}}
__device__ inline void commit_copies() {{
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}}
template <int N> __device__ inline void wait_for_copies() {{
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
#endif
}}"""

CUDA = Dialect(
    name="cuda", title="CUDA C", extension="cu", types=TYPES,
    functions={
        **{name: name + "{f}" for name in _FLOATS}, "rsqrt": "rsqrt{f}", "round": "rint{f}",
        "nearbyint": "rint{f}", "ldexp": "ldexp{f}", "isnan": "isnan", "isinf": "isinf",
        "isfinite": "isfinite", "popcount": "__popc", "clz": "__clz", "popcount64": "__popcll",
        "clz64": "__clzll", "sigmoid": "sigmoid", "maximum": "maximum", "minimum": "minimum",
        "floordiv": "floordiv", "floormod": "floormod", "int_pow": "int_pow",
        "tvm_warp_activemask": "__activemask",
        "float_bits": "__float_as_int({0})", "bits_float": "__int_as_float({0})",
        "float_ubits": "__float_as_uint({0})", "ubits_float": "__uint_as_float({0})",
    },
    helpers={
        "sigmoid": "__device__ inline {T} sigmoid({T} x) {{ return ({T})1 / (({T})1 + exp(-x)); }}",
        "maximum": "__device__ inline {T} maximum({T} a, {T} b) {{ return a >= b || a != a ? a : b;"
                   " }}",
        "minimum": "__device__ inline {T} minimum({T} a, {T} b) {{ return a <= b || a != a ? a : b;"
                   " }}",
        "floordiv": "__device__ inline {T} floordiv({T} a, {T} b) {{ {T} q = a / b; return q - "
                    "((a % b != 0) && ((a < 0) != (b < 0))); }}",
        "floormod": "__device__ inline {T} floormod({T} a, {T} b) {{ {T} r = a % b; return r + "
                    "((r != 0) && ((r < 0) != (b < 0)) ? b : ({T})0); }}",
        "copy_async": _COPY_ASYNC,
        "int_pow": "__device__ inline {T} int_pow({T} a, {T} b) {{ {T} r = 1; for (; b > 0; --b) "
                   "r *= a; return r; }}",
    },
    suffixes={"float32": "f", "uint32": "u", "int64": "ll", "uint64": "ull"},
    constants=("__int_as_float(0x7f800000)", "__int_as_float(0x7fc00000)"),
    frame=_frame, barrier="__syncthreads();",
    reserved=C_WORDS | {"blockIdx", "threadIdx", "blockDim", "gridDim", "warpSize"},
    vector_types=("float32", "int32", "uint32"), vector_lanes=(2, 4),
    vector_load="*({const}{type}{lanes}*)({buffer} + ({index}))",
    vector_store="*({type}{lanes}*)({buffer} + ({index})) = {value};", preamble=_preamble,
    async_copy="copy_async<{bytes}>({to}, {source});", async_commit="commit_copies();",
    async_wait="wait_for_copies<{count}>();",
    shuffles={way: f"__shfl{way}_sync({{mask}}, {{value}}, {{lane}}{{group}})"
              for way in ("", "_up", "_down")},
)

__all__ = ["CUDA"]
