"""Numbers in the prose of a lesson, in JupyterLab and Notebook 7: the mouse drags them, and the
lesson's page of choices follows."""

import json
from pathlib import Path

import pytest
from browser import open_page
from lab_server import LabServer

from mlc_lab.language.lessons import in_language, source_of

pytest.importorskip("jupyterlab")
pytest.importorskip("anywidget")
pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSONS = Path(__file__).resolve().parent.parent.parent / "notebooks"
NOTEBOOK7 = "notebooks/"
LAB = "lab/workspaces/{name}/tree/"


def part_of(lesson, ids, language):
    """Some cells of a lesson in a language."""
    (path,) = LESSONS.glob(f"{lesson}_*.ipynb")
    made = in_language(json.loads(path.read_text(encoding="utf-8")), path.stem, language)
    found = {cell["id"]: cell for cell in made["cells"]}
    return [source_of(found[id]) if found[id]["cell_type"] == "code"
            else ("markdown", source_of(found[id])) for id in ids]


@pytest.fixture(scope="module")
def lab(tmp_path_factory, chromium):
    with LabServer(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.mark.parametrize("lesson, ids, language, path, scheme", [
    ("20", ["20live", "20dragged"], "en", LAB, "light"),
    ("20", ["20live", "20dragged"], "zh", NOTEBOOK7, "dark"),
    ("22", ["22setup", "22convpage", "22page", "22dragged"], "zh", LAB, "dark"),
    ("22", ["22setup", "22convpage", "22page", "22dragged"], "en", NOTEBOOK7, "light"),
], ids=["20", "20-zh-notebook7", "22-zh", "22-notebook7"])  # fmt: skip
def test_a_number_of_a_lesson_is_dragged(lab, chromium, lesson, ids, language, path, scheme):
    name = f"lesson_{lesson}_{language}_{scheme}.ipynb"
    lab.write(name, *part_of(lesson, ids, language))
    with open_page(chromium, scheme=scheme, width=1600, height=2400,
                   ours=lambda error: "blob:" in (error.stack or "")) as page:
        lab.open(page, name, path)
        text = page.locator(".jp-MarkdownCell").last
        links = text.locator('a[href^="#live:"]')
        links.first.wait_for()
        before = links.all_inner_texts()
        assert before and "{" not in text.inner_text()  # a text before the page is there
        plain = text.inner_text()
        lab.run_all(page)
        view = page.locator(".mlc.live").last
        view.locator(".program .l").first.wait_for()
        number = text.locator(".mlc-live-number").first
        number.wait_for()
        assert text.locator(".mlc-live-number").all_inner_texts() == before
        assert text.inner_text() == plain and not links.first.is_visible()
        number.scroll_into_view_if_needed()
        box = number.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 16, y, steps=4)
        page.mouse.up()
        after = number.inner_text()
        assert after != before[0]
        shown = view.locator(".knob").first.locator("input")
        chosen = (shown.get_attribute("aria-valuetext") if shown.count() == 1
                  else view.locator(".knob").first.locator("label:has(:checked)").inner_text())
        assert chosen == after
        view.locator(".program .l.changed").first.wait_for()  # the kernel has answered
        number.press("ArrowLeft")
        page.wait_for_function("([e, said]) => e.textContent === said",
                               arg=[number.element_handle(), before[0]])
