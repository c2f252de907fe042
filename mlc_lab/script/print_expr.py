"""How each expression is written. `EXPR` maps a node type to its function (printer, node, outer).

`outer` is how strongly the place around binds; an operator that binds weaker is parenthesised.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable

from ..ir import dtype as dt
from ..ir.diagnostics import WellFormedError
from ..ir.module import GlobalVar
from ..tir import expr as E
from ..tir import op as O
from .intrinsics import CALL_NAMES, DTYPE_FIRST, DTYPE_LAST, GIVEN_DTYPES

if TYPE_CHECKING:
    from .printer import Printer

# binding strength of operators, as in Python's grammar
_OR, _AND, _NOT, _COMPARE, _ADD, _MUL = 2, 3, 4, 5, 10, 11

_CONSTANT = (E.IntImm, E.FloatImm)


def quote(text: str) -> str:
    """A string literal in double quotes."""
    if '"' not in text and "\\" not in text and text.isprintable():
        return f'"{text}"'
    body = repr(text)
    if body[0] == '"':
        return body
    inner = body[1:-1].replace("\\'", "'").replace('"', '\\"')
    return f'"{inner}"'


def float_text(value: float) -> str:
    """A float as TVM writes it: at least one decimal, 17 digits where they are needed."""
    if math.isinf(value) or math.isnan(value):
        return f'float("{"nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}")'
    if value == int(value):
        return f"{value:.1f}"
    return f"{value:.17g}"


def _write_int(p: Printer, e: E.IntImm, outer: int) -> str:
    if e.dtype == p.int_dtype:
        return str(e.value)
    p.used.add("T")
    if e.dtype == "bool":
        return f"{p.T}.bool({bool(e.value)})"
    return f"{p.T}.{e.dtype}({e.value})"


def _write_float(p: Printer, e: E.FloatImm, outer: int) -> str:
    if e.dtype == p.float_dtype:
        return float_text(e.value)
    p.used.add("T")
    text = float_text(e.value)
    return f"{p.T}.{e.dtype}({text[6:-1] if text[0] == 'f' else text})"


def _operator(symbol: str, cls: type, strength: int, keeps: Callable[[Any, Any], bool],
              chained: bool = True) -> Callable:
    """Writes `a symbol b` where the parser's operator would build this very node back."""
    left, right = (strength if chained else strength + 1), strength + 1
    name, middle = cls.__name__, f" {symbol} "

    def write(p: Printer, e: E.BinaryOp, outer: int) -> str:
        a, b = e.a, e.b
        if (type(a) in _CONSTANT or type(b) in _CONSTANT or a.dtype != b.dtype) and not keeps(a, b):
            return f"{p.T}.{name}({p.expr(a)}, {p.expr(b)})"
        text = p.expr(a, left) + middle + p.expr(b, right)
        return f"({text})" if strength < outer else text

    return write


def _folds(cls: type) -> Callable[[Any, Any], bool]:
    def keeps(a: Any, b: Any) -> bool:
        if a.dtype != b.dtype:
            return False
        try:
            return O.fold_binary(cls, a, b) is None
        except ZeroDivisionError:
            return False

    return keeps


