"""The static form of a recording: all it may use is what survives an untrusted notebook."""

from html.parser import HTMLParser

import handmade

from mlc_lab_widgets import page, static

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


def test_markup_in_programs_is_escaped():
    recording = handmade.recording()
    recording.lines[0] = ("# <script>alert(1)</script>", [])
    recording.title = "</script><b>"
    assert "<script>" not in static.html(recording)
    written = page([recording], "</title>")
    assert written.count("</script>") == 2  # the data and the module, each once
    assert "<script>alert" not in written
