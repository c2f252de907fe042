"""Relax as TVMScript: what TVM 0.18 prints for functions, bindings, expressions and struct info.

The work is done on the `Printer` of `mlc_lab.script` (names, lines, frames); the functions here are
registered with it for the node types of Relax.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, TypeGuard

from ...ir.diagnostics import WellFormedError
from ...ir.module import GlobalVar
from ...script import printer as base
from ...script.print_expr import Rows, float_text, quote
from ...tir import expr as E
from .. import expr as X
from .. import struct_info as SI
from ..expr_functor import PyExprVisitor
from .print_info import State, insert, prim, sequence, states_of, struct_info
from .print_info import INFO as _INFO

if TYPE_CHECKING:
    from ...script.spans import SpanPrinter
    from ..expr import Expr

Printer = base.Printer
_SCALARS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
            "float16", "float32", "float64")


# ------------------------------------------------------------------------------- expressions


def expr(p: Printer, node: Any) -> str:
    """The text of an expression."""
    p.used.add("R")
    text = _EXPR[type(node)](p, node)
    return p.mark(node, text, "expr") if _marks(p) and p.expressions else text


def _marks(p: Printer) -> TypeGuard[SpanPrinter]:
    """Whether it is noted where nodes stand in the text."""
    return hasattr(p, "mark")


def exprs(p: Printer, nodes: Iterable[Any]) -> list[str]:
    """The texts of several."""
    return [expr(p, n) for n in nodes]


def var(p: Printer, node: X.Var) -> str:
    """A variable; one that nothing binds goes by its name."""
    found = p.names.get(node)
    if found is None:
        if not p.frames:
            p.enter(None)
        states = states_of(p)
        found = p.define(node, node.name_hint, states[0].frame if states else p.frames[0])
    return found


def global_var(p: Printer, node: GlobalVar) -> str:
    """cls.f in a module"""
    states = states_of(p)
    if states and p.alias and p._in_module:
        state = states[0]
        if not state.cls:
            state.cls = True
            insert(p, state, p.step * 2 + f"{p.alias} = {p.module_name}")
        return f"{p.alias}.{node.name_hint}"
    return node.name_hint


def constant(p: Printer, node: X.Constant) -> str:
    """R.const(1.0, "float32") for a scalar, metadata otherwise"""
    dtype = str(node.data.dtype)
    if not node.data.shape and dtype in _SCALARS:
        value = node.data.numpy().item()
        text = float_text(value) if isinstance(value, float) else repr(value)
        return f"{p.R}.const({text}, {quote(dtype)})"
    return p.meta(node)


def tuple_text(p: Printer, node: X.Tuple) -> str:
    """(a, b)"""
    return sequence(exprs(p, node.fields_)) if node.fields_ else f"{p.R}.tuple()"


def tuple_item(p: Printer, node: X.TupleGetItem) -> str:
    """t[0]"""
    return f"{expr(p, node.tuple_value)}[{node.index}]"


def shape_expr(p: Printer, node: SI.ShapeExpr) -> str:
    """R.shape([2, n])"""
    return f"{p.R}.shape([{', '.join(prim(p, v) for v in node.values)}])"


def attr_value(p: Printer, value: object) -> str:
    """The value of an operator's attribute."""
    if isinstance(value, float):
        text = format(value, ".17g")
        return text if any(c in text for c in ".en") else text + ".0"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(attr_value(p, v) for v in value)}]"
    if isinstance(value, X.Expr):
        return expr(p, value)
    if isinstance(value, E.PrimExpr):
        return prim(p, value)
    return p.attr(value)


def _function_attrs(p: Printer, attrs: dict[str, Any]) -> str:
    """Attributes of a function: here constants are plain, as Relax prints them."""
    parts = []
    for key in sorted(attrs):
        value = attrs[key]
        plain = type(value) is E.IntImm and value.dtype in ("int32", "bool")
        text = repr(bool(value.value) if value.dtype == "bool" else value.value) if plain else (
            p.attr(value))
        parts.append(f"{quote(key)}: {text}")
    return f"{{{', '.join(parts)}}}"


def _attrs(p: Printer, node: X.Call) -> list[str]:
    return [f"{k}={attr_value(p, v)}" for k, v in (node.attrs or {}).items()]


