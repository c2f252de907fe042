"""The workbench as an exported page: everything that was tried, without a kernel."""

import json

import pytest
from browser import open_page
from test_stepper_page import CONTRAST

from mlc_lab.observe import measure
from mlc_lab.observe.workbench import Workbench
from mlc_lab_widgets.workbench import page as write_page
from mlc_lab_widgets.workbench import static_html
from tests.observe.schedules import module, schedule


def made():
    """A tree of nine attempts in two branches, one refused, all measured."""
    bench = Workbench(schedule())
    bench.goto(2)
    bench.apply("parallel", loop="Y/i")
    bench.apply("unroll", loop="Y/k")
    for number, program in enumerate(bench.recording.programs):
        program.cost = {"time": 1e-3 / (number + 1), "spread": 0.01, "runs": 9, "equal": True,
                        "max_error": 0.0, "gflops": 1.0 + number}  # fmt: skip
    return bench


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "bench.html"
    made().html(path, "two ways")
    return path.as_uri()


@pytest.fixture
def page(chromium, url):
    with open_page(chromium) as page:
        page.goto(url)
        page.wait_for_selector(".attempts")
        yield page


def node(page, number):
    return page.locator(f'.attempts [data-node="{number}"]')


browser = pytest.mark.browser


@browser
def test_it_opens_where_the_tree_stands(page):
    assert page.title() == "two ways"
    assert page.locator(".attempts .node").count() == 9
    assert "T.unroll" in page.locator(".program").inner_text()
    assert page.locator(".attempts .at").get_attribute("aria-selected") == "true"


@browser
def test_one_can_jump_to_every_attempt(page):
    node(page, 3).click()
    assert "sch.reverse_compute_at(C, j_0)" in page.locator("textarea").input_value()
    assert "250 µs" in page.locator(".facts").inner_text()
    page.get_by_role("button", name="Undo").click()
    assert "reverse_compute_at" not in page.locator("textarea").input_value()
    page.get_by_role("button", name="Redo").click()
    assert "reverse_compute_at" in page.locator("textarea").input_value()
    assert "3.00× faster" not in page.locator(".facts").inner_text()
    assert "4.00× faster" in page.locator(".facts").inner_text()


@browser
def test_a_refused_attempt_tells_its_reason(page):
    page.locator(".attempts .node.bad").click()
    told = page.locator(".refusal-box")
    assert "was refused" in told.inner_text() and "vectorize" in told.inner_text()
    assert page.locator(".program .l.fault").count() >= 1
    told.get_by_role("button").click()
    assert not told.is_visible()


@browser
def test_the_tree_is_walked_by_keys(page):
    node(page, 8).focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.locator(".attempts .at").get_attribute("data-node") == "1"
    assert page.evaluate("document.activeElement.dataset.node") == "1"
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.dataset.node") in ("3", "7")
    names = page.locator(".attempts [role=treeitem]").evaluate_all(
        "all => all.map(e => e.getAttribute('aria-label'))"
    )
    assert any("refused" in name for name in names) and all(": " in name for name in names)


@browser
def test_it_says_that_choosing_needs_a_kernel(page):
    assert "needs a kernel" in page.locator(".palette").inner_text()
    assert not page.get_by_role("button", name="Measure").is_visible()
    assert page.locator("textarea").get_attribute("readonly") is not None
    page.locator(".pick").first.click()
    assert "needs a kernel" in page.locator(".palette").inner_text()
    assert page.locator(".pick[aria-pressed=true]").count() == 1


