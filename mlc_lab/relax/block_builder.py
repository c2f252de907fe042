"""BlockBuilder: puts Relax functions together, binding by binding, in normal form.

    bb = relax.BlockBuilder()
    with bb.function("main", [x, w]):
        with bb.dataflow():
            lv = bb.emit(relax.op.matmul(x, w))
            out = bb.emit_output(bb.emit_te(topi.nn.relu, lv))
        bb.emit_func_output(out)
    mod = bb.get()

Normal form: arguments of calls are variables, constants, tuples of these and the like; every other
value is bound to a variable; every expression knows its struct info.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from ..ir.module import GlobalVar, IRModule
from ..ir.recursion import with_room_for
from ..ir.structural import structural_equal, structural_hash
from ..tir import expr as E
from ..tir.function import PrimFunc
from . import normal
from .expr import (
    Binding, BindingBlock, Call, Constant, DataTypeImm, DataflowBlock, DataflowVar, Expr,
    ExternFunc, Function, If, MatchCast, PrimValue, SeqExpr, ShapeExpr, StringImm, Tuple,
    TupleGetItem, Var, VarBinding, as_expr, as_struct_info,
)
from .builder_scopes import DataflowScope, Frame, FunctionScope, TestingScope
from .op.base import VOID
from .op.registry import infer_call
from .struct_info import (
    OBJECT, FuncStructInfo, ObjectStructInfo, StructInfo,
    definable_tir_vars, erase_to_well_defined, struct_info_lca,
)

if TYPE_CHECKING:
    from ..ir.module import BaseFunc

_LEAVES = (Var, DataflowVar, Constant, ShapeExpr, PrimValue, StringImm, DataTypeImm, ExternFunc,
           GlobalVar, E.Op)


class BlockBuilder:
    """Builds functions of a module; see the head of the file."""

    _stack: list["BlockBuilder"] = []

    def __init__(self, mod: IRModule | None = None) -> None:
        self._mod = IRModule() if mod is None else mod.copy()
        self._blocks: list[Frame] = []
        self._functions: list[FunctionScope] = []
        self._scopes: list[set[E.Var]] = []
        self._table: dict[Var, Expr] = {}
        self._names: dict[str, int] = {}
        self._function_names: set[str] = {v.name_hint for v in self._mod.functions}
        self._by_key: dict[Any, list[GlobalVar]] | None = None
        for var, func in self._mod.functions.items():
            if isinstance(func, Function) and var.struct_info_ is None:
                var.set_struct_info(func.struct_info_)

    @staticmethod
    def current() -> "BlockBuilder | None":
        """The builder of the innermost function scope."""
        return BlockBuilder._stack[-1] if BlockBuilder._stack else None

    # --------------------------------------------------------------------------- scopes

    def function(self, name: str, params: Any = None, attrs: Mapping[str, Any] | None = None,
                 private: bool = False, pure: bool = True) -> FunctionScope:
        """A function of the module. `params` may be given here or to emit_func_output."""
        if params is not None:
            params = _params(params)
        attrs = dict(attrs or {})
        if not private and "global_symbol" not in attrs:
            attrs["global_symbol"] = name
        return FunctionScope(self, name, params, attrs, pure)

    def dataflow(self) -> DataflowScope:
        """A dataflow block of the current function."""
        return DataflowScope(self)

    def testing_scope(self, def_vars: Sequence[E.Var]) -> TestingScope:
        """Symbolic variables to be known, for building pieces without a function."""
        return TestingScope(self, def_vars)

    def begin_scope(self, params: Any = None) -> None:
        """Open a scope in which the symbolic variables of `params` are known."""
        known: set[E.Var] = set(self._scopes[-1]) if self._scopes else set()
        for param in params or ():
            known.update(definable_tir_vars(param.struct_info_))
        self._scopes.append(known)

    def end_scope(self) -> None:
        """Close the innermost scope."""
        self._scopes.pop()

    def symbols(self) -> set[E.Var]:
        """The symbolic variables known here."""
        return self._scopes[-1] if self._scopes else set()

    def begin_binding_block(self) -> None:
        """Open a block of bindings."""
        self._blocks.append(Frame(False))

    def begin_dataflow_block(self) -> None:
        """Open a dataflow block."""
        self._blocks.append(Frame(True))

    def end_block(self) -> BindingBlock:
        """The innermost block, finished."""
        return self._blocks.pop().finish()

    #: TVM's Python names of these three
    _begin_binding_block = begin_binding_block
    _begin_dataflow_block = begin_dataflow_block
    _end_block = end_block

    def current_block_is_dataflow(self) -> bool:
        """Whether the innermost open block is a dataflow block."""
        return bool(self._blocks) and self._blocks[-1].is_dataflow

    # --------------------------------------------------------------------------- emitting

    def get_unique_name(self, prefix: str) -> str:
        """`prefix`, or `prefix1`, `prefix2`, ... where it is taken."""
        return _fresh(self._names, prefix)

    def take_name(self, name: str) -> None:
        """Give no variable this name that is not asked for."""
        self._names.setdefault(name, 0)

    def emit(self, expr: Expr, name_hint: str = "") -> Var:
        """Bind a value (an Expr, or a tuple of them) to a new variable."""
        return self._emit(as_expr(expr), name_hint, self.current_block_is_dataflow())

    def _emit(self, expr: Expr, name_hint: str, in_dataflow: bool) -> Var:
        if not self._blocks:
            raise RuntimeError("there is no block to emit into: open `with bb.function(...):`, and "
                               "`with bb.dataflow():` in it")
        value = self.normalize(expr)
        if isinstance(value, SeqExpr):
            value = self._splice(value)
        cls = DataflowVar if in_dataflow else Var
        name = self.get_unique_name(name_hint or ("lv" if in_dataflow else "gv"))
        var = cls.from_fields(name, value.struct_info_)
        self.emit_normalized(VarBinding(var, value))
        return var

    def emit_normalized(self, binding: Binding) -> Var:
        """Add a binding that is in normal form already."""
        self._blocks[-1].bindings.append(binding)
        if isinstance(binding, MatchCast):
            self._learn(binding)
        else:
            self._table[binding.var] = binding.value
        return binding.var

    def _learn(self, binding: MatchCast) -> None:
        self._table[binding.var] = binding.value
        if self._scopes:
            self._scopes[-1].update(definable_tir_vars(binding.struct_info))

    def match_cast(self, value: Expr, struct_info: StructInfo, name_hint: str = "") -> Var:
        """Bind `value`, checked at run time to have `struct_info`, which may define symbols."""
        value, info = self.as_leaf(self.normalize(as_expr(value))), as_struct_info(struct_info)
        in_dataflow = self.current_block_is_dataflow()
        cls = DataflowVar if in_dataflow else Var
        name = self.get_unique_name(name_hint or ("lv" if in_dataflow else "gv"))
        var = cls.from_fields(name, info)
        self.emit_normalized(MatchCast(var, value, info))
        return var

    def emit_output(self, output: Expr | Sequence[Any], name_hint: str = "") -> Var:
        """Bind a value to a variable that is seen outside the dataflow block."""
        return self._emit(as_expr(output), name_hint or "gv", False)

    def call_te(self, func: Callable, *args: object, **kwargs: object) -> Call:
        """A call of the TensorIR function that a tensor expression makes; not emitted yet."""
        from .te_call import call_te

        return call_te(self, func, args, kwargs)

    def emit_te(self, func: Callable, *args: object, name_hint: str = "", **kwargs: object) -> Var:
        """Make a TensorIR function of `func(*te_tensors)` and emit a call of it.

        Relax expressions among the arguments become te placeholders, constants included; other
        values are passed on. The function is called after `func`, or `primfunc_name_hint`, and has
        the attributes `primfunc_attrs`. A function that was made before is used again.
        """
        return self.emit(self.call_te(func, *args, **kwargs), name_hint)

    def emit_func_output(self, output: Expr | Sequence[Expr], params: Any = None) -> GlobalVar:
        """The result of the function, which is then added to the module."""
        if not self._functions:
            raise RuntimeError("emit_func_output belongs in `with bb.function(...):`")
        scope = self._functions[-1]
        if scope.finished:
            raise RuntimeError(f"function {scope.name!r} has its result already")
        if self._blocks and self._blocks[-1].is_dataflow:
            raise RuntimeError("emit_func_output stands in `with bb.dataflow():`. Give the result "
                               "out of the block with `gv = bb.emit_output(...)`, and call "
                               "`bb.emit_func_output(gv)` after the block")
        if params is not None:
            if scope.params is not None:
                raise RuntimeError("the parameters are given twice: to bb.function and to "
                                   "bb.emit_func_output")
            scope.params = _params(params)
            for p in scope.params:
                self._scopes[-1].update(definable_tir_vars(p.struct_info_))
        if scope.params is None:
            raise RuntimeError(f"the parameters of {scope.name!r} are not given: pass them to "
                               "bb.function(name, params) or bb.emit_func_output(out, params)")
        body = self.normalize(as_expr(output))
        if isinstance(body, SeqExpr):
            body = self._splice(body)
        body = self.as_leaf(body)
        scope.close_block()
        self.end_scope()
        func = Function(scope.params, SeqExpr(normal.merge_blocks(scope.blocks), body), None,
                        scope.is_pure, scope.attrs)
        scope.finished = True
        var = self._new_global(scope.name, func)
        self._mod.update_func(var, func)
        return var

    # --------------------------------------------------------------------------- the module

    def get(self) -> IRModule:
        """The module as it is now."""
        return self._mod.copy()

    def finalize(self) -> IRModule:
        """The module, when everything was emitted."""
        return self.get()

    def add_func(self, func: BaseFunc, func_name: str) -> GlobalVar:
        """Add a function, or find one that is structurally equal; its GlobalVar."""
        key = _key(func)
        for var in self._keyed().get(key, ()):
            if self._mod.functions.get(var) is not None and structural_equal(
                    self._mod.functions[var], func) is True:
                return var
        name = _fresh_function(self._function_names, func_name)
        var = GlobalVar(name, getattr(func, "struct_info_", None))
        self._mod.update_func(var, func)
        self._keyed().setdefault(key, []).append(var)
        return var

    def update_func(self, var: GlobalVar, func: BaseFunc) -> None:
        """Put a function in the place of another."""
        if isinstance(func, Function):
            var.set_struct_info(func.struct_info_)
        self._mod.update_func(var, func)
        self._function_names.add(var.name_hint)
        self._by_key = None

    def _keyed(self) -> dict[Any, list[GlobalVar]]:
        if self._by_key is None:
            self._by_key = {}
            for var, func in self._mod.functions.items():
                self._by_key.setdefault(_key(func), []).append(var)
        return self._by_key

    def _new_global(self, name: str, func: Function) -> GlobalVar:
        if name in self._function_names:
            if name in self._mod:
                raise ValueError(f"the module has a function {name!r} already")
        self._function_names.add(name)
        return GlobalVar(name, func.struct_info_)

    def lookup_binding(self, var: Var) -> Expr | None:
        """What `var` was bound to; None for a parameter or an unknown variable."""
        return self._table.get(var)

    def lookup_function(self, var: GlobalVar) -> Any:
        """The function of a GlobalVar, None where the module has none."""
        return self._mod.functions.get(var)

    # --------------------------------------------------------------------------- normal form

    def as_leaf(self, expr: Expr) -> Expr:
        """The value as something that may be an argument, bound to a variable if need be."""
        if isinstance(expr, _LEAVES) or normal.is_leaf_tuple(expr):
            return expr
        return self._emit(expr, "", self.current_block_is_dataflow())

    def normalize(self, expr: Expr) -> Any:
        """An expression in normal form, its struct info known.

        Nested values are bound in the open block. Raises StructInfoError where arguments misfit.
        """
        if isinstance(expr, (GlobalVar, E.Op, PrimFunc)):
            return expr
        return _NORMALIZE[type(expr)](self, expr)

    def _leaf(self, expr: Expr) -> Expr:
        return expr

    def _arguments(self, items: tuple) -> tuple:
        new = tuple([item if isinstance(item, _LEAVES) else self._argument(item)
                     for item in items])
        return items if all(a is b for a, b in zip(new, items)) else new

    def _argument(self, item: Expr) -> Expr:
        """A nested value as a leaf; one that stands in several places is bound once a block."""
        def leaf() -> Expr:
            return self.as_leaf(self.normalize(item))

        if not self._blocks:
            return with_room_for(item, leaf)
        known = self._blocks[-1].leaves
        found = known.get(id(item))
        if found is None:
            frame = self._blocks[-1]
            found = frame.leaves[id(item)] = item, with_room_for(item, leaf)
        return found[1]

    def _normalize_tuple(self, expr: Tuple) -> Expr:
        new = self._arguments(expr.fields_)
        return expr if new is expr.fields_ and expr.struct_info_ is not None else Tuple(new)

    def _normalize_item(self, expr: TupleGetItem) -> Expr:
        value = self._arguments((expr.tuple_value,))[0]
        if value is expr.tuple_value and expr.struct_info_ is not None:
            return expr
        return TupleGetItem(value, expr.index)

    def _normalize_call(self, expr: Call) -> Expr:
        op = expr.op
        if isinstance(op, Expr) and not isinstance(op, _LEAVES):
            op = self.as_leaf(self.normalize(op))
        args = self._arguments(expr.args)
        if args is expr.args and op is expr.op:
            if expr.struct_info_ is not None:
                return expr
            return Call.from_fields(op, args, expr.attrs, expr.sinfo_args,
                                    self._infer(expr))
        call = Call.from_fields(op, args, expr.attrs, expr.sinfo_args, None)
        return Call.from_fields(op, args, expr.attrs, expr.sinfo_args, self._infer(call))

    def _infer(self, call: Call) -> StructInfo:
        if isinstance(call.op, E.Op):
            return infer_call(call)
        info = call.op.struct_info_
        if isinstance(call.op, GlobalVar):  # what the module has is newer than what was known
            func = self._mod.functions.get(call.op)
            if func is not None:
                info = getattr(func, "struct_info_", None)
            if isinstance(func, PrimFunc):  # lowered for the virtual machine: fills its arguments
                return VOID
        if info is None or isinstance(info, ObjectStructInfo):
            return OBJECT if not call.sinfo_args else call.sinfo_args[0]
        if not isinstance(info, FuncStructInfo):
            raise TypeError(f"only functions can be called, this is {info}")
        return normal.derive_call(info, call)

    def _normalize_if(self, expr: If) -> Expr:
        cond = self.as_leaf(self.normalize(expr.cond))
        true = self._branch(expr.true_branch)
        false = self._branch(expr.false_branch)
        if cond is expr.cond and true is expr.true_branch and false is expr.false_branch and (
                expr.struct_info_ is not None):
            return expr
        a, b = true.struct_info_, false.struct_info_
        return If.from_fields(cond, true, false,
                              None if a is None or b is None else struct_info_lca(a, b))

    def _branch(self, expr: Expr) -> SeqExpr:
        """A branch or body as a SeqExpr in a scope of its own."""
        self.begin_scope()
        try:
            return self._as_seq(expr)
        finally:
            self.end_scope()

    def _as_seq(self, expr: Expr) -> SeqExpr:
        if isinstance(expr, SeqExpr):
            return self._normalize_seq(expr)
        self.begin_binding_block()
        body = self.as_leaf(self.normalize(expr))
        block = self.end_block()
        return SeqExpr((block,) if block.bindings else (), body)

    def _normalize_seq(self, expr: SeqExpr) -> SeqExpr:
        blocks: list[BindingBlock] = []
        for block in expr.blocks:
            new = self._normalize_block(block)
            blocks.append(new)
        self.begin_binding_block()
        body = self.normalize(expr.body)
        if isinstance(body, SeqExpr):
            body = self._splice(body)
        body = self.as_leaf(body)
        rest = self.end_block()
        if rest.bindings:
            blocks.append(rest)
        blocks = normal.merge_blocks(blocks)
        if body is expr.body and len(blocks) == len(expr.blocks) and all(
                a is b for a, b in zip(blocks, expr.blocks)) and expr.struct_info_ is not None:
            return expr
        info = body.struct_info_
        if info is not None and len(self._scopes) > 1:
            outer = self._scopes[-2]
            if normal.mentions_unknown(info, outer):
                info = erase_to_well_defined(info, outer.__contains__)
        return SeqExpr.from_fields(tuple(blocks), body, info)

    def _normalize_block(self, block: BindingBlock) -> BindingBlock:
        self._blocks.append(Frame(isinstance(block, DataflowBlock)))
        for binding in block.bindings:
            self._renormalize(binding)
        new = self.end_block()
        if len(new.bindings) == len(block.bindings) and all(
                a is b for a, b in zip(new.bindings, block.bindings)):
            return block
        return new

    def _renormalize(self, binding: Binding) -> None:
        value = self.normalize(binding.value)
        if isinstance(value, SeqExpr):
            value = self._splice(value)
        if isinstance(binding, MatchCast):
            value = self.as_leaf(value)
            if value is not binding.value:
                binding = MatchCast(binding.var, value, binding.struct_info)
        elif value is not binding.value:
            binding = VarBinding(binding.var, value)
        self.emit_normalized(binding)

    def _splice(self, seq: SeqExpr) -> Expr:
        """Put the bindings of a SeqExpr into the open block; its value."""
        for block in seq.blocks:
            for binding in block.bindings:
                self.emit_normalized(binding)
        return seq.body

    def _normalize_function(self, expr: Function) -> Expr:
        self.begin_scope(expr.params)
        try:
            body = self._as_seq(expr.body)
        finally:
            self.end_scope()
        if body is expr.body:
            return expr
        return Function(expr.params, body, expr.ret_struct_info, expr.is_pure, expr.attrs)


_NORMALIZE: dict[type, Callable[[BlockBuilder, Any], Any]] = {
    **dict.fromkeys((Var, DataflowVar, Constant, ShapeExpr, PrimValue, StringImm, DataTypeImm,
                     ExternFunc), BlockBuilder._leaf),
    Tuple: BlockBuilder._normalize_tuple, TupleGetItem: BlockBuilder._normalize_item,
    Call: BlockBuilder._normalize_call, If: BlockBuilder._normalize_if,
    SeqExpr: BlockBuilder._normalize_seq, Function: BlockBuilder._normalize_function,
}


def _key(func: BaseFunc) -> Any:
    """What structurally equal functions share."""
    return func.outline() if isinstance(func, PrimFunc) else structural_hash(func)


def _params(params: Any) -> list[Var]:
    """The parameters of a function; a single one may stand for a list of one."""
    params = [params] if isinstance(params, Var) else list(params)
    seen: set[Var] = set()
    for p in params:
        if not isinstance(p, Var):
            raise TypeError(f"the parameters of a function are relax.Var, got a {type(p).__name__}")
        if p.struct_info_ is None:
            raise ValueError(f"parameter {p.name_hint!r} has no struct info: write "
                             f'relax.Var("{p.name_hint}", relax.TensorStructInfo((n, 4)))')
        if p in seen:
            raise ValueError(f"parameter {p.name_hint!r} is twice in the list")
        seen.add(p)
    return params


def _fresh(taken: dict[str, int], prefix: str) -> str:
    """A name not given before: x, x1, x2, ..."""
    name, number = prefix, taken.get(prefix, 0)
    while name in taken:
        number += 1
        name = f"{prefix}{number}"
    taken[prefix] = number
    taken.setdefault(name, 0)
    return name


def _fresh_function(taken: set[str], prefix: str) -> str:
    """A function name not taken: f, f1, f2, ..."""
    name, number = prefix, 0
    while name in taken:
        number += 1
        name = f"{prefix}{number}"
    taken.add(name)
    return name


__all__ = ["BlockBuilder", "DataflowScope", "FunctionScope"]
