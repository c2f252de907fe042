"""Trees of attempts as one HTML page without a kernel, and as HTML that needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from .export import write
from .static import cost_text

_PRE = "margin:2px 0;padding:4px 8px;font-size:12px;line-height:1.45;overflow-x:auto"


def page(trees: Sequence[dict[str, Any]], title: str = "Attempts") -> str:
    """One HTML page with a workbench for each tree, readable where scripts do not run."""
    views = [
        ({"tree": tree, "node": tree["at"], "selection": {}, "palette": {}, "costs": {},
          "live": False}, static_html(tree))
        for tree in trees
    ]  # fmt: skip
    return write(views, title, "workbench.js", styles=("stepper.css", "workbench.css"))


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
