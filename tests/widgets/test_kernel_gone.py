"""Views in JupyterLab whose kernel restarts, dies or is exchanged: they say so and can be read."""

import re

import pytest
from browser import open_page
from lab_server import NOTEBOOK, LabServer
from test_saved_notebooks import CELLS

pytest.importorskip("jupyterlab")
pytest.importorskip("anywidget")
pytestmark = [pytest.mark.browser, pytest.mark.slow]

#: a view of each kind of life: steps, choices, what is built by clicking
SHOWN = ["stepper", "workbench", "live"]
SETUP = "from tests.observe.schedules import module as product\nimport mlc_lab, os"
#: a time that was measured
TIMED = re.compile(r"Time\s*[\d.]+ [mµn]?s")
#: how a kernel goes
ENDS = {
    "restarted": f"void {NOTEBOOK}.sessionContext.session.kernel.restart()",
    "died": f"void {NOTEBOOK}.sessionContext.session.kernel.requestExecute("
            "{code: 'import os, signal; os.kill(os.getpid(), signal.SIGKILL)'})",
    "shut down": f"void {NOTEBOOK}.sessionContext.shutdown()",
}  # fmt: skip


@pytest.fixture(scope="module")
def lab(tmp_path_factory, chromium):
    with LabServer(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.mark.parametrize("end", ENDS)
def test_a_view_says_that_its_kernel_has_gone(lab, chromium, end):
    ours = ("blob:", "extensions/mlc-lab")
    with open_page(chromium, height=6000, width=1400, scheme="dark" if end == "died" else "light",
                   ours=lambda error: any(part in (error.stack or "") for part in ours)) as page:
        name = f"{end.replace(' ', '_')}.ipynb"
        lab.write(name, SETUP, *[CELLS[view] for view in SHOWN])
        lab.open(page, name)
        lab.run_all(page)
        lab.wait_for_cells(page)
        stepper, bench, live = (page.locator(".jp-CodeCell").nth(n) for n in (1, 2, 3))
        live.get_by_role("slider", name="tile").press("ArrowRight")
        live.locator(".program").get_by_text("T.grid(16, 2, 16, 24)").wait_for()
        live.locator(".fact", has_text=TIMED).wait_for()
        stepper.get_by_role("button", name="Last step").click()
        assert page.locator(".mlc.left").count() == 0
        page.evaluate(ENDS[end])
        for view in (stepper, bench, live):
            told = view.get_by_role("alert").filter(has_text="Run the cell again")
            told.wait_for()
            assert told.count() == 1 and told.is_visible()
        if end == "died":  # JupyterLab says it in its own words
            page.locator(".jp-Dialog").get_by_role("button", name="Ok").click()
        # it stays as it was, and can be used as far as it needs nobody
        assert stepper.locator(".count").first.inner_text() == "6 / 6"
        stepper.get_by_role("button", name="Previous step").click()
        assert stepper.locator(".count").first.inner_text() == "5 / 6"
        assert "T.grid(16, 32, 24)" in bench.locator(".program").inner_text()
        assert not bench.get_by_role("button", name="Measure", exact=True).is_visible()
        assert live.locator(".fact", has_text=TIMED).count()
        slider = live.get_by_role("slider", name="tile")
        slider.press("ArrowLeft")
        live.locator(".program").get_by_text("T.grid(16, 4, 8, 24)").wait_for()
        slider.press("ArrowLeft")
        live.get_by_text("This page does not have").first.wait_for()
        if end == "shut down":
            return
        # run again it is live
        page.wait_for_function(f"{NOTEBOOK}?.sessionContext?.session?.kernel?.status === 'idle'")
        page.evaluate("n => { jupyterapp.shell.currentWidget.content.activeCellIndex = n;"
                      " jupyterapp.commands.execute('notebook:run-cell'); }", 1)
        page.wait_for_function("""document.querySelectorAll('.jp-CodeCell')[1]
            .querySelector('.mlc .count')?.textContent === '0 / 6'""")
        assert stepper.locator(".mlc.left").count() == 0
        assert bench.locator(".mlc.left").count() == 1
