"""Makes the pictures in docs/images: the stepper on matmul and relu, light and dark.

    python docs/screenshots.py

Needs the `test` extra and a Chromium. The schedule is the one of the README's picture: from the
naive program to a register tile that is vectorized and unrolled, with one refused primitive.
"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from browser import FLAGS, chromium_path, open_page  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

from mlc_lab.backend.peak import vector_bits  # noqa: E402
from mlc_lab.observe.session import record  # noqa: E402
from mlc_lab.schedule import Schedule, ScheduleError  # noqa: E402
from mlc_lab.script import from_source  # noqa: E402

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


def main():
    recording = record(scheduled(), "matmul and relu, 512 x 512").measure()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "stepper.html"
        recording.html(page_file)
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS)
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
                target = ROOT / "docs" / "images" / f"stepper-{scheme}.png"
                page.locator(".mlc").screenshot(path=target)
        browser.close()


if __name__ == "__main__":
    main()
