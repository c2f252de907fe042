"""TVMScript: the parser (text -> IR, nothing executed) and the printer (IR -> text).

`tir` (T) and `ir` (I) hold the names of the language. Read `printer.py`, `print_stmt.py` and
`print_expr.py` first: they show the whole grammar as text; then `parser.py`, `statements.py`,
`assignments.py`, `evaluator.py`, the words in `forms/`, and `entry.py` (the decorators and
`from_source`).
"""

from typing import TYPE_CHECKING

from ..above import above
from . import ir, tir
from .entry import from_source
from .ir import ir_module
from .printer import Printer, script
from .show import show
from .spans import Printed, Span, print_with_spans

if TYPE_CHECKING:
    from ..relax.script import names as relax  # noqa: F401


def __getattr__(name: str) -> object:
    """`relax` (R), whose language lies above this package."""
    if name != "relax":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return above("language of Relax")


__all__ = ["Printed", "Printer", "Span", "from_source", "ir", "ir_module", "print_with_spans",
           "script", "show", "tir"]
