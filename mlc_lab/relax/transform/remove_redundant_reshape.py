"""RemoveRedundantReshape: a reshape of a reshape is one reshape; one to the same shape is none.

before::

    @R.function
    def main(x: R.Tensor((2, 6), "float32")) -> R.Tensor((3, 4), "float32"):
        with R.dataflow():
            a = R.reshape(x, (12,))
            b = R.reshape(a, (3, 4))
            gv = R.reshape(b, (3, 4))
            R.output(gv)
        return gv

after `RemoveRedundantReshape()`::

    @R.function
    def main(x: R.Tensor((2, 6), "float32")) -> R.Tensor((3, 4), "float32"):
        with R.dataflow():
            gv = R.reshape(x, (3, 4))
            R.output(gv)
        return gv
"""

from __future__ import annotations

from .canonicalize_bindings import canonicalize
from .dead_code_elimination import remove_all_unused
from .rewriting import (
    BindingBlock, Call, Function, Pass, Var, VarBinding, forget_inner, is_call_of,
    make_function_pass, map_blocks, same_bindings,
)


def RemoveRedundantReshape() -> Pass:
    """Merge reshapes of reshapes and drop those that change nothing."""
    def rewrite(func: Function) -> Function:
        values: dict[Var, Call] = {}

        def block(b: BindingBlock) -> BindingBlock:
            out = []
            for binding in b.bindings:
                value = binding.value
                if type(binding) is VarBinding and is_call_of(value, "relax.reshape"):
                    source = value.args[0]
                    while source in values:
                        source = values[source].args[0]
                    have = source.struct_info_
                    if have is not None and have == binding.var.struct_info_:
                        binding = VarBinding(binding.var, source)
                    elif source is not value.args[0]:
                        binding = VarBinding(binding.var, Call.from_fields(
                            value.op, (source, *value.args[1:]), value.attrs, value.sinfo_args,
                            value.struct_info_))
                    if is_call_of(new := binding.value, "relax.reshape"):
                        values[binding.var] = new
                out.append(binding)
            forget_inner(values, b)
            return same_bindings(b, out)

        new = map_blocks(func, block)
        return func if new is func else remove_all_unused(canonicalize(new))

    return make_function_pass("RemoveRedundantReshape", lambda func, mod: rewrite(func),
                              RemoveRedundantReshape.__doc__)


__all__ = ["RemoveRedundantReshape"]
