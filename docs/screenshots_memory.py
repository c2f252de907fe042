"""Makes the pictures of memory in docs/images: the access view, the counts with the roofline, and a
page of choices.

    python docs/screenshots_memory.py

Needs the `test` extra and a Chromium.
"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from browser import FLAGS, chromium_path, open_page  # noqa: E402
from observe.programs import matmul, tiled  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

from mlc_lab import live  # noqa: E402
from mlc_lab.observe.access import accesses  # noqa: E402
from mlc_lab.observe.live import Choices  # noqa: E402
from mlc_lab.observe.session import record  # noqa: E402
from mlc_lab.schedule import Schedule  # noqa: E402
from mlc_lab_widgets.live import compute, write  # noqa: E402

IMAGES = ROOT / "docs" / "images"


def access_view(browser, folder):
    """A small tiled product in small caches, light."""
    accesses(tiled(16, columns=8), title="a tiled product").html(folder / "access.html", "small")
    with open_page(browser, scheme="light", width=1240, height=900) as page:
        page.goto((folder / "access.html").as_uri())
        page.locator("input[type=range]").fill("555")
        page.get_by_role("button", name="Next miss").click()
        page.wait_for_timeout(200)
        page.locator(".mlc").screenshot(path=IMAGES / "access-light.png")


def counts(browser, folder):
    """The columns and the roofline of a schedule of a product of 256 x 256, dark."""
    made = record(tiled(256), "product of 256 x 256")
    made.measure(600)
    made.count(budget_s=600)
    made.recording.html(folder / "counts.html")
    with open_page(browser, scheme="dark", width=1000, height=900) as page:
        page.goto((folder / "counts.html").as_uri())
        page.get_by_text("Cache misses and roofline").click()
        page.get_by_label("Level of the roofline").select_option("L2")
        page.locator("table.counts tbody tr").nth(5).click()
        page.wait_for_timeout(200)
        page.locator(".counts-panel").screenshot(path=IMAGES / "counts-dark.png")


def choices(browser, folder):
    """A product of 128 x 128 whose tile has two open numbers, in small caches; one was moved."""
    sch = Schedule(matmul(128))
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, factors=[None, live("rows", 2)])
    j0, j1 = sch.split(j, factors=[None, live("columns", 16)])
    sch.reorder(i0, j0, k, i1, j1)
    sch.vectorize(j1)
    sch.unroll(i1)
    sch.decompose_reduction("C", k)
    lab = Choices(sch, caches="8K:8, 64K:8", title="product of 128 x 128")
    compute(lab, lab.first, 600)
    (folder / "live.html").write_text(write(lab, lab.first), encoding="utf-8")
    lab.close()
    with open_page(browser, scheme="light", width=1500, height=900) as page:
        page.goto((folder / "live.html").as_uri())
        page.get_by_role("slider", name="rows").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(200)
        page.locator(".mlc").screenshot(path=IMAGES / "live.png")


def main():
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS)
        access_view(browser, Path(folder))
        counts(browser, Path(folder))
        choices(browser, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
