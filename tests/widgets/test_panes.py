"""What readers do with panes, in all views that have some: wrap lines, enlarge, fill the screen."""

import pytest
from browser import open_page
from observe.gpu.programs import square_tiles
from observe.schedules import module, schedule

import mlc_lab
from mlc_lab.observe import accesses
from mlc_lab.observe.session import record
from mlc_lab.observe.workbench import Workbench
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source

widgets = pytest.importorskip("mlc_lab_widgets")
pytestmark = pytest.mark.browser

LONG = '''
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = %s
''' % " + ".join(["A[vi] * T.float32(3)"] * 12)


def long_lines():
    """A schedule of two steps; one line of its program is far wider than a pane."""
    sch = Schedule(from_source(LONG))
    sch.split(sch.get_loops(sch.get_block("B"))[0], [None, 8])
    return sch


@pytest.fixture(scope="module")
def urls(tmp_path_factory):
    folder = tmp_path_factory.mktemp("panes")
    first = record(long_lines()).recording
    first.html(folder / "stepper.html")
    widgets.compare(long_lines(), Schedule(from_source(LONG)), "two").html(folder / "compare.html")
    Workbench(long_lines()).html(folder / "workbench.html")
    record(schedule(Schedule(module()))).recording.html(folder / "short.html")
    accesses(from_source(LONG)).html(folder / "access.html", "1K:2")
    mlc_lab.record_threads(square_tiles(32, 16, 2)).html(folder / "threads.html")
    return {path.stem: path.as_uri() for path in folder.iterdir()}


@pytest.fixture
def page(chromium, urls):
    with open_page(chromium) as page:
        page.goto(urls["stepper"])
        page.locator("input[type=range]").first.fill("1")
        yield page


WIDER = "e => e.scrollWidth > e.clientWidth + 1"
HEIGHTS = "es => es.map(e => e.getBoundingClientRect().height)"


@pytest.mark.parametrize("view", ["stepper", "compare", "workbench"])
def test_long_lines_go_on_below(chromium, urls, view):
    with open_page(chromium) as page:
        page.goto(urls[view])
        button = page.get_by_role("button", name="Wrap long lines")
        panes = page.locator(".pane:visible")
        assert any(panes.nth(n).evaluate(WIDER) for n in range(panes.count()))
        button.focus()
        page.keyboard.press("Space")
        assert button.get_attribute("aria-pressed") == "true"
        assert not any(panes.nth(n).evaluate(WIDER) for n in range(panes.count()))
        assert max(panes.first.locator(".l").evaluate_all(HEIGHTS)) > 30
        page.keyboard.press("Space")
        assert set(panes.first.locator(".l").evaluate_all(HEIGHTS)) == {19}


def test_lines_that_face_each_other_stay_side_by_side(page):
    page.get_by_role("button", name="Wrap long lines").click()
    before, after = (page.locator(f".pane.{side} .l").evaluate_all(
        "es => es.map(e => e.getBoundingClientRect().top)") for side in ("before", "after"))
    assert before == after and len(before) > 5
    page.set_viewport_size({"width": 900, "height": 800})
    page.wait_for_function("""() => {
        const [a, b] = ['before', 'after'].map((side) => [...document.querySelectorAll(
            `.pane.${side} .l`)].map((e) => e.getBoundingClientRect().top));
        return a.every((top, n) => top === b[n]);
    }""")


def test_a_picture_has_long_lines_as_they_are(page):
    page.get_by_role("button", name="Wrap long lines").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save this step as SVG").click()
    text = download.value.path().read_text(encoding="utf-8")
    tall = float(text.split('height="')[1].split('"')[0])
    assert tall < 500
    assert page.locator(".mlc.wrap").count() == 1


def test_panes_are_made_higher_by_keys_and_by_dragging(page):
    pane, grip = page.locator(".pane.after"), page.get_by_role("separator")

    def height():
        return pane.evaluate("e => e.clientHeight")

    first = height()
    grip.focus()
    page.keyboard.press("ArrowDown")
    assert height() == first + 40 and grip.get_attribute("aria-valuenow") == "40"
    assert page.locator(".count").inner_text() == "1 / 1"
    page.keyboard.press("Home")
    assert height() == first
    box = grip.bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 155, steps=4)
    page.mouse.up()
    assert height() == first + 150
    page.mouse.move(box["x"] + 60, box["y"] + 255)
    assert height() == first + 150
    grip.dblclick()
    assert height() == first


