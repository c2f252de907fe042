"""Building expressions: operators with constants folded and types matched, and the intrinsics.

    conversion.py        constants, casts, two operands in one type
    arithmetic.py        + - * / // % min max, and what of them is folded
    logic.py             comparisons, and / or / not, select and if_then_else
    intrinsic.py         the table of intrinsics and what they do to the world
    math.py              a function for each of them: exp, sqrt, popcount, ...
    given.py             the intrinsics whose result type is given: pointers, tensor cores
    calls.py             calls by name, ret, let
    registering.py       intrinsics of one's own, and rules of lowering
    python_operators.py  what `a + b` and `a < b` do on expressions
"""

from . import arithmetic, calls, conversion, given, logic, math, python_operators, registering
from .arithmetic import *  # noqa: F403
from .calls import *  # noqa: F403
from .conversion import *  # noqa: F403
from .given import *  # noqa: F403
from .intrinsic import *  # noqa: F403
from .logic import *  # noqa: F403
from .math import *  # noqa: F403
from .registering import *  # noqa: F403

python_operators.install()

#: the builders; the table of intrinsics and its constants are asked for by name
__all__: list[str] = []
__all__ += conversion.__all__
__all__ += arithmetic.__all__
__all__ += logic.__all__
__all__ += math.__all__
__all__ += given.__all__
__all__ += calls.__all__
__all__ += registering.__all__
__all__.append("effect_of")
__all__.remove("ACCEPTS_INTEGERS")
__all__.remove("CallEffectKind")
