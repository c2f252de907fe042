"""The words of Relax's script that are no operators: kinds of struct info, and the parser's own.

`R.Tensor`, `R.Shape`, ... make struct info; a dimension that is a string names a symbol of the
function being parsed. `Word`s only have a meaning inside a script.
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any

from ...above import above
from ...ir.global_info import find_vdevice
from ...script import allowed
from ...script.values import Expands
from ...tir import expr as _E
from .. import struct_info as _SI
from ..expr import as_struct_info

if TYPE_CHECKING:
    from ...script.parser import Parser

class Word(Expands):
    """A word of the script whose meaning is in the parser."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"R.{self.name}"

    def __call__(self, *args: object, **kwargs: object) -> Any:
        raise TypeError(f"R.{self.name} only has a meaning inside a function under @R.function, "
                        "whose source is parsed; it cannot be called from plain Python")

    def expand_in_script(self, parser: Parser, node: Any, args: list, kwargs: dict) -> Any:
        """What the word does where it is called in a script."""
        words = above("words of R")
        first = args[:1] if self.name == "emit_te" else []  # that one takes a function of topi
        args = first + [allowed.passed(a, parser.interpreted) for a in args[len(first):]]
        kwargs = {k: allowed.passed(v, parser.interpreted) for k, v in kwargs.items()}
        return parser.called(node, words[self.name], [parser, node, *args], kwargs)


dataflow, output, func_attr, func_name = map(Word, ("dataflow", "output", "func_attr", "func_name"))
match_cast, emit, emit_te = map(Word, ("match_cast", "emit", "emit_te"))

#: how the parser reads a dimension that is a string, the innermost last
RESOLVERS: list[typing.Callable[[str], _E.PrimExpr]] = []


class StructInfoProxy:
    """What stands for struct info; `as_struct_info` gives it."""

    def as_struct_info(self) -> _SI.StructInfo:
        """The struct info."""
        raise NotImplementedError


class Unresolved(StructInfoProxy):
    """Struct info with dimensions named by strings, outside a script: new variables name them."""

    def __init__(self, make: typing.Callable[[], _SI.StructInfo]) -> None:
        self.make = make

    def as_struct_info(self) -> _SI.StructInfo:
        """The struct info, with a new symbolic variable for each name."""
        found: dict[str, _E.Var] = {}

        def resolve(text: str) -> _E.PrimExpr:
            if not text.isidentifier():
                raise ValueError(f"the dimension {text!r} can only be computed inside a script; "
                                 "outside, write it with tir.Var objects")
            return found.setdefault(text, _E.Var(text, "int64"))

        RESOLVERS.append(resolve)
        try:
            return self.make()
        finally:
            RESOLVERS.pop()


def _has_names(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_has_names, value))
    return isinstance(value, (str, Unresolved))


def _dim(value: object) -> Any:
    return RESOLVERS[-1](value) if isinstance(value, str) else value


def _info(value: object) -> _SI.StructInfo:
    return as_struct_info(value)


def _made(make: typing.Callable[[], _SI.StructInfo], *parts: object) -> Any:
    """The struct info now, or later where it names dimensions outside a script."""
    return Unresolved(make) if not RESOLVERS and any(map(_has_names, parts)) else make()


class _Kind(StructInfoProxy):
    """A word for a kind of struct info, that may stand alone: `R.Tensor`, `R.Object`."""

    @property
    def __name__(self) -> str:
        """The word itself; in TVM it is a class, which has a name."""
        return self.__class__.__qualname__.strip("_")

    def __repr__(self) -> str:
        return f"R.{self.__class__.__qualname__.strip('_')}"


