"""Whether a Relax program keeps the rules of the language, and where it breaks one.

Each rule has a name:

undefined_variable   a variable is used where nothing binds it
bound_twice          a variable is bound by two bindings or parameters
escaping_variable    a dataflow variable is used outside its dataflow block
undefined_symbol     a dimension names a symbolic variable that nothing defines before
shared_symbol        a symbolic variable is defined by two functions of a module
unknown_function     a GlobalVar that the module does not have
not_normal           a nested value that must be bound to a variable first
no_struct_info       an expression whose struct info is not known
impure_in_dataflow   a call with effects in a dataflow block
if_in_dataflow       control flow in a dataflow block
impure_in_pure       a call with effects in a function that is declared pure
global_symbol        a function whose name in the module is not that of its global_symbol
return_type          a body that gives something else than the function declares
tir_arguments        a call_tir whose arguments do not fit the TensorIR function
"""

from __future__ import annotations

from typing import Any

from ..ir.diagnostics import WellFormedError
from ..ir.module import GlobalVar, IRModule
from ..ir.recursion import grows_stack
from ..tir import expr as E
from ..tir.function import PrimFunc
from ..tir.functor import free_vars
from ..tir.well_formed import Broken
from .expr import (
    Call, DataflowBlock, DataflowVar, Function, If, MatchCast, Op, PrimValue, SeqExpr, ShapeExpr,
    Tuple, TupleGetItem, Var, VarBinding,
)
from .expr_functor import PyExprVisitor
from .normal import is_leaf, is_leaf_tuple
from .op.common import show
from .op.registry import OPERATORS
from .struct_info import (
    BaseCheck, FuncStructInfo, StructInfo, TensorStructInfo, TupleStructInfo, definable_tir_vars,
    prims_of, struct_info_base_check, surely_different,
)


def well_formed(obj: IRModule | Function, check_struct_info: bool = True) -> bool:
    """Whether a function or module is well formed. `verify_well_formed` says why not."""
    try:
        verify_well_formed(obj, check_struct_info)
    except WellFormedError:
        return False
    return True


def verify_well_formed(obj: IRModule | Function, check_struct_info: bool = True) -> bool:
    """Raise WellFormedError at the first broken rule: its name, the place, what would help."""
    if not isinstance(obj, IRModule):
        check_function(obj, None, check_struct_info)
        return True
    for gvar, func in obj.functions.items():
        if isinstance(func, Function):
            symbol = (func.attrs or {}).get("global_symbol", gvar.name_hint)
            if symbol != gvar.name_hint:
                raise Broken("global_symbol", func, f"the function {gvar.name_hint} has the "
                             f"global_symbol {symbol!r}", None, "name both the same, or leave "
                             "the attribute out").error(func)
            check_function(func, obj, check_struct_info)
    _check_symbols(obj)
    return True


def _check_symbols(mod: IRModule) -> None:
    """Each function has symbolic variables of its own."""
    owner: dict[E.Var, str] = {}
    for gvar, func in mod.functions.items():
        for param in func.params if isinstance(func, Function) else ():
            for var in definable_tir_vars(param.struct_info_):
                if owner.setdefault(var, gvar.name_hint) != gvar.name_hint:
                    raise Broken("shared_symbol", func, f"the functions {owner[var]} and "
                                 f"{gvar.name_hint} both define the symbolic variable {var.name}",
                                 None, "give each a variable of its own").error(func)


@grows_stack
def check_function(func: Function, mod: IRModule | None = None,
                   check_struct_info: bool = True) -> None:
    """Raise WellFormedError where a function breaks a rule."""
    try:
        _Checker(func, mod, check_struct_info).visit_expr(func)
    except Broken as broken:
        raise broken.error(func) from None


