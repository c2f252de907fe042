"""The tuning board in JupyterLab: live while a search runs, stopped by its button, afterwards."""

import pytest
from browser import open_page
from lab_server import LabServer

pytest.importorskip("jupyterlab")
pytest.importorskip("anywidget")
pytestmark = [pytest.mark.browser, pytest.mark.slow]

SETUP = """\
from mlc_lab import meta_schedule as ms
from tests.meta_schedule.boards import Product, database

def space(sch):
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, 2))
    sch.reorder(i, j0, k, j1)
"""
SEARCH = """\
found = ms.tune_tir(Product, "llvm --num-cores=1", "tune", max_trials_global=100000,
                    num_trials_per_iter=4, space=ms.space_generator.ScheduleFn(space),
                    strategy="replay-func", seed=1)"""
TELL = "print('kept', len(found.records()), found.sessions()[0]['state'])"
LOOK = "view = database().board(title='by hand').show()\nview"
SAID = "print('selected', view.selected, view.source.record(view.selected).mutation)"


@pytest.fixture(scope="module")
def lab(tmp_path_factory, chromium):
    with LabServer(tmp_path_factory.mktemp("lab")) as server:
        yield server


def open_in_lab(chromium):
    return open_page(chromium, ours=lambda error: "blob:" in (error.stack or ""), height=1600)


def test_a_search_is_seen_while_it_runs_and_stopped_by_the_button(lab, chromium):
    with open_in_lab(chromium) as page:
        lab.write("live.ipynb", SETUP, SEARCH, TELL)
        lab.open(page, "live.ipynb", "lab/workspaces/live/tree/")
        lab.run_all(page)
        view = page.locator(".mlc-board")
        view.locator(".mark").nth(3).wait_for()
        assert "searching" in view.locator(".bar").inner_text()
        view.get_by_role("button", name="Stop, keep what was found").click()
        page.wait_for_selector("text=/kept \\d+ stopped/")
        page.wait_for_function(
            "!document.querySelector('.mlc-board .bar').innerText.includes('searching')")
        assert view.locator(".mark").count() > 3


def test_a_decision_is_edited_and_measured(lab, chromium):
    with open_in_lab(chromium) as page:
        lab.write("edit.ipynb", SETUP, LOOK, SAID)
        lab.open(page, "edit.ipynb", "lab/workspaces/edit/tree/")
        lab.run_all(page)
        view = page.locator(".mlc-board")
        view.get_by_role("button", name="trial 4, 20.2 µs").click()
        field = view.get_by_label("Decision tiles of j")
        field.fill("5, 7")
        view.get_by_role("button", name="Measure these decisions").click()
        page.wait_for_selector("text=does not fit this loop")
        field.fill("2 × 16")
        view.get_by_role("button", name="Measure these decisions").click()
        page.wait_for_function("document.querySelectorAll('.mlc-board .mark').length === 9")
        page.wait_for_selector(".mlc-board .detail >> text=tiles of j = 2 × 16")
        view.get_by_role("button", name="Open in the stepper").click()
        page.wait_for_selector(".mlc .pane.after .l")
