"""The pass view as an exported page: the list of passes, programs and graphs."""

import pytest
from browser import open_page

from observe.pipelines import module, pipeline

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    path = tmp_path_factory.mktemp("passes") / "passes.html"
    pipeline().explore(module()).html(path)
    return path.as_uri()


@pytest.fixture(params=["light", "dark"])
def page(chromium, url, request):
    with open_page(chromium, scheme=request.param) as page:
        page.goto(url)
        page.wait_for_selector(".passes li")
        assert page.locator(".mlc-passes").get_attribute("data-theme") == request.param
        yield page


def names(page):
    return page.locator(".passes .pass-name").all_inner_texts()


def scales(page):
    """How large each graph is drawn."""
    return page.locator(".mlc-graph .drawing svg").evaluate_all(
        "es => es.map(e => (e.clientWidth / e.viewBox.baseVal.width).toFixed(2))")


def test_passes_that_changed_nothing_are_folded(page):
    assert names(page) == ["as it was", "DeadCodeElimination", "LegalizeOps",
                           "AnnotateTIROpPattern", "FuseOps", "FuseTIR"]
    assert "6 passes, 5 changed the module" in page.locator(".mlc-passes .bar").first.inner_text()
    page.get_by_role("button", name="Show the 1 that changed nothing").click()
    assert "FoldConstant" in names(page)


def test_a_program_that_did_not_change_stands_alone(page):
    assert page.locator(".panes .pane:visible").count() == 1
    page.get_by_role("button", name="Show the 1 that changed nothing").click()
    page.get_by_role("option", name="LegalizeOps").click()
    assert page.locator(".panes .pane:visible").count() == 2
    page.get_by_role("option", name="FoldConstant").click()
    assert page.locator(".panes .pane:visible").count() == 1
    assert page.locator(".panes .cap:visible").inner_text() == "Before and after"


def test_the_keyboard_walks_through_the_passes(page):
    page.locator(".passes").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator(".of-pass h3").inner_text() == "DeadCodeElimination"
    removed = page.locator(".pane.before .l.removed code").all_text_contents()
    assert len(removed) == 1 and "unused" in removed[0]
    page.keyboard.press("End")
    assert page.locator(".of-pass h3").inner_text() == "FuseTIR"
    assert page.locator(".mlc-passes > .sr[role=status]").inner_text().startswith("FuseTIR.")


def test_graphs_open_with_all_of_both_in_sight(page):
    page.get_by_role("option", name="FuseOps").click()
    page.get_by_role("tab", name="Graph").click()
    for drawing in page.locator(".mlc-graph .drawing").all():
        inside, around = (drawing.locator("svg").bounding_box(), drawing.bounding_box())
        assert inside["height"] <= around["height"] and inside["width"] <= around["width"]


def test_graphs_before_and_after(page):
    page.get_by_role("option", name="FuseOps").click()
    assert "bytes moved by the calls" in page.locator(".change").inner_text()
    page.get_by_role("tab", name="Graph").click()
    drawings = page.locator(".mlc-graph")
    assert drawings.count() == 2
    assert drawings.nth(0).locator(".node.group").count() == 0
    assert drawings.nth(1).locator(".node.group").count() == 1
    assert len(set(scales(page))) == 1
    drawings.nth(0).get_by_role("button", name="Zoom in").click()
    assert len(set(scales(page))) == 1
    drawings.nth(1).get_by_role("button", name="Open all fused groups").click()
    page.wait_for_function("document.querySelectorAll('.mlc-graph')[1]"
                           ".querySelectorAll('.node.kernel').length === 4")
    page.get_by_role("tab", name="Graph").press("ArrowLeft")
    assert page.locator(".pane.after").is_visible()
