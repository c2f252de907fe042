"""Integer analysis: what indices and conditions can be, so that rewrites can be proved right.

`Analyzer` simplifies and proves. Under it: `const_int_bound.py` and `modular_set.py` (what values
an expression takes), `rules.py` (rewrite rules, as data; `pattern.py` compiles them),
`canonical_simplify.py` (sums of split terms).
"""

from .analyzer import Analyzer
from .const_int_bound import NEG_INF, POS_INF, ConstIntBound
from .modular_set import ModularSet

__all__ = ["Analyzer", "ConstIntBound", "ModularSet", "NEG_INF", "POS_INF"]
