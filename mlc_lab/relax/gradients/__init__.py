"""How gradients go through operators, a rule each: what `relax.transform.Gradient` asks.

A rule gets the variable that holds the result, the call, the gradient of the result and the
builder, and gives the gradient of each argument, None where there is none:

    @register_gradient("relax.exp")
    def exp(var, call, grad, bb):
        return [R.multiply(grad, var)]

`Gradient` loads this package when it runs first. A rule of one's own is registered the same way,
`relax.op.register_gradient("relax.shrink", rule)`, before or after.
"""

from __future__ import annotations

from . import elementwise, layouts, linear, nn, reductions

__all__ = ["elementwise", "layouts", "linear", "nn", "reductions"]
