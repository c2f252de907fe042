"""The pages of a class in a room: a teacher's, with the stepper, and a student's, for a phone.

`mlc_lab/exercises/room/server.py` serves them. They ask nothing of any other host.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mlc_lab.language import text

from . import bundle
from .stepper import STYLES
from .stepper import packed as packed_one

_PAGE = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{name}.css">
</head>
<body>
<main id="room"><noscript>{unseen}</noscript></main>
<script src="{name}.js"></script>
</body>
</html>
"""
_HTML, _SCRIPT, _STYLE = (f"{kind}; charset=utf-8" for kind in
                          ("text/html", "text/javascript", "text/css"))


def pages() -> dict[str, tuple[str, str]]:
    """By path: its type and its text."""
    found = {}
    for path, name, title, styles in (
            ("/", "student", text("Class", "views"), ("stepper.css", "room.css")),
            ("/teacher", "teacher", text("Class: teacher", "views"), (*STYLES, "room.css"))):
        entry = f"room_{name}.js"
        words = bundle.words(entry)
        found[path] = _HTML, _PAGE.format(
            title=title, name=name, language=words.get("", "en"),
            unseen=text("This page needs scripts.", "views"))
        model = f'model: new Map([["words", {json.dumps(words)}]]), ' if words else ""
        found[f"/{name}.js"] = _SCRIPT, bundle.script(entry) + (
            f'\nmlcView.default.render({{ {model}el: document.getElementById("room") }});\n')
        found[f"/{name}.css"] = _STYLE, bundle.style(*styles)
    return found


def packed(recordings: Sequence[Any]) -> list[dict[str, Any]]:
    """The recordings as the stepper takes them."""
    return [packed_one(recording) for recording in recordings]


__all__ = ["packed", "pages"]