@browser
def test_the_python_can_be_copied_with_its_program_and_runs(page, tmp_path):
    page.get_by_role("button", name="Copy the complete Python").click()
    said = "[...document.querySelectorAll('button')].some(b => b.textContent === '%s')"
    page.wait_for_function(said % "Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == made().python()
    page.wait_for_function(said % "Copy with the program")


@browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_both_themes(chromium, url, scheme):
    with open_page(chromium, scheme=scheme) as page:
        page.goto(url)
        page.wait_for_function(f"document.querySelector('.mlc').dataset.theme === '{scheme}'")
        page.locator(".attempts .node.bad").click()
        assert page.evaluate(CONTRAST) == []


@browser
def test_a_narrow_page_stacks_and_does_not_scroll_sideways(chromium, url):
    with open_page(chromium, width=480) as page:
        page.goto(url)
        program, palette = page.locator(".program"), page.locator(".palette")
        assert palette.bounding_box()["y"] > program.bounding_box()["y"] + 200
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@browser
def test_nothing_moves_when_one_jumps(page):
    tops = set()
    for number in (0, 1, 4, 8, 5, 2):
        node(page, number).click()
        tops.add((page.locator(".tree-box").bounding_box()["y"],
                  page.locator(".palette").bounding_box()["y"]))  # fmt: skip
    assert len(tops) == 1


@browser
def test_two_trees_on_one_page_are_independent(chromium, tmp_path):
    path = tmp_path / "two.html"
    path.write_text(write_page([made().to_dict(), Workbench(module()).to_dict()]), encoding="utf-8")
    with open_page(chromium) as page:
        page.goto(path.as_uri())
        first, second = page.locator(".mlc.bench").all()
        first.locator('[data-node="1"]').click()
        assert second.locator(".attempts .node").count() == 1
        assert "factors=[None, 8]" in first.locator("textarea").input_value()
        assert "factors" not in second.locator("textarea").input_value()


def test_a_page_holds_a_file_that_can_be_opened_again():
    text = write_page([made().to_dict()])
    start = text.index('id="view-0">') + len('id="view-0">')
    values = json.loads(text[start : text.index("</script>", start)])
    again = Workbench.from_json(json.dumps(values["tree"]))
    assert json.loads(again.to_json()) == json.loads(made().to_json())


def test_static_html_tells_every_attempt():
    told = static_html(made().to_dict())
    assert told.count("<details>") == 11
    assert "refused" in told and "sch.unroll(k)" in told and "500 µs" in told
    assert "<script" not in told and "<style" not in told


def test_names_from_a_program_cannot_break_the_page():
    tree = made().to_dict()
    tree["title"] = "</script><script>alert(1)</script>"
    assert "<script>alert" not in write_page([tree], tree["title"])




def test_measuring_from_the_widget_tells_the_view(monkeypatch):
    pytest.importorskip("anywidget")
    monkeypatch.setattr(measure, "TIME_EACH", 0.002)
    view = Workbench(schedule()).show()
    heard = []
    view.observe(lambda change: heard.append(len(change["new"])), names="costs")
    view.measure()
    assert heard and heard[-1] == len(view.bench.modules) and view.measuring is False


def test_measuring_can_be_stopped(monkeypatch):
    pytest.importorskip("anywidget")
    view = Workbench(schedule()).show()
    asked = []

    def once(numbers, **options):
        asked.append(numbers)
        view._message(view, {"do": "stop", "id": 1}, [])

    monkeypatch.setattr(view.bench, "measure", once)
    view.measure()
    assert asked == [[0]] and view.measuring is False


def test_the_widget_follows_and_leads():
    pytest.importorskip("anywidget")
    view = Workbench(module()).show()
    places, picked = [], []
    view.on_node(places.append)
    stop = view.on_select(lambda s: picked.append(s.get("name")))
    view.pick("Y/j")
    assert view.palette["name"] == "j" and view.palette["entries"]
    view.apply("split", loop="Y/j", factors=[None, 8])
    assert view.node == 1 and view.selection["name"] == "j_1"  # what the step made
    view.undo()
    view.redo()
    view.node = 0
    assert view.bench.at.id == 0 and places == [1, 0, 1, 0]
    stop()
    view.pick("Y")
    assert picked[0] == "j" and "Y" not in picked
    assert len(view.python(program=False).splitlines()) == 1


def test_a_request_of_the_view_is_answered_whatever_it_holds():
    pytest.importorskip("anywidget")
    view = Workbench(module()).show()
    answers = []
    view.send = answers.append
    key = view.bench.key_of(view.bench.find("Y/k").stmt)
    for request in (
        {"do": "apply", "op": "vectorize", "args": {"loop": {"loop": key}}, "id": 1},
        {"do": "apply", "op": "nothing", "args": {}, "id": 2},
        {"do": "check", "op": "unroll", "args": {"loop": {"loop": key}}, "id": 3},
        {"do": "apply", "op": "unroll", "args": {"loop": {"loop": 12345}}, "id": 4},
        {"do": "python", "text": "sch.unroll(", "id": 5},
        {"do": "apply", "id": 6},
        {"do": "__class__", "id": 7},
        "what",
    ):
        view._message(view, request, [])
    assert [a["answer"] for a in answers] == [1, 2, 3, 4, 5, 6]
    assert [a["ok"] for a in answers] == [False, False, True, False, False, False]
    assert answers[0]["rule"] and answers[0]["node"] == 1
    assert answers[4]["line"] == 1
