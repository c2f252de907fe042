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


@pytest.mark.parametrize("style", ["light", "dark"])
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