def _sinfo_args(p: Printer, node: X.Call) -> list[str]:
    if not node.sinfo_args:
        return []
    return [f"sinfo_args={sequence([struct_info(p, s) for s in node.sinfo_args])}"]


def _function_name(p: Printer, node: Any) -> str:
    return quote(node.global_symbol) if type(node) is X.ExternFunc else expr(p, node)


def _operator(node: X.Call) -> str:
    """The name of the operator that is called, in R."""
    assert isinstance(node.op, E.Op)
    return node.op.name.removeprefix("relax.")


def _destination_call(p: Printer, node: X.Call) -> str:
    """call_tir and its like"""
    name = _operator(node)
    args = [_function_name(p, node.args[0]), expr(p, node.args[1])]
    if node.sinfo_args:
        out = node.sinfo_args[0]
        if type(out) is SI.TupleStructInfo:
            text = f"[{', '.join(struct_info(p, f) for f in out.fields_)}]"
            if len(out.fields_) < 2:  # a list of one would be read as that one
                text = struct_info(p, out)
        else:
            text = struct_info(p, out)
        args.append(f"out_sinfo={text}")
    args += _attrs(p, node)
    if len(node.args) > 2:
        args.append(f"tir_vars={expr(p, node.args[2])}")
    return f"{p.R}.{name}({', '.join(args)})"


def _named_call(p: Printer, node: X.Call) -> str:
    """call_pure_packed and its like, whose first argument is a name"""
    name = _operator(node)
    args = [_function_name(p, node.args[0]), *exprs(p, node.args[1:]), *_attrs(p, node),
            *_sinfo_args(p, node)]
    return f"{p.R}.{name}({', '.join(args)})"


def _print_call(p: Printer, node: X.Call) -> str:
    args = [*exprs(p, node.args[1:]), f"format={expr(p, node.args[0])}"]
    return f"{p.R}.print({', '.join(args)})"


def _assert_call(p: Printer, node: X.Call) -> str:
    args = [expr(p, node.args[0]), *exprs(p, node.args[2:]), f"format={expr(p, node.args[1])}"]
    return f"{p.R}.assert_op({', '.join(args)})"


_CALLS: dict[str, Callable[[Printer, X.Call], str]] = {
    **dict.fromkeys(("relax.call_tir", "relax.call_tir_inplace", "relax.call_dps_packed",
                     "relax.call_tir_with_grad"), _destination_call),
    **dict.fromkeys(("relax.call_pure_packed", "relax.call_inplace_packed",
                     "relax.call_builtin_with_ctx"), _named_call),
    "relax.print": _print_call, "relax.assert_op": _assert_call,
}


def call(p: Printer, node: X.Call) -> str:
    """R.add(x, y), cls.f(x), R.call_packed("f", x)"""
    op = node.op
    if type(op) is E.Op:
        special = _CALLS.get(op.name)
        if special is not None:
            return special(p, node)
        args = [*exprs(p, node.args), *_attrs(p, node), *_sinfo_args(p, node)]
        return f"{p.R}.{op.name.removeprefix('relax.')}({', '.join(args)})"
    if type(op) is X.ExternFunc:
        args = [quote(op.global_symbol), *exprs(p, node.args), *_attrs(p, node),
                *_sinfo_args(p, node)]
        return f"{p.R}.call_packed({', '.join(args)})"
    args = [*exprs(p, node.args), *_attrs(p, node), *_sinfo_args(p, node)]
    return f"{expr(p, op)}({', '.join(args)})"


def _nested(p: Printer, node: Any) -> str:
    raise WellFormedError(f"a {type(node).__name__} has no text of one line; it stands in a "
                          "binding", "grammar", node)


_EXPR: dict[type, Callable[[Printer, Any], str]] = Rows({
    X.Var: var, X.DataflowVar: var, GlobalVar: global_var, X.Constant: constant,
    X.Tuple: tuple_text, X.TupleGetItem: tuple_item, SI.ShapeExpr: shape_expr, X.Call: call,
    X.PrimValue: lambda p, n: f"{p.R}.prim_value({prim(p, n.value)})",
    X.StringImm: lambda p, n: f"{p.R}.str({quote(n.value)})",
    X.DataTypeImm: lambda p, n: f"{p.R}.dtype({quote(n.value)})",
    X.ExternFunc: lambda p, n: f"{p.R}.ExternFunc({quote(n.global_symbol)})",
    E.Op: lambda p, n: f"{p.R}.{n.name.removeprefix('relax.')}",
    X.If: _nested, X.SeqExpr: _nested, X.Function: _nested,
})


