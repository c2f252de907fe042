"""What passes over Relax share: walking, replacing variables, mapping blocks and functions.

Passes work on programs in normal form (`Normalize`): a function's body is a SeqExpr, every binding
binds one operation whose arguments are leaves (variables, constants, shapes, tuples of those). So
most passes are loops over lists of bindings, and what they leave alone stays the same object.
"""

from __future__ import annotations

from typing import (
    TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Sequence, TypeGuard, TypeVar,
)
from weakref import WeakKeyDictionary

from ...ir.module import GlobalVar, IRModule
from ...ir.node import Node
from ...ir.structural import structural_equal
from ...ir.transform import Pass, PassContext, PassInfo
from ...tir import expr as E
from ...tir.functor import substitute as substitute_tir
from ..expr import (
    Binding, BindingBlock, Call, Constant, DataflowBlock, DataflowVar, Expr, ExternFunc, Function,
    If, MatchCast, PrimValue, SeqExpr, ShapeExpr, Tuple, TupleGetItem, Var, VarBinding,
)
from ..normal import merge_blocks
from ..struct_info import (
    ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo, map_struct_info,
    tir_vars_in_struct_info,
)

if TYPE_CHECKING:
    from ...ir.module import BaseFunc

K = TypeVar("K", bound=Expr)
V = TypeVar("V", bound=Expr)

#: calls of functions of the module or of a registry, destination passed
CALL_TIR, CALL_TIR_INPLACE = "relax.call_tir", "relax.call_tir_inplace"
CALL_DPS_PACKED = "relax.call_dps_packed"


# ------------------------------------------------------------------------------- making passes


def make_pass(name: str, run: Callable[[IRModule, PassContext], IRModule], doc: str | None = None,
              opt_level: int = 0) -> Pass:
    """A pass over modules; `doc` is what `help` shows."""
    made = Pass(run, PassInfo(name, opt_level))
    made.__doc__ = doc
    return made


def make_function_pass(name: str, run: Callable[[Function, IRModule], Function],
                       doc: str | None = None, opt_level: int = 0) -> Pass:
    """A pass that rewrites each Relax function by itself."""
    return make_pass(name, lambda mod, ctx: map_functions(mod, lambda f: run(f, mod)), doc,
                     opt_level)


def map_functions(mod: IRModule, fn: Callable[[Function], Function]) -> IRModule:
    """The module with `fn` applied to each Relax function; the same module if none changed.

    Where the signature of a function changed, what calls it calls the new one.
    """
    changes = {}
    for var, func in mod.functions.items():
        if isinstance(func, Function):
            new = fn(func)
            if new is not func:
                changes[var] = new
    return replace_functions(mod, changes)


def replace_functions(mod: IRModule, changes: Mapping[GlobalVar, Any],
                      added: Mapping[GlobalVar, Any] | None = None,
                      removed: Iterable[GlobalVar] = ()) -> IRModule:
    """A module with functions changed, added and removed; the same module for no change.

    A function whose struct info changed gets a new GlobalVar of its old name, so that the module it
    came from stays what it was.
    """
    removed = set(removed)
    if not changes and not added and not removed:
        return mod
    renamed: dict[GlobalVar, GlobalVar] = {}
    for var, func in changes.items():
        old = mod.functions[var]
        if isinstance(func, Function) and isinstance(old, Function):
            info = func.struct_info_
            if old.struct_info_ != info:
                renamed[var] = GlobalVar(var.name_hint, info)
    new = mod.copy()
    new.functions, new._by_name = {}, {}
    replace = Replacer(globals_=renamed) if renamed else None
    for var, func in [*mod.functions.items(), *(added or {}).items()]:
        if var in removed:
            continue
        func = changes.get(var, func)
        if replace is not None and isinstance(func, Function):
            func = replace(func)
        new.update_func(renamed.get(var, var), func)
    return new


def fresh_name(taken: Any, hint: str) -> str:
    """`hint`, or `hint` with the first number that makes it new."""
    if hint not in taken:
        return hint
    number = 1
    while f"{hint}{number}" in taken:
        number += 1
    return f"{hint}{number}"


