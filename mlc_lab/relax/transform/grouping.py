"""Groups of bindings become functions: what FuseOps, FuseOpsByPattern and others share.

A group's function takes what the group uses from outside, in order of first use, and gives what is
used outside of the group: one value, or a tuple of several.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

from ...ir.diagnostics import MLCError
from ...tir import expr as E
from ...tir.functor import free_vars
from ..normal import merge_blocks
from ..struct_info import prims_of, tir_vars_in_struct_info
from .rewriting import (
    Binding, Call, Constant, DataflowBlock, DataflowVar, Expr, Function, GlobalVar, IRModule,
    MatchCast, PrimValue, Replacer, SeqExpr, ShapeExpr, ShapeStructInfo, Tuple, TupleGetItem, Var,
    VarBinding, add_function, is_call_tir, is_pure_call, op_name, used_vars, walk, with_body,
)


class Group:
    """Bindings that become one function, in program order, and the function's attributes."""

    __slots__ = ("bindings", "attrs", "name")

    def __init__(self, attrs: Mapping[str, Any], name: str = "") -> None:
        self.bindings: list[Binding] = []
        self.attrs, self.name = dict(attrs), name

    def title(self) -> str:
        """A name made of those of the operators, as TVM's."""
        if self.name:
            return self.name
        parts = []
        for binding in self.bindings:
            value = binding.value
            if is_call_tir(value):
                parts.append(value.args[0].name_hint)
            elif type(value) is Call and type(value.op) is GlobalVar:
                parts.append(value.op.name_hint.removeprefix("fused_"))
            elif op_name(value):
                parts.append(op_name(value).replace(".", "_"))
        return "_".join(["fused", *parts])


class GroupError(MLCError, ValueError):
    """Groups that cannot be functions: the result of one is needed to compute its own input."""


def fuse_groups(mod: IRModule, func: Function, groups: Mapping[Var, Group],
                lift_constants: bool = True,
                finish: Callable[[Function], Function] | None = None) -> Function:
    """`func` with the bindings of each group replaced by a call of a new function.

    `groups` maps the variable of a binding to its group; bindings it does not mention stay. The new
    functions are added to `mod`. With `lift_constants` constants become arguments of the function,
    otherwise they stay inside. Raises GroupError where groups depend on each other in a circle.
    """
    if not groups:
        return func
    external = _external_uses(func, groups)
    blocks = []
    for block in func.body.blocks:
        if type(block) is DataflowBlock and any(b.var in groups for b in block.bindings):
            block = _BlockFuser(mod, block, groups, external, lift_constants, finish).run()
        blocks.append(block)
    return with_body(func, SeqExpr.from_fields(tuple(merge_blocks(blocks)), func.body.body,
                                               func.body.struct_info_))


def _external_uses(func: Function, groups: Mapping[Var, Group]) -> set[Var]:
    """The variables of groups that are used outside of their group."""
    found = {v for v in groups if type(v) is not DataflowVar}
    for block in func.body.blocks:
        for binding in block.bindings:
            own = groups.get(binding.var)
            for var in used_vars(binding):
                if var in groups and groups[var] is not own:
                    found.add(var)
    found.update(v for v in used_vars(func.body.body) if v in groups)
    return found


class _BlockFuser:
    """Rewrites one dataflow block: a group is called where its first binding stood."""

    def __init__(self, mod: IRModule, block: DataflowBlock, groups: Mapping[Var, Group],
                 external: set[Var], lift_constants: bool,
                 finish: Callable[[Function], Function] | None) -> None:
        self.mod, self.block, self.groups = mod, block, groups
        self.external, self.lift, self.finish = external, lift_constants, finish
        self.where = {b.var: b for b in block.bindings}
        self.done: set[Any] = set()
        self.active: set[Any] = set()
        self.out: list[Binding] = []

    def run(self) -> DataflowBlock:
        """The block with groups replaced by calls."""
        for binding in self.block.bindings:
            self.emit(self.groups.get(binding.var) or binding)
        return DataflowBlock(self.out)

    def emit(self, unit: Any) -> None:
        """Emit a binding or a group after all that it needs."""
        if unit in self.done:
            return
        if unit in self.active:
            name = unit.title() if isinstance(unit, Group) else unit.var.name_hint
            raise GroupError(f"the bindings grouped as {name!r} cannot be one function: between "
                             "two of them stands a binding that needs the first and gives to the "
                             "second, and it is outside of the group")
        self.active.add(unit)
        bindings = unit.bindings if isinstance(unit, Group) else (unit,)
        for binding in bindings:
            for var in used_vars(binding):
                if var in self.where:
                    other = self.groups.get(var) or self.where[var]
                    if other is not unit:
                        self.emit(other)
        self.active.discard(unit)
        self.done.add(unit)
        if isinstance(unit, Group):
            self.call(unit)
        else:
            self.out.append(unit)

    def call(self, group: Group) -> None:
        """Make the group's function and bind its results to the variables they had."""
        items = self.items_outside(group.bindings)
        outputs = [b.var for b in group.bindings if b.var in self.external and b not in items]
        if not outputs:  # nothing uses the group: it is dropped
            return
        self.out += items
        func, args = make_function(group.bindings, outputs, group.attrs, self.lift, items)
        if self.finish is not None:
            func = self.finish(func)
        callee = add_function(self.mod, func, group.title(), reuse=True)
        if len(outputs) == 1:
            info = outputs[0].struct_info_
            self.out.append(VarBinding(outputs[0], Call.from_fields(callee, args, None, (), info)))
            return
        result = Tuple(outputs)
        both = DataflowVar("lv", result.struct_info_)
        self.out.append(VarBinding(both, Call.from_fields(callee, args, None, (),
                                                          result.struct_info_)))
        for index, var in enumerate(outputs):
            self.out.append(VarBinding(var, TupleGetItem(both, index)))

    @staticmethod
    def items_outside(bindings: list[Binding]) -> list[Binding]:
        """The bindings of a group that take an item of a tuple from outside of it.

        They stay outside, so that the function takes tensors.
        """
        inside = {b.var for b in bindings}
        items = []
        for b in bindings:
            if type(b.value) is TupleGetItem and b.value.tuple_value not in inside:
                items.append(b)
                inside.discard(b.var)
        return items


