"""The words of hybrid scripts: what each is for numpy, and what it is in an expression.

A script that is called with arrays runs as Python, with `HYBRID_GLOBALS` among its globals; one
that is called with tensors is read, and `IN_EXPRESSIONS` says what a call in it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...ir import dtype as dt
from ...ir.dtype import canonical
from ...target import Target
from ...tir import op as O
from ...tir.stmt import ForKind

#: a loop of a script -> how its iterations run; those of const_range are written one after another
LOOPS = {"range": ForKind.SERIAL, "parallel": ForKind.PARALLEL, "vectorize": ForKind.VECTORIZED,
         "unroll": ForKind.UNROLLED}
CASTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
         "float32", "float64")


def bind(thread: str, extent: int) -> Iterator[int]:
    """The iterations of a loop over GPU threads, one after another."""
    return iter(range(int(extent)))


def allocate(shape: Sequence[int], dtype: str = "float32", scope: str = "global") -> np.ndarray:
    """Memory of zeros. Where the script is compiled, memory holds anything until it is written."""
    return np.zeros(tuple(map(int, shape)), dtype)


def _bits(value: Any) -> int:
    width = 8 * np.asarray(value).dtype.itemsize
    return (int(value) % 2 ** width).bit_count()


def greatest(dtype: str) -> Any:
    """The largest finite value of a type."""
    return dt.float_max(dtype) if dt.is_float(dtype) else dt.int_range(dtype)[1]


def least(dtype: str) -> Any:
    """The smallest finite value of a type."""
    return -dt.float_max(dtype) if dt.is_float(dtype) else dt.int_range(dtype)[0]


def max_num_threads(allow_none: bool = True) -> int:
    """The most threads of a block on the target at hand. Raises ValueError without one."""
    target = Target.current(allow_none)
    found = None if target is None else getattr(target, "max_num_threads", None)
    if found is None:
        raise ValueError("max_num_threads() asks the target: write it in `with Target(\"cuda\"):`")
    return int(found)


#: what a script finds among its globals when it runs on arrays
HYBRID_GLOBALS: dict[str, Any] = {
    **dict.fromkeys(("parallel", "vectorize", "unroll", "const_range"), range),
    "bind": bind, "allocate": allocate, "output_tensor": allocate,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "exp": np.exp, "log": np.log,
    "tanh": np.tanh, "power": np.power, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "popcount": _bits, "round": round, "likely": lambda condition: condition,
    **{name: getattr(np, name) for name in CASTS},
    "ceil_div": lambda a, b: (a + b - 1) // b, "max_num_threads": max_num_threads,
    "inf": greatest, "ninf": least,
}


def _fold(of_two: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def fold(first: Any, *rest: Any) -> Any:
        for other in rest:
            first = of_two(first, other)
        return first

    return fold


def _cast(dtype: str) -> Callable[[Any], Any]:
    return lambda value: O.cast(O.convert(value), dtype)


#: what a call in a script makes of expressions
IN_EXPRESSIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(O, name) for name in ("sqrt", "rsqrt", "exp", "log", "tanh", "sigmoid",
                                           "power", "popcount", "round", "abs", "likely")},
    "min": _fold(O.min), "max": _fold(O.max),
    **{name: _cast(name) for name in CASTS},
    "ceil_div": lambda a, b: (a + b - 1) // b,
    "max_num_threads": max_num_threads,
    "inf": lambda dtype: O.const(greatest(canonical(dtype)), dtype),
    "ninf": lambda dtype: O.const(least(canonical(dtype)), dtype),
}

__all__ = ["CASTS", "HYBRID_GLOBALS", "IN_EXPRESSIONS", "LOOPS", "allocate", "bind",
           "max_num_threads"]
