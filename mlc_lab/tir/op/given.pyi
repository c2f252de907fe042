# Written by `python dev.py types`, as tests/checker/make_stubs.py says.
from mlc_lab.tir.expr import ExprLike as _ExprLike
from mlc_lab.tir.expr import PrimExpr as _PrimExpr
from ..expr import ExprLike
from ..buffer import Buffer
from collections.abc import Mapping, Sequence
from ..expr import Call, PrimExpr
from typing import Any
def call_given(op: str, values: Sequence[Any], dtype: str | None=None, annotations: Mapping[str, Any] | None=None) -> Call:
    """A call of an intrinsic of "given" type. TypeError where an argument is missing that has it."""
def address_of(buffer_load: PrimExpr | Buffer, span: object=None) -> PrimExpr:
    """The pointer to an element, or to the first one of a buffer."""
def type_annotation(dtype: str) -> PrimExpr:
    """A dtype as an argument of an intrinsic."""
def tvm_access_ptr(ptype: str | PrimExpr, data: PrimExpr, offset: ExprLike, extent: ExprLike, rw_mask: ExprLike) -> PrimExpr:
    """The pointer to a part of a buffer, of elements of type `ptype`."""
def dp4a(vec1: PrimExpr, vec2: PrimExpr, acc: ExprLike=0) -> PrimExpr:
    """The dot product of two vectors of four int8, added to `acc`."""
def TVMBackendAllocWorkspace(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """memory from the runtime's pool"""
def TVMBackendFreeWorkspace(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """give memory of the pool back"""
def atomic_add(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """atomic addition to an element"""
def break_loop(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """leave the loop"""
def continue_loop(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """next round of the loop"""
def create_barriers(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """make barriers in shared memory"""
def end_profile_intrinsic(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """profiling mark"""
def lookup_param(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """a parameter of the model by its name"""
def mma_fill(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """fill an mma fragment"""
def mma_store(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """store an mma fragment"""
def prefetch(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """hint to load a cache line"""
def ptx_arrive_barrier(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """arrive at a barrier"""
def ptx_arrive_barrier_expect_tx(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """arrive, and expect bytes"""
def ptx_commit_group(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """close a group of asynchronous copies"""
def ptx_cp_async(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """PTX asynchronous copy"""
def ptx_cp_async_barrier(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """arrive at a barrier after copies"""
def ptx_cp_async_bulk(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """PTX asynchronous copy of a block"""
def ptx_init_barrier_thread_count(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """say how many threads arrive"""
def ptx_ldmatrix(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """PTX ldmatrix instruction"""
def ptx_mma(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """PTX mma instruction"""
def ptx_mma_sp(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """PTX mma instruction, one operand sparse"""
def ptx_wait_barrier(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """wait at a barrier"""
def ptx_wait_group(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """wait for asynchronous copies"""
def start_profile_intrinsic(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """profiling mark"""
def tvm_bmma_sync(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """multiply tensor core fragments of bits"""
def tvm_fill_fragment(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """fill a tensor core fragment"""
def tvm_load_matrix_sync(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """load a tensor core fragment"""
def tvm_mma_sync(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """multiply tensor core fragments"""
def tvm_stack_alloca(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """space on the stack"""
def tvm_stack_make_array(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """a tensor header on the stack"""
def tvm_stack_make_shape(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """a shape on the stack"""
def tvm_storage_sync(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """barrier for the threads of a block"""
def tvm_store_matrix_sync(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """store a tensor core fragment"""
def tvm_struct_get(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """a field of a tensor header"""
def tvm_struct_set(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """store to a field of a tensor header"""
def tvm_thread_allreduce(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """reduction over GPU threads"""
def tvm_throw_last_error(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """raise the error that a call has left"""
def tvm_tuple(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """several values as one"""
def tvm_warp_shuffle(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """read a value of another lane"""
def tvm_warp_shuffle_down(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """read a value of a higher lane"""
def tvm_warp_shuffle_up(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """read a value of a lower lane"""
def undef(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """a value nobody reads"""
def vectorcombine(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """two vectors as one"""
def vectorhigh(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """upper half of a vector"""
def vectorlow(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """lower half of a vector"""
def vscale(*args: _ExprLike | str, dtype: str | None = None, span: object = None) -> _PrimExpr:
    """how many times 128 bits a scalable vector register has"""
__all__ = ['TVMBackendAllocWorkspace', 'TVMBackendFreeWorkspace', 'address_of', 'atomic_add', 'break_loop', 'continue_loop', 'create_barriers', 'dp4a', 'end_profile_intrinsic', 'lookup_param', 'mma_fill', 'mma_store', 'prefetch', 'ptx_arrive_barrier', 'ptx_arrive_barrier_expect_tx', 'ptx_commit_group', 'ptx_cp_async', 'ptx_cp_async_barrier', 'ptx_cp_async_bulk', 'ptx_init_barrier_thread_count', 'ptx_ldmatrix', 'ptx_mma', 'ptx_mma_sp', 'ptx_wait_barrier', 'ptx_wait_group', 'start_profile_intrinsic', 'tvm_access_ptr', 'tvm_bmma_sync', 'tvm_fill_fragment', 'tvm_load_matrix_sync', 'tvm_mma_sync', 'tvm_stack_alloca', 'tvm_stack_make_array', 'tvm_stack_make_shape', 'tvm_storage_sync', 'tvm_store_matrix_sync', 'tvm_struct_get', 'tvm_struct_set', 'tvm_thread_allreduce', 'tvm_throw_last_error', 'tvm_tuple', 'tvm_warp_shuffle', 'tvm_warp_shuffle_down', 'tvm_warp_shuffle_up', 'type_annotation', 'undef', 'vectorcombine', 'vectorhigh', 'vectorlow', 'vscale']
