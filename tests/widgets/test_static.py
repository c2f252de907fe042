"""The static form of a recording: all it may use is what survives an untrusted notebook."""

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import handmade

from mlc_lab_widgets import page, static

GOLDEN = Path(__file__).parent / "golden_recording.json"
SURVIVES = {"div", "p", "b", "i", "span", "pre", "details", "summary"}


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.attributes, self.open = set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_only_harmless_html_is_used():
    tags = Tags()
    tags.feed(static.html(handmade.recording()))
    assert tags.seen <= SURVIVES
    assert tags.attributes <= {"style"}
    assert not tags.open


def test_all_steps_can_be_read():
    text = static.html(handmade.recording())
    for op, python, *_ in handmade.STEPS:
        assert op == "start" or python.split("(")[0] in text
    assert "no iteration may depend on another" in text
    assert "9.01 % of peak" not in text  # nothing is shown that was not measured
    assert "equals the original" in text


def test_programs_and_tables_have_letters_of_one_width():
    """nbconvert's page gives <pre> the letters of prose."""
    told = static.html(handmade.recording())
    assert told.count("<pre ") == told.count("font-family:monospace") > 6
    for file in Path(static.__file__).parent.glob("*.py"):
        lines = [line for line in file.read_text(encoding="utf-8").split("\n") if "<pre " in line]
        assert all("{PRE}" in line for line in lines), file


def test_markup_in_programs_is_escaped():
    recording = handmade.recording()
    recording.lines[0] = ("# <script>alert(1)</script>", [])
    recording.title = "</script><b>"
    assert "<script>" not in static.html(recording)
    written = page([recording], "</title>")
    assert written.count("</script>") == 2  # the data and the module, each once
    assert "<script>alert" not in written


ALONE = """
import sys
for name in ("anywidget", "traitlets", "ipywidgets"):
    sys.modules[name] = None  # an import of it fails
import mlc_lab_widgets
from mlc_lab.observe.recording import Recording

with open(sys.argv[1], encoding="utf-8") as file:
    recording = Recording.from_json(file.read())
assert "<title>Steps</title>" in mlc_lab_widgets.page([recording], "Steps")
try:
    mlc_lab_widgets.Stepper(recording)
except ImportError as error:
    print(error)
"""


def test_pages_need_no_anywidget_and_widgets_say_what_is_missing():
    done = subprocess.run([sys.executable, "-c", ALONE, str(GOLDEN)], capture_output=True,
                          text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    assert "pip install 'mlc-lab[lab]'" in done.stdout
