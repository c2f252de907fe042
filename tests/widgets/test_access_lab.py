"""The access view in a real JupyterLab: live, with other caches asked for, saved, untrusted."""

import pytest
from browser import open_page
from lab_server import NOTEBOOK, ROOT, LabServer

pytest.importorskip("jupyterlab")
pytest.importorskip("anywidget")
pytestmark = [pytest.mark.browser, pytest.mark.slow]

SHOW = """\
from tests.observe.programs import matmul
from mlc_lab.observe import accesses
view = accesses(matmul(8)).show("small")
seen = []
view.on_position(seen.append)
view"""
TELL = "print('seen', seen, 'now', view.position, view.result.name)"
EXPLORE = """\
from tests.observe.schedules import schedule
sch = schedule()
sch.explore(counts=False)"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory, chromium):
    with LabServer(tmp_path_factory.mktemp("lab")) as server:
        yield server


def open_in_lab(chromium, **options):
    """Jupyter has errors of its own; a widget's script is loaded from a blob."""
    # Tall: JupyterLab takes cells that are far out of sight out of the page.
    options = {"height": 2400, **options}
    return open_page(chromium, ours=lambda error: "blob:" in (error.stack or ""), **options)


LAB = "lab/workspaces/{name}/tree/"


def start(lab, page, name, *cells, path=LAB):
    lab.write(name, SHOW, *cells)
    lab.open(page, name, path)
    lab.run_all(page)
    page.wait_for_selector(".mlc-access .readout .badge")
    return page.locator(".mlc-access")


@pytest.mark.parametrize("path", [LAB, "notebooks/"], ids=["lab", "notebook7"])
def test_the_view_is_live_both_ways(lab, chromium, path):
    with open_in_lab(chromium) as page:
        name = f"access{len(path)}.ipynb"
        view = start(lab, page, name, TELL, "view.position = 300", path=path)
        page.wait_for_function(
            "document.querySelector('.mlc-access .count').textContent.startsWith('301 /')")
        view.get_by_role("button", name="Next access").click()
        page.locator(".jp-CodeCell").nth(1).locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
        told = page.locator(".jp-CodeCell").nth(1).locator(".jp-OutputArea-output")
        page.wait_for_function(
            "e => /seen \\[300, 301\\] now 301 small, 2-way LRU/.test(e.innerText)",
            arg=told.first.element_handle())  # fmt: skip


def test_other_caches_are_simulated_on_request(lab, chromium):
    with open_in_lab(chromium) as page:
        view = start(lab, page, "caches.ipynb", TELL)
        view.get_by_text("Change the caches").click()
        view.get_by_label("size of L1").fill("256")
        view.get_by_label("replacement of L1").select_option("plru")
        view.get_by_role("button", name="Remove the last level").click()
        view.get_by_role("button", name="Simulate").click()
        page.wait_for_function(
            "document.querySelector('.mlc-access .levels').innerText.includes('L2') === false")
        chosen = view.get_by_label("Caches").locator("option:checked").inner_text()
        assert chosen == "L1 256 B, 32 B lines, 2-way, plru"
        # What cannot be is refused in words, and what was shown stays.
        view.get_by_label("ways of L1").fill("3")
        view.get_by_role("button", name="Simulate").click()
        view.locator(".refused").filter(has_text="the size has to be a multiple of").wait_for()
        assert view.get_by_label("Caches").locator("option:checked").inner_text() == chosen


def test_its_keys_do_not_reach_the_notebook(lab, chromium):
    with open_in_lab(chromium) as page:
        view = start(lab, page, "keys.ipynb", TELL)
        active = "jupyterapp.shell.currentWidget.content.activeCellIndex"
        view.get_by_role("button", name="Next access").focus()
        cell = page.evaluate(active)
        for key in ("ArrowRight", "m", "a", "b", "j"):
            page.keyboard.press(key)
        assert page.evaluate(active) == cell
        assert page.locator(".jp-CodeCell").count() == 2
        assert not view.locator(".count").inner_text().startswith("1 /")


