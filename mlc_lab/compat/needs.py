"""`%%needs torch`: a cell that runs where a package is there, and says how to get it where not."""

from __future__ import annotations

import importlib
from types import TracebackType
from typing import Any

#: what installs a package, where pip calls it by another name
_PIP = {"PIL": "pillow", "cv2": "opencv-python", "sklearn": "scikit-learn"}
#: what chapters and tutorials import beside TVM
_BESIDE = {"IPython", "graphviz", "matplotlib", "onnx", "pandas", "requests", "scipy", "tabulate",
           "torch", "torchvision", "tqdm", "transformers", "xgboost", *_PIP}


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
    ipython.set_custom_exc((ModuleNotFoundError,), _explain)


def unregister(ipython: Any) -> None:
    """Leave errors of imports alone again."""
    ipython.set_custom_exc((), None)


def _explain(ipython: Any, kind: type[BaseException], error: BaseException,
             trace: TracebackType | None, tb_offset: int | None = None) -> None:
    """Show that a package is not there, and how to get it."""
    ipython.showtraceback((kind, error, trace), tb_offset=tb_offset)
    package = (getattr(error, "name", "") or "").partition(".")[0]
    if package in _BESIDE:
        print(f"{package} is a package beside MLC Lab. To get it, run\n"
              f"    %pip install {_PIP.get(package, package)}\nand this cell again.")


__all__ = ["missing", "register", "unregister"]
