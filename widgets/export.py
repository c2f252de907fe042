"""A page that shows views with no kernel, no server and no network: one HTML file.

`write` makes the page of any view: of its script, its style sheets, and for each place on the page
the values of the model's traits and static HTML for where scripts do not run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from . import bundle

_PAGE = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="MLC Lab">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 0 auto; max-width: 1500px; padding: 16px; background: #fff; color: #1b1f24;
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }}
h1 {{ font-size: 20px; margin: 4px 0 12px; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #16181c; color: #e8eaed; }} }}
{style}
</style>
</head>
<body>
<h1>{title}</h1>
{views}
<script type="module">
{script}
mlcPage.showAll(mlcView.default);
</script>
</body>
</html>
"""


def embed(data: Any) -> str:
    """JSON that may stand inside a <script> element: no `<` can end the element."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def write(
    views: Sequence[tuple[dict[str, Any], str]],
    title: str,
    entry: str,
    styles: Sequence[str] = ("stepper.css",),
) -> str:
    """One HTML page with a view at each of `views`: (the values of its traits, static HTML).

    `entry` is the view's JavaScript file in `js/`.
    """
    parts = []
    said = bundle.words(entry)
    for number, (values, fallback) in enumerate(views):
        name = f"view-{number}"
        if said:
            values = {"words": said, **values}
        parts.append(
            f'<div data-mlc-view="{name}"><noscript>{fallback}</noscript></div>\n'
            f'<script type="application/json" id="{name}">{embed(values)}</script>'
        )
    return _PAGE.format(
        language=said.get("", "en"), title=escape(title), style=bundle.style(*styles),
        views="\n".join(parts), script=bundle.script(entry) + bundle.script("page.js"),
    )  # fmt: skip