def test_it_follows_the_theme_of_the_lab(lab, chromium):
    with open_in_lab(chromium, scheme="light") as page:
        start(lab, page, "theme.ipynb")
        for theme, name in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
            page.evaluate(
                "theme => void jupyterapp.commands.execute('apputils:change-theme', { theme })",
                theme)
            page.wait_for_function(
                "name => document.querySelector('.mlc-access').dataset.theme === name", arg=name)


def test_a_saved_notebook_shows_it_without_its_kernel(lab, chromium):
    with open_in_lab(chromium) as page:
        view = start(lab, page, "saved.ipynb")
        view.get_by_role("button", name="Last access").click()
        page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        page.evaluate(f"{NOTEBOOK}.sessionContext.shutdown()")
    with open_in_lab(chromium) as page:
        lab.open(page, "saved.ipynb")
        page.wait_for_selector(".mlc-access .readout .badge")
        view = page.locator(".mlc-access")
        assert view.locator(".count").inner_text().startswith("2,112 /")
        view.get_by_role("button", name="Previous access").click()
        assert view.locator(".count").inner_text().startswith("2,111 /")
    assert len((lab.work / "saved.ipynb").read_text(encoding="utf-8")) < 600_000


def test_an_untrusted_notebook_shows_readable_text(lab, chromium):
    nbclient = pytest.importorskip("nbclient")
    import nbformat

    find = f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'tests' / 'widgets')]!r}"
    lab.write("untrusted.ipynb", find, SHOW)
    notebook = nbformat.read(lab.work / "untrusted.ipynb", 4)
    nbclient.NotebookClient(notebook, kernel_name="python3").execute()
    nbformat.write(notebook, lab.work / "untrusted.ipynb")
    with open_in_lab(chromium) as page:
        lab.open(page, "untrusted.ipynb")
        shown = page.locator(".jp-OutputArea-output").first
        shown.locator("details").nth(3).wait_for()
        assert "Accesses of main: 2,112" in shown.inner_text()
        shown.locator("summary").first.click()
        assert "bytes back" in shown.inner_text()
        assert page.locator(".mlc").count() == 0


def test_the_stepper_counts_on_request(lab, chromium):
    """Point at a step, and have every step's misses counted: columns, facts and the roofline."""
    with open_in_lab(chromium) as page:
        lab.write("counts.ipynb", EXPLORE)
        lab.open(page, "counts.ipynb")
        lab.run_all(page)
        view = page.locator(".mlc")
        view.get_by_text("Cache misses and roofline").click()
        view.get_by_role("button", name="Count cache misses of every step").click()
        view.locator("table.counts tbody tr").first.wait_for()
        page.wait_for_selector(".roofline .point")
        assert "L1 misses" in view.locator(".facts").inner_text()
        row = view.locator("table.counts tbody tr").first.locator("td").all_inner_texts()
        assert row[0].endswith("s") and all(row[2:])
        # A point is a button: Enter on it goes to its step.
        point = view.locator(".roofline .point").last
        step = point.get_attribute("data-step")
        point.focus()
        page.keyboard.press("Enter")
        assert view.locator(".count").inner_text().startswith(f"{step} /")
        view.get_by_label("Level of the roofline").select_option("L1")
        assert "L1 delivers" in view.locator(".roofline").inner_text()
        # What was counted says why, of all steps but the program as it was.
        view.get_by_role("button", name="Last step").click()
        view.locator(".why li").first.wait_for()


def test_the_stepper_measures_what_is_left_on_request(lab, chromium):
    with open_in_lab(chromium) as page:
        lab.write("rest.ipynb", "from tests.observe.schedules import schedule\n"
                  "from mlc_lab.observe.session import record\nmade = record(schedule())\n"
                  "made.measure(progress=False)\nmade.recording.programs[1].cost = None\n"
                  "made.recording.show()")
        lab.open(page, "rest.ipynb")
        lab.run_all(page)
        view = page.locator(".mlc")
        ask = view.get_by_role("button", name="Measure the rest")
        assert "1 programs have no time yet" in view.locator(".unmeasured").inner_text()
        assert view.locator(".chart .untimed").count() > 0
        ask.click()
        ask.wait_for(state="hidden")
        assert view.locator(".chart .untimed").count() == 0
