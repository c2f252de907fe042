"""Where scripts come in: the decorators, and `from_source` for texts.

The parser itself is in `parser.py`; `source.py` finds the text of what is decorated.
"""

from __future__ import annotations

import ast
import sys
import types
from collections import ChainMap
from typing import Any, Callable, Mapping

from ..ir.diagnostics import DiagnosticError
from . import ir as I_names
from . import tir as T
from .deep import deep
from .macro import Macro
from .parser import Parser
from .source import Source, find_class, find_function, parse_dedented

class _Names(dict):
    """A dict, some of whose values are modules above this package: imported when asked for."""

    LATER = {"R": "mlc_lab.relax.script.names", "tvm.script.relax": "mlc_lab.relax.script.names",
             "mlc_lab.script.relax": "mlc_lab.relax.script.names"}

    def __missing__(self, name: str) -> Any:
        if name not in self.keys_later:
            raise KeyError(name)
        import importlib

        self[name] = found = importlib.import_module(self.LATER[name])
        return found

    def __init__(self, values: Mapping[str, Any], later: tuple[str, ...]) -> None:
        super().__init__(values)
        self.keys_later = later

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.keys_later


#: the names a text may use without importing them
DEFAULT_NAMES: dict[str, Any] = _Names({"T": T, "I": I_names}, ("R",))
#: modules that scripts import by their TVM names
MODULES: dict[str, Any] = _Names(
    {"tvm.script.tir": T, "tvm.script.ir": I_names, "mlc_lab.script.tir": T,
     "mlc_lab.script.ir": I_names}, ("tvm.script.relax", "mlc_lab.script.relax"))


def _parse(action: Callable[[], Any]) -> Any:
    """Run the parser; a mistake in the script is raised without the parser's own stack."""
    try:
        return deep(action)
    except DiagnosticError as error:
        raise error.with_traceback(None) from None


def _in_class_body(frame: types.FrameType) -> bool:
    return "__qualname__" in frame.f_locals and "__module__" in frame.f_locals and (
        frame.f_code.co_name != "<module>")


def decorate_function(fn: Any, private: bool, depth: int, check: bool = True,
                      parse: Callable[[Parser, ast.FunctionDef], Any] | None = None) -> Any:
    """What @T.prim_func does to a Python function; `depth` is the caller's frame.

    Another dialect gives `parse(parser, syntax tree)`.
    """
    if not isinstance(fn, types.FunctionType):
        return fn
    frame = sys._getframe(depth)
    if _in_class_body(frame):
        return fn  # the class's decorator parses it
    source, tree = find_function(fn)
    if tree is None:
        raise _no_source(fn.__name__, fn.__code__.co_filename)
    env = Source.environment_of(fn, frame.f_locals)
    parser = Parser(source, env)
    func = _parse(lambda: parse(parser, tree) if parse is not None else
                  parser.prim_func(tree, private))
    return parser.check(func) if check else func


def decorate_macro(fn: Any, hygienic: bool, depth: int) -> Any:
    """What @T.macro does."""
    frame = sys._getframe(depth)
    if _in_class_body(frame):
        return fn
    source, tree = find_function(fn)
    if tree is None:
        raise _no_source(fn.__name__, fn.__code__.co_filename)
    return Macro(tree, source, Source.environment_of(fn, frame.f_locals), hygienic, [])


def decorate_class(cls: Any, depth: int, check: bool = True) -> Any:
    """What @I.ir_module does to a class."""
    if not isinstance(cls, type):
        raise TypeError("@I.ir_module decorates a class of functions")
    frame = sys._getframe(depth)
    source, tree = find_class(cls, frame)
    if tree is None:
        raise _no_source(cls.__name__, frame.f_code.co_filename)
    cells: dict[str, Any] = {}
    for value in vars(cls).values():
        if isinstance(value, types.FunctionType):
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
                try:
                    cells[name] = cell.cell_contents
                except ValueError:
                    continue
    parser = Parser(source, ChainMap(cells, dict(frame.f_locals), frame.f_globals))
    mod = _parse(lambda: parser.module(tree))
    return parser.check(mod) if check else mod


def _no_source(name: str, filename: str) -> DiagnosticError:
    return DiagnosticError(
        f"the source of {name} is not available, and a script is parsed from its source", filename,
        hint="put it in a file or a notebook cell, or pass its text to from_source(text)")


