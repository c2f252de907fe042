"""FuseOpsByPattern: what matches a pattern becomes a function marked with the pattern's name.

Patterns are tried in the order given, each on all bindings of a function in program order; a
binding belongs to the first match that takes it. The functions carry the attribute `Composite`.
With `annotate_codegen` each stands inside a function with the attribute `Codegen`, the part of the
pattern's name before the first dot, which RunCodegen hands to the library of that name.

before::

    @R.function
    def main(x: R.Tensor((4, 8), "float32"),
             w: R.Tensor((8, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        with R.dataflow():
            lv = R.matmul(x, w)
            lv1 = R.nn.relu(lv)
            gv = R.exp(lv1)
            R.output(gv)
        return gv

after `FuseOpsByPattern([("lib.matmul_relu", is_op("relax.nn.relu")(is_op("relax.matmul")(wildcard(), wildcard())))])`::

    @R.function(private=True)
    def fused_relax_matmul_relax_nn_relu(
            x: R.Tensor((4, 8), "float32"),
            w: R.Tensor((8, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        R.func_attr({"Composite": "lib.matmul_relu", "Primitive": 1})
        with R.dataflow():
            lv = R.matmul(x, w)
            gv = R.nn.relu(lv)
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor((4, 8), "float32"),
             w: R.Tensor((8, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        cls = Module
        with R.dataflow():
            lv1: R.Tensor((4, 4), "float32") = cls.fused_relax_matmul_relax_nn_relu(x, w)
            gv = R.exp(lv1)
            R.output(gv)
        return gv
"""  # noqa: E501

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from ...ir.module import normalize_attrs
from ..dpl.pattern import CallPattern, TupleGetItemPattern, TuplePattern
from .fuse_ops import is_kernel
from .grouping import Group, GroupError, fuse_groups
from .rewriting import (
    Binding, BindingBlock, Call, DataflowBlock, Expr, Function, GlobalVar, IRModule, Pass,
    PassContext, Replacer, SeqExpr, Tuple, TupleGetItem, Var, VarBinding, add_function, attr,
    make_pass, replace_functions, used_vars,
)

if TYPE_CHECKING:
    from ..dpl.pattern import DFPattern


class FusionPattern:
    """A pattern with the name of what it fuses into.

    `annotation_patterns` names parts of the pattern for `check(context)`, which may refuse a match.
    """

    def __init__(self, name: str, pattern: DFPattern,
                 annotation_patterns: Mapping[str, Any] | None = None,
                 check: Callable[["PatternCheckContext"], bool] | None = None,
                 attrs_getter: Callable[[Mapping[str, Expr]], Mapping] | None = None) -> None:
        self.name, self.pattern, self.check = name, pattern, check
        self.annotation_patterns = dict(annotation_patterns or {})
        self.attrs_getter = attrs_getter


class PatternCheckContext:
    """What a check sees of a match.

    `matched_expr` is the whole; `annotated_expr` the named parts; `matched_bindings` maps variables
    to values inside the match; `var_usages` variables to the variables that are computed from them;
    `value_to_bound_var` values to their variables.
    """

    def __init__(self, matched_expr: Expr, annotated_expr: dict[str, Expr],
                 matched_bindings: dict[Var, Expr], var_usages: dict[Var, list[Var]],
                 value_to_bound_var: dict[Expr, Var]) -> None:
        self.matched_expr, self.annotated_expr = matched_expr, annotated_expr
        self.matched_bindings, self.var_usages = matched_bindings, var_usages
        self.value_to_bound_var = value_to_bound_var


def FuseOpsByPattern(patterns: Sequence[Any], bind_constants: bool = True,
                     annotate_codegen: bool = False,
                     entry_functions: Sequence[str] | None = None) -> Pass:
    """Group what matches patterns into functions marked `Composite`.

    `patterns` holds FusionPatterns or tuples (name, pattern[, annotation_patterns[, check]]). With
    `bind_constants` constants stay inside the functions, else they become arguments.
    """
    wanted = [p if isinstance(p, FusionPattern) else FusionPattern(*p) for p in patterns]

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        new, changes = mod.copy(), {}
        for var, func in mod.functions.items():
            if not isinstance(func, Function) or is_kernel(func) or type(func.body) is not SeqExpr:
                continue
            if entry_functions and var.name_hint not in entry_functions:
                continue
            done = func
            for pattern in wanted:
                groups = _Matcher(done, pattern).groups()
                if groups:
                    done = fuse_groups(new, done, groups, lift_constants=not bind_constants)
            if done is not func:
                changes[var] = done
        if not changes:
            return mod
        new = replace_functions(new, changes)
        return annotate_composites(new, set(mod.functions)) if annotate_codegen else new

    return make_pass("FuseOpsByPattern", run, FuseOpsByPattern.__doc__)


