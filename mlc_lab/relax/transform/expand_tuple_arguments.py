"""ExpandTupleArguments: private functions take the items of a tuple one by one.

before::

    @R.function(private=True)
    def f(t: R.Tuple(R.Tensor((4,), "float32"),
                     R.Tensor((4,), "float32"))) -> R.Tensor((4,), "float32"):
        a = t[0]
        b = t[1]
        c = R.add(a, b)
        return c

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        gv: R.Tensor((4,), "float32") = cls.f((x, x))
        return gv

after `ExpandTupleArguments()`::

    @R.function(private=True)
    def f(t_0: R.Tensor((4,), "float32"),
          t_1: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        c = R.add(t_0, t_1)
        return c

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        gv: R.Tensor((4,), "float32") = cls.f(x, x)
        return gv
"""

from __future__ import annotations

from ..normal import merge_blocks
from .canonicalize_bindings import canonicalize
from .dead_code_elimination import remove_all_unused
from .normalize import normalize_functions
from .rewriting import (
    BindingBlock, Expr, Function, IRModule, Pass, PassContext, SeqExpr, Tuple, TupleGetItem,
    TupleStructInfo, Var, VarBinding, make_pass,
)
from .signatures import change_signatures, private_callees


def ExpandTupleArguments() -> Pass:
    """Spread tuple parameters of private functions."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        changes, calls = {}, {}
        for var, func in private_callees(mod).items():
            infos = [p.struct_info_ for p in func.params]
            if any(isinstance(i, TupleStructInfo) for i in infos) and type(func.body) is SeqExpr:
                changes[var] = _expand(func)
                calls[var] = lambda args, infos=infos: [
                    x for a, i in zip(args, infos) for x in _spread(a, i)]
        return normalize_functions(change_signatures(mod, changes, calls), mod)

    return make_pass("ExpandTupleArguments", run, ExpandTupleArguments.__doc__)


def _expand(func: Function) -> Function:
    params: list[Var] = []
    bindings: list[VarBinding] = []
    for p in func.params:
        if isinstance(p.struct_info_, TupleStructInfo):
            bindings.append(VarBinding(p, _together(p.name_hint, p.struct_info_, params)))
        else:
            params.append(p)
    blocks = merge_blocks((BindingBlock(bindings), *func.body.blocks))
    body = SeqExpr(blocks, func.body.body)
    return remove_all_unused(canonicalize(Function.from_fields(
        tuple(params), body, func.ret_struct_info, func.is_pure, func.attrs)))


def _together(name: str, info: TupleStructInfo, params: list[Var]) -> Tuple:
    """The tuple put together from new parameters."""
    fields: list[Expr] = []
    for index, item in enumerate(info.fields_):
        if isinstance(item, TupleStructInfo):
            fields.append(_together(f"{name}_{index}", item, params))
        else:
            param = Var(f"{name}_{index}", item)
            fields.append(param)
            params.append(param)
    return Tuple(fields)


def _spread(arg: Expr, info: object) -> list[Expr]:
    """The items of an argument, tuples in it spread as well."""
    if not isinstance(info, TupleStructInfo):
        return [arg]
    items = arg.fields_ if type(arg) is Tuple else [
        TupleGetItem(arg, i) for i in range(len(info.fields_))]
    return [x for item, i in zip(items, info.fields_) for x in _spread(item, i)]


__all__ = ["ExpandTupleArguments"]
