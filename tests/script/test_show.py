"""Showing a script: plain in a pipe, coloured in a terminal, HTML in a notebook."""

import re
import sys
import types

import pytest

from mlc_lab.script import from_source
from mlc_lab.script.show import highlight_ansi, highlight_html

from .programs import BODIES, HEADER, SIGNATURE


@pytest.fixture
def func():
    return from_source(HEADER + SIGNATURE + BODIES["reduction"])


def test_a_pipe_gets_plain_text(func, capsys):
    func.show()
    assert capsys.readouterr().out == func.script() + "\n"


def test_a_terminal_gets_colours(func, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    func.show("dark")
    out = capsys.readouterr().out
    assert "\x1b[" in out and re.sub("\x1b\\[\\d+m", "", out) == func.script() + "\n"
    assert re.sub("\x1b\\[\\d+m", "", highlight_ansi(func.script())) == func.script()


def luminance(colour):
    """Of a colour #rrggbb, as WCAG 2 defines it."""
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear))


@pytest.mark.parametrize("background", ["#ffffff", "#111111"])
def test_colours_are_read_on_light_and_on_dark(func, background):
    """A notebook's output does not know the theme it is shown in, and that changes later."""
    colours = set(re.findall("color:(#[0-9a-f]{6})", highlight_html('# a\n@T.f\ndef f(): "s", 1')))
    assert len(colours) == 5
    for colour in colours:
        low, high = sorted(map(luminance, (colour, background)))
        assert (high + 0.05) / (low + 0.05) > 4


@pytest.mark.parametrize("style", [None, "light", "dark"])
def test_a_notebook_gets_html_that_keeps_its_text(func, style):
    html = highlight_html(func.script(), style)
    assert html.startswith("<pre style=") and "<style" not in html and "<script" not in html
    plain = re.sub("<[^>]*>", "", html)
    assert plain.replace("&quot;", '"').replace("&lt;", "<") == func.script()


def test_a_notebook_is_found_by_its_shell(func, monkeypatch):
    shown = []
    fake = types.ModuleType("IPython")
    fake.get_ipython = lambda: type("ZMQInteractiveShell", (), {})()
    display = types.ModuleType("IPython.display")
    display.HTML, display.display = lambda text: text, shown.append
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    func.show()
    assert shown and "T.axis.remap" in shown[0]
