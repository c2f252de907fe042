"""Relax's operators under TVM's names: `relax.op.add`, `relax.op.nn.conv2d`, ...

An operator is one declaration (`declare.py`) in a file of this folder: what it takes, what computes
it, what it gives, how passes treat it. Its name here and in `R` is that of the declaration; a call
whose arguments do not fit is refused where it is made, with both shapes. `registry.py` is the table
of all of them.
"""

import os as _os
import sys as _sys
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING
from typing import Any as _Any

from . import builtin, grad, image, memory, nn, registry, vm
from .declare import CONSTRUCTORS as _CONSTRUCTORS
from .declare import LISTENERS as _LISTENERS
from .declare import of_other_versions as _of_other_versions
from .registry import (
    OPERATORS, StructInfoError, infer_call, lookup, make_call, register_gradient,
    register_legalize, register_op,
)

if TYPE_CHECKING:  # for editors; what there is, is found below
    from .base import *  # noqa: F403
    from .create import *  # noqa: F403
    from .elementwise import *  # noqa: F403
    from .gather import *  # noqa: F403
    from .index import *  # noqa: F403
    from .linear_algebra import *  # noqa: F403
    from .manipulate import *  # noqa: F403
    from .qdq import *  # noqa: F403
    from .reduction import *  # noqa: F403
    from .reshaping import *  # noqa: F403
    from .slicing import *  # noqa: F403
    from .sorting import *  # noqa: F403

__all__ = [
    "OPERATORS", "StructInfoError", "builtin", "grad", "image", "infer_call", "lookup", "make_call",
    "memory", "nn", "register_gradient", "register_legalize", "register_op", "registry", "vm",
]
_HERE = _sys.modules[__name__]
#: the namespaces of operators, by what stands before the last dot of a name
_NAMESPACES: dict[str, _ModuleType] = {
    "relax": _HERE, "relax.builtin": builtin, "relax.grad": grad, "relax.image": image,
    "relax.memory": memory, "relax.nn": nn, "relax.vm": vm}
for _module in (builtin, grad, image, memory, nn, vm):
    vars(_module)["__all__"] = []


def _name(name: str, build: _Any) -> None:
    """Give a constructor its name here, or in the namespace that its name says."""
    place, _, last = name.rpartition(".")
    if place not in _NAMESPACES:
        raise ValueError(f"the operator {name!r} is in no namespace: there are "
                         + ", ".join(map(repr, _NAMESPACES)))
    space = _NAMESPACES[place]
    if vars(space).get(last) is not build or last not in space.__all__:
        space.__all__.append(last)
        setattr(space, last, build)


for _file in sorted(_os.listdir(_HERE.__path__[0])):
    if _file.endswith(".py") and _file != "__init__.py":
        _import_module(f"{__name__}.{_file[:-3]}")
for _full, _build in _CONSTRUCTORS.items():
    _name(_full, _build)
_LISTENERS.append(_name)


__getattr__ = _of_other_versions(__name__, "relax")
