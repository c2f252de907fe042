"""The card of an exercise as a page without a kernel, and in a real JupyterLab."""

import pytest
from browser import open_page
from lab_server import LabServer

from mlc_lab import exercises
from mlc_lab.exercises import book

pytest.importorskip("jupyterlab")
pytest.importorskip("anywidget")
pytestmark = [pytest.mark.browser]


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("MLC_LAB_HOME", str(home))
    return home


def test_a_card_checks_from_python_and_keeps_what_was_reached():
    card = exercises.exercise("01.2", seed="ada")
    assert card.result is None and card.task["before"] is None
    assert not any(word in str(card._values()) for word in card.source.hints)
    bad = card.check(card.source.wrong[0].answer)
    assert bad.points == 2 and card.marks["points"] == 2 and card.result is bad
    assert card.check(3).error
    assert card.check(card.source.reference).solved
    again = exercises.exercise("01.2", seed="ada")
    assert again.answer["value"] == card.source.reference
    assert again.task["before"] == {"points": 5, "of": 5}
    assert exercises.exercise("01.2", seed="bob").answer["value"] == ""
    assert book.load().entries["01.2"].points == 5


def test_an_answer_to_an_earlier_version_is_shown_and_gives_way(home):
    card = exercises.exercise("01.2", seed="ada")
    assert card.check(card.source.reference).solved
    kept = book.load()
    kept.entries["01.2"].version = "00000000"
    kept.save(book.home())
    again = exercises.exercise("01.2", seed="ada")
    assert again.answer["value"] == card.source.reference
    assert again.task["outdated"] and again.task["before"] is None
    again.check(card.source.wrong[0].answer)  # has fewer points, of the exercise as it is now
    assert book.load().entries["01.2"].points == 2
    assert not exercises.exercise("01.2", seed="ada").task["outdated"]


def test_what_is_clicked_in_the_workbench_is_the_answer_in_the_card():
    card = exercises.exercise("03.1", seed="ada")
    view = card.workbench()
    view.bench.load_python(card.source.reference)
    assert "sch.split" in card.answer["value"] and card.check().solved
    view.undo()
    assert card.answer["value"] == view.python(program=False)
    again = card.workbench()  # goes on from what is written in the card
    assert again.python(program=False) == card.answer["value"]
    card.answer = {"value": "no schedule", "n": card.answer["n"] + 1}
    assert card.workbench().node == 0
    with pytest.raises(exercises.ExerciseError, match="no schedule"):
        exercises.exercise("01.1").workbench()


def test_a_wrong_answer_can_be_watched_where_it_went_wrong():
    card = exercises.exercise("01.1", seed="ada")
    marks = card.check(card.source.wrong[0].answer)
    at = next(n for n, row in enumerate(marks.rows) if not row.passed)
    assert marks.rows[at].place["element"] == "C[0, 1]"
    card._watch({"row": at, "n": 1})
    found = card.watched
    assert found["n"] == 1 and len(found["results"]) == 1
    trace, position = found["trace"], found["position"]
    site = trace["sites"][trace["site"][position]]
    assert site["write"] and trace["buffers"][site["buffer"]]["name"] == "C"
    assert trace["element"][position] == 1  # of C[0, 1]
    card._watch({"row": 99, "n": 2})
    assert card.watched["n"] == 1
    card.check("no program")
    card._watch({"row": at, "n": 3})
    assert card.watched["message"]
    assert not card._alone["watched"]  # a notebook does not keep them


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_shows_the_answer_and_its_marks(chromium, tmp_path, scheme):
    card = exercises.exercise("01.1", seed="<img src=x onerror=alert(1)>")
    card.check(card.source.wrong[0].answer)
    card.wanted = 4
    card.html(tmp_path / "page.html")
    with open_page(chromium, scheme=scheme, width=420) as page:
        page.goto((tmp_path / "page.html").as_uri())
        view = page.locator(".mlc-card")
        assert view.get_by_role("textbox", name="Answer").input_value().startswith("\n@T.prim_func")
        assert view.locator(".marks li.yes").count() == 1
        row = view.locator(".marks li.no")
        assert "C[0, 1] is" in row.inner_text() and "^^^^" in row.inner_text()
        assert view.locator(".help").count() == 4
        assert view.get_by_role("button", name="Check").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_form_without_scripts_says_the_same():
    card = exercises.exercise("01.1", seed="ada")
    card.check(card.source.wrong[0].answer)
    text, html = card._static()
    assert "A broadcast addition" in text and "C[0, 1] is" in text and "C[0, 1] is" in html
    assert "<script" not in html