class _Matcher:
    """Finds the matches of one pattern in one function."""

    def __init__(self, func: Function, pattern: FusionPattern) -> None:
        self.func, self.pattern = func, pattern
        self.bindings: dict[Var, Binding] = {}
        self.values: dict[Var, Expr] = {}
        self.users: dict[Var, list[Var]] = {}
        self.block: dict[Var, BindingBlock] = {}
        for block in func.body.blocks:
            if type(block) is DataflowBlock:
                for b in block.bindings:
                    self.bindings[b.var], self.block[b.var] = b, block
                    if type(b) is VarBinding:
                        self.values[b.var] = b.value
                    for v in dict.fromkeys(used_vars(b)):
                        self.users.setdefault(v, []).append(b.var)
        self.bound = {value: var for var, value in self.values.items()}
        self.order = {var: k for k, var in enumerate(self.bindings)}
        self.found: dict[Var, Group] = {}

    def groups(self) -> dict[Var, Group]:
        """The groups, by the variables that their bindings bind."""
        for var, value in self.values.items():
            if var not in self.found and type(value) in (Call, TupleGetItem, Tuple):
                self.try_at(var, value)
        return self.found

    def try_at(self, var: Var, value: Expr) -> None:
        if type(value) is Call and type(value.op) is GlobalVar:
            return
        matched = self.pattern.pattern.extract_matched_expr(value, self.values)
        if not matched:
            return
        inside = self.bound_inside(value, matched)
        if not inside or any(v in self.found for v in inside):
            return
        if len({self.block[v] for v in inside}) > 1:  # a group is bound in one block
            return
        if any(isinstance(c := self.values[v], Call) and type(c.op) is GlobalVar for v in inside):
            return
        if not self.allowed(value, matched, inside) or not self.convex(inside):
            return
        attrs: dict[str, Any] = {"Composite": self.pattern.name, "Primitive": 1}
        if self.pattern.attrs_getter is not None:
            named = {n: matched[p] for n, p in self.pattern.annotation_patterns.items()
                     if p in matched}
            attrs.update(self.pattern.attrs_getter(named))
        group = Group(normalize_attrs(attrs))
        group.bindings = [self.bindings[v] for v in inside]
        for v in inside:
            self.found[v] = group

    def bound_inside(self, value: Expr, matched: Mapping[Any, Expr]) -> list[Var]:
        """The variables of the bindings that the match covers, in program order.

        What a wildcard or another leaf of the pattern matched is an input of the group.
        """
        inside: set[Var] = set()
        for pattern, expr in matched.items():
            if _is_leaf_pattern(pattern):
                continue
            target = expr if isinstance(expr, Var) else self.bound.get(expr)
            if target is not None and target in self.values:
                inside.add(target)
        return sorted(inside, key=self.order.__getitem__)

    def allowed(self, value: Expr, matched: Mapping[Any, Expr], inside: list[Var]) -> bool:
        """Whether the pattern's own check agrees."""
        if self.pattern.check is None:
            return True
        named = {n: matched[p] for n, p in self.pattern.annotation_patterns.items()
                 if p in matched}
        named = {n: self.values.get(e, e) if isinstance(e, Var) and e in inside else e
                 for n, e in named.items()}
        return bool(self.pattern.check(PatternCheckContext(
            value, named, {v: self.values[v] for v in inside}, self.users, self.bound)))

    def convex(self, inside: list[Var]) -> bool:
        """Whether nothing outside stands between two bindings of the match."""
        members, last = set(inside), max(map(self.order.__getitem__, inside))
        stack = [u for v in inside for u in self.users.get(v, ()) if u not in members]
        seen: set[Var] = set()
        while stack:
            var = stack.pop()
            if var in members:
                return False
            if var in seen or self.order.get(var, last + 1) > last:
                continue
            seen.add(var)
            stack.extend(self.users.get(var, ()))
        return True


def _is_leaf_pattern(pattern: DFPattern) -> bool:
    """Whether a pattern stands for an input: a wildcard, variable, constant, shape or dtype."""
    return not isinstance(pattern, (CallPattern, TupleGetItemPattern, TuplePattern))


# ------------------------------------------------------------------------------- codegen


def annotate_composites(mod: IRModule, before: set[GlobalVar] | None = None) -> IRModule:
    """Put each function marked `Composite` inside one marked `Codegen`."""
    new = mod.copy()
    renamed: dict[GlobalVar, GlobalVar] = {}
    for var, func in mod.functions.items():
        if isinstance(func, Function) and attr(func, "Composite") and (
                before is None or var not in before):
            outer = wrap_composite(func, f"{var.name_hint}_{codegen_of(func)}")
            del new[var]
            renamed[var] = add_function(new, outer, attr(outer, "global_symbol"))
    replace = Replacer(globals_=renamed)
    for var, func in list(new.functions.items()):
        if isinstance(func, Function):
            new.functions[var] = replace(func)
    return new


def codegen_of(func: Function) -> str:
    """The library of a composite function: its name up to the first dot."""
    return attr(func, "Composite").partition(".")[0]


def wrap_composite(func: Function, symbol: str) -> Function:
    """A function marked `Codegen` that holds a composite function and calls it."""
    params = [Var(p.name_hint, p.struct_info_) for p in func.params]
    inner = Function.from_fields(func.params, func.body, func.ret_struct_info, func.is_pure,
                                 {k: v for k, v in func.attrs.items() if k != "Primitive"})
    local = Var("local_func", inner.struct_info_)
    out = Var("output", func.ret_struct_info)
    call = Call.from_fields(local, tuple(params), None, (), func.ret_struct_info)
    block = BindingBlock([VarBinding(local, inner), VarBinding(out, call)])
    return Function.from_fields(tuple(params), SeqExpr([block], out), func.ret_struct_info,
                                func.is_pure, normalize_attrs({
                                    "Codegen": codegen_of(func), "global_symbol": symbol}))


__all__ = ["FuseOpsByPattern", "FusionPattern", "GroupError", "PatternCheckContext",
           "annotate_composites", "codegen_of", "wrap_composite"]
