"""The view of the threads of a block, as a page."""

import pytest
from browser import open_page
from observe.gpu.programs import copies, square_tiles, through_shared

import mlc_lab

pytest.importorskip("anywidget")

TAG = "nvidia/geforce-rtx-2080-ti"


@pytest.fixture(scope="module")
def tiles():
    return mlc_lab.record_threads(square_tiles(32, 16, 2), TAG)


def test_its_traits_stay_within_bounds(tiles):
    view = tiles.show()
    assert view.event == 1  # the barrier before it is no instruction
    view.event, view.warp, view.lane = 10 ** 6, 7, 40
    assert (view.event, view.warp, view.lane) == (len(tiles) - 1, 1, 31)
    heard = []
    stop = view.on_event(heard.append)
    view.event = 4
    stop()
    view.event = 5
    assert heard == [4]
    text, html = view._static()
    assert "sectors/request" in text and "sectors/request" in html
    assert "<svg" in view._pictures()[0]


def opened(page, recording, tmp_path):
    recording.html(tmp_path / "page.html")
    page.goto((tmp_path / "page.html").as_uri())
    page.locator(".mlc-threads").wait_for()
    return page.locator(".said")


@pytest.mark.browser
def test_instructions_by_keys(chromium, tiles, tmp_path):
    with open_page(chromium) as page:
        said = opened(page, tiles, tmp_path)
        assert "Load from global memory, A: 32 of 32 lanes of warp 0" in said.inner_text()
        slider = page.get_by_label("Instruction, in time order")
        slider.focus()
        slider.press("Home")
        assert said.inner_text().startswith("Barrier")
        slider.press("End")
        assert said.inner_text().startswith("Store to global memory, C")
        page.get_by_role("button", name="Instruction before").click()
        page.get_by_label("Warp", exact=True).select_option("1")
        assert "of warp 1" in said.inner_text()


@pytest.mark.browser
def test_a_lane_is_marked_in_the_buffer(chromium, tmp_path):
    recording = mlc_lab.record_threads(copies("t * 8"), TAG)
    with open_page(chromium) as page:
        said = opened(page, recording, tmp_path)
        assert "32 sectors, 128 of 1024 bytes used (13 %)" in said.inner_text()
        page.get_by_role("button", name="lane 3: A[24]").click()
        assert page.locator(".cell.marked").get_attribute("title") == "A[24]: lane 3"
        page.keyboard.press("ArrowRight")
        assert page.locator(".cell.marked").get_attribute("title") == "A[32]: lane 4"
        assert page.locator(".sector").count() == 32


@pytest.mark.browser
def test_conflicts_of_banks(chromium, tmp_path):
    recording = mlc_lab.record_threads(through_shared("t * 2", "t"), TAG)
    with open_page(chromium) as page:
        said = opened(page, recording, tmp_path)
        page.get_by_role("button", name="Next instruction").click()
        assert "2 passes over the banks, because a bank is asked for 2" in said.inner_text()
        assert page.locator(".bank.conflict").count() == 16
        assert page.locator(".bank.conflict .number").first.inner_text() == "0 ×2"


@pytest.mark.browser
def test_sliders_say_what_would_lift_the_limit(chromium, tiles, tmp_path):
    with open_page(chromium) as page:
        opened(page, tiles, tmp_path)
        slider = page.get_by_label("registers of a thread")
        slider.focus()
        slider.press("End")
        follows = page.locator(".amount").nth(1).locator(".follows")
        assert "▼" in follows.inner_text() and "limited by registers" in follows.inner_text()


@pytest.mark.browser
@pytest.mark.parametrize("made", [lambda: copies("t"), lambda: copies("0"),
                                  lambda: through_shared("t * 2", "t")],
                         ids=["side by side", "all one", "conflicts"])
def test_no_number_of_a_lane_is_cut_on_a_narrow_page(chromium, made, tmp_path):
    with open_page(chromium, width=360) as page:
        opened(page, mlc_lab.record_threads(made(), TAG), tmp_path)
        for _ in range(2):
            assert page.locator(".memory .cell").count() > 0
            cut = page.locator(".lanes button, .cell, .number, .from, .used").evaluate_all(
                "all => all.filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)")
            assert cut == []
            page.get_by_role("button", name="Next instruction").click()
        assert page.evaluate("document.documentElement.scrollWidth") == 360
