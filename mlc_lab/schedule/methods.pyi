# Written by `python dev.py types`, as tests/checker/make_stubs.py says.
from mlc_lab.schedule.primitive.add_unit_loop import add_unit_loop as _add_unit_loop
from mlc_lab.schedule.primitive.annotate import annotate as _annotate
from mlc_lab.schedule.primitive.annotate_buffer_access import annotate_buffer_access as _annotate_buffer_access
from mlc_lab.schedule.primitive.bind import bind as _bind
from mlc_lab.schedule.primitive.blockize import blockize as _blockize
from mlc_lab.schedule.primitive.cache_index import cache_index as _cache_index
from mlc_lab.schedule.primitive.cache_inplace import cache_inplace as _cache_inplace
from mlc_lab.schedule.primitive.cache_read import cache_read as _cache_read
from mlc_lab.schedule.primitive.cache_write import cache_write as _cache_write
from mlc_lab.schedule.primitive.compute_at import compute_at as _compute_at
from mlc_lab.schedule.primitive.compute_inline import compute_inline as _compute_inline
from mlc_lab.schedule.primitive.decompose_padding import decompose_padding as _decompose_padding
from mlc_lab.schedule.primitive.decompose_reduction import decompose_reduction as _decompose_reduction
from mlc_lab.schedule.primitive.enter_postproc import enter_postproc as _enter_postproc
from mlc_lab.schedule.primitive.fuse import fuse as _fuse
from mlc_lab.schedule.primitive.get_block import get_block as _get_block
from mlc_lab.schedule.primitive.get_child_blocks import get_child_blocks as _get_child_blocks
from mlc_lab.schedule.primitive.get_consumers import get_consumers as _get_consumers
from mlc_lab.schedule.primitive.get_loops import get_loops as _get_loops
from mlc_lab.schedule.primitive.get_output_blocks import get_output_blocks as _get_output_blocks
from mlc_lab.schedule.primitive.get_producers import get_producers as _get_producers
from mlc_lab.schedule.primitive.loop_partition import loop_partition as _loop_partition
from mlc_lab.schedule.primitive.merge import merge as _merge
from mlc_lab.schedule.primitive.pad_einsum import pad_einsum as _pad_einsum
from mlc_lab.schedule.primitive.parallel import parallel as _parallel
from mlc_lab.schedule.primitive.reindex import reindex as _reindex
from mlc_lab.schedule.primitive.reindex_cache_read import reindex_cache_read as _reindex_cache_read
from mlc_lab.schedule.primitive.reindex_cache_write import reindex_cache_write as _reindex_cache_write
from mlc_lab.schedule.primitive.reorder import reorder as _reorder
from mlc_lab.schedule.primitive.reorder_block_iter_var import reorder_block_iter_var as _reorder_block_iter_var
from mlc_lab.schedule.primitive.reverse_compute_at import reverse_compute_at as _reverse_compute_at
from mlc_lab.schedule.primitive.reverse_compute_inline import reverse_compute_inline as _reverse_compute_inline
from mlc_lab.schedule.primitive.rfactor import rfactor as _rfactor
from mlc_lab.schedule.primitive.rolling_buffer import rolling_buffer as _rolling_buffer
from mlc_lab.schedule.primitive.sample_categorical import sample_categorical as _sample_categorical
from mlc_lab.schedule.primitive.sample_compute_location import sample_compute_location as _sample_compute_location
from mlc_lab.schedule.primitive.sample_perfect_tile import sample_perfect_tile as _sample_perfect_tile
from mlc_lab.schedule.primitive.set_axis_separator import set_axis_separator as _set_axis_separator
from mlc_lab.schedule.primitive.set_scope import set_scope as _set_scope
from mlc_lab.schedule.primitive.split import split as _split
from mlc_lab.schedule.primitive.storage_align import storage_align as _storage_align
from mlc_lab.schedule.primitive.tensorize import tensorize as _tensorize
from mlc_lab.schedule.primitive.transform_block_layout import transform_block_layout as _transform_block_layout
from mlc_lab.schedule.primitive.transform_layout import with_separators as _transform_layout
from mlc_lab.schedule.primitive.unannotate import unannotate as _unannotate
from mlc_lab.schedule.primitive.unblockize import unblockize as _unblockize
from mlc_lab.schedule.primitive.unroll import unroll as _unroll
from mlc_lab.schedule.primitive.unsafe_set_dtype import unsafe_set_dtype as _unsafe_set_dtype
from mlc_lab.schedule.primitive.vectorize import vectorize as _vectorize
from typing import Any
from collections.abc import Callable
def add_method(method: Callable[..., Any]) -> None:
    """Give every schedule one more method, or a new one in place of that of its name."""
class Primitives:
    """What can be done to a program under schedule, one method a primitive."""
    add_unit_loop = _add_unit_loop
    annotate = _annotate
    annotate_buffer_access = _annotate_buffer_access
    bind = _bind
    blockize = _blockize
    cache_index = _cache_index
    cache_inplace = _cache_inplace
    cache_read = _cache_read
    cache_write = _cache_write
    compute_at = _compute_at
    compute_inline = _compute_inline
    decompose_padding = _decompose_padding
    decompose_reduction = _decompose_reduction
    enter_postproc = _enter_postproc
    fuse = _fuse
    get_block = _get_block
    get_child_blocks = _get_child_blocks
    get_consumers = _get_consumers
    get_loops = _get_loops
    get_output_blocks = _get_output_blocks
    get_producers = _get_producers
    loop_partition = _loop_partition
    merge = _merge
    pad_einsum = _pad_einsum
    parallel = _parallel
    reindex = _reindex
    reindex_cache_read = _reindex_cache_read
    reindex_cache_write = _reindex_cache_write
    reorder = _reorder
    reorder_block_iter_var = _reorder_block_iter_var
    reverse_compute_at = _reverse_compute_at
    reverse_compute_inline = _reverse_compute_inline
    rfactor = _rfactor
    rolling_buffer = _rolling_buffer
    sample_categorical = _sample_categorical
    sample_compute_location = _sample_compute_location
    sample_perfect_tile = _sample_perfect_tile
    set_axis_separator = _set_axis_separator
    set_scope = _set_scope
    split = _split
    storage_align = _storage_align
    tensorize = _tensorize
    transform_block_layout = _transform_block_layout
    transform_layout = _transform_layout
    unannotate = _unannotate
    unblockize = _unblockize
    unroll = _unroll
    unsafe_set_dtype = _unsafe_set_dtype
    vectorize = _vectorize