def add_function(mod: IRModule, func: BaseFunc, hint: str, reuse: bool = False) -> GlobalVar:
    """Put a function into a module (that the caller owns) under a fresh name.

    With `reuse` a function of the module whose name begins so and that is structurally equal is
    taken instead.
    """
    if reuse:
        for known, other in mod.functions.items():
            if known.name_hint.startswith(hint) and type(other) is type(func) and (
                    structural_equal(other, func) is True):
                return known
    var = GlobalVar(fresh_name(mod._by_name, hint), getattr(func, "struct_info_", None))
    mod.update_func(var, func)
    return var


# ------------------------------------------------------------------------------- looking


def op_name(expr: object) -> str:
    """The name of the operator that a call calls; "" for what is no call of an operator."""
    return expr.op.name if type(expr) is Call and isinstance(expr.op, E.Op) else ""


def is_call_of(expr: object, *names: str) -> TypeGuard[Call]:
    """Whether an expression is a call of one of these operators."""
    return op_name(expr) in names


def is_call_tir(expr: object) -> TypeGuard[Call]:
    """Whether an expression calls a TensorIR function of the module."""
    return op_name(expr) in (CALL_TIR, CALL_TIR_INPLACE)


def attr(func: Any, key: str, default: object = None) -> Any:
    """An attribute of a function as a plain Python value."""
    value = (func.attrs or {}).get(key, default)
    if isinstance(value, (E.IntImm, E.FloatImm)):
        return value.value
    return str(value) if isinstance(value, E.StringImm) else value


def is_exported(func: BaseFunc) -> bool:
    """Whether a function is an entry of the module: it has a global symbol."""
    return attr(func, "global_symbol") is not None


def shape_vars(info: StructInfo | None) -> Iterator[Var]:
    """The variables that hold a shape in a struct info."""
    if type(info) is TensorStructInfo:
        if isinstance(info.shape, Var):
            yield info.shape
    elif type(info) is TupleStructInfo:
        for item in info.fields_:
            yield from shape_vars(item)


def used_vars(expr: Node) -> Iterator[Var]:
    """Every use of a variable under an expression or binding, in order, with repetitions."""
    stack: list[Node] = [expr]
    while stack:
        item = stack.pop()
        if isinstance(item, Var):
            yield item
            continue
        if type(item) is Call:
            for info in item.sinfo_args:
                yield from shape_vars(info)
        elif type(item) is MatchCast:
            yield from shape_vars(item.struct_info)
        stack.extend(reversed(item.children()))


def bound_vars(expr: Node) -> Iterator[Var]:
    """Every variable that is bound under an expression, parameters of inner functions too."""
    for item in walk(expr):
        if isinstance(item, Binding):
            yield item.var
        elif type(item) is Function:
            yield from item.params


def free_relax_vars(expr: Node) -> list[Var]:
    """The variables used but not bound under an expression, each once, in order of use."""
    bound = set(bound_vars(expr))
    return list(dict.fromkeys(v for v in used_vars(expr) if v not in bound))


def walk(expr: Node) -> Iterator[Node]:
    """Every node under an expression, bindings and blocks included, wholes before parts."""
    stack: list[Node] = [expr]
    while stack:
        item = stack.pop()
        yield item
        stack.extend(reversed(item.children()))


#: what functions use, which passes ask one after another
_globals_of: WeakKeyDictionary[Node, tuple[GlobalVar, ...]] = WeakKeyDictionary()


def used_globals(func: Node) -> tuple[GlobalVar, ...]:
    """Every use of a function of the module in a function, or in an expression."""
    found = _globals_of.get(func)
    if found is None:
        found = _globals_of[func] = tuple(item for item in walk(func) if type(item) is GlobalVar)
    return found


def bindings_of(func: Function) -> Iterator[Binding]:
    """The bindings at the top of a function's body, in order."""
    if type(func.body) is SeqExpr:
        for block in func.body.blocks:
            yield from block.bindings


def contains_impure_call(expr: Node, own_name: GlobalVar | None = None) -> bool:
    """Whether evaluating an expression may have effects. An inner function is only a value."""
    stack = [expr]
    while stack:
        item = stack.pop()
        if type(item) is Function:
            continue
        if type(item) is Call and not is_pure_call(item):
            return True
        stack.extend(item.children())
    return False


