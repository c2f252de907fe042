"""`%%needs torch`: a cell that runs where a package is there, and says how to get it where not."""

from __future__ import annotations

import importlib
from typing import Any

#: what installs a package, where pip calls it by another name
_PIP = {"sklearn": "scikit-learn"}


def missing(names: list[str]) -> list[str]:
    """Those of the packages that cannot be imported."""
    found = []
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            found.append(name)
    return found


def register(ipython: Any) -> None:
    """Make `%%needs` a magic of a shell."""
    def needs(line: str, cell: str) -> None:
        """%%needs PACKAGE ...: run the cell where all of the packages can be imported."""
        lacking = missing(line.split())
        if not lacking:
            ipython.run_cell(cell).raise_error()
            return
        packages = " ".join(_PIP.get(name, name) for name in lacking)
        print(f"This cell was passed over: it needs {', '.join(lacking)}. To run it, install that "
              f"with\n    %pip install {packages}\nand run the notebook again. Cells that do not "
              "need it run as they are.")

    ipython.register_magic_function(needs, "cell", "needs")


__all__ = ["missing", "register"]
