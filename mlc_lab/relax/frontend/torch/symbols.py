"""Sizes of torch, which are expressions of sympy over its symbols, as sizes of Relax."""

from __future__ import annotations

import operator
from typing import Any, Iterable

from ....ir.dtype import is_float
from ....tir import op as O
from ....tir.expr import Div, PrimExpr, SizeVar
from ...struct_info import TensorStructInfo
from ..common import identifier
from .importer import dtype_name


def is_symbolic(value: object) -> bool:
    """Whether a value is a symbolic number of torch."""
    return type(value).__name__ in ("SymInt", "SymFloat", "SymBool")


class Sizes:
    """The symbols of one program."""

    def __init__(self) -> None:
        #: symbol of torch, by name -> what it is here
        self.symbols: dict[str, PrimExpr] = {}
        #: expressions of sympy that have a symbol here
        self.extents: dict[Any, PrimExpr] = {}
        #: torch's symbols through those
        self.solved: dict[Any, Any] = {}
        #: sizes that torch takes for equal
        self.equal: list[tuple[Any, Any]] = []

    def name_extents(self, nodes: Iterable[Any]) -> None:
        """Give symbols to dimensions of inputs that are expressions of a symbol no input has.

        torch writes a dimension `2 * Dim("h")` as 2*s; a function here takes its sizes from its
        inputs, so the whole extent becomes a symbol n, and s is n // 2 wherever else it occurs.
        """
        dims = [(f"{node.name}_{k}", d.node.expr) for node in nodes
                for k, d in enumerate(getattr(node.meta.get("val"), "shape", ()))
                if is_symbolic(d)]
        known = {e for _, e in dims if e.is_Symbol}
        for name, e in dims:
            unknown = e.free_symbols - known
            if not unknown:
                continue
            s = unknown.pop()
            by = e.expand().coeff(s, 1)
            rest = (e - by * s).expand()
            if unknown or not by.is_Integer or by < 1 or s in rest.free_symbols:
                raise ValueError(f"the dimension {name.rpartition('_')[2]} of the input "
                                 f"{name.rpartition('_')[0]} is {e}, from which {s} cannot be "
                                 "computed: give it a Dim of its own")
            extent = type(s)(identifier(name), integer=True, positive=True)
            n = self.symbols[str(extent)] = SizeVar(str(extent), "int64")
            self.symbols[str(s)] = O.floordiv(n - self.symbolic(rest), int(by))
            self.extents[e] = n
            self.solved[s] = (extent - rest.subs(self.solved)) / by
            known.add(s)

    def info(self, value: Any) -> TensorStructInfo:
        """What torch knows of a tensor."""
        return TensorStructInfo([self.size(d) for d in value.shape], dtype_name(value.dtype))

    def size(self, value: Any) -> Any:
        """A size of torch: an int, or an expression over symbolic sizes."""
        if not is_symbolic(value):
            return value
        return self.symbolic(value.node.expr)

    def defines(self, e: Any) -> bool:
        """Whether all symbols of an expression of sympy have been defined."""
        return all(str(s) in self.symbols for s in e.free_symbols)

    def symbolic(self, e: Any) -> Any:
        """An expression of sympy over sizes."""
        if e in self.extents:
            return self.extents[e]
        if self.solved and getattr(e, "args", ()) and e.is_polynomial():
            whole = e.subs(self.solved).expand()
            if whole != e and not any(a.is_Rational and not a.is_Integer for a in whole.atoms()):
                return self.symbolic(whole)  # with no division left
        if getattr(e, "is_Integer", False):
            return int(e)
        if getattr(e, "is_Symbol", False):
            return self.symbols.setdefault(str(e), SizeVar(str(e), "int64"))
        if getattr(e, "is_Float", False) or (getattr(e, "is_Rational", False)):
            return float(e)
        kind = type(e).__name__
        if kind in ("BooleanTrue", "BooleanFalse"):
            return bool(e)
        if kind in _ROUNDED and type(e.args[0]).__name__ == "IntTrueDiv":
            return _ROUNDED[kind][0](*map(self.symbolic, e.args[0].args))
        args = [self.symbolic(a) for a in e.args]
        if kind in _ROUNDED:
            return O.cast(_ROUNDED[kind][1](_real(args[0])), "int64")
        if kind in ("IntTrueDiv", "FloatTrueDiv"):
            return Div(*map(_real, args))
        if any(is_float(getattr(a, "dtype", "int64")) or isinstance(a, float) for a in args):
            args = [_real(a) for a in args]
        if kind in _FOLDS:
            total = args[0]
            for a in args[1:]:
                total = _FOLDS[kind](total, a)
            return total
        if kind in _BINARY:
            return _BINARY[kind](*args)
        if kind == "Pow" and isinstance(args[1], int) and args[1] > 0:
            total = args[0]
            for _ in range(args[1] - 1):
                total = total * args[0]
            return total
        if kind == "ToFloat":
            return _real(args[0])
        raise ValueError(f"a size is {e}, which is no sum, product, quotient or remainder of sizes")


def _real(value: Any) -> Any:
    """A number or a size in float64, in which Python computes."""
    return O.const(float(value), "float64") if isinstance(value, (int, float)) else O.cast(
        value, "float64")


def _ceil_div(a: PrimExpr, b: PrimExpr) -> Any:
    return O.floordiv(a + b - 1, b)


_FOLDS = {"Add": operator.add, "Mul": operator.mul, "Max": O.max_value_of, "Min": O.min_value_of}
#: how real numbers become sizes: of a quotient of sizes, and of any number
_ROUNDED = {"TruncToInt": (O.floordiv, O.trunc), "FloorToInt": (O.floordiv, O.floor),
            "CeilToInt": (_ceil_div, O.ceil)}
_BINARY = {
    "FloorDiv": O.floordiv, "CleanDiv": O.floordiv, "CeilDiv": _ceil_div,
    "Mod": O.floormod, "PythonMod": O.floormod,
    "Equality": O.equal, "Unequality": O.not_equal, "StrictLessThan": O.less,
    "LessThan": O.less_equal, "StrictGreaterThan": O.greater, "GreaterThan": O.greater_equal,
}


def expressions_of(value: Any) -> Any:
    """The sizes of a tensor of torch as numbers and expressions of sympy; a list of such lists for
    several tensors."""
    if hasattr(value, "shape"):
        return [d.node.expr if is_symbolic(d) else d for d in value.shape]
    return list(map(expressions_of, value)) if isinstance(value, (list, tuple)) else None


#: relations of sizes, but that of not being equal
RELATIONS = frozenset({"Equality", "StrictLessThan", "LessThan", "StrictGreaterThan",
                       "GreaterThan"})

__all__ = ["RELATIONS", "Sizes", "expressions_of", "is_symbolic"]
