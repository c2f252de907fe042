"""LambdaLift: functions inside functions become functions of the module.

One that uses variables or sizes from around it takes them as further parameters. Where such a
function is only called, the calls pass them; where it is used as a value, `R.make_closure` keeps
them and `R.invoke_pure_closure` calls it.

before::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        @R.function
        def inner(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            z = R.exp(y)
            return z

        gv: R.Tensor((4,), "float32") = inner(x)
        return gv

after `LambdaLift()`::

    @R.function(private=True)
    def main_inner(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        z = R.exp(y)
        return z

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        gv: R.Tensor((4,), "float32") = cls.main_inner(x)
        return gv

Johnsson, "Lambda lifting: transforming programs to recursive equations" (1985).
"""

from __future__ import annotations

from typing import Any

from ..analysis import free_symbolic_vars
from ..expr import ShapeExpr
from ..op.registry import make_call
from ..struct_info import ShapeStructInfo
from .rewriting import (
    Binding, BindingBlock, Call, DataflowBlock, Expr, Function, GlobalVar, IRModule, Pass,
    PassContext, Replacer, Tuple, Var, VarBinding, add_function, free_relax_vars, make_pass,
    replace_functions, walk, with_own_dims,
)


def LambdaLift() -> Pass:
    """Move inner functions to the module."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        new = mod.copy()
        changes = {}
        for var, func in mod.functions.items():
            if isinstance(func, Function):
                done = _Lifter(new, var.name_hint, func)(func)
                if done is not func:
                    changes[var] = done
        return replace_functions(new, changes) if changes else mod

    return make_pass("LambdaLift", run, LambdaLift.__doc__)


class _Lifter(Replacer):
    def __init__(self, mod: IRModule, outer: str, func: Function) -> None:
        super().__init__()
        self.mod, self.outer = mod, outer
        #: lifted functions that are called with what they captured
        self.direct: dict[Any, tuple[GlobalVar, list[Expr]]] = {}
        self.closures: set[Var] = set()
        self.as_value = _used_as_values(func)

    def _block(self, node: BindingBlock) -> BindingBlock:
        out: list[Binding] = []
        for binding in node.bindings:
            if type(binding) is VarBinding and type(binding.value) is Function:
                lifted = self.lift(binding.var, binding.value)
                if lifted is not None:
                    out.append(lifted)
            else:
                out.append(self(binding))
        same = len(out) == len(node.bindings) and all(
            a is b for a, b in zip(out, node.bindings))
        return node if same else type(node)(out)

    def lift(self, var: Var, func: Function) -> Binding | None:
        """Put an inner function into the module; a binding where a value of it is needed."""
        name = f"{self.outer}_{var.name_hint}"
        captured = [v for v in free_relax_vars(func) if v is not var and v not in self.direct]
        given: list[Expr] = [self(v) for v in captured]
        params = [Var(v.name_hint, v.struct_info_) for v in captured]
        sizes = free_symbolic_vars(func.replace(params=(*func.params, *params)))
        if sizes:
            given.append(ShapeExpr(sizes))
            params.append(Var("sizes", ShapeStructInfo(sizes)))
        inner = Function.from_fields((*func.params, *params), func.body, func.ret_struct_info,
                                     func.is_pure,
                                     {k: v for k, v in func.attrs.items()
                                      if k != "global_symbol"})
        callee: Any = add_function(self.mod, inner, name)
        direct = var not in self.as_value
        if direct:
            self.direct[var] = callee, given
        own = _Lifter(self.mod, name, inner)
        own.vars.update(zip(captured, params))  # sizes are used by their symbols
        own.direct.update({v: (g, [own.vars.get(x, x) for x in args])
                           for v, (g, args) in self.direct.items()})
        if direct:  # a recursive call passes on what it was given
            own.direct[var] = callee, list(params)
        self.mod.functions[callee] = with_own_dims(own(inner))
        if direct:
            return None
        if not given:
            self.vars[var] = callee
            return None
        self.closures.add(var)
        return VarBinding(var, make_call("relax.make_closure", (callee, Tuple(given))))

    def _call(self, node: Call) -> Expr:
        found = self.direct.get(node.op)
        if found is not None:
            callee, captured = found
            return Call.from_fields(callee, (*self._many(node.args), *captured), node.attrs,
                                    node.sinfo_args, node.struct_info_)
        if node.op in self.closures:
            return make_call("relax.invoke_pure_closure",
                             (node.op, Tuple(self._many(node.args))), None, (node.struct_info_,))
        return super()._call(node)

    _METHODS = {**Replacer._METHODS, BindingBlock: _block, DataflowBlock: _block, Call: _call}


def _used_as_values(func: Function) -> set[Var]:
    """The variables of inner functions that are used otherwise than to be called."""
    inner = {b.var for b in walk(func) if type(b) is VarBinding and type(b.value) is Function}
    found: set[Var] = set()
    stack: list = [func]
    while stack:
        item = stack.pop()
        if isinstance(item, Var) and item in inner:
            found.add(item)
        kids = item.children()
        if type(item) is Call and isinstance(item.op, Var):
            kids = kids[1:]
        stack.extend(kids)
    return found


__all__ = ["LambdaLift"]
