"""A page with several forms of a program, and one whose threads share cache lines."""

import pytest
from browser import open_page
from observe.test_live import tiled
from observe.test_live_forms import by_rows

from mlc_lab.observe.live import Choices
from mlc_lab.observe.live_pages_parallel import PROSE, parallel_sum
from mlc_lab_widgets.live import write

pytestmark = pytest.mark.browser


def shown(page):
    return "\n".join(page.locator(".program .l code").all_text_contents())


@pytest.fixture(scope="module")
def forms():
    made = Choices({"columns": tiled([4, 8], 8), "rows": by_rows()}, caches="1K:2, 8K:4",
                   prose="In {live:form}.")
    for state in made.neighbours(made.first, 0):
        for knob in range(len(made.knobs)):
            for near in made.neighbours(state, knob):
                made.count(made.point(near))
    yield made
    made.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_form_is_chosen_and_has_its_own_knobs(chromium, forms, tmp_path, scheme):
    (tmp_path / "forms.html").write_text(write(forms, forms.first), encoding="utf-8")
    with open_page(chromium, scheme=scheme) as page:
        page.goto((tmp_path / "forms.html").as_uri())
        page.wait_for_selector(".mlc.live .program .l")
        assert shown(page) == "\n".join(forms.lines(forms.point(forms.first)))
        assert page.get_by_role("slider", name="rows", exact=True).is_hidden()
        radio = page.get_by_role("radio", name="columns")
        radio.focus()
        page.keyboard.press("ArrowDown")
        assert page.get_by_role("radio", name="rows").is_checked()
        other = [1, *forms.first[1:]]
        assert shown(page) == "\n".join(forms.lines(forms.point(other)))
        assert page.get_by_role("slider", name="rows", exact=True).is_visible()
        assert page.get_by_label("vectorize").is_hidden()
        assert page.locator(".why li").all_inner_texts() == forms.why(
            forms.point(forms.first), forms.point(other))
        assert page.locator(".dot.misses").count() == 2
        # the charts over a number of this form have the other form to compare with
        page.get_by_role("slider", name="rows", exact=True).focus()
        page.keyboard.press("ArrowRight")
        assert page.locator("text.other").first.text_content() == "columns"
        assert page.locator(".knob output").last.inner_text() == "8"
        assert page.locator(".mlc-prose").inner_text() == "In rows."
        address = page.url
        page.goto("about:blank")
        page.goto(address)
        page.wait_for_selector(".mlc.live .program .l")
        assert page.get_by_role("radio", name="rows").is_checked()


def test_moves_of_lines_between_cores_are_seen(chromium, tmp_path):
    lab = Choices(parallel_sum(1 << 10), caches="1K:2, 8K:4", form="chunks", prose=PROSE,
                  begin={"chunks": 8, "compute_at sums": False})
    try:
        apart = list(lab.neighbours(lab.first, 1))
        for state in apart:
            lab.count(lab.point(state))
        text = write(lab, lab.first)
    finally:
        lab.close()
    assert "moves between cores" in text.split("</noscript>")[0]
    (tmp_path / "sum.html").write_text(text, encoding="utf-8")
    sharing = lab.cost(lab.point(lab.first))["counts"]["sharing"]
    with open_page(chromium) as page:
        page.goto((tmp_path / "sum.html").as_uri())
        page.wait_for_selector(".mlc.live .program .l")
        fact = page.locator(".fact", has_text="Shared lines")
        said = fact.locator("strong").inner_text()
        assert said.startswith(f"{sharing['shared']} of {sharing['written']}")
        assert said.endswith(f"{sharing['moves']:,} moves")
        slider = page.get_by_role("slider", name="floats apart").last
        slider.focus()
        page.keyboard.press("End")
        assert page.locator(".dot.moves").count() == (len(apart) if sharing["moves"] else 0)
        assert fact.locator("strong").inner_text() == "0 of 8, 0 moves"
        said = lab.why(lab.point(apart[0]), lab.point(apart[-1]))
        assert page.locator(".why li").all_inner_texts() == said