def is_pure_call(call: Call) -> bool:
    """Whether a call has no effects: by the operator's row, or the callee's struct info."""
    if isinstance(call.op, E.Op):
        from ..op.registry import OPERATORS

        row = OPERATORS.get(call.op.name)
        return row is None or row.pure
    info = getattr(call.op, "struct_info_", None)
    return bool(getattr(info, "purity", False))


# ------------------------------------------------------------------------------- replacing


class Replacer:
    """Replaces variables, symbolic dimensions and functions of the module by others.

    With `fresh`, every variable that is bound inside is replaced by a new one of the same name, so
    that the result may stand beside the original.
    """

    def __init__(self, vars_: Mapping[Any, Expr] | None = None,  # by Var
                 dims: Mapping[E.Var, E.PrimExpr] | None = None,
                 globals_: Mapping[GlobalVar, GlobalVar] | None = None,
                 fresh: bool = False) -> None:
        self.vars: dict[Expr, Expr] = dict(vars_ or {})
        self.dims = dict(dims or {})
        self.globals = dict(globals_ or {})
        self.fresh = fresh

    def __call__(self, node: Any) -> Any:
        """The node with everything replaced; the same object when nothing was."""
        method = self._METHODS.get(type(node))
        return node if method is None else method(self, node)

    def prim(self, value: E.PrimExpr) -> E.PrimExpr:
        """A dimension."""
        if not self.dims or type(value) is E.IntImm:
            return value
        new = substitute_tir(value, self.dims)
        if new is value:
            return value
        from ...arith import Analyzer

        return Analyzer().simplify(new)

    def info(self, info: StructInfo | None) -> Any:
        """A struct info: its dimensions and shape variables replaced."""
        if info is None or not (self.dims or self.vars):
            return info
        return map_struct_info(info, self.prim, lambda v: self.vars.get(v, v))

    def define(self, var: Var) -> Var:
        """The variable to bind in place of `var`."""
        found = self.vars.get(var)
        if isinstance(found, Var):
            return found
        info = self.info(var.struct_info_)
        if info is var.struct_info_ and not self.fresh:
            return var
        new = type(var).from_fields(var.name_hint, info)
        self.vars[var] = new
        return new

    def _var(self, node: Var) -> Expr:
        return self.vars.get(node, node)

    def _global(self, node: GlobalVar) -> GlobalVar:
        return self.globals.get(node, node)

    def _many(self, items: tuple) -> tuple:
        new = tuple(map(self, items))
        return items if all(a is b for a, b in zip(new, items)) else new

    def _shape(self, node: ShapeExpr) -> Expr:
        new = tuple(map(self.prim, node.values))
        same = all(a is b for a, b in zip(new, node.values))
        return node if same else ShapeExpr(new)

    def _prim_value(self, node: PrimValue) -> Expr:
        new = self.prim(node.value)
        return node if new is node.value else PrimValue(new)

    def _tuple(self, node: Tuple) -> Expr:
        new = self._many(node.fields_)
        return node if new is node.fields_ else Tuple(new)

    def _get_item(self, node: TupleGetItem) -> Expr:
        new = self(node.tuple_value)
        return node if new is node.tuple_value else TupleGetItem(new, node.index)

    def _call(self, node: Call) -> Expr:
        op, args = self(node.op), self._many(node.args)
        infos = tuple(map(self.info, node.sinfo_args))
        info = self.info(node.struct_info_)
        attrs = node.attrs
        if (op is node.op and args is node.args and info is node.struct_info_
                and all(a is b for a, b in zip(infos, node.sinfo_args))):
            return node
        return Call.from_fields(op, args, attrs, infos, info)

    def _if(self, node: If) -> Expr:
        cond, yes, no = self(node.cond), self(node.true_branch), self(node.false_branch)
        if cond is node.cond and yes is node.true_branch and no is node.false_branch:
            return node
        return If.from_fields(cond, yes, no, self.info(node.struct_info_))

    def _seq(self, node: SeqExpr) -> Expr:
        blocks = self._many(node.blocks)
        body = self(node.body)
        if blocks is node.blocks and body is node.body:
            return node
        return SeqExpr.from_fields(tuple(merge_blocks(blocks)), body, body.struct_info_)

    def _block(self, node: BindingBlock) -> BindingBlock:
        new = self._many(node.bindings)
        return node if new is node.bindings else type(node)(new)

    def _binding(self, node: VarBinding) -> Binding:
        value = self(node.value)
        var = self.define(node.var)
        return node if value is node.value and var is node.var else VarBinding(var, value)

    def _match(self, node: MatchCast) -> Binding:
        value, info = self(node.value), self.info(node.struct_info)
        var = self.define(node.var)
        if value is node.value and var is node.var and info is node.struct_info:
            return node
        return MatchCast(var, value, info)

    def _function(self, node: Function) -> Function:
        params = tuple(map(self.define, node.params))
        body, ret = self(node.body), self.info(node.ret_struct_info)
        if (body is node.body and ret is node.ret_struct_info
                and all(a is b for a, b in zip(params, node.params))):
            return node
        return Function.from_fields(params, body, ret, node.is_pure, node.attrs)

    _METHODS = {
        Var: _var, DataflowVar: _var, GlobalVar: _global, ShapeExpr: _shape,
        PrimValue: _prim_value, Tuple: _tuple, TupleGetItem: _get_item, Call: _call, If: _if,
        SeqExpr: _seq, BindingBlock: _block, DataflowBlock: _block, VarBinding: _binding,
        MatchCast: _match, Function: _function,
    }


