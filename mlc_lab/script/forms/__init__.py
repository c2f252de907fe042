"""The words of the script language and what each does to the program under construction.

A form is a function `(parser, ...)` with the arguments the script gives. It returns a value, a
`Pending` definition that waits for its name, or what `for` and `with` expect. `table.py` has them
all by name; one file a topic makes them.
"""

from . import buffers, functions, scopes  # noqa: F401  (their words enter the table)
from .blocks import BlockScope, InitScope, as_region
from .loops import Loops
from .table import FORMS

__all__ = ["FORMS", "BlockScope", "InitScope", "Loops", "as_region"]