def from_source(program: Any, extra_vars: Mapping[str, Any] | None = None,
                check_well_formed: bool = True) -> Any:
    """The PrimFunc or IRModule that a text defines (the last one, if there are several).

    `extra_vars` are names the text may mention, besides T, I and what it imports from tvm.script.
    A Python function or class is parsed from its own source. Nothing is executed. Raises
    DiagnosticError at the place of a mistake.
    """
    if isinstance(program, types.FunctionType):
        source, tree = find_function(program)
        if tree is None:
            raise _no_source(program.__name__, program.__code__.co_filename)
        env = ChainMap(dict(extra_vars or {}), Source.environment_of(program), DEFAULT_NAMES)
        parser = Parser(source, env)
        result = _parse(lambda: parser.function(tree) if tree.decorator_list else
                      parser.prim_func(tree, False))
        return parser.check(result) if check_well_formed else result
    if isinstance(program, type):
        frame = sys._getframe(1)
        source, tree = find_class(program, frame)
        if tree is None:
            raise _no_source(program.__name__, frame.f_code.co_filename)
        env = ChainMap(dict(extra_vars or {}), frame.f_locals, frame.f_globals, DEFAULT_NAMES)
        parser = Parser(source, env)
        mod = _parse(lambda: parser.module(tree))
        return parser.check(mod) if check_well_formed else mod
    if not isinstance(program, str):
        raise TypeError(f"expected the text of a script, got {type(program).__name__}")
    parser, result = _parse(lambda: _parse_text(program, extra_vars or {}))
    return parser.check(result) if check_well_formed else result


def _parse_text(text: str, extra_vars: Mapping[str, Any]) -> tuple[Parser, Any]:
    source, tree = parse_dedented(text, "<source>")
    names: dict[str, Any] = dict(extra_vars)
    result: Any = None
    owner = Parser(source, names)
    for node in tree.body:
        parser = Parser(source, ChainMap(names, DEFAULT_NAMES))
        if isinstance(node, ast.ClassDef):
            result = names[node.name] = parser.module(node)
            owner = parser
        elif isinstance(node, ast.FunctionDef):
            value = names[node.name] = parser.function(node)
            if not isinstance(value, Macro):
                result, owner = value, parser
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(imported_names(parser, node))
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if getattr(target, "id", None) == "metadata":
                names["metadata"] = _metadata(parser, node.value)
            else:
                parser.assign_names(target, parser.eval(node.value))
                names.update(parser.scopes[-1])
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            raise parser.error(node, "a script's text holds imports, constants, functions and "
                                     "modules only")
    if result is None:
        raise DiagnosticError("the text defines no function and no module", source.filename,
                              hint="it needs a function under @T.prim_func or a class under "
                                   "@I.ir_module")
    return owner, result


def imported_names(parser: Parser, node: Any) -> dict[str, Any]:
    """What the import lines of a text bind; only script modules are known."""
    found: dict[str, Any] = {}
    for alias in node.names:
        full = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        if full in MODULES and (alias.asname or isinstance(node, ast.ImportFrom)):
            found[alias.asname or alias.name] = MODULES[full]
        elif full.split(".")[0] in ("tvm", "mlc_lab") and not isinstance(node, ast.ImportFrom):
            found[alias.asname or full.split(".")[0]] = DEFAULT_NAMES["tvm"]
    return found


def _metadata(parser: Parser, node: ast.AST) -> Any:
    """metadata = tvm.ir.load_json("...")"""
    from ..ir.serialize import load_json

    if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(
            node.args[0], ast.Constant):
        return load_json(node.args[0].value)
    raise parser.error(node, "metadata is written as tvm.ir.load_json(\"...\")")


class _Package(types.SimpleNamespace):
    """What `tvm.` offers inside a text."""


def _tvm_names() -> _Package:
    from .. import ir as ir_package
    from .. import tir as tir_package

    script = _Package(ir_module=I_names.ir_module, tir=T, ir=I_names)
    return _Package(script=script, tir=tir_package, ir=ir_package)


DEFAULT_NAMES["tvm"] = _tvm_names()

__all__ = ["DEFAULT_NAMES", "MODULES", "decorate_class", "decorate_function", "decorate_macro",
           "from_source"]
