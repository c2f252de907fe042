"""The view of a run of the virtual machine, as an exported page."""

import numpy as np
import pytest
from browser import open_page

import mlc_lab
from mlc_lab import relax
from observe.pipelines import module

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    vm = relax.VirtualMachine(relax.build(module(), "llvm"), mlc_lab.cpu())
    args = [np.ones(s, "float32") for s in ((1, 64), (64, 32), (32, 10))]
    args[1][3, 4] = np.nan
    args[2] *= -1
    path = tmp_path_factory.mktemp("run") / "run.html"
    vm.trace("main", *args).show().html(path)
    return path.as_uri()


@pytest.fixture(params=["light", "dark"])
def page(chromium, url, request):
    with open_page(chromium, scheme=request.param) as page:
        page.goto(url)
        page.wait_for_selector(".bytecode .line")
        assert page.locator(".mlc-machine").get_attribute("data-theme") == request.param
        yield page


def current(page):
    return page.locator('.bytecode .line[aria-selected="true"] .text').inner_text()


def test_stepping(page):
    assert page.locator(".count").inner_text().startswith("0 / ")
    page.get_by_role("button", name="Next instruction").click()
    assert page.locator(".count").inner_text().startswith("1 / ")
    first = current(page)
    page.keyboard.press("ArrowDown")
    assert current(page) != first
    page.keyboard.press("End")
    assert page.locator(".sr[role=status]").inner_text().startswith("Instruction ")


def test_stopping_at_kernels_only(page):
    page.get_by_label("stop at kernels only").check()
    page.get_by_role("button", name="Next instruction").click()
    assert "kernel fused_matmul" in page.locator(".now-runs").inner_text()
    used = page.locator(".registers tr.used").all_inner_texts()
    assert len(used) == 3 and all("float32" in text for text in used)


def test_a_line_and_the_memory_plan_can_be_clicked(page):
    page.locator(".bytecode .line", has_text="softmax").click()
    assert "softmax" in page.locator(".now-runs").inner_text()
    assert page.locator(".memory .storage").count() >= 2
    box = page.locator(".memory svg").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.1, box["y"] + 40)
    at = int(page.locator(".count").inner_text().split(" / ")[0])
    assert at <= 2
    assert "if each tensor had its own" in page.locator(".bar").first.inner_text()


def kernel(page, n):
    page.locator(".strip .k").nth(n).click()


def test_the_time_line_leads_to_node_program_and_schedule(page):
    assert page.locator(".strip .k").count() == 3
    kernel(page, 1)
    panel = page.locator(".kernel-panel")
    assert "Kernel matmul1" in panel.inner_text() and "Node lv2 = matmul1" in panel.inner_text()
    panel.locator(".pane.before .l").first.wait_for()
    last = panel.locator(".of-steps").inner_text()
    assert last.split(" / ")[0] == last.split(" / ")[1] != "0"
    panel.get_by_label("Step of the schedule").fill("0")
    assert "for i0, i1, k in T.grid" in panel.locator(".pane.before").text_content()
    panel.get_by_role("button", name="lv1", exact=True).click()
    assert "Kernel fused_matmul_relu" in panel.inner_text()
    assert "goes to lv2" in panel.locator(".node-facts").inner_text()


def test_the_time_line_by_keyboard(page):
    strip = page.get_by_role("slider", name="Kernels over time")
    strip.focus()
    page.keyboard.press("Home")
    assert strip.get_attribute("aria-valuetext").startswith("fused_matmul_relu, ")
    page.keyboard.press("ArrowRight")
    assert strip.get_attribute("aria-valuenow") == "2"
    assert "kernel matmul1" in page.locator(".now-runs").inner_text()
    page.keyboard.press("Enter")
    page.locator(".kernel-panel .pane.before .l").first.wait_for()
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    before = page.locator(".count").inner_text()
    page.get_by_label("Step of the schedule").press("ArrowLeft")
    assert page.locator(".count").inner_text() == before


def test_what_a_register_holds_is_shown(page):
    kernel(page, 2)
    values = page.locator(".values")
    assert "1×10 float32: min" in values.inner_text()
    assert values.locator(".numbers td").count() == 10
    page.get_by_role("button", name="First instruction").click()
    page.locator(".registers [data-register='%1']").press("Enter")
    assert "1 NaN" in values.inner_text() and values.locator("svg.heat[role=img]").count() == 1
    assert values.locator(".heat .qx").count() == 1
    page.get_by_role("button", name="Next instruction").click()
    assert "64×32 float32" in values.inner_text()


def test_a_register_that_is_not_written_yet_shows_nothing(page):
    page.locator(".bytecode .line", has_text="alloc_tensor").first.click()
    row = page.locator(".registers tr", has_text="1x32 float32")
    assert row.locator("[data-register]").count() == 0
    kernel(page, 0)
    assert row.locator("[data-register]").count() == 1


@pytest.mark.parametrize("width", [360, 620])
def test_the_chart_of_memory_can_be_read_where_there_is_little_room(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    heights = page.locator(".memory .tick").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().height)")
    assert min(heights) >= 9.5
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_instructions_are_whole(page):
    lines = page.locator(".bytecode")
    assert lines.evaluate("e => e.scrollWidth <= e.clientWidth")
    page.set_viewport_size({"width": 620, "height": 900})
    assert lines.evaluate("e => e.scrollWidth <= e.clientWidth")
    # the code of a large model is no longer than the pane, in a narrow page too
    lines.evaluate("e => { for (let n = 0; n < 5; n++) e.append(...[...e.querySelectorAll('.line')]"
                   ".map((line) => line.cloneNode(true))); }")
    assert lines.bounding_box()["height"] <= 320
