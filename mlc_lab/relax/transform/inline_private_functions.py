"""InlinePrivateFunctions: the body of a private function takes the place of its calls.

Recursive functions and those marked `Primitive`, `Composite` or `Codegen` stay.

before::

    @R.function(private=True)
    def f(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.exp(x)
        return y

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        gv: R.Tensor((4,), "float32") = cls.f(x)
        return gv

after `InlinePrivateFunctions()`::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.exp(x)
        return y
"""

from __future__ import annotations

from typing import Any, Mapping

from ..normal import match_struct_info
from .canonicalize_bindings import canonicalize
from .dead_code_elimination import remove_unused_functions
from .fuse_ops import is_kernel
from .rewriting import (
    Binding, BindingBlock, Call, DataflowBlock, DataflowVar, Function, GlobalVar, IRModule, Pass,
    PassContext, Replacer, SeqExpr, Var, VarBinding, bound_vars, join_blocks, make_pass, map_blocks,
    replace_functions, used_globals, with_body,
)
from .signatures import private_callees


def InlinePrivateFunctions() -> Pass:
    """Inline private Relax functions where they are called."""
    return make_pass("InlinePrivateFunctions", _run, InlinePrivateFunctions.__doc__)


def _run(mod: IRModule, ctx: PassContext) -> IRModule:
    inlined = {v: f for v, f in private_callees(mod).items()
               if not is_kernel(f) and type(f.body) is SeqExpr and not _recursive(mod, v)}
    if not inlined:
        return mod
    changes = {}
    for var, func in mod.functions.items():
        if isinstance(func, Function):
            done = inline_calls(func, inlined)
            if done is not func:
                changes[var] = canonicalize(done)
    return remove_unused_functions(replace_functions(mod, changes))


def _recursive(mod: IRModule, var: GlobalVar) -> bool:
    seen: set[GlobalVar] = set()
    stack = list(used_globals(mod.functions[var]))
    while stack:
        callee = stack.pop()
        if callee is var:
            return True
        if callee not in seen and callee in mod.functions:
            seen.add(callee)
            stack.extend(used_globals(mod.functions[callee]))
    return False


def inline_functions(func: Function, function_map: Mapping[Any, Function]) -> Function:
    """The function with calls replaced by the bodies of what is called; by name or GlobalVar.

    Raises ValueError where a function is given twice, or would be inlined into itself.
    """
    by_name: dict[str, Function] = {}
    for key, body in function_map.items():
        name = key if isinstance(key, str) else key.name_hint
        if name in by_name:
            raise ValueError(f"inline_functions: {name!r} is given twice, by name and as GlobalVar")
        if not isinstance(body, Function):
            raise ValueError(f"inline_functions: {name!r} is no Relax function but a "
                             f"{type(body).__name__}")
        by_name[name] = body

    def callees(inside: Function) -> list[GlobalVar]:
        return [v for v in used_globals(inside) if v.name_hint in by_name]

    found: dict[GlobalVar, Function] = {}
    stack = callees(func)
    while stack:
        var = stack.pop()
        if var not in found:
            found[var] = by_name[var.name_hint]
            stack += callees(found[var])
    for var in found:
        reached, stack = set(), callees(found[var])
        while stack:
            name = stack.pop().name_hint
            if name == var.name_hint:
                raise ValueError(f"inline_functions: {name!r} calls itself, and cannot be inlined")
            if name not in reached:
                reached.add(name)
                stack += callees(by_name[name])
    done = inline_calls(func, found) if found else func
    return func if done is func else canonicalize(done)


def inline_calls(func: Function, inlined: dict[GlobalVar, Function]) -> Function:
    """The function with calls of some functions of the module replaced by their bodies."""
    def expand(block: BindingBlock) -> BindingBlock | list[BindingBlock]:
        if not any(type(b.value) is Call and b.value.op in inlined for b in block.bindings):
            return block
        dataflow = type(block) is DataflowBlock
        out: list[BindingBlock] = []
        run: list[Binding] = []
        for binding in block.bindings:
            value = binding.value
            if type(value) is not Call or value.op not in inlined:
                run.append(binding)
                continue
            callee = inline_calls(inlined[value.op], inlined)
            body = _instance(callee, value, dataflow)
            if dataflow:
                run += [b for inner in body.blocks for b in inner.bindings]
            else:
                if run:
                    out.append(BindingBlock(run))
                out += body.blocks
                run = []
            run.append(VarBinding(binding.var, body.body))
        return [*out, type(block)(run)] if run else out

    body = map_blocks(func.body, expand)
    if body is func.body:
        return func
    return with_body(func, SeqExpr(join_blocks(body.blocks), body.body))


def _instance(callee: Function, call: Call, dataflow: bool) -> SeqExpr:
    """The body of a function for one call, with variables of its own."""
    dims: dict = {}
    for param, arg in zip(callee.params, call.args):
        if arg.struct_info_ is not None:
            match_struct_info(param.struct_info, arg.struct_info_, dims)
    replace = Replacer(dict(zip(callee.params, call.args)),
                       {k: v for k, v in dims.items() if k is not v}, fresh=True)
    if dataflow:  # all variables of the inlined body stay inside the block
        for var in bound_vars(callee.body):
            if type(var) is Var:
                replace.vars[var] = DataflowVar(var.name_hint, replace.info(var.struct_info_))
    return replace(callee.body)


__all__ = ["InlinePrivateFunctions", "inline_calls", "inline_functions"]
