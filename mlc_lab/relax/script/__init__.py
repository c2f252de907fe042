"""Relax in TVMScript: `names.py` is what scripts call R, `printer.py` and `parser.py` the two ways.

Importing this package registers both with `mlc_lab.script`.
"""

from ...script import allowed, bounded
from .. import expr, struct_info
from . import names, parser, printer, words

allowed.offer(names, names.NAMES)
for _module in (names.builtin, names.image, names.memory, names.nn, names.vm):
    allowed.offer(_module, _module.__all__)
allowed.offer_methods(struct_info.Expr, ("astype",))
for _class in (expr.Tuple, struct_info.TupleStructInfo, struct_info.TensorStructInfo):
    allowed.offer_methods(_class, ("fields", "get_shape"))
bounded.LEAVES.update((expr.Var, expr.DataflowVar, expr.Constant))

__all__ = ["names", "parser", "printer", "words"]
