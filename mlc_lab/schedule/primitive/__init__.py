"""The schedule primitives, one a file: meaning, rules, rewrite, and how it is recorded."""

from .add_unit_loop import add_unit_loop
from .annotate import annotate
from .annotate_buffer_access import annotate_buffer_access
from .bind import bind
from .blockize import blockize
from .cache_index import cache_index
from .cache_inplace import cache_inplace
from .cache_read import cache_read
from .cache_write import cache_write
from .compute_at import compute_at
from .compute_inline import compute_inline
from .decompose_padding import decompose_padding
from .decompose_reduction import decompose_reduction
from .enter_postproc import enter_postproc
from .fuse import fuse
from .get_block import get_block
from .get_child_blocks import get_child_blocks
from .get_consumers import get_consumers
from .get_loops import get_loops
from .get_output_blocks import get_output_blocks
from .get_producers import get_producers
from .pad_einsum import pad_einsum
from .parallel import parallel
from .reindex import reindex
from .reindex_cache_read import reindex_cache_read
from .reindex_cache_write import reindex_cache_write
from .reorder import reorder
from .reorder_block_iter_var import reorder_block_iter_var
from .reverse_compute_at import reverse_compute_at
from .reverse_compute_inline import reverse_compute_inline
from .rfactor import rfactor
from .rolling_buffer import rolling_buffer
from .sample_categorical import sample_categorical
from .sample_compute_location import sample_compute_location
from .sample_perfect_tile import sample_perfect_tile
from .set_axis_separator import set_axis_separator
from .set_scope import set_scope
from .split import split
from .storage_align import storage_align
from .tensorize import tensorize
from .transform_block_layout import transform_block_layout
from .transform_layout import transform_layout
from .unannotate import unannotate
from .unroll import unroll
from .unsafe_set_dtype import unsafe_set_dtype
from .vectorize import vectorize

__all__ = [
    "add_unit_loop", "annotate", "annotate_buffer_access", "bind", "blockize", "cache_index",
    "cache_inplace", "cache_read", "cache_write", "compute_at", "compute_inline",
    "decompose_padding", "decompose_reduction", "enter_postproc", "fuse", "get_block",
    "get_child_blocks", "get_consumers", "get_loops", "get_output_blocks", "get_producers",
    "pad_einsum", "parallel", "reindex", "reindex_cache_read", "reindex_cache_write", "reorder",
    "reorder_block_iter_var", "reverse_compute_at", "reverse_compute_inline", "rfactor",
    "rolling_buffer", "sample_categorical", "sample_compute_location", "sample_perfect_tile",
    "set_axis_separator", "set_scope", "split", "storage_align", "tensorize",
    "transform_block_layout", "transform_layout", "unannotate", "unroll", "unsafe_set_dtype",
    "vectorize",
]
