"""The tuning board without a kernel: as a page, and as HTML that needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from .export import write

STYLES = ("stepper.css", "board.css")


def static_html(board: Any) -> str:
    """The best trials as text, for untrusted notebooks and static renderers."""
    return (f"<details open><summary><b>{escape(board.title)}: the best trials</b></summary>"
            f'<pre style="font-size:12px;overflow-x:auto">{escape(board.table())}</pre></details>')


def page(boards: Sequence[Any], title: str) -> str:
    """One HTML page with each board."""
    views = [({"board": board.to_dict(), "selected": "", "live": False, "running": False,
               "kernel": "", "reply": {}}, static_html(board)) for board in boards]
    return write(views, title, "board.js", STYLES)
