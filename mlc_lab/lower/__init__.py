"""Lowering: from TensorIR's blocks to flat loops over one-dimensional memory, pass by pass.

Read `pipeline.py` first: the passes in order. Each pass is a file that shows what it does.
"""

from .annotate_entry_func import AnnotateEntryFunc
from .bind_target import BindTarget
from .common import LowerError
from .common_subexpr_elim import CommonSubexprElimTIR
from .compact_buffer_allocation import CompactBufferAllocation
from .convert_blocks_to_opaque import ConvertBlocksToOpaque
from .convert_for_loops_to_serial import ConvertForLoopsToSerial
from .convert_ssa import ConvertSSA
from .filter import Filter
from .flatten_buffer import FlattenBuffer
from .force_narrow_index_to_int32 import ForceNarrowIndexToInt32
from .hoist_expression import HoistExpression, HoistedConditionals, HoistedLetBindings
from .hoist_if_then_else import HoistIfThenElse
from .inject_double_buffer import InjectDoubleBuffer
from .inject_software_pipeline import InjectSoftwarePipeline
from .inject_virtual_thread import InjectVirtualThread
from .lift_attr_scope import LiftAttrScope
from .limit_unroll import LimitUnroll
from .loop_partition import LoopPartition
from .lower_cross_thread_reduction import LowerCrossThreadReduction
from .lower_init_block import LowerInitBlock
from .lower_intrin import LowerIntrin
from .lower_match_buffer import LowerMatchBuffer
from .lower_opaque_block import LowerOpaqueBlock
from .lower_thread_allreduce import LowerThreadAllreduce
from .lower_warp_memory import LowerWarpMemory
from .merge_shared_memory import MergeSharedMemory
from .narrow_datatype import NarrowDataType
from .pipeline import default_passes, lower, stage_names, stages
from .place_allocations import PlaceAllocations
from .plan_and_update_buffer_allocation_location import PlanAndUpdateBufferAllocationLocation
from .reduce_branching_through_overcompute import ReduceBranchingThroughOvercompute
from .remove_assume import RemoveAssume
from .remove_no_op import RemoveNoOp
from .remove_store_undef import RemoveStoreUndef
from .renormalize_split_pattern import RenormalizeSplitPattern
from .rewrite_unsafe_select import RewriteUnsafeSelect
from .simplify import Simplify
from .skip_assert import SkipAssert
from .split_host_device import SplitHostDevice
from .split_vector import SplitVector
from .storage_rewrite import StorageRewrite
from .sum_lanes import SumLanes
from .thread_sync import ThreadSync
from .unify_thread_binding import UnifyThreadBinding
from .unroll_loop import UnrollLoop
from .vectorize_loop import VectorizeLoop
from .verify_kernels import VerifyKernels

__all__ = [
    "AnnotateEntryFunc", "BindTarget", "CommonSubexprElimTIR", "CompactBufferAllocation",
    "ConvertBlocksToOpaque", "ConvertForLoopsToSerial", "ConvertSSA", "Filter", "FlattenBuffer",
    "ForceNarrowIndexToInt32", "HoistExpression", "HoistIfThenElse", "HoistedConditionals",
    "HoistedLetBindings", "InjectDoubleBuffer", "InjectSoftwarePipeline", "InjectVirtualThread",
    "LiftAttrScope", "LimitUnroll", "LoopPartition", "LowerCrossThreadReduction", "LowerError",
    "LowerInitBlock",
    "LowerIntrin", "LowerMatchBuffer", "LowerOpaqueBlock", "LowerThreadAllreduce",
    "LowerWarpMemory", "MergeSharedMemory", "NarrowDataType", "PlaceAllocations",
    "PlanAndUpdateBufferAllocationLocation", "ReduceBranchingThroughOvercompute", "RemoveAssume",
    "RemoveNoOp", "RemoveStoreUndef", "RenormalizeSplitPattern", "RewriteUnsafeSelect", "Simplify",
    "SkipAssert", "SplitHostDevice", "SplitVector", "StorageRewrite",
    "SumLanes", "ThreadSync", "UnifyThreadBinding", "UnrollLoop", "VectorizeLoop", "VerifyKernels",
    "default_passes", "lower", "stage_names", "stages",
]