def copy_function(func: Function) -> Function:
    """The function with variables of its own."""
    return Replacer(fresh=True)(func)


# ------------------------------------------------------------------------------- blocks


def with_body(func: Function, body: Expr, ret: StructInfo | None = None) -> Function:
    """The function around another body."""
    if body is func.body:
        return func
    return Function.from_fields(func.params, body, ret or func.ret_struct_info, func.is_pure,
                                func.attrs)


def with_own_dims(func: Function) -> Function:
    """The function with symbolic dimensions of its own: no two functions of a module share one."""
    dims: dict[E.Var, None] = {}
    for param in func.params:
        dims.update(dict.fromkeys(tir_vars_in_struct_info(param.struct_info_)))
    if not dims:
        return func
    return Replacer(dims={v: type(v)(v.name, v.dtype) for v in dims})(func)


def map_blocks(expr: Expr, fn: Callable[[BindingBlock], Any]) -> Any:
    """`fn` applied to every binding block under an expression, inner blocks first.

    `fn` answers a block, or a list of blocks that takes its place. Empty blocks are left out.
    """
    if type(expr) is SeqExpr:
        blocks: list[BindingBlock] = []
        for block in expr.blocks:
            new = fn(_map_inner(block, fn))
            blocks += new if isinstance(new, list) else [new]
        blocks = merge_blocks(blocks)
        body = map_blocks(expr.body, fn)
        if body is expr.body and same_parts(blocks, expr.blocks):
            return expr
        return SeqExpr(blocks, body)
    if type(expr) is Function:
        return with_body(expr, map_blocks(expr.body, fn))
    if type(expr) is If:
        yes, no = map_blocks(expr.true_branch, fn), map_blocks(expr.false_branch, fn)
        if yes is expr.true_branch and no is expr.false_branch:
            return expr
        return If.from_fields(expr.cond, yes, no, expr.struct_info_)
    return expr


def _map_inner(block: BindingBlock, fn: Callable[[BindingBlock], Any]) -> BindingBlock:
    """A block whose If and function values had their own blocks mapped."""
    out = None
    for index, binding in enumerate(block.bindings):
        value = binding.value
        if type(value) in (If, Function):
            new = map_blocks(value, fn)
            if new is not value:
                out = list(block.bindings) if out is None else out
                out[index] = VarBinding(binding.var, new)
    return block if out is None else type(block)(out)


def same_parts(new: Sequence[Any], old: Sequence[Any]) -> bool:
    """Whether two sequences hold the same objects."""
    return len(new) == len(old) and all(a is b for a, b in zip(new, old))


