"""The table of intrinsics: what each is called, how many arguments it takes and what it does.

Each row makes an Op `tir.<name>`; `math.py` makes the functions that build calls of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..expr import OPS, Call, Op

#: what a call does to the world: nothing, reads memory, writes memory, or anything at all
PURE, READS, UPDATES, OPAQUE = "pure", "reads", "updates", "opaque"


class Intrinsic(NamedTuple):
    """One row: `arity` None means any number of arguments.

    `result` is the type of a call: "same" as the first argument, "bool" or "int32" with its lanes,
    or "given" by whoever builds the call.
    """

    name: str
    arity: int | None
    effect: str
    result: str
    doc: str


#: every intrinsic
INTRINSICS: tuple[Intrinsic, ...] = (
    Intrinsic("exp", 1, PURE, "same", "e to the power x"),
    Intrinsic("exp2", 1, PURE, "same", "2 to the power x"),
    Intrinsic("exp10", 1, PURE, "same", "10 to the power x"),
    Intrinsic("log", 1, PURE, "same", "natural logarithm"),
    Intrinsic("log2", 1, PURE, "same", "logarithm to base 2"),
    Intrinsic("log10", 1, PURE, "same", "logarithm to base 10"),
    Intrinsic("log1p", 1, PURE, "same", "log(1 + x)"),
    Intrinsic("sqrt", 1, PURE, "same", "square root"),
    Intrinsic("rsqrt", 1, PURE, "same", "1 / sqrt(x)"),
    Intrinsic("sin", 1, PURE, "same", "sine"),
    Intrinsic("cos", 1, PURE, "same", "cosine"),
    Intrinsic("tan", 1, PURE, "same", "tangent"),
    Intrinsic("asin", 1, PURE, "same", "arc sine"),
    Intrinsic("acos", 1, PURE, "same", "arc cosine"),
    Intrinsic("atan", 1, PURE, "same", "arc tangent"),
    Intrinsic("sinh", 1, PURE, "same", "hyperbolic sine"),
    Intrinsic("cosh", 1, PURE, "same", "hyperbolic cosine"),
    Intrinsic("tanh", 1, PURE, "same", "hyperbolic tangent"),
    Intrinsic("asinh", 1, PURE, "same", "inverse hyperbolic sine"),
    Intrinsic("acosh", 1, PURE, "same", "inverse hyperbolic cosine"),
    Intrinsic("atanh", 1, PURE, "same", "inverse hyperbolic tangent"),
    Intrinsic("erf", 1, PURE, "same", "Gauss error function"),
    Intrinsic("sigmoid", 1, PURE, "same", "1 / (1 + exp(-x))"),
    Intrinsic("pow", 2, PURE, "same", "x to the power y"),
    Intrinsic("atan2", 2, PURE, "same", "angle of the point (y, x)"),
    Intrinsic("hypot", 2, PURE, "same", "sqrt(x*x + y*y)"),
    Intrinsic("copysign", 2, PURE, "same", "magnitude of x with the sign of y"),
    Intrinsic("nextafter", 2, PURE, "same", "the next float after x towards y"),
    Intrinsic("ldexp", 2, PURE, "same", "x * 2**y"),
    Intrinsic("fmod", 2, PURE, "same", "remainder with the sign of x"),
    Intrinsic("fma", 3, PURE, "same", "x * y + z rounded once"),
    Intrinsic("floor", 1, PURE, "same", "rounded down"),
    Intrinsic("ceil", 1, PURE, "same", "rounded up"),
    Intrinsic("trunc", 1, PURE, "same", "rounded toward zero"),
    Intrinsic("round", 1, PURE, "same", "rounded to nearest, ties to even"),
    Intrinsic("nearbyint", 1, PURE, "same", "rounded to nearest, ties to even"),
    Intrinsic("fabs", 1, PURE, "same", "absolute value"),
    Intrinsic("isnan", 1, PURE, "bool", "whether x is not a number"),
    Intrinsic("isinf", 1, PURE, "bool", "whether x is infinite"),
    Intrinsic("isfinite", 1, PURE, "bool", "whether x is finite"),
    Intrinsic("isnullptr", 1, PURE, "bool", "whether a pointer is null"),
    Intrinsic("popcount", 1, PURE, "same", "number of bits set"),
    Intrinsic("clz", 1, PURE, "int32", "number of leading zero bits"),
    Intrinsic("bitwise_and", 2, PURE, "same", "x & y"),
    Intrinsic("bitwise_or", 2, PURE, "same", "x | y"),
    Intrinsic("bitwise_xor", 2, PURE, "same", "x ^ y"),
    Intrinsic("bitwise_not", 1, PURE, "same", "~x"),
    Intrinsic("shift_left", 2, PURE, "same", "x << y"),
    Intrinsic("shift_right", 2, PURE, "same", "x >> y, arithmetic on signed types"),
    Intrinsic("likely", 1, PURE, "same", "a hint that the condition usually holds"),
    Intrinsic("if_then_else", 3, PURE, "given", "lazy choice"),
    Intrinsic("reinterpret", 1, PURE, "given", "bits as another type"),
    Intrinsic("large_uint_imm", 2, PURE, "given", "a 64-bit unsigned constant in two halves"),
    Intrinsic("q_multiply_shift", 4, PURE, "int32", "fixed point multiply of quantised kernels"),
    Intrinsic("q_multiply_shift_per_axis", 7, PURE, "int32",
              "fixed point multiply with a factor and shifts for each channel"),
    Intrinsic("address_of", 1, READS, "given", "pointer to an element"),
    Intrinsic("type_annotation", 0, PURE, "given", "a dtype as an argument"),
    Intrinsic("tvm_access_ptr", 5, READS, "given", "pointer to a part of a buffer"),
    Intrinsic("call_extern", None, OPAQUE, "given", "call of a C function by symbol"),
    Intrinsic("call_pure_extern", None, PURE, "given", "call of a C function without effects"),
    Intrinsic("call_llvm_intrin", None, OPAQUE, "given", "call of an LLVM intrinsic"),
    Intrinsic("call_llvm_pure_intrin", None, PURE, "given", "call of a pure LLVM intrinsic"),
    Intrinsic("tvm_call_packed", None, OPAQUE, "given", "call of a registered function"),
    Intrinsic("tvm_call_packed_lowered", None, OPAQUE, "given", "packed call, arguments stacked"),
    Intrinsic("tvm_call_cpacked", None, OPAQUE, "given", "call of a packed C function by symbol"),
    Intrinsic("tvm_stack_make_array", None, OPAQUE, "given", "a tensor header on the stack"),
    Intrinsic("tvm_stack_make_shape", None, OPAQUE, "given", "a shape on the stack"),
    Intrinsic("tvm_stack_alloca", None, OPAQUE, "given", "space on the stack"),
    Intrinsic("tvm_struct_get", None, READS, "given", "a field of a tensor header"),
    Intrinsic("tvm_struct_set", None, UPDATES, "int32", "store to a field of a tensor header"),
    Intrinsic("tvm_tuple", None, PURE, "given", "several values as one"),
    Intrinsic("tvm_thread_allreduce", None, OPAQUE, "given", "reduction over GPU threads"),
    Intrinsic("tvm_storage_sync", None, OPAQUE, "int32", "barrier for the threads of a block"),
    Intrinsic("tvm_warp_shuffle", 5, OPAQUE, "given", "read a value of another lane"),
    Intrinsic("tvm_warp_shuffle_up", 5, OPAQUE, "given", "read a value of a lower lane"),
    Intrinsic("tvm_warp_shuffle_down", 5, OPAQUE, "given", "read a value of a higher lane"),
    Intrinsic("tvm_warp_activemask", 0, OPAQUE, "int32", "mask of the active lanes"),
    Intrinsic("tvm_fill_fragment", 6, OPAQUE, "given", "fill a tensor core fragment"),
    Intrinsic("tvm_load_matrix_sync", 8, OPAQUE, "given", "load a tensor core fragment"),
    Intrinsic("tvm_mma_sync", 8, OPAQUE, "given", "multiply tensor core fragments"),
    Intrinsic("tvm_store_matrix_sync", 8, OPAQUE, "given", "store a tensor core fragment"),
    Intrinsic("tvm_bmma_sync", 8, OPAQUE, "given", "multiply tensor core fragments of bits"),
    Intrinsic("ptx_mma_sp", None, OPAQUE, "given", "PTX mma instruction, one operand sparse"),
    Intrinsic("ptx_mma", None, OPAQUE, "given", "PTX mma instruction"),
    Intrinsic("ptx_ldmatrix", None, OPAQUE, "given", "PTX ldmatrix instruction"),
    Intrinsic("ptx_cp_async", None, OPAQUE, "given", "PTX asynchronous copy"),
    Intrinsic("ptx_cp_async_bulk", None, OPAQUE, "given", "PTX asynchronous copy of a block"),
    Intrinsic("ptx_cp_async_barrier", 1, OPAQUE, "given", "arrive at a barrier after copies"),
    Intrinsic("ptx_init_barrier_thread_count", 2, OPAQUE, "given", "say how many threads arrive"),
    Intrinsic("ptx_arrive_barrier", 1, OPAQUE, "given", "arrive at a barrier"),
    Intrinsic("ptx_arrive_barrier_expect_tx", 2, OPAQUE, "given", "arrive, and expect bytes"),
    Intrinsic("ptx_wait_barrier", 1, OPAQUE, "given", "wait at a barrier"),
    Intrinsic("create_barriers", 1, OPAQUE, "given", "make barriers in shared memory"),
    Intrinsic("ptx_commit_group", 0, OPAQUE, "given", "close a group of asynchronous copies"),
    Intrinsic("ptx_wait_group", 1, OPAQUE, "given", "wait for asynchronous copies"),
    Intrinsic("mma_store", None, OPAQUE, "given", "store an mma fragment"),
    Intrinsic("mma_fill", None, OPAQUE, "given", "fill an mma fragment"),
    Intrinsic("vectorlow", 1, PURE, "given", "lower half of a vector"),
    Intrinsic("vectorhigh", 1, PURE, "given", "upper half of a vector"),
    Intrinsic("vectorcombine", 2, PURE, "given", "two vectors as one"),
    Intrinsic("dp4a", 3, PURE, "given", "dot product of four int8, added to an int32"),
    Intrinsic("lookup_param", 1, OPAQUE, "given", "a parameter of the model by its name"),
    Intrinsic("tvm_throw_last_error", 0, OPAQUE, "given", "raise the error that a call has left"),
    Intrinsic("TVMBackendAllocWorkspace", 5, OPAQUE, "given", "memory from the runtime's pool"),
    Intrinsic("TVMBackendFreeWorkspace", 3, OPAQUE, "given", "give memory of the pool back"),
    Intrinsic("atomic_add", None, OPAQUE, "given", "atomic addition to an element"),
    Intrinsic("prefetch", None, OPAQUE, "given", "hint to load a cache line"),
    Intrinsic("assume", 1, OPAQUE, "bool", "a fact the compiler may rely on"),
    Intrinsic("vscale", 0, PURE, "given", "how many times 128 bits a scalable vector register has"),
    Intrinsic("undef", 0, PURE, "given", "a value nobody reads"),
    Intrinsic("ret", 1, OPAQUE, "given", "return from the function"),
    Intrinsic("break_loop", 0, OPAQUE, "given", "leave the loop"),
    Intrinsic("continue_loop", 0, OPAQUE, "given", "next round of the loop"),
    Intrinsic("start_profile_intrinsic", 1, OPAQUE, "given", "profiling mark"),
    Intrinsic("end_profile_intrinsic", 1, OPAQUE, "given", "profiling mark"),
)

#: the row of each intrinsic by Op name
INTRINSIC_OF: dict[str, Intrinsic] = {f"tir.{row.name}": row for row in INTRINSICS}
OPS.update({name: Op(name) for name in INTRINSIC_OF})


def effect_of(call: Call) -> str:
    """How a call touches the world: pure, reads, updates or opaque (also for GlobalVars)."""
    row = INTRINSIC_OF.get(call.op.name) if isinstance(call.op, Op) else None
    return row.effect if row is not None else OPAQUE

#: intrinsics whose result type is written, as first (or last) argument
DTYPE_FIRST = frozenset(f"tir.{n}" for n in (
    "call_extern", "call_pure_extern", "call_llvm_intrin", "call_llvm_pure_intrin", "reinterpret",
    "vectorlow", "vectorhigh", "vectorcombine", "ptx_mma", "ptx_mma_sp", "ptx_ldmatrix",
    "ptx_cp_async", "ptx_cp_async_bulk", "mma_store", "mma_fill", "type_annotation", "atomic_add",
    "large_uint_imm", "tvm_call_cpacked"))
DTYPE_LAST = frozenset(("tir.tvm_struct_get",))
#: result types of the other intrinsics of "given" type: a dtype, or the argument that has it
GIVEN_DTYPES: dict[str, Any] = {f"tir.{n}": d for n, d in {
    "if_then_else": 1, "address_of": "handle", "tvm_access_ptr": "handle", "tvm_tuple": "handle",
    "tvm_call_packed": "int32", "tvm_call_packed_lowered": "int32",
    "tvm_stack_make_array": "handle", "tvm_stack_make_shape": "handle",
    "tvm_stack_alloca": "handle", "tvm_thread_allreduce": "handle", "tvm_warp_shuffle": 1,
    "tvm_warp_shuffle_up": 1, "tvm_warp_shuffle_down": 1, "tvm_fill_fragment": "handle",
    "tvm_load_matrix_sync": "handle", "tvm_mma_sync": "handle", "tvm_store_matrix_sync": "handle",
    "tvm_bmma_sync": "handle", "ptx_commit_group": "void", "ptx_wait_group": "void",
    "ptx_cp_async_barrier": "void", "ptx_init_barrier_thread_count": "void",
    "ptx_arrive_barrier": "void", "ptx_arrive_barrier_expect_tx": "void",
    "ptx_wait_barrier": "void", "create_barriers": "void", "dp4a": "int32",
    "lookup_param": "handle", "tvm_throw_last_error": "handle",
    "TVMBackendAllocWorkspace": "handle", "TVMBackendFreeWorkspace": "int32",
    "undef": "int32", "vscale": "int32", "ret": 0,
    "break_loop": "void", "continue_loop": "void", "start_profile_intrinsic": "handle",
    "end_profile_intrinsic": "handle", "prefetch": "void"}.items()}

__all__ = [
    "INTRINSICS", "INTRINSIC_OF", "OPAQUE", "PURE", "READS", "UPDATES", "Intrinsic", "effect_of",
]
