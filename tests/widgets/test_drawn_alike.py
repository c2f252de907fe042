"""What is drawn without scripts is what scripts draw: boxes of loop nests, marks of lines."""

import handmade
import pytest
from browser import open_page

import mlc_lab as tvm
from mlc_lab import te
from mlc_lab.observe import nest
from mlc_lab.observe.alignment import keyed, rows
from mlc_lab.observe.session import record

pytestmark = pytest.mark.browser

BOXES = """side => [...document.querySelectorAll(`.pane.${side} .nest > g`)].map((g) => {
  const rect = g.querySelector("rect");
  const texts = [...g.querySelectorAll("text")].map((t) => t.textContent);
  const place = ["x", "y", "width", "height"].map((name) => Number(rect.getAttribute(name)));
  return [...place, ...texts];
})"""
DOWN = """async side => {
  const pane = document.querySelector(`.pane.${side}`);
  pane.scrollTop = pane.scrollHeight;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
MARKS = """side => [...document.querySelectorAll(`.pane.${side} .l[data-n]`)].map((line) => {
  const mark = ["new", "removed", "changed", "moved"].find((m) => line.classList.contains(m));
  return [Number(line.dataset.n), mark || ""];
})"""
SIGN = {"+", "~", "↕", "−"}


def tiled():
    """A schedule with loops of every kind, a copy of an input, an init of its own and an undo."""
    A, B = (te.placeholder((32, 32), name=name) for name in "AB")
    k = te.reduce_axis((0, 32), "k")
    C = te.compute((32, 32), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((32, 32), lambda i, j: C[i, j] + 1.0, name="D")
    sch = tvm.tir.Schedule(te.create_prim_func([A, B, D]))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 5])
    j0, j1 = sch.split(j, [4, 8])
    sch.reorder(i0, j0, k, i1, j1)
    sch.reverse_compute_at(sch.get_block("D"), j0)
    sch.cache_read(block, 1, "global")
    sch.vectorize(j1)
    sch.parallel(i0)
    sch.unroll(i1)
    sch.decompose_reduction(block, k)
    return record(sch, "tiled").recording


@pytest.fixture(scope="module", params=[handmade.recording, tiled], ids=["handmade", "tiled"])
def recording(request):
    return request.param()


@pytest.fixture
def page(chromium, recording, tmp_path):
    recording.html(tmp_path / "page.html")
    with open_page(chromium, scheme="light") as page:
        page.goto((tmp_path / "page.html").as_uri())
        yield page


def shown(page, step):
    page.locator("input[type=range]").fill(str(step))
    unfold = page.locator(".unfold")
    if unfold.is_visible() and unfold.get_attribute("aria-pressed") == "false":
        unfold.click()


def boxes(root):
    """What the script draws for each box and row, worked out here: place, size and texts."""
    for box in root.walk():
        if box.kind != "root":
            height = box.height - 2 if box.kind == "text" else box.height
            yield [box.x, box.y, box.width, height, nest.cut(box.head), box.note]
        for row in box.rows:
            x, width = box.x + nest.SIDE, box.width - 2 * nest.SIDE
            yield [x - 2, row.y, width + 4, nest.ROW - 2, row.role, nest.cut(row.text)]


def test_boxes_of_a_nest_are_where_the_picture_has_them(page, recording):
    page.get_by_role("tab", name="Loop nest").click()
    for number, step in enumerate(recording.steps):
        page.locator("input[type=range]").fill(str(number))
        for side, program in (("before", step.before), ("after", step.after)):
            if step.error and side == "after":  # the refusal stands there
                continue
            page.evaluate(DOWN, side)  # what is out of sight is drawn when it comes near
            drawn = page.evaluate(BOXES, side)
            for box in drawn:
                if box[4][:1] in SIGN:
                    box[4] = box[4][2:]
            wanted = [[part for part in box if part != ""]
                      for box in boxes(nest.nest_of(recording, program))]  # fmt: skip
            assert drawn == wanted, (number, side)


def test_marks_of_lines_are_those_of_the_picture(page, recording):
    for number, step in enumerate(recording.steps):
        if step.before == step.after:
            continue
        shown(page, number)
        found = rows(*(keyed(recording, program) for program in (step.before, step.after)))
        left = [[row.left, row.left_mark] for row in found if row.left >= 0]
        right = [[row.right, row.right_mark] for row in found if row.right >= 0]
        assert page.evaluate(MARKS, "before") == left, number
        assert page.evaluate(MARKS, "after") == right, number
