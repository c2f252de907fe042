"""The stepper as an exported page, in Chromium: what it says, how it is operated, how fast it is.

Every page is opened through `open_page`, which fails the test if a request leaves the machine or an
error is thrown.
"""

from xml.etree import ElementTree

import handmade
import pytest
from browser import open_page
from playwright.sync_api import expect
from test_recording import big

from mlc_lab_widgets import page as write_page

pytestmark = pytest.mark.browser
SLIDER = "input[type=range]"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "stepper.html"
    handmade.recording().html(path, "matmul and relu")
    return path.as_uri()


@pytest.fixture
def page(chromium, url):
    with open_page(chromium, scheme="light") as page:
        page.goto(url)
        yield page


def go(page, step):
    page.locator(SLIDER).fill(str(step))


def pane(page, side):
    return page.locator(f".pane.{side}")


def marked(page, side, mark):
    found = pane(page, side).locator(f".l.{mark} code").all_text_contents()
    return [text.strip() for text in found]


def test_it_opens_on_the_program_as_it_was(page):
    assert page.title() == "matmul and relu"
    assert page.locator(".count").inner_text() == "0 / 6"
    assert "for i, j, k in T.grid(128, 128, 128)" in pane(page, "after").text_content()
    assert "The program as it was." in page.locator(".meaning").inner_text()


def test_the_first_and_last_buttons_go_to_the_ends(page):
    page.get_by_role("button", name="Last step").click()
    assert page.locator(".count").inner_text() == "6 / 6"
    assert "T.vectorized(8)" in pane(page, "after").text_content()
    assert page.get_by_role("button", name="Next step").get_attribute("aria-disabled") == "true"
    page.get_by_role("button", name="Previous step").click()
    assert page.locator(".count").inner_text() == "5 / 6"
    page.get_by_role("button", name="First step").click()
    assert page.locator(".count").inner_text() == "0 / 6"


def test_arrow_keys_step_wherever_the_focus_is_inside_the_view(page):
    for place in (".buttons button >> nth=0", ".pane.before", "summary >> nth=0", SLIDER):
        page.locator(place).focus()
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowLeft")
        assert page.locator(".count").inner_text() == "1 / 6", place
        page.keyboard.press("End")
        assert page.locator(".count").inner_text() == "6 / 6", place


def test_keys_outside_the_view_do_nothing(page):
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    assert page.locator(".count").inner_text() == "0 / 6"


def test_a_reorder_changes_one_line_and_marks_only_the_words_that_moved(page):
    go(page, 2)
    assert marked(page, "before", "changed") == ["for i, j_0, j_1, k in T.grid(128, 16, 8, 128):"]
    assert marked(page, "after", "changed") == ["for i, j_0, k, j_1 in T.grid(128, 16, 128, 8):"]
    words = pane(page, "after").locator(".l.changed b").all_text_contents()
    assert "k" in words and "i" not in words and "j_0" not in words
    for mark in ("new", "moved", "removed"):
        assert not marked(page, "before", mark) and not marked(page, "after", mark)


def test_a_statement_that_went_elsewhere_is_moved_not_removed(page):
    go(page, 5)
    assert marked(page, "before", "moved") == ["Y[vi, vj] = T.float32(0.0)"]
    assert marked(page, "after", "moved") == ["Y[vi, vj] = T.float32(0.0)"]
    assert 'with T.block("Y_init"):' in marked(page, "after", "new")
    assert marked(page, "before", "removed") == ["with T.init():"]
    # The block is the same block under a new name, the loop over k the same loop.
    assert 'with T.block("Y_update"):' in marked(page, "after", "changed")
    assert not any("for k, j_1" in line for line in marked(page, "after", "new"))


def test_unchanged_lines_face_each_other(page):
    for step in range(1, 7):
        go(page, step)
        if step == 4:
            continue
        misplaced = page.evaluate(
            """() => {
              const rows = (side) => [...document.querySelectorAll(`.pane.${side} > .l`)];
              const [a, b] = [rows("before"), rows("after")];
              const text = (row) => row.querySelector("code")?.textContent.trim();
              const plain = (row) => row.className.trim() === "l";
              const bad = a.filter((row, i) => plain(row) && text(row) !== text(b[i]));
              return a.length === b.length ? bad.map(text) : ["panes differ in length"];
            }"""
        )
        assert misplaced == []


