"""ToNonDataflow: dataflow blocks become ordinary ones, their variables ordinary variables.

before::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = R.exp(x)
            z = R.add(y, x)
            R.output(z)
        return z

after `ToNonDataflow()`::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.exp(x)
        z = R.add(y, x)
        return z
"""

from __future__ import annotations

from .rewriting import (
    BindingBlock, DataflowBlock, DataflowVar, Function, Pass, Replacer, Var, bound_vars,
    make_function_pass,
)


class _Plain(Replacer):
    """Dataflow blocks as ordinary blocks."""

    def _block(self, node: BindingBlock) -> BindingBlock:
        return BindingBlock(self._many(node.bindings))

    _METHODS = {**Replacer._METHODS, DataflowBlock: _block}


def ToNonDataflow() -> Pass:
    """Turn dataflow blocks into ordinary blocks."""
    def convert(func: Function) -> Function:
        table = {v: Var.from_fields(v.name_hint, v.struct_info_) for v in bound_vars(func)
                 if type(v) is DataflowVar}
        return _Plain(table)(func)

    return make_function_pass("ToNonDataflow", lambda func, mod: convert(func),
                              ToNonDataflow.__doc__)


__all__ = ["ToNonDataflow"]
