"""Notebooks that a plain JupyterLab ran and saved, opened elsewhere: views without a kernel.

One notebook has every view. A first server runs it and saves it; a second one, which knows neither
its kernel nor its settings, opens it.
"""

import json
import shutil
from copy import deepcopy

import pytest
from browser import open_page
from lab_server import NOTEBOOK, LabServer

pytest.importorskip("jupyterlab")
pytest.importorskip("anywidget")
nbformat = pytest.importorskip("nbformat")
pytestmark = [pytest.mark.browser, pytest.mark.slow]

#: of a schedule, as one types them
LINES = """\
i, j, k = sch.get_loops("Y")
j0, j1 = sch.split(j, factors=[None, live("tile", 8)])
sch.vectorize(j1)
"""
#: the scripts of those whose cell has another name
SCRIPTS = {"forms": "live", "magic": "typed"}
KEPT = "application/vnd.mlc-lab.view+json"
LAB = "lab/workspaces/{name}/tree/"
#: a cell that shows each view, by name
CELLS = {
    "stepper": """\
import handmade
import mlc_lab, mlc_lab_widgets
%load_ext mlc_lab
view = mlc_lab_widgets.Stepper(handmade.recording())
view""",
    "comparison": """\
from test_compare import schedules
mlc_lab_widgets.compare(*schedules(), "two tilings")""",
    "access": """\
from tests.observe.programs import matmul
from mlc_lab.observe import accesses
accesses(matmul(8)).show("small")""",
    "graph": """\
from tests.observe.graphs import fused_module
fused_module().graph()""",
    "passes": """\
from tests.observe.pipelines import module, pipeline
pipeline().explore(module())""",
    "machine": """\
import numpy as np
from mlc_lab import relax
vm = relax.VirtualMachine(relax.build(module(), "llvm"), mlc_lab.cpu())
vm.trace("main", *[np.ones(s, "float32") for s in ((1, 64), (64, 32), (32, 10))]).show()""",
    "threads": """\
from observe.gpu.programs import square_tiles
mlc_lab.record_threads(square_tiles(32, 16, 2)).show()""",
    "workbench": """\
from tests.observe.schedules import module as product
bench = mlc_lab.workbench(product())
bench""",
    "live": """\
from mlc_lab.schedule import Schedule
Named = product()
sch = Schedule(Named)
i, j, k = sch.get_loops("Y")
j0, j1 = sch.split(j, factors=[None, mlc_lab.live("tile", 8)])
choices = sch.live(caches="1K:2, 8K:4")
choices""",
    "typed": """\
from observe.test_typed import PROGRAM, SCHEDULE
typed = mlc_lab.type_live(PROGRAM + SCHEDULE, caches="1K:2, 8K:4")
typed""",
    "forms": """\
from observe.test_live import tiled
from observe.test_live_forms import by_rows
forms = mlc_lab.explore_live({"columns": tiled([4, 8], 8), "rows": by_rows()},
                             caches="1K:2, 8K:4")
forms""",
    "magic": f"""\
%%live Named --caches "1K:2, 8K:4"
{LINES}""",
    "webgpu": """\
from test_webgpu_page import kernels
kernels().show()""",
    "card": """\
from mlc_lab import exercises
card = exercises.exercise("01.1", seed="ada")
card""",
    "report": """\
import pathlib, tempfile
from mlc_lab.exercises.teach.roster import file_name
from small_class import small_class
marks = pathlib.Path(tempfile.mkdtemp(), "loops")
marks.mkdir()
for one in small_class():
    (marks / file_name(one.student)).write_text(one.as_json(), encoding="utf-8")
exercises.class_report(marks)""",
    # a search shows its board when it begins, with nothing on it
    "board": """\
from mlc_lab import meta_schedule as ms
from tests.meta_schedule.boards import Product

def space(sch):
    i, j, k = sch.get_loops(sch.get_block("C"))
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, 2))

found = ms.tune_tir(Product, "llvm --num-cores=1", "tune", max_trials_global=3,
                    num_trials_per_iter=3, space=ms.space_generator.ScheduleFn(space),
                    strategy="replay-func", seed=1)""",
    "drive": """\
bench.pick("Y/j"); bench.apply("split", loop="Y/j", factors=[None, 8])
choices.set("tile", 16)
typed.type(typed.text.replace('"tile", 8', '"tile", 16'))""",
}
NAMES = list(CELLS)


