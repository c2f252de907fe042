"""Questions about Relax programs: variables, uses, purity, struct info; under TVM's names.

Well-formedness is in `well_formed.py` and part of this namespace.
"""

from __future__ import annotations

from typing import Any

from ..ir.module import GlobalVar, IRModule
from ..tir import expr as E
from ..tir.function import PrimFunc
from .expr import (
    Binding, Call, DataflowBlock, Expr, ExternFunc, Function, MatchCast, Op, Var, VarBinding,
)
from .expr_functor import PyExprVisitor, post_order_visit
from .normal import derive_call
from .op.registry import OPERATORS
from .struct_info import (
    BaseCheckResult, FuncStructInfo, ObjectStructInfo, PrimStructInfo, ShapeStructInfo, StructInfo,
    TensorStructInfo, TupleStructInfo, definable_tir_vars, erase_to_well_defined,
    struct_info_base_check, struct_info_lca, tir_vars_in_struct_info,
)
from .well_formed import check_function, verify_well_formed, well_formed


class _Variables(PyExprVisitor):
    """Collects the variables of an expression: used, bound, and the GlobalVars."""

    def __init__(self) -> None:
        self.used: dict[Var, None] = {}
        self.bound: dict[Var, None] = {}
        self.globals: dict[GlobalVar, None] = {}
        self.called: dict[GlobalVar, None] = {}

    def visit_var_(self, expr: Var) -> None:
        self.used[expr] = None

    visit_dataflow_var_ = visit_var_

    def visit_global_var_(self, expr: GlobalVar) -> None:
        self.globals[expr] = None

    def visit_var_def_(self, var: Any) -> None:
        self.bound[var] = None

    visit_dataflow_var_def_ = visit_var_def_

    def visit_call_(self, expr: Call) -> None:
        if isinstance(expr.op, GlobalVar):
            self.called[expr.op] = None
        super().visit_call_(expr)


def _variables(expr: Expr) -> _Variables:
    found = _Variables()
    found.visit_expr(expr)
    return found


def all_vars(expr: Expr) -> list[Var]:
    """Every variable that is bound or used, in order of first appearance."""
    found = _variables(expr)
    return list({**found.bound, **found.used})


def bound_vars(expr: Expr) -> list[Var]:
    """Every variable that is bound: parameters and bindings."""
    return list(_variables(expr).bound)


def free_vars(expr: Expr) -> list[Var]:
    """Every variable that is used and not bound."""
    found = _variables(expr)
    return [v for v in found.used if v not in found.bound]


def all_global_vars(expr: Expr) -> list[GlobalVar]:
    """Every function of the module that is mentioned."""
    return list(_variables(expr).globals)


def called_global_vars(expr: Expr) -> list[GlobalVar]:
    """Every function of the module that is called directly."""
    return list(_variables(expr).called)


def _bindings(func: Function) -> list[Binding]:
    found: list[Binding] = []

    class Collect(PyExprVisitor):
        def visit_var_binding_(self, binding: VarBinding) -> None:
            found.append(binding)
            super().visit_var_binding_(binding)

        def visit_match_cast_(self, binding: MatchCast) -> None:
            found.append(binding)
            super().visit_match_cast_(binding)

    if isinstance(func, DataflowBlock):
        Collect().visit_binding_block(func)
    else:
        Collect().visit_expr(func)
    return found


def get_var2val(func: Function) -> dict[Var, Expr]:
    """What each variable of a function is bound to."""
    return {b.var: b.value for b in _bindings(func)}


def name_to_binding(func: Function) -> dict[str, list[Binding]]:
    """The bindings of a function by the names of their variables."""
    found: dict[str, list[Binding]] = {}
    for b in _bindings(func):
        found.setdefault(b.var.name_hint, []).append(b)
    return found


def udchain(dfb: Any) -> dict[Var, list[Var]]:
    """For each variable of a dataflow block (or function) the variables whose values use it."""
    chain: dict[Var, list[Var]] = {}
    for b in _bindings(dfb):
        for var in _variables(b.value).used:
            users = chain.setdefault(var, [])
            if b.var not in users:
                users.append(b.var)
        chain.setdefault(b.var, [])
    return chain


def free_symbolic_vars(func: Function) -> list[E.Var]:
    """Symbolic variables that a function uses and does not define. What functions inside of it
    define themselves is not its own."""
    free = [v for v in _symbolic_vars(func) if v not in set(defined_symbolic_vars(func))]
    return [v for v in free if v in _used_outside_of_definitions(func)] if free else free


def _used_outside_of_definitions(func: Function) -> set[E.Var]:
    """Symbolic variables of a function, of functions inside of it only the free ones."""
    found = {v for p in func.params for v in tir_vars_in_struct_info(p.struct_info_)}
    found.update(tir_vars_in_struct_info(func.ret_struct_info))
    stack: list[Any] = [func.body]
    while stack:
        item = stack.pop()
        if isinstance(item, Function):
            found.update(free_symbolic_vars(item))
            continue
        info = getattr(item, "struct_info_", None)
        if info is not None and not isinstance(info, FuncStructInfo):
            found.update(tir_vars_in_struct_info(info))
        stack.extend(item.children())
    return found


def defined_symbolic_vars(func: Function) -> list[E.Var]:
    """Symbolic variables that the parameters and match_casts of a function define."""
    found: dict[E.Var, None] = {}
    for p in func.params:
        found.update(dict.fromkeys(definable_tir_vars(p.struct_info_)))
    for b in _bindings(func):
        if isinstance(b, MatchCast):
            found.update(dict.fromkeys(definable_tir_vars(b.struct_info)))
    return list(found)


