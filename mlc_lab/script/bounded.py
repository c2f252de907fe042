"""Computing with Python values in a script: the builtins it has, and bounds on all it makes.

A script may compute with numbers, strings and lists while it is parsed. The results are bounded
(`reading/limits.py`), and so is the work: a `Budget` counts what is gone over again, in macros,
helper functions, comprehensions and lambdas, and what a name brings into the program that is more
than a leaf, since a value used twice counts twice wherever the program is gone over.
"""

from __future__ import annotations

import ast
import operator
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Callable, SupportsAbs

from ..ir.module import GlobalVar
from ..ir.node import Node
from ..reading import LimitError, limits
from ..tir import expr as E
from ..tir.buffer import Buffer
from ..tir.functor import pre_order
from .allowed import NotAllowed

if TYPE_CHECKING:
    from typing import TypeGuard

    import numpy as np

#: types of values that are one part of a program however often they are used
LEAVES: set[type] = {bool, int, float, str, type(None), range, slice, E.Var, E.SizeVar, E.IntImm,
                     E.FloatImm, E.StringImm, E.IterVar, Buffer, GlobalVar}
_SEQUENCES = (tuple, list, str, range)


class Budget:
    """What a script may still do beyond going over its own text once."""

    __slots__ = ("left", "calls", "_weights", "_sizes", "_bound")

    def __init__(self) -> None:
        self.left = limits.WORK
        self.calls = 0
        self._weights: dict[int, tuple[int, Any]] = {}
        self._sizes: dict[int, tuple[int, Any]] = {}
        self._bound: dict[E.Var, int] = {}

    def spend(self, work: int) -> None:
        """Count work. Raises LimitError when there was too much."""
        self.left -= work
        if self.left < 0:
            raise LimitError("the script makes too much: its macros, comprehensions and values "
                             f"unfold to more than {limits.WORK} parts",
                             "compute large values outside of the script and mention them by name")

    def again(self, tree: ast.AST) -> None:
        """Count that a part of the text (a node of the syntax tree, or a list) is gone over."""
        known = self._weights.get(id(tree))
        if known is None:
            nodes = tree if isinstance(tree, list) else [tree]
            weight = sum(1 for n in nodes for _ in ast.walk(n))
            known = self._weights[id(tree)] = weight, tree
        self.spend(known[0])

    def use(self, value: object) -> None:
        """Count a value that a name brings in."""
        if isinstance(value, (Node, tuple, list, dict)):
            self.spend(self.size(value))

    def size(self, value: object) -> int:
        """Parts of a value, those that it holds twice counted twice."""
        sizes = self._sizes
        known = sizes.get(id(value))
        if known is not None:
            return known[0]
        stack: list[tuple[Any, list[Any] | None]] = [(value, None)]
        while stack:  # children before parents, without recursion
            item, children = stack.pop()
            if id(item) in sizes:
                continue
            if children is None:
                children = [c for c in _parts(item) if type(c) not in LEAVES]
                waiting = [(c, None) for c in children if id(c) not in sizes]
                if waiting:
                    stack.append((item, children))
                    stack += waiting
                    continue
            total = 1 + len(_parts(item)) + sum(sizes[id(c)][0] for c in children)
            sizes[id(item)] = min(total, limits.WORK + 1), item
        return sizes[id(value)][0]

    def bind(self, var: E.Var, value: E.PrimExpr) -> None:
        """Count what an iterator of a block becomes where its value is put in its place, which
        doubles with each of nested blocks where an iterator is used twice."""
        count = sum(self._bound.get(n, 1) if isinstance(n, E.Var) else 1 for n in pre_order(value))
        if count > 1:
            self._bound[var] = count
        if count > limits.WORK:
            raise LimitError("the values of iterators of nested blocks unfold to more than "
                             f"{limits.WORK} parts")

    def enter(self) -> None:
        """Count a call inside of calls; `leave` ends it."""
        self.calls += 1
        if self.calls > limits.CALLS:
            raise LimitError(f"macros and functions call one another more than {limits.CALLS} "
                             "levels deep", "a script cannot call itself without end")

    def leave(self) -> None:
        """The call is over."""
        self.calls -= 1


def _parts(value: object) -> list[Any]:
    if isinstance(value, Node):
        return value.children() or [
            part for name, _ in type(value).fields
            if isinstance(part := getattr(value, name), (Node, tuple, list, dict))]
    if isinstance(value, (tuple, list)):
        return list(value)
    return [*value, *value.values()] if isinstance(value, dict) else []


# ------------------------------------------------------------------------------- operators


