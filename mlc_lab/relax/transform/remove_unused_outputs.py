"""RemoveUnusedOutputs: private functions that give a tuple give only the items somebody uses.

before::

    @R.function(private=True)
    def f(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"),
                                                    R.Tensor((4,), "float32")):
        y = R.exp(x)
        z = R.negative(x)
        return (y, z)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        t: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")) = cls.f(x)
        gv = t[1]
        return gv

after `RemoveUnusedOutputs()`::

    @R.function(private=True)
    def f(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        z = R.negative(x)
        return z

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        gv: R.Tensor((4,), "float32") = cls.f(x)
        return gv
"""

from __future__ import annotations

from .canonicalize_bindings import canonicalize
from .dead_code_elimination import remove_all_unused
from .rewriting import (
    Binding, Call, DataflowVar, Expr, Function, GlobalVar, IRModule, Pass, PassContext, Replacer,
    SeqExpr, StructInfo, Tuple, TupleGetItem, TupleStructInfo, Var, VarBinding, make_pass, walk,
)
from .signatures import private_callees


def RemoveUnusedOutputs() -> Pass:
    """Drop items of results that no caller uses."""
    return make_pass("RemoveUnusedOutputs", _run, RemoveUnusedOutputs.__doc__)


def _run(mod: IRModule, ctx: PassContext) -> IRModule:
    found = {v: f for v, f in private_callees(mod).items() if type(f.body) is SeqExpr
             and isinstance(f.ret_struct_info, TupleStructInfo) and type(f.body.body) is Tuple}
    used = _used_items(mod, found)
    keep = {v: sorted(used[v]) for v, f in found.items()
            if v in used and 0 < len(used[v]) < len(_items(f.ret_struct_info))}
    if not keep:
        return mod
    globals_, changes = {}, {}
    for var, items in keep.items():
        changes[var] = remove_all_unused(_narrow(found[var], items))
        globals_[var] = GlobalVar(var.name_hint, changes[var].struct_info_)
    new = mod.copy()
    new.functions, new._by_name = {}, {}
    for var, func in mod.functions.items():
        func = changes.get(var, func)
        if isinstance(func, Function):
            done = _Callers(keep, globals_)(func)
            func = func if done is func else canonicalize(done)
        new.update_func(globals_.get(var, var), func)
    return new


def _items(info: StructInfo | None) -> tuple[StructInfo, ...]:
    assert isinstance(info, TupleStructInfo)
    return info.fields_


def _used_items(mod: IRModule, found: dict[GlobalVar, Function]) -> dict[GlobalVar, set[int]]:
    """The items of each function's result that are used; all of them where one cannot tell."""
    used: dict[GlobalVar, set[int]] = {v: set() for v in found}
    for func in mod.functions.values():
        if not isinstance(func, Function):
            continue
        results: dict[Expr, GlobalVar] = {}
        for item in walk(func):
            if type(item) is VarBinding and type(item.value) is Call and (
                    isinstance(callee := item.value.op, GlobalVar)) and callee in found:
                results[item.var] = callee
        for item in walk(func):
            if type(item) is TupleGetItem and item.tuple_value in results:
                used[results[item.tuple_value]].add(item.index)
        for var in _plain_uses(func, results):
            used[results[var]] = set(range(len(_items(var.struct_info_))))
    return used


def _plain_uses(func: Function, results: dict) -> set[Var]:
    """The results that are used as a whole."""
    found: set[Var] = set()
    stack = [func]
    while stack:
        item = stack.pop()
        if type(item) is TupleGetItem and isinstance(item.tuple_value, Var):
            continue
        if isinstance(item, Var) and item in results:
            found.add(item)
        stack.extend(item.children())
    return found


def _narrow(func: Function, items: list[int]) -> Function:
    """The function giving only some items."""
    fields = [func.body.body[i] for i in items]
    infos = [_items(func.ret_struct_info)[i] for i in items]
    body = fields[0] if len(fields) == 1 else Tuple(fields)
    info = infos[0] if len(infos) == 1 else TupleStructInfo(infos)
    return Function.from_fields(func.params, SeqExpr(func.body.blocks, body), info, func.is_pure,
                                func.attrs)


class _Callers(Replacer):
    """Calls of narrowed functions and the items taken of their results."""

    def __init__(self, keep: dict, globals_: dict) -> None:
        super().__init__(globals_=globals_)
        self.keep = keep
        self.items: dict[Expr, list[int]] = {}

    def _binding(self, node: VarBinding) -> Binding:
        value = node.value
        if type(value) is not Call or value.op not in self.keep:
            return super()._binding(node)
        items = self.keep[value.op]
        infos = [_items(value.struct_info_)[i] for i in items]
        info = infos[0] if len(infos) == 1 else TupleStructInfo(infos)
        call = Call.from_fields(self(value.op), self._many(value.args), value.attrs,
                                value.sinfo_args, info)
        var = (DataflowVar if type(node.var) is DataflowVar else Var)(node.var.name_hint, info)
        self.vars[node.var] = var
        self.items[node.var] = items
        return VarBinding(var, call)

    def _get_item(self, node: TupleGetItem) -> Expr:
        items = self.items.get(node.tuple_value)
        if items is None:
            return super()._get_item(node)
        var = self.vars[node.tuple_value]
        return var if len(items) == 1 else TupleGetItem(var, items.index(node.index))

    _METHODS = {**Replacer._METHODS, VarBinding: _binding, TupleGetItem: _get_item}


__all__ = ["RemoveUnusedOutputs"]
