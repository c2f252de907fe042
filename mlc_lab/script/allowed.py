"""What a script may name, read and call: lists, and nothing beside them.

A script is parsed and never executed. Its names are its own, those of the languages T, I and R,
the values it was given (for a function under a decorator: what its author's own scope holds) and a
few builtins (`bounded.py`). `attribute` reads data and never runs code of a value's class;
`may_call` knows the functions that build IR or compute with numbers; `passed` lets values through
to them, and no functions.
"""

from __future__ import annotations

import enum
import inspect
import math
import sys
import types
from typing import Any, Callable, Iterable

from ..ir.node import Node
from ..reading import DataError
from ..tir import expr as E
from ..tir import op as O
from ..tir.buffer import Buffer
from . import tir as T


class NotAllowed(DataError):
    """Something that a script may not do. `hint` says what to do in its place."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.hint = hint
        super().__init__(message)


class ScriptFunction:
    """A function that is called by reading its syntax tree: a lambda of the script, or a helper."""

    def __init__(self, names: list[str], call: Callable) -> None:
        self.call = call
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names])

    def __call__(self, *args: object) -> Any:
        return self.call(*args)


class Names(types.SimpleNamespace):
    """Names after a dot that are no module of Python: `tvm.script.`, `tvm.tir.`."""


# ------------------------------------------------------------------------------- what is offered

#: modules of the languages -> what they offer to scripts, by name
LANGUAGES: dict[types.ModuleType, dict[str, Any]] = {}
#: the functions and classes that may be called, by identity
OFFERED: dict[int, Any] = {}


def offer(module: types.ModuleType, names: Iterable[str]) -> None:
    """Let scripts use these names of a module, and call those that are functions."""
    offered = {name: getattr(module, name) for name in names}
    LANGUAGES.setdefault(module, {}).update(offered)
    for value in offered.values():
        _offer_value(value)


def _offer_value(value: object) -> None:
    if callable(value) and not isinstance(value, types.ModuleType) and not hasattr(
            value, "script_kind"):  # a decorator is no function of a script
        OFFERED[id(value)] = value


# ------------------------------------------------------------------------------- attributes

_ARRAY = frozenset(("T", "dtype", "item", "itemsize", "ndim", "shape", "size", "tolist"))
#: type -> the attributes of its values that a script may read; methods among them may be called
_OF_PYTHON: dict[type, frozenset[str]] = {
    str: frozenset(("endswith", "lower", "startswith", "upper")),
    dict: frozenset(("get", "items", "keys", "values")),
    list: frozenset(("count", "index")),
    tuple: frozenset(("count", "index")),
}
#: methods of nodes that a script may call, by class; fields and properties may be read anyway
_METHODS: dict[type, frozenset[str]] = {}
_node_names: dict[type, frozenset[str]] = {}


def offer_methods(cls: type, names: Iterable[str]) -> None:
    """Let scripts call these methods of a class of nodes."""
    _METHODS[cls] = frozenset(names)


def _of_node(cls: type) -> frozenset[str]:
    """The attributes of a class of nodes: fields, properties, the methods on the list."""
    found = _node_names.get(cls)
    if found is None:
        names = {name for name, _ in cls.fields} | set(getattr(cls, "derived", ()))
        for base in cls.__mro__:
            names |= {n for n, v in vars(base).items() if isinstance(v, property)}
            names |= _METHODS.get(base, frozenset())
        found = _node_names[cls] = frozenset(n for n in names if not n.startswith("_"))
    return found


def attribute(base: Any, name: str) -> Any:
    """An attribute of a value. Raises AttributeError where there is none, NotAllowed."""
    if name.startswith("_"):
        raise NotAllowed(f"names such as {name!r} cannot be used in a script")
    if isinstance(base, types.ModuleType):
        return _of_module(base, name)
    cls = type(base)
    if issubclass(cls, Node):
        if name in _of_node(cls):
            return getattr(base, name)
    elif cls is Names or base is T.axis:
        if name in vars(base):
            return vars(base)[name]
        raise AttributeError(name)
    elif issubclass(cls, (enum.Enum, enum.EnumMeta)):
        return _plain_data(base, name)
    else:
        listed = _listed(cls)
        if listed is None:
            return _plain_data(base, name)
        if name in listed:
            return getattr(base, name)
    if hasattr(cls, name):
        raise NotAllowed(f"{name!r} of a {cls.__name__} cannot be used in a script",
                         "compute the value outside of the script and mention it by name")
    raise AttributeError(name)


def names_after(base: Any) -> list[str]:
    """What may stand after the dot of a value, for hints."""
    if isinstance(base, types.ModuleType):
        names: Iterable[str] = LANGUAGES.get(base) or vars(base)
    elif isinstance(base, Node):
        names = _of_node(type(base))
    elif isinstance(base, (Names, type)):
        names = vars(base)
    else:
        listed = _listed(type(base))
        names = getattr(base, "__dict__", ()) if listed is None else listed
    return [n for n in names if isinstance(n, str) and not n.startswith("_")]


def _of_module(module: types.ModuleType, name: str) -> Any:
    names = LANGUAGES.get(module)
    if names is not None:
        if name in names:
            return names[name]
        if name in vars(module):
            raise AttributeError(name)
        value = getattr(module, name)  # a name of another vintage, or a dtype
        _offer_value(value)
        return value
    home = module.__name__.partition(".")[0]
    ours = module.__name__.partition(".")[0] in ("mlc_lab", "tvm")
    value = getattr(module, name) if ours else vars(module).get(name, module)
    if value is module:
        raise AttributeError(name)
    if isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] not in (
            home, "mlc_lab"):
        raise NotAllowed(f"the module {value.__name__} cannot be reached through "
                         f"{module.__name__} in a script", f"import {value.__name__} itself")
    return value


def _listed(cls: type) -> frozenset[str] | None:
    """The attributes on the list of a type that is no node; None where it is of the user's."""
    for base in cls.__mro__:
        if base in _OF_PYTHON:
            return None if hasattr(cls, "_fields") else _OF_PYTHON[base]
        if base.__module__ == "numpy" and base.__name__ in ("generic", "ndarray", "dtype"):
            return _ARRAY | {"name", "kind"} if base.__name__ == "dtype" else _ARRAY
        if base.__module__ == "numpy" and base.__name__ in ("finfo", "iinfo"):
            return frozenset(("min", "max", "eps", "bits", "dtype", "tiny"))
        own = base.__module__.startswith("mlc_lab.")
        if base.__module__ == "torch" or own and hasattr(base, "__dlpack__"):
            return frozenset(("dtype", "itemsize", "ndim", "shape"))
        if base in (int, float, bool, range, slice) or own:
            return frozenset()
    return None


