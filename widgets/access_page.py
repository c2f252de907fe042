"""The access view as a page with no kernel, and as HTML without scripts; needs no anywidget."""

from __future__ import annotations

from html import escape
from typing import Any

from . import export

ENTRY = "access.js"
STYLES = ("stepper.css", "access.css")
_PRE = "margin:2px 0;padding:4px 8px;font-size:12px;line-height:1.45;overflow-x:auto"


def values_of(results: list[Any]) -> list[dict[str, Any]]:
    """Results as plain data. Reuse distances depend on the length of a line only, so of several
    results with the same one only the first carries them."""
    seen: set[int] = set()
    out = []
    for result in results:
        data = result.to_dict()
        line = result.hierarchy.levels[0].line
        if line in seen:
            data["reuse"] = None
        seen.add(line)
        out.append(data)
    return out


def write(trace: Any, results: list[Any], configuration: int, title: str | None) -> str:
    """A page with the view of a trace in these results, of which one is shown first."""
    values = {
        "trace": trace.to_dict(), "results": values_of(results), "configuration": configuration,
        "position": 0, "request": {}, "error": "", "live": False,
    }  # fmt: skip
    return export.write([(values, static(trace, results))], title or f"Accesses of {trace.title}",
                        ENTRY, styles=STYLES)


def page(trace: Any, caches: Any = None, title: str | None = None) -> str:
    """The access view of a trace as one HTML page that needs no kernel and no network."""
    return write(trace, trace.results(caches), 0, title)


def static(trace: Any, results: list[Any]) -> str:
    """The trace as HTML without scripts: what each choice of caches counts, and the beginning."""
    parts = [f"<p><b>Accesses of {escape(trace.title)}</b>: {trace.total:,}</p>"]
    for result in results:
        lines = [f"{'':8}{'found here':>14}{'misses':>14}{'bytes in':>16}{'bytes back':>16}"]
        lines += [f"{x.name:8}{x.hits:>14,}{x.misses:>14,}{x.bytes_in:>16,}{x.bytes_out:>16,}"
                  for x in result.counts]
        title = result.name if result.name == str(result.hierarchy) else (
            f"{result.name}: {result.hierarchy}")
        body = f'<pre style="{_PRE}">{escape(chr(10).join(lines))}</pre>'
        parts.append(f"<details><summary>{escape(title)}</summary>{body}</details>")
    texts = {"The first accesses": trace.table(60), "The lowered program": trace.text}
    for head, text in texts.items():
        body = f'<pre style="{_PRE}">{escape(text)}</pre>'
        parts.append(f"<details><summary>{head}</summary>{body}</details>")
    parts += [f"<p>{escape(note)}</p>" for note in trace.notes]
    return f"<div>{''.join(parts)}</div>"
