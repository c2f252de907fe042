"""The view of a run of the virtual machine without a kernel: as a page, and as plain HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from .export import write

STYLES = ("stepper.css", "machine.css")


def static_html(run: Any) -> str:
    """The kernels of the run, for untrusted notebooks and static renderers."""
    return (f"<details open><summary><b>{escape(repr(run)[1:-1])}</b></summary>"
            f'<pre style="font-size:12px;overflow-x:auto">{escape(run.table())}</pre></details>')


def page(runs: Sequence[Any], title: str) -> str:
    """One HTML page with the view of each run."""
    views = [({"run": run.to_dict(), "step": 0}, static_html(run)) for run in runs]
    return write(views, title, "machine.js", STYLES)
