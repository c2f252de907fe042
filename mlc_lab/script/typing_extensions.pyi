"""The decorators of scripts, to checkers alone.

A script is parsed and never run: its annotations (`A: T.Buffer((128,), "float32")`) and its
statements follow the rules of the language, not those of Python. `typing.no_type_check` says that,
but leaves a function a function. Pyright and Pylance know it by its name in a stub called
`typing_extensions.pyi`, which is why this one is: these say it too, and give what the decorators
give.
"""

from collections.abc import Callable
from typing import Any

from ..relax.expr import Function
from ..tir.function import PrimFunc

class TensorIR:
    @staticmethod
    def no_type_check(func: Callable[..., Any] = ..., private: bool = False,
                      check_well_formed: bool = True, **options: Any) -> PrimFunc:
        """A Python function as a PrimFunc. `private` leaves out `global_symbol`."""

class Relax:
    @staticmethod
    def no_type_check(func: Callable[..., Any] = ..., pure: bool = True, private: bool = False,
                      check_well_formed: bool = True) -> Function:
        """A Python function as a Relax function, by parsing its source."""

class Macros:
    @staticmethod
    def no_type_check(func: Callable[..., Any] = ..., *, hygienic: bool = True) -> Any:
        """A function whose body is inlined where a script calls it."""
