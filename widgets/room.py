"""The pages of a class in a room: a teacher's, with the stepper, and a student's, for a phone.

`mlc_lab/exercises/room/server.py` serves them. They ask nothing of any other host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import bundle
from .stepper import STYLES
from .stepper import packed as packed_one

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{name}.css">
</head>
<body>
<main id="room"><noscript>This page needs scripts.</noscript></main>
<script src="{name}.js"></script>
</body>
</html>
"""
_HTML, _SCRIPT, _STYLE = (f"{kind}; charset=utf-8" for kind in
                          ("text/html", "text/javascript", "text/css"))


def pages() -> dict[str, tuple[str, str]]:
    """By path: its type and its text."""
    start = '\nmlcView.default.render({ el: document.getElementById("room") });\n'
    found = {}
    for path, name, title, styles in (
            ("/", "student", "Class", ("stepper.css", "room.css")),
            ("/teacher", "teacher", "Class: teacher", (*STYLES, "room.css"))):
        found[path] = _HTML, _PAGE.format(title=title, name=name)
        found[f"/{name}.js"] = _SCRIPT, bundle.script(f"room_{name}.js") + start
        found[f"/{name}.css"] = _STYLE, bundle.style(*styles)
    return found


def packed(recordings: Sequence[Any]) -> list[dict[str, Any]]:
    """The recordings as the stepper takes them."""
    return [packed_one(recording) for recording in recordings]


__all__ = ["packed", "pages"]
