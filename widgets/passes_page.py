"""The pass view without a kernel: as a page, and as HTML that needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from .export import write

STYLES = ("stepper.css", "graph.css", "passes.css")


def static_html(recording: Any) -> str:
    """The passes with their times, for untrusted notebooks and static renderers."""
    return (f"<details open><summary><b>{escape(recording.title)}</b></summary>"
            f'<pre style="font-size:12px;overflow-x:auto">{escape(recording.table())}</pre>'
            "</details>")


def page(recordings: Sequence[Any], title: str) -> str:
    """One HTML page with the pass view of each recording."""
    views = [({"passes": r.to_dict(), "step": 0}, static_html(r)) for r in recordings]
    return write(views, title, "passes.js", STYLES)
