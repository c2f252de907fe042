"""Relax's operators under TVM's names: `relax.op.add`, `relax.op.nn.conv2d`, ...

`registry.py` is the table: what a call gives (struct info), whether it has effects, how it becomes
TensorIR. A file a topic holds the constructors and the rules of inference; a call whose arguments
do not fit is refused where it is made, with both shapes.
"""

from . import (
    base, builtin, conv, create, elementwise, gather, image, index, linear_algebra, manipulate,
    memory, nn, pool, qdq, reduction, registry, vm,
)
from .base import *  # noqa: F403
from .create import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .gather import *  # noqa: F403
from .index import *  # noqa: F403
from .linear_algebra import *  # noqa: F403
from .manipulate import *  # noqa: F403
from .qdq import *  # noqa: F403
from .reduction import *  # noqa: F403
from .registry import (
    OPERATORS, StructInfoError, infer_call, lookup, make_call, register_legalize, register_op,
)

_TOPICS = (base, create, elementwise, gather, index, linear_algebra, manipulate, qdq, reduction)
__all__ = [
    "OPERATORS", "StructInfoError", "builtin", "conv", "image", "infer_call", "lookup",
    "make_call", "memory", "nn", "pool", "register_legalize", "register_op", "registry", "vm",
]
__all__ += [name for topic in _TOPICS for name in topic.__all__]