def _symbolic_vars(func: Function) -> list[E.Var]:
    found: dict[E.Var, None] = {}

    def note(expr: Expr) -> None:
        info = getattr(expr, "struct_info_", None)
        if info is not None and not isinstance(expr, (Function, ExternFunc)):
            found.update(dict.fromkeys(tir_vars_in_struct_info(info)))

    for p in func.params:
        note(p)
    post_order_visit(func.body, note)
    found.update(dict.fromkeys(tir_vars_in_struct_info(func.ret_struct_info)))
    return list(found)


# ------------------------------------------------------------------------------- purity


def is_impure_call(call: Expr) -> bool:
    """Whether a call may have effects."""
    if not isinstance(call, Call):
        return False
    if isinstance(call.op, Op):
        row = OPERATORS.get(call.op.name)
        return row is not None and not row.pure
    info = getattr(call.op, "struct_info_", None)
    return not (isinstance(info, FuncStructInfo) and info.purity)


class _Impure(PyExprVisitor):
    def __init__(self, own_name: GlobalVar | None) -> None:
        self.own = own_name
        self.found: Call | None = None

    def visit_call_(self, expr: Call) -> None:
        if self.found is None and expr.op is not self.own and is_impure_call(expr):
            self.found = expr
        super().visit_call_(expr)

    def visit_function_(self, expr: Function) -> None:
        """What a function inside does happens when it is called."""


def find_impure_call(expr: Expr, own_name: GlobalVar | None = None) -> Call | None:
    """The first call in an expression or function body that may have effects, or None."""
    finder = _Impure(own_name)
    finder.visit_expr(expr.body if isinstance(expr, Function) else expr)
    return finder.found


def contains_impure_call(expr: Expr, own_name: GlobalVar | None = None) -> bool:
    """Whether an expression or function body holds a call that may have effects.

    Calls of `own_name` (a recursive function's own variable) do not count.
    """
    return find_impure_call(expr, own_name) is not None


# ------------------------------------------------------------------------------- further


def computable_at_compile_time(func: Function) -> list[Var]:
    """The variables whose values depend only on the weights of a function.

    The weights are the parameters after the first `num_input` ones (an attribute).
    """
    count = (func.attrs or {}).get("num_input")
    if count is None:
        return []
    known: dict[Var, None] = dict.fromkeys(func.params[int(count):])
    for b in _bindings(func):
        used = _variables(b.value).used
        if all(v in known for v in used) and not contains_impure_call(b.value):
            known[b.var] = None
    return list(known)


def detect_recursion(mod: IRModule) -> list[list[GlobalVar]]:
    """Groups of functions that call each other, directly or around a circle (Tarjan)."""
    calls = {v: [g for g in all_global_vars(f) if g in mod.functions]
             for v, f in mod.functions.items() if isinstance(f, Function)}
    index: dict[GlobalVar, int] = {}
    low: dict[GlobalVar, int] = {}
    stack: list[GlobalVar] = []
    groups: list[list[GlobalVar]] = []

    def connect(v: GlobalVar) -> None:
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in calls.get(v, ()):
            if w not in index:
                connect(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            group = stack[stack.index(v):]
            del stack[stack.index(v):]
            if len(group) > 1 or v in calls.get(v, ()):
                groups.append(sorted(group, key=lambda g: g.name_hint))

    for v in calls:
        if v not in index:
            connect(v)
    return groups


def remove_all_unused(func: Any) -> Any:
    """A function, or its body (a SeqExpr), without bindings that nothing uses."""
    from .transform.dead_code_elimination import remove_all_unused as clean

    return clean(func)


def has_reshape_pattern(func: PrimFunc) -> bool:
    """Whether a PrimFunc only moves its input to another shape, element by element in order."""
    from .transform.rewrite_dataflow_reshape import has_reshape_pattern as check

    return check(func)


def derive_call_ret_struct_info(func_sinfo: FuncStructInfo, call: Call, ctx: Any = None
                                ) -> StructInfo:
    """The struct info of a call of a function of known struct info."""
    return derive_call(func_sinfo, call)


def get_static_type(info: StructInfo) -> StructInfo:
    """A struct info without dimensions and values: what TVM's static types say."""
    if isinstance(info, TensorStructInfo):
        return TensorStructInfo(None, info.dtype, ndim=info.ndim)
    if isinstance(info, ShapeStructInfo):
        return ShapeStructInfo(ndim=info.ndim)
    if isinstance(info, PrimStructInfo):
        return PrimStructInfo(info.dtype)
    if isinstance(info, TupleStructInfo):
        return TupleStructInfo(list(map(get_static_type, info.fields_)))
    if isinstance(info, FuncStructInfo) and info.params is not None:
        return FuncStructInfo(list(map(get_static_type, info.params)), get_static_type(info.ret),
                              info.purity)
    return info if isinstance(info, FuncStructInfo) else ObjectStructInfo()


definable_tir_vars_in_struct_info = definable_tir_vars


__all__ = [
    "BaseCheckResult", "all_global_vars", "all_vars", "bound_vars",
    "called_global_vars", "check_function", "computable_at_compile_time", "contains_impure_call",
    "definable_tir_vars_in_struct_info", "defined_symbolic_vars", "derive_call_ret_struct_info",
    "detect_recursion", "erase_to_well_defined", "find_impure_call", "free_symbolic_vars",
    "free_vars", "get_static_type", "get_var2val", "has_reshape_pattern", "is_impure_call",
    "name_to_binding", "post_order_visit", "remove_all_unused", "struct_info_base_check",
    "struct_info_lca", "tir_vars_in_struct_info", "udchain", "verify_well_formed", "well_formed",
]
