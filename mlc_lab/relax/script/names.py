"""The names of Relax's script: `from mlc_lab.script import relax as R`.

`@R.function` turns a Python function into a Relax function by parsing its source. Struct info
(`R.Tensor((n, 4), "float32")`) and operators (`R.add`) also work in plain Python; words that only
make sense inside a script (`R.dataflow`, `R.output`, ...) are `Word`s: the parser knows them.
"""

from __future__ import annotations

import builtins as _builtins
from typing import Any as _Any

from ...above import above as _above
from ..expr import DataTypeImm as _DataTypeImm
from ..expr import ExternFunc, PrimValue, ShapeExpr, StringImm, TupleGetItem, const
from ..expr import Tuple as _TupleExpr
from ..op import *  # noqa: F403
from .. import op as _op
from ..op import builtin, grad, image, memory, nn, vm
from .words import (
    RESOLVERS, Callable, Object, Prim, Shape, Tensor, Tuple, dataflow, emit, emit_te, func_attr,
    func_name, match_cast, output,
)


def shape(values: _Any) -> ShapeExpr:
    """A shape as a value."""
    return ShapeExpr([RESOLVERS[-1](v) if isinstance(v, _builtins.str) else v for v in values])


def prim_value(value: _Any) -> PrimValue:
    """A scalar as a value."""
    return PrimValue(value)


def str(value: _Any) -> StringImm:
    """A string as a value."""
    return StringImm(value)


def dtype(value: _Any) -> _DataTypeImm:
    """A dtype as a value."""
    return _DataTypeImm(value)


def tuple(*fields: _Any) -> _TupleExpr:
    """Several values as one."""
    return _TupleExpr(fields)


def function(func: _Any = None, pure: bool = True, private: bool = False,
             check_well_formed: bool = True) -> _Any:
    """Decorator: a Python function as a Relax function, by parsing its source.

    `private` leaves out the global name, `pure=False` allows effects. Inside a class (under
    @I.ir_module) the class's decorator does the parsing. Raises DiagnosticError at a mistake.
    """
    from ...script import entry
    from .parser import parse_function

    options = {"pure": pure, "private": private}

    def parse(parser: _Any, tree: _Any) -> _Any:
        return parse_function(parser, tree, options)

    if func is None:
        return lambda f: entry.decorate_function(f, private, 2, check_well_formed, parse)
    return entry.decorate_function(func, private, 2, check_well_formed, parse)


function.script_kind = "relax"


def macro(func: _Any = None, *, hygienic: bool = True) -> _Any:
    """Decorator: a function whose body is inlined where a script calls it."""
    from ...script import tir as T

    return T.macro(func, hygienic=hygienic)


macro.script_kind = "macro"


def __getattr__(name: _builtins.str) -> _Any:
    """A name of another version of the language."""
    if not name.startswith("_"):
        table = _above("names of R")
        if name in table:
            return table[name]
    raise AttributeError(f"R has no name {name!r}")


__all__ = [
    "Callable", "ExternFunc", "Object", "Prim", "PrimValue", "Shape", "ShapeExpr", "StringImm",
    "Tensor", "Tuple", "TupleGetItem", "builtin", "const", "dataflow", "dtype",
    "emit", "emit_te", "func_attr", "func_name", "function", "grad", "image", "macro", "match_cast",
    "memory", "nn", "output", "prim_value", "shape", "str", "tuple", "vm",
]
#: every name of the language: what a script may use after the dot
NAMES = frozenset(__all__) | {n for n in _op.__all__ if n in globals()} - {
    "OPERATORS", "StructInfoError", "infer_call", "lookup", "make_call", "register_gradient",
    "register_legalize", "register_op", "registry"}