# ------------------------------------------------------------------------------- bindings


def _begin(p: Printer, node: Any) -> None:
    """Where spans are wanted, the node starts at the next line."""
    if _marks(p):
        p.pending += p.open(node, "stmt")


def _end(p: Printer) -> None:
    if _marks(p):
        p.out[-1] += "\x03"


def _shows_info(node: X.VarBinding) -> bool:
    """Whether the annotation is printed: calls that say what they give show it there."""
    value = node.value
    if node.var.struct_info_ is None:
        return False
    if type(value) is X.Call and type(value.op) is E.Op and value.op.name in (
            "relax.call_tir", "relax.call_dps_packed"):
        return value.struct_info_ is None or value.struct_info_ != node.var.struct_info_
    return True


def _annotation(p: Printer, node: X.VarBinding) -> str:
    return f": {struct_info(p, node.var.struct_info_)}" if _shows_info(node) else ""


def _is_void(info: Any) -> bool:
    return type(info) is SI.TupleStructInfo and not info.fields_


def _is_used(p: Printer, v: X.Var) -> bool:
    states = states_of(p)
    return not states or v in states[0].used


def var_binding(p: Printer, node: X.VarBinding) -> None:
    """lv: R.Tensor(...) = R.add(x, y)"""
    value, bound = node.value, node.var
    if type(value) is X.If:
        note = _annotation(p, node)
        name = p.define(bound, bound.name_hint)
        if_expr(p, value, name + note)
        return
    if type(value) is X.Function:
        name = p.define(bound, bound.name_hint)
        function(p, value, name, local=True)
        p.out.append("")
        return
    if type(value) is X.SeqExpr:
        raise WellFormedError("a SeqExpr is the value of a binding: normalize the function first",
                              "grammar", value)
    if _is_void(bound.struct_info_) and not _is_used(p, bound):
        p.line(expr(p, value))
        return
    if type(value) is X.Tuple and len(value.fields_) > 1:
        text = ", ".join(exprs(p, value.fields_))
        if _marks(p) and p.expressions:
            text = p.mark(value, text, "expr")
    else:
        text = expr(p, value)
    note = _annotation(p, node)
    p.line(f"{p.define(bound, bound.name_hint)}{note} = {text}")


def match_cast(p: Printer, node: X.MatchCast) -> None:
    """x: R.Tensor((n,)) = R.match_cast(y, R.Tensor((n,)))"""
    value = expr(p, node.value)
    target = struct_info(p, node.struct_info)
    note = f": {struct_info(p, node.var.struct_info_)}" if node.var.struct_info_ is not None else ""
    p.line(f"{p.define(node.var, node.var.name_hint)}{note} = {p.R}.match_cast({value}, {target})")


def if_expr(p: Printer, node: X.If, target: str | None) -> None:
    """if c: ... else: ..., both ending in an assignment to `target`"""
    p.line(f"if {expr(p, node.cond)}:")
    for number, branch in enumerate((node.true_branch, node.false_branch)):
        if number:
            p.line("else:")
        saved, p.indent = p.indent, p.indent + p.step
        p.enter(branch)
        body = _blocks(p, branch)
        text = expr(p, body)
        p.line(f"{target} = {text}" if target else text)
        p.leave()
        p.indent = saved


def binding(p: Printer, node: X.Binding) -> None:
    """A binding."""
    _begin(p, node)
    if isinstance(node, X.VarBinding):
        var_binding(p, node)
    elif isinstance(node, X.MatchCast):
        match_cast(p, node)
    _end(p)


def block(p: Printer, node: X.BindingBlock) -> None:
    """A block of bindings."""
    _begin(p, node)
    if type(node) is X.DataflowBlock:
        p.line(f"with {p.R}.dataflow():")
        saved, p.indent = p.indent, p.indent + p.step
        for item in node.bindings:
            binding(p, item)
        outputs = [p.names[b.var] for b in node.bindings
                   if type(b.var) is not X.DataflowVar and b.var in p.names]
        p.line(f"{p.R}.output({', '.join(outputs)})")
        p.indent = saved
    else:
        for item in node.bindings:
            binding(p, item)
    if node.bindings or type(node) is X.DataflowBlock:
        _end(p)
    elif _marks(p):
        p.pending += "\x03"