def checked(value: object) -> Any:
    """A number or sequence that was computed, if it is not too large. Raises LimitError."""
    if type(value) is int:
        if value.bit_length() > limits.INT_BITS:
            raise LimitError(f"a whole number of {value.bit_length()} bits fits no type",
                             f"the bound is {limits.INT_BITS} bits")
    elif isinstance(value, (str, tuple, list)) and len(value) > limits.ITEMS:
        raise _too_long(len(value))
    elif type(value) is complex:
        raise NotAllowed("complex numbers have no meaning in a script")
    return value


def _too_long(count: int) -> LimitError:
    return LimitError(f"{count} elements are too many: a script makes lists and strings of up to "
                      f"{limits.ITEMS}", "make it outside of the script and mention it by name")


def binary(budget: Budget, op: type, apply: Callable, a: Any, b: Any) -> Any:
    """`a op b` on Python values. Raises LimitError, and NotAllowed for what is no plain value."""
    if isinstance(a, int) and isinstance(b, int):
        if op is ast.LShift and b > limits.INT_BITS and a:
            raise LimitError(f"{_short(a)} << {_short(b)} fits no type")
        if op is ast.Pow and a not in (0, 1, -1) and b > 0 and (
                b * (a.bit_length() - 1) > limits.INT_BITS):
            raise LimitError(f"{_short(a)} ** {_short(b)} fits no type: it would have more than "
                             f"{limits.INT_BITS} bits")
        return checked(apply(a, b))
    if isinstance(a, Node) or isinstance(b, Node):
        return apply(a, b)
    if is_number(a) and is_number(b):
        return checked(apply(a, b))
    if op is ast.Mult and (isinstance(a, (str, tuple, list)) or isinstance(b, (str, tuple, list))):
        return _repeated(budget, a, b)
    if op is ast.Add and isinstance(a, (str, tuple, list)) and type(a) is type(b):
        return _spent(budget, checked(a + b))
    if op is ast.Mod and isinstance(a, str):
        return _spent(budget, checked(percent(a, b)))
    if _is_array(a) or _is_array(b):
        for side in (a, b):
            if not (is_number(side) or _is_array(side) and side.dtype.kind in "biuf"):
                raise TypeError(f"cannot compute with an array and a {type(side).__name__}")
        import numpy as np

        if (size := np.prod(np.broadcast_shapes(np.shape(a), np.shape(b)), dtype=float)) > (
                limits.ITEMS):
            raise _too_long(int(size))
        return apply(a, b)
    raise NotAllowed(f"a script cannot compute with a {type(a).__name__} and a {type(b).__name__}",
                     "compute the value outside of the script and mention it by name")


