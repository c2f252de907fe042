"""The page of choices by hand: the mouse drags sliders and numbers, and what is drawn is what
`count_accesses` counts."""

import re
import time

import pytest
from browser import open_page
from observe.test_live import tiled
from test_axe import problems
from typed_page import serve

from mlc_lab.observe.counts import count_accesses
from mlc_lab.observe.live import Choices
from mlc_lab_widgets import export, live
from mlc_lab_widgets.live import compute, write

pytestmark = pytest.mark.browser

CACHES = "1K:2, 8K:4"
#: a text as a notebook has it, drawn by its host
TEXT = ('<div class="jp-RenderedMarkdown"><p>A tile of <a href="#live:tile">8</a> columns, '
        'not <a href="#live:nothing">7</a> or <a href="#live:%">6</a>.</p></div>')


@pytest.fixture(scope="module")
def lab():
    made = Choices(tiled([2, 4, 8, 16, 32]), caches=CACHES, title="product",
                   prose="With {live:tile} columns.")
    compute(made, made.first, 120.0)
    yield made
    made.close()


@pytest.fixture
def page(chromium, lab, tmp_path):
    (tmp_path / "live.html").write_text(write(lab, lab.first), encoding="utf-8")
    with open_page(chromium) as page:
        page.goto((tmp_path / "live.html").as_uri())
        page.wait_for_selector(".mlc.live .program .l")
        yield page


def slider_of(page):
    return page.locator(".knob").get_by_role("slider", name="tile")


def place(slider, choice):
    """Where the thumb of a slider is when it is at a choice: x and y in the page."""
    box, last = slider.bounding_box(), int(slider.get_attribute("max"))
    thumb = 16
    return (box["x"] + thumb / 2 + (box["width"] - thumb) * choice / last,
            box["y"] + box["height"] / 2)


def test_a_slider_is_dragged_by_the_mouse(page, lab):
    slider, seen = slider_of(page), []
    page.mouse.move(*place(slider, 2))
    page.mouse.down()
    for to in (2.6, 3, 3.4, 4):
        page.mouse.move(*place(slider, to), steps=3)
        seen.append(page.locator(".knob output").first.inner_text())
    assert sorted(set(seen), key=int) == ["16", "32"]  # while the button is held
    page.mouse.up()
    page.mouse.move(*place(slider, 0))
    assert page.locator(".knob output").first.inner_text() == "32"
    first, after = lab.point(lab.first), lab.point([4, *lab.first[1:]])
    assert page.locator(".program .l code").all_text_contents() == lab.lines(after)
    assert page.locator(".why li").all_inner_texts() == lab.why(first, after)  # one motion


def test_a_number_in_the_text_is_dragged_by_the_mouse(page, lab):
    number = page.locator(".mlc-prose .mlc-live-number")
    box = number.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    seen = []
    for far in range(0, -36, -4):
        page.mouse.move(x + far, y)
        seen.append(number.inner_text())
    page.mouse.up()
    assert seen == sorted(seen, key=int, reverse=True) and seen[-1] == "2"
    page.mouse.move(x + 200, y)
    assert number.inner_text() == "2" == page.locator(".knob output").first.inner_text()
    assert page.locator(".program .l code").all_text_contents() == lab.lines(
        lab.point([0, *lab.first[1:]]))
    assert page.evaluate("String(getSelection())") == ""  # no text was marked


def test_a_link_in_a_notebooks_text_is_a_number_of_the_page(page):
    page.evaluate("text => document.body.insertAdjacentHTML('beforeend', text)", TEXT)
    number = page.locator(".jp-RenderedMarkdown .mlc-live-number")
    number.wait_for()
    assert number.count() == 1  # the other links name no number of the page
    text = page.locator(".jp-RenderedMarkdown")
    assert text.inner_text() == "A tile of 8 columns, not 7 or 6."
    number.press("End")
    assert page.locator(".knob output").first.inner_text() == "32"
    assert text.inner_text() == "A tile of 32 columns, not 7 or 6."
    slider_of(page).press("Home")
    assert text.inner_text() == "A tile of 2 columns, not 7 or 6."