def _plain_data(base: Any, name: str) -> Any:
    """Data of the user's own object or class, found without running code of its class."""
    if isinstance(base, enum.EnumMeta) and name in base.__members__:
        return base.__members__[name]
    if isinstance(base, enum.Enum) and name in ("name", "value"):
        return base._name_ if name == "name" else base._value_
    found = inspect.getattr_static(base, name)
    kind = type(found)
    if kind is types.MemberDescriptorType or kind.__name__ == "_tuplegetter":
        return found.__get__(base)
    if kind in (staticmethod, types.FunctionType):
        if kind is staticmethod or isinstance(base, type):
            return getattr(found, "__func__", found)
    elif not hasattr(kind, "__get__"):
        return found
    raise NotAllowed(f"reading {name!r} would run code, and scripts are parsed and never executed",
                     "compute the value outside of the script and mention it by name")


# ------------------------------------------------------------------------------- calls

#: functions of `math` with results of bounded size
_MATH = {id(f): f for f in (
    math.acos, math.asin, math.atan, math.atan2, math.ceil, math.copysign, math.cos, math.cosh,
    math.degrees, math.erf, math.exp, math.fabs, math.floor, math.fmod, math.gcd, math.hypot,
    math.isclose, math.isfinite, math.isinf, math.isnan, math.isqrt, math.ldexp, math.log,
    math.log10, math.log1p, math.log2, math.pow, math.radians, math.sin, math.sinh, math.sqrt,
    math.tan, math.tanh, math.trunc)}