def make_function(bindings: Sequence[Binding], outputs: Sequence[Var], attrs: Mapping[str, Any],
                  lift_constants: bool = True, items: Sequence[Binding] = ()
                  ) -> tuple[Function, tuple]:
    """The function of some bindings and the arguments that it is called with.

    The function has variables of its own. `items` are bindings that stay outside: it takes their
    variables. Symbolic dimensions that no argument's shape defines are passed as a last argument,
    a shape.
    """
    inside = {b.var for b in bindings if b not in items}
    params: dict[Any, Var] = {}
    table: dict[Var, Expr] = {}
    for binding in bindings:
        if binding in items:
            item: Any = binding.value
            name = f"{item.tuple_value.name_hint}_{item.index}"
            params[binding.var] = table[binding.var] = Var(name, binding.var.struct_info_)
            continue
        for leaf in _arguments(binding):
            if isinstance(leaf, Var):
                if leaf not in inside and leaf not in params:
                    params[leaf] = table[leaf] = Var(leaf.name_hint, leaf.struct_info_)
            elif lift_constants and leaf not in params:
                number = sum(type(p) is Constant for p in params)
                params[leaf] = Var(f"param_{number}", leaf.struct_info_)
    bindings = [b for b in bindings if b not in items]
    for binding in bindings:
        kind = Var if binding.var in outputs else DataflowVar
        name = binding.var.name_hint
        if kind is Var:
            name = "gv" if len(outputs) == 1 else f"gv{list(outputs).index(binding.var) or ''}"
        table[binding.var] = kind.from_fields(name, binding.var.struct_info_)
    replace = _Lift(table, {leaf: p for leaf, p in params.items() if type(leaf) is Constant})
    new = [replace(b) for b in bindings]
    results = [table[v] for v in outputs]
    result = results[0] if len(results) == 1 else Tuple(results)
    body = SeqExpr([DataflowBlock(new)], result)
    args, new_params = list(params), list(params.values())
    _pass_dims(bindings, args, new_params)
    pure = all(is_pure_call(n) for b in bindings for n in walk(b) if type(n) is Call)
    func = Function.from_fields(tuple(new_params), body, result.struct_info_, pure, dict(attrs))
    return _renew_dims(func), tuple(args)


class _Lift(Replacer):
    """Replaces variables, and constants by parameters."""

    def __init__(self, table: Mapping[Var, Expr], constants: Mapping[Constant, Var]) -> None:
        super().__init__(table)
        self.constants = constants

    def _constant(self, node: Constant) -> Expr:
        return self.constants.get(node, node)

    _METHODS = {**Replacer._METHODS, Constant: _constant}


def _arguments(binding: Binding) -> list[Expr]:
    """The variables and constants of a binding, in the order in which they stand."""
    found: list[Expr] = []
    for item in walk(binding.value):
        if isinstance(item, (Var, Constant)):
            found.append(item)
    found += [v for v in used_vars(binding) if v not in found]
    return found


def dims_used(bindings: Sequence[Binding]) -> list[E.Var]:
    """The symbolic dimensions that bindings mention, in order."""
    found: dict[E.Var, None] = {}
    for binding in bindings:
        for item in walk(binding.value):
            if type(item) is ShapeExpr:
                values: Any = item.values
            elif type(item) is PrimValue:
                values = (item.value,)
            elif type(item) is Call:
                values = [p for info in item.sinfo_args for p in prims_of(info)]
            else:
                continue
            for value in values:
                if type(value) is not E.IntImm:
                    found.update(dict.fromkeys(free_vars(value)))
        found.update(dict.fromkeys(tir_vars_in_struct_info(binding.var.struct_info_)))
    return list(found)


def _pass_dims(bindings: Sequence[Binding], args: list[Expr], params: list[Var]) -> None:
    """Pass the dimensions that the arguments' shapes do not define as one more argument."""
    from ..struct_info import definable_tir_vars

    known = {v for p in params for v in definable_tir_vars(p.struct_info_)}
    known |= {v for b in bindings if type(b) is MatchCast
              for v in definable_tir_vars(b.struct_info)}
    wanted = dims_used(bindings)
    for p in params:
        wanted += [v for v in tir_vars_in_struct_info(p.struct_info_) if v not in wanted]
    missing = [v for v in wanted if v not in known]
    if missing:
        args.append(ShapeExpr(missing))
        params.append(Var("tir_vars", ShapeStructInfo(missing)))


def _renew_dims(func: Function) -> Function:
    """The function with symbolic dimensions of its own."""
    dims: dict[E.Var, None] = {}
    for param in func.params:
        dims.update(dict.fromkeys(tir_vars_in_struct_info(param.struct_info_)))
    if not dims:
        return func
    return Replacer(dims={v: type(v)(v.name, v.dtype) for v in dims})(func)


__all__ = ["Group", "GroupError", "dims_used", "fuse_groups", "make_function"]
