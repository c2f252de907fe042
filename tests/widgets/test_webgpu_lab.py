"""Kernels on the GPU of the browser in a real JupyterLab: what was measured comes to the kernel."""

import pytest
from browser import FLAGS, WEBGPU, chromium_path, open_page
from lab_server import LabServer
from test_stepper_page import CONTRAST

pytest.importorskip("jupyterlab")
pytest.importorskip("anywidget")
pytestmark = [pytest.mark.browser, pytest.mark.slow]

SHOW = """\
import mlc_lab
from observe.gpu.programs import square_tiles

heard = []
view = mlc_lab.in_browser(square_tiles(64, 16, 4), square_tiles(64, 32, 4),
                          names=["small tiles", "large tiles"], count=False).show()
view.on_runs(heard.append)
view"""
CHECK = """\
import math
assert len(view.runs) == 2 and len(heard) >= 2, view.runs
for run in view.runs:
    assert run["failure"] == "" and run["fault"] == "", run
    assert 0 < run["seconds"] < 60 and math.isfinite(run["error"]), run
    assert "swiftshader" in str(run["device"]).lower(), run
    print(run["variant"], run["seconds"], run["clock"])"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory, chromium):
    with LabServer(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture(scope="module")
def with_gpu(chromium):
    """A browser with WebGPU."""
    flags = [flag for flag in FLAGS if flag != "--disable-gpu"] + WEBGPU
    browser = chromium.browser_type.launch(executable_path=chromium_path(), args=flags)
    yield browser
    browser.close()


def opened(browser, **options):
    return open_page(browser, ours=lambda error: "blob:" in (error.stack or ""), **options)


def run(page, at):
    """Run one cell, without waiting for it."""
    page.evaluate("""(at) => {
        jupyterapp.shell.currentWidget.content.activeCellIndex = at;
        void jupyterapp.commands.execute("notebook:run-cell");
    }""", at)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_results_and_times_come_back_to_the_kernel(lab, with_gpu, scheme):
    name = f"race_{scheme}.ipynb"
    lab.write(name, SHOW, CHECK)
    with opened(with_gpu, scheme=scheme) as page:
        lab.open(page, name)
        run(page, 0)
        view = page.locator(".mlc-webgpu[data-gpu]")
        view.wait_for()
        assert "swiftshader" in view.locator(".where").inner_text()
        button = view.get_by_role("button", name="Run both")
        button.focus()
        page.keyboard.press("Enter")
        view.get_by_text("Done.").wait_for()
        for lane in view.locator(".lane").all():
            said = lane.locator(".facts").inner_text()
            assert "✓ equal" in said and "GFLOP/s" in said
        assert page.evaluate(CONTRAST) == []
        run(page, 1)
        lab.wait_for_cells(page)
        output = page.locator(".jp-CodeCell").last.locator(".jp-OutputArea-output")
        assert len(output.inner_text().strip().split("\n")) == 2


def test_python_chooses_what_is_shown_and_a_second_view_has_what_was_measured(lab, with_gpu):
    lab.write("again.ipynb", SHOW, "view.left = 1", "view")
    with opened(with_gpu) as page:
        lab.open(page, "again.ipynb")
        lab.run_all(page)
        lab.wait_for_cells(page)
        views = page.locator(".mlc-webgpu[data-gpu]")
        views.nth(1).wait_for()
        first, second = views.nth(0), views.nth(1)
        assert "large tiles" in first.locator(".lane").first.inner_text()
        first.locator(".lane").first.get_by_role("button", name="Run this one").click()
        first.get_by_text("Done.").wait_for()
        second.locator(".lane").first.get_by_text("✓ equal").wait_for()


def test_a_browser_without_a_gpu_says_so(lab, chromium):
    lab.write("none.ipynb", SHOW)
    with opened(chromium) as page:
        lab.open(page, "none.ipynb")
        lab.run_all(page)
        view = page.locator(".mlc-webgpu[data-gpu]")
        view.wait_for()
        assert "WebGPU" in view.inner_text()
        assert view.get_by_role("button", name="Run both").get_attribute("aria-disabled") == "true"
