"""The workbench in a real JupyterLab, and in Notebook 7: live, by mouse and by keyboard, saved."""

import re

import pytest
from browser import open_page
from lab_server import NOTEBOOK, ROOT, LabServer
from test_stepper_page import CONTRAST

pytest.importorskip("jupyterlab")
pytest.importorskip("anywidget")
pytestmark = [pytest.mark.browser, pytest.mark.slow]

OPEN = """\
import mlc_lab
from tests.observe.schedules import module, schedule
view = mlc_lab.workbench(module())
seen = []
view.on_node(seen.append)
view"""
LAB = "lab/workspaces/{name}/tree/"


@pytest.fixture(scope="module")
def lab(tmp_path_factory, chromium):
    with LabServer(tmp_path_factory.mktemp("lab")) as server:
        yield server


def open_in_lab(chromium, **options):
    return open_page(chromium, ours=lambda error: "blob:" in (error.stack or ""), **options)


def start(lab, page, name, *cells, path=LAB):
    lab.write(name, *(cells or (OPEN,)))
    lab.open(page, name, path)
    lab.run_all(page)
    page.wait_for_selector(".mlc.bench .pick")
    return page.locator(".mlc.bench").first


def pick(view, name):
    view.get_by_role("button", name=name, exact=True).first.click()
    view.locator(".palette .entry").first.wait_for()


def entry(view, op):
    return view.locator(f'.entry[data-op="{op}"]')


def program(view):
    return view.locator(".program").inner_text()


def shows(view, line):
    view.locator(".program").get_by_text(line).wait_for()


def tell(page, cell, code):
    """Run code in a new last cell's place and return what it printed."""
    found = page.locator(".jp-CodeCell").nth(cell)
    found.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(code)
    page.keyboard.press("Control+Enter")
    return found


@pytest.mark.parametrize("path", [LAB, "notebooks/"], ids=["lab", "notebook7"])
def test_a_schedule_is_made_by_clicking(lab, chromium, path):
    with open_in_lab(chromium) as page:
        view = start(lab, page, f"click{len(path)}.ipynb", OPEN, "", path=path)
        pick(view, "loop j, extent 32")
        assert "loop j" in view.locator(".palette-head").inner_text()
        entry(view, "split").locator(".entry-name").click()
        form = entry(view, "split").locator("form")
        assert form.locator(".preview").inner_text() == "32 → 4 × 8"
        form.locator("input[type=range]").fill("4")  # of 1 2 4 8 16 32
        assert form.locator(".preview").inner_text() == "32 → 2 × 16"
        form.locator(".verdict.good").wait_for()
        form.get_by_text("What would change").click()
        form.locator(".change .l.new", has_text="T.grid(16, 2, 16, 24)").wait_for()
        form.get_by_role("button", name="Apply split").click()
        shows(view, "for i, j_0, j_1, k in T.grid(16, 2, 16, 24)")
        assert "factors=[None, 16]" in view.locator("textarea").input_value()
        # What the step made is picked now; apply a second one with its defaults.
        view.locator(".palette-head", has_text="loop j_1").wait_for()
        entry(view, "vectorize").locator(".quick").click()
        view.get_by_text("T.vectorized(16)").first.wait_for()
        assert view.locator(".attempts .node").count() == 3
        told = tell(page, 1, "print('at', view.node, seen, view.python(False))")
        page.wait_for_function(
            "e => /at 2 \\[1, 2\\] [\\s\\S]*vectorize\\(j_1\\)/.test(e.innerText)",
            arg=told.element_handle())  # fmt: skip


def test_undo_redo_branch_and_jump(lab, chromium):
    with open_in_lab(chromium) as page:
        view = start(lab, page, "branch.ipynb")
        pick(view, "loop i, extent 16")
        entry(view, "parallel").locator(".quick").click()
        view.get_by_text("T.parallel(16)").wait_for()
        view.get_by_role("button", name="Undo").click()
        view.get_by_text("for i, j, k in T.grid(16, 32, 24)").wait_for()
        pick(view, "loop k, extent 24")
        entry(view, "unroll").locator(".quick").click()
        view.get_by_text("T.unroll(24)").wait_for()
        assert view.locator(".attempts .node").count() == 3
        view.locator('.attempts [data-node="1"]').click()
        view.get_by_text("T.parallel(16)").wait_for()
        assert "T.unroll" not in program(view)
        view.get_by_role("button", name="Undo").click()
        view.get_by_text("for i, j, k in T.grid(16, 32, 24)").wait_for()
        view.get_by_role("button", name="Redo").click()
        view.get_by_text("T.parallel(16)").wait_for()


