"""TVMScript's parser: from the syntax tree of a Python function or class to a PrimFunc or IRModule.

Nothing of the script is executed. `Parser` handles functions and modules; each class below it is
one part of the language: `statements.py`, `assignments.py`, and expressions in `evaluator.py`. The
words of the language (T.block, T.grid, ...) are in `forms/`.
"""

from __future__ import annotations

import ast
from typing import Any, Callable, Mapping

from ..above import above
from ..ir.diagnostics import DiagnosticError, WellFormedError
from ..ir.global_info import MODULES
from ..ir.module import BaseFunc, GlobalVar, IRModule
from ..ir.node import Node
from ..reading.python_text import written
from ..tir import access
from ..tir import expr as E
from ..tir import stmt as S
from ..tir.buffer import Buffer
from ..tir.function import PrimFunc
from ..tir.well_formed import verify_well_formed
from . import ir as I_names
from . import tir as T
from .bounded import Budget
from .intrinsics import PRIM_FUNC_OPTIONS
from .macro import Macro
from .source import Source
from .statements import StatementParser
from .values import ModuleRef, Pending

#: parsers of other function dialects: kind of decorator -> function(parser, node, options)
FUNCTION_PARSERS: dict[str, Callable[["Parser", ast.FunctionDef, dict], Any]] = {}
#: what a module must know of a function before any body is parsed: kind -> function(parser, node)
FUNCTION_DECLARERS: dict[str, Callable[["Parser", ast.FunctionDef], None]] = {}
#: checks of other dialects' functions: type -> function(func, module or None)
FUNCTION_CHECKERS: dict[type, Callable[[Any, IRModule | None], None]] = {}
# TVM's own names for what this module offers: `from tvm.script.parser import tir as T`
tir, ir, prim_func, ir_module = T, I_names, T.prim_func, I_names.ir_module


def __getattr__(name: str) -> Any:
    """`relax` (R), whose language lies above this package, and `from_source`, which stands above
    this file."""
    if name == "from_source":
        return above("decorators of scripts").from_source
    if name != "relax":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return above("language of Relax")



class FuncContext:
    """What is known of the function being parsed."""

    def __init__(self, name: str) -> None:
        self.name, self.private = name, False
        self.params: list[E.Var] = []
        self.buffer_map: dict[E.Var, Buffer] = {}
        self.attrs: dict[str, Any] = {}
        self.ret_type: Any = None
        self.allocs: list[Buffer] = []


