"""Counts and the roofline in the stepper, as an exported page."""

import pytest
from browser import open_page
from observe.programs import tiled

from mlc_lab.observe.session import record

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def made():
    one = record(tiled(32), "product")
    one.measure(20.0, False)
    one.count("1K:2:32, 8K:4:32", progress=False)
    return one.recording


@pytest.fixture(params=["light", "dark"])
def page(chromium, made, tmp_path, request):
    made.html(tmp_path / "counts.html")
    with open_page(chromium, scheme=request.param) as page:
        page.goto((tmp_path / "counts.html").as_uri())
        page.get_by_text("Cache misses and roofline").click()
        page.wait_for_selector(".roofline .point")
        yield page


def test_counts_stand_as_columns_beside_the_time(page, made):
    heads = page.locator("table.counts thead th").all_inner_texts()
    assert heads == ["step", "time", "GFLOP/s", "reads", "writes", "L1 misses", "L2 misses",
                     "memory bytes", "flop/B"]
    assert page.locator("table.counts tbody tr").count() == len(made.steps)
    counts = made.programs[0].cost["counts"]
    row = page.locator("table.counts tbody tr").first.locator("td").all_inner_texts()
    misses = counts["levels"][0]["misses"]
    number, _, unit = row[4].replace(",", "").partition(" ")
    assert float(number) * {"": 1, "k": 1e3, "M": 1e6}[unit] == pytest.approx(misses, rel=0.01)
    page.locator("table.counts tbody tr").nth(3).click()
    assert page.locator(".count").inner_text().startswith("3 /")
    assert page.locator("table.counts tr[aria-current]").count() == 1


def test_counts_stand_among_the_facts_of_a_step(page, made):
    said = page.locator(".facts").inner_text()
    assert "L1 misses" in said and "From memory" in said and "flop/B" in said


def test_points_of_the_roofline_are_reached_by_keyboard(page):
    points = page.locator(".roofline .point")
    assert points.count() >= 5
    assert "GFLOP/s" in points.first.get_attribute("aria-label")
    points.first.focus()
    step = points.first.get_attribute("data-step")
    page.keyboard.press("Enter")
    assert page.locator(".count").inner_text().startswith(f"{step} /")
    assert page.evaluate("document.activeElement.dataset.step") == step
    for level in ("L1", "L2", "memory"):
        page.get_by_label("Level of the roofline").select_option(level)
        assert f"{level} delivers" in page.locator(".roofline").inner_text()


def test_counts_stand_where_there_is_no_time(chromium, tmp_path):
    one = record(tiled(32), "product")
    one.count("1K:2:32, 8K:4:32", progress=False)
    one.recording.html(tmp_path / "untimed.html")
    with open_page(chromium) as page:
        page.goto((tmp_path / "untimed.html").as_uri())
        page.get_by_role("button", name="Last step").click()
        said = page.locator(".facts").inner_text()
        assert "not measured" in said and "L1 misses" in said and "From memory" in said
        page.get_by_text("Cache misses and roofline").click()
        rows = page.locator("table.counts tbody tr")
        assert rows.count() == len(one.recording.steps)
        misses = [row.locator("td").all_inner_texts()[4] for row in rows.all()]
        assert all(misses) and len(set(misses)) > 1
        assert rows.first.locator("td").all_inner_texts()[:2] == ["", ""]  # time, GFLOP/s
        assert "no step with both" in page.locator(".roofline").inner_text()


def test_a_page_cannot_count_what_was_not_counted(chromium, tmp_path):
    record(tiled(16)).recording.html(tmp_path / "none.html")
    with open_page(chromium) as page:
        page.goto((tmp_path / "none.html").as_uri())
        page.wait_for_selector(".pane.after .l")
        assert not page.get_by_text("Cache misses and roofline").is_visible()