def open_in_lab(chromium, **options):
    """A page that is tall enough for the whole notebook: Jupyter takes out of the page what is far
    out of sight. Errors in the scripts of the views and of the extension fail a test."""
    ours = ("blob:", "extensions/mlc-lab")
    return open_page(chromium, **{"height": 12000, **options},
                     ours=lambda error: any(part in (error.stack or "") for part in ours))


def shown(page, name):
    """The view in the output of a cell."""
    return page.locator(".jp-Notebook .jp-CodeCell").nth(NAMES.index(name)).locator(".mlc").first


@pytest.fixture(scope="module")
def saved(tmp_path_factory, chromium):
    """Text of the notebook as a JupyterLab with its own settings has saved it."""
    with LabServer(tmp_path_factory.mktemp("first"), save_state=False) as lab, \
            open_in_lab(chromium) as page:  # fmt: skip
        lab.write("all.ipynb", *CELLS.values())
        lab.open(page, "all.ipynb")
        lab.run_all(page)
        lab.wait_for_cells(page)
        shown(page, "stepper").get_by_role("button", name="Last step").click()
        shown(page, "board").locator(".mark").nth(2).wait_for()
        shown(page, "live").locator(".program").get_by_text("T.grid(16, 2, 16, 24)").wait_for()
        shown(page, "typed").locator(".program").get_by_text("T.vectorized(16)").first.wait_for()
        # the outputs of what has changed since it was shown are written anew
        kept = f"{NOTEBOOK}.content.model.cells.get(%d).outputs.get(0).data['{KEPT}'].%s"
        for name, entry in (("board", "alone.running === false"), ("workbench", "values.node > 0"),
                            ("live", "values.state[0] === 4"), ("typed", "values.typed.n === 1")):
            page.wait_for_function(kept % (NAMES.index(name), entry))
        page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        page.wait_for_function(f"!{NOTEBOOK}.model.dirty")
        return (lab.work / "all.ipynb").read_text(encoding="utf-8")


def trust(server, notebook):
    from nbformat.sign import NotebookNotary

    NotebookNotary(data_dir=str(server.folder / "data")).sign(notebook)


@pytest.fixture(scope="module")
def lab(tmp_path_factory, saved):
    """Another server with the notebook, which its reader trusts."""
    with LabServer(tmp_path_factory.mktemp("second"), save_state=False) as server:
        (server.work / "handed.ipynb").write_text(saved, encoding="utf-8")
        trust(server, nbformat.reads(saved, 4))
        yield server


def test_all_views_are_kept_within_their_limits(saved):
    notebook = json.loads(saved)
    assert "widgets" not in notebook["metadata"]
    for name, cell in zip(NAMES, notebook["cells"]):
        for output in cell["outputs"]:
            kept = output.get("data", {}).get(KEPT)
            if kept and "view" in kept:
                assert kept["view"] == SCRIPTS.get(name, name)
                assert kept["alone"].get("live", False) is False
                assert len(json.dumps(output)) < 300_000
    assert sum(KEPT in json.dumps(c["outputs"]) for c in notebook["cells"]) == len(CELLS) - 1


def open_handed(lab, page, path):
    page.goto(lab.url(path.format(name="handed") + "handed.ipynb"))
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")


@pytest.mark.parametrize("path, scheme", [(LAB, "light"), ("notebooks/", "dark")],
                         ids=["lab", "notebook7"])
