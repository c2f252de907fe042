"""Each ready-made page in the browser: by keyboard alone, narrow and wide, and clean for axe."""

import pytest
from browser import open_page

from mlc_lab.observe.live import Choices
from mlc_lab.observe.live_pages import PAGES
from mlc_lab_widgets.live import nearest, write

axe = pytest.importorskip("axe_playwright_python.sync_playwright")
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module", params=PAGES)
def made(request, tmp_path_factory):
    """A page with the states around the first one, of which that one is counted."""
    page = PAGES[request.param]
    lab = Choices(page.make(), caches="32K:8, 1M:16", form=page.form, begin=page.begin,
                  prose=page.prose, title=request.param)  # fmt: skip
    lab.count(lab.point(lab.first))
    lab.accesses(lab.point(lab.first))
    for knob in range(len(lab.knobs)):
        for state in nearest(lab, lab.first, knob):
            lab.point(state)
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(write(lab, lab.first), encoding="utf-8")
    lab.close()
    return lab, path.as_uri()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1600), ("dark", 800)])
def test_it_fits_and_is_clean_for_axe(chromium, made, scheme, width):
    _, url = made
    with open_page(chromium, scheme=scheme, width=width) as page:
        page.goto(url)
        page.wait_for_selector(".mlc.live .program .l")
        page.locator(".accesses summary").click()
        page.wait_for_selector(".mlc-access")
        found = axe.Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
        told = [f"{v['id']}: {n['html'][:160]}"
                for v in found.response["violations"] for n in v["nodes"]]  # fmt: skip
        assert not told, "\n".join(told)
        for zoom in (1, 1.5):  # a browser that shows all larger has so much less room
            page.set_viewport_size({"width": int(width / zoom), "height": 900})
            page.wait_for_timeout(100)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), zoom
            # what is cut off can be scrolled to
            lost = page.evaluate(
                """() => [...document.querySelectorAll(".mlc.live *")].filter((e) =>
                  e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 &&
                  getComputedStyle(e).overflowX === "hidden" && !e.title &&
                  !e.closest(".sr, [title]")).map((e) => e.outerHTML.slice(0, 120))"""
            )
            assert not lost, lost
            over = page.locator(".nest-pane .head").evaluate_all(
                "all => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.innerText)")
            assert not over, over  # a condition ends with dots, as statements do


def test_everything_is_chosen_by_keyboard_alone(chromium, made):
    lab, url = made
    with open_page(chromium, width=1600) as page:
        page.goto(url)
        page.wait_for_selector(".mlc.live .program .l")
        program = page.locator(".program")
        wanted = page.locator(".knob:not([hidden]):not(.idle)").count()
        used, shown = set(), {program.inner_text()}
        for _ in range(120):
            page.keyboard.press("Tab")
            at = page.evaluate(
                """() => {
                  const at = document.activeElement, knob = at.closest(".knob");
                  const knobs = [...document.querySelectorAll(".knob")];
                  return knob ? [knobs.indexOf(knob), at.type, at.max && at.value === at.max] :
                    [at.closest(".roofline, .asm, .accesses") ? -2 : -1];
                }"""
            )
            if at[0] == -2:
                break
            if at[0] < 0 or at[0] in used:
                continue
            used.add(at[0])
            kind, last = at[1:]
            there, back = {
                "checkbox": ("Space", "Space"),
                "range": ("ArrowLeft", "ArrowRight") if last else ("ArrowRight", "ArrowLeft"),
                "radio": ("ArrowDown", "ArrowUp"),
                "button": ("ArrowRight", "ArrowLeft"),
            }[kind]
            page.keyboard.press(there)
            assert "does not have" not in page.locator(".refusal").inner_text()
            shown.add(program.inner_text())
            page.keyboard.press(back)
        assert len(used) == wanted and len(shown) > wanted / 2
        first = "\n".join(lab.lines(lab.point(lab.first)))
        assert page.locator(".program .l code").all_text_contents() == first.split("\n")
