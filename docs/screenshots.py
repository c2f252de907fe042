"""Makes the pictures in docs/images: the views on matmul and relu, light and dark.

    python docs/screenshots.py [stepper] [deeper] [workbench]

Needs the `test` extra and a Chromium. The schedule is the one of the README's picture: from the
naive program to a register tile that is vectorized and unrolled, with one refused primitive.
"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import conftest  # noqa: E402, F401  (finds the widgets of this checkout)
from browser import FLAGS, chromium_path, open_page  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

from mlc_lab.backend.peak import vector_bits  # noqa: E402
from mlc_lab.observe.session import record  # noqa: E402
from mlc_lab.observe.workbench import Workbench  # noqa: E402
from mlc_lab.schedule import Schedule, ScheduleError  # noqa: E402
from mlc_lab.script import from_source  # noqa: E402
from mlc_lab_widgets.export import write  # noqa: E402

IMAGES = ROOT / "docs" / "images"

PROGRAM = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((512, 512), "float32"), B: T.Buffer((512, 512), "float32"),
             C: T.Buffer((512, 512), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        Y = T.alloc_buffer((512, 512))
        for i, j, k in T.grid(512, 512, 512):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(512, 512):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
"""


def scheduled():
    """The schedule of the pictures."""
    sch = Schedule(from_source(PROGRAM))
    block = sch.get_block("Y")
    i, j, k = sch.get_loops(block)
    lanes = vector_bits() // 32
    i0, i1 = sch.split(i, factors=[None, 8 if lanes == 16 else 6])
    j0, j1 = sch.split(j, factors=[None, 2 * lanes])
    sch.reorder(j0, i0, k, i1, j1)
    try:
        sch.vectorize(k)
    except ScheduleError:
        pass
    packed = sch.cache_read(block, 1, "global")
    sch.compute_at(packed, j0)
    relu = sch.get_block("C")
    sch.reverse_compute_at(relu, i0)
    j1o, j1v = sch.split(j1, factors=[None, lanes])
    sch.vectorize(j1v)
    sch.unroll(i1)
    sch.unroll(j1o)
    rows, columns = sch.get_loops(relu)[-2:]
    sch.unroll(rows)
    sch.vectorize(sch.split(columns, factors=[None, lanes])[1])
    sch.decompose_reduction(block, k)
    return sch


def stepper(browser, folder):
    """A step that moves a block, light, and a refused one, dark."""
    recording = record(scheduled(), "matmul and relu, 512 x 512").measure()
    page_file = folder / "stepper.html"
    recording.html(page_file)
    names = [step.op for step in recording.steps]
    refused = next(n for n, step in enumerate(recording.steps) if step.error)
    for scheme, step in (("light", names.index("reverse_compute_at")), ("dark", refused)):
        with open_page(browser, scheme=scheme, width=1240, height=800) as page:
            page.goto(page_file.as_uri())
            page.locator("input[type=range]").evaluate(
                "(e, step) => { e.value = step; e.dispatchEvent(new Event('input')) }",
                str(step),
            )
            page.wait_for_timeout(200)
            page.locator(".mlc").screenshot(path=IMAGES / f"stepper-{scheme}.png")


def deeper(browser, folder):
    """A statement and the instructions it became, light; a step's loop nests, dark."""
    recording = record(scheduled(), "matmul and relu, 512 x 512").recording
    page_file = folder / "deeper.html"
    recording.html(page_file, code=True)
    names = [step.op for step in recording.steps]
    for name, scheme, tab, step in (
        ("stepper-assembly", "light", "Assembly", len(names) - 1),
        ("stepper-nest", "dark", "Loop nest", names.index("split") + 1),
    ):
        with open_page(browser, scheme=scheme, width=1240, height=1000) as page:
            page.goto(page_file.as_uri())
            page.get_by_role("tab", name=tab).click()
            page.locator("input[type=range]").evaluate(
                "(e, step) => { e.value = step; e.dispatchEvent(new Event('input')) }", str(step))
            if tab == "Assembly":
                left = page.locator(".code-view .pane").first
                left.get_by_text("Y[vi, vj] = Y[vi, vj] +").click(position={"x": 8, "y": 8})
                page.locator(".title").hover()
            else:
                page.locator(".pane").evaluate_all("all => all.forEach(e => (e.scrollTop = 90))")
                page.locator('.pane.before g[aria-label^="loop j,"] text.h').first.hover()
            page.wait_for_timeout(200)
            page.locator(".mlc").screenshot(path=IMAGES / f"{name}.png")


def workbench(browser, folder):
    """Two ways from one split, and the form of another."""
    view = Workbench(from_source(PROGRAM), title="matmul and relu").show()
    lanes = vector_bits() // 32
    view.apply("split", loop="Y/j", factors=[None, lanes])
    view.apply("reorder", ordered_loops=["k", "j_1"])
    view.apply("vectorize", loop="j_1")
    view.apply("parallel", loop="Y/i")
    view.node = 1
    try:
        view.apply("vectorize", loop="k")
    except ScheduleError:
        pass
    view.apply("reverse_compute_at", block="C", loop="Y/j_0")
    view.measure()
    view.node = 3
    view.pick("Y/j_0")
    names = ("tree", "node", "selection", "palette", "costs")
    values = {**{name: getattr(view, name) for name in names}, "live": True}
    page_file = folder / "workbench.html"
    styles = ("stepper.css", "workbench.css")
    page_file.write_text(write([(values, "")], "", "workbench.js", styles=styles), encoding="utf-8")
    with open_page(browser, width=1240, height=1100) as page:
        page.goto(page_file.as_uri())
        for op in ("rfactor", "split"):
            page.locator(f'.entry[data-op="{op}"] .entry-name').click()
        page.evaluate("document.activeElement.blur()")
        page.locator(".palette").evaluate("e => (e.scrollTop = 0)")
        page.wait_for_timeout(300)
        page.locator(".mlc").screenshot(path=IMAGES / "workbench.png")


PICTURES = {"stepper": stepper, "deeper": deeper, "workbench": workbench}


def main():
    wanted = sys.argv[1:] or list(PICTURES)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS)
        for name in wanted:
            PICTURES[name](browser, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