def test_the_view_fills_the_screen_and_goes_back(page):
    pane = page.locator(".pane.after")
    first = pane.evaluate("e => e.clientHeight")
    page.get_by_role("button", name="Full screen").focus()
    page.keyboard.press("Enter")
    leave = page.get_by_role("button", name="Leave the full screen")
    leave.wait_for()
    assert page.evaluate("document.fullscreenElement.className") == "mlc"
    assert pane.evaluate("e => e.clientHeight") > first
    assert leave.evaluate("e => e === document.activeElement")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Full screen", exact=True).wait_for()
    assert page.evaluate("document.fullscreenElement") is None
    assert pane.evaluate("e => e.clientHeight") == first


def test_where_a_host_forbids_that_it_fills_the_page(page):
    page.evaluate("() => { Element.prototype.requestFullscreen = "
                  "() => Promise.reject(new Error('no')); }")
    page.get_by_role("button", name="Full screen").click()
    page.wait_for_selector(".mlc.over")
    box = page.locator(".mlc").bounding_box()
    assert (box["x"], box["y"]) == (0, 0) and box["width"] == page.viewport_size["width"]
    page.locator(".pane.after").focus()
    page.keyboard.press("Escape")
    assert page.locator(".mlc.over").count() == 0
    assert page.locator(".pane.after").evaluate("e => e === document.activeElement")


def test_a_view_is_drawn_as_its_trait_says():
    view = record(long_lines()).recording.show()
    assert view.wrap is False and "wrap" in view.trait_names(sync=True)


def test_code_beside_a_program_is_wrapped_too(chromium, tmp_path):
    record(long_lines()).recording.html(tmp_path / "code.html", code=True)
    with open_page(chromium) as page:
        page.goto((tmp_path / "code.html").as_uri())
        page.get_by_role("tab", name="LLVM IR").click()
        page.wait_for_selector(".code-view .machine .l")
        page.get_by_role("button", name="Wrap long lines").click()
        panes = page.locator(".code-view .pane")
        assert not any(panes.nth(n).evaluate(WIDER) for n in range(2))
        line = page.locator(".code-view .pane").first.locator(".l", has_text="B[vi] =")
        line.click()
        assert page.locator(".code-view .machine .l.rel").count() > 0


#: of a view that has no `.pane`: what has long lines, and what is made higher
OTHERS = [("access", "pre.program", "pre.program"), ("threads", "pre.statement", ".timeline > svg")]


@pytest.mark.parametrize("view, lines, tall", OTHERS, ids=[view for view, *_ in OTHERS])
def test_views_without_such_panes_have_the_same_tools(chromium, urls, view, lines, tall):
    with open_page(chromium, width=1000) as page:
        page.goto(urls[view])
        text, pane, grip = page.locator(lines), page.locator(tall), page.get_by_role("separator")

        def height():
            return round(pane.evaluate("e => e.getBoundingClientRect().height"))

        assert text.evaluate(WIDER)
        wrap = page.get_by_role("button", name="Wrap long lines")
        wrap.click()
        assert not text.evaluate(WIDER) and wrap.get_attribute("aria-pressed") == "true"
        wrap.click()
        assert text.evaluate(WIDER)
        first = height()
        grip.focus()
        page.keyboard.press("ArrowDown")
        assert height() == first + 40
        page.keyboard.press("Home")
        box = grip.bounding_box()
        page.mouse.move(box["x"] + 60, box["y"] + 5)
        page.mouse.down()
        page.mouse.move(box["x"] + 60, box["y"] + 125, steps=4)
        page.mouse.up()
        page.mouse.move(box["x"] + 60, box["y"] + 300)
        assert height() == first + 120
        grip.dblclick()
        assert height() == first
        page.get_by_role("button", name="Full screen").click()
        leave = page.get_by_role("button", name="Leave the full screen")
        leave.wait_for()
        assert height() > first
        leave.click()
        page.get_by_role("button", name="Full screen", exact=True).wait_for()
        assert height() == first
