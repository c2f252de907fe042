"""Type and see: typed in a real browser, read by a real Python, and exported."""

import json

import pytest
from browser import open_page
from observe.test_typed import BOTH, PROGRAM, SCHEDULE
from typed_page import serve

pytest.importorskip("anywidget")
import mlc_lab
from mlc_lab.observe.typed import Typed
from mlc_lab_widgets import live
from mlc_lab_widgets.typed import write

pytestmark = pytest.mark.browser


@pytest.fixture
def view():
    made = mlc_lab.type_live(BOTH, caches="1K:2, 8K:4")
    yield made
    made.close()


@pytest.fixture(params=["light", "dark"])
def page(chromium, view, tmp_path, request):
    with open_page(chromium, scheme=request.param, width=1600) as page:
        serve(page, view, tmp_path / "typed.html")
        yield page


#: the text in the editor
TEXT = "[...document.querySelectorAll('.lines > div')].map(l => l.textContent).join('\\n')"


def go_to(page, line, keys="End"):
    """Put the caret into a line, from 1."""
    page.locator(".lines > div").nth(line - 1).click()
    page.keyboard.press(keys)


def typed(page, view, text):
    """Wait until Python has a text, and the editor shows the same one."""
    page.wait_for_function(f"text => ({TEXT}) === text", arg=text)
    for _ in range(600):
        if view.text == text:
            return
        page.wait_for_timeout(50)
    assert view.text == text


def program(page):
    return "\n".join(page.locator(".program .l code").all_text_contents())


def test_what_is_typed_is_followed(page, view):
    assert program(page) == "\n".join(view.source.lines(view.source.at))
    page.locator(".fact", has_text="L1 misses").wait_for()
    go_to(page, 17)
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Backspace")
    page.keyboard.type("16")
    page.locator(".program").get_by_text("T.vectorized(16)").first.wait_for()
    assert page.locator(".program .l.changed").count() >= 3
    typed(page, view, BOTH.replace('"tile", 8', '"tile", 16'))
    page.locator(".why li:not(.none)").first.wait_for()
    page.get_by_text("Time", exact=True).wait_for()
    view.wait()
    misses = view.cost()["counts"]["levels"][0]["misses"]
    page.locator(f'.fact[title^="{misses:,} of"]').wait_for()
    said = view.source.why(view._before, view._at)
    page.wait_for_function("n => document.querySelectorAll('.why li').length === n", arg=len(said))
    assert page.locator(".why li").all_inner_texts() == said
    first = view.cost()["inner"]["text"][0]
    assert page.locator(".asm pre").inner_text().splitlines()[0].split() == first.split()
    for _ in range(9):
        page.keyboard.press("Control+z")
    typed(page, view, BOTH)


def test_an_error_stands_under_its_line_and_the_program_stays(page, view):
    before = program(page)
    go_to(page, 19)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    page.keyboard.type("k")
    line = page.locator(".lines > div.wrong")
    page.wait_for_selector(".lines > div[data-error]")
    assert line.inner_text().strip() == "sch.vectorize(k)"
    assert line.get_attribute("data-error").startswith("refused: parallel loops are spatial\n")
    assert page.locator(".lines").get_attribute("aria-invalid") == "true"
    assert "line 19: refused" in page.locator("p.sr[role=status]").inner_text()
    boxes = [page.locator(".lines > div").nth(n).bounding_box() for n in (18, 19)]
    assert boxes[1]["y"] - boxes[0]["y"] > 60  # the message has its place between the two
    box = page.locator(".editor").bounding_box()
    assert boxes[1]["y"] <= box["y"] + box["height"] + 8  # and can be read
    assert program(page) == before and page.locator(".program.stale").count() == 1
    page.keyboard.press("Backspace")
    page.keyboard.type("j1")
    page.wait_for_selector(".lines > div.wrong", state="detached")
    assert page.locator(".program.stale").count() == 0 and view.error is None
    assert page.locator("[data-error]").count() == 0
    go_to(page, 12)
    page.keyboard.press("Backspace")
    page.wait_for_selector(".lines > div[data-error]")
    assert "12:38: this is no Python" in line.get_attribute("data-error")


