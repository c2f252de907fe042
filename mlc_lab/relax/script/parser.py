"""Relax functions from TVMScript: heads, words of the language, and how parsing begins.

What the statements of a function mean is in `statements.py`; expressions are the script parser's.
Importing this file registers the language with `mlc_lab.script`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Callable, Mapping

from ...ir.module import GlobalVar
from ...script import parser as script_parser
from ...script import tir as T
from ...script.forms.functions import refuse_twice
from ...tir import expr as E
from ...tir.stmt import annotation_value
from ..analysis import contains_impure_call
from ..block_builder import BlockBuilder
from ..expr import Call, Expr, Function, SeqExpr, Var, as_expr, as_struct_info
from ..op.base import VOID
from ..struct_info import OBJECT, FuncStructInfo
from ..well_formed import check_function
from . import words as R
from .statements import DataflowWord, MatchCastValue, OutputWord, RelaxFunction

if TYPE_CHECKING:
    from ...script.parser import Parser


# ------------------------------------------------------------------------------- words


def _function_of(parser: Parser, node: ast.AST, word: str) -> RelaxFunction:
    current = getattr(parser, "relax", None)
    if current is None:
        raise parser.error(node, f"R.{word} belongs in a function under @R.function")
    return current


def _dataflow(parser: Parser, node: ast.AST) -> DataflowWord:
    return DataflowWord()


def _output(parser: Parser, node: ast.AST, *values: Any) -> OutputWord:
    current = _function_of(parser, node, "output")
    if current.outputs is None:
        raise parser.error(node, "R.output belongs in `with R.dataflow():`")
    current.gave_out = True
    return OutputWord()


def _func_attr(parser: Parser, node: ast.AST, attrs: Mapping[str, Any]) -> None:
    if not isinstance(attrs, dict) or not all(isinstance(k, str) for k in attrs):
        raise parser.error(node, 'R.func_attr takes a dict by names, such as {"num_input": 1}')
    func = _function_of(parser, node, "func_attr")
    try:
        refuse_twice(func, attrs, "R")
    except ValueError as error:
        raise parser.error(node, str(error)) from None
    func.attrs.update(
        {k: annotation_value(v) for k, v in attrs.items()})


def _match_cast(parser: Parser, node: ast.AST, value: object, struct_info: Any) -> MatchCastValue:
    return MatchCastValue(as_expr(value), as_struct_info(struct_info))


def _emit(parser: Parser, node: ast.AST, value: object) -> Expr:
    return as_expr(value)


def _emit_te(parser: Parser, node: ast.AST, func: Any, *args: Any, **kwargs: Any) -> Expr:
    current = _function_of(parser, node, "emit_te")
    from ... import topi

    if getattr(topi, getattr(func, "__name__", ""), None) is not func or func is None:
        raise parser.error(node, "R.emit_te calls functions of topi only: scripts are parsed and "
                                 "never executed", "use BlockBuilder.emit_te for your own")
    call = current.builder.call_te(func, *args, **kwargs)
    var = call.args[0]
    parser.extra_functions[var] = current.builder.lookup_function(var)
    return call


WORDS: dict[str, Callable] = {
    "dataflow": _dataflow, "output": _output, "func_attr": _func_attr, "match_cast": _match_cast,
    "emit": _emit, "emit_te": _emit_te, "func_name": lambda parser, node, name: None,
}


# ------------------------------------------------------------------------------- functions


def _global_call(functions: Mapping[str, GlobalVar], effects: Callable[[], bool]
                 ) -> Callable[[GlobalVar, list], Call]:
    """Calls of the module's functions; the heads of Relax functions are all known by now.

    A TensorIR function is called directly, to fill its arguments, in functions lowered for the
    virtual machine only: those with `effects`.
    """
    def call(var: GlobalVar, args: list[Any]) -> Call:
        name = var.name_hint
        if var.struct_info_ is None and functions.get(name) is var:
            if effects():
                return Call(var, [as_expr(a) for a in args], struct_info=VOID)
            raise TypeError(f"{name} is a TensorIR function: call it with R.call_tir(cls.{name}, "
                            "(...), out_sinfo=R.Tensor(...))")
        return Call(var, [as_expr(a) for a in args])

    return call


def _head(parser: Parser, node: ast.FunctionDef, current: RelaxFunction) -> list[Var]:
    """The parameters, and the symbols and result that the head declares."""
    given, params = parser.plain_parameters(node, "a Relax function"), []
    for item in node.body:
        if isinstance(item, ast.Assign):
            current.declared.update(_declarations(parser, item))
    for arg in given:
        if arg.annotation is None:
            raise parser.error(arg, f"parameter {arg.arg!r} has no struct info",
                               f'write for example {arg.arg}: R.Tensor(("n", 128), "float32")')
        current.line = arg.annotation
        params.append(Var(arg.arg, current.annotation(arg.annotation)))
    if node.returns is not None:
        current.line = node.returns
        current.any_tuple = parser.annotation(node.returns) is R.Tuple
        if not current.any_tuple:
            current.ret = current.annotation(node.returns)
    return params


def _declarations(parser: Parser, node: ast.Assign) -> dict[str, E.Var]:
    """The symbols of `n, m = T.int64(), T.int64()`, as they are declared."""
    target, value = node.targets[0], node.value
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    values = value.elts if isinstance(value, ast.Tuple) else [value]
    found = {}
    for name, item in zip(names, values):
        if isinstance(name, ast.Name) and isinstance(item, ast.Call) and not item.args and (
                isinstance(item.func, ast.Attribute) and isinstance(item.func.value, ast.Name)):
            kind = parser.eval(item.func)
            if isinstance(kind, T.DtypeName):
                found[name.id] = parser.eval(item)
    return found


def _builder_of(parser: Parser) -> BlockBuilder:
    builder = parser.relax_builder
    if builder is None:
        builder = parser.relax_builder = BlockBuilder()
        builder._function_names.update(parser.functions)
    return builder


def parse_function(parser: Parser, node: ast.FunctionDef, options: Mapping[str, Any]) -> Function:
    """The Relax function that a definition under @R.function says."""
    outer = parser.relax
    builder = _builder_of(parser)
    current = parser.relax = RelaxFunction(parser, builder, outer)
    pure = bool(options.get("pure", True))
    saved_call, parser.make_global_call = parser.make_global_call, _global_call(
        parser.functions, lambda: not pure or bool(current.attrs.get("relax.force_pure")))
    if outer is None:
        parser.scopes.append(dict(parser.functions))
    parser.scopes.append({})
    R.RESOLVERS.append(current.resolve)
    saved_words = {k: vars(parser).get(k) for k in ("statement", "macro_value", "elsewhere")}
    parser.statement, parser.macro_value = current.statement, current.macro_value
    parser.elsewhere = current.elsewhere
    blocks, scopes = len(builder._blocks), len(builder._scopes)
    try:
        params = _head(parser, node, current)
        current.in_head = False
        for param in params:
            parser.define(param.name_hint, param)
        builder.begin_scope(params)
        builder.begin_binding_block()
        current.body(node.body)
        if current.result is None:
            raise parser.error(node, f"function {node.name!r} returns nothing",
                               "end it with `return ...`")
        current.close_block()
        attrs = dict(current.attrs)
        if options.get("private") and "global_symbol" in attrs:
            raise parser.error(node, f"{node.name} is private and yet has a global_symbol",
                               "leave out private=True, or the global_symbol")
        if outer is None and not options.get("private") and "global_symbol" not in attrs:
            attrs = {"global_symbol": node.name, **attrs}
        body = SeqExpr(current.blocks, current.result)
        if current.early and contains_impure_call(body):  # nothing was said of effects then
            pure = False
        func = Function(params, body, current.ret, pure, attrs)
    finally:
        del builder._blocks[blocks:], builder._scopes[scopes:]
        R.RESOLVERS.pop()
        parser.scopes.pop()
        if outer is None:
            parser.scopes.pop()
        parser.make_global_call = saved_call
        parser.relax = outer
        for name, value in saved_words.items():
            vars(parser).pop(name)
            if value is not None:
                setattr(parser, name, value)
    var = parser.functions.get(node.name) if outer is None else None
    if var is not None:
        var.set_struct_info(func.struct_info_)
    parser.places[func] = parser.source, node
    return func


def declare_function(parser: Parser, node: ast.FunctionDef) -> None:
    """Let the other functions of the module know what this one takes and gives."""
    parser.functions[node.name].set_struct_info(head_info(parser, node))


def head_info(parser: Parser, node: ast.FunctionDef) -> FuncStructInfo:
    """What the head of a function says."""
    current = RelaxFunction(parser, _builder_of(parser), parser.relax)
    parser.scopes.append({})
    R.RESOLVERS.append(current.resolve)
    saved, parser.elsewhere = parser.elsewhere, current.elsewhere
    decorator = node.decorator_list[-1]
    options = {k.arg: parser.flag(k.value) for k in decorator.keywords if k.arg} if isinstance(
        decorator, ast.Call) else {}
    try:
        params = _head(parser, node, current)
    finally:
        R.RESOLVERS.pop()
        parser.scopes.pop()
        parser.elsewhere = saved
    return FuncStructInfo([p.struct_info_ for p in params], current.ret or OBJECT,
                          bool(options.get("pure", True)))


script_parser.FUNCTION_PARSERS["relax"] = parse_function
script_parser.FUNCTION_DECLARERS["relax"] = declare_function
script_parser.FUNCTION_CHECKERS[Function] = check_function

__all__ = ["RelaxFunction", "declare_function", "parse_function"]