def is_number(value: Any) -> bool:
    """Whether a value is a number of Python or numpy."""
    if isinstance(value, (bool, int, float)):
        return True
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return False
    return isinstance(value, (numpy.number, numpy.bool_)) or (
        isinstance(value, numpy.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf")


def computes(value: object) -> bool:
    """Whether an operator of one operand may be applied to a value."""
    return isinstance(value, Node) or is_number(value)


def _is_array(value: object) -> TypeGuard[np.ndarray]:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _short(number: int) -> str:
    return str(number) if abs(number) < 10**9 else f"a number of {number.bit_length()} bits"


def _spent(budget: Budget, value: object) -> Any:
    """A new sequence, its elements counted."""
    budget.spend(len(value) // 16 if isinstance(value, str) else budget.size(value))
    return value


def _repeated(budget: Budget, a: Any, b: Any) -> Any:
    items, count = (b, a) if isinstance(a, int) else (a, b)
    if not isinstance(count, int):
        raise TypeError(f"can't multiply sequence by non-int of type {type(count).__name__!r}")
    if len(items) * max(count, 0) > limits.ITEMS:
        raise _too_long(len(items) * count)
    return _spent(budget, items * count)


_PERCENT = re.compile(r"%(?:%|([-#0 +]*)(\d*)(?:\.(\d*))?([diouxXeEfFgGcrs]))")


def percent(text: str, values: Any) -> str:
    """`text % values`, with widths bounded and numbers and strings only."""
    for value in values if isinstance(values, tuple) else (values,):
        _formatted(value)
    rest = _PERCENT.sub("", text)
    if "%" in rest:
        raise NotAllowed("a script formats with %d, %s, %f and their like only")
    for found in _PERCENT.finditer(text):
        if max(len(found[2] or ""), len(found[3] or "")) > 3 or max(
                int(found[2] or 0), int(found[3] or 0)) > limits.WIDTH:
            raise LimitError(f"{found[0][:20]} asks for more than {limits.WIDTH} columns")
    return text % values


_SPEC = re.compile(r"(?:.?[<>=^])?[-+ ]?#?0?(\d*)[,_]?(?:\.(\d+))?[bcdeEfFgGnosxX%]?")


def formatted(value: object, spec: str, conversion: int = -1) -> str:
    """A value in an f-string, with its format bounded."""
    _formatted(value)
    found = _SPEC.fullmatch(spec)
    if found is None or any(len(n or "") > 3 or int(n or 0) > limits.WIDTH
                            for n in found.groups()):
        raise LimitError(f"the format {spec[:20]!r} is none that a script may use: widths go up to "
                         f"{limits.WIDTH}")
    if conversion != -1:
        value = {"r": repr, "s": str, "a": ascii}[chr(conversion)](value)
    return format(value, spec)


def _formatted(value: object) -> None:
    """Raise NotAllowed for a value that would be written as text by code of its own."""
    if isinstance(value, (tuple, list, dict)):
        for part in _parts(value):
            _formatted(part)
    elif value is not None and not isinstance(value, (str, Node)) and not is_number(value):
        raise NotAllowed(f"a {type(value).__name__} cannot be put into a string by a script")


# ------------------------------------------------------------------------------- sequences


def items(value: Any) -> list[Any] | tuple:
    """The elements of a value, as a list or tuple. Raises LimitError, TypeError."""
    if isinstance(value, (tuple, list)):
        return value
    if isinstance(value, (range, str, dict)) or _is_array(value):
        if isinstance(value, range) and value:
            count = abs(value[-1] - value[0]) // abs(value.step) + 1  # len() has a bound
        else:
            count = len(value)
        if count > limits.ITEMS:
            raise _too_long(count)
        return list(value)
    if isinstance(value, Node) and isinstance(value, Iterable):
        return checked(list(value))
    if isinstance(value, (type({}.keys()), type({}.values()), type({}.items()), set, frozenset)):
        return checked(list(value))
    raise TypeError(f"a {type(value).__name__} cannot be gone over in a script")


def compare(op: type, apply: Callable, a: Any, b: Any) -> Any:
    """`a op b` for a comparison of Python values. Raises NotAllowed where code would decide."""
    if op is ast.In or op is ast.NotIn:
        return contains(a, b) is (op is ast.In)
    if op is not ast.Is and op is not ast.IsNot:
        for side in (a, b):
            if not (side is None or is_number(side) or _is_array(side)
                    or isinstance(side, (*_SEQUENCES, dict, Node))
                    or type(side).__eq__ is object.__eq__):
                raise NotAllowed(f"a {type(side).__name__} cannot be compared in a script",
                                 "compute the condition outside of the script and mention it")
    return apply(a, b)


def contains(a: Any, b: Any) -> bool:
    """Whether `a in b`."""
    plain = isinstance(b, (str, dict)) or isinstance(b, range) and type(a) is int
    return operator.contains(b if plain else items(b), a)


def truth(value: object) -> bool:
    """Whether a value counts as true. Raises NotAllowed where code of its class would say."""
    if isinstance(value, (bool, int, float, str, tuple, list, dict, range, Node)) or value is None:
        return bool(value)
    if is_number(value) or _is_array(value):
        return bool(value)
    if hasattr(type(value), "__bool__") or hasattr(type(value), "__len__"):
        raise NotAllowed(f"whether a {type(value).__name__} is true cannot be asked in a script",
                         "compute the condition outside of the script and mention it by name")
    return True


def element(budget: Budget, base: Any, index: Any) -> Any:
    """`base[index]`. Raises NotAllowed for a value that code of its class would be asked for."""
    if isinstance(base, (str, tuple, list)):
        found = base[index]
        return _spent(budget, found) if isinstance(index, slice) else found
    kind = type(base)
    if isinstance(base, (dict, range)) or _is_array(base) or (
            kind.__module__.startswith("mlc_lab.") and hasattr(kind, "__getitem__")):
        return base[index]
    raise NotAllowed(f"a {kind.__name__} has no elements that a script may read",
                     "read the element outside of the script and mention it by name")


# ------------------------------------------------------------------------------- builtins

_NO_KEY = "functions are not passed on in a script: order the values outside and mention them"


def _all_items(budget: Budget, value: object) -> list[Any] | tuple:
    found = items(value)
    budget.spend(len(found) // 8)
    return found


def _ordered(name: str) -> Callable:
    plain: dict[str, Callable] = {"min": min, "max": max, "sorted": sorted}
    fn = plain[name]

    def order(budget: Budget, *args: object, **options: object) -> Any:
        if "key" in options:
            raise NotAllowed(f"{name} has no key= in a script", _NO_KEY)
        values = _all_items(budget, args[0]) if len(args) == 1 else args
        if len(args) != 1 and name == "sorted":
            raise TypeError(f"sorted takes one sequence, got {len(args)}")
        budget.spend(budget.size(list(values)) * max(1, len(values).bit_length() // 4))
        return fn(values, **options)

    return order


def _sum(budget: Budget, values: Any, start: Any = 0) -> Any:
    total = start
    for value in _all_items(budget, values):
        if isinstance(total, (str, tuple, list)):
            total = binary(budget, ast.Add, operator.add, total, value)
        else:
            total = checked(total + value) if is_number(total) and is_number(value) else binary(
                budget, ast.Add, operator.add, total, value)
    return total


def _round(budget: Budget, value: Any, digits: Any = None) -> Any:
    if digits is not None and not (isinstance(digits, int) and abs(digits) <= 400):
        raise LimitError("round takes up to 400 digits")
    if not is_number(value):
        raise TypeError(f"round takes a number, not a {type(value).__name__}")
    return round(value, digits)


def _pow(budget: Budget, base: Any, exponent: Any, modulus: Any = None) -> Any:
    if modulus is None:
        return binary(budget, ast.Pow, operator.pow, base, exponent)
    if not all(type(v) is int for v in (base, exponent, modulus)):
        raise TypeError("pow with a modulus takes whole numbers")
    return pow(base, exponent, modulus)


def _int(budget: Budget, value: Any = 0, base: Any = None) -> Any:
    if isinstance(value, str) and len(value) > limits.INT_BITS:
        raise LimitError(f"a number of {len(value)} digits fits no type")
    return checked(_number(int, value) if base is None else int(value, base))


def _number(kind: Callable[..., Any], value: object) -> Any:
    """int, float or bool of a number, a string or a constant."""
    if isinstance(value, str) or is_number(value) or isinstance(value, (E.IntImm, E.FloatImm)):
        return kind(value)
    if isinstance(value, Node):
        raise NotAllowed(f"{kind.__name__} takes a number: this value is known when the program "
                         "runs, not while the script is parsed", "use T.cast for a conversion")
    raise TypeError(f"{kind.__name__} takes a number or a string, not a {type(value).__name__}")


def _str(budget: Budget, value: object = "") -> str:
    _formatted(value)
    return _spent(budget, checked(str(value)))


_SIZED: tuple[type, ...] = (str, tuple, list, dict, range, Node)


def _len(budget: Budget, value: Any) -> int:
    if isinstance(value, _SIZED) or _is_array(value):
        return len(value)
    return len(items(value))


def _dict(budget: Budget, *args: object, **values: Any) -> dict:
    made = dict(args[0] if isinstance(args[0], dict) else map(tuple, items(args[0]))
                ) if args else {}
    return {**made, **values}


def _isinstance(budget: Budget, value: Any, kinds: Any) -> bool:
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        if kind not in (bool, int, float, str, tuple, list, dict):
            raise NotAllowed("isinstance knows bool, int, float, str, tuple, list and dict in a "
                             "script")
    return isinstance(value, kinds)


def _slice(budget: Budget, *args: object) -> slice:
    return slice(*args)


def _lists(fn: Callable) -> Callable:
    """A builtin that takes a sequence, with a list as its result."""
    def build(budget: Budget, *args: object, **options: object) -> Any:
        return fn(*[_all_items(budget, a) if not isinstance(a, int) else a for a in args],
                  **options)

    return build


#: builtins that a script may call: function -> what is called, with the budget first
BUILTINS: dict[Any, Callable] = {
    abs: lambda budget, value: abs(value) if (
        isinstance(value, Node) and isinstance(value, SupportsAbs)) else _number(abs, value),
    all: _lists(lambda values: all(map(truth, values))),
    any: _lists(lambda values: any(map(truth, values))),
    bool: lambda budget, value=False: truth(value),
    dict: _dict,
    divmod: lambda budget, a, b: (binary(budget, ast.FloorDiv, operator.floordiv, a, b),
                                  binary(budget, ast.Mod, operator.mod, a, b)),
    enumerate: _lists(lambda values, start=0: list(enumerate(values, start))),
    float: lambda budget, value=0.0: _number(float, value),
    int: _int, isinstance: _isinstance, len: _len,
    list: _lists(lambda values=(): list(values)),
    max: _ordered("max"), min: _ordered("min"), pow: _pow,
    range: lambda budget, *args: range(*args),
    reversed: _lists(lambda values: list(reversed(values))),
    round: _round, slice: _slice, sorted: _ordered("sorted"), str: _str, sum: _sum,
    tuple: _lists(lambda values=(): tuple(values)),
    zip: _lists(lambda *values: list(zip(*values))),
}
#: the same by the identity of the function
CALLED: dict[int, Callable] = {id(fn): called for fn, called in BUILTINS.items()}
#: their names, as a script writes them
NAMES: dict[str, Any] = {fn.__name__: fn for fn in BUILTINS}

__all__ = ["BUILTINS", "Budget", "CALLED", "LEAVES", "NAMES", "binary", "checked", "compare",
           "contains", "element",
           "formatted", "is_number", "items", "truth"]
