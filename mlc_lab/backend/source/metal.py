"""Metal's shading language, of version 2 and later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dialect import C_WORDS, Dialect

if TYPE_CHECKING:
    from .generator import KernelGen

TYPES = {
    "bool": "bool", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort",
    "int32": "int", "uint32": "uint", "int64": "long", "uint64": "ulong", "float16": "half",
    "float32": "float",
}


def _frame(gen: KernelGen, shared: list[str], body: list[str]) -> list[str]:
    params = []
    for at, p in enumerate(gen.pointers):
        const = "const " if p.read_only else ""
        params.append(f"device {const}{p.type}* {p.name} [[buffer({at})]]")
    for at, s in enumerate(gen.scalars):
        params.append(f"constant {s.type}& {s.name} [[buffer({len(gen.pointers) + at})]]")
    params.append("uint3 blockIdx [[threadgroup_position_in_grid]]")
    params.append("uint3 threadIdx [[thread_position_in_threadgroup]]")
    between = ",\n    "
    return [
        f"kernel void {gen.name}(", *f"    {between.join(params)}) {{".split("\n"),
        *(f"  const {gen.type_of(a.dtype)} {a.name} = {a.tag};" for a in gen.axes),
        *(f"  threadgroup {line}" for line in shared), *body, "}",
    ]


_SAME = """exp exp2 exp10 log log2 log10 sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh
acosh atanh atan2 copysign fmod pow floor ceil trunc fabs fma nextafter ldexp isnan isinf isfinite
popcount clz""".split()

METAL = Dialect(
    name="metal", title="Metal Shading Language", extension="metal", types=TYPES,
    functions={
        **{name: name for name in _SAME}, "round": "rint", "nearbyint": "rint",
        "popcount64": "popcount", "clz64": "clz", "sigmoid": "sigmoid", "maximum": "maximum",
        "minimum": "minimum", "floordiv": "floordiv", "floormod": "floormod", "erf": "erf_approx",
        "int_pow": "int_pow", "log1p": "log(1 + {0})",
        "hypot": "sqrt({0} * {0} + {1} * {1})", "float_bits": "as_type<int>({0})",
        "bits_float": "as_type<float>({0})", "float_ubits": "as_type<uint>({0})",
        "ubits_float": "as_type<float>({0})",
    },
    helpers={
        "sigmoid": "inline {T} sigmoid({T} x) {{ return {T}(1) / ({T}(1) + exp(-x)); }}",
        "maximum": "inline {T} maximum({T} a, {T} b) {{ return a >= b || a != a ? a : b; }}",
        "minimum": "inline {T} minimum({T} a, {T} b) {{ return a <= b || a != a ? a : b; }}",
        "floordiv": "inline {T} floordiv({T} a, {T} b) {{ {T} q = a / b; return q - "
                    "((a % b != 0) && ((a < 0) != (b < 0))); }}",
        "floormod": "inline {T} floormod({T} a, {T} b) {{ {T} r = a % b; return r + "
                    "((r != 0) && ((r < 0) != (b < 0)) ? b : {T}(0)); }}",
        "int_pow": "inline {T} int_pow({T} a, {T} b) {{ {T} r = 1; for (; b > 0; --b) r *= a; "
                   "return r; }}",
        # W. J. Cody's bound of 1.5e-7: Abramowitz and Stegun, formula 7.1.26
        "erf": "inline float erf_approx(float x) {{ float t = 1.0f / (1.0f + 0.3275911f * fabs(x));"
               " float p = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * "
               "(-1.453152027f + t * 1.061405429f)))); float y = 1.0f - p * exp(-x * x); "
               "return x < 0 ? -y : y; }}",
    },
    suffixes={"float32": "f", "uint32": "u", "int64": "L", "uint64": "UL"},
    constants=("INFINITY", "NAN"), frame=_frame,
    barrier="threadgroup_barrier({fence});",
    reserved=C_WORDS | {"blockIdx", "threadIdx", "metal"},
    vector_types=("float32", "int32", "uint32"), vector_lanes=(2, 4),
    vector_load="*({space} {const}{type}{lanes}*)({buffer} + ({index}))",
    vector_store="*({space} {type}{lanes}*)({buffer} + ({index})) = {value};",
    preamble=lambda used: ["#include <metal_stdlib>", "using namespace metal;"],
    shuffles={way: f"simd_shuffle{way}({{value}}, (ushort)({{lane}}))"
              for way in ("", "_up", "_down")},
)

__all__ = ["METAL"]