class Parser(StatementParser):
    """Functions and modules: parses one of them, in the names of the place it stands in."""

    def __init__(self, source: Source, env: Mapping[str, Any], budget: Budget | None = None
                 ) -> None:
        super().__init__(source, env, budget)
        self._func: FuncContext | None = None
        #: what the dialect of Relax keeps: the function that it parses, and its builder
        self.relax: Any = None
        self.relax_builder: Any = None
        self.functions: dict[str, GlobalVar] = {}
        #: functions that a dialect makes on the way
        self.extra_functions: dict[GlobalVar, Any] = {}
        #: result types of the module's functions, where their heads say one
        self.return_types: dict[GlobalVar, str] = {}

    @property
    def func(self) -> FuncContext:
        """The function of TensorIR being parsed. Raises ValueError outside of one."""
        if self._func is None:
            raise ValueError("this is a word of TensorIR: it must be inside a function under "
                             "@T.prim_func")
        return self._func

    def prim_func(self, node: ast.FunctionDef, private: bool) -> PrimFunc:
        """A function under @T.prim_func."""
        context = self._func = FuncContext(node.name)
        context.private = private
        self.scopes.append({})
        for arg in self.plain_parameters(node, "a prim_func"):
            self.parameter(arg)
        if node.returns is not None:
            kind = self.annotation(node.returns)
            if isinstance(kind, T.DtypeName):
                context.ret_type = kind.dtype
            elif isinstance(kind, E.Var):
                context.ret_type = kind.type_annotation or kind.dtype
            elif kind is not None:
                raise self.error(node.returns, "expected a return type such as T.int32")
        body = self.body(node.body)
        self.scopes.pop()
        self._func = None
        attrs = dict(context.attrs)
        if not private and "global_symbol" not in attrs:
            attrs = {"global_symbol": node.name, **attrs}
        func = PrimFunc(context.params, with_root(body, context.allocs), context.ret_type,
                        context.buffer_map, attrs)
        self.places[func] = self.source, node
        return func

    def check(self, obj: Any) -> Any:
        """Raise the error of a program that is not well formed, at its place in the source."""
        try:
            for func in obj.functions.values() if isinstance(obj, IRModule) else [obj]:
                self.current = func
                if isinstance(func, PrimFunc):
                    verify_well_formed(func)
                elif type(func) in FUNCTION_CHECKERS:
                    FUNCTION_CHECKERS[type(func)](func, obj if obj is not func else None)
        except WellFormedError as error:
            places = [p for p in (error.node, getattr(error, "statement", None), self.current)
                      if isinstance(p, Node)]
            found = next((self.places[p] for p in places if p in self.places), None)
            if found is None:
                raise
            hint = getattr(error, "hint", "") or (
                "pass check_well_formed=False to the decorator to build the program anyway")
            reason = getattr(error, "reason", None) or str(error)
            raise found[0].error(found[1], f"{reason} [{error.rule}]", hint) from None
        return obj

    def plain_parameters(self, node: ast.FunctionDef, what: str) -> list[ast.arg]:
        """The parameters of a function: each with a name of its own, and no defaults."""
        args = node.args
        if args.vararg or args.kwarg or args.kwonlyargs or args.defaults:
            raise self.error(node, f"{what} has plain parameters only, without defaults")
        found = args.posonlyargs + args.args
        for k, arg in enumerate(found):
            if arg.arg in (other.arg for other in found[:k]):
                raise self.error(arg, f"there are two parameters {arg.arg!r}",
                                 "give each a name of its own")
        return found

    def parameter(self, arg: ast.arg) -> None:
        """One parameter and its annotation."""
        context = self.func
        if arg.annotation is None:
            raise self.error(arg, f"parameter {arg.arg!r} has no type",
                             'write for example A: T.Buffer((128, 128), "float32"), n: T.int32 or '
                             "a: T.handle")
        kind = self.annotation(arg.annotation)
        if isinstance(kind, Pending):
            buffer = self.settle(kind, arg.arg)
            var = E.Var(f"{arg.arg}_handle", "handle")
            context.buffer_map[var] = buffer
            self.define(arg.arg, buffer)
        elif isinstance(kind, T.DtypeName):
            var = E.Var(arg.arg, kind.dtype)
            self.define(arg.arg, var)
        elif isinstance(kind, E.Var):
            var = kind.with_name(arg.arg)
            self.define(arg.arg, var)
        else:
            raise self.error(arg.annotation, "expected T.Buffer(...), T.handle or a type such as "
                                             "T.int32")
        context.params.append(var)

    def function(self, node: ast.FunctionDef) -> Any:
        """A decorated function, in whatever dialect its decorator says."""
        if not node.decorator_list:
            raise self.error(node, f"{node.name} has no decorator",
                             "put @T.prim_func above it")
        decorator = node.decorator_list[-1]
        options: dict[str, Any] = {}
        if isinstance(decorator, ast.Call):
            if decorator.args:
                raise self.error(decorator.args[0], "a decorator takes its options by name, as in "
                                                    "@T.prim_func(private=True)")
            options = {k.arg: self.flag(k.value) for k in decorator.keywords if k.arg}
            decorator = decorator.func
        kind = getattr(self.eval(decorator), "script_kind", None)
        if kind == "tir":
            for name in options:
                if name not in PRIM_FUNC_OPTIONS:
                    raise self.error(decorator, f"T.prim_func has no option {name!r}",
                                     f"it has {', '.join(PRIM_FUNC_OPTIONS)}")
            return self.prim_func(node, options.get("private", False))
        if kind == "macro":
            return Macro(node, self.source, self.env, options.get("hygienic", True),
                         list(self.scopes))
        if kind in FUNCTION_PARSERS:
            return FUNCTION_PARSERS[kind](self, node, options)
        raise self.error(decorator, f"{written(decorator)} is no decorator of a script "
                                    "function", "use @T.prim_func")

    def flag(self, node: ast.AST) -> bool:
        """An option of a decorator."""
        value = self.eval(node)
        if not isinstance(value, (bool, int)):
            raise self.error(node, "an option of a decorator is True or False")
        return bool(value)

    def kind_of(self, node: ast.FunctionDef) -> str | None:
        """Which dialect the decorator of a function says."""
        if not node.decorator_list:
            return None
        decorator = node.decorator_list[-1]
        if isinstance(decorator, ast.Call):
            decorator = decorator.func
        return getattr(self.eval(decorator), "script_kind", None)

    def module(self, node: ast.ClassDef) -> IRModule:
        """A class under @I.ir_module."""
        definitions = [n for n in node.body if isinstance(n, ast.FunctionDef)]
        self.functions = {n.name: GlobalVar(n.name) for n in definitions}
        for k, item in enumerate(definitions):
            if any(item.name == other.name for other in definitions[:k]):
                raise self.error(item, f"the module has a function {item.name} already",
                                 "give each function a name of its own")
        for item in definitions:
            try:
                kind = self.eval(item.returns) if isinstance(
                    item.returns, (ast.Attribute, ast.Name)) else None
            except DiagnosticError:  # a mistake, or a word of the function's own language
                kind = None
            if isinstance(kind, T.DtypeName):
                self.return_types[self.functions[item.name]] = kind.dtype
        reference = ModuleRef(self.functions)
        self.define(node.name, reference)
        self.define("cls", reference)
        mod = IRModule()
        MODULES.append(mod.global_infos)
        try:
            return self.module_body(node, definitions, mod)
        finally:
            MODULES.pop()

    def module_body(self, node: ast.ClassDef, definitions: list[ast.FunctionDef], mod: IRModule
                    ) -> IRModule:
        """The functions of a module, and what else it says."""
        for item in node.body:  # what heads may name
            infos = _global_infos(item)
            if infos is not None:
                self.module_form(infos, mod)
        for item in definitions:
            declare = FUNCTION_DECLARERS.get(self.kind_of(item) or "")
            if declare is not None:
                declare(self, item)
        for item in node.body:
            self.declare_extern(item, mod)
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                result = self.function(item)
                if isinstance(result, Macro):
                    self.define(item.name, result)
                else:
                    mod.update_func(self.functions[item.name], result)
                    for var, extra in self.extra_functions.items():
                        mod.update_func(var, extra)
            elif isinstance(item, ast.Expr) and isinstance(item.value, ast.Call):
                if _global_infos(item) is None:
                    self.module_form(item.value, mod)
            elif isinstance(item, ast.Assign):
                if getattr(item.targets[0], "id", None) not in self.functions:
                    self.assign_names(item.targets[0], self.eval(item.value))
            elif not isinstance(item, ast.Pass) and not (
                    isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)):
                raise self.error(item, "a module holds functions only")
        return mod

    def declare_extern(self, item: ast.stmt, mod: IRModule) -> None:
        """`name = R.ExternFunc("symbol")` is a function of the module too."""
        if not isinstance(item, ast.Assign) or not isinstance(item.targets[0], ast.Name):
            return
        call = item.value
        if not isinstance(call, ast.Call) or getattr(call.func, "attr", None) != "ExternFunc":
            return
        value, name = self.eval(call), item.targets[0].id
        if isinstance(value, BaseFunc):
            var = self.functions[name] = GlobalVar(name, getattr(value, "struct_info_", None))
            mod.update_func(var, value)

    def module_form(self, node: ast.Call, mod: IRModule) -> None:
        """I.module_attrs({...}) and the like."""
        form = self.eval(node.func)
        if form not in (I_names.module_attrs, I_names.module_global_infos):
            raise self.error(node, "a module holds functions, I.module_attrs and "
                                   "I.module_global_infos")
        given = self.arguments(node)[0]
        if len(given) != 1 or not isinstance(given[0], dict) or not all(
                isinstance(k, str) for k in given[0]):
            raise self.error(node, f'I.{form.name} takes a dict by names, such as {{"key": 1}}')
        if form is I_names.module_attrs:
            mod.attrs.update({k: S.annotation_value(v) for k, v in given[0].items()})
        else:
            mod.global_infos.update(given[0])

    def call_global(self, node: ast.AST, var: GlobalVar, args: list[Any]) -> Any:
        """A call of a function of the module, with the type its head says."""
        call = super().call_global(node, var, args)
        kind = self.return_types.get(var)
        return call if kind is None else E.Call(kind, call.op, call.args)


def _global_infos(item: ast.stmt) -> ast.Call | None:
    """The call of I.module_global_infos that a statement is; None for any other."""
    call = item.value if isinstance(item, ast.Expr) else None
    named = isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "module_global_infos"
    return call if isinstance(call, ast.Call) and named else None


def with_root(body: S.Stmt, allocs: list[Buffer]) -> S.Stmt:
    """The body inside a root block, where there are blocks or buffers to hold."""
    if type(body) is S.BlockRealize:
        needed = bool(allocs) or bool(body.block.iter_vars)
    else:
        needed = bool(allocs) or access.contains_block(body)
    if not needed:
        return body
    root = S.Block((), (), (), "root", body, None, allocs)
    return S.BlockRealize((), S.TRUE, root)


__all__ = ["FUNCTION_CHECKERS", "FUNCTION_DECLARERS", "FUNCTION_PARSERS", "Parser", "with_root"]
