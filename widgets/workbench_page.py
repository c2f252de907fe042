"""Trees of attempts as one HTML page without a kernel, and as HTML that needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from . import bundle
from .export import embed
from .static import cost_text

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
// The part of anywidget's model that the view uses; there is no kernel to ask.
class PageModel {{
  constructor(tree) {{
    const none = {{ selection: {{}}, palette: {{}}, costs: {{}}, live: false }};
    this.values = {{ tree, node: tree.at, ...none }};
    this.listeners = new Map();
  }}
  get(name) {{ return this.values[name]; }}
  set(name, value) {{
    if (this.values[name] === value) return;
    this.values[name] = value;
    for (const listener of this.listeners.get("change:" + name) || []) listener();
  }}
  save_changes() {{}}
  send() {{}}
  on(event, listener) {{
    if (!this.listeners.has(event)) this.listeners.set(event, new Set());
    this.listeners.get(event).add(listener);
  }}
  off(event, listener) {{ this.listeners.get(event)?.delete(listener); }}
}}
for (const host of document.querySelectorAll("[data-mlc-tree]")) {{
  const data = document.getElementById(host.dataset.mlcTree);
  render({{ model: new PageModel(JSON.parse(data.textContent)), el: host }});
}}
</script>
</body>
</html>
"""
_PRE = "margin:2px 0;padding:4px 8px;font-size:12px;line-height:1.45;overflow-x:auto"


def page(trees: Sequence[dict[str, Any]], title: str = "Attempts") -> str:
    """One HTML page with a workbench for each tree, readable where scripts do not run."""
    views = []
    for number, tree in enumerate(trees):
        name = f"tree-{number}"
        views.append(
            f'<div data-mlc-tree="{name}"><noscript>{static_html(tree)}</noscript></div>\n'
            f'<script type="application/json" id="{name}">{embed(tree)}</script>'
        )
    return _PAGE.format(
        title=escape(title), style=bundle.style("stepper.css") + bundle.style("workbench.css"),
        views="\n".join(views), script=bundle.script("workbench.js", default=False),
    )  # fmt: skip


def _program(tree: dict[str, Any], number: int) -> str:
    lines = tree["programs"][number]["lines"]
    return "\n".join(tree["lines"][i][0] for i in lines)


def _pre(text: str) -> str:
    return f'<pre style="{_PRE}">{escape(text)}</pre>'


def static_html(tree: dict[str, Any]) -> str:
    """A tree as HTML of which nothing is lost where scripts and styles are not allowed.

    An outline of the attempts with their times, each unfolding to its Python and what refused it,
    and the program at the place where the tree stands.
    """
    nodes = tree["nodes"]
    depth: list[int] = []
    for node in nodes:
        depth.append(0 if node["parent"] is None else depth[node["parent"]] + 1)
    children: dict[int | None, list[int]] = {}
    for number, node in enumerate(nodes):
        children.setdefault(node["parent"], []).append(number)
    rows = []
    waiting = [0]
    while waiting:
        number = waiting.pop()
        waiting += reversed(children.get(number, []))
        node = nodes[number]
        cost = None if node.get("error") else tree["programs"][node["program"]].get("cost")
        head = f"{'· ' * depth[number]}{number}. {node['python'] or 'the program as it was'}"
        told = cost_text(cost)
        summary = escape(head) + (f" <i>({escape(told)})</i>" if told else "")
        body = _pre("\n".join([*node["lead"], node["python"]])) if node["python"] else ""
        if node.get("error"):
            summary += " <b>refused</b>"
            body += _pre(node["error"]["message"])
        elif number == 0:
            body = _pre(_program(tree, node["program"]))
        if number == tree["at"]:
            summary = f"<b>{summary}</b>"
        rows.append(f"<details><summary>{summary}</summary>{body}</details>")
    at = nodes[tree["at"]]
    lines: list[str] = []
    node = at
    while node["parent"] is not None:
        lines[:0] = [*node["lead"], node["python"]]
        node = nodes[node["parent"]]
    python = "\n".join([tree.get("prelude", ""), *lines])
    return (
        f"<div><p><b>Attempts at {escape(tree['title'])}</b></p>{''.join(rows)}"
        f"<details><summary>The program at attempt {at['id']}</summary>"
        f"{_pre(_program(tree, at['program']))}</details>"
        f"<details><summary>Its schedule as Python</summary>{_pre(python)}</details></div>"
    )
