"""The lowered stages, LLVM IR and assembly of a step, in an exported page in Chromium."""

import pytest
from browser import open_page
from observe.schedules import schedule
from test_stepper_page import CONTRAST

from mlc_lab.observe.session import record

pytestmark = pytest.mark.browser
SLIDER = "input[type=range]"
UPDATE = "Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    path = tmp_path_factory.mktemp("code") / "code.html"
    record(schedule()).recording.html(path, code=True)
    return path.as_uri()


@pytest.fixture
def page(chromium, url):
    with open_page(chromium) as page:
        page.goto(url)
        yield page


def tab(page, name, step=6):
    page.locator(SLIDER).fill(str(step))
    page.get_by_role("tab", name=name).click()
    return page.locator(".code-view .pane").nth(0), page.locator(".code-view .pane").nth(1)


def lit(pane, some=False):
    """Lines that are lit up. `some`: wait for one, since lines come as they come near the eye."""
    if some:
        pane.locator(".l.rel").first.wait_for(timeout=5000)
    return [text.strip() for text in pane.locator(".l.rel code").all_text_contents()]


def whole(pane):
    """Scroll through a pane, so that all of its lines have come."""
    pane.evaluate("""async (pane) => {
        for (let y = 0; y < pane.scrollHeight; y += 300) {
            pane.scrollTop = y;
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        }
    }""")
    pane.locator(".chunk:empty").first.wait_for(state="detached")
    return pane


def test_a_statement_lights_up_what_it_became_in_every_tab(page):
    for name, part in (("Lowered", "Y_1["), ("LLVM IR", "fmul"), ("Assembly", "fm")):
        left, right = tab(page, name)
        left.get_by_text(UPDATE).click()
        found = lit(right, some=True)
        assert any(part in line for line in found), name
        assert lit(left) == [UPDATE]


def test_what_was_chosen_stays_chosen_from_tab_to_tab(page):
    left, _ = tab(page, "Lowered")
    left.get_by_text(UPDATE).click()
    page.get_by_role("tab", name="Assembly").click()
    page.locator(".title").hover()
    assert lit(page.locator(".code-view .pane").nth(1), some=True)


def test_an_instruction_leads_back_to_its_statement(page):
    left, right = tab(page, "Assembly")
    whole(right).locator(".l:not(.w0)").get_by_text("fm").first.hover()
    assert UPDATE in lit(left)


def test_a_line_of_a_block_head_stands_for_the_blocks_statements(page):
    left, right = tab(page, "Lowered")
    left.get_by_text("vk = T.axis.reduce").hover()
    assert lit(left) == [UPDATE] and len(lit(right)) == 1


def test_passes_that_changed_nothing_are_folded_away(page):
    tab(page, "Lowered")
    stages = page.get_by_label("Lowering stage")
    names = stages.locator("option").all_inner_texts()
    assert names[0] == "input" and "FlattenBuffer" in names
    page.get_by_role("button", name="idle passes").click()
    more = stages.locator("option").all_inner_texts()
    assert len(more) > len(names) and any("(nothing)" in name for name in more)
    stages.select_option("LowerOpaqueBlock")
    assert "T.block" not in page.locator(".code-view .pane").nth(1).text_content()


def test_the_mix_is_counted_and_vectors_carry_their_width(page):
    _, right = tab(page, "Assembly")
    said = page.locator(".mix").inner_text()
    assert "instructions:" in said and "by width:" in said and "scalar" in said
    widths = whole(right).locator(".l i").all_text_contents()
    assert {w for w in widths if w} <= {"64", "128", "256", "512"} and any(widths)
    for width in set(widths) - {""}:
        assert f"{widths.count(width)} {width}-bit" in said


def test_lines_are_walked_and_chosen_with_the_keyboard(page):
    left, right = tab(page, "Lowered")
    left.focus()
    for _ in range(60):
        page.keyboard.press("ArrowDown")
        if UPDATE in left.locator(".l.cur").text_content():
            break
    page.keyboard.press("Enter")
    assert len(lit(right)) == 1
    assert "1 lines of code" in page.locator(".sr[role=status]").inner_text()
    page.keyboard.press("Escape")
    assert lit(right) == []


def test_nothing_jumps_from_tab_to_tab_or_step_to_step(page):
    heights = set()
    for name in ("Program", "Loop nest", "Lowered", "LLVM IR", "Assembly"):
        for step in (0, 3, 6):
            page.locator(SLIDER).fill(str(step))
            page.get_by_role("tab", name=name).click()
            box = page.locator(".mlc").bounding_box()
            heights.add((round(box["height"]), round(page.locator(".foot").bounding_box()["y"])))
    assert len(heights) == 1, heights


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_every_tab_and_theme(chromium, url, scheme):
    with open_page(chromium, scheme=scheme) as page:
        page.goto(url)
        page.wait_for_function(f"document.querySelector('.mlc').dataset.theme === '{scheme}'")
        for name in ("Lowered", "LLVM IR", "Assembly"):
            left, right = tab(page, name)
            left.get_by_text(UPDATE).click()
            assert page.evaluate(CONTRAST) == [], name
        page.get_by_role("tab", name="Program").click()
        page.locator(".pane.after .t-name", has_text="j_1_init").first.click()
        assert page.evaluate(CONTRAST) == []


def test_a_narrow_page_holds_every_tab(chromium, url):
    with open_page(chromium, width=480) as page:
        page.goto(url)
        for name in ("Program", "Loop nest", "Lowered", "LLVM IR", "Assembly"):
            page.get_by_role("tab", name=name).click()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name


def test_a_page_without_code_says_how_to_have_it(chromium, tmp_path):
    path = tmp_path / "plain.html"
    record(schedule()).recording.html(path)
    with open_page(chromium) as page:
        page.goto(path.as_uri())
        page.get_by_role("tab", name="Assembly").click()
        assert "code=True" in page.locator(".code-view .pane").nth(1).text_content()
