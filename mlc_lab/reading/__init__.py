"""What all that is read has in common: scripts, traces, JSON, databases, exported files.

Nothing that is read is executed, and a text or file decides only so much: `limits.py` has the
bounds, all in one place. `errors.py` has the base of the errors for what is wrong with it, and
`json_text.py` reads JSON. This package lies below all others.
"""

from . import limits
from .errors import MISTAKES, DataError, LimitError, MLCError, reason, shortened, shown, similar
from .json_text import read_json

__all__ = ["MISTAKES", "DataError", "LimitError", "MLCError", "limits", "read_json", "reason",
           "shortened", "shown", "similar"]
