"""The stepper in a real JupyterLab, and in Notebook 7: live, saved, untrusted; light and dark."""

import re

import pytest
from browser import open_page
from lab_server import NOTEBOOK, ROOT, LabServer

pytest.importorskip("jupyterlab")
pytest.importorskip("anywidget")
pytestmark = [pytest.mark.browser, pytest.mark.slow]

SHOW = """\
import handmade
from mlc_lab_widgets import Stepper
view = Stepper(handmade.recording())
seen = []
view.on_step(seen.append)
view"""
# A workspace for each notebook: otherwise the lab opens those of earlier tests again.
LAB = "lab/workspaces/{name}/tree/"
# Sits below the view; what it prints says what Python has seen of the reader.
TELL = "print('seen', seen, 'now', view.step, view.selection.get('text'))"


@pytest.fixture(scope="module")
def lab(tmp_path_factory, chromium):
    with LabServer(tmp_path_factory.mktemp("lab")) as server:
        yield server


def open_in_lab(chromium, **options):
    """Jupyter has errors of its own; a widget's script is loaded from a blob."""
    return open_page(chromium, ours=lambda error: "blob:" in (error.stack or ""), **options)


def start(lab, page, name, path=LAB):
    lab.write(name, SHOW, TELL)
    lab.open(page, name, path)
    lab.run_all(page)
    page.wait_for_selector(".mlc .pane.after .l")
    return page.locator(".mlc")


@pytest.mark.parametrize("path", [LAB, "notebooks/"], ids=["lab", "notebook7"])
def test_the_view_is_live(lab, chromium, path):
    with open_in_lab(chromium) as page:
        view = start(lab, page, f"live{len(path)}.ipynb", path)
        assert view.locator(".count").inner_text() == "0 / 6"
        view.get_by_role("button", name="Next step").click()
        view.get_by_role("button", name="Next step").click()
        changed = view.locator(".pane.after .l.changed code").text_content()
        assert changed.strip() == "for i, j_0, k, j_1 in T.grid(128, 16, 128, 8):"
        view.locator(".pane.after").get_by_text("vk = T.axis.reduce").click()
        # Python hears of it.
        page.locator(".jp-CodeCell").nth(1).locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
        told = page.locator(".jp-CodeCell").nth(1).locator(".jp-OutputArea-output")
        page.wait_for_function(
            "e => /seen \\[1, 2\\] now 2 vk = T.axis.reduce/.test(e.innerText)",
            arg=told.first.element_handle())  # fmt: skip


def test_a_schedule_is_explored(lab, chromium):
    """The whole way: a schedule is made, its steps timed and checked, and the view shows it."""
    with open_in_lab(chromium) as page:
        make = "from tests.observe.schedules import schedule\nsch = schedule()\nsch.explore()"
        lab.write("explore.ipynb", make)
        lab.open(page, "explore.ipynb")
        lab.run_all(page)
        view = page.locator(".mlc")
        view.get_by_role("button", name="Last step").click()
        assert "decompose_reduction" in view.locator(".now").inner_text()
        assert "equals the original" in view.locator(".facts").inner_text()
        assert "GFLOP/s" in view.locator(".facts").inner_text()
        assert view.locator(".chart .dot.refused").count() == 1
        for _ in range(2):
            view.get_by_role("button", name="Previous step").click()
        assert "Refused" in view.locator(".pane.after").text_content()


def test_the_kernel_makes_the_code_that_a_reader_asks_for(lab, chromium):
    with open_in_lab(chromium) as page:
        make = ("from tests.observe.schedules import schedule\nview = schedule().explore("
                "measure=False)\nview")
        lab.write("code.ipynb", make)
        lab.open(page, "code.ipynb")
        lab.run_all(page)
        view = page.locator(".mlc")
        view.get_by_role("button", name="Last step").click()
        view.get_by_role("tab", name="Assembly").click()
        code = view.locator(".code-view .pane").nth(1)
        code.get_by_text("main_kernel:").wait_for()
        view.get_by_role("tab", name="LLVM IR").click()
        assert "define " in code.inner_text()


def test_python_moves_the_view(lab, chromium):
    with open_in_lab(chromium) as page:
        lab.write("drive.ipynb", SHOW, "view.step = 5", "view.step = 99; print('at', view.step)")
        lab.open(page, "drive.ipynb")
        lab.run_all(page)
        page.wait_for_function(
            "document.querySelector('.mlc .count')?.textContent === '6 / 6'")
        assert "at 6" in page.locator(".jp-CodeCell").nth(2).inner_text()


def test_a_teachers_own_controls_drive_the_view(lab, chromium):
    """A slider linked in the browser, a tab and a selection set from Python."""
    own = """\
import handmade, ipywidgets
from mlc_lab_widgets import Stepper
view = Stepper(handmade.recording())
slider = ipywidgets.IntSlider(max=6)
ipywidgets.jslink((slider, "value"), (view, "step"))
ipywidgets.VBox([slider, view])"""
    with open_in_lab(chromium) as page:
        lab.write("own.ipynb", own, "view.tab = 'nest'; view.select('loop', 'i')")
        lab.open(page, "own.ipynb")
        lab.run_all(page)
        view = page.locator(".mlc")
        view.locator("svg.nest").first.wait_for()
        handle = page.locator(".widget-slider [role=slider], .noUi-handle").first
        handle.focus()
        for _ in range(6):
            page.keyboard.press("ArrowRight")
        page.wait_for_function(
            "document.querySelector('.mlc .count').textContent === '6 / 6'")
        assert view.get_by_role("tab", name="Loop nest").get_attribute("aria-selected") == "true"


