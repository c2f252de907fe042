"""R.grad: operators that gradients are made of, under the names that TVM has for them."""

from . import grad as grad
