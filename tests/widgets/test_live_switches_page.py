"""Switches of a page that need each other: they go and come back together, and say so."""

import pytest
from browser import open_page
from observe.test_live_switches import by_columns, fused

from mlc_lab_widgets.live import write

pytestmark = pytest.mark.browser


@pytest.fixture
def page(chromium, tmp_path):
    lab = fused(by_columns)
    for state in (lab.first, [v if k.name != "compute_at C, i_0" else False
                              for k, v in zip(lab.knobs, lab.first)]):  # fmt: skip
        lab.point(state)
    (tmp_path / "live.html").write_text(write(lab, lab.first), encoding="utf-8")
    with open_page(chromium) as page:
        page.goto((tmp_path / "live.html").as_uri())
        page.wait_for_selector(".mlc.live .program .l")
        yield page


def test_a_switch_takes_with_it_what_needs_it(page):
    outer, inner = page.get_by_label("compute_at C"), page.get_by_label("compute_at B")
    knob = page.locator(".knob", has_text="compute_at B")
    assert inner.is_checked() and "needs" not in knob.inner_text()
    outer.focus()
    page.keyboard.press("Space")
    assert not outer.is_checked() and not inner.is_checked() and inner.is_disabled()
    assert "needs compute_at C, i_0" in knob.inner_text()
    assert page.locator(".refusal").is_hidden()
    page.keyboard.press("Space")
    assert inner.is_checked() and inner.is_enabled() and "needs" not in knob.inner_text()