def test_its_picture_has_the_program_and_the_marks():
    """For where scripts do not run, as on GitHub."""
    card = exercises.exercise("03.2", seed="ada")
    (before,) = card._pictures()
    assert "with" in before and "T.block" in before and "✓" not in before
    assert all(row["title"] in before for row in card.task["rows"])
    card.check(card.source.wrong[0].answer)
    (after,) = card._pictures()
    marks = card.marks["rows"]
    assert after.count("✓") == sum(row["points"] == row["of"] for row in marks) > 0
    assert after.count("✗") == sum(row["points"] < row["of"] for row in marks) > 0
    data, _ = card._repr_mimebundle_()
    assert data["text/html"].startswith('<p><img alt="03.2') and "<script" not in data["text/html"]


def test_programs_in_a_statement_keep_their_lines(chromium, tmp_path):
    card = exercises.exercise("01.3", seed="ada")
    assert card.task["statement"].count("```python") == 6
    assert "```" not in card._static()[1] and card._static()[1].count("<pre") == 6
    card.html(tmp_path / "page.html")
    with open_page(chromium) as page:
        page.goto((tmp_path / "page.html").as_uri())
        listings = page.locator(".mlc-card .statement pre")
        assert listings.count() == 6
        assert listings.first.inner_text().startswith("for i, k in T.grid(")
        assert "\n    if k == 0:\n" in listings.first.inner_text()
        assert "`" not in page.locator(".mlc-card .statement").inner_text()


def test_a_list_in_a_statement_is_a_list(chromium, tmp_path):
    card = exercises.exercise("13.2", seed="ada")
    assert card._static()[1].count("<li>") == 2 and "<code>X</code>" in card._static()[1]
    card.html(tmp_path / "page.html")
    with open_page(chromium) as page:
        page.goto((tmp_path / "page.html").as_uri())
        items = page.locator(".mlc-card .statement li")
        assert items.count() == 2 and items.first.inner_text().startswith("a multiprocessor")


def test_what_a_wrong_answer_is_told_is_in_the_readers_language(monkeypatch):
    monkeypatch.setenv("MLC_LAB_LANGUAGE", "zh")
    card = exercises.exercise("01.1", seed="ada")
    card.check(card.source.wrong[0].answer)
    assert "应为" in card._static()[1] and "得分：" in card._static()[1]


@pytest.mark.slow
def test_an_answer_is_typed_and_checked(chromium, tmp_path_factory, home):
    with LabServer(tmp_path_factory.mktemp("lab")) as lab, open_page(
            chromium, ours=lambda error: "blob:" in (error.stack or "")) as page:
        lab.write("card.ipynb", "from mlc_lab import exercises\n"
                  "card = exercises.exercise('01.2', seed='ada')\ncard")
        lab.open(page, "card.ipynb")
        lab.run_all(page)
        view = page.locator(".mlc-card")
        area = view.get_by_role("textbox", name="Answer")
        area.click()
        task = exercises.get("01.2").variant("ada")
        area.press_sequentially(task.wrong[0].answer)
        page.keyboard.press("Tab")  # out of the answer, to the button
        button = view.get_by_role("button", name="Check")
        assert button.evaluate("b => b === document.activeElement")
        page.keyboard.press("Enter")
        view.locator(".marks li.no").get_by_text("Reading B misses most").wait_for()
        assert view.locator(".points").inner_text() == "2 of 5 points"
        assert button.evaluate("b => b === document.activeElement")  # not the notebook, whose keys
        assert "not reached: " in view.locator(".sr[role=status]").inner_text()  # delete cells
        view.get_by_role("button", name="What it reads and writes").first.click()
        # it opens at a miss of B, the second time that its line is asked for
        number = view.locator(".watched .count").first
        number.wait_for()
        at = int(number.inner_text().split(" /")[0].replace(",", ""))
        assert at > 1 and "B_1[" in view.locator(".watched .here").first.inner_text()
        view.locator(".watched").get_by_role("button", name="Next access").click()
        assert number.inner_text().startswith(f"{at + 1:,} /")
        view.get_by_role("button", name="Hint 1 of 3").press("Enter")
        view.get_by_text("A line of the cache holds 16 numbers").wait_for()
        for told in ("Hint 3 of 3", "Give up: a solution"):
            page.keyboard.press("Enter")
            more = view.get_by_role("button", name=told)
            more.wait_for()
            assert more.evaluate("b => b === document.activeElement")
        assert view.locator(".told[aria-live] .help").count() == 3
        area.fill(task.reference)
        view.locator(".marks.stale").wait_for()
        view.get_by_role("button", name="Check").click()
        view.get_by_text("5 of 5 points: solved").wait_for()
        assert page.locator(".jp-CodeCell").count() == 1
    assert book.load(home / "answers.json").entries["01.2"].points == 5


