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
