"""A recording as HTML that needs no script: for untrusted notebooks and static renderers.

Of all HTML only `<details>`, `<pre>`, simple text and inline `style=` survive there, so this uses
nothing else. To stay small it shows the first and the last program whole, and of each step between
them the lines that changed, as a unified diff by the identity of the lines.
"""

from __future__ import annotations

import base64
from html import escape
from typing import Any

from mlc_lab.language import text
from mlc_lab.observe.alignment import keyed, rows
from mlc_lab.observe.roofs import MARGIN

CONTEXT = 2
#: characters that a picture has at most
PICTURE_LIMIT = 60_000
# Tints that can be read on white and on black.
_TINT = {"+": "background:rgba(0,114,178,.18)", "-": "background:rgba(213,94,0,.18)"}
#: of lines as they are; pages around it may give them the letters of prose, and break them
PRE = ("margin:2px 0;padding:4px 8px;font-family:monospace;font-size:12px;line-height:1.45;"
       "white-space:pre;overflow-x:auto")


def duration(seconds: float) -> str:
    """Seconds as "12.3 ms"."""
    for unit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if seconds >= unit * 0.9995 or name == "ns":
            return f"{seconds / unit:.3g} {name}"
    raise AssertionError


def cost_text(cost: dict[str, Any] | None) -> str:
    """What a program cost, in one line."""
    if not cost:
        return ""
    parts = []
    if cost.get("time"):
        parts.append(duration(cost["time"]))
        if cost.get("gflops"):
            parts.append(f"{cost['gflops']:.3g} GFLOP/s")
        if cost.get("peak_fraction"):
            above = cost["peak_fraction"] > MARGIN
            share = f"{100 * cost['peak_fraction']:.3g}"
            parts.append(text("above the measured peak", "views") if above else
                         text("{share} % of peak", "views").format(share=share))
    elif cost.get("message"):
        parts.append(cost["message"])
    if cost.get("equal") is not None:
        parts.append(text("equals the original", "views") if cost["equal"] else
                     text("DIFFERS FROM THE ORIGINAL", "views"))
    return ", ".join(parts)


def difference(recording: Any, before: int, after: int) -> list[tuple[str, str]]:
    """Unified diff of two programs: (" ", "+", "-" or "@", line) a line, two lines of context."""
    old, new = recording.text(before).split("\n"), recording.text(after).split("\n")
    found = rows(keyed(recording, before), keyed(recording, after))
    changed = [n for n, row in enumerate(found) if row.left_mark or row.right_mark]
    near = {n + k for n in changed for k in range(-CONTEXT, CONTEXT + 1)}
    out: list[tuple[str, str]] = []
    added: list[tuple[str, str]] = []  # what is new stands below what it replaces
    for n, row in enumerate(found):
        if row.left_mark or row.right_mark:
            out += [("-", old[row.left])] if row.left >= 0 else []
            added += [("+", new[row.right])] if row.right >= 0 else []
            continue
        out, added = out + added, []
        if n in near:
            out.append((" ", new[row.right]))
        elif n - 1 in near and any(m > n for m in changed) and out:
            out.append(("@", "..."))
    return out + added


def image(svg: str, words: str) -> str:
    """A picture, and words for where none is shown; "" for one that is too large to be kept."""
    if len(svg) > PICTURE_LIMIT:
        return ""
    data = base64.b64encode(svg.encode()).decode()
    return (f'<p><img alt="{escape(words)}" style="max-width:100%" '
            f'src="data:image/svg+xml;base64,{data}"></p>')


def pre(lines: str) -> str:
    """Lines of a program or of a table, which stand under each other."""
    return f'<pre style="{PRE}">{escape(lines)}</pre>'


def _diff(recording: Any, before: int, after: int) -> str:
    lines = []
    for sign, line in difference(recording, before, after):
        shown = escape(f"{sign} {line}" if sign != "@" else line)
        lines.append(f'<span style="{_TINT[sign]}">{shown}</span>' if sign in _TINT else shown)
    return f'<pre style="{PRE}">' + "\n".join(lines) + "</pre>"


def hidden(recording: Any) -> str:
    """What stands in place of a view in which one guesses first: it must not give answers away."""
    steps = len(recording.steps) - 1
    rest = text("{steps} steps to guess. This needs a view with scripts.", "views")
    return f"<p>{_title(recording.title)}: {rest.format(steps=steps)}</p>{pre(recording.text(0))}"


def _title(title: str) -> str:
    return f"<b>{escape(text('Steps of {title}', 'views').format(title=title))}</b>"


def html(recording: Any, title: str | None = None) -> str:
    """The whole recording as static HTML: one foldable part a step, under its title or another."""
    steps = recording.steps
    parts = [f"<p>{_title(recording.title if title is None else title)}</p>"]
    for number, step in enumerate(steps):
        head = f"{number}. " + (step.python or step.op if number else
                                text("the program as it was", "views"))
        cost = cost_text(recording.cost(number))
        summary = escape(head) + (f" <i>({escape(cost)})</i>" if cost else "")
        if step.error:
            summary += f" <b>{escape(text('refused', 'views'))}</b>"
        body = ""
        meaning = recording.docs.get(step.op, {}).get("meaning")
        if meaning:
            body += f"<p>{escape(meaning)}</p>"
        if step.error:
            body += pre(step.error["message"])
            if step.error.get("where"):
                body += pre(step.error["where"])
        elif number == 0:
            body += pre(recording.text(step.after))
        elif step.before == step.after:
            body += f"<p>{escape(text('The program is the same.', 'views'))}</p>"
        else:
            body += "".join(f"<p>{escape(reason)}</p>" for reason in step.why)
            body += _diff(recording, step.before, step.after)
        parts.append(f"<details><summary>{summary}</summary>{body}</details>")
    if len(steps) > 1:
        for head, program in (
            (text("The program in the end", "views"), recording.text(steps[-1].after)),
            (text("The schedule as Python", "views"), recording.python_up_to(len(steps) - 1)),
        ):
            parts.append(f"<details><summary>{escape(head)}</summary>{pre(program)}</details>")
    return f"<div>{''.join(parts)}</div>"
