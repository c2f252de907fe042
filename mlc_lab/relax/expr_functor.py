"""Walking and rewriting Relax expressions, in the style of TVM's PyExprVisitor and PyExprMutator.

A class overrides `visit_call_`, `visit_var_binding_`, `visit_tuple_getitem_`, ...; what it does
not override goes on to the parts. The mutator rebuilds through a BlockBuilder (`self.builder_`), so
what a method returns may be nested: it is brought to normal form where it is put. `@visitor` and
`@mutator` mark such classes as in TVM; here they only check that the class is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..ir.diagnostics import WellFormedError
from ..ir.module import GlobalVar, IRModule
from ..ir.node import Node
from ..tir import expr as E
from ..tir.function import PrimFunc
from .expr import (
    Binding, BindingBlock, Call, Constant, DataTypeImm, DataflowBlock, DataflowVar, Expr,
    ExternFunc, Function, If, MatchCast, Op, PrimValue, SeqExpr, ShapeExpr, StringImm, Tuple,
    TupleGetItem, Var, VarBinding,
)
from .struct_info import StructInfo, TensorStructInfo, is_base_of, map_struct_info

if TYPE_CHECKING:
    from .expr import Callee

#: node type -> the method that visits it
METHODS: dict[type, str] = {
    Var: "visit_var_", DataflowVar: "visit_dataflow_var_", GlobalVar: "visit_global_var_",
    Constant: "visit_constant_", Tuple: "visit_tuple_", TupleGetItem: "visit_tuple_getitem_",
    Call: "visit_call_", ShapeExpr: "visit_shape_expr_", PrimValue: "visit_prim_value_",
    StringImm: "visit_string_imm_", DataTypeImm: "visit_data_type_imm_", If: "visit_if_",
    SeqExpr: "visit_seq_expr_", Function: "visit_function_", ExternFunc: "visit_extern_func_",
    Op: "visit_op_", PrimFunc: "visit_prim_func_",
}
_BINDINGS = {VarBinding: "visit_var_binding_", MatchCast: "visit_match_cast_"}
_BLOCKS = {BindingBlock: "visit_binding_block_", DataflowBlock: "visit_dataflow_block_"}
_DEFS = {Var: "visit_var_def_", DataflowVar: "visit_dataflow_var_def_"}


class ExprFunctor:
    """Dispatch to a method by the type of the node."""

    def visit_expr(self, expr: Callee) -> Any:
        """Visit an expression. Raises WellFormedError for a node of another language."""
        name = METHODS.get(type(expr))
        if name is None:
            raise WellFormedError(f"{type(expr).__name__} is no Relax expression", "grammar")
        return getattr(self, name)(expr)

    def visit_binding(self, binding: Binding) -> Any:
        """Visit a binding."""
        return getattr(self, _BINDINGS[type(binding)])(binding)

    def visit_binding_block(self, block: BindingBlock) -> Any:
        """Visit a block of bindings."""
        return getattr(self, _BLOCKS[type(block)])(block)

    def visit_var_def(self, var: Var) -> Any:
        """Visit a variable where it is bound."""
        return getattr(self, _DEFS[type(var)])(var)


class PyExprVisitor(ExprFunctor):
    """Visits every expression of a function, in the order of the program."""

    def visit_expr_post_order(self, expr: Expr) -> None:
        """What a method calls to go on to the parts of its node."""
        getattr(PyExprVisitor, METHODS[type(expr)])(self, expr)

    def visit_struct_info(self, info: StructInfo | None) -> None:
        """Visit the struct info of a definition or call; does nothing by default."""

    def visit_span(self, span: object) -> None:
        """Does nothing; kept for classes written for TVM."""

    def _leaf(self, expr: Expr) -> None:
        pass

    visit_var_ = visit_dataflow_var_ = visit_global_var_ = visit_constant_ = _leaf
    visit_shape_expr_ = visit_prim_value_ = visit_string_imm_ = visit_data_type_imm_ = _leaf
    visit_extern_func_ = visit_op_ = visit_prim_func_ = _leaf

    def visit_tuple_(self, expr: Tuple) -> None:
        for item in expr.fields_:
            self.visit_expr(item)

    def visit_tuple_getitem_(self, expr: TupleGetItem) -> None:
        self.visit_expr(expr.tuple_value)

    def visit_call_(self, expr: Call) -> None:
        self.visit_expr(expr.op)
        for item in expr.args:
            self.visit_expr(item)
        for info in expr.sinfo_args:
            self.visit_struct_info(info)

    def visit_if_(self, expr: If) -> None:
        self.visit_expr(expr.cond)
        self.visit_expr(expr.true_branch)
        self.visit_expr(expr.false_branch)

    def visit_seq_expr_(self, expr: SeqExpr) -> None:
        for block in expr.blocks:
            self.visit_binding_block(block)
        self.visit_expr(expr.body)

    def visit_function_(self, expr: Function) -> None:
        for param in expr.params:
            self.visit_var_def(param)
        self.visit_expr(expr.body)

    def visit_var_binding_(self, binding: VarBinding) -> None:
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        self.visit_expr(binding.value)
        self.visit_struct_info(binding.struct_info)
        self.visit_var_def(binding.var)

    def visit_binding_block_(self, block: BindingBlock) -> None:
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_dataflow_block_(self, block: DataflowBlock) -> None:
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_var_def_(self, var: Var) -> None:
        self.visit_struct_info(var.struct_info_)

    def visit_dataflow_var_def_(self, var: DataflowVar) -> None:
        self.visit_var_def_(var)


class PyExprMutator(ExprFunctor):
    """Rewrites a function, sharing what stays the same.

    `builder_` is the BlockBuilder that puts the result together; its module is `mod`, and
    `self.builder_.get()` is the module with what `update_func` and `add_func` changed.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        from .block_builder import BlockBuilder

        self.builder_ = BlockBuilder(mod)
        self._remap: dict[Expr, Expr] = {}

    # --------------------------------------------------------------------------- for methods

    def visit_expr(self, expr: Callee) -> Any:
        """The rewritten expression, in normal form; the same object when nothing changed."""
        new = ExprFunctor.visit_expr(self, expr)
        if isinstance(new, (Op, GlobalVar, PrimFunc)) or (new is expr and _settled(expr)):
            return new
        return self.builder_.normalize(new)

    def visit_expr_post_order(self, expr: Expr) -> Expr:
        """The expression with its parts rewritten: what a method calls for the rest of its node."""
        return getattr(PyExprMutator, METHODS[type(expr)])(self, expr)

    def visit_with_new_scope(self, expr: Expr, params: Any = ()) -> Expr:
        """Rewrite the body of a function or branch; what it binds stays inside."""
        self.builder_.begin_scope(params)
        new = self.visit_expr(expr)
        self.builder_.end_scope()
        return new

    def lookup_binding(self, var: Var) -> Expr | None:
        """What the rewritten program binds `var` to; None for a parameter."""
        return self.builder_.lookup_binding(var)

    def set_var_remap(self, var: Var, new: Expr) -> None:
        """Let every later use of `var` become `new`."""
        self._remap[var] = new

    def get_var_remap(self, var: Var) -> Expr:
        """What uses of `var` become."""
        return self._remap.get(var, var)

    def with_struct_info(self, var: Var, info: StructInfo) -> Var:
        """`var` itself where it has that struct info already, else a new one that has."""
        if var.struct_info_ is not None and (var.struct_info_ is info or var.struct_info_ == info):
            return var
        return type(var).from_fields(var.name_hint, info)

    def visit_prim_expr(self, expr: E.PrimExpr) -> E.PrimExpr:
        """A dimension or scalar, rewritten; itself by default."""
        return expr

    def visit_struct_info(self, info: StructInfo) -> StructInfo:
        """Struct info that stands in the program: its dimensions and shape variables rewritten."""
        if type(self).visit_prim_expr is PyExprMutator.visit_prim_expr and not self._remap:
            return info
        return map_struct_info(info, self.visit_prim_expr, self._shape_var)

    def _shape_var(self, var: Expr) -> Expr:
        return self._remap.get(var, var)

    def _tuple(self, items: tuple) -> tuple:
        new = tuple(map(self.visit_expr, items))
        return items if all(a is b for a, b in zip(new, items)) else new

    # --------------------------------------------------------------------------- expressions

    def visit_var_(self, expr: Var) -> Expr:
        return self._remap.get(expr, expr)

    def visit_dataflow_var_(self, expr: DataflowVar) -> Expr:
        return self.visit_var_(expr)

    def _leaf(self, expr: Expr) -> Any:
        return expr

    visit_global_var_ = visit_constant_ = visit_string_imm_ = visit_data_type_imm_ = _leaf
    visit_extern_func_ = visit_op_ = visit_prim_func_ = _leaf

    def visit_shape_expr_(self, expr: ShapeExpr) -> Expr:
        new = tuple(map(self.visit_prim_expr, expr.values))
        return expr if all(a is b for a, b in zip(new, expr.values)) else ShapeExpr(new)

    def visit_prim_value_(self, expr: PrimValue) -> Expr:
        new = self.visit_prim_expr(expr.value)
        return expr if new is expr.value else PrimValue(new)

    def visit_tuple_(self, expr: Tuple) -> Expr:
        new = self._tuple(expr.fields_)
        return expr if new is expr.fields_ else Tuple(new)

    def visit_tuple_getitem_(self, expr: TupleGetItem) -> Expr:
        new = self.visit_expr(expr.tuple_value)
        return expr if new is expr.tuple_value else TupleGetItem(new, expr.index)

    def visit_call_(self, expr: Call) -> Expr:
        op = self.visit_expr(expr.op)
        args = self._tuple(expr.args)
        infos = tuple(map(self.visit_struct_info, expr.sinfo_args))
        if op is expr.op and args is expr.args and all(
                a is b for a, b in zip(infos, expr.sinfo_args)):
            return expr
        return Call.from_fields(op, args, expr.attrs, infos, None)

    def visit_if_(self, expr: If) -> Expr:
        cond = self.visit_expr(expr.cond)
        true = self.visit_with_new_scope(expr.true_branch)
        false = self.visit_with_new_scope(expr.false_branch)
        if cond is expr.cond and true is expr.true_branch and false is expr.false_branch:
            return expr
        return If(cond, true, false)

    def visit_seq_expr_(self, expr: SeqExpr) -> Expr:
        blocks: list[BindingBlock] = []
        for block in expr.blocks:
            new = self.visit_binding_block(block)
            if new.bindings:
                blocks.append(new)
        self.builder_.begin_binding_block()
        body = self.visit_expr(expr.body)
        body = self.builder_.as_leaf(body)
        prologue = self.builder_.end_block()
        if prologue.bindings:
            blocks.append(prologue)
        if body is expr.body and len(blocks) == len(expr.blocks) and all(
                a is b for a, b in zip(blocks, expr.blocks)):
            return expr
        return SeqExpr(blocks, body)

    def visit_function_(self, expr: Function) -> Expr:
        params = tuple(map(self.visit_var_def, expr.params))
        body = self.visit_with_new_scope(expr.body, params)
        same = all(a is b for a, b in zip(params, expr.params))
        if same and body is expr.body:
            return expr
        ret = self.visit_struct_info(expr.ret_struct_info)
        if body.struct_info_ is not None and not is_base_of(ret, body.struct_info_):
            ret = None  # the body now gives something else: derive it
        return Function(params, body, ret, expr.is_pure, expr.attrs)

    # --------------------------------------------------------------------------- bindings

    def visit_var_def_(self, var: Var) -> Var:
        info = var.struct_info_
        if info is None:
            return var
        new = self.visit_struct_info(info)
        if new is info:
            return var
        made = type(var).from_fields(var.name_hint, new)
        self._remap[var] = made
        return made

    def visit_dataflow_var_def_(self, var: DataflowVar) -> Var:
        return self.visit_var_def_(var)

    def visit_binding_block_(self, block: BindingBlock) -> BindingBlock:
        self.builder_.begin_binding_block()
        for binding in block.bindings:
            self.visit_binding(binding)
        new = self.builder_.end_block()
        return block if _same_bindings(block, new) else new

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        self.builder_.begin_dataflow_block()
        for binding in block.bindings:
            self.visit_binding(binding)
        new = self.builder_.end_block()
        return block if _same_bindings(block, new) else new

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        var = self.visit_var_def(binding.var)
        if value is binding.value and var is binding.var:
            self.builder_.emit_normalized(binding)
            return
        self.reemit_binding(binding, value, var)

    def reemit_binding(self, binding: VarBinding, value: Expr, var: Var | None = None) -> None:
        """Bind the variable of `binding` (or one that takes its place) to a new value."""
        var = binding.var if var is None else var
        info = value.struct_info_
        if info is not None and var.struct_info_ is not None and not is_base_of(
                var.struct_info_, info):
            var = self.with_struct_info(var, info)
        elif info is not None and isinstance(info, TensorStructInfo):
            var = self.with_struct_info(var, info)
        if var is not binding.var:
            self._remap[binding.var] = var
        self.builder_.emit_normalized(VarBinding(var, value))

    def visit_match_cast_(self, binding: MatchCast) -> None:
        value = self.visit_expr(binding.value)
        info = self.visit_struct_info(binding.struct_info)
        var = self.visit_var_def(binding.var)
        if value is binding.value and info is binding.struct_info and var is binding.var:
            self.builder_.emit_normalized(binding)
            return
        new = self.with_struct_info(var, info)
        if new is not binding.var:
            self._remap[binding.var] = new
        self.builder_.emit_normalized(MatchCast(new, self.builder_.as_leaf(value), info))


