"""The schedule primitives, one idea a file: meaning, rules, rewrite, and how it is recorded."""

from .annotate import annotate, enter_postproc, unannotate
from .compute_at import compute_at, reverse_compute_at
from .compute_inline import compute_inline, reverse_compute_inline
from .decompose_reduction import decompose_reduction
from .fuse import fuse
from .get_blocks import (
    get_block, get_child_blocks, get_consumers, get_loops, get_output_blocks, get_producers,
)
from .loop_kind import add_unit_loop, bind, parallel, unroll, vectorize
from .reorder import reorder
from .sampling import sample_categorical, sample_compute_location, sample_perfect_tile
from .split import split

__all__ = [
    "add_unit_loop", "annotate", "bind", "compute_at", "compute_inline", "decompose_reduction",
    "enter_postproc", "fuse", "get_block", "get_child_blocks", "get_consumers", "get_loops",
    "get_output_blocks", "get_producers", "parallel", "reorder", "reverse_compute_at",
    "reverse_compute_inline", "sample_categorical", "sample_compute_location",
    "sample_perfect_tile", "split", "unannotate", "unroll", "vectorize",
]
