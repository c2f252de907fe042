"""The static form of a recording: all it may use is what survives an untrusted notebook."""

from html.parser import HTMLParser

import handmade

from mlc_lab_widgets import bundle, page, static

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


def test_top_level_names_are_distinct_across_modules():
    import re

    seen = {}
    for name in bundle.modules("stepper.js"):
        text = (bundle.FOLDER / name).read_text(encoding="utf-8")
        pattern = r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)"
        for found in re.findall(pattern, text, re.M):
            assert found not in seen, f"{found} is in {seen.get(found)} and in {name}"
            seen[found] = name


def test_the_bundle_is_one_module_without_imports():
    text = bundle.script()
    assert "import {" not in text and "import(" not in text
    assert text.count("export ") == 1 and "export default { render }" in text
    bare = text.replace("http://www.w3.org/2000/svg", "")  # the name of SVG, not an address to ask
    assert "http://" not in bare and "https://" not in bare
    assert len(text) < 110_000
