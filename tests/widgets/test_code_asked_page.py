"""The code of a step, asked of a kernel that a test plays: ahead, with a clock, and once more."""

import json

import pytest
from browser import open_page
from observe.schedules import schedule

from mlc_lab.observe.session import record
from mlc_lab_widgets import bundle
from mlc_lab_widgets.stepper import STYLES, packed

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><title>x</title><style>{style}</style><div id="here"></div><script>
{script}
class Model extends mlcPage.PageModel {{
  send(message) {{ sent.push(message); }}
  hear(message) {{ for (const f of this.listeners.get("msg:custom") || []) f(message); }}
}}
const sent = [];
const model = new Model({{ recording: {recording}, step: 0, selection: {{}} }});
mlcView.default.render({{ model, el: document.getElementById("here") }});
</script>"""


@pytest.fixture(scope="module")
def recording():
    return record(schedule()).recording


@pytest.fixture
def page(chromium, tmp_path, recording):
    script = bundle.script("stepper.js") + bundle.script("page.js")
    text = PAGE.format(style=bundle.style(*STYLES), script=script,
                       recording=json.dumps(packed(recording)))
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    with open_page(chromium) as page:
        page.goto((tmp_path / "page.html").as_uri())
        yield page


def asked(page, count):
    page.wait_for_function(f"sent.length >= {count}")
    return page.evaluate("sent")


def test_the_step_shown_and_the_next_are_asked_for_ahead(page, recording):
    steps = recording.steps
    assert asked(page, 2) == [{"type": "code", "program": steps[n].after, "ahead": True}
                              for n in (0, 1)]
    for _ in range(2):  # nothing is asked while the reader goes on
        page.get_by_role("button", name="Next step").click()
    programs = [m["program"] for m in asked(page, 4)]
    assert programs[2:4] == [steps[2].after, steps[3].after]


def test_what_was_made_ahead_is_there_at_once(page, recording):
    asked(page, 2)
    code = recording.code_of(0)
    page.evaluate("code => model.hear({type: 'code', code})", code)
    page.get_by_role("tab", name="Assembly").click()
    page.locator(".code-view .machine .l").first.wait_for()
    assert [m for m in page.evaluate("sent") if not m.get("ahead")] == []


def test_it_says_how_long_it_takes_and_gives_up_with_a_way_on(page, recording):
    page.get_by_role("tab", name="Assembly").click()
    wait = page.locator(".code-view .wait")
    assert wait.inner_text() == "Compiling …"
    page.wait_for_function("/^Compiling, [1-9] s$/.test("
                           "document.querySelector('.code-view .wait').textContent)")
    page.evaluate("model.hear({type: 'code', program: 0, error: 'it took too long'})")
    assert wait.inner_text() == "it took too long"
    again = page.get_by_role("button", name="Try again")
    again.focus()
    page.keyboard.press("Enter")
    assert wait.inner_text() == "Compiling …"
    assert len([m for m in page.evaluate("sent") if not m.get("ahead")]) == 2
    page.evaluate("code => model.hear({type: 'code', code})", recording.code_of(0))
    page.locator(".code-view .machine .l").first.wait_for()
