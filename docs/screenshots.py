"""Makes the pictures in docs/images: the views on matmul and relu, light and dark.

    python docs/screenshots.py [stepper] [deeper] [workbench] [graph] [board] [typed]

Needs the `test` extra and a Chromium. The schedule is the one of the README's picture: from the
naive program to a register tile that is vectorized and unrolled, with one refused primitive.
"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "widgets")]

import conftest  # noqa: E402, F401  (finds the widgets of this checkout)
from browser import FLAGS, chromium_path, open_page  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

from mlc_lab.machine import vector_bits  # noqa: E402
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


NETWORK = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 1, 28, 28), "float32"), w0: R.Tensor((8, 1, 3, 3), "float32"),
             b0: R.Tensor((1, 8, 1, 1), "float32"), w1: R.Tensor((8, 8, 3, 3), "float32"),
             w2: R.Tensor((1568, 10), "float32"), b2: R.Tensor((10,), "float32")):
        with R.dataflow():
            lv0 = R.nn.conv2d(x, w0, padding=[1, 1, 1, 1])
            lv1 = R.add(lv0, b0)
            lv2 = R.nn.relu(lv1)
            lv3 = R.nn.max_pool2d(lv2, pool_size=[2, 2], strides=[2, 2])
            lv4 = R.nn.conv2d(lv3, w1, padding=[1, 1, 1, 1])
            lv5 = R.nn.relu(lv4)
            lv6 = R.add(lv5, lv3)
            lv7 = R.reshape(lv6, R.shape([1, 1568]))
            lv8 = R.matmul(lv7, w2)
            lv9 = R.add(lv8, b2)
            gv = R.nn.softmax(lv9)
            R.output(gv)
        return gv
"""


def graph(browser, folder):
    """What fusion did to a small network, and a run of it in the virtual machine."""
    import numpy as np

    import mlc_lab
    from mlc_lab import relax

    mod = from_source(NETWORK)
    page_file = folder / "passes.html"
    relax.get_pipeline("zero").explore(mod).html(page_file, "Passes over a small network")
    with open_page(browser, width=1240, height=900) as page:
        page.goto(page_file.as_uri())
        page.get_by_role("option", name="FuseOps").click()
        page.get_by_role("tab", name="Graph").click()
        page.locator(".mlc-graph").nth(1).locator(".node.group .toggle").first.click()
        page.wait_for_timeout(300)
        page.locator(".mlc-passes").screenshot(path=IMAGES / "passes.png")
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), mlc_lab.cpu())
    rng = np.random.default_rng(0)
    args = [rng.standard_normal([int(d) for d in p.struct_info.shape]).astype("float32")
            for p in mod["main"].params]
    run = vm.trace("main", *args).show()
    page_file = folder / "run.html"
    run.html(page_file)
    kernels = [n for n, step in enumerate(run.to_dict()["steps"]) if step["kernel"]]
    with open_page(browser, scheme="dark", width=1240, height=900) as page:
        page.goto(page_file.as_uri())
        page.get_by_label("Instruction", exact=True).fill(str(kernels[2]))
        page.evaluate("document.activeElement.blur()")
        page.locator(".mlc-machine").screenshot(path=IMAGES / "machine.png")


def board(browser, folder):
    """A search for a schedule of the product of 128."""
    from mlc_lab import meta_schedule as ms

    database = ms.tune_tir(
        from_source(PROGRAM.replace("512", "128")), "llvm --num-cores=1", folder / "tune",
        max_trials_global=64, num_trials_per_iter=16, seed=1)
    page_file = folder / "board.html"
    database.board(title="matmul and relu, 128 x 128").html(page_file)
    with open_page(browser, width=1240, height=900) as page:
        page.goto(page_file.as_uri())
        page.get_by_role("tab", name="Trials").click()
        page.locator("table.list tbody button").first.click()
        page.get_by_role("tab", name="Progress").click()
        page.wait_for_timeout(200)
        page.locator(".mlc-board").screenshot(path=IMAGES / "board.png")


TYPED = """\
@T.prim_func
def main(A: T.Buffer((128, 128), "float32"),
         B: T.Buffer((128, 128), "float32"),
         C: T.Buffer((128, 128), "float32")):
    T.func_attr({"tir.noalias": True})
    for i, j, k in T.grid(128, 128, 128):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

sch = tvm.tir.Schedule(main)
i, j, k = sch.get_loops("C")
j0, j1 = sch.split(j, factors=[None, live("tile", 4)])
sch.reorder(i, j0, k, j1)
sch.vectorize(j1)"""


def typed(browser, folder):
    """A schedule that was typed, and a line that is refused."""
    from typed_page import serve

    import mlc_lab

    view = mlc_lab.type_live(TYPED)
    view.wait()
    with open_page(browser, width=1400, height=900) as page:
        serve(page, view, folder / "typed.html")
        view.type(TYPED.replace('"tile", 4', '"tile", 32'))
        page.locator(".why li:not(.none)").first.wait_for()
        page.locator(".program").get_by_text("T.vectorized(32)").first.wait_for()
        view.wait()
        page.locator(".lines").focus()
        page.keyboard.press("Control+End")
        page.keyboard.press("Enter")
        page.keyboard.type("sch.parallel(k)")
        page.locator(".lines > div[data-error]").wait_for()
        page.wait_for_timeout(500)
        page.locator(".mlc").screenshot(path=IMAGES / "typed.png")
    view.close()


PICTURES = {"stepper": stepper, "deeper": deeper, "workbench": workbench, "graph": graph,
            "board": board, "typed": typed}


def main():
    wanted = sys.argv[1:] or list(PICTURES)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS)
        for name in wanted:
            PICTURES[name](browser, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
