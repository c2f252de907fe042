"""The start page in JupyterLab: read without being run, run, and left by its links."""

import shutil
from pathlib import Path

import pytest
from browser import open_page
from lab_server import LabServer

pytest.importorskip("jupyterlab")
pytestmark = [pytest.mark.browser, pytest.mark.slow]
NOTEBOOKS = Path(__file__).resolve().parent.parent.parent / "notebooks"


@pytest.fixture(scope="module")
def lab(tmp_path_factory, chromium):
    with LabServer(tmp_path_factory.mktemp("lab")) as server:
        for path in NOTEBOOKS.glob("0[01]_*.ipynb"):
            shutil.copyfile(path, server.work / path.name)
        yield server


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_map_leads_to_the_lessons(lab, chromium, scheme):
    with open_page(chromium, scheme=scheme, height=1400,
                   ours=lambda error: "blob:" in (error.stack or "")) as page:
        lab.open(page, "00_start_here.ipynb")
        links = page.locator(".jp-RenderedMarkdown a[href*='.ipynb']")
        links.nth(11).wait_for()
        first = page.locator(".jp-RenderedMarkdown").first.inner_text()
        assert "start here: The tensor program" in first
        lab.run_all(page)
        output = page.locator(".jp-RenderedHTML", has_text="This machine")
        output.wait_for()
        said = output.inner_text()
        assert "0 of 1 lessons are done" in said and "→ next" in said and "GFLOP/s" in said
        output.get_by_role("link", name="The tensor program abstraction").click()
        page.wait_for_function("window.jupyterapp?.shell?.currentWidget?.context?.path"
                               " === '01_tensor_program_abstraction.ipynb'")
