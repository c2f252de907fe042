"""Showing scripts highlighted: HTML in a notebook, colours in a terminal, plain text elsewhere."""

from __future__ import annotations

import re
import sys
from typing import Any
from html import escape

from .printer import script

_TOKEN = re.compile(
    r"(?P<comment>#[^\n]*)|(?P<string>\"(?:\\.|[^\"\\])*\")|(?P<number>(?<![\w.])-?\d+(?:\.\d+)?"
    r"(?:e[+-]?\d+)?)|(?P<keyword>\b(?:def|class|for|in|with|if|else|while|assert|and|or|not|as|"
    r"True|False|None|return|pass|lambda)\b)|(?P<decorator>@[\w.]+)|(?P<name>\b[TIR]\.[\w.]+)")

#: colours of each kind of token as #rrggbb on any background (a contrast above four to white and to
#: the dark of notebooks alike), on white, and on the dark of `highlight_html`; and the ANSI code
_COLOURS = {
    "comment": ("#707783", "#6a737d", "#8b949e", "90"),
    "string": ("#d44436", "#a31515", "#a5d6ff", "32"),
    "number": ("#0b8668", "#098658", "#79c0ff", "36"),
    "keyword": ("#416cf0", "#0000c0", "#ff7b72", "35"),
    "decorator": ("#af48d1", "#795e26", "#d2a8ff", "33"),
    "name": ("#a26b0d", "#795e26", "#d2a8ff", "34"),
}


def highlight_html(text: str, style: str | None = None) -> str:
    """The text as one <pre> with inline styles, which also untrusted notebooks keep.

    `style` is "light" or "dark" (TVM's names are accepted) for pages of one known background; by
    default the colours can be read on both.
    """
    dark = style in ("dark", "vscode-dark", "ansi-dark")
    column = 0 if style is None else 2 if dark else 1

    def colour(match: re.Match) -> str:
        value = _COLOURS[str(match.lastgroup)][column]
        return f'<span style="color:{value}">{escape(match.group())}</span>'

    out, last = [], 0
    for match in _TOKEN.finditer(text):
        out += [escape(text[last:match.start()]), colour(match)]
        last = match.end()
    out.append(escape(text[last:]))
    back = "" if style is None else (
        f"background:{'#0d1117;color:#c9d1d9' if dark else '#ffffff;color:#1f2328'};padding:8px;")
    return f'<pre style="{back}line-height:1.35;overflow-x:auto">{"".join(out)}</pre>'


def highlight_ansi(text: str) -> str:
    """The text with ANSI colours."""
    return _TOKEN.sub(lambda m: f"\x1b[{_COLOURS[str(m.lastgroup)][3]}m{m.group()}\x1b[0m", text)


def _notebook() -> bool:
    """Whether output goes to a notebook rather than to a terminal."""
    if "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return shell is not None and type(shell).__name__ != "TerminalInteractiveShell"


def show(obj: Any, style: str | None = None, black_format: bool = False, **options: Any
         ) -> None:
    """Print the script of `obj`. `style`: see `highlight_html`."""
    show_text(script(obj, **options), style)


def show_text(text: str, style: str | None = None) -> None:
    """Print Python text highlighted: HTML in a notebook, colours in a terminal."""
    if _notebook():
        from IPython.display import HTML, display

        display(HTML(highlight_html(text, style)))
        return
    stream = sys.stdout
    if getattr(stream, "isatty", lambda: False)():
        text = highlight_ansi(text)
    print(text)


__all__ = ["highlight_ansi", "highlight_html", "show", "show_text"]
