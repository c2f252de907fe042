"""Libraries that take over parts of a model, and the patterns of what they can do.

    register_library("mylib", make)                    make(func) -> f(*inputs, *outputs)
    register_patterns([("mylib.matmul", pattern)])     what FuseOpsByPattern looks for

`numpy` is registered as the example: products of matrices with bias and activation through numpy's
own BLAS, elementwise operators through its ufuncs.

    mod = FuseOpsByPattern(get_patterns_with_prefix("numpy"), annotate_codegen=True)(mod)
    mod = RunCodegen()(mod)
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from ..tir import expr as E
from .expr import Call, Constant, Function, SeqExpr, ShapeExpr, Tuple, TupleGetItem, Var

#: name -> make(func, **options) -> the function that does its work
LIBRARIES: dict[str, Callable[..., Callable]] = {}
#: patterns by priority: the last registered first, as in TVM
_PATTERNS: list[Any] = []


def register_library(name: str, make: Callable[..., Callable]) -> None:
    """Let functions marked with `Codegen: name` be made by `make(func, **options)`."""
    LIBRARIES[name] = make


def register_patterns(patterns: Sequence[Any]) -> None:
    """Add patterns (as FuseOpsByPattern takes them); later ones have priority."""
    _PATTERNS.extend(patterns)


def get_patterns_with_prefix(prefix: str) -> list[Any]:
    """The patterns whose name begins with `prefix`, by priority."""
    if prefix.startswith("numpy") and not any(_name(p).startswith("numpy.") for p in _PATTERNS):
        register_patterns(_numpy_patterns())
    return [p for p in reversed(_PATTERNS) if _name(p).startswith(prefix)]


def get_pattern(name: str) -> Any:
    """The pattern of that name, None where there is none."""
    return next((p for p in get_patterns_with_prefix(name) if _name(p) == name), None)


def _name(pattern: Any) -> str:
    return pattern[0] if isinstance(pattern, tuple) else pattern.name


# ------------------------------------------------------------------------------- numpy


def _numpy_patterns() -> list[Any]:
    from .dpl import is_op, wildcard

    matmul = is_op("relax.matmul")(wildcard(), wildcard())
    bias = is_op("relax.add")(matmul, wildcard())
    relu = is_op("relax.nn.relu")
    return [("numpy.matmul", matmul), ("numpy.matmul_relu", relu(matmul)),
            ("numpy.matmul_bias", bias), ("numpy.matmul_bias_relu", relu(bias))]


def _relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0, out=x) if x.flags.owndata else np.maximum(x, 0)


#: what an operator means, by numpy; extended by whoever needs more
NUMPY_OPERATORS: dict[str, Callable[..., Any]] = {
    "relax.matmul": lambda a, b: np.matmul(a, b), "relax.add": np.add,
    "relax.subtract": np.subtract, "relax.multiply": np.multiply, "relax.divide": np.divide,
    "relax.exp": np.exp, "relax.negative": np.negative, "relax.tanh": np.tanh,
    "relax.sqrt": np.sqrt, "relax.maximum": np.maximum, "relax.minimum": np.minimum,
    "relax.nn.relu": _relu, "relax.sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


class NumpyProgram:
    """A Relax function run operator by operator with numpy; writes into its last arguments.

    Raises ValueError, when it is made, for an operator that is not in NUMPY_OPERATORS.
    """

    def __init__(self, func: Function) -> None:
        self.func = func
        self.count = len(func.params)
        self._check(func)

    def __call__(self, *tensors: Any) -> None:
        arrays = [_view(t) for t in tensors]
        result = self._function(self.func, arrays[: self.count], {})
        results = result if isinstance(result, tuple) else (result,)
        for target, value in zip(arrays[self.count:], results):
            np.copyto(target, value)

    def _check(self, func: Function) -> None:
        for block in func.body.blocks:
            for binding in block.bindings:
                value = binding.value
                if type(value) is Function:
                    self._check(value)
                elif type(value) is Call and isinstance(value.op, E.Op) and (
                        value.op.name not in NUMPY_OPERATORS):
                    have = ", ".join(sorted(NUMPY_OPERATORS))
                    raise ValueError(f"the numpy library has no {value.op.name!r}; it has: {have}")

    def _function(self, func: Function, args: Sequence[Any], outer: dict[Var, Any]) -> Any:
        env = dict(outer)
        env.update(zip(func.params, args))
        assert type(func.body) is SeqExpr
        for block in func.body.blocks:
            for binding in block.bindings:
                env[binding.var] = self._value(binding.value, env)
        return self._value(func.body.body, env)

    def _value(self, expr: Any, env: dict[Var, Any]) -> Any:
        kind = type(expr)
        if kind is Call:
            args = [self._value(a, env) for a in expr.args]
            if isinstance(expr.op, E.Op):
                return NUMPY_OPERATORS[expr.op.name](*args)
            return self._function(env[expr.op], args, env)
        if kind is Constant:
            return expr.data.numpy()
        if kind is Tuple:
            return tuple(self._value(f, env) for f in expr.fields_)
        if kind is TupleGetItem:
            return self._value(expr.tuple_value, env)[expr.index]
        if kind is ShapeExpr:
            return tuple(int(v) for v in expr.values)
        return expr if kind is Function else env[expr]


def _view(tensor: Any) -> np.ndarray:
    """A tensor's memory as a numpy array, without copying."""
    return tensor if isinstance(tensor, np.ndarray) else np.from_dlpack(tensor)


register_library("numpy", NumpyProgram)



def __getattr__(name: str) -> Any:
    """The passes that TVM has beside these patterns."""
    if name in ("DispatchSampling", "DispatchSortScan"):
        from .transform import dispatch

        return getattr(dispatch, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["LIBRARIES", "NUMPY_OPERATORS", "NumpyProgram", "get_pattern",
           "get_patterns_with_prefix", "register_library", "register_patterns"]
