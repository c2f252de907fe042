"""Building expressions: operators with constants folded and types matched, and the intrinsics.

    conversion.py        constants, casts, two operands in one type
    arithmetic.py        + - * / // % min max, and what of them is folded
    logic.py             comparisons, and / or / not, select and if_then_else
    intrinsic.py         the table of intrinsics and what they do to the world
    math.py              a function for each of them: exp, sqrt, popcount, ...
    calls.py             calls by name, ret, let
    registering.py       intrinsics of one's own, and rules of lowering
    python_operators.py  what `a + b` and `a < b` do on expressions
"""

from . import arithmetic, calls, conversion, intrinsic, logic, math, python_operators, registering
from .arithmetic import *  # noqa: F403
from .calls import *  # noqa: F403
from .conversion import *  # noqa: F403
from .intrinsic import *  # noqa: F403
from .logic import *  # noqa: F403
from .math import *  # noqa: F403
from .registering import *  # noqa: F403

python_operators.install()

#: the builders; the table of intrinsics and its constants are asked for by name
__all__ = [name for part in (conversion, arithmetic, logic, intrinsic, math, calls, registering)
           for name in part.__all__ if name[0].islower()]