class _Tensor(_Kind):
    """R.Tensor(shape, dtype, ndim=...)"""

    def __call__(self, shape: Any = None, dtype: Any = None, vdevice: Any = None,
                 ndim: int = -1) -> Any:
        """A tensor; `shape` holds ints, expressions and names of symbolic dimensions."""
        if isinstance(shape, str) and dtype is None:
            shape, dtype = None, shape
        if shape is not None and not isinstance(shape, (tuple, list, _SI.Expr)):
            if isinstance(shape, (int, str, _E.PrimExpr)):
                raise TypeError(f"the shape of a tensor is a tuple of dimensions: write "
                                f"R.Tensor(({shape!r},), ...)")
            shape = tuple(shape)
        dims = shape if isinstance(shape, (tuple, list)) else ()
        return _made(lambda: _SI.TensorStructInfo(
            [_dim(d) for d in dims] if shape is dims else shape, dtype or "",
            find_vdevice(vdevice) if isinstance(vdevice, str) else vdevice, ndim), dims, [vdevice])

    def as_struct_info(self) -> _SI.StructInfo:
        """A tensor of which nothing is known."""
        return _SI.TensorStructInfo(None, "")


class _Shape(_Kind):
    """R.Shape(values) or R.Shape(ndim=n)"""

    def __call__(self, values: Any = None, ndim: int = -1) -> Any:
        """A shape."""
        if values is None:
            return _SI.ShapeStructInfo(ndim=ndim)
        return _made(lambda: _SI.ShapeStructInfo([_dim(v) for v in values]), list(values))

    def as_struct_info(self) -> _SI.StructInfo:
        """A shape of which nothing is known."""
        return _SI.ShapeStructInfo()


class _Prim(_Kind):
    """R.Prim("int64") or R.Prim(value=n)"""

    def __call__(self, dtype: Any = None, value: object = None) -> Any:
        """A scalar."""
        return _made(lambda: _SI.PrimStructInfo(dtype, _dim(value)), [value])

    def as_struct_info(self) -> _SI.StructInfo:
        """What `R.Prim` alone would mean: nothing."""
        raise TypeError('R.Prim needs a dtype or a value: R.Prim("int64"), R.Prim(value=n)')


class _Tuple(_Kind):
    """R.Tuple(infos...)"""

    def __call__(self, *fields: object) -> Any:
        """A tuple of values."""
        if len(fields) == 1 and isinstance(fields[0], (tuple, list)):
            fields = tuple(fields[0])
        return _made(lambda: _SI.TupleStructInfo(list(map(_info, fields))), fields)

    def as_struct_info(self) -> _SI.StructInfo:
        """The empty tuple."""
        return _SI.TupleStructInfo(())


class _Callable(_Kind):
    """R.Callable((params...), ret, purity)"""

    def __call__(self, params: Any = None, ret: Any = None, purity: bool | None = None,
                 derive_func: Any = None) -> Any:
        """A function."""
        if params is not None and not isinstance(params, (tuple, list)):
            params = (params,)
        if purity is None:
            purity = params is not None

        def make() -> _SI.StructInfo:
            return _SI.FuncStructInfo(
                None if params is None else list(map(_info, params)),
                _SI.OBJECT if ret is None else _info(ret), purity, derive_func)

        return _made(make, params or (), [ret])

    def as_struct_info(self) -> _SI.StructInfo:
        """Any function."""
        return _SI.FuncStructInfo(None, _SI.OBJECT, False)


class _Object(_Kind):
    """R.Object"""

    def __call__(self) -> _SI.StructInfo:
        """Any value."""
        return _SI.OBJECT

    def as_struct_info(self) -> _SI.StructInfo:
        """Any value."""
        return _SI.OBJECT


Tensor, Shape, Prim, Tuple = _Tensor(), _Shape(), _Prim(), _Tuple()
Callable, Object = _Callable(), _Object()

__all__ = ["Callable", "Object", "Prim", "RESOLVERS", "Shape", "StructInfoProxy", "Tensor",
           "Tuple", "Unresolved", "Word", "dataflow", "emit", "emit_te", "func_attr", "func_name",
           "match_cast", "output"]