def test_a_step_is_chosen_in_the_stepper():
    card = exercises.exercise("05.7", seed="ada")
    right = int(card.source.reference["step"].split()[1])
    view = card.stepper()
    view.step = right
    assert card.answer["value"] == {"step": f"step {right}"} and card.check().solved
    assert card.stepper().step == right  # goes on from the answer in the card
    view.step = 0
    assert card.answer["value"] == {"step": None} and card.check().points == 0
    with pytest.raises(exercises.ExerciseError, match="asks nothing about steps"):
        exercises.exercise("05.6").stepper()


def test_a_view_that_cannot_be_opened_says_why():
    card = exercises.exercise("05.6", seed="ada")
    card.opener = {"what": "stepper", "n": 1}
    assert "asks nothing about steps" in card.opened["message"]
    card.opener = {"what": "workbench", "n": 2}
    assert card.opened["n"] == 2 and "no schedule" in card.opened["message"]
    assert not card._alone["opened"]  # a notebook does not keep them


@pytest.mark.slow
def test_an_answer_is_clicked_in_the_card(chromium, tmp_path_factory, home):
    with LabServer(tmp_path_factory.mktemp("lab")) as lab, open_page(
            chromium, ours=lambda error: "blob:" in (error.stack or "")) as page:
        lab.write("places.ipynb", "from mlc_lab import exercises\n"
                  "exercises.exercise('01.2', seed='ada')",
                  "exercises.exercise('05.7', seed='ada')",
                  "exercises.exercise('05.6', seed='ada')",
                  "exercises.exercise('06.1', seed='ada')")
        lab.open(page, "places.ipynb")
        lab.run_all(page)
        lab.wait_for_cells(page)
        # the workbench, in the card
        view = page.locator(".mlc-card").nth(0)
        view.get_by_role("button", name="Answer by clicking").click()
        bench = view.locator(".mlc.bench")
        bench.get_by_role("button", name="loop k, extent").first.click()
        bench.locator('.entry[data-op="unroll"]').wait_for()
        bench.locator('.entry[data-op="unroll"] .quick').click()
        area = view.get_by_role("textbox", name="Answer", exact=True)
        page.wait_for_function(
            "() => document.querySelector('.mlc-card textarea').value.includes('sch.unroll(')")
        area.press("End")
        area.press_sequentially("\n# typed")
        bench.wait_for(state="detached")
        # the stepper
        view = page.locator(".mlc-card").nth(1)
        view.get_by_role("button", name="Choose in the stepper").click()
        view.locator(".opened .mlc").first.wait_for()
        view.get_by_role("button", name="Next step").first.click()
        view.locator('[data-mark="step 1"][aria-checked="true"]').wait_for()
        view.get_by_role("button", name="Check").click()
        view.get_by_text("step 1 takes the misses from").wait_for()
        view.get_by_role("button", name="Close").first.click()
        # marks, by keyboard, kept with what they reached
        view = page.locator(".mlc-card").nth(2)
        view.locator('.picture [tabindex="0"]').focus()
        page.keyboard.press("Space")
        page.keyboard.press("Shift+ArrowRight")
        view.get_by_role("button", name="Check").click()
        view.locator(".marks li.no small").first.wait_for()
        # a model that goes wrong, in its graph
        view = page.locator(".mlc-card").nth(3)
        task = exercises.get("06.1").variant("ada")
        view.get_by_role("textbox", name="Answer", exact=True).fill(task.wrong[0].answer)
        view.get_by_role("button", name="Check").click()
        view.get_by_text("The first operator that differs is h2 = R.nn.gelu(h1)").wait_for()
        view.get_by_role("button", name="Show it in the graph").click()
        view.locator(".watched .mlc-graph .node.selected").get_by_text("nn.gelu").wait_for()
        assert page.locator(".jp-CodeCell").count() == 4  # no key went to the notebook
    assert book.load(home / "answers.json").entries["05.6"].answer == {
        "cached": ["A[0, 0]", "A[0, 1]"]}
