"""Where scripts come in: the decorators, and `from_source` for texts.

The parser itself is in `parser.py`; `source.py` finds the text of what is decorated.
"""

from __future__ import annotations

import ast
import linecache
import sys
import types
from collections import ChainMap
from typing import Any, Callable, Mapping

from ..above import above
from ..ir.diagnostics import DiagnosticError, MLCError, told
from ..ir.recursion import grows_stack, with_large_stack
from ..reading import MISTAKES, limits
from ..reading.collector import makes_many
from ..reading.python_text import line_too_deep
from ..tir import op as O
from . import allowed
from . import ir as I_names
from . import tir as T
from .allowed import Names
from .bounded import Budget
from .evaluator import Evaluator
from .macro import Macro
from .parser import Parser
from .source import Source, find_class, find_function, parse_dedented

class _Names(dict):
    """A dict in which some names stand for R, which is loaded when asked for."""

    def __init__(self, values: Mapping[str, Any], relax: tuple[str, ...]) -> None:
        super().__init__(values)
        self.relax = relax

    def __missing__(self, name: str) -> Any:
        if name not in self.relax:
            raise KeyError(name)
        self[name] = found = above("language of Relax")
        return found

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.relax


#: the names a text may use without importing them
DEFAULT_NAMES: dict[str, Any] = _Names({"T": T, "I": I_names}, ("R",))
#: modules that scripts import by their TVM names
MODULES: dict[str, Any] = _Names(
    {"tvm.script.tir": T, "tvm.script.ir": I_names, "mlc_lab.script.tir": T,
     "mlc_lab.script.ir": I_names}, ("tvm.script.relax", "mlc_lab.script.relax"))


@makes_many
def _parse(filename: str, build: Callable[[], tuple[Parser, Any]], check: bool) -> Any:
    """What `build` gives, checked; a mistake is raised without the parser's own stack.

    `build` makes a parser and what it parsed; it is called again where the stack was too small.
    """
    def action() -> Any:
        parser, made = build()
        return parser.check(made) if check else made

    try:
        return grows_stack(action)()
    except DiagnosticError as error:
        raise told(error.with_traceback(None)) from None
    except RecursionError as error:
        hint = f"split it, or bind parts to names: up to {limits.DEPTH} levels are well"
        raise told(_placed(error, filename, "the script is nested too deeply", hint)) from None
    except MemoryError as error:
        raise told(_placed(error, filename, "the script is too large for the memory there is")
                   ) from None
    except MLCError:
        raise
    except MISTAKES as error:
        raise told(_placed(error, filename, str(error))) from error


def _placed(error: BaseException, filename: str, message: str, hint: str = "") -> DiagnosticError:
    """The error for what was raised while a script was parsed, at the place that was reached."""
    place, trace = getattr(error, "place", None), error.__traceback__
    while place is None and trace is not None:
        parser, node = (trace.tb_frame.f_locals.get(n) for n in ("self", "node"))
        if isinstance(parser, Evaluator) and getattr(node, "lineno", 0):
            place = parser.error, node
        trace = trace.tb_next
    if place is None:  # Python's own parser gave up
        text = getattr(error, "text", "")
        line = with_large_stack(lambda: line_too_deep(text)) if text else 1
        return DiagnosticError(message, filename, line, 1, hint=hint)
    return place[0](place[1], message, hint)


def _in_class_body(frame: types.FrameType) -> bool:
    return "__qualname__" in frame.f_locals and "__module__" in frame.f_locals and (
        frame.f_code.co_name != "<module>")


def _class_is_plain(frame: types.FrameType) -> bool:
    """Whether the class of a body has no decorator, so that none will parse its functions.

    False where the source is not there to be read.
    """
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    at = frame.f_code.co_firstlineno - 1
    if not 0 <= at < len(lines) or not lines[at].lstrip().startswith("class "):
        return False  # its first line is a decorator's
    above_it = lines[at - 1].strip() if at else ""
    return not above_it.startswith("@") and not above_it.endswith(")")


def decorate_function(fn: Callable[..., Any], private: bool, depth: int, check: bool = True,
                      parse: Callable[[Parser, ast.FunctionDef], Any] | None = None) -> Any:
    """What @T.prim_func does to a Python function; `depth` is the caller's frame.

    Another dialect gives `parse(parser, syntax tree)`.
    """
    if not isinstance(fn, types.FunctionType):
        return fn
    frame = sys._getframe(depth)
    if _in_class_body(frame) and not _class_is_plain(frame):
        return fn  # the class's decorator parses it
    env = Source.environment_of(fn, frame.f_locals)

    def build() -> tuple[Parser, Any]:
        source, tree = _function_source(fn)
        parser = Parser(source, env)
        return parser, parse(parser, tree) if parse is not None else parser.prim_func(
            tree, private)

    return _parse(fn.__code__.co_filename, build, check)