def test_the_cost_of_a_step_is_told(page):
    go(page, 2)
    facts = page.locator(".facts").inner_text()
    assert "410 µs ± 2.0 %" in facts
    assert "6.56× faster" in facts
    assert "10.3 GFLOP/s, 4.1 % of peak" in facts
    assert "equals the original (max error 1.1e-5)" in facts
    go(page, 1)
    assert "no change beyond noise" in page.locator(".facts").inner_text()
    go(page, 5)
    assert "faster than step 3" in page.locator(".facts").inner_text()  # step 4 was refused


def test_a_refused_primitive_is_a_step_with_its_error(page):
    go(page, 4)
    after = pane(page, "after").text_content()
    assert "Refused: no loop-carried dependence" in after
    assert "decompose the reduction first" in after
    fault = pane(page, "before").locator(".l.fault")
    expect(fault).to_contain_text("T.grid")  # the pane may still be filled
    assert fault.inner_text().split() == "✕ for k, j_1 in T.grid(128, 8):".split()
    assert "refused" in page.locator(".facts").inner_text()
    go(page, 5)
    assert "Refused" not in pane(page, "after").text_content()


def test_the_docstring_unfolds_and_stays_unfolded(page):
    go(page, 1)
    page.get_by_text("More on this step").click()
    assert "one may be None and is inferred" in page.locator(".instruction").inner_text()
    assert 'sch.get_block(name="Y"' in page.locator(".instruction").inner_text()
    go(page, 4)
    assert "no iteration depends on another" in page.locator(".instruction").inner_text()


def test_the_chart_shows_each_step_and_is_clickable(page):
    assert page.locator(".chart .dot").count() == 7
    assert page.locator(".chart .dot.refused").count() == 1
    assert "peak: 16.8 µs" in page.locator(".chart").inner_text()
    page.locator('.chart .dot[data-step="3"]').click()
    assert page.locator(".count").inner_text() == "3 / 6"


def test_the_python_so_far_can_be_copied(page):
    go(page, 4)
    page.get_by_text("Python so far").click()
    page.get_by_role("button", name="Copy the Python so far").click()
    page.wait_for_function("document.querySelector('.so-far .copy').textContent === 'Copied'")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == handmade.recording().python_up_to(4)


def test_each_step_is_announced_and_labelled(page):
    view = page.get_by_role("group", name="Steps of main")
    assert view.count() == 1
    live = page.locator("[aria-live=polite]")
    go(page, 4)
    assert live.inner_text().startswith("Step 4 of 6: vectorize refused, no loop-carried depend")
    go(page, 6)
    assert "GFLOP/s" in live.inner_text()
    assert page.locator(SLIDER).get_attribute("aria-valuetext") == "6 of 6: vectorize"
    assert page.get_by_role("region", name="Program before the step").count() == 1


def test_the_focus_can_be_seen(page):
    page.keyboard.press("Tab")
    outline = page.evaluate(
        "() => { const s = getComputedStyle(document.activeElement);"
        " return [document.activeElement.ariaLabel, s.outlineStyle, parseFloat(s.outlineWidth)] }"
    )
    assert outline[0] == "First step" and outline[1] != "none" and outline[2] >= 2


def test_nothing_jumps_when_the_step_changes(page):
    tops = set()
    for step in range(7):
        go(page, step)
        view, inner = page.locator(".mlc").bounding_box(), pane(page, "before").bounding_box()
        tops.add((inner["y"], view["height"]))
    assert len(tops) == 1


