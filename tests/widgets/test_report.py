"""The report of a class as a page without a kernel, and with one that opens an answer."""

import re

import pytest
from browser import open_page
from small_class import small_class

from mlc_lab import exercises
from mlc_lab.exercises.teach.class_report import counts
from mlc_lab.exercises.teach.roster import file_name

pytest.importorskip("anywidget")
from mlc_lab_widgets.picture import CHART


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class") / "loops"
    folder.mkdir()
    for one in small_class():
        (folder / file_name(one.student)).write_text(one.as_json(), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def view(folder):
    return exercises.class_report(folder)


def test_an_answer_is_opened_beside_the_reference(view):
    view.show_answer("bad 0", "01.2")
    found = view.comparison
    assert found["names"] == ["bad 0", "reference"] and found["of"] == ["01.2", 1]
    steps = found["recording"]["steps"]
    assert [s["op"] for s in steps].count("reorder") == 2 and view.left == found["split"] - 1
    with pytest.raises(ValueError, match="cannot be shown"):
        view.show_answer("<script>alert(1)</script>", "01.2")
    assert view.comparison == {}
    with pytest.raises(ValueError, match="no such answer"):
        view.show_answer("nothing", "01.2")
    with pytest.raises(ValueError, match="no student 'nobody'"):
        view.show_answer("nobody", "01.2")


def test_without_scripts_it_says_the_same(view):
    text, html = view._static()
    assert "answers: 16, solved: 9" in text and "4 wrong in the same way" in html
    assert "<script" not in html


def test_a_saved_notebook_keeps_it(view):
    data = view._repr_mimebundle_()[0]
    kept = data["application/vnd.mlc-lab.view+json"]
    assert kept["view"] == "report" and kept["packed"] and kept["alone"]["live"] is False


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_shows_marks_groups_and_answers(chromium, view, tmp_path, scheme):
    view.tab, view.chosen = "marks", {}
    view.html(tmp_path / "class.html")
    with open_page(chromium, scheme=scheme, width=360) as page:
        page.goto((tmp_path / "class.html").as_uri())
        report = page.locator(".mlc-report")
        row = report.get_by_role("button", name="01.2 Loops in the best order")
        row.click()
        assert row.get_attribute("aria-expanded") == "true"
        assert report.locator("tr.check").count() == 3
        assert "9 (56 %)" in report.locator("tbody tr").first.inner_text()
        report.get_by_role("tab", name="Marks").press("ArrowRight")
        cells = report.locator(".heat td button:not([disabled])")
        assert cells.count() == 16
        cells.first.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        assert "of 5 points" in report.locator(".answer h3").inner_text()
        report.get_by_role("tab", name="Wrong answers").click()
        report.get_by_role("button", name="4 students in 01.2").click()
        answer = report.locator(".answer")
        assert answer.locator("h3").inner_text().startswith("bad 0, 01.2")
        assert answer.locator(".beside").count() == 2
        assert answer.locator(".gone").count() == answer.locator(".come").count() > 0
        answer.get_by_role("combobox").select_option("bad renamed")
        assert "in the variant of bad 0" in answer.inner_text()
        assert page.get_by_role("button", name="Open in the stepper").count() == 0
        report.get_by_role("tab", name="Alike").click()
        assert report.locator(".panel tbody tr").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert "alert(1)" not in page.title()


@pytest.mark.browser
@pytest.mark.slow
def test_in_a_notebook_an_answer_opens_in_the_stepper(chromium, folder, tmp_path_factory):
    pytest.importorskip("jupyterlab")
    from lab_server import LabServer

    with LabServer(tmp_path_factory.mktemp("lab")) as lab, open_page(
            chromium, ours=lambda error: "blob:" in (error.stack or "")) as page:
        lab.write("class.ipynb", "from mlc_lab import exercises\n"
                  f"exercises.class_report({str(folder)!r})")
        lab.open(page, "class.ipynb")
        lab.run_all(page)
        report = page.locator(".mlc-report")
        report.get_by_role("tab", name="Wrong answers").click()
        report.get_by_role("button", name="4 students in 01.2").click()
        report.get_by_role("button", name="Open in the stepper").click()
        report.get_by_role("slider").first.wait_for()
        assert "bad 0" in report.locator(".of-schedule").first.inner_text()


def test_it_is_read_in_chinese(folder, monkeypatch):
    monkeypatch.setenv("MLC_LAB_LANGUAGE", "zh")
    view = exercises.class_report(folder)
    text, html = view._static()
    assert "16 份答案，9 份做对" in text and "4 份错法相同" in html
    assert not any(" are asked for" in said for said in view.data["texts"])


def test_its_picture_has_a_bar_for_each_exercise(view):
    """As long as the part of the points that was reached on average."""
    (picture,) = view._pictures()
    widths = [float(w) for w in re.findall(r'width="([\d.]+)"[^>]*stroke=', picture)]
    means = [found["mean"] / exercise["of"]
             for exercise, found in zip(view.data["exercises"], counts(view.data))]
    assert [w / CHART[0] * 2 for w in widths] == pytest.approx(means, abs=0.02)
    assert all(exercise["title"] in picture for exercise in view.data["exercises"])
    assert "solved: 9 of 16" in picture
    assert "data:image/svg+xml" in view._repr_mimebundle_()[0]["text/html"]
