"""The cell magic `%%live` in a real JupyterLab: typed in the view, read by the kernel."""

import pytest
from browser import open_page
from lab_server import LabServer
from observe.test_typed import PROGRAM, SCHEDULE

pytest.importorskip("jupyterlab")
pytest.importorskip("anywidget")
pytestmark = [pytest.mark.browser, pytest.mark.slow]

NAMED = f'''\
import mlc_lab
Product = mlc_lab.script.from_source("""
{PROGRAM}""")'''


@pytest.fixture(scope="module")
def lab(tmp_path_factory, chromium):
    with LabServer(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.mark.parametrize("path, scheme", [
    ("lab/workspaces/{name}/tree/", "light"), ("lab/workspaces/{name}/tree/", "dark"),
    ("notebooks/", "dark"),
], ids=["light", "dark", "notebook7"])  # fmt: skip
def test_a_cell_is_typed(lab, chromium, path, scheme):
    with open_page(chromium, scheme=scheme, width=1600,
                   ours=lambda error: "blob:" in (error.stack or "")) as page:
        name = f"typed_{path[:3]}_{scheme}.ipynb"
        cell = f"%%live Product --caches '1K:2, 8K:4'\n{SCHEDULE}"
        lab.write(name, "%load_ext mlc_lab", NAMED, cell)
        lab.open(page, name, path)
        lab.run_all(page)
        view = page.locator(".mlc.typed")
        view.locator(".program").get_by_text("T.vectorized(8)").first.wait_for()
        view.locator(".fact", has_text="L1 misses").wait_for()
        view.get_by_text("Time", exact=True).wait_for()
        # by keys alone, none of which the notebook takes
        lines = view.get_by_role("textbox", name="Program and schedule")
        lines.focus()
        page.keyboard.press("Control+Home")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("End")
        for _ in range(3):
            page.keyboard.press("ArrowLeft")
        page.keyboard.press("Backspace")
        page.keyboard.type("16")
        view.locator(".program").get_by_text("T.vectorized(16)").first.wait_for()
        view.locator(".why li:not(.none)").first.wait_for()
        page.keyboard.press("Control+End")
        page.keyboard.press("Enter")
        page.keyboard.type("sch.vectorize(k)")
        page.keyboard.press("Enter")
        page.keyboard.type("# dd aa bb")  # shortcuts of a notebook
        line = view.locator(".lines > div[data-error]")
        line.wait_for()
        assert line.inner_text().strip() == "sch.vectorize(k)"
        assert "refused: " in line.get_attribute("data-error")
        assert view.locator(".program.stale").count() == 1
        assert page.locator(".jp-CodeCell").count() == 3
        source = page.evaluate("jupyterapp.shell.currentWidget.content.widgets[2].model"
                               ".sharedModel.getSource()")
        assert source == cell  # the cell's own text stays
        for _ in range(40):
            page.keyboard.press("Control+z")
        view.locator(".program:not(.stale)").get_by_text("T.vectorized(8)").first.wait_for()
        page.keyboard.press("Escape")
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowLeft")
        view.locator(".program").get_by_text("T.vectorized(4)").first.wait_for()
        assert 'live("tile", 4)' in lines.inner_text()
