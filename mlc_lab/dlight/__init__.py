"""dlight: a schedule for every kernel, chosen by a few rules instead of a search.

After fusion, most functions of a model are a product, a convolution, a reduction or element by
element work, and a rule for each is enough to be fast without tuning. `ApplyDefaultSchedule` tries
the rules on every function that has no schedule yet and takes the first one that answers; where
none does, the function stays as it is.

    with tvm.target.Target("llvm"):
        mod = tvm.dlight.ApplyDefaultSchedule()(mod)

One rule a file, each with the public primitives of `Schedule` only (and, for a convolution that is
pooled at once, tiles of rows that overlap: `row_tiles.py`); read `base.py` and `stages.py` first.
The idea and the interface (`rule.apply(func, target, tunable)`) are those of TVM's dlight. The
rules here are for CPUs; `gpu/` has those for GPUs, which the target chooses.
"""

from importlib import import_module as _import_module

from . import cpu
from .analysis import BlockInfo, IterInfo, normalize_prim_func
from .base import ApplyDefaultSchedule, is_scheduled
from .base import KernelRule as ScheduleRule  # the name that TVM has for it
from .contraction import Contraction
from .elementwise import Elementwise
from .pooled import PooledContraction
from .reduction import Reduction
from .transpose import Transpose


def __getattr__(name: str) -> object:
    """The rules for GPUs, which are loaded late: a model for a CPU does without."""
    if name == "gpu":
        return _import_module(f"{__name__}.gpu")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["ApplyDefaultSchedule", "BlockInfo", "Contraction", "Elementwise", "IterInfo",
           "PooledContraction", "Reduction", "ScheduleRule", "Transpose", "cpu", "is_scheduled",
           "normalize_prim_func"]
