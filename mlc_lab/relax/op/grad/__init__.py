"""R.grad: operators that gradients are made of, under the names that TVM has for them."""

from typing import TYPE_CHECKING

from . import grad as grad

if TYPE_CHECKING:  # for editors; what there is, `relax/op/__init__.py` finds
    from .grad import *  # noqa: F403
