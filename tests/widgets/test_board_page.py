"""The tuning board as an exported page: its charts, its points, its details."""

import pytest
from browser import open_page

from meta_schedule.boards import database
from mlc_lab_widgets import export
from mlc_lab_widgets.board import STYLES, TuningBoard

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    path = tmp_path_factory.mktemp("board") / "board.html"
    database().board(numpy_s=30e-6, title="product", baselines={"as written": 70e-6}).html(path)
    return path.as_uri()


@pytest.fixture(params=["light", "dark"])
def page(chromium, url, request):
    with open_page(chromium, scheme=request.param) as page:
        page.goto(url)
        page.wait_for_selector(".mark")
        assert page.locator(".mlc-board").get_attribute("data-theme") == request.param
        yield page


def tab(page, name):
    page.get_by_role("tab", name=name).click()


def test_progress_shows_trials_best_and_lines(page):
    assert "8 trials, 1 failed, best 20.2 µs" in page.locator(".bar").inner_text()
    assert page.locator(".mark").count() == 8
    assert page.locator(".point.failed").count() == 1
    assert page.locator(".best").count() == 2
    words = " ".join(page.locator(".tick").all_text_contents())
    assert "machine's peak 6.55 µs" in words and "numpy 30.0 µs" in words
    assert "as written 70.0 µs" in words


#: of an element: the contrast of its stroke with what is behind the view
CONTRAST = """element => {
    const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
        .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
        .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0.05);
    const view = element.closest(".mlc-board");
    const found = [light(getComputedStyle(element).stroke),
                   light(getComputedStyle(view).backgroundColor)];
    return Math.max(...found) / Math.min(...found);
}"""


def test_the_points_of_a_search_stand_out(page):
    points = page.locator(".point:not(.failed)")
    assert points.count() == 7
    least = 6 if page.locator('[data-theme="dark"]').count() else 3
    for n in range(7):
        assert points.nth(n).evaluate(CONTRAST) > least


def test_a_point_opens_its_trace(page):
    page.get_by_role("button", name="trial 4, 20.2 µs").click()
    detail = page.locator(".detail").inner_text()
    assert "20.2 µs (20.0 µs to 20.4 µs)" in detail and "evolutionary, tile size" in detail
    assert "decision=[4, 8]" in page.locator(".detail pre").inner_text()
    rows = page.locator(".detail table").nth(1).locator("tr").all_inner_texts()
    assert [row.split("\t") for row in rows] == [["tiles of j", "4 × 8"], ["unroll", "0"]]
    page.get_by_role("button", name="trial 3, 40.4 µs").first.click()
    assert "Trial 3" in page.locator(".detail h3").inner_text()


def test_two_trials_are_compared(page):
    page.get_by_role("button", name="trial 4, 20.2 µs").click()
    page.get_by_label("Compare with").select_option(label="trial 5, 50.5 µs")
    assert "2.50 times as fast as trial 5." in page.locator(".detail").inner_text()
    rows = page.locator(".beside tbody tr").all_inner_texts()
    assert [row.split("\t") for row in rows] == [["tiles of j", "4 × 8", "2 × 16"],
                                                 ["unroll", "0", "16"]]  # fmt: skip
    # the other one stays, where another trial is opened
    page.get_by_role("button", name="trial 3, 40.4 µs").first.click()
    assert page.get_by_label("Compare with").locator("option:checked").inner_text() == (
        "trial 5, 50.5 µs")
    page.get_by_label("Compare with").select_option("")
    assert page.locator(".beside").count() == 0


def test_an_axis_of_times_that_are_close_has_more_than_one_value(chromium, tmp_path):
    board = database().board(peak_gflops=False)
    data = board.to_dict()
    for trial in data["trials"]:
        if trial["time"]:
            trial["time"] = trial["low"] = trial["high"] = 21e-6 + trial["trial"] * 1e-8
    for session in data["sessions"]:
        session["peak_s"] = None
    board.to_dict = lambda traces=True: data
    board.html(tmp_path / "board.html")
    with open_page(chromium) as page:
        page.goto((tmp_path / "board.html").as_uri())
        page.wait_for_selector(".mark")
        ticks = page.locator('.tick[text-anchor="end"]').all_text_contents()
        assert len(set(ticks)) >= 3, ticks


@pytest.mark.parametrize("modelled, words", [
    ([False, False], "measured"), ([True, True], "modelled"),
    ([True, False], "measured or modelled")])