def test_a_text_is_as_it_was_when_its_view_is_taken_down(chromium, lab, tmp_path):
    """Also a number that one view took from another one that is farther away."""
    values = {**live.values(lab, lab.first), "prose": ""}
    text = export.write([(values, ""), (values, "")], "two", live.ENTRY, live.STYLES)
    (tmp_path / "two.html").write_text(text, encoding="utf-8")
    with open_page(chromium) as page:
        page.goto((tmp_path / "two.html").as_uri())
        page.locator(".mlc.live").nth(1).locator(".program .l").first.wait_for()
        page.locator(".mlc.live").nth(1).evaluate(
            "(view, text) => view.insertAdjacentHTML('afterend', text)", TEXT)
        page.locator(".jp-RenderedMarkdown .mlc-live-number").wait_for()
        page.evaluate("text => document.querySelector('.jp-RenderedMarkdown').firstChild"
                      ".insertAdjacentText('beforeend', ' And {live:tile}.')")
        page.wait_for_function("document.querySelectorAll('.mlc-live-number').length === 2")
        # nearer to the first view, which takes the numbers
        page.evaluate("document.querySelector('.mlc.live').after("
                      "document.querySelector('.jp-RenderedMarkdown'))")
        page.wait_for_timeout(300)
        page.locator(".mlc-live-number").first.press("Home")
        outputs = page.locator(".knob output").all_inner_texts()
        assert outputs.count("2") == 1
        assert page.locator(".jp-RenderedMarkdown a:visible").count() == 2
        assert page.locator(".jp-RenderedMarkdown").inner_text() == (
            "A tile of 2 columns, not 7 or 6. And 2.")


def test_a_point_of_the_roofline_waits_for_its_time_where_the_counts_put_it(
        chromium, lab, tmp_path):
    """Its height is no measurement, which is seen and said."""
    values = live.values(lab, lab.first)
    later = lab.point([0, *lab.first[1:]]).key
    cost = dict(values["all"][later]["cost"])
    assert cost.pop("time") and cost.pop("gflops")
    values["all"][later] = {**values["all"][later], "cost": cost}
    (tmp_path / "live.html").write_text(
        export.write([(values, "")], "page", live.ENTRY, live.STYLES), encoding="utf-8")
    with open_page(chromium) as page:
        page.goto((tmp_path / "live.html").as_uri())
        page.locator(".roofline .point.current").wait_for()
        assert page.locator(".roofline .untimed").count() == 0
        slider_of(page).press("Home")
        point = page.locator(".roofline .point.current.untimed")
        said = point.get_attribute("aria-label")
        counts = cost["counts"]
        last = counts["levels"][-1]
        intensity = counts["flops"] / (last["bytes_in"] + last["bytes_out"])
        told = float(re.search(r"not timed yet, ([\d.]+) operations a byte", said).group(1))
        assert told == pytest.approx(intensity, rel=0.01)
        fills = page.locator(".roofline .point circle:not(.halo)").evaluate_all(
            "all => all.map(e => getComputedStyle(e).fill)")
        assert len(set(fills)) == 2  # it is hollow
        slider_of(page).press("End")
        page.locator(".roofline .point.current:not(.untimed)").wait_for()
        assert page.locator(".roofline .untimed").count() == 0  # nothing of it stays


