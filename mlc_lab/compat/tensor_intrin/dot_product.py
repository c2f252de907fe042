"""A row of a few small integers times several such rows: description and implementation."""

from __future__ import annotations

from ...script import tir as T
from ...tir.function import PrimFunc, TensorIntrin


def dot_product(rows: int, length: int, a_dtype: str, b_dtype: str, c_dtype: str,
                scope: str = "global") -> tuple[PrimFunc, PrimFunc]:
    """C[i] += A[0:length] . B[i, 0:length], for `rows` rows whose data lies in `scope`."""

    @T.prim_func
    def description(
        A: T.Buffer((length,), a_dtype, offset_factor=1, scope=scope),
        B: T.Buffer((rows, length), b_dtype, offset_factor=1, scope=scope),
        C: T.Buffer((rows,), c_dtype, offset_factor=1, scope=scope),
    ) -> None:
        with T.block("root"):
            T.reads(C[0:rows], A[0:length], B[0:rows, 0:length])
            T.writes(C[0:rows])
            for i, k in T.grid(rows, length):
                with T.block("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + T.cast(A[vk], c_dtype) * T.cast(B[vi, vk], c_dtype)

    @T.prim_func
    def implementation(
        A: T.Buffer((length,), a_dtype, offset_factor=1, scope=scope),
        B: T.Buffer((rows, length), b_dtype, offset_factor=1, scope=scope),
        C: T.Buffer((rows,), c_dtype, offset_factor=1, scope=scope),
    ) -> None:
        with T.block("root"):
            T.reads(C[0:rows], A[0:length], B[0:rows, 0:length])
            T.writes(C[0:rows])
            for k in T.unroll(length):
                for i in T.vectorized(rows):
                    C[i] = C[i] + T.cast(A[k], c_dtype) * T.cast(B[i, k], c_dtype)

    return description, implementation


def dot_product_of_one(a_dtype: str, b_dtype: str, c_dtype: str) -> tuple[PrimFunc, PrimFunc]:
    """C[0] += A[0:4] . B[0:4]: operands in shared memory, the sum in a thread's own."""

    @T.prim_func
    def description(
        A: T.Buffer((4,), a_dtype, offset_factor=1, align=4, scope="shared"),
        B: T.Buffer((4,), b_dtype, offset_factor=1, align=4, scope="shared"),
        C: T.Buffer((1,), c_dtype, offset_factor=1, align=4, scope="local"),
    ) -> None:
        with T.block("root"):
            T.reads(C[0], A[0:4], B[0:4])
            T.writes(C[0])
            for i in range(4):
                with T.block("update"):
                    vi = T.axis.remap("R", [i])
                    C[0] = C[0] + T.cast(A[vi], c_dtype) * T.cast(B[vi], c_dtype)

    @T.prim_func
    def implementation(
        A: T.Buffer((4,), a_dtype, offset_factor=1, align=4, scope="shared"),
        B: T.Buffer((4,), b_dtype, offset_factor=1, align=4, scope="shared"),
        C: T.Buffer((1,), c_dtype, offset_factor=1, align=4, scope="local"),
    ) -> None:
        with T.block("root"):
            T.reads(C[0], A[0:4], B[0:4])
            T.writes(C[0])
            for k in T.unroll(4):
                C[0] = C[0] + T.cast(A[k], c_dtype) * T.cast(B[k], c_dtype)

    return description, implementation


DP4A_S8S8S32_INTRIN = "dp4a_s8s8s32"
DP4A_U8S8S32_INTRIN = "dp4a_u8s8s32"
DP4A_S8U8S32_INTRIN = "dp4a_s8u8s32"
DP4A_U8U8U32_INTRIN = "dp4a_u8u8u32"

TensorIntrin.register(DP4A_S8S8S32_INTRIN, *dot_product_of_one("int8", "int8", "int32"))
TensorIntrin.register(DP4A_U8S8S32_INTRIN, *dot_product_of_one("uint8", "int8", "int32"))
TensorIntrin.register(DP4A_S8U8S32_INTRIN, *dot_product_of_one("int8", "uint8", "int32"))
TensorIntrin.register(DP4A_U8U8U32_INTRIN, *dot_product_of_one("uint8", "uint8", "uint32"))
