"""The views of graphs, passes and runs in JupyterLab and Notebook 7, live and with the kernel."""

import pytest
from browser import open_page
from lab_server import LabServer

pytest.importorskip("jupyterlab")
pytest.importorskip("anywidget")
pytestmark = [pytest.mark.browser, pytest.mark.slow]

GRAPH = """\
from tests.observe.graphs import fused_module
view = fused_module().graph().show()
seen = []
view.on_select(lambda node: seen.append(node["label"]))
view"""
TELL = "print('opened', len(view.opened), 'seen', seen)"
PASSES = """\
from tests.observe.pipelines import module, pipeline
pipeline().explore(module())"""
RUN = """\
import numpy as np, mlc_lab
from mlc_lab import relax
vm = relax.VirtualMachine(relax.build(module(), "llvm"), mlc_lab.cpu())
vm.trace("main", *[np.ones(s, "float32") for s in ((1, 64), (64, 32), (32, 10))]).show()"""
LAB = "lab/workspaces/{name}/tree/"


@pytest.fixture(scope="module")
def lab(tmp_path_factory, chromium):
    with LabServer(tmp_path_factory.mktemp("lab")) as server:
        yield server


def open_in_lab(chromium, **options):
    return open_page(chromium, ours=lambda error: "blob:" in (error.stack or ""), **options)


@pytest.mark.parametrize("path", [LAB, "notebooks/"], ids=["lab", "notebook7"])
def test_a_group_is_opened_by_the_kernel(lab, chromium, path):
    with open_in_lab(chromium, height=1200) as page:
        name = f"graph{len(path)}.ipynb"
        lab.write(name, GRAPH, TELL)
        lab.open(page, name, path)
        lab.run_all(page)
        view = page.locator(".mlc-graph")
        view.locator(".node.group").first.locator(".toggle").click()
        # one group is open and the other shut: only the kernel lays that out
        view.locator(".node.kernel").nth(1).wait_for()
        assert view.locator(".node.kernel").count() == 2
        view.locator(".node.kernel").first.click()
        assert "TensorIR kernel" in view.locator(".detail").inner_text()


def test_passes_and_a_run_in_one_notebook(lab, chromium):
    with open_in_lab(chromium, scheme="dark", height=2400) as page:
        lab.write("passes.ipynb", PASSES, RUN)
        lab.open(page, "passes.ipynb", LAB)
        lab.run_all(page)
        passes = page.locator(".mlc-passes")
        passes.get_by_role("option", name="FuseOps").click()
        passes.get_by_role("tab", name="Graph").click()
        assert passes.locator(".mlc-graph").count() == 2
        machine = page.locator(".mlc-machine")
        machine.get_by_role("button", name="Next instruction").click()
        assert machine.locator(".count").inner_text().startswith("1 / ")