def test_keys_in_the_view_do_not_reach_the_notebook_nor_the_other_way_round(lab, chromium):
    with open_in_lab(chromium) as page:
        view = start(lab, page, "keys.ipynb")
        active = "jupyterapp.shell.currentWidget.content.activeCellIndex"
        view.get_by_role("button", name="Next step").focus()
        cell = page.evaluate(active)
        for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "j", "k", "a", "b"):
            page.keyboard.press(key)
        assert view.locator(".count").inner_text() == "1 / 6"
        assert page.evaluate(active) == cell
        assert page.locator(".jp-CodeCell").count() == 2  # `a` and `b` would have added cells
        view.locator(".pane.after").focus()
        for key in (*["ArrowDown"] * 7, "Enter", "ArrowUp", "x"):  # the seventh line has names
            page.keyboard.press(key)
        assert view.locator(".pane.after .l.cur").count() == 1
        assert view.locator('.family [aria-pressed="true"]').count() == 1
        assert page.evaluate(active) == cell and page.locator(".jp-CodeCell").count() == 2
        # In command mode the notebook's keys are the notebook's.
        page.locator(".jp-CodeCell").nth(0).locator(".cm-content").click()
        page.keyboard.press("Escape")
        assert page.evaluate("!document.activeElement.closest('.mlc')")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("j")
        assert view.locator(".count").inner_text() == "1 / 6"
        assert page.evaluate(active) == 1


def test_the_view_follows_the_theme_of_the_lab(lab, chromium):
    with open_in_lab(chromium, scheme="light") as page:
        view = start(lab, page, "theme.ipynb")
        colours = []
        for theme, name in (("JupyterLab Light", "light"), ("JupyterLab Dark", "dark")):
            page.evaluate(
                "theme => void jupyterapp.commands.execute('apputils:change-theme', { theme })",
                theme,
            )
            page.wait_for_function(
                "name => document.querySelector('.mlc').dataset.theme === name", arg=name
            )
            colours.append(view.evaluate("e => getComputedStyle(e).backgroundColor"))
        light, dark = ([int(c) for c in re.findall(r"\d+", text)[:3]] for text in colours)
        assert min(light) > 200 and max(dark) < 60


def test_two_views_of_one_notebook_are_independent(lab, chromium):
    with open_in_lab(chromium) as page:
        lab.write("two.ipynb", SHOW, "other = Stepper(handmade.recording(False)); other")
        lab.open(page, "two.ipynb")
        lab.run_all(page)
        page.wait_for_function("document.querySelectorAll('.mlc').length === 2")
        first, second = page.locator(".mlc").all()
        second.get_by_role("button", name="Last step").click()
        assert first.locator(".count").inner_text() == "0 / 6"
        assert second.locator(".count").inner_text() == "6 / 6"


def test_an_untrusted_notebook_shows_readable_text(lab, chromium):
    """Untrusted is what comes from elsewhere: executed here by nbclient, never opened before."""
    nbclient = pytest.importorskip("nbclient")
    import nbformat

    find = f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'tests' / 'widgets')]!r}"
    lab.write("untrusted.ipynb", find, SHOW)
    notebook = nbformat.read(lab.work / "untrusted.ipynb", 4)
    nbclient.NotebookClient(notebook, kernel_name="python3").execute()
    assert "application/vnd.jupyter.widget-view+json" in notebook.cells[1].outputs[0].data
    nbformat.write(notebook, lab.work / "untrusted.ipynb")
    with open_in_lab(chromium) as page:
        lab.open(page, "untrusted.ipynb")
        shown = page.locator(".jp-OutputArea-output").first
        shown.locator("details").nth(6).wait_for()
        assert "reverse_compute_at(block=C, loop=j_0)" in shown.inner_text()
        shown.locator("summary").nth(4).click()
        assert "no iteration may depend on another" in shown.inner_text()
        assert page.locator(".mlc").count() == 0


def test_a_saved_notebook_shows_the_view_without_its_kernel(lab, chromium):
    with open_in_lab(chromium) as page:
        view = start(lab, page, "saved.ipynb")
        view.get_by_role("button", name="Last step").click()
        page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        page.evaluate(f"{NOTEBOOK}.sessionContext.shutdown()")
    with open_in_lab(chromium) as page:
        lab.open(page, "saved.ipynb")
        page.wait_for_selector(".mlc .pane.after .l")
        assert page.locator(".mlc .count").inner_text() == "6 / 6"
        page.locator(".mlc").get_by_role("button", name="Previous step").click()
        assert page.locator(".mlc .count").inner_text() == "5 / 6"
    saved = (lab.work / "saved.ipynb").read_text(encoding="utf-8")
    assert len(saved) < 300_000
