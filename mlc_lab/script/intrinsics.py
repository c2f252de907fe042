"""How calls of intrinsics are written: where the result type stands, or which rule gives it."""

from __future__ import annotations

from typing import Any

#: intrinsics whose result type is written, as first (or last) argument
DTYPE_FIRST = frozenset(f"tir.{n}" for n in (
    "call_extern", "call_pure_extern", "call_llvm_intrin", "call_llvm_pure_intrin", "reinterpret",
    "vectorlow", "vectorhigh", "vectorcombine", "ptx_mma", "ptx_ldmatrix", "ptx_cp_async",
    "mma_store", "mma_fill", "type_annotation", "atomic_add", "large_uint_imm",
    "tvm_call_cpacked"))
DTYPE_LAST = frozenset(("tir.tvm_struct_get",))
#: names in scripts that differ from the Op's
CALL_NAMES = {"tir.tvm_call_packed": "call_packed", "tir.tvm_call_cpacked": "call_cpacked",
              "tir.tvm_call_packed_lowered": "call_packed_lowered"}
#: result types of the other intrinsics of "given" type: a dtype, or the argument that has it
GIVEN_DTYPES: dict[str, Any] = {f"tir.{n}": d for n, d in {
    "if_then_else": 1, "address_of": "handle", "tvm_access_ptr": "handle", "tvm_tuple": "handle",
    "tvm_call_packed": "int32", "tvm_call_packed_lowered": "int32",
    "tvm_stack_make_array": "handle", "tvm_stack_make_shape": "handle",
    "tvm_stack_alloca": "handle", "tvm_thread_allreduce": "handle", "tvm_warp_shuffle": 1,
    "tvm_warp_shuffle_up": 1, "tvm_warp_shuffle_down": 1, "tvm_fill_fragment": "handle",
    "tvm_load_matrix_sync": "handle", "tvm_mma_sync": "handle", "tvm_store_matrix_sync": "handle",
    "ptx_commit_group": "void", "ptx_wait_group": "void", "undef": "int32", "ret": 0,
    "break_loop": "void", "continue_loop": "void", "start_profile_intrinsic": "handle",
    "end_profile_intrinsic": "handle", "prefetch": "void"}.items()}
