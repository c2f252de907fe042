"""Views of what the compiler did, as Jupyter widgets and as HTML files with no kernel.

Import name: `mlc_lab_widgets`. One module a view, one JavaScript file a view (in `js/`), one shared
style. A view draws a recording (`mlc_lab.observe.recording`) and contains no compiler logic.

    Stepper    the steps of a schedule: programs side by side, cost, correctness (needs anywidget)
    Workbench  schedule by clicking, every attempt kept in a tree (needs anywidget)
    AccessView what a program reads and writes in time order, in simulated caches
    Compare    two schedules, a step of one beside a step of the other; `compare(a, b)` makes one
    page       recordings as one HTML page (needs nothing)
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .export import page

#: views by the module that has them
_VIEWS = {"AccessView": ".access", "Compare": ".comparison", "compare": ".comparison",
          "Stepper": ".stepper", "Workbench": ".workbench"}  # fmt: skip

__all__ = ["AccessView", "Compare", "Stepper", "Workbench", "compare", "page"]


def __getattr__(name: str) -> Any:
    """Widgets load when they are asked for, so that pages can be written without anywidget."""
    if name not in _VIEWS:
        raise AttributeError(f"module mlc_lab_widgets has no attribute {name!r}")
    try:
        return getattr(import_module(_VIEWS[name], __name__), name)
    except ImportError as error:
        raise ImportError(
            f"the notebook views need {error.name}, which is not installed.\n"
            "Install it with:  pip install 'mlc-lab[lab]'\n"
            "Without it, `recording.html(path)` writes the same view as an HTML page."
        ) from None