def test_everything_by_keyboard(lab, chromium):
    with open_in_lab(chromium) as page:
        view = start(lab, page, "keyboard.ipynb")
        cells = page.locator(".jp-CodeCell").count()
        view.get_by_role("button", name="loop i, extent 16", exact=True).first.focus()
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.ariaLabel") == "loop j, extent 32"
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.ariaLabel") == "block Y"
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        view.locator(".palette-head", has_text="loop j").wait_for()
        # Into the palette, open split, set the factor, apply: by keys alone.
        entry(view, "split").locator(".entry-name").focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")  # to the number of loops
        page.keyboard.press("Tab")  # the slider
        assert page.evaluate("document.activeElement.type") == "range"
        page.keyboard.press("ArrowRight")
        assert entry(view, "split").locator(".preview").inner_text() == "32 → 2 × 16"
        entry(view, "split").locator(".apply").focus()
        page.keyboard.press("Enter")
        shows(view, "for i, j_0, j_1, k in T.grid(16, 2, 16, 24)")
        assert view.locator(".status").inner_text().startswith("applied: j_0, j_1 = sch.split(j")
        # Undo by key, then along the tree.
        page.keyboard.press("Control+z")
        view.get_by_text("for i, j, k in T.grid(16, 32, 24)").wait_for()
        view.locator('.attempts [data-node="0"]').focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        shows(view, "for i, j_0, j_1, k in T.grid(16, 2, 16, 24)")
        page.evaluate("document.activeElement.closest('.mlc').querySelector('.pick').focus()")
        for key in ("a", "b", "x", "d", "d", "j", "k"):  # the notebook's own keys stay out
            page.keyboard.press(key)
        assert page.locator(".jp-CodeCell").count() == cells


def test_a_refused_primitive_says_why(lab, chromium):
    with open_in_lab(chromium) as page:
        view = start(lab, page, "refused.ipynb")
        pick(view, "loop k, extent 24")
        row = entry(view, "vectorize")
        assert row.locator(".quick").get_attribute("aria-disabled") == "true"
        assert "refused" in row.locator(".quick").get_attribute("aria-label")
        row.locator(".entry-name").click()
        assert "k" in row.locator(".reason").inner_text()
        # A choice that would be refused says so before it is applied.
        entry(view, "split").locator(".entry-name").click()
        form = entry(view, "split").locator("form")
        form.locator("input[type=number]").nth(1).fill("0")
        form.locator(".verdict.bad", has_text="positive").wait_for()
        assert form.locator(".apply").get_attribute("aria-disabled") == "true"
        assert view.locator(".attempts .node").count() == 1


def test_the_python_is_pasted_back(lab, chromium):
    from playwright.sync_api import expect

    with open_in_lab(chromium) as page:
        view = start(lab, page, "paste.ipynb")
        text = view.locator("textarea")
        text.fill("sch = tvm.tir.Schedule(Module)\nb = sch.get_block('Y')\n"
                  "i, j, k = sch.get_loops(b)\nsch.parallel(i)\nsch.unroll(k)\n")  # fmt: skip
        view.get_by_role("button", name="Read this text").click()
        view.get_by_text("T.unroll(24)").wait_for()
        assert view.locator(".attempts .node").count() == 3
        expect(text).to_have_value(re.compile("Y = sch.get_block"))
        text.fill("sch.parallel(i)\n")
        view.get_by_role("button", name="Read this text").click()
        view.locator(".text-error", has_text="'i' is not defined before this line").wait_for()
        assert text.input_value() == "sch.parallel(i)\n"
        view.get_by_role("button", name="Discard").click()
        expect(text).to_have_value(re.compile("Y = sch.get_block"))


def test_measuring_fills_in_the_times(lab, chromium):
    with open_in_lab(chromium) as page:
        view = start(lab, page, "measure.ipynb", OPEN.replace("module())", "schedule())"))
        view.get_by_role("button", name="Measure").click()
        page.wait_for_function(
            "() => [...document.querySelectorAll('.attempts .node:not(.bad) .time')]"
            ".every(t => /s/.test(t.textContent))")  # fmt: skip
        view.get_by_role("button", name="Measure", exact=True).wait_for()
        assert view.locator(".status").inner_text().startswith("measured")
        facts = view.locator(".facts").inner_text()
        assert "equals the original" in facts and "GFLOP/s" in facts
        assert view.locator(".attempts .node.bad").count() == 1


def test_a_schedule_written_in_code_opens_in_the_same_view(lab, chromium):
    with open_in_lab(chromium) as page:
        view = start(lab, page, "code.ipynb",
                     OPEN.split("view")[0] + "schedule().workbench()")  # fmt: skip
        assert view.locator(".attempts .node").count() == 7
        assert "decompose_reduction" in view.locator(".now-op").inner_text()
        view.locator(".attempts .node.bad").click()
        assert "was refused" in view.locator(".refusal-box").inner_text()


def test_two_views_of_one_notebook_are_independent(lab, chromium):
    with open_in_lab(chromium) as page:
        start(lab, page, "two.ipynb", OPEN, "other = mlc_lab.workbench(module()); other")
        page.wait_for_function("document.querySelectorAll('.mlc.bench').length === 2")
        first, second = page.locator(".mlc.bench").all()
        pick(second, "loop i, extent 16")
        entry(second, "parallel").locator(".quick").click()
        second.get_by_text("T.parallel(16)").wait_for()
        assert "T.parallel" not in program(first)
        assert first.locator(".palette .entry").count() == 0


