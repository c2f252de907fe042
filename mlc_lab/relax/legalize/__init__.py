"""How each Relax operator becomes TensorIR: a table, one row an operator.

A row is a function `(builder, call) -> Expr`, registered with `register_legalize`; it calls a TOPI
function through `builder.call_te`, or says the operator in terms of others, which are legalised in
turn. `LegalizeOps` applies the rows; its `customize_legalize_map` takes the place of some of them.
Loading this package fills the table; a file a topic holds the rows.
"""

from . import attention, convolution, create, elementwise, index, manipulate, nn, packed, reduction

__all__ = ["attention", "convolution", "create", "elementwise", "index", "manipulate", "nn",
           "packed", "reduction"]
