"""Views of what the compiler did, as Jupyter widgets and as HTML files with no kernel.

Import name: `mlc_lab_widgets`. A view is one Python file here, and a script and a style in `js/`.
It draws a recording (`mlc_lab.observe.recording`) and contains no compiler logic.

    Stepper      the steps of a schedule: programs side by side, cost, correctness
    Compare      two schedules, a step of one beside a step of the other; `compare(a, b)` makes one
    Workbench    schedule by clicking, every attempt kept in a tree
    Live         what a schedule leaves open, and what follows from each choice
    Typed        a program or a schedule that is typed, and what follows from it
    AccessView   what a program reads and writes in time order, in simulated caches
    GraphView    a computation graph
    PassView     a pipeline of passes: programs and graphs before and after each
    MachineView  a run of the virtual machine
    TuningBoard  a search for schedules
    ClassReport  what a class has answered: marks, the commonest mistakes, likenesses
    ThreadsView  the threads of a block: lanes, sectors, banks, barriers, occupancy
    WebGPUView   kernels that run on the GPU of the reader's browser
    course       the start page of the lessons: what is done, what is installed, the machine
    page         recordings as one HTML page

Widgets need the extra `lab`; pages need nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: views, and what makes them, by the module that has them
_VIEWS = {
    "AccessView": ".access",
    "Card": ".card",
    "ClassReport": ".report",
    "Compare": ".comparison",
    "GraphView": ".graph",
    "Live": ".live",
    "MachineView": ".machine",
    "PassView": ".passes",
    "Stepper": ".stepper",
    "ThreadsView": ".threads",
    "TuningBoard": ".board",
    "Typed": ".typed",
    "WebGPUView": ".webgpu",
    "Workbench": ".workbench",
    "class_report": ".report",
    "compare": ".comparison",
    "course": ".start",
    "exercise": ".card",
    "page": ".stepper",
}

__all__ = list(_VIEWS)


def __getattr__(name: str) -> Any:
    """A view is loaded when it is asked for."""
    if name not in _VIEWS:
        raise AttributeError(f"module mlc_lab_widgets has no attribute {name!r}")
    return getattr(import_module(_VIEWS[name], __name__), name)
