"""Pages of every view are clean for axe-core, which checks accessibility, in light and in dark."""

import pytest
from browser import open_page

import mlc_lab

axe = pytest.importorskip("axe_playwright_python.sync_playwright")
pytest.importorskip("anywidget")
pytestmark = pytest.mark.browser


def stepper():
    import handmade

    import mlc_lab_widgets

    return mlc_lab_widgets.Stepper(handmade.recording())


def comparison():
    from test_compare import schedules

    import mlc_lab_widgets

    return mlc_lab_widgets.compare(*schedules(), "two tilings")


def access():
    from observe.programs import matmul

    from mlc_lab.observe import accesses

    return accesses(matmul(8)).show("small")


def graph():
    from observe.graphs import fused_module

    return fused_module().graph()


def passes():
    from observe.pipelines import module, pipeline

    return pipeline().explore(module())


def machine():
    import numpy as np
    from observe.pipelines import module

    from mlc_lab import relax

    vm = relax.VirtualMachine(relax.build(module(), "llvm"), mlc_lab.cpu())
    shapes = ((1, 64), (64, 32), (32, 10))
    return vm.trace("main", *[np.ones(s, "float32") for s in shapes]).show()


def workbench():
    from observe.schedules import module

    return mlc_lab.workbench(module())


def live():
    from observe.test_live import tiled

    return tiled([4, 8]).live(caches="1K:2, 8K:4", title="product",
                              prose="With {live:tile} columns.")


def threads():
    from observe.gpu.programs import square_tiles

    return mlc_lab.record_threads(square_tiles(32, 16, 2)).show()


def typed():
    from observe.test_typed import PROGRAM, SCHEDULE

    return mlc_lab.type_live(PROGRAM + SCHEDULE, caches="1K:2, 8K:4")


def board():
    from meta_schedule.boards import database

    return database().board(numpy_s=30e-6, baselines={"as written": 70e-6})


def card():
    from mlc_lab import exercises

    made = exercises.exercise("01.1", seed="ada")
    made.check(made.source.wrong[0].answer)
    return made


def webgpu():
    from test_webgpu_page import kernels

    return kernels().show()


def class_report():
    import tempfile

    from small_class import graded

    import mlc_lab_widgets
    from mlc_lab.exercises.teach.roster import file_name

    with tempfile.TemporaryDirectory() as folder:
        for name in ("ada", "bob"):
            one = graded(name, lambda v: v.wrong[0].answer)
            with open(f"{folder}/{file_name(name)}", "w", encoding="utf-8") as file:
                file.write(one.as_json())
        return mlc_lab_widgets.ClassReport(folder, tab="wrong",
                                           chosen={"exercise": "01.2", "student": 0})


def workbench_for_a_gpu():
    from observe.test_workbench_gpu import copied

    return copied().show()


VIEWS = [stepper, comparison, access, board, card, graph, passes, machine, workbench, live, typed,
         class_report, webgpu, threads, workbench_for_a_gpu]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.__name__)
def test_a_page_is_clean_for_axe(chromium, view, tmp_path):
    path = tmp_path / "page.html"
    shown = view()
    shown.html(path)
    if hasattr(shown, "close"):
        shown.close()
    for scheme in ("light", "dark"):
        with open_page(chromium, scheme=scheme, width=1200) as page:
            page.goto(path.as_uri())
            page.locator(".mlc").first.wait_for()
            page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
            page.wait_for_timeout(300)  # sizes and colours settle
            told = problems(page)
            assert not told, f"{scheme}: " + "\n".join(told)


def problems(page):
    """What axe-core finds wrong with a page."""
    found = axe.Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
    return [f"{v['id']}: {v['help']}: {n['html'][:160]}"
            for v in found.response["violations"] for n in v["nodes"]]