def test_every_view_is_drawn_and_can_be_used(lab, chromium, path, scheme):
    with open_in_lab(chromium, scheme=scheme) as page:
        open_handed(lab, page, path)
        stepper = shown(page, "stepper")
        assert stepper.locator(".count").inner_text() == "6 / 6"  # where its reader has left it
        stepper.get_by_role("button", name="Previous step").click()
        assert stepper.locator(".count").inner_text() == "5 / 6"
        both = shown(page, "comparison")
        both.get_by_label("Step of the left schedule").fill("0")
        assert both.locator(".count").first.inner_text() == "0 / 1"
        access = shown(page, "access")
        access.get_by_role("button", name="Next access").click()
        assert access.locator(".count").inner_text().startswith("2 /")
        graph = shown(page, "graph")
        graph.locator(".node.group").first.locator(".toggle").click()
        graph.locator(".node.kernel").first.click()
        assert "TensorIR kernel" in graph.locator(".detail").inner_text()
        passes = shown(page, "passes")
        passes.get_by_role("option", name="FuseOps").click()
        passes.get_by_role("tab", name="Graph").click()
        assert passes.locator(".mlc-graph").count() == 2
        machine = shown(page, "machine")
        machine.get_by_role("button", name="Next instruction").click()
        assert machine.locator(".count").inner_text().startswith("1 / ")
        threads = shown(page, "threads")
        threads.get_by_role("button", name="Next instruction").click()
        assert "shared memory, A_shared" in threads.locator(".said").inner_text()
        bench = shown(page, "workbench")
        assert bench.locator(".attempts .node").count() == 2
        bench.locator('.attempts [data-node="0"]').click()
        assert "T.grid(16, 32, 24)" in bench.locator(".program").inner_text()
        choices = shown(page, "live")
        assert "T.grid(16, 2, 16, 24)" in choices.locator(".program").inner_text()
        choices.get_by_role("slider", name="tile").focus()
        page.keyboard.press("ArrowLeft")
        choices.locator(".program").get_by_text("T.grid(16, 4, 8, 24)").wait_for()
        typed = shown(page, "typed")
        assert "T.vectorized(16)" in typed.locator(".program").inner_text()
        assert 'live("tile", 16)' in typed.locator(".lines").inner_text()
        forms = shown(page, "forms")
        forms.get_by_role("radio", name="columns").focus()
        page.keyboard.press("ArrowDown")
        assert forms.get_by_role("radio", name="rows").is_checked()
        forms.get_by_role("slider", name="rows", exact=True).wait_for()
        magic = shown(page, "magic")
        assert "T.vectorized(8)" in magic.locator(".program").inner_text()
        magic.get_by_role("slider", name="tile").press("ArrowRight")
        magic.locator(".program").get_by_text("T.vectorized(16)").first.wait_for()
        gpu = shown(page, "webgpu")
        gpu.get_by_label("tile, right").select_option("64")
        assert "4096 threads" in gpu.locator(".lane").nth(1).locator(".facts").inner_text()
        card = shown(page, "card")
        assert "01.1" in card.inner_text()
        report = shown(page, "report")
        report.get_by_role("tab", name="Wrong answers").click()
        report.get_by_role("button", name="4 students in 01.2").click()
        assert "sch.reorder" in report.inner_text()
        assert report.get_by_role("button", name="Open in the stepper").count() == 0
        board = shown(page, "board")
        assert board.locator(".mark").count() == 3
        board.locator(".mark").first.click()
        assert "Trial 0" in board.locator(".detail").inner_text()
        assert page.get_by_text("model not found").count() == 0


def test_keys_in_a_view_do_not_reach_the_notebook(lab, chromium):
    with open_in_lab(chromium) as page:
        open_handed(lab, page, LAB)
        view = shown(page, "stepper")
        view.get_by_role("button", name="Previous step").focus()
        for key in ("ArrowLeft", "j", "k", "a", "b"):
            page.keyboard.press(key)
        assert view.locator(".count").inner_text() == "5 / 6"
        assert page.evaluate(f"{NOTEBOOK}.content.model.cells.length") == len(CELLS)


def test_running_a_cell_again_makes_its_view_live(lab, chromium):
    with open_in_lab(chromium) as page:
        shutil.copyfile(lab.work / "handed.ipynb", lab.work / "again.ipynb")
        lab.open(page, "again.ipynb")
        view = shown(page, "stepper")
        assert view.locator(".count").inner_text() == "6 / 6"
        run = ("n => { jupyterapp.shell.currentWidget.content.activeCellIndex = n;"
               " jupyterapp.commands.execute('notebook:run-cell'); }")
        page.evaluate(run, 0)
        page.wait_for_function("document.querySelector('.mlc .count').textContent === '0 / 6'")
        last = len(CELLS) - 1
        page.evaluate(f"{NOTEBOOK}.content.model.cells.get({last}).sharedModel.setSource"
                      "('view.step = 4 - view.step // 2')")  # fmt: skip
        page.evaluate(run, last)
        page.wait_for_function("document.querySelector('.mlc .count').textContent === '4 / 6'")
        # a page that is opened anew finds the view in its kernel
        page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        page.wait_for_function(f"!{NOTEBOOK}.model.dirty")
        page.reload()
        page.wait_for_function("document.querySelector('.mlc .count')?.textContent === '4 / 6'")
        page.wait_for_function(f"{NOTEBOOK}?.sessionContext?.session?.kernel?.status === 'idle'")
        page.evaluate(run, last)
        page.wait_for_function("document.querySelector('.mlc .count').textContent === '2 / 6'")