def test_with_the_keyboard_alone(page, view):
    page.locator("#before").focus()
    for _ in range(5):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == (
        "Program and schedule")
    page.keyboard.press("Control+End")
    page.keyboard.type("for i in x:")
    page.keyboard.press("Enter")
    page.keyboard.type("a")
    page.keyboard.press("Home")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    text = BOTH + "for i in x:\n        a"
    typed(page, view, text)
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("Tab")
    typed(page, view, BOTH + "    for i in x:\n            a")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    typed(page, view, BOTH + "for i in x:\n    a")
    for _ in range(60):
        page.keyboard.press("Control+z")
    typed(page, view, BOTH)
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.type") == "range"
    page.keyboard.press("ArrowRight")
    text = BOTH.replace('"tile", 8', '"tile", 16')
    typed(page, view, text)
    page.locator(".program").get_by_text("T.vectorized(16)").first.wait_for()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Control+Home")
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.keyboard.press("Alt+ArrowUp")
    typed(page, view, text.replace("N = 16", "N = 17"))
    page.keyboard.press("Alt+ArrowDown")
    page.keyboard.press("Alt+Shift+ArrowUp")
    typed(page, view, text.replace("N = 16", "N = 32"))
    page.keyboard.press("Alt+Shift+ArrowDown")
    typed(page, view, text)


def test_all_is_deleted_and_pasted(page, view):
    page.locator(".lines").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    typed(page, view, "")
    page.keyboard.type("x = 1")
    page.keyboard.press("Enter")
    page.keyboard.type("y")
    typed(page, view, "x = 1\ny")
    page.keyboard.press("Control+a")
    page.evaluate("text => navigator.clipboard.writeText(text)", PROGRAM.replace("\n", "\r\n"))
    page.keyboard.press("Control+v")
    typed(page, view, PROGRAM)
    assert page.locator(".lines > div").count() == PROGRAM.count("\n") + 1
    assert program(page) and "T.vectorized" not in program(page)
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+c")
    assert page.evaluate("navigator.clipboard.readText()").rstrip() == PROGRAM.rstrip()
    page.get_by_role("button", name="Reset").click()
    typed(page, view, BOTH)
    page.get_by_role("button", name="Copy the text").click()
    page.wait_for_function("text => navigator.clipboard.readText().then(t => t === text)", arg=BOTH)
    page.evaluate("navigator.clipboard.write([new ClipboardItem({'text/html': new Blob(["
                  "'<b>x</b><p>y</p>'], {type: 'text/html'})})])")
    page.locator(".lines").focus()
    page.keyboard.press("Control+v")
    assert page.locator(".lines b").count() == 0


def test_a_slider_writes_its_number_into_the_text(page, view):
    slider = page.get_by_role("slider", name="tile")
    assert slider.get_attribute("aria-valuetext") == "8"
    slider.focus()
    for _ in range(2):
        page.keyboard.press("ArrowLeft")
    typed(page, view, BOTH.replace('"tile", 8', '"tile", 2'))
    page.locator(".program").get_by_text("T.vectorized(2)").first.wait_for()
    assert page.evaluate("document.activeElement.type") == "range"
    assert page.locator(".knob output").inner_text() == "2"
    page.wait_for_function("document.querySelectorAll('.dot.misses').length === 5")
    page.locator(".dot.misses").nth(4).click()
    typed(page, view, BOTH.replace('"tile", 8', '"tile", 16'))
    go_to(page, 3)
    page.keyboard.press("Backspace")  # N = 1
    page.locator(".program").get_by_text("T.grid(1, 1, 1)").or_(
        page.locator(".lines > div[data-error]")).first.wait_for()
    view.set("tile", 4)
    typed(page, view, BOTH.replace('"tile", 8', '"tile", 4'))
    assert slider.get_attribute("aria-valuetext") == "4" and slider.is_enabled()


def test_while_a_text_has_an_error_its_sliders_wait(page, view):
    slider = page.get_by_role("slider", name="tile")
    go_to(page, 19)
    page.keyboard.type("(")
    assert slider.is_disabled()
    page.keyboard.press("Backspace")
    page.wait_for_function("!document.querySelector('input[type=range]').disabled")


def test_answers_to_other_texts_are_not_drawn(page, view):
    view.answer = {"n": 77, "error": {"line": 1, "column": 0, "end": 1, "message": "late",
                                      "hint": "", "call": "", "rule": ""}}
    page.wait_for_timeout(300)
    assert page.locator(".lines > div.wrong").count() == 0


def test_the_views_text_is_python_s(page, view):
    view.type(BOTH.replace("N = 16", "N = 32"))
    typed(page, view, BOTH.replace("N = 16", "N = 32"))
    page.locator(".program").get_by_text("(32, 32)").first.wait_for()
    with pytest.raises(Exception, match="text with its number"):
        view.typed = {"text": 5, "n": 9}


