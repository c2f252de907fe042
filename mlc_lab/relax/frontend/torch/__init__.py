"""PyTorch models as Relax modules: `from_exported_program` and `from_fx`.

A rule is a function `(importer, *arguments) -> value` in `RULES`, one an operator, under the name
that ATen, `torch.nn.functional` and the methods of tensors share; so both importers use one table.
Read `importer.py`, then the rules: `elementwise.py`, `shapes.py`, `creation.py`,
`reductions.py`, `layers.py`, `recurrent.py`.
"""

from .exported_program import from_exported_program
from .fx import from_fx

__all__ = ["from_exported_program", "from_fx"]
