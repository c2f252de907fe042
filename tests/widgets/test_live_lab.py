"""The page of choices in a real JupyterLab: what is dragged is computed by the kernel."""

import pytest
from browser import open_page
from lab_server import LabServer

pytest.importorskip("jupyterlab")
pytest.importorskip("anywidget")
pytestmark = [pytest.mark.browser, pytest.mark.slow]

SHOW = """\
import mlc_lab
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source

sch = Schedule(from_source('''
@T.prim_func
def main(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"),
         C: T.Buffer((32, 32), "float32")):
    for i, j, k in T.grid(32, 32, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
'''))
i, j, k = sch.get_loops("C")
j0, j1 = sch.split(j, factors=[None, mlc_lab.live("tile", 8)])
sch.reorder(i, j0, k, j1)
sch.vectorize(j1)
view = sch.live(caches="1K:2, 8K:4")
view"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory, chromium):
    with LabServer(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.mark.parametrize("path, scheme", [
    ("lab/workspaces/{name}/tree/", "light"), ("lab/workspaces/{name}/tree/", "dark"),
    ("notebooks/", "light"),
], ids=["light", "dark", "notebook7"])  # fmt: skip
def test_what_is_dragged_is_computed(lab, chromium, path, scheme):
    with open_page(chromium, scheme=scheme, width=1600,
                   ours=lambda error: "blob:" in (error.stack or "")) as page:
        name = f"live_{path[:3]}_{scheme}.ipynb"
        lab.write(name, ("markdown", "A tile of {live:tile} columns, and `{live:tile}` as code."),
                  SHOW, "view.set('tile', 32)")
        lab.open(page, name, path)
        lab.run_all(page)
        view = page.locator(".mlc.live")
        view.locator(".program .l").first.wait_for()
        # Python moved the slider already: the second cell
        view.locator(".program").get_by_text("T.vectorized(32)").wait_for()
        view.locator(".fact", has_text="L1 misses").wait_for()
        view.locator(".fact", has_text="Time").wait_for()
        view.locator(".why li:not(.none)").first.wait_for()
        view.get_by_role("slider", name="tile").focus()
        page.keyboard.press("ArrowLeft")
        view.locator(".program").get_by_text("T.vectorized(16)").wait_for()
        # the number in the notebook's own text follows, and leads
        number = page.locator(".jp-MarkdownCell .mlc-live-number")
        assert number.inner_text() == "16" and number.count() == 1
        number.press("ArrowLeft")
        view.locator(".program").get_by_text("T.vectorized(8)").wait_for()
        box = number.bounding_box()
        page.mouse.move(box["x"] + 2, box["y"] + 5)
        page.mouse.down()
        page.mouse.move(box["x"] + 18, box["y"] + 5, steps=4)
        page.mouse.up()
        view.locator(".program").get_by_text("T.vectorized(16)").wait_for()
        view.get_by_label("vectorize").uncheck()
        view.locator(".program").get_by_text("T.grid(32, 2, 32, 16)").wait_for()
        assert view.locator(".asm pre").inner_text()
        # all choices of the switch that was moved last
        page.wait_for_function("document.querySelectorAll('.dot.time circle:not(.untimed)')"
                               ".length == 2")
