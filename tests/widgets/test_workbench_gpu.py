"""The workbench for a GPU: live, with a test in the kernel's place, and as a page."""

import json

import pytest
from browser import open_page
from observe.test_workbench_gpu import copied, tiles
from test_axe import problems
from test_stepper_page import CONTRAST

from mlc_lab_widgets import bundle
from mlc_lab_widgets.workbench import Workbench

PAGE = """<!doctype html><title>x</title><style>{style}</style><div id="here"></div><script>
{script}
class Model extends mlcPage.PageModel {{
  send(message) {{ sent.push(message); }}
  hear(message) {{ for (const f of this.listeners.get("msg:custom") || []) f(message); }}
}}
const sent = [];
const model = new Model({values});
mlcView.default.render({{ model, el: document.getElementById("here") }});
</script>"""


def live(page, view, folder):
    """The view as a notebook shows it; nobody answers."""
    values = {name: getattr(view, name) for name in (
        "tree", "node", "selection", "palette", "costs", "left", "measuring", "live")}
    script = bundle.script("workbench.js") + bundle.script("page.js")
    (folder / "page.html").write_text(PAGE.format(
        style=bundle.style(*view._styles), script=script, values=json.dumps(values)),
        encoding="utf-8")
    page.goto((folder / "page.html").as_uri())
    return page.locator(".mlc.bench")


def test_the_widget_has_the_limits_of_what_is_shown():
    view = Workbench(copied())
    assert view.left[str(view.bench.at.program)]["threads"] == [64, 1024]
    view.pick("A_shared")
    entry = view.palette["entries"][0]
    assert entry["op"] == "cooperative_fetch" and entry["legal"]
    sent = []
    view.send = lambda content, *_: sent.append(content)
    args = {p["name"]: p["default"] for p in entry["parameters"]}
    view._message(view, {"do": "check", "op": entry["op"], "args": args, "preview": True}, None)
    assert sent[-1]["legal"] and any(sign == "+" for sign, _ in sent[-1]["preview"])
    view._message(view, {"do": "apply", "op": entry["op"], "args": args}, None)
    assert sent[-1]["ok"] and view.node == view.bench.at.id
    assert str(view.bench.at.program) in view.left
    view._message(view, {"do": "apply", "op": entry["op"], "args": args}, None)
    assert not sent[-1]["ok"] and "already" in sent[-1]["error"]
    assert Workbench(tiles("llvm", bound=False)).left == {}


def test_a_notebook_that_is_not_trusted_has_the_limits_as_text():
    _, html = Workbench(copied())._static()
    assert "64 of 1,024 threads a block; 1,024 of 49,152 bytes of shared memory" in html
    assert "threads a block" not in Workbench(tiles("llvm", bound=False))._static()[1]


@pytest.mark.browser
def test_limits_suggestions_and_one_click(chromium, tmp_path):
    view = Workbench(copied())
    view.pick("A_shared")
    with open_page(chromium) as page:
        shown = live(page, view, tmp_path)
        limits = shown.get_by_role("list", name="Limits of the GPU")
        assert "64 of 1,024" in limits.inner_text() and "limited by" in limits.inner_text()
        entry = shown.locator('.entry[data-op="cooperative_fetch"]')
        entry.locator(".quick").focus()
        page.keyboard.press("Enter")
        (asked,) = [m for m in page.evaluate("sent") if m["do"] == "apply"]
        assert asked["op"] == "cooperative_fetch" and asked["args"]["vector"] == 4
    start = view.node
    end = view.apply("cooperative_fetch", block="A_shared").id
    with open_page(chromium) as page:
        shown = live(page, view, tmp_path)
        for name, at in (("Undo", start), ("Redo", end)):
            shown.get_by_role("button", name=name, exact=True).click()
            assert page.evaluate("model.get('node')") == at
    view.undo()
    assert view.node == start
    view.pick("C/i_2")
    with open_page(chromium) as page:
        bind = live(page, view, tmp_path).locator('.entry[data-op="bind"]')
        bind.locator(".entry-name").click()
        assert "threads of a block" in bind.locator(".why.note").inner_text()
        assert page.evaluate(CONTRAST) == []


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_keeps_the_limits(chromium, tmp_path, scheme):
    bench = copied()
    bench.what_is_left()
    bench.html(tmp_path / "page.html")
    with open_page(chromium, scheme=scheme, width=800) as page:
        page.goto((tmp_path / "page.html").as_uri())
        limits = page.get_by_role("list", name="Limits of the GPU")
        assert "1,024 of 49,152" in limits.inner_text()
        top = page.locator(".tree-box").bounding_box()["y"]
        page.get_by_role("button", name="Undo").click()
        assert page.locator(".tree-box").bounding_box()["y"] == top
        assert page.evaluate(CONTRAST) == []
        assert problems(page) == []


@pytest.mark.browser
def test_a_workbench_for_a_cpu_has_no_such_row(chromium, tmp_path):
    tiles("llvm", bound=False).html(tmp_path / "page.html")
    with open_page(chromium) as page:
        page.goto((tmp_path / "page.html").as_uri())
        page.wait_for_selector(".attempts")
        assert not page.get_by_role("list", name="Limits of the GPU").is_visible()