def test_axes_say_whether_times_are_measured(chromium, tmp_path, modelled, words):
    board = database().board(peak_gflops=False)
    data = board.to_dict()
    for session, is_modelled in zip(data["sessions"], modelled):
        session["modelled"] = is_modelled
    board.to_dict = lambda traces=True: data
    board.html(tmp_path / "board.html")
    with open_page(chromium) as page:
        page.goto((tmp_path / "board.html").as_uri())
        page.wait_for_selector(".mark")
        said = page.locator(".board-body, .mlc-board").first.inner_text()
        assert ("modelled time" in said) == (words == "modelled")
        tab(page, "Model")
        said = page.locator(".mlc-board").inner_text()
        assert f"{words} speed, best = 1" in said
        assert f"Rank correlation of predicted and {words} speed" in said


def test_a_failure_says_why(page):
    page.locator(".mark", has=page.locator(".failed")).click()
    assert "timeout: did not end within 10 s" in page.locator(".detail").inner_text()


def test_the_keyboard_goes_from_point_to_point(page):
    page.locator('.mark[tabindex="0"]').focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert page.locator(".sr[role=status]").inner_text().startswith("trial 3, 40.4")
    page.keyboard.press("Home")
    assert "Trial 0" in page.locator(".detail h3").inner_text()


def test_tabs_by_keyboard(page):
    page.get_by_role("tab", name="Progress").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator('[role=tab][aria-selected="true"]').inner_text() == "Cost model"
    assert "1.00" in page.locator("table.rounds").inner_text()


def test_the_space_and_a_heat_map(page):
    tab(page, "Space")
    labels = page.locator("svg .label").all_text_contents()
    assert labels == ["tiles of j, 1 of 2tiles of j, 1 of 2 (v4)",
                      "tiles of j, 2 of 2tiles of j, 2 of 2 (v5)", "unrollunroll (v8)"]  # fmt: skip
    assert page.locator(".mark.line").count() == 8
    page.get_by_label("First decision").select_option("v4")
    page.get_by_label("Second decision").select_option("v8")
    assert page.locator(".mark.cell").count() == 7
    page.locator(".mark.cell").first.click()
    assert page.locator(".detail h3").count() == 1


def test_the_family(page):
    tab(page, "Family")
    assert page.locator(".kin").count() == 3
    page.get_by_role("button", name="trial 4, 20.2 µs").click()
    assert page.locator(".kin.near").count() == 2


def test_the_list_is_sorted(page):
    tab(page, "Trials")
    times = page.locator("table.list tbody tr td:nth-child(2)").all_inner_texts()
    assert times[0] == "20.2 µs" and times[-1] == ""


def test_a_search_can_be_hidden(page):
    page.get_by_label("replay-trace, seed 8").uncheck()
    assert page.locator(".mark").count() == 6


def test_without_a_kernel_nothing_is_offered_that_needs_one(page):
    page.locator(".mark").first.click()
    assert page.get_by_role("button", name="Measure these decisions").count() == 0
    assert page.get_by_role("button", name="Stop, keep what was found").count() == 0


def test_a_search_moves_before_its_first_result(chromium, tmp_path):
    """The seconds go on and the words say what is done, with no trial to show."""
    board = database().board().to_dict()
    board["trials"] = []
    board["sessions"] = [{**one, "trials_wanted": 64} for one in board["sessions"][:1]]
    values = {**TuningBoard._alone, "board": board, "selected": "", "running": True}
    (tmp_path / "early.html").write_text(
        export.write([(values, "")], "early", "board.js", STYLES), encoding="utf-8")
    with open_page(chromium) as page:
        page.goto((tmp_path / "early.html").as_uri())
        bar = page.locator(".mlc-board .bar").first
        assert "0 of 64 trials, the first trials are built and measured" in bar.inner_text()
        seen = [bar.get_by_text(f"for {seconds} s").wait_for() for seconds in (2, 3)]
        assert len(seen) == 2
        assert page.get_by_text("no trial succeeded").count() == 0


@pytest.mark.parametrize("width", [360, 560, 800])
def test_the_chart_can_be_read_where_there_is_little_room(chromium, url, width):
    with open_page(chromium, width=width) as page:
        page.goto(url)
        page.wait_for_selector(".mark")
        heights = page.locator(".plot .tick").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect().height)")
        assert min(heights) >= 9.5  # a font of 8 pixels
        assert page.evaluate("document.documentElement.scrollWidth") <= width
