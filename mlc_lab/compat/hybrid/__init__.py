"""`tvm.te.hybrid` of TVM 0.18 and before: a computation written as loops of Python.

    @te.hybrid.script
    def outer_product(a, b):
        c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
        for i in range(a.shape[0]):
            for j in range(b.shape[0]):
                c[i, j] = a[i] * b[j]
        return c

Called with tensors of te, the function is read (`parser.py`) and its outputs are tensors of a
`te.HybridOp`, whose loops a schedule changes like any others. Called with arrays, it runs as
Python. `words.py` has its words, `names.py` which of its names are memory, and `module.py`
a scheduled program written as such a script again.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from ...script.source import Source, find_function
from ...te import Tensor, TensorSlice
from ...tir.expr import PrimExpr
from . import parser, words as runtime
from .module import HybridModule, build


def _for_reading(value: Any) -> bool:
    return isinstance(value, (Tensor, TensorSlice, PrimExpr)) or (
        isinstance(value, Sequence) and not isinstance(value, str)
        and any(map(_for_reading, value)))


def script(pyfunc: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: a Python function of loops as a computation of te.

    Called with tensors, variables and numbers it gives the output tensors: one, or a list. Called
    with arrays and numbers it runs as Python and gives arrays. Raises DiagnosticError for what a
    hybrid script cannot say, with its place.
    """
    if not isinstance(pyfunc, types.FunctionType):
        raise TypeError(f"te.hybrid.script decorates a function, not a {type(pyfunc).__name__}")

    def hybrid_source() -> tuple[Any, Any, Any]:
        source, node = find_function(pyfunc)
        return source, node, Source.environment_of(pyfunc)

    @wraps(pyfunc)
    def called(*args: Any) -> Any:
        if any(map(_for_reading, args)):
            op = parser.read(*hybrid_source(), args, pyfunc.__name__)
            return op.output(0) if op.num_outputs == 1 else list(op.outputs)
        run = types.FunctionType(pyfunc.__code__, {**pyfunc.__globals__, **runtime.HYBRID_GLOBALS},
                                 pyfunc.__name__, pyfunc.__defaults__, pyfunc.__closure__)
        return run(*args)

    called.hybrid_source = hybrid_source  # type: ignore[attr-defined]
    return called


__all__ = ["HybridModule", "build", "parser", "runtime", "script"]