@pytest.mark.parametrize("path", [LAB, "notebooks/"], ids=["lab", "notebook7"])
def test_an_untrusted_notebook_shows_text(lab, chromium, path):
    with open_in_lab(chromium) as page:
        text = (lab.work / "handed.ipynb").read_text(encoding="utf-8")
        text = text.replace("import handmade", "import  handmade")  # nobody has signed that
        (lab.work / "stranger.ipynb").write_text(text, encoding="utf-8")
        lab.open(page, "stranger.ipynb", path)
        shown_text = page.locator(".jp-OutputArea-output").first
        shown_text.locator("details").nth(6).wait_for()
        assert "reverse_compute_at(block=C, loop=j_0)" in shown_text.inner_text()
        report = page.locator(".jp-Notebook .jp-CodeCell").nth(NAMES.index("report"))
        report.get_by_text("answers: 16, solved: 9").first.wait_for()
        assert page.locator(".mlc").count() == 0
        for name in NAMES[:-1]:
            cell = page.locator(".jp-Notebook .jp-CodeCell").nth(NAMES.index(name))
            picture = cell.locator(".jp-OutputArea-output img").first
            picture.scroll_into_view_if_needed()
            assert picture.evaluate("image => image.naturalWidth") > 100, name
            assert picture.get_attribute("alt")


#: what may be wrong with what a notebook has kept: how, and what is said of it
WRONG = [
    (lambda kept: kept.update(version=99), "another version of MLC Lab wrote it"),
    (lambda kept: kept.update(view="nothing"), "has no view nothing"),
    (lambda kept: kept.update(view="../../remote"), "names no view"),
    (lambda kept: kept.update(view="", styles=[]), "names no view"),  # somebody else's
    (lambda kept: kept.update(packed="H4sI"), "cannot be drawn"),
    (lambda kept: kept.pop("packed"), "too large to be kept"),
    (lambda kept: kept["values"].update(recording={"steps": "<img src=x onerror=alert(1)>"}),
     "cannot be drawn"),
]  # fmt: skip


def test_what_cannot_be_drawn_is_said(lab, chromium):
    """Bad data runs nothing, and the static form is there."""
    notebook = nbformat.read(lab.work / "handed.ipynb", 4)
    notebook.cells = [deepcopy(notebook.cells[0]) for _ in WRONG]
    for n, (cell, (change, _)) in enumerate(zip(notebook.cells, WRONG)):
        cell.id = f"wrong-{n}"
        change(cell.outputs[0].data[KEPT])
    trust(lab, notebook)
    nbformat.write(notebook, lab.work / "wrong.ipynb")
    with open_in_lab(chromium) as page:
        page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
        lab.open(page, "wrong.ipynb")
        for n, (_, told) in enumerate(WRONG):
            output = page.locator(".jp-Notebook .jp-CodeCell").nth(n)
            output.get_by_text(told).wait_for()
            assert "Run the cell again" in output.inner_text()
            output.locator("details").nth(6).wait_for()


def test_what_was_too_large_is_said_once(lab, chromium):
    notebook = nbformat.read(lab.work / "handed.ipynb", 4)
    cell = notebook.cells[0]
    notebook.cells = [cell]
    del cell.outputs[0].data[KEPT]["packed"]
    said = "The view is too large to be kept in a notebook: run the cell again to see it"
    cell.outputs[0].data["text/html"] += f'<p class="mlc-not-kept">{said}.</p>'
    trust(lab, notebook)
    nbformat.write(notebook, lab.work / "large.ipynb")
    with open_in_lab(chromium) as page:
        lab.open(page, "large.ipynb")
        page.locator(".jp-Notebook").get_by_text(said).wait_for()
        assert page.locator(".jp-OutputArea").inner_text().count("too large to be kept") == 1


def test_html_for_pages_has_the_pictures(saved, tmp_path):
    nbconvert = pytest.importorskip("nbconvert")
    html, _ = nbconvert.HTMLExporter().from_notebook_node(nbformat.reads(saved, 4))
    # two of the comparison
    assert html.count('src="data:image/svg+xml;base64,') == len(CELLS)
    assert "model not found" not in html and "Steps of" in html