def _function_source(fn: types.FunctionType) -> tuple[Source, ast.FunctionDef]:
    """The source of a function. Raises DiagnosticError where there is none."""
    source, tree = find_function(fn)
    if tree is None:
        raise _no_source(fn.__name__, fn.__code__.co_filename)
    return source, tree


def _class_source(cls: type, frame: types.FrameType) -> tuple[Source, ast.ClassDef]:
    """The source of a class. Raises DiagnosticError where there is none."""
    source, tree = find_class(cls, frame)
    if tree is None:
        raise _no_source(cls.__name__, frame.f_code.co_filename)
    return source, tree


def decorate_macro(fn: Callable[..., Any], hygienic: bool, depth: int) -> Any:
    """What @T.macro does."""
    frame = sys._getframe(depth)
    if _in_class_body(frame):
        return fn
    source, tree = _function_source(fn)
    return Macro(tree, source, Source.environment_of(fn, frame.f_locals), hygienic, [])


def decorate_class(cls: Any, depth: int, check: bool = True) -> Any:
    """What @I.ir_module does to a class."""
    if not isinstance(cls, type):
        raise TypeError("@I.ir_module decorates a class of functions")
    frame = sys._getframe(depth)
    cells: dict[str, Any] = {}
    for value in vars(cls).values():
        if isinstance(value, types.FunctionType):
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
                try:
                    cells[name] = cell.cell_contents
                except ValueError:
                    continue
    env = ChainMap(cells, dict(frame.f_locals), frame.f_globals)

    def build() -> tuple[Parser, Any]:
        source, tree = _class_source(cls, frame)
        parser = Parser(source, env)
        return parser, parser.module(tree)

    return _parse(frame.f_code.co_filename, build, check)


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
    given = dict(extra_vars or {})
    if isinstance(program, types.FunctionType):
        filename = program.__code__.co_filename

        def build() -> tuple[Parser, Any]:
            source, tree = _function_source(program)
            parser = Parser(source, ChainMap(given, Source.environment_of(program), DEFAULT_NAMES))
            return parser, parser.function(tree) if tree.decorator_list else parser.prim_func(
                tree, False)
    elif isinstance(program, type):
        frame = sys._getframe(1)
        filename = frame.f_code.co_filename

        def build() -> tuple[Parser, Any]:
            source, tree = _class_source(program, frame)
            parser = Parser(source, ChainMap(given, frame.f_locals, frame.f_globals, DEFAULT_NAMES))
            return parser, parser.module(tree)
    elif isinstance(program, str):
        filename = "<source>"

        def build() -> tuple[Parser, Any]:
            return _parse_text(program, given)
    else:
        raise TypeError(f"expected the text of a script, got {type(program).__name__}")
    return _parse(filename, build, check_well_formed)


def _parse_text(text: str, extra_vars: Mapping[str, Any]) -> tuple[Parser, Any]:
    source, tree = parse_dedented(text, "<source>")
    names: dict[str, Any] = dict(extra_vars)
    budget = Budget()
    result: Any = None
    owner = Parser(source, names)
    for node in tree.body:
        parser = Parser(source, ChainMap(names, DEFAULT_NAMES), budget)
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
        full = above("modules of scripts").get(full, full)
        if full in MODULES and (alias.asname or isinstance(node, ast.ImportFrom)):
            found[alias.asname or alias.name] = MODULES[full]
        elif full.split(".")[0] in ("tvm", "mlc_lab") and not isinstance(node, ast.ImportFrom):
            found[alias.asname or full.split(".")[0]] = DEFAULT_NAMES["tvm"]
    return found


def _metadata(parser: Parser, node: ast.AST) -> Any:
    """metadata = tvm.ir.load_json("...")"""
    from ..ir.serialize import load_json

    if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(
            node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
        try:
            return load_json(node.args[0].value)
        except MLCError as error:
            raise parser.mistake(node.args[0], error) from None
    raise parser.error(node, "metadata is written as tvm.ir.load_json(\"...\")")


def _tvm_names() -> Names:
    """What `tvm.` offers inside a text."""
    script = Names(ir_module=I_names.ir_module, tir=T, ir=I_names)
    expressions = Names(**{name: getattr(O, name) for name in allowed.TIR_NAMES})
    return Names(script=script, tir=expressions, ir=Names(Range=I_names.Range))


allowed.offer(I_names, I_names.__all__)
DEFAULT_NAMES["tvm"] = _tvm_names()

__all__ = ["DEFAULT_NAMES", "MODULES", "decorate_class", "decorate_function", "decorate_macro",
           "from_source"]