def _settled(expr: Callee) -> bool:
    """Whether an expression that did not change needs no normalization."""
    return getattr(expr, "struct_info_", None) is not None


def _same_bindings(old: BindingBlock, new: BindingBlock) -> bool:
    return len(old.bindings) == len(new.bindings) and all(
        a is b for a, b in zip(old.bindings, new.bindings))


def visitor(cls: type) -> type:
    """Mark a subclass of PyExprVisitor, as in TVM."""
    if not issubclass(cls, PyExprVisitor):
        raise TypeError(f"@visitor decorates a subclass of PyExprVisitor, not {cls.__name__}")
    return cls


def mutator(cls: type) -> type:
    """Mark a subclass of PyExprMutator, as in TVM."""
    if not issubclass(cls, PyExprMutator):
        raise TypeError(f"@mutator decorates a subclass of PyExprMutator, not {cls.__name__}")
    return cls


ExprVisitor = PyExprVisitor
ExprMutator = PyExprMutator


class _PostOrder(PyExprVisitor):
    def __init__(self, fn: Callable[[Any], None]) -> None:
        self.fn = fn
        self.seen: set[int] = set()

    def visit_expr(self, expr: Callee) -> None:
        if id(expr) in self.seen:
            return
        super().visit_expr(expr)
        self.seen.add(id(expr))
        self.fn(expr)


def post_order_visit(expr: Expr, fn: Callable[[Any], None]) -> None:
    """Call `fn` on every expression under `expr`, once each, parts before wholes."""
    _PostOrder(fn).visit_expr(expr)


def children(expr: Node) -> list[Node]:
    """The expressions directly under one, operators left out."""
    return [c for c in expr.children() if not isinstance(c, Op)]


__all__ = ["ExprFunctor", "ExprMutator", "ExprVisitor", "PyExprMutator", "PyExprVisitor",
           "mutator", "post_order_visit", "visitor"]