def test_lines_of_one_thing_light_up_together(page):
    go(page, 2)
    pane(page, "before").get_by_text("vj = T.axis.spatial").first.hover()
    related = page.locator(".l.rel code").all_text_contents()
    assert len(related) == 2 and related[0] == related[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_both_themes(chromium, url, scheme):
    """Contrast of every piece of text against what is painted behind it, by the WCAG formula."""
    with open_page(chromium, scheme=scheme) as page:
        page.goto(url)
        page.wait_for_function(f"document.querySelector('.mlc').dataset.theme === '{scheme}'")
        for step in (1, 4, 5):
            go(page, step)
            poor = page.evaluate(CONTRAST)
            assert poor == [], (scheme, step)


CONTRAST = """() => {
  const parse = (c) => [...c.match(/[\\d.]+/g).map(Number), 1].slice(0, 4);
  const mix = (top, under, i) => top[i] * top[3] + under[i] * (1 - top[3]);
  const over = (top, under) => [0, 1, 2].map((i) => mix(top, under, i)).concat(1);
  const background = (node) => {
    const stack = [];
    for (let at = node; at; at = at.parentElement) {
      stack.push(parse(getComputedStyle(at).backgroundColor));
    }
    return stack.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const luminance = (c) => {
    const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = c.slice(0, 3).map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const poor = [];
  const walker = document.createTreeWalker(document.querySelector(".mlc"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const parent = walker.currentNode.parentElement;
    if (!text || !parent.checkVisibility() || parent.closest("svg, .sr, s")) continue;
    if (parent.closest("[aria-disabled=true]")) continue;
    const back = background(parent);
    const [a, b] = [luminance(over(parse(getComputedStyle(parent).color), back)), luminance(back)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(`${text}: ${ratio.toFixed(2)} in ${parent.className}`);
  }
  return [...new Set(poor)];
}"""


def test_what_was_not_measured_is_a_gap_in_the_chart(chromium, tmp_path):
    recording = handmade.recording()
    recording.programs[recording.steps[2].after].cost = {"message": "not measured: why not"}
    recording.html(tmp_path / "gap.html")
    with open_page(chromium) as page:
        page.goto((tmp_path / "gap.html").as_uri())
        bottom = max(float(dot.get_attribute("cy"))
                     for dot in page.locator(".chart circle:not(.untimed)").all())
        assert float(page.locator('[data-step="2"] .untimed').get_attribute("cy")) > bottom
        # Nothing is drawn through it, and a page without a kernel cannot measure.
        assert page.locator(".chart polyline").count() == 2
        assert not page.get_by_text("Measure the rest").is_visible()


def test_a_step_says_why(chromium, tmp_path):
    recording = handmade.recording()
    recording.steps[2].why = ["L1 misses 90 % fewer.", "Registers <b>run</b> out."]
    recording.html(tmp_path / "why.html")
    with open_page(chromium) as page:
        page.goto((tmp_path / "why.html").as_uri())
        before = page.locator(".tabs").bounding_box()["y"]
        go(page, 2)
        assert page.get_by_role("list", name="Why").locator("li").all_inner_texts() == \
            recording.steps[2].why
        assert page.locator(".tabs").bounding_box()["y"] == before  # nothing moves under the hand
        assert "L1 misses 90 % fewer." in page.locator(".sr[role=status]").first.text_content()
        go(page, 3)
        assert page.locator(".why li").count() == 0
        page.get_by_role("button", name="Guess first").click()
        assert "90 %" not in page.locator(".mlc").inner_text()


def test_a_step_without_reasons_says_so(chromium, tmp_path):
    recording = handmade.recording()
    counted = {"counts": {"message": "not counted: it takes long"}, "inner": {"instructions": 9}}
    for step, cost in ((2, counted), (3, {"counts": {"message": "not counted: no time"}})):
        program = recording.programs[recording.steps[step].after]
        program.cost = {**program.cost, **cost}
    before = recording.programs[recording.steps[2].before]
    before.cost = {**before.cost, **counted}
    recording.html(tmp_path / "none.html")
    with open_page(chromium) as page:
        page.goto((tmp_path / "none.html").as_uri())
        said = page.get_by_role("list", name="Why")
        assert said.locator("li").count() == 0  # of the program as it was there is nothing to say
        go(page, 2)
        assert said.inner_text() == "The counts say nothing of this change."
        go(page, 3)
        assert said.inner_text() == "Not counted, so it is not known why."
        assert not page.get_by_role("button", name="Count every step").is_visible()  # no kernel


def test_several_views_on_one_page_are_independent(chromium, tmp_path):
    path = tmp_path / "two.html"
    path.write_text(write_page([handmade.recording(), handmade.recording(False)]), encoding="utf-8")
    with open_page(chromium) as page:
        page.goto(path.as_uri())
        first, second = page.locator(".mlc").all()
        first.locator(SLIDER).fill("3")
        second.get_by_role("button", name="Last step").focus()
        page.keyboard.press("ArrowRight")
        assert first.locator(".count").inner_text() == "3 / 6"
        assert second.locator(".count").inner_text() == "1 / 6"
        assert "not measured" in second.locator(".facts").inner_text()
        assert second.locator(".chart svg").count() == 0


def test_a_narrow_page_stacks_the_programs(chromium, url):
    with open_page(chromium, width=480) as page:
        page.goto(url)
        before, after = pane(page, "before").bounding_box(), pane(page, "after").bounding_box()
        assert after["y"] > before["y"] + before["height"]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_page_reads_without_scripts(chromium, url):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(url)
    assert "reverse_compute_at(block=C, loop=j_0)" in page.content()
    assert page.locator("details summary").count() >= 7
    page.locator("details summary").nth(4).click()
    assert "no iteration may depend on another" in page.locator("body").inner_text()
    context.close()


def test_long_programs_fold_what_did_not_change(chromium, tmp_path):
    path = tmp_path / "big.html"
    big(steps=4).html(path)
    with open_page(chromium) as page:
        page.goto(path.as_uri())
        go(page, 2)
        folds = pane(page, "before").locator("button.fold")
        assert folds.count() == 2
        shown = pane(page, "after").locator(".l").count()
        assert shown < 30
        folds.first.click()
        assert pane(page, "after").locator(".l").count() > shown + 5
        page.get_by_role("button", name="Show all lines").click()
        assert pane(page, "after").locator(".l").count() >= 200
        assert pane(page, "after").locator(".fold").count() == 0


def test_a_long_program_comes_into_the_page_as_it_is_scrolled(chromium, tmp_path):
    path = tmp_path / "long.html"
    big(steps=3, length=2000).html(path)
    with open_page(chromium) as page:
        page.goto(path.as_uri())
        go(page, 1)
        page.get_by_role("button", name="Show all lines").click()
        after = pane(page, "after")
        drawn = after.locator(".l").count()
        assert 0 < drawn < 400
        assert after.evaluate("e => e.scrollHeight") >= 2000 * 19
        after.evaluate("e => (e.scrollTop = 1500 * 19)")
        line = after.get_by_text("for i_1510 in range(1517)")
        line.wait_for()
        page.wait_for_function(
            "document.querySelector('.pane.before').scrollTop === 1500 * 19")
        line.hover()
        lit = pane(page, "before").locator(".l.rel code")
        assert lit.all_inner_texts() == ["        for i_1510 in range(1517):  # of ordinary width"]
        after.focus()
        for _ in range(100):  # the keys go on where the lines are not in the page yet
            page.keyboard.press("ArrowDown")
        assert after.locator(".l.cur").count() == 1


def test_a_step_of_a_two_hundred_line_module_is_drawn_quickly(chromium, tmp_path):
    """No time is asserted here beyond what tells apart a frame or two from a hang."""
    path = tmp_path / "big.html"
    big().html(path)
    with open_page(chromium) as page:
        page.goto(path.as_uri())
        times = page.evaluate(
            """async () => {
              const slider = document.querySelector("input[type=range]");
              const times = [];
              for (let step = 1; step < 50; step++) {
                const start = performance.now();
                slider.value = step;
                slider.dispatchEvent(new Event("input"));
                document.body.offsetHeight; // layout included
                times.push(performance.now() - start);
                await new Promise((done) => setTimeout(done, 0));
              }
              return times.sort((a, b) => a - b);
            }"""
        )
        print(f"median {times[24]:.1f} ms, slowest {times[-1]:.1f} ms a step")
        assert times[24] < 500


def origin(page):
    return [text.strip() for text in page.locator(".family ol li").all_inner_texts()]


def test_pointing_at_a_loop_lights_up_what_it_came_from(page):
    go(page, 1)
    pane(page, "after").locator(".t-name", has_text="j_0").first.hover()
    assert pane(page, "before").locator(".tok").all_text_contents() == ["j", "j"]
    assert set(pane(page, "after").locator(".tok").all_text_contents()) == {"j_0"}
    page.locator(".title").hover()
    assert page.locator(".tok").count() == 0


def test_pointing_at_an_ancestor_lights_up_all_that_became_of_it(page):
    go(page, 1)
    pane(page, "before").locator(".t-name", has_text="j").first.hover()
    assert set(pane(page, "after").locator(".tok").all_text_contents()) == {"j_0", "j_1"}


def test_a_selected_loop_is_followed_through_all_steps(page):
    go(page, 6)
    pane(page, "before").locator(".t-name", has_text="j_1_init").first.click()
    assert origin(page) == ["0 start loop j", "1 split loop j_1",
                            "5 decompose_reduction loop j_1_init"]
    page.locator(".family ol button").nth(1).click()
    assert page.locator(".count").inner_text() == "1 / 6"
    assert "loop j_1_init" in page.locator(".family").inner_text() or origin(page) == []


def test_a_block_is_called_what_the_text_calls_it(page):
    go(page, 5)
    pane(page, "after").locator(".t-string", has_text="Y_update").hover()
    assert pane(page, "before").locator(".tok").all_text_contents() == ['"Y"']
    pane(page, "after").locator(".t-string", has_text="Y_update").click()
    assert page.locator('.family [aria-pressed="true"]').inner_text() == "block Y_update"
    assert origin(page) == ["0 start block Y", "5 decompose_reduction block Y_update"]
    go(page, 1)
    assert page.locator('.family [aria-pressed="true"]').inner_text() == "block Y"


def test_names_of_a_line_can_be_chosen_without_a_mouse(page):
    go(page, 1)
    pane(page, "after").focus()
    line = pane(page, "after").locator(".l.cur")
    for _ in range(60):
        page.keyboard.press("ArrowDown")
        if "for i, j_0" in line.inner_text():
            break
    page.keyboard.press("Enter")
    chosen = page.locator('.family [aria-pressed="true"]')
    assert chosen.inner_text() == "loop i"
    page.keyboard.press("Enter")
    assert chosen.inner_text() == "loop j_0"
    said = page.locator(".sr[role=status]").inner_text()
    assert "loop j_0: step 0, loop j; step 1, loop j_0" in said
    page.keyboard.press("Escape")
    assert chosen.count() == 0 and line.count() == 0
    assert page.locator(".count").inner_text() == "1 / 6"  # the step stayed


def test_the_loop_nest_is_drawn_with_extent_kind_and_regions(page):
    go(page, 6)
    page.get_by_role("tab", name="Loop nest").click()
    after = pane(page, "after")
    assert after.locator(".n-loop.vectorized").get_attribute("aria-label") == (
        "loop j_1, extent 8, vectorized")
    texts = after.locator("text").all_text_contents()
    assert "vj = j_0 * 8 + j_1_init" in texts and "Y[vi, vj], A[vi, vk], B[vk, vj]" in texts
    assert after.locator(".n-loop.changed .h").all_text_contents() == ["~ j_1 : 8"]


def test_a_box_of_the_nest_shows_its_origin_too(page):
    go(page, 1)
    page.get_by_role("tab", name="Loop nest").click()
    pane(page, "after").locator('g[aria-label^="loop j_0"]').hover(position={"x": 30, "y": 8})
    assert pane(page, "before").locator("g.rel text.h").all_text_contents() == ["− j : 128"]


def test_the_tabs_are_walked_with_the_arrows_and_leave_the_step_alone(page):
    page.get_by_role("tab", name="Program").focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("tab", name="Loop nest").get_attribute("aria-selected") == "true"
    assert page.locator(".count").inner_text() == "0 / 6"


def test_steps_that_changed_nothing_can_be_passed_over(page):
    page.get_by_role("button", name="Skip 1 idle").click()
    seen = []
    for _ in range(5):
        page.get_by_role("button", name="Next step").click()
        seen.append(page.locator(".count").inner_text().split()[0])
    assert seen == ["1", "2", "3", "5", "6"]
    page.get_by_role("button", name="Previous step").click()
    page.get_by_role("button", name="Previous step").click()
    assert page.locator(".count").inner_text() == "3 / 6"
    assert page.locator(".dot.idle").count() == 1


def test_any_two_steps_stand_side_by_side(page):
    go(page, 6)
    page.get_by_label("Compare with").select_option("After step 0: start")
    assert "for i, j, k in T.grid(128, 128, 128):" in pane(page, "before").text_content()
    assert "T.vectorized(8)" in pane(page, "after").text_content()
    pane(page, "after").locator(".t-name", has_text="j_1_init").first.hover()
    assert set(pane(page, "before").locator(".tok").all_text_contents()) == {"j"}
    go(page, 3)  # what was picked stays
    assert "for i, j, k in T.grid(128, 128, 128):" in pane(page, "before").text_content()
    page.get_by_label("Compare with").select_option("Before")
    assert "for i, j_0, k, j_1 in T.grid" in pane(page, "before").text_content()


def saved(page, kind, path):
    with page.expect_download() as download:
        page.get_by_role("button", name=f"Save this step as {kind}").click()
    download.value.save_as(path)
    return download.value.suggested_filename, path.read_bytes()


@pytest.mark.parametrize("tab", ["Program", "Loop nest"])
def test_a_step_is_saved_as_a_picture_for_slides(page, tab, tmp_path):
    go(page, 6)
    page.get_by_role("tab", name=tab).click()
    name, data = saved(page, "SVG", tmp_path / "step.svg")
    assert name == "main-step-6.svg"
    root = ElementTree.fromstring(data)
    words = " ".join(node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}text"))
    assert "sch.vectorize(loop=j_1)" in words and "vectorized" in words
    name, data = saved(page, "PNG", tmp_path / "step.png")
    assert name == "main-step-6.png" and data[:8] == b"\x89PNG\r\n\x1a\n"
    assert abs(int.from_bytes(data[16:20], "big") - 2 * float(root.get("width"))) <= 2
