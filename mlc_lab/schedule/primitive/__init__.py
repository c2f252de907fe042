"""The schedule primitives, one idea a file: meaning, rules, rewrite, and how it is recorded."""

from .annotate import annotate, enter_postproc, unannotate
from .blockize import blockize
from .cache_read import cache_read
from .cache_write import cache_write
from .compute_at import compute_at, reverse_compute_at
from .compute_inline import compute_inline, reverse_compute_inline
from .decompose_reduction import decompose_reduction
from .fuse import fuse
from .get_blocks import (
    get_block, get_child_blocks, get_consumers, get_loops, get_output_blocks, get_producers,
)
from .loop_kind import add_unit_loop, bind, parallel, unroll, vectorize
from .reorder import reorder
from .rfactor import rfactor
from .sampling import sample_categorical, sample_compute_location, sample_perfect_tile
from .set_scope import set_scope, unsafe_set_dtype
from .split import split
from .storage_align import storage_align
from .tensorize import tensorize

__all__ = [
    "add_unit_loop", "annotate", "bind", "blockize", "cache_read", "cache_write", "compute_at",
    "compute_inline", "decompose_reduction", "enter_postproc", "fuse", "get_block",
    "get_child_blocks", "get_consumers", "get_loops", "get_output_blocks", "get_producers",
    "parallel", "reorder", "reverse_compute_at", "reverse_compute_inline", "rfactor",
    "sample_categorical", "sample_compute_location", "sample_perfect_tile", "set_scope", "split",
    "storage_align", "tensorize", "unannotate", "unroll", "unsafe_set_dtype", "vectorize",
]
