"""WGSL, the language of WebGPU.

It has no pointers, no `?:`, no integers of 8, 16 or 64 bits and no float64; memory holds no bool.
Numbers of 64 bits that are no memory, as indices are, are computed in 32: a buffer of WebGPU has at
most 2 GiB. Shared memory stands outside of the function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dialect import Dialect

if TYPE_CHECKING:
    from .generator import KernelGen

TYPES = {
    "bool": "bool", "int32": "i32", "uint32": "u32", "float32": "f32", "float16": "f16",
    "int64": "i32", "uint64": "u32", "int16": "i32", "int8": "i32", "uint16": "u32",
    "uint8": "u32",
}


def _frame(gen: KernelGen, shared: list[str], body: list[str]) -> list[str]:
    out = []
    for at, p in enumerate(gen.pointers):
        access = "read" if p.read_only else "read_write"
        out.append(f"@group(0) @binding({at}) var<storage, {access}> {p.name} : array<{p.type}>;")
    if gen.scalars:
        fields = ", ".join(f"{s.name} : {'u32' if s.type == 'bool' else s.type}"
                           for s in gen.scalars)
        out.append(f"struct Scalars {{ {fields} }}")
        out.append(f"@group(0) @binding({len(gen.pointers)}) var<uniform> scalars : Scalars;")
    if gen.note:
        last = len(gen.pointers) + bool(gen.scalars)
        out.append(f"@group(0) @binding({last}) var<storage, read_write> {gen.note} : "
                   "atomic<u32>;")
    out += [f"var<workgroup> {line}" for line in shared]
    sizes, thread, lines = gen.block_dims, "@builtin(local_invocation_id) threadIdx : vec3<u32>", []
    if gen.warp and max(sizes) < gen.block_size:
        # of a workgroup with one axis, the invocations of a subgroup follow each other
        x, y, _ = sizes
        at = gen.unique("thread")
        sizes, thread = (gen.block_size, 1, 1), f"@builtin(local_invocation_index) {at} : u32"
        lines = [f"  let threadIdx = vec3<u32>({at} % {x}u, {at} / {x}u % {y}u, {at} / {x * y}u);"]
    out += [
        f"@compute @workgroup_size({', '.join(map(str, sizes))})",
        f"fn {gen.name}(@builtin(workgroup_id) blockIdx : vec3<u32>,",
        f"    {' ' * len(gen.name)}{thread}) {{", *lines,
        *(f"  let {a.name} = i32({a.tag});" for a in gen.axes),
        *(f"  let {s.name} = {'scalars.' + s.name}{' != 0u' if s.type == 'bool' else ''};"
          for s in gen.scalars),
        *body, "}",
    ]
    return out


_SAME = """exp exp2 log log2 sqrt sin cos tan asin acos atan sinh cosh asinh acosh atanh atan2 pow
floor ceil trunc fma ldexp""".split()
_NAN_TEST = "((bitcast<u32>({0}) & 0x7fffffffu) {op} 0x7f800000u)"

WGSL = Dialect(
    name="webgpu", title="WGSL", extension="wgsl", types=TYPES,
    memory_types=dict.fromkeys(("bool", "int64", "uint64", "int16", "uint16", "int8", "uint8"), ""),
    functions={
        **{name: name for name in _SAME}, "fabs": "abs", "rsqrt": "inverseSqrt", "round": "round",
        "nearbyint": "round", "exp10": "pow(10.0, {0})", "log10": "(log2({0}) * 0.30102999566398f)",
        "log1p": "log(1.0 + {0})", "hypot": "length(vec2({0}, {1}))", "fmod": "({0} % {1})",
        "tanh": "tanh_{T}", "sigmoid": "sigmoid_{T}", "maximum": "max", "minimum": "min",
        "floordiv": "floordiv_{T}", "floormod": "floormod_{T}", "erf": "erf_approx",
        "int_pow": "int_pow_{T}", "popcount": "i32(countOneBits({0}))",
        "clz": "i32(countLeadingZeros({0}))",
        "copysign": "bitcast<f32>((bitcast<u32>({0}) & 0x7fffffffu) | "
                    "(bitcast<u32>({1}) & 0x80000000u))",
        "isnan": _NAN_TEST.replace("{op}", ">"), "isinf": _NAN_TEST.replace("{op}", "=="),
        "isfinite": _NAN_TEST.replace("{op}", "<"), "float_bits": "bitcast<i32>({0})",
        "bits_float": "bitcast<f32>({0})", "float_ubits": "bitcast<u32>({0})",
        "ubits_float": "bitcast<f32>({0})",
    },
    helpers={
        "sigmoid": "fn sigmoid_{T}(x : {T}) -> {T} {{ return {T}(1) / ({T}(1) + exp(-x)); }}",
        # beyond 10 the result is 1 to the last bit, and the exponential of some drivers overflows
        "tanh": "fn tanh_{T}(x : {T}) -> {T} {{ return tanh(clamp(x, {T}(-10), {T}(10))); }}",
        "floordiv": "fn floordiv_{T}(a : {T}, b : {T}) -> {T} {{ let q = a / b; return q - "
                    "select({T}(0), {T}(1), (a % b != {T}(0)) && ((a < {T}(0)) != (b < {T}(0)))); "
                    "}}",
        "floormod": "fn floormod_{T}(a : {T}, b : {T}) -> {T} {{ let r = a % b; return r + "
                    "select({T}(0), b, (r != {T}(0)) && ((r < {T}(0)) != (b < {T}(0)))); }}",
        "within": "fn within_{T}(at : {T}, size : {T}, site : u32, counts : bool) -> {T} {{ if (at "
                  ">= 0 && at < size) {{ return at; }} if (counts) {{ atomicStore(&{note}, site); "
                  "}} return 0; }}",
        "int_pow": "fn int_pow_{T}(a : {T}, b : {T}) -> {T} {{ var r = {T}(1); for (var i = {T}(0);"
                   " i < b; i++) {{ r = r * a; }} return r; }}",
        "erf": "fn erf_approx(x : f32) -> f32 {{ let t = 1.0 / (1.0 + 0.3275911 * abs(x)); let p = "
               "t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * "
               "1.061405429)))); let y = 1.0 - p * exp(-x * x); return select(y, -y, x < 0.0); }}",
        # constants that are no number may not be written, so their bits come from a variable
        "infinity": "var<private> infinity_bits : u32 = 0x7f800000u;",
        "not_a_number": "var<private> nan_bits : u32 = 0x7fc00000u;",
    },
    suffixes={"float32": "f", "uint32": "u", "float16": "h"},
    constants=("bitcast<f32>(infinity_bits)", "bitcast<f32>(nan_bits)"),
    frame=_frame, barrier="workgroupBarrier();", c_like=False, unroll="",
    reserved=frozenset("""
alias break case const const_assert continue continuing default diagnostic discard else enable false
fn for if let loop override requires return struct switch true var while array atomic bool f32 f16
i32 u32 vec2 vec3 vec4 ptr sampler main blockIdx threadIdx scalars Scalars private storage uniform
workgroup function read write read_write self super this target type typedef union unsafe use
""".split()),
    preamble=lambda used: ["enable f16;"] if "float16" in used else [],
    shuffles={way: f"subgroupShuffle{way.title().strip('_')}({{value}}, u32({{lane}}))"
              for way in ("", "_up", "_down")},
    shuffle_lines=("enable subgroups;",),
)

__all__ = ["WGSL"]
