"""Marks in a picture: by pointer and by keyboard, with what a check has said about them."""

import pytest
from browser import open_page

from mlc_lab import exercises

pytest.importorskip("anywidget")
pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MLC_LAB_HOME", str(tmp_path / "home"))


def page_of(card, path, live=True, **more):
    """The card on a page as it is in a notebook with a kernel: its fields can be filled in."""
    from mlc_lab_widgets import card as cards
    from mlc_lab_widgets import export

    values = {**card._values(), **cards.Card._alone, "live": live, **more}
    path.write_text(export.write([(values, card._static()[1])], "card", cards.ENTRY, cards.STYLES),
                    encoding="utf-8")
    return path.as_uri()


def marked(page):
    return page.eval_on_selector_all(
        '[data-mark][aria-checked="true"]', "all => all.map(e => e.dataset.mark)")


def test_elements_are_marked_by_keyboard_and_pointer(chromium, tmp_path):
    card = exercises.exercise("05.6", seed="ada")
    n, m = card.source.values.n, card.source.values.m
    with open_page(chromium) as page:
        page.goto(page_of(card, tmp_path / "page.html"))
        boxes = page.locator('.picture[role="group"] [role="checkbox"]')
        assert boxes.count() == 2 * n * m
        assert page.locator('.picture [tabindex="0"]').count() == 1  # one stop of the tab key
        page.locator('.picture [tabindex="0"]').focus()
        for key in ("Space", "ArrowRight", "ArrowDown", "Enter", "Shift+ArrowRight"):
            page.keyboard.press(key)
        assert marked(page) == ["A[0, 0]", "A[1, 1]", "A[1, 2]"]
        page.get_by_text("3 marked").wait_for()
        page.keyboard.press("Space")
        page.keyboard.press("End")
        page.keyboard.press("Space")
        assert marked(page) == ["A[0, 0]", "A[1, 1]", f"B[{m - 1}, {n - 1}]"]
        page.get_by_role("button", name="Unmark all").click()
        assert marked(page) == []
        first = page.locator('[data-mark="B[1, 0]"]').bounding_box()
        last = page.locator('[data-mark="B[1, 3]"]').bounding_box()
        page.mouse.move(first["x"] + 8, first["y"] + 8)
        page.mouse.down()
        page.mouse.move(last["x"] + 8, last["y"] + 8, steps=12)
        page.mouse.up()
        assert marked(page) == ["B[1, 0]", "B[1, 1]", "B[1, 2]", "B[1, 3]"]
        page.locator('[data-mark="B[1, 2]"]').click()
        assert marked(page) == ["B[1, 0]", "B[1, 1]", "B[1, 3]"]
        page.locator('[data-mark="A[0, 1]"]').dispatch_event("click")  # as a screen reader does
        assert marked(page)[0] == "A[0, 1]"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_wrong_is_shown_in_the_picture(chromium, tmp_path, scheme):
    card = exercises.exercise("05.6", seed="ada")
    result = card.check("A[:, :]")
    place = result.rows[0].place
    assert place["wrong"] and place["missing"]
    with open_page(chromium, scheme=scheme, width=420) as page:
        page.goto(page_of(card, tmp_path / "page.html"))
        for kind, told in (("wrong", "should not be marked"), ("missing", "should be marked")):
            box = page.locator(f".place.{kind}")
            assert box.get_attribute("data-mark") == place[kind]
            assert box.get_attribute("aria-label") == f"{place[kind]}, {told}"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.locator('[data-mark="A[0, 0]"]').click()  # it is another answer now
        assert page.locator(".place.wrong, .place.missing").count() == 0


def test_lines_and_calls_are_marked_and_kept_on_a_page(chromium, tmp_path):
    for id, key in (("03.6", "loops"), ("12.4", "kernel")):
        card = exercises.exercise(id, seed="ada")
        assert card.check(card.source.reference).solved
        with open_page(chromium) as page:
            page.goto(page_of(card, tmp_path / "page.html", live=False))
            assert marked(page) == card.source.reference[key]
            box = page.locator(f'[data-mark="{marked(page)[0]}"]')
            box.click(force=True)
            assert marked(page) == card.source.reference[key]  # there is nobody to check it
            words = "for i0" if id == "03.6" else "matmul"
            named = page.locator(f'[data-mark]:has-text("{words}")').first
            assert words in named.get_attribute("aria-label")


def test_the_graph_is_walked_in_directions(chromium, tmp_path):
    card = exercises.exercise("12.4", seed="ada")
    with open_page(chromium) as page:
        page.goto(page_of(card, tmp_path / "page.html"))
        page.locator('[data-mark="p"]').focus()
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.dataset.mark") == "s"
        page.keyboard.press("Space")
        assert marked(page) == ["s"]


def test_rows_are_shown_as_they_come(chromium, tmp_path):
    card = exercises.exercise("03.3", seed="ada")
    seen = []
    card.observe(lambda change: seen.append(change["new"]), names=["coming"])
    found = card.check(card.source.wrong[0].answer)
    rows = card.marks["rows"]
    assert [len(now["rows"]) for now in seen] == list(range(len(rows) + 1))
    assert seen[-1]["rows"] == rows == found.to_dict()["rows"] and not card.busy
    assert not card._alone["coming"]  # a notebook does not keep them
    card.marks, card.busy, card.coming = {}, True, seen[1]
    with open_page(chromium) as page:
        page.goto(page_of(card, tmp_path / "page.html", coming=seen[1], busy=True))
        signs = page.locator(".marks .sign").all_inner_texts()
        assert signs == ["✓" if rows[0]["passed"] else "✗", "◐", *"○" * (len(rows) - 2)]
        page.get_by_text(f"1 of {len(rows)} rows checked").wait_for()
        assert page.get_by_role("button", name="Checking").is_disabled()
