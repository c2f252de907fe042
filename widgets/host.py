"""A page that hosts views with no kernel: for views whose model is a handful of values.

`export.page` does the same for the stepper. Each view gets the values of its traits, embedded as
JSON, and the same JavaScript as in a notebook.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from . import bundle
from .export import embed

_PAGE = """<!doctype html>
<html lang="en">
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
// The part of anywidget's model that a view uses, over values that lie in the page.
class PageModel {{
  constructor(values) {{
    this.values = values;
    this.listeners = new Map();
  }}
  get(name) {{ return this.values[name]; }}
  set(name, value) {{
    if (this.values[name] === value) return;
    this.values[name] = value;
    for (const listener of this.listeners.get("change:" + name) || []) listener();
  }}
  save_changes() {{}}
  on(event, listener) {{
    if (!this.listeners.has(event)) this.listeners.set(event, new Set());
    this.listeners.get(event).add(listener);
  }}
  off(event, listener) {{ this.listeners.get(event)?.delete(listener); }}
}}
for (const host of document.querySelectorAll("[data-mlc-values]")) {{
  const data = document.getElementById(host.dataset.mlcValues);
  render({{ model: new PageModel(JSON.parse(data.textContent)), el: host }});
}}
</script>
</body>
</html>
"""


def page(views: Sequence[tuple[Mapping[str, Any], str]], title: str, entry: str,
         styles: Sequence[str]) -> str:
    """One HTML page. `views` are pairs: the values of a view's traits, and its static HTML for
    where scripts do not run; `entry` and `styles` name the files in `js/`."""
    parts = []
    for number, (values, static) in enumerate(views):
        name = f"view-{number}"
        parts.append(
            f'<div data-mlc-values="{name}"><noscript>{static}</noscript></div>\n'
            f'<script type="application/json" id="{name}">{embed(dict(values))}</script>'
        )
    return _PAGE.format(
        title=escape(title), style="\n".join(bundle.style(name) for name in styles),
        views="\n".join(parts), script=bundle.script(entry, default=False),
    )  # fmt: skip