def test_code_moves_the_view(lab, chromium):
    with open_in_lab(chromium) as page:
        view = start(lab, page, "drive.ipynb", OPEN,
                     "view.pick('Y/i'); view.apply('parallel', loop='Y/i'); view.bench.undo()\n"
                     "view.node = 1")  # fmt: skip
        view.get_by_text("T.parallel(16)").wait_for()
        view.locator(".palette-head", has_text="loop i").wait_for()


def test_a_saved_notebook_shows_the_attempts_without_its_kernel(lab, chromium):
    with open_in_lab(chromium) as page:
        start(lab, page, "saved.ipynb", OPEN.replace("module())", "schedule())"))
        page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        page.evaluate(f"{NOTEBOOK}.sessionContext.shutdown()")
    with open_in_lab(chromium) as page:
        lab.open(page, "saved.ipynb")
        page.wait_for_selector(".mlc.bench .pick")
        view = page.locator(".mlc.bench")
        assert view.locator(".attempts .node").count() == 7
        view.locator('.attempts [data-node="1"]').click()
        view.get_by_text("for i, j_0, j_1, k in T.grid(16, 4, 8, 24)").wait_for()
        view.get_by_role("button", name="loop k, extent 24").first.click()
        view.get_by_text("The kernel does not answer.").wait_for()
    assert (lab.work / "saved.ipynb").stat().st_size < 400_000


def test_an_untrusted_notebook_shows_readable_text(lab, chromium):
    nbclient = pytest.importorskip("nbclient")
    import nbformat

    find = f"import sys; sys.path[:0] = {[str(ROOT)]!r}"
    lab.write("untrusted.ipynb", find, OPEN.replace("module())", "schedule())"))
    notebook = nbformat.read(lab.work / "untrusted.ipynb", 4)
    nbclient.NotebookClient(notebook, kernel_name="python3").execute()
    nbformat.write(notebook, lab.work / "untrusted.ipynb")
    with open_in_lab(chromium) as page:
        lab.open(page, "untrusted.ipynb")
        shown = page.locator(".jp-OutputArea-output").first
        shown.locator("details").nth(7).wait_for()
        assert "sch.reverse_compute_at(C, j_0)" in shown.inner_text()
        assert page.locator(".mlc").count() == 0


def test_the_view_follows_the_theme_of_the_lab(lab, chromium):
    with open_in_lab(chromium, scheme="light") as page:
        view = start(lab, page, "theme.ipynb")
        pick(view, "loop j, extent 32")
        for op in ("split", "reorder", "rfactor", "annotate"):
            entry(view, op).locator(".entry-name").click()
        view.locator('.entry[data-op="split"] input[type=number]').last.fill("3")
        view.locator(".verdict.good").wait_for()
        for theme, name in (("JupyterLab Light", "light"), ("JupyterLab Dark", "dark")):
            page.evaluate(
                "theme => void jupyterapp.commands.execute('apputils:change-theme', { theme })",
                theme,
            )
            page.wait_for_function(
                "name => document.querySelector('.mlc').dataset.theme === name", arg=name
            )
            colour = view.evaluate("e => getComputedStyle(e).backgroundColor")
            shade = [int(c) for c in re.findall(r"\d+", colour)[:3]]
            assert min(shade) > 200 if name == "light" else max(shade) < 60
            assert page.evaluate(CONTRAST) == []


@pytest.mark.parametrize("path", [LAB, "notebooks/"], ids=["lab", "notebook7"])
def test_guess_first_in_a_live_notebook(lab, chromium, path):
    with open_in_lab(chromium) as page:
        make = OPEN.split("view")[0] + (
            "view = schedule().explore(guess=True, progress=False)\nheard = []\n"
            "view.on_guess(heard.append)\nview")  # fmt: skip
        name = f"guess{len(path)}.ipynb"
        lab.write(name, make, "")
        lab.open(page, name, path)
        lab.run_all(page)
        card = page.locator(".guess-card")
        card.get_by_role("radio", name="legal").check()
        card.get_by_role("radio", name="about the same").check()
        card.get_by_role("button", name="Reveal").click()
        assert "it is legal" in card.inner_text()
        assert "j_0, j_1, k" in page.locator(".pane.after").text_content()
        told = tell(page, 1, "print(view.step, heard[-1]['asked'], view.guesses['answers'])")
        page.wait_for_function(
            "e => /1 2 {'1': {'legal': 'legal', 'speed': 'same'}}/.test(e.innerText)",
            arg=told.element_handle())  # fmt: skip


def test_a_click_is_on_the_screen_soon(lab, chromium):
    """No time is asserted beyond what tells a moment from a hang."""
    with open_in_lab(chromium) as page:
        view = start(lab, page, "speed.ipynb")
        times = []
        for _ in range(4):
            pick(view, "loop i, extent 16")
            entry(view, "parallel").locator(".quick").click()
            view.get_by_text("T.parallel(16)").wait_for()
            view.locator(".status.good").wait_for()
            times.append(float(view.evaluate("e => e.dataset.applied")))
            view.get_by_role("button", name="Undo").click()
            view.get_by_text("for i, j, k in T.grid(16, 32, 24)").wait_for()
        print(f"apply to screen: {sorted(times)} ms")
        assert min(times) < 2000
