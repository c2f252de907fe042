"""Integer analysis: what indices and conditions can be, so that rewrites can be proved right.

`Analyzer` simplifies and proves. Under it: `const_int_bound.py` and `modular_set.py` (what values
an expression takes), `rules.py` (rewrite rules, as data; `pattern.py` compiles them),
`canonical_simplify.py` (sums of split terms). Around it: `int_set.py` (symbolic intervals),
`interval_arithmetic.py` (which of them an expression has),
`iter_map.py` (indices as splits and fusions of iterators; its parts are `iter_map_expr.py`,
`iter_map_predicate.py`, `iter_map_rewriter.py`, `iter_map_inverse.py`, `subspace_divide.py`),
`region.py` (what of a buffer loops touch), `index_map.py` (inverses of layouts), `linear.py`
(equations and inequalities solved for a variable), `omega.py` (whether systems of them have a
solution in integers) and `linear_form.py` (expressions in such systems), `access.py` (where a
program touches its buffers), `evaluable.py` (whether an index has a value wherever it is asked) and
`liveness.py` (whether what is read was written before).
"""

from . import index_map
from .analyzer import Analyzer, Extension, ProofStrength
from .const_int_bound import NEG_INF, POS_INF, ConstIntBound
from .evaluable import fragile_in, is_evaluable
from .int_set import (
    NEG_INF_EXPR, POS_INF_EXPR, IntervalSet, IntSet, as_set, intersect, union, union_lower_bound,
)
from .interval_arithmetic import eval_set
from .iter_map import (
    IterMapResult, IterMark, IterSplitExpr, IterSumExpr, detect_iter_map, iter_map_simplify,
    normalize_iter_map_to_expr, normalize_to_iter_sum,
)
from .iter_map_expr import IterMapExpr
from .iter_map_inverse import inverse_affine_iter_map
from .linear import deduce_bound, detect_clip_bound, detect_linear_equation
from .modular_set import ModularSet
from .region import (
    estimate_region_lower_bound, estimate_region_strict_bound, estimate_region_upper_bound,
)
from .subspace_divide import subspace_divide

__all__ = [
    "Analyzer", "ConstIntBound", "Extension", "IntSet", "IntervalSet", "IterMapExpr",
    "IterMapResult", "IterMark", "IterSplitExpr", "IterSumExpr", "ModularSet", "NEG_INF",
    "NEG_INF_EXPR", "POS_INF", "POS_INF_EXPR", "ProofStrength", "as_set",
    "deduce_bound", "detect_clip_bound", "detect_iter_map",
    "detect_linear_equation", "estimate_region_lower_bound", "estimate_region_strict_bound",
    "estimate_region_upper_bound", "eval_set", "fragile_in", "index_map", "intersect",
    "inverse_affine_iter_map", "is_evaluable", "iter_map_simplify", "normalize_iter_map_to_expr",
    "normalize_to_iter_sum", "subspace_divide", "union", "union_lower_bound",
]
