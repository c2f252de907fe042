"""Two schedules side by side, in an exported page in Chromium, and as a Python object."""

import pytest
from browser import open_page
from observe.schedules import module

from mlc_lab.observe.session import record
from mlc_lab.schedule import Schedule

widgets = pytest.importorskip("mlc_lab_widgets")
pytest.importorskip("anywidget")


def schedules():
    """A plain split, and one that is tiled and vectorized."""
    first = Schedule(module())
    first.split(first.get_loops(first.get_block("Y"))[1], [None, 8])
    second = Schedule(module())
    i, j, k = second.get_loops(second.get_block("Y"))
    j0, j1 = second.split(j, [None, 16])
    second.reorder(i, j0, k, j1)
    second.vectorize(j1)
    return first, second


@pytest.fixture
def page(chromium, tmp_path):
    path = tmp_path / "compare.html"
    first, second = (record(s).recording for s in schedules())
    for recording, time in ((first, 4e-3), (second, 1e-3)):
        recording.programs[-1].cost = {"time": time, "spread": 0.01, "runs": 9, "equal": True}
    widgets.compare(first, second, "two tilings").html(path)
    with open_page(chromium) as page:
        page.goto(path.as_uri())
        yield page


@pytest.mark.browser
def test_the_last_steps_of_both_stand_side_by_side(page):
    assert page.locator(".count").all_inner_texts() == ["1 / 1", "3 / 3"]
    left = page.locator(".pane.before").text_content()
    assert "for i, j_0, j_1, k in T.grid(16, 4, 8, 24)" in left
    assert "T.vectorized(16)" in page.locator(".pane.after").text_content()
    assert "right is 4.00× faster" in page.locator(".verdict").inner_text()


@pytest.mark.browser
def test_the_same_thing_lights_up_on_both_sides(page):
    page.locator(".pane.before .t-name", has_text="j_1").first.hover()
    assert set(page.locator(".pane.after .tok").all_text_contents()) == {"j_1"}
    page.get_by_label("Step of the left schedule").fill("0")
    page.locator(".pane.after .t-name", has_text="j_1").first.hover()
    assert set(page.locator(".pane.before .tok").all_text_contents()) == {"j"}


@pytest.mark.browser
def test_equal_steps_of_both_are_said_to_be_the_same(page):
    page.get_by_label("Step of the left schedule").fill("0")
    page.get_by_label("Step of the right schedule").fill("0")
    assert "both programs are the same" in page.locator(".legend").inner_text()
    page.get_by_role("button", name="Loop nests").click()
    assert page.locator("svg.nest").count() == 2


def test_python_drives_it_and_hears_of_it():
    view = widgets.compare(*schedules())
    assert (view.left, view.right) == (1, 3)
    seen = []
    stop = view.on_step(lambda left, right: seen.append((left, right)))
    view.right = 99
    view.right = 1
    stop()
    view.left = 0
    assert seen == [(1, 1)]


@pytest.mark.browser
def test_the_names_of_the_two_are_titles(chromium, tmp_path):
    naive, tiled = schedules()
    view = widgets.compare(naive, tiled)
    assert view.comparison["title"] == "naive / tiled"
    view.html(tmp_path / "named.html")
    with open_page(chromium) as page:
        page.goto((tmp_path / "named.html").as_uri())
        assert page.locator(".of-schedule").all_inner_texts() == ["naive", "tiled"]
        assert page.locator(".panes .cap").first.inner_text().startswith("naive: after step 1")
        assert page.get_by_role("button", name="Measure").count() == 0  # nobody to ask


def test_names_may_be_given_and_are_those_of_functions_else():
    assert widgets.compare(*schedules(), names=("a", "b")).comparison["names"] == ["a", "b"]
    assert widgets.compare(*schedules()).comparison["title"] == "main / main"


def test_times_are_measured_when_asked(monkeypatch):
    view = widgets.compare(*schedules())
    sent = []
    monkeypatch.setattr(view, "send", sent.append)
    view._answer(view, {"type": "measure"}, [])
    programs = view.comparison["recording"]["programs"]
    assert sent[-1] == {"type": "measure", "done": True, "error": ""}
    assert {m["program"] for m in sent[:-1]} == set(range(len(programs)))
    assert all(program["cost"]["time"] > 0 for program in programs)


def test_without_scripts_each_schedule_is_called_by_its_name():
    plain, tiled = schedules()
    view = widgets.compare(plain, tiled)
    for told in (view._static()[1], "".join(view._pictures())):
        assert told.index("plain") < told.index("tiled")