# ------------------------------------------------------------------------- without a kernel


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    path = tmp_path_factory.mktemp("typed") / "typed.html"
    view = mlc_lab.type_live(BOTH, caches="1K:2, 8K:4")
    view.html(path, budget_s=60)
    view.close()
    return path, view


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [800, 1600])
def test_the_exported_page_has_the_text_and_its_choices(chromium, exported, scheme, width):
    path, view = exported
    with open_page(chromium, scheme=scheme, width=width) as page:
        page.goto(path.as_uri())
        page.wait_for_selector(".mlc.typed .program .l")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        lines = page.locator(".lines")
        assert page.evaluate(TEXT) == BOTH and lines.get_attribute("aria-readonly") == "true"
        lines.focus()
        page.keyboard.type("x")
        assert page.evaluate(TEXT) == BOTH
        page.get_by_text("Time", exact=True).wait_for()
        page.get_by_role("slider", name="tile").focus()
        page.keyboard.press("ArrowRight")
        assert page.evaluate(TEXT) == BOTH.replace('"tile", 8', '"tile", 16')
        assert "T.vectorized(16)" in program(page)
        said = view.source.why(view.source.at, view.source.point([4]))
        assert said and page.locator(".why li").all_inner_texts() == said


def test_in_a_narrow_page_the_editor_has_the_whole_width(chromium, exported):
    with open_page(chromium, width=620) as page:
        page.goto(exported[0].as_uri())
        page.wait_for_selector(".mlc.typed .program .l")
        editor, pane = (page.locator(name).bounding_box() for name in (".editor", ".program"))
        assert editor["width"] >= pane["width"] - 1


def test_a_page_with_an_error_shows_it(chromium, tmp_path):
    text = SCHEDULE.replace("vectorize(j1)", "vectorize(k)") + "# <script>\n"
    source = Typed(text, mlc_lab.script.from_source(PROGRAM))
    page_text = write(source)
    assert "<noscript><div><pre" in page_text and "✗ parallel loops are spatial" in page_text
    data = page_text.split('type="application/json"')[1].split(">", 1)[1].split("<")[0]
    values = json.loads(data)
    assert values["answer"]["error"]["line"] == 4
    (tmp_path / "typed.html").write_text(page_text, encoding="utf-8")
    with open_page(chromium) as page:
        page.goto((tmp_path / "typed.html").as_uri())
        page.wait_for_selector(".lines > div[data-error]")
        assert page.locator(".program.stale").count() == 1 and "j_1" in program(page)


def test_a_page_that_would_be_too_large_leaves_out_what_is_farthest(chromium, exported, tmp_path,
                                                                    monkeypatch):
    """The text that is shown and what follows from it stay."""
    source = exported[1].source

    def written(budget):
        monkeypatch.setattr(live, "BUDGET", budget)
        text = write(source)
        data = text.split('type="application/json"')[1].split(">", 1)[1].split("<")[0]
        return text, json.loads(data)["all"]

    whole, all_ = written(10_000_000)
    size = len(whole.encode())
    fits, some = written(size - 2000)
    assert len(fits.encode()) <= size - 2000 and len(all_) > 2
    assert source.at.key in some and some[source.at.key] == all_[source.at.key]
    least, own = written(1)
    assert list(own) == [source.at.key]
    (tmp_path / "typed.html").write_text(least, encoding="utf-8")
    with open_page(chromium) as page:
        page.goto((tmp_path / "typed.html").as_uri())
        page.wait_for_selector(".mlc.typed .program .l")
        assert page.evaluate(TEXT) == BOTH
        page.get_by_role("slider", name="tile").press("ArrowRight")
        page.get_by_text("This page does not have what follows").wait_for()


def test_nothing_that_can_be_read(chromium, tmp_path):
    (tmp_path / "typed.html").write_text(write(Typed("def")), encoding="utf-8")
    with open_page(chromium) as page:
        page.goto((tmp_path / "typed.html").as_uri())
        page.wait_for_selector(".lines > div[data-error]")
        assert program(page) == ""


def test_the_static_form_has_text_and_counts(view):
    view.wait()
    text, html = view._static()
    assert text == f"Typed:\n{BOTH}" and "L1 misses" in html and "sch.vectorize(j1)" in html
    assert html.count("<b>shown: </b>") == 1