def _blocks(p: Printer, seq: Any) -> Any:
    """Print the blocks of a body; what it gives."""
    while isinstance(seq, X.SeqExpr):
        for item in seq.blocks:
            block(p, item)
        seq = seq.body
    return seq


# ------------------------------------------------------------------------------- functions


class _Used(PyExprVisitor):
    """The variables that a function uses."""

    def __init__(self) -> None:
        self.found: set[Any] = set()

    def visit_var_(self, expr: Expr) -> None:
        self.found.add(expr)

    visit_dataflow_var_ = visit_var_


def _used_vars(func: X.Function) -> set[Any]:
    finder = _Used()
    if func.body is not None:
        finder.visit_expr(func)
    return finder.found


def function(p: Printer, func: X.Function, name: str, local: bool = False) -> None:
    """A function called `name`."""
    p.used.add("R")
    attrs = func.attrs or {}
    options = []
    if "global_symbol" not in attrs and not local:
        options.append("private=True")
    if not func.is_pure:
        options.append("pure=False")
    p.line(f"@{p.R}.function" + (f"({', '.join(options)})" if options else ""))
    frame = p.enter(func)
    states = states_of(p)
    state = State(frame, _used_vars(func))
    if states:  # a local function shares the symbols of the one around it
        state.heading = False
        states[0].used |= state.used
    states.append(state)
    returns = struct_info(p, func.ret_struct_info)
    params = [f"{p.define(v, v.name_hint)}: {struct_info(p, v.struct_info_)}"
              for v in func.params]
    state.heading = False
    p.line(f"def {name}({', '.join(params)}) -> {returns}:")
    saved, p.indent = p.indent, p.indent + p.step
    for line in state.head_vars:
        p.line(line)
    if str(attrs.get("global_symbol", "")) == name:
        attrs = {k: v for k, v in attrs.items() if k != "global_symbol"}
    if attrs:
        p.line(f"{p.R}.func_attr({_function_attrs(p, attrs)})")
    state.insert_at = len(p.out)
    if func.body is None:
        p.line("...")
    else:
        body = _blocks(p, func.body)
        if type(body) is X.If:
            if_expr(p, body, None)
        else:
            p.line(f"return {expr(p, body)}")
    states.pop()
    p.leave()
    p.indent = saved


def _global_function(p: Printer, func: X.Function, name: str) -> None:
    p._in_module = bool(p.indent)
    function(p, func, name)


def _one_line(text: Callable[[Printer, Any], str]) -> Callable[[Printer, Any], None]:
    def show(p: Printer, node: Any) -> None:
        p.enter(None)
        p.line(text(p, node))

    return show


def _lines(text: Callable[[Printer, Any], None]) -> Callable[[Printer, Any], None]:
    def show(p: Printer, node: Any) -> None:
        p.enter(None)
        text(p, node)

    return show


def _register() -> None:
    base.FUNCTION_PRINTERS[X.Function] = (2, _global_function)
    base.FUNCTION_PRINTERS[X.ExternFunc] = (
        3, lambda p, func, name: p.line(f"{name} = {expr(p, func)}"))
    for kind in _INFO:
        base.EXTRA_PRINTERS[kind] = _one_line(struct_info)
        base.ATTR_PRINTERS[kind] = struct_info
    for kind in _EXPR:
        if kind in (GlobalVar, E.Op, X.Function, X.If, X.SeqExpr):
            continue
        base.EXTRA_PRINTERS[kind] = _one_line(expr)
        base.ATTR_PRINTERS[kind] = expr
    base.EXTRA_PRINTERS[X.VarBinding] = base.EXTRA_PRINTERS[X.MatchCast] = _lines(binding)
    base.EXTRA_PRINTERS[X.BindingBlock] = base.EXTRA_PRINTERS[X.DataflowBlock] = _lines(block)
    base.EXTRA_PRINTERS[X.SeqExpr] = _lines(lambda p, n: p.line(expr(p, _blocks(p, n))))
    base.EXTRA_PRINTERS[X.If] = _lines(lambda p, n: if_expr(p, n, None))


_register()

__all__ = ["expr", "function", "struct_info"]