def forget_inner(values: dict[K, V], block: BindingBlock) -> None:
    """Leave out of what is known of variables what only `block`, which ends here, may name: no
    variable of a dataflow block is seen outside of it."""
    if type(block) is DataflowBlock:
        for var in [k for k, value in values.items()
                    if any(type(v) is DataflowVar for v in used_vars(value))]:
            del values[var]


def same_bindings(block: BindingBlock, bindings: Sequence[Binding]) -> BindingBlock:
    """`block` itself if these are its bindings, else one of its kind with them."""
    return block if same_parts(bindings, block.bindings) else type(block)(bindings)


def join_blocks(blocks: Iterable[BindingBlock]) -> list[BindingBlock]:
    """Blocks without empty ones, neighbours of one kind joined."""
    out: list[BindingBlock] = []
    for block in blocks:
        if out and block.bindings and type(out[-1]) is type(block):
            out[-1] = type(block)(out[-1].bindings + block.bindings)
        elif block.bindings:
            out.append(block)
    return out


class Emitter:
    """Collects bindings; `emit` binds a value to a new variable and answers it."""

    def __init__(self, dataflow: bool = True, taken: Iterable[str] = ()) -> None:
        self.bindings: list[Binding] = []
        self.dataflow = dataflow
        self.names: dict[str, int] = {}
        self._taken = set(taken)

    def fresh(self, hint: str) -> str:
        """A name that this emitter gave to nothing yet."""
        number = self.names.get(hint, 0)
        name = f"{hint}{number}" if number else hint
        while name in self._taken:
            number += 1
            name = f"{hint}{number}"
        self.names[hint] = number + 1
        self._taken.add(name)
        return name

    def emit(self, value: Expr, hint: str = "", info: StructInfo | None = None) -> Var:
        """Bind a value. A leaf variable is answered as it is."""
        if isinstance(value, Var):
            return value
        kind = DataflowVar if self.dataflow else Var
        name = self.fresh(hint or ("lv" if self.dataflow else "gv"))
        var = kind(name, info if info is not None else value.struct_info)
        self.bindings.append(VarBinding(var, value))
        return var

    def output(self, value: Expr, hint: str = "gv") -> Var:
        """Bind a value to a variable that is seen outside the dataflow block."""
        var = Var(self.fresh(hint), value.struct_info)
        self.bindings.append(VarBinding(var, value))
        return var


def tensor_bytes(info: StructInfo | None) -> int | None:
    """The size of a value in bytes; None where it is unknown or symbolic."""
    from ...ir import dtype as dt

    if isinstance(info, TensorStructInfo):
        if info.dims is None or not info.dtype:
            return None
        total = 1
        for dim in info.dims:
            if type(dim) is not E.IntImm:
                return None
            total *= dim.value
        return total * dt.bytes_of(info.dtype)
    if isinstance(info, TupleStructInfo):
        total = 0
        for field in info.fields_:
            size = tensor_bytes(field)
            if size is None:
                return None
            total += size
        return total
    return None


__all__ = [
    "Binding", "BindingBlock", "CALL_DPS_PACKED", "CALL_TIR", "CALL_TIR_INPLACE", "Call",
    "Constant", "DataflowBlock", "DataflowVar", "Emitter", "Expr", "ExternFunc", "Function",
    "GlobalVar", "IRModule", "If", "MatchCast", "Pass", "PassContext", "PrimValue", "Replacer",
    "SeqExpr", "ShapeExpr", "ShapeStructInfo", "StructInfo", "TensorStructInfo", "Tuple",
    "TupleGetItem", "TupleStructInfo", "Var", "VarBinding", "add_function", "attr",
    "bindings_of", "bound_vars", "contains_impure_call", "copy_function", "forget_inner",
    "free_relax_vars", "fresh_name", "is_call_of", "is_call_tir", "is_exported", "is_pure_call",
    "join_blocks", "make_function_pass", "make_pass", "map_blocks", "map_functions", "op_name",
    "replace_functions", "same_bindings", "shape_vars", "tensor_bytes",
    "used_globals", "used_vars", "walk", "with_body", "with_own_dims",
]
