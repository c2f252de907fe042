"""Relax in TVMScript: `names.py` is what scripts call R, `printer.py` and `parser.py` the two ways.

Importing this package registers both with `mlc_lab.script`.
"""

from typing import Any, Callable

from ...script import allowed, bounded
from .. import expr, struct_info
from ..op.declare import LISTENERS
from . import names, parser, printer, words

allowed.offer(names, names.NAMES)
_NAMESPACES = {"relax": names, "relax.builtin": names.builtin, "relax.grad": names.grad,
               "relax.image": names.image, "relax.memory": names.memory,
               "relax.nn": names.nn, "relax.vm": names.vm}
for _module in _NAMESPACES.values():
    if _module is not names:
        allowed.offer(_module, _module.__all__)


def _offer(name: str, build: Callable[..., Any]) -> None:
    """Give an operator that is declared later its name in scripts."""
    place, _, last = name.rpartition(".")
    setattr(_NAMESPACES[place], last, build)
    allowed.offer(_NAMESPACES[place], [last])


LISTENERS.append(_offer)
allowed.offer_methods(struct_info.Expr, ("astype",))
for _class in (expr.Tuple, struct_info.TupleStructInfo, struct_info.TensorStructInfo):
    allowed.offer_methods(_class, ("fields", "get_shape"))
bounded.LEAVES.update((expr.Var, expr.DataflowVar, expr.Constant))

__all__ = ["names", "parser", "printer", "words"]
