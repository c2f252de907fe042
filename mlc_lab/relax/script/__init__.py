"""Relax in TVMScript: `names.py` is what scripts call R, `printer.py` and `parser.py` the two ways.

Importing this package registers both with `mlc_lab.script`.
"""

from . import names, parser, printer, words

__all__ = ["names", "parser", "printer", "words"]