class _Checker(PyExprVisitor):
    def __init__(self, func: Function, mod: IRModule | None, check_info: bool) -> None:
        self.root, self.mod, self.check_info = func, mod, check_info
        self.bound: set[Var] = set()  # every variable that was bound anywhere
        self.visible: set[Var] = set()
        self.escaped: set[Var] = set()
        self.symbols: set[E.Var] = set()
        self.in_dataflow = False
        self.binding: Any = None
        self.pure = False

    def fail(self, rule: str, node: Any, message: str, hint: str = "") -> None:
        raise Broken(rule, node, message, self.binding, hint)

    # ------------------------------------------------------------------------- variables

    def visit_var_(self, expr: Var) -> None:
        if expr in self.visible:
            return
        if expr in self.escaped:
            self.fail("escaping_variable", expr, f"{expr.name_hint} is used outside its dataflow "
                                                 "block", "bind it with bb.emit_output, or name "
                                                          "it in R.output")
        self.fail("undefined_variable", expr, f"{expr.name_hint} is used before anything binds it")

    visit_dataflow_var_ = visit_var_

    def visit_global_var_(self, expr: GlobalVar) -> None:
        if self.mod is not None and expr not in self.mod.functions:
            same = expr.name_hint in self.mod
            hint = ("there is another GlobalVar of that name: use mod.get_global_var"
                    if same else "add the function to the module first")
            self.fail("unknown_function", self.binding, f"the module has no function "
                                                        f"{expr.name_hint!r}", hint)

    def visit_var_def_(self, var: Any) -> None:
        if var in self.bound:
            self.fail("bound_twice", self.binding, f"{var.name_hint} is bound twice",
                      "give each binding a variable of its own")
        if type(var) is DataflowVar and not self.in_dataflow:
            self.fail("escaping_variable", self.binding, f"{var.name_hint} is a dataflow variable, "
                                                         "it is bound outside a dataflow block")
        if var.struct_info_ is None:
            self.fail("no_struct_info", self.binding, f"the struct info of {var.name_hint} is not "
                                                      "known", "normalize it with a BlockBuilder")
        self.bound.add(var)
        self.visible.add(var)

    visit_dataflow_var_def_ = visit_var_def_

    def symbols_of(self, info: StructInfo | None, node: object) -> None:
        """The symbols of a struct info must be defined."""
        for value in prims_of(info):
            for var in free_vars(value) if type(value) is not E.IntImm else ():
                if var not in self.symbols:
                    self.fail("undefined_symbol", node, f"the symbolic variable {var.name} is not "
                                                        "defined here", "a parameter or match_cast "
                              "must have a dimension that is the variable by itself")

    # ------------------------------------------------------------------------- bindings

    def visit_var_binding_(self, binding: VarBinding) -> None:
        saved, self.binding = self.binding, binding
        value = binding.value
        if isinstance(value, If) and self.in_dataflow:
            self.fail("if_in_dataflow", binding, "a dataflow block holds an if",
                      "put it outside: a dataflow block is a graph without control flow")
        if isinstance(value, SeqExpr):
            self.fail("not_normal", binding, "a sequence of bindings is bound to a variable",
                      "normalize it with a BlockBuilder")
        if isinstance(value, Function):  # it may call itself
            self.visit_var_def(binding.var)
            self.visit_expr(value)
        else:
            self.visit_expr(value)
            self.visit_var_def(binding.var)
        self.symbols_of(binding.var.struct_info_, binding)
        if self.check_info:
            have = getattr(value, "struct_info_", None)
            if have is not None and struct_info_base_check(
                    binding.var.struct_info, have) is BaseCheck.FAIL_L0:
                self.fail("no_struct_info", binding, f"{binding.var.name_hint} is declared "
                          f"{show(binding.var.struct_info_)} and bound to {show(have)}")
        self.binding = saved

    def visit_match_cast_(self, binding: MatchCast) -> None:
        saved, self.binding = self.binding, binding
        self.visit_expr(binding.value)
        if not is_leaf(binding.value) and not is_leaf_tuple(binding.value):
            self.fail("not_normal", binding, "what is cast must be a variable or constant")
        self.symbols.update(definable_tir_vars(binding.struct_info))
        self.visit_var_def(binding.var)
        self.symbols_of(binding.struct_info, binding)
        self.binding = saved

    def visit_dataflow_block_(self, block: DataflowBlock) -> None:
        self.in_dataflow = True
        for binding in block.bindings:
            self.visit_binding(binding)
        self.in_dataflow = False
        for binding in block.bindings:
            if type(binding.var) is DataflowVar:
                self.visible.discard(binding.var)
                self.escaped.add(binding.var)

    # ------------------------------------------------------------------------- expressions

    def visit_seq_expr_(self, expr: SeqExpr) -> None:
        super().visit_seq_expr_(expr)
        if not is_leaf(expr.body) and not is_leaf_tuple(expr.body):
            self.fail("not_normal", expr.body, "the value of a body must be a variable, constant "
                                               "or tuple", "bind it to a variable first")

    def visit_if_(self, expr: If) -> None:
        self.argument(expr.cond, expr)
        for branch in (expr.true_branch, expr.false_branch):
            visible, symbols = set(self.visible), set(self.symbols)
            self.visit_expr(branch)
            self.visible, self.symbols = visible, symbols

    def visit_tuple_(self, expr: Tuple) -> None:
        for item in expr.fields_:
            self.argument(item, expr)

    def visit_tuple_getitem_(self, expr: TupleGetItem) -> None:
        self.argument(expr.tuple_value, expr)

    def argument(self, item: Any, owner: Any) -> None:
        """An argument must be a leaf or a tuple of leaves."""
        if not is_leaf(item) and not is_leaf_tuple(item):
            self.fail("not_normal", item, f"a {type(item).__name__} stands inside another "
                                          "expression", "bind it to a variable first, or "
                                                        "normalize with a BlockBuilder")
        self.visit_expr(item)

    def visit_shape_expr_(self, expr: ShapeExpr) -> None:
        self.symbols_of(expr.struct_info_, self.binding)

    def visit_prim_value_(self, expr: PrimValue) -> None:
        self.symbols_of(expr.struct_info_, self.binding)

    def visit_call_(self, expr: Call) -> None:
        if not isinstance(expr.op, Op):
            self.argument(expr.op, expr)
            if self.pure and isinstance(expr.op, GlobalVar) and self.mod is not None and isinstance(
                    self.mod.functions.get(expr.op), PrimFunc):
                self.fail("tir_arguments", expr, f"{expr.op.name_hint} is a TensorIR function, it "
                          "cannot be called directly", "call it with R.call_tir")
        for item in expr.args:
            self.argument(item, expr)
        if expr.struct_info_ is None:
            self.fail("no_struct_info", expr, "the struct info of this call is not known",
                      "normalize it with a BlockBuilder")
        for info in expr.sinfo_args:
            self.symbols_of(info, self.binding)
        if isinstance(expr.op, Op):
            if expr.op.name in ("relax.call_tir", "relax.call_tir_inplace"):
                self.tir_arguments(expr)
            impure = expr.op.name in OPERATORS and not OPERATORS[expr.op.name].pure
        else:
            info = expr.op.struct_info_
            impure = not (isinstance(info, FuncStructInfo) and info.purity)
        if impure and self.in_dataflow and not self.forced:
            self.fail("impure_in_dataflow", expr, "a call with effects in a dataflow block",
                      "put it outside the block, or use R.call_pure_packed if it has none")
        if impure and self.pure:
            self.fail("impure_in_pure", expr, "a call with effects in a function that is declared "
                                              "pure", "declare it @R.function(pure=False), or use "
                                                      "R.call_pure_packed if it has none")

    forced = False

    def visit_function_(self, expr: Function) -> None:
        saved = self.pure, self.forced, self.in_dataflow, set(self.symbols), set(self.visible)
        self.forced = bool((expr.attrs or {}).get("relax.force_pure", False))
        self.pure = expr.is_pure and not self.forced
        self.in_dataflow = False
        for param in expr.params:
            self.visit_var_def(param)
            self.symbols.update(definable_tir_vars(param.struct_info_))
        for param in expr.params:
            self.symbols_of(param.struct_info_, expr)
        self.visit_expr(expr.body)
        have = expr.body.struct_info_
        if self.check_info and have is not None and struct_info_base_check(
                expr.ret_struct_info, have) is BaseCheck.FAIL_L0:
            self.fail("return_type", expr.body, f"the function declares that it gives "
                      f"{show(expr.ret_struct_info)}, its body gives {show(have)}")
        self.pure, self.forced, self.in_dataflow, self.symbols, self.visible = saved

    # ------------------------------------------------------------------------- call_tir

    def tir_arguments(self, call: Call) -> None:
        """The arguments and outputs of a call_tir must fit the PrimFunc's buffers."""
        callee = call.args[0]
        func = self.mod.functions.get(callee) if self.mod is not None and isinstance(
            callee, GlobalVar) else None
        args = call.args[1].struct_info_
        if not isinstance(func, PrimFunc) or not isinstance(args, TupleStructInfo):
            return
        out = call.sinfo_args[0]
        outs = list(out.fields_) if isinstance(out, TupleStructInfo) else [out]
        if isinstance(call.op, Op) and call.op.name == "relax.call_tir_inplace":
            outs = [o for o, k in zip(outs, call.attrs.inplace_indices) if k < 0]
        scalars = len(call.args[2].struct_info_.values or ()) if len(call.args) > 2 else 0
        name = callee.name_hint
        count = len(args.fields_) + len(outs) + scalars
        if count != len(func.params):
            self.fail("tir_arguments", call, f"{name} takes {len(func.params)} parameter(s); the "
                      f"call gives {len(args.fields_)} argument(s), {len(outs)} output(s) and "
                      f"{scalars} scalar(s)")
        for k, (info, param) in enumerate(zip([*args.fields_, *outs], func.params)):
            buffer = func.buffer_map.get(param)
            if buffer is None or not isinstance(info, TensorStructInfo):
                continue
            what = f"argument {k + 1}" if k < len(args.fields_) else (
                f"output {k + 1 - len(args.fields_)}")
            dims = info.dims
            wrong = (info.dtype and info.dtype != buffer.dtype) or (
                info.ndim not in (-1, len(buffer.shape))) or (dims is not None and any(
                    type(a) is E.IntImm and type(b) is E.IntImm and surely_different(a, b)
                    for a, b in zip(dims, buffer.shape)))
            if wrong:
                wanted = TensorStructInfo([d if d.dtype == "int64" else E.Cast("int64", d)
                                           if type(d) is not E.IntImm else d.value
                                           for d in buffer.shape], buffer.dtype)
                self.fail("tir_arguments", call, f"{what} of the call of {name} is {show(info)}, "
                          f"its parameter {buffer.name} is {show(wanted)}")


__all__ = ["check_function", "verify_well_formed", "well_formed"]
