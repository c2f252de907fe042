"""Changing what private functions take and give, together with all calls of them."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from .rewriting import (
    Binding, BindingBlock, Call, DataflowBlock, Expr, Function, GlobalVar, IRModule, Replacer,
    VarBinding, is_exported, replace_functions, used_globals, walk,
)


def private_callees(mod: IRModule) -> dict[GlobalVar, Function]:
    """Private Relax functions of which every use is a direct call: their signature may change."""
    found = {v: f for v, f in mod.functions.items()
             if isinstance(f, Function) and not is_exported(f)}
    for func in mod.functions.values():
        if not isinstance(func, Function):
            continue
        for item in walk(func):
            if type(item) is Call:
                for arg in item.args:
                    for part in used_globals(arg):
                        found.pop(part, None)
            elif type(item) is VarBinding and isinstance(item.value, GlobalVar):
                found.pop(item.value, None)
    return found


class _Calls(Replacer):
    """Rewrites the arguments of calls; `results` replaces the binding of a call by several."""

    def __init__(self, arguments: Mapping[Any, Callable], globals_: Mapping,
                 results: Mapping[Any, Callable]) -> None:  # by GlobalVar
        super().__init__(globals_=globals_)
        self.arguments, self.results = arguments, results

    def _call(self, node: Call) -> Expr:
        change = self.arguments.get(node.op)
        if change is not None:
            node = Call.from_fields(node.op, tuple(change(node.args)), node.attrs, node.sinfo_args,
                                    node.struct_info_)
        return super()._call(node)

    def _block(self, node: BindingBlock) -> BindingBlock:
        out: list[Binding] = []
        for binding in node.bindings:
            value = binding.value
            change = self.results.get(value.op) if type(value) is Call else None
            if change is None or type(value) is not Call or type(binding) is not VarBinding:
                out.append(self(binding))
            else:
                new = super(_Calls, self)._call(value) if value.op not in self.arguments else (
                    self._call(value))
                out += change(binding.var, new, type(node) is DataflowBlock)
        same = len(out) == len(node.bindings) and all(
            a is b for a, b in zip(out, node.bindings))
        return node if same else type(node)(out)

    _METHODS = {**Replacer._METHODS, Call: _call, BindingBlock: _block, DataflowBlock: _block}


def change_signatures(mod: IRModule, changes: Mapping[GlobalVar, Function],
                      arguments: Mapping[GlobalVar, Callable[[tuple], Any]],
                      results: Mapping[GlobalVar, Callable[..., list[Binding]]] | None = None
                      ) -> IRModule:
    """The module with functions changed and every call of them fitted.

    `arguments[gv](args)` gives the new arguments of a call, `results[gv](var, call, dataflow)` the
    bindings that take the place of `var = call`.
    """
    if not changes:
        return mod
    calls = _Calls(arguments, {}, results or {})
    new: dict[GlobalVar, Any] = {}
    for var, func in mod.functions.items():
        if isinstance(func, Function):
            done = calls(changes.get(var, func))
            if done is not func:
                new[var] = done
    return replace_functions(mod, new)


__all__ = ["change_signatures", "private_callees"]