def may_call(fn: Callable[..., Any]) -> bool:
    """Whether a function builds IR or computes with numbers, and does nothing else."""
    known = id(fn)
    if known in OFFERED or known in _MATH or isinstance(fn, (T.DtypeName, ScriptFunction)):
        return True
    owner = getattr(fn, "__self__", None) if isinstance(
        fn, (types.MethodType, types.BuiltinMethodType)) else None
    if owner is not None and not isinstance(owner, (type, types.ModuleType)):
        names = _of_node(type(owner)) if isinstance(owner, Node) else _listed(type(owner))
        return bool(names) and fn.__name__ in names
    if isinstance(fn, Node):
        return callable(fn)
    if isinstance(fn, type):
        return issubclass(fn, Node) or _is_number_type(fn)
    return isinstance(fn, str) and callable(fn)  # buffer.scope()


def is_helper(fn: object) -> bool:
    """Whether a value is a function of the user's, which is read from its source."""
    return type(fn) is types.FunctionType and not (fn.__module__ or "").startswith("mlc_lab.")


def _is_number_type(cls: type) -> bool:
    """Whether a class is a scalar type of numpy, such as np.float32."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(cls, numpy.generic)


# ------------------------------------------------------------------------------- values

#: types of values that functions may be given; filled as types are met
PASSED: set[type] = {bool, int, float, str, type(None), slice, range, type(...), E.Var, E.IntImm}
_CONTAINERS = (tuple, list, dict)


def passed(value: Any, interpreted: Callable[[types.FunctionType], ScriptFunction]) -> Any:
    """A value on its way into a function. Raises NotAllowed for a function and the like.

    A function of the user's becomes one that is read from its source: what `interpreted` makes.
    """
    kind = type(value)
    if kind in PASSED:
        return value
    if issubclass(kind, _CONTAINERS):
        return _passed_container(value, kind, interpreted)
    if is_helper(value):
        return interpreted(value)
    if _is_value_type(kind) or (isinstance(value, type) and _is_number_type(value)):
        if not isinstance(value, type):
            PASSED.add(kind)
        return value
    what = "a function" if callable(value) and not isinstance(value, type) else (
        f"the class {value.__name__}" if isinstance(value, type) else f"a {kind.__name__}")
    raise NotAllowed(f"{what} cannot be passed on in a script: functions take values here, such as "
                     "numbers, strings, buffers and expressions",
                     "write the calls out, or compute the value outside of the script")


def _passed_container(value: Any, kind: type, interpreted: Callable) -> Any:
    if kind is dict:
        for key in value:
            passed(key, interpreted)
    items = value.values() if issubclass(kind, dict) else value
    for item in items:
        if type(item) not in PASSED:
            break
    else:
        return value
    made = [passed(v, interpreted) for v in items]
    if all(a is b for a, b in zip(made, items)):
        return value
    return dict(zip(value, made)) if issubclass(kind, dict) else tuple(made) if issubclass(
        kind, tuple) else made


def _is_value_type(kind: type) -> bool:
    if issubclass(kind, (Node, T.DtypeName, T.MetaVar, ScriptFunction, enum.Enum, bool, int, float,
                         str)):
        return True
    home = kind.__module__.partition(".")[0]
    if home in ("numpy", "torch", "ml_dtypes"):
        return not any("__call__" in vars(base) for base in kind.__mro__)
    return home == "mlc_lab" and not issubclass(kind, (T.Form, type))


offer(T, T.NAMES)
offer_methods(E.PrimExpr, ("astype", "equal"))
offer_methods(E.IterVar, ("astype",))
offer_methods(Buffer, ("access_ptr", "get_flattened_buffer", "offset_of", "vload", "vstore"))
#: functions of `tvm.tir` on expressions
TIR_NAMES = frozenset(O.__all__) - {
    "effect_of", "fold_binary", "get_op_attr", "intrin_lowerings", "match_types", "match_values",
    "register_intrin_lowering", "register_op_attr"}
for _name in TIR_NAMES:
    _offer_value(getattr(O, _name))

__all__ = ["LANGUAGES", "Names", "NotAllowed", "OFFERED", "PASSED",
           "ScriptFunction", "TIR_NAMES", "attribute", "is_helper", "may_call",
           "names_after", "offer", "offer_methods", "passed"]
