"""KillAfterLastUse: what is not used again is let go, so that its memory is free.

before::

    @R.function(pure=False)
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        s = R.memory.alloc_storage(
            R.shape([32]), R.prim_value(0), R.str("global"), R.dtype("float32"))
        a = R.memory.alloc_tensor(
            s, R.prim_value(0), R.shape([8]), R.dtype("float32"), R.prim_value(0))
        b = a
        R.call_packed("env.fill", b, sinfo_args=(R.Tuple,))
        y = R.add(x, b)
        return y

after `KillAfterLastUse()`::

    @R.function(pure=False)
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        s = R.memory.alloc_storage(
            R.shape([32]), R.prim_value(0), R.str("global"), R.dtype("float32"))
        a = R.memory.alloc_tensor(
            s, R.prim_value(0), R.shape([8]), R.dtype("float32"), R.prim_value(0))
        R.memory.kill_storage(s)
        R.call_packed("env.fill", a, sinfo_args=(R.Tuple,))
        y = R.add(x, a)
        R.memory.kill_tensor(a)
        return y
"""

from __future__ import annotations

from ...ir.module import IRModule
from ...ir.transform import Pass
from ..expr import Binding, BindingBlock, Expr, Function, SeqExpr, Var, VarBinding
from ..op import memory, vm
from ..struct_info import TensorStructInfo, TupleStructInfo
from .lowering import for_effect
from .rewriting import Replacer, make_function_pass, op_name, used_vars

_STORAGE = {"relax.memory.alloc_storage", "relax.vm.alloc_storage"}


def _without_second_names(func: Function) -> Function:
    """`y = x` removed, `x` in place of `y`."""
    names: dict[Var, Var] = {}
    if type(func.body) is not SeqExpr:
        return func
    blocks = []
    for block in func.body.blocks:
        kept = []
        for binding in block.bindings:
            value = binding.value
            if type(binding) is VarBinding and isinstance(value, Var):
                names[binding.var] = names.get(value, value)
            else:
                kept.append(binding)
        blocks.append(BindingBlock(kept))
    if not names:
        return func
    replace = Replacer(names)
    seq = SeqExpr.from_fields(tuple(blocks), func.body.body, func.body.struct_info_)
    return func.replace(body=replace(seq))


def _rewrite(func: Function, mod: IRModule) -> Function:
    func = _without_second_names(func)
    body = func.body
    if type(body) is not SeqExpr:
        return func
    bindings = [b for block in body.blocks for b in block.bindings]
    last: dict[Var, int] = {}
    for at, binding in enumerate(bindings):
        for var in used_vars(binding.value):
            last[var] = at
    kept = set(used_vars(body.body)) | set(func.params)
    ends: dict[int, list[Binding]] = {}
    for at, binding in enumerate(bindings):
        if binding.var not in kept:
            ends.setdefault(max(last.get(binding.var, at), at), []).append(binding)
    out: list[Binding] = []
    for at, binding in enumerate(bindings):
        out.append(binding)
        for dead in ends.get(at, ()):
            call = _kill(dead)
            if call is not None:
                out.append(for_effect(call))
    if len(out) == len(bindings):
        return func
    seq = SeqExpr.from_fields((BindingBlock(out),), body.body, body.struct_info_)
    return func.replace(body=seq)


def _kill(binding: Binding) -> Expr | None:
    """What lets go of a variable; None for one that holds nothing."""
    info = binding.var.struct_info_
    if op_name(binding.value).startswith("relax.memory.kill"):
        return None
    if isinstance(info, TupleStructInfo) and not info.fields_:
        return None
    if op_name(binding.value) in _STORAGE:
        return memory.kill_storage(binding.var)
    if isinstance(info, TensorStructInfo):
        return memory.kill_tensor(binding.var)
    return vm.kill_object(binding.var)


def KillAfterLastUse() -> Pass:
    """What is not used again is let go, so that its memory is free.

    The file's text has an example.
    """
    return make_function_pass("KillAfterLastUse", _rewrite, __doc__)
