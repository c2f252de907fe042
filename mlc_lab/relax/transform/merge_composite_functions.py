"""MergeCompositeFunctions: neighbouring composite functions of one library become one call.

FuseOpsByPattern makes functions marked `Composite`; here those of one library that feed each other
are put into one function marked `Codegen`, so that the library sees as much of the graph as
possible. Two are merged only where no way from one to the other leads outside of the group.

before::

    @R.function(private=True)
    def exp(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Composite": "lib.exp", "Primitive": 1})
        with R.dataflow():
            gv = R.exp(x)
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        with R.dataflow():
            lv: R.Tensor((4,), "float32") = cls.exp(x)
            gv: R.Tensor((4,), "float32") = cls.exp(lv)
            R.output(gv)
        return gv

after `MergeCompositeFunctions()`::

    @R.function
    def fused_exp_exp_lib(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Codegen": "lib"})
        @R.function
        def gv(x_1: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            R.func_attr({"Composite": "lib.exp"})
            with R.dataflow():
                gv_1 = R.exp(x_1)
                R.output(gv_1)
            return gv_1

        lv: R.Tensor((4,), "float32") = gv(x)
        @R.function
        def gv1(x_2: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            R.func_attr({"Composite": "lib.exp"})
            with R.dataflow():
                gv_2 = R.exp(x_2)
                R.output(gv_2)
            return gv_2

        output: R.Tensor((4,), "float32") = gv1(lv)
        return output

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        with R.dataflow():
            gv: R.Tensor((4,), "float32") = cls.fused_exp_exp_lib(x)
            R.output(gv)
        return gv
"""

from __future__ import annotations

from ...ir.module import normalize_attrs
from .dead_code_elimination import remove_unused_functions
from .fuse_ops_by_pattern import codegen_of
from .grouping import Group, fuse_groups
from .rewriting import (
    BindingBlock, Call, DataflowBlock, DataflowVar, Function, GlobalVar, IRModule, Pass,
    PassContext, Replacer, SeqExpr, Var, VarBinding, attr, copy_function, is_exported, make_pass,
    replace_functions, used_vars,
)


def MergeCompositeFunctions() -> Pass:
    """Merge calls of composite functions of one library."""
    return make_pass("MergeCompositeFunctions", _run, MergeCompositeFunctions.__doc__)


def _run(mod: IRModule, ctx: PassContext) -> IRModule:
    composites = {v: f for v, f in mod.functions.items()
                  if isinstance(f, Function) and attr(f, "Composite")}
    if not composites:
        return mod
    new, changes = mod.copy(), {}
    for var, func in mod.functions.items():
        if isinstance(func, Function) and var not in composites and not attr(func, "Codegen"):
            groups = _groups(func, composites)
            if groups:
                changes[var] = fuse_groups(new, func, groups,
                                           finish=lambda f: _localize(f, composites))
    if not changes:
        return mod
    new = replace_functions(new, changes)
    for var, func in new.functions.items():
        if isinstance(func, Function) and attr(func, "Codegen") and not is_exported(func):
            new.functions[var] = func.with_attr("global_symbol", var.name_hint)
    return remove_unused_functions(new)


def _groups(func: Function, composites: dict[GlobalVar, Function]) -> dict[Var, Group]:
    groups: dict[Var, Group] = {}
    for block in func.body.blocks if type(func.body) is SeqExpr else ():
        if type(block) is DataflowBlock:
            groups.update(_groups_of_block(block, composites))
    return groups


def _groups_of_block(block: DataflowBlock, composites: dict) -> dict[Var, Group]:
    """Greedy: a call joins the group of an argument unless that closes a circle.

    `behind[var]` holds the groups that a value depends on through something outside of them.
    """
    groups: dict[Var, Group] = {}
    library: dict[Group, str] = {}
    behind: dict[Var, set[Group]] = {}
    for binding in block.bindings:
        value = binding.value
        uses = [v for v in dict.fromkeys(used_vars(binding)) if v in behind]
        inherited = {g for v in uses for g in behind[v]}
        direct = {groups[v] for v in uses if v in groups}
        if type(value) is not Call or value.op not in composites:
            behind[binding.var] = inherited | direct
            continue
        name = codegen_of(composites[value.op])
        joinable = [g for g in dict.fromkeys(groups[v] for v in uses if v in groups)
                    if library[g] == name and g not in inherited]
        if not joinable:
            group = Group(normalize_attrs({"Codegen": name}))
            library[group] = name
        else:
            group = joinable[0]
            for other in joinable[1:]:
                if not _depends(group, other, behind) and not _depends(other, group, behind):
                    _absorb(group, other, groups, behind)
        group.bindings.append(binding)
        groups[binding.var] = group
        # what the whole group waits for, all of its values wait for
        outside = (inherited | (direct - {group})) - {group}
        for b in group.bindings:
            behind[b.var] = behind.get(b.var, set()) | outside
        for seen in behind.values():
            if group in seen:
                seen |= outside
    for group in set(groups.values()):
        group.name = f"{group.title()}_{library[group]}"
    return groups


def _depends(group: Group, other: Group, behind: dict) -> bool:
    return any(other in behind[b.var] for b in group.bindings)


def _absorb(group: Group, other: Group, groups: dict, behind: dict) -> None:
    group.bindings += other.bindings
    for b in other.bindings:
        groups[b.var] = group
    for seen in behind.values():
        if other in seen:
            seen.discard(other)
            seen.add(group)


def _localize(func: Function, composites: dict[GlobalVar, Function]) -> Function:
    """The function with the composite functions that it calls inside it, each before its call."""
    block = func.body.blocks[0]
    plain = {b.var: Var(b.var.name_hint, b.var.struct_info_) for b in block.bindings
             if type(b.var) is DataflowVar}
    replace = Replacer(plain)
    out = []
    for index, binding in enumerate(block.bindings):
        binding = replace(binding)
        call = binding.value
        if type(call) is Call and call.op in composites:
            inner = copy_function(composites[call.op])
            inner = Function.from_fields(inner.params, inner.body, inner.ret_struct_info,
                                         inner.is_pure,
                                         {k: v for k, v in inner.attrs.items()
                                          if k not in ("Primitive", "global_symbol")})
            local = Var(f"gv{index or ''}", inner.struct_info_)
            out.append(VarBinding(local, inner))
            binding = VarBinding(binding.var, Call.from_fields(
                local, call.args, call.attrs, call.sinfo_args, call.struct_info_))
        out.append(binding)
    body = SeqExpr([BindingBlock(out)], replace(func.body.body))
    return Function.from_fields(func.params, body, func.ret_struct_info, func.is_pure, func.attrs)


__all__ = ["MergeCompositeFunctions"]
