"""A page that shows recordings with no kernel, no server and no network: one HTML file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from . import bundle, static

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
// The part of anywidget's model that a view uses, over a recording that lies in the page.
class PageModel {{
  constructor(recording) {{
    this.values = {{ recording, step: 0, selection: {{}} }};
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
for (const host of document.querySelectorAll("[data-mlc-recording]")) {{
  const data = document.getElementById(host.dataset.mlcRecording);
  render({{ model: new PageModel(JSON.parse(data.textContent)), el: host }});
}}
</script>
</body>
</html>
"""


def embed(data: Any) -> str:
    """JSON that may stand inside a <script> element: no `<` can end the element."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def page(recordings: Sequence[Any], title: str = "Schedules") -> str:
    """One HTML page with the stepper of each recording; readable text where scripts do not run."""
    views = []
    for number, recording in enumerate(recordings):
        name = f"recording-{number}"
        views.append(
            f'<div data-mlc-recording="{name}">'
            f"<noscript>{static.html(recording)}</noscript></div>\n"
            f'<script type="application/json" id="{name}">{embed(recording.to_dict())}</script>'
        )
    return _PAGE.format(
        title=escape(title), style=bundle.style(), views="\n".join(views),
        script=bundle.script(default=False),
    )  # fmt: skip