def _never_both_constant(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and not (type(a) in _CONSTANT and type(b) in _CONSTANT)


def _never_constant(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and type(a) not in _CONSTANT and type(b) not in _CONSTANT


def _call_of(name: str, raw: str, cls: type) -> Callable:
    """T.min and the like: functions that fold; `raw` where folding would change the node."""
    keeps = _folds(cls)

    def write(p: Printer, e: E.BinaryOp, outer: int) -> str:
        word = name if keeps(e.a, e.b) else raw
        return f"{p.T}.{word}({p.expr(e.a)}, {p.expr(e.b)})"

    return write


def _write_div(p: Printer, e: E.Div, outer: int) -> str:
    if dt.is_float(e.a.dtype) and _folds(E.Div)(e.a, e.b):
        text = f"{p.expr(e.a, _MUL)} / {p.expr(e.b, _MUL + 1)}"
        return f"({text})" if _MUL < outer else text
    return f"{p.T}.Div({p.expr(e.a)}, {p.expr(e.b)})"


def _write_not(p: Printer, e: E.Not, outer: int) -> str:
    if type(e.a) in _CONSTANT:
        return f"{p.T}.Not({p.expr(e.a)})"
    text = f"not {p.expr(e.a, _NOT)}"
    return f"({text})" if _NOT < outer else text


def _write_load(p: Printer, e: E.BufferLoad, outer: int) -> str:
    name = p.names.get(e.buffer) or p.buffer_name(e.buffer)
    if e.predicate is not None:
        return f"{name}.vload([{p.indices(e.indices)}], predicate={p.expr(e.predicate)})"
    return f"{name}[{p.indices(e.indices)}]"


def _write_let(p: Printer, e: E.Let, outer: int) -> str:
    value = p.expr(e.value)
    p.enter(e)
    name = p.define(e.var, e.var.name)
    creation = "" if type(e.var) is E.Var and e.var.type_annotation is None else ""
    body = p.expr(e.body)
    p.leave()
    return f"{p.T}.Let({body}, where={{{name}: {value}}}{creation})"


def _plain_call(e: E.Call, row: O.Intrinsic) -> bool:
    """Whether `T.name(args)` builds this call back, result type and all."""
    args = e.args
    if row.result == "given":
        rule = GIVEN_DTYPES.get(e.op.name)
        if e.op.name == "tir.if_then_else":
            return (len(args) == 3 and type(args[0]) is not E.IntImm
                    and args[1].dtype == args[2].dtype == e.dtype and dt.is_bool(args[0].dtype))
        return rule is not None and e.dtype == (
            args[rule].dtype if isinstance(rule, int) and len(args) > rule else rule)
    if row.arity is None or not args:
        return e.dtype == row.result
    if len(args) != row.arity:
        return False
    first = args[0].dtype
    lanes = dt.lanes_of(first)
    expected = first if row.result == "same" else dt.with_lanes(row.result, lanes)
    if e.dtype != expected or not (dt.is_float(first) or row.name in O.ACCEPTS_INTEGERS):
        return False
    if row.arity == 2:
        both = type(args[0]) is E.IntImm and type(args[1]) is E.IntImm
        return (args[0].dtype == args[1].dtype or row.name == "ldexp") and not both
    return True


def _write_call(p: Printer, e: E.Call, outer: int) -> str:
    op = e.op
    if type(op) is GlobalVar:
        return f"{p.module_name}.{op.name_hint}({p.exprs(e.args)})"
    if type(op) is not E.Op:
        return f"{p.attr(op)}({p.exprs(e.args)})"
    p.used.add("T")
    name = op.name
    short = CALL_NAMES.get(name) or name.rpartition(".")[2]
    if name in DTYPE_FIRST:
        args = [quote(e.dtype)] + [p.expr(a) for a in e.args]
    elif name in DTYPE_LAST:
        args = [p.expr(a) for a in e.args] + [quote(e.dtype)]
    elif name == "tir.tvm_storage_sync" or _plain_call(e, O.INTRINSIC_OF.get(name, _UNKNOWN)):
        args = [p.expr(a) for a in e.args]
    else:
        short = "call_intrin"
        args = [quote(e.dtype), quote(name)] + [p.expr(a) for a in e.args]
    if e.annotations:
        args.append(f"annotations={p.attrs(e.annotations)}")
    return f"{p.T}.{short}({', '.join(args)})"


_UNKNOWN = O.Intrinsic("", None, "opaque", "", "")


def reducer(p: Printer, r: E.CommReducer) -> str:
    """T.comm_reducer(lambda x, y: x + y, [T.float32(0)])"""
    p.enter(r)
    names = [p.define(v, v.name) for v in (*r.lhs, *r.rhs)]
    body = p.expr(r.result[0]) if len(r.result) == 1 else p.tuple(r.result)
    p.leave()
    return (f"{p.T}.comm_reducer(lambda {', '.join(names)}: {body}, "
            f"[{p.exprs(r.identity_element)}])")


def _write_reduce(p: Printer, e: E.Reduce, outer: int) -> str:
    p.enter(e)
    axes = []
    for iv in e.axis:
        p.define(iv.var, iv.var.name)
        axes.append(iter_var(p, iv))
    combiner = reducer(p, e.combiner)
    text = (f"{p.T}.reduce({combiner}, source=[{p.exprs(e.source)}], init=[{p.exprs(e.init)}], "
            f"axis=[{', '.join(axes)}], condition={p.expr(e.condition)}, "
            f"value_index={e.value_index})")
    p.leave()
    return text


_ITER_TYPES = {0: "DataPar", 1: "ThreadIndex", 2: "CommReduce", 3: "Ordered", 4: "DimInfo",
               5: "Unrolled", 6: "Vectorized", 7: "Parallelized", 8: "Tensorized"}


def iter_var(p: Printer, iv: E.IterVar) -> str:
    """T.iter_var(i, I.Range(0, 8), "DataPar", "")"""
    dom = range_text(p, iv.dom) if iv.dom is not None else "None"
    return (f"{p.T}.iter_var({p.var_name(iv.var)}, {dom}, {quote(_ITER_TYPES[iv.iter_type])}, "
            f"{quote(iv.thread_tag or '')})")


def range_text(p: Printer, r: E.Range) -> str:
    """I.Range(0, 128)"""
    return f"{p.I}.Range({p.expr(r.min)}, {p.expr(O.add(r.min, r.extent))})"


def _producer_load(p: Printer, e: E.ProducerLoad, outer: int) -> str:
    return f"{getattr(e.producer, 'name', 'tensor')}[{p.indices(e.indices)}]"


class Rows(dict[type, Any]):
    """How each kind of node is printed. What has no row stands where it cannot."""

    def __missing__(self, kind: type) -> Any:
        raise WellFormedError(f"a {kind.__name__} stands where no script can have one", "grammar")


EXPR: dict[type, Callable[[Printer, Any, int], str]] = Rows({
    E.Var: lambda p, e, o: p.names.get(e) or p.var_name(e),
    E.SizeVar: lambda p, e, o: p.names.get(e) or p.var_name(e),
    E.IntImm: _write_int, E.FloatImm: _write_float,
    E.StringImm: lambda p, e, o: quote(e.value),
    E.Cast: lambda p, e, o: f"{p.T}.Cast({quote(e.dtype)}, {p.expr(e.value)})",
    E.Add: _operator("+", E.Add, _ADD, _folds(E.Add)),
    E.Sub: _operator("-", E.Sub, _ADD, _folds(E.Sub)),
    E.Mul: _operator("*", E.Mul, _MUL, _folds(E.Mul)),
    E.FloorDiv: _operator("//", E.FloorDiv, _MUL, _folds(E.FloorDiv)),
    E.FloorMod: _operator("%", E.FloorMod, _MUL, _folds(E.FloorMod)),
    E.Div: _write_div,
    E.Mod: _call_of("truncmod", "Mod", E.Mod),
    E.Min: _call_of("min", "Min", E.Min), E.Max: _call_of("max", "Max", E.Max),
    **{cls: _operator(symbol, cls, _COMPARE, _never_both_constant, chained=False)
       for cls, symbol in ((E.EQ, "=="), (E.NE, "!="), (E.LT, "<"), (E.LE, "<="), (E.GT, ">"),
                           (E.GE, ">="))},
    E.And: _operator("and", E.And, _AND, _never_constant),
    E.Or: _operator("or", E.Or, _OR, _never_constant),
    E.Not: _write_not,
    E.Select: lambda p, e, o: f"{p.T}.Select({p.exprs(e.children())})",
    E.BufferLoad: _write_load, E.ProducerLoad: _producer_load,
    E.Ramp: lambda p, e, o: f"{p.T}.Ramp({p.expr(e.base)}, {p.expr(e.stride)}, {e.lanes})",
    E.Broadcast: lambda p, e, o: f"{p.T}.Broadcast({p.expr(e.value)}, {e.lanes})",
    E.Shuffle: lambda p, e, o: (f"{p.T}.Shuffle([{p.exprs(e.vectors)}], "
                                f"[{p.exprs(e.indices)}])"),
    E.Let: _write_let, E.Call: _write_call, E.Reduce: _write_reduce,
})

__all__ = ["EXPR", "Rows", "float_text", "iter_var", "quote", "range_text", "reducer"]
