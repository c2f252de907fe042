"""The loop nest on the page of choices: what is new in it is marked, and its loops are dragged."""

import pytest
from browser import open_page
from observe.test_live import tiled

from mlc_lab.observe.live import Choices
from mlc_lab_widgets.live import write

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def lab():
    made = Choices(tiled([4, 8, 16]), caches="1K:2, 8K:4", title="product")
    for tile in range(3):
        for order in ([0, 1, 2, 3], [1, 0, 2, 3], [2, 0, 1, 3], [0, 1, 3, 2]):
            made.point([tile, order, True, True])
    yield made
    made.close()


@pytest.fixture
def page(chromium, lab, tmp_path):
    (tmp_path / "live.html").write_text(write(lab, lab.first), encoding="utf-8")
    with open_page(chromium, width=1600) as page:
        page.goto((tmp_path / "live.html").as_uri())
        page.wait_for_selector(".nest-pane .box")
        yield page


def loops(page):
    heads = page.locator("button.head b").all_inner_texts()
    return [text.removeprefix("~ ").split(" : ")[0] for text in heads]


def test_boxes_are_the_loops_of_the_program(page, lab):
    rows = lab.shown(lab.point(lab.first))["nest"]
    assert [r[2] for r in rows] == page.locator(".nest-pane .box > .head > b").all_inner_texts()
    assert [depth for depth, *_ in rows][:3] == [0, 1, 2]
    inner = page.locator(".nest-pane .box.vectorized").last
    assert inner.locator(".box.block").count() == 1  # within it
    assert page.locator(".nest-pane .box.changed").count() == 0


def test_what_a_number_changes_is_marked_in_the_nest(page):
    page.get_by_role("slider", name="tile").press("ArrowRight")
    said = page.locator(".nest-pane .box.changed > .head > b").all_inner_texts()
    assert {"~ j_0 : 2", "~ j_1 : 16"} <= set(said) and "~ i : 32" not in said


def test_a_loop_is_dragged_to_the_place_of_another(page, lab):
    before = loops(page)
    assert before == ["i", "j_0", "p", "j_1"]
    box = page.locator("button.head").nth(2).bounding_box()
    to = page.locator("button.head").nth(0).bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(to["x"] + 20, to["y"] + 9, steps=5)
    assert page.locator("button.head.drop").count() == 1
    page.mouse.up()
    assert loops(page) == ["p", "i", "j_0", "j_1"]
    assert page.locator(".chip").all_inner_texts() == ["p", "i", "j_0", "j_1"]
    assert page.locator("button.head.drop, button.head.held").count() == 0


def test_a_loop_is_moved_by_the_keys_and_keeps_the_focus(page):
    page.locator("button.head").nth(0).focus()
    page.keyboard.press("ArrowUp")  # there is no place above
    assert loops(page) == ["i", "j_0", "p", "j_1"]
    page.keyboard.press("ArrowDown")
    assert loops(page) == ["j_0", "i", "p", "j_1"]
    assert page.evaluate("document.activeElement.textContent").endswith("i : 32")
    page.keyboard.press("ArrowUp")
    assert loops(page) == ["i", "j_0", "p", "j_1"]


@pytest.mark.parametrize("width, zoom", [(800, 1), (1600, 1.5)])
def test_nothing_in_the_nest_is_wider_than_its_pane(chromium, lab, tmp_path, width, zoom):
    (tmp_path / "live.html").write_text(write(lab, lab.first), encoding="utf-8")
    with open_page(chromium, width=int(width / zoom)) as page:
        page.goto((tmp_path / "live.html").as_uri())
        page.wait_for_selector(".nest-pane .box")
        wide = page.locator(".nest-pane").evaluate("e => [e.scrollWidth, e.clientWidth]")
        assert wide[0] <= wide[1]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_last_change_is_told_above_all_and_moves_nothing(page):
    top = page.locator(".parts").bounding_box()["y"]
    assert page.locator(".why").bounding_box()["y"] < top
    page.get_by_role("slider", name="tile").press("ArrowRight")
    page.get_by_label("vectorize").uncheck()
    assert page.locator(".parts").bounding_box()["y"] == top
