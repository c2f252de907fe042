"""The graph view as an exported page: walking, searching, opening groups, reading a kernel."""

import pytest
from browser import open_page

from mlc_lab.observe.graph import graph_of
from observe.graphs import chain, fused_module

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "graph.html"
    graph_of(fused_module()).html(path)
    return path.as_uri()


@pytest.fixture(params=["light", "dark"])
def page(chromium, url, request):
    with open_page(chromium, scheme=request.param) as page:
        page.goto(url)
        page.wait_for_selector(".node")
        assert page.locator(".mlc-graph").get_attribute("data-theme") == request.param
        yield page


def test_it_says_what_there_is(page):
    bar = page.locator(".bar").inner_text()
    assert "main" in bar and "4 calls" in bar and "2 fused groups" in bar
    labels = page.locator(".node .name").all_text_contents()
    assert labels == ["x", "fused_add_add", "fused_add_add", "nn.relu", "env.linear", "output"]


def test_a_kernel_opens_in_its_group(page):
    page.locator(".node.group").first.locator(".toggle").click()
    page.locator(".node.kernel").first.click()
    detail = page.locator(".detail")
    assert "TensorIR kernel" in detail.inner_text()
    assert 'with T.block("T_add")' in detail.locator("pre").last.inner_text()
    assert page.locator(".edge.near").count() >= 1
    page.get_by_role("button", name="Shut all fused groups").click()
    page.wait_for_function("!document.querySelector('.node.kernel')")


def test_the_keyboard_walks_along_the_edges(page):
    page.locator(".node").first.focus()
    said = []
    for _ in range(5):
        page.keyboard.press("ArrowDown")
        said.append(page.locator(".node.selected").get_attribute("aria-label"))
    assert said[0].startswith("fused group, fused_add_add, bound to lv0")
    assert said[-1].startswith("output")
    assert page.locator(".sr[role=status]").inner_text() == said[-1]
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".node.kernel")
    page.keyboard.press("ArrowDown")  # and goes on in the new drawing
    page.wait_for_function("document.activeElement.matches('.node.selected')")


def test_search_goes_from_hit_to_hit(page):
    box = page.get_by_role("searchbox")
    box.fill("fused")
    assert "1 of 2" in page.locator(".bar").inner_text()
    box.press("Enter")
    assert "2 of 2" in page.locator(".bar").inner_text()
    assert page.locator(".node.hit").count() == 2
    box.fill("no such thing")
    assert "nothing found" in page.locator(".bar").inner_text()


@pytest.mark.parametrize("calls, whole", [(5, True), (7, True), (10, False)])
def test_a_graph_that_nearly_fits_is_seen_whole(chromium, tmp_path, calls, whole):
    """A longer one begins as large as can be read."""
    graph_of(chain(calls)).html(tmp_path / "chain.html")
    with open_page(chromium) as page:
        page.goto((tmp_path / "chain.html").as_uri())
        page.wait_for_selector(".node")
        svg, pane = (page.locator(s).evaluate("e => e.clientHeight")
                     for s in (".drawing svg", ".drawing"))
        said = page.get_by_text("a part is shown: Fit shows all")
        assert said.is_visible() != whole  # where it is cut, the view says so, and what to do
        page.get_by_role("button", name="Fit").click()
        assert said.is_hidden()
    assert (svg <= pane) == whole


def test_zoom(page):
    width = page.locator(".drawing svg").evaluate("e => e.clientWidth")
    page.get_by_role("button", name="Zoom in").click()
    assert page.locator(".drawing svg").evaluate("e => e.clientWidth") > width
    page.get_by_role("button", name="Fit").click()
    svg, pane = (page.locator(s).evaluate("e => [e.clientWidth, e.clientHeight]")
                 for s in (".drawing svg", ".drawing"))
    assert svg[0] <= pane[0] + 1 and svg[1] <= pane[1] + 1


def test_the_picture_can_be_saved(page):
    with page.expect_download() as download:
        page.get_by_role("button", name="SVG").click()
    text = download.value.path().read_text(encoding="utf-8")
    assert download.value.suggested_filename == "main.svg"
    assert "<svg" in text and "fused_add_add" in text


def test_a_large_graph_opens(chromium, tmp_path):
    path = tmp_path / "large.html"
    graph_of(chain(1000)).html(path)
    with open_page(chromium) as page:
        page.goto(path.as_uri())
        page.wait_for_selector(".node")
        assert page.locator(".node").count() == 1002
        page.get_by_role("searchbox").fill("lv999")
        assert page.locator(".node.selected").get_attribute("aria-label").count("lv999") == 1