def test_the_point_settles_when_its_time_comes(chromium, tmp_path, monkeypatch):
    """With Python behind the page: across at once, up and down when it is measured."""
    monkeypatch.setattr(live.Live, "ahead_s", 1e9)  # nothing that nobody asked for
    view = live.Live(Choices(tiled([4, 8, 16]), caches=CACHES))
    current = ".roofline .point.current"
    try:
        end = time.monotonic() + 60
        while not view._at.timed and time.monotonic() < end:
            time.sleep(0.05)
        monkeypatch.setattr(live.Live, "still_s", 5.0)
        with open_page(chromium) as page:
            serve(page, view, tmp_path / "live.html", ".mlc.live .program .l")
            page.locator(f"{current}:not(.untimed)").wait_for()
            slider_of(page).press("End")
            page.locator(f"{current}.untimed").wait_for()
            assert not view._at.timed
            across = page.locator(f"{current} circle").first.get_attribute("cx")
            monkeypatch.setattr(live.Live, "still_s", 0.0)
            page.locator(f"{current}:not(.untimed)").wait_for()
            x = page.locator(f"{current} circle").first.get_attribute("cx")
            assert float(x) == pytest.approx(float(across), abs=1.0)
    finally:
        view.close()


def drawn(page):
    """The counts that the page says, of each level: misses, lines asked for, bytes in and back;
    and the bytes from memory."""
    facts = page.locator(".fact").evaluate_all(
        "all => all.map(e => [e.firstChild.textContent, e.title])")
    pattern = r"([\d,]+) of ([\d,]+) lines asked for; ([\d,]+) bytes in, ([\d,]+) written back"
    levels = {name.removesuffix(" misses"): tuple(
        int(n.replace(",", "")) for n in re.fullmatch(pattern, title).groups())
        for name, title in facts if name.endswith(" misses")}  # fmt: skip
    (memory,) = [int(title.removesuffix(" bytes").replace(",", "")) for name, title in facts
                 if name == "From memory"]
    return levels, memory


def test_the_counts_on_the_page_are_those_of_count_accesses(page, lab):
    """Of each choice of the number, with the steps on and off; all levels, all bytes."""
    checked = 0
    for step in (None, "vectorize", "decompose_reduction"):
        if step:
            page.get_by_label(step).uncheck()
        slider_of(page).press("Home")
        for n in range(5):
            state = [n, *lab.first[1:]]
            for at, knob in enumerate(lab.knobs):
                if step and knob.name.startswith(step):
                    state[at] = False
            if lab.point(state).counted:
                counts = count_accesses(lab.module(lab.point(state)), CACHES)
                levels, memory = drawn(page)
                assert levels == {
                    c.name: (c.misses, c.lookups, c.bytes_in, c.bytes_out) for c in counts.levels}
                assert memory == counts.levels[-1].bytes_in + counts.levels[-1].bytes_out
                title = page.locator(".dot.misses.current title").text_content()
                assert title.startswith(f"{2 ** (n + 1)}: ")
                checked += 1
            slider_of(page).press("ArrowRight")
        page.get_by_role("button", name="Reset").click()
    assert checked >= 7


@pytest.mark.parametrize("zoom", [1.0, 1.5], ids=["100%", "150%"])
@pytest.mark.parametrize("width", [800, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_clean_for_axe_in_every_size(chromium, lab, tmp_path, scheme, width, zoom):
    """A browser that enlarges a page has fewer of its pixels in a window of the same width."""
    (tmp_path / "live.html").write_text(write(lab, lab.first), encoding="utf-8")
    wide = round(width / zoom)
    with open_page(chromium, scheme=scheme, width=wide, height=round(900 / zoom), scale=zoom
                   ) as page:  # fmt: skip
        page.goto((tmp_path / "live.html").as_uri())
        page.wait_for_selector(".mlc.live .program .l")
        page.get_by_label("vectorize").uncheck()
        page.get_by_text("Accesses in time order").click()
        page.locator(".mlc-access canvas").first.wait_for()
        page.wait_for_timeout(300)  # sizes and colours settle
        assert page.evaluate("[innerWidth, devicePixelRatio]") == [wide, zoom]
        assert not problems(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= wide
        # what is chosen can be reached and seen, and nothing of its words is cut
        cut = page.locator(".knob .head span, .knob output, .knob label span, .chip").evaluate_all(
            "all => all.filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth)"
            ".map(e => e.textContent)")
        assert cut == []
