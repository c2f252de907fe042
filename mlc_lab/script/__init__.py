"""TVMScript: the parser (text -> IR, nothing executed) and the printer (IR -> text).

`tir` (T) and `ir` (I) hold the names of the language. Read `printer.py` first: it shows the whole
grammar as text; then `evaluator.py`, `parser.py` and `forms.py`.
"""

from ..ir import hooks
from . import ir, tir
from .ir import ir_module
from .parser import from_source
from .printer import Printer, script
from .show import show, show_text
from .spans import Printed, Span, print_with_spans, script_underlined

hooks.script_printer = script
hooks.show_printer = show
hooks.script_underliner = script_underlined
hooks.text_shower = show_text

__all__ = ["Printed", "Printer", "Span", "from_source", "ir", "ir_module", "print_with_spans",
           "script", "show", "tir"]
