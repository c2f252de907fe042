"""OpenCL C, of version 1.2 and later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dialect import C_WORDS, Dialect

if TYPE_CHECKING:
    from .generator import KernelGen

TYPES = {
    "bool": "bool", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort",
    "int32": "int", "uint32": "uint", "int64": "long", "uint64": "ulong", "float16": "half",
    "float32": "float", "float64": "double",
}
_AXES = {"blockIdx": "get_group_id", "threadIdx": "get_local_id"}


def _frame(gen: KernelGen, shared: list[str], body: list[str]) -> list[str]:
    params = []
    for p in gen.pointers:
        const = "const " if p.read_only else ""
        restrict = " restrict" if gen.noalias else ""
        params.append(f"__global {const}{p.type}*{restrict} {p.name}")
    params += [f"{s.type} {s.name}" for s in gen.scalars]
    params += [f"__global uint* {gen.note}"] if gen.note else []
    sizes = ""
    if gen.block_size:
        sizes = "__attribute__((reqd_work_group_size({}, {}, {})))\n".format(*gen.block_dims)
    axes = []
    for a in gen.axes:
        word, _, letter = a.tag.partition(".")
        axes.append(f"  const {gen.type_of(a.dtype)} {a.name} = "
                    f"{_AXES[word]}({'xyz'.index(letter)});")
    return [
        *f"__kernel {sizes}void {gen.name}(".split("\n"), f"    {', '.join(params)}) {{",
        *axes, *(f"  __local {line}" for line in shared), *body, "}",
    ]


def _preamble(used: set[str]) -> list[str]:
    out = []
    if "float16" in used:
        out.append("#pragma OPENCL EXTENSION cl_khr_fp16 : enable")
    if "float64" in used:
        out.append("#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
    return out


_SAME = """exp exp2 exp10 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh
asinh acosh atanh erf atan2 hypot copysign fmod pow floor ceil trunc fabs fma nextafter ldexp isnan
isinf isfinite popcount clz""".split()

OPENCL = Dialect(
    name="opencl", title="OpenCL C", extension="cl", types=TYPES, memory_types={"bool": "uchar"},
    functions={
        **{name: name for name in _SAME}, "round": "rint", "nearbyint": "rint",
        "popcount64": "popcount", "clz64": "clz", "sigmoid": "sigmoid_{T}",
        "maximum": "maximum_{T}", "minimum": "minimum_{T}", "floordiv": "floordiv_{T}",
        "floormod": "floormod_{T}", "int_pow": "int_pow_{T}", "float_bits": "as_int({0})",
        "bits_float": "as_float({0})", "float_ubits": "as_uint({0})",
        "ubits_float": "as_float({0})",
    },
    helpers={
        "sigmoid": "inline {T} sigmoid_{T}({T} x) {{ return ({T})1 / (({T})1 + exp(-x)); }}",
        "maximum": "inline {T} maximum_{T}({T} a, {T} b) {{ return a >= b || a != a ? a : b; }}",
        "minimum": "inline {T} minimum_{T}({T} a, {T} b) {{ return a <= b || a != a ? a : b; }}",
        "floordiv": "inline {T} floordiv_{T}({T} a, {T} b) {{ {T} q = a / b; return q - "
                    "((a % b != 0) && ((a < 0) != (b < 0))); }}",
        "floormod": "inline {T} floormod_{T}({T} a, {T} b) {{ {T} r = a % b; return r + "
                    "((r != 0) && ((r < 0) != (b < 0)) ? b : ({T})0); }}",
        "within": "inline {T} within_{T}({T} at, {T} size, __global uint* note, uint site) {{ "
                  "if (at >= 0 && at < size) return at; *note = site; return 0; }}",
        "int_pow": "inline {T} int_pow_{T}({T} a, {T} b) {{ {T} r = 1; for (; b > 0; --b) r *= a; "
                   "return r; }}",
    },
    suffixes={"float32": "f", "uint32": "u", "int64": "L", "uint64": "UL"},
    constants=("INFINITY", "NAN"), frame=_frame, barrier="barrier({fence});",
    reserved=C_WORDS | {"uchar", "as_int", "as_float", "kernel", "global"},
    vector_types=("float32", "int32", "uint32", "float64", "int8", "uint8"),
    vector_lanes=(2, 4, 8, 16), vector_load="vload{lanes}(0, {buffer} + ({index}))",
    vector_store="vstore{lanes}({value}, 0, {buffer} + ({index}));", aligned_vectors=False,
    preamble=_preamble,
    shuffles={way: f"sub_group_shuffle{way}({{value}}, (uint)({{lane}}))"
              for way in ("", "_up", "_down")},
    shuffle_lines=tuple(f"#pragma OPENCL EXTENSION {name} : enable" for name in (
        "cl_khr_subgroups", "cl_khr_subgroup_shuffle", "cl_khr_subgroup_shuffle_relative")),
)

__all__ = ["OPENCL"]
