"""Course code as it stands: `import tvm` finds this package after `install()`.

    import mlc_lab.compat; mlc_lab.compat.install()     # in a program
    %load_ext mlc_lab                                   # in a notebook

`namespaces.py` holds TVM's namespaces that are no packages here, `dialect.py` other vintages of
TVMScript, `magic.py` the cell magic `%%live` that a notebook has then.
"""

from __future__ import annotations

import sys
from typing import Any

from .finder import Explainer, TvmFinder


class CompatError(ImportError):
    """`import tvm` cannot be made to mean this package."""


def install() -> None:
    """Make `import tvm`, `from tvm.script import tir as T`, ... resolve to MLC Lab.

    Only this process is affected. Raises CompatError where a real TVM is imported already, since
    the two would be mixed up. Installing twice does nothing more.
    """
    import mlc_lab

    present = sys.modules.get("tvm")
    if present is mlc_lab:
        return
    if present is not None:
        where = getattr(present, "__file__", None) or "this process"
        raise CompatError(
            f"a real TVM is imported already (version "
            f"{getattr(present, '__version__', 'unknown')}, {where}): `import tvm` keeps meaning "
            "that one. Restart and call mlc_lab.compat.install() before importing tvm, or write "
            "`import mlc_lab as tvm`")
    from . import dialect  # noqa: F401  (registers other vintages of the script)

    sys.modules["tvm"] = mlc_lab
    sys.meta_path.insert(0, TvmFinder())
    sys.meta_path.append(Explainer())


def uninstall() -> None:
    """Undo `install`: `import tvm` means what it meant before."""
    import mlc_lab

    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(
        f, (TvmFinder, Explainer))]
    if sys.modules.get("tvm") is mlc_lab:
        for name in [n for n in sys.modules if n == "tvm" or n.startswith("tvm.")]:
            del sys.modules[name]


def load_ipython_extension(ipython: Any) -> None:
    """What `%load_ext mlc_lab` does: `import tvm` works, there are `%%live` and `%%needs`, and
    cells that install or download do no harm (`old_cells.py`)."""
    from . import magic, needs, old_cells

    install()
    for part in (magic, needs, old_cells):
        part.register(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """What `%unload_ext mlc_lab` does."""
    from . import magic, needs, old_cells

    uninstall()
    for part in (magic, needs, old_cells):
        part.unregister(ipython)


__all__ = ["CompatError", "install", "load_ipython_extension", "uninstall",
           "unload_ipython_extension"]
