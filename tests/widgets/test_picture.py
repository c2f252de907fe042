"""Pictures of a step: SVG that is well-formed and says what changed, PNG of the promised size."""

import xml.etree.ElementTree as ET

import handmade
import pytest

from mlc_lab.observe.alignment import keyed, rows
from mlc_lab_widgets import picture

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg):
    return [node.text for node in ET.fromstring(svg).iter(f"{SVG}text")]


def joined(svg):
    """The texts of one height, joined: the lines of the picture."""
    lines = {}
    for node in ET.fromstring(svg).iter(f"{SVG}text"):
        lines.setdefault(node.get("y"), []).append((float(node.get("x")), node.text))
    return ["".join(text for _, text in sorted(line)) for line in lines.values()]


@pytest.mark.parametrize("kind", ["program", "nest"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("step", range(7))
def test_every_step_is_drawn_within_its_frame(kind, theme, step):
    svg = handmade.recording().step_svg(step, kind, theme)
    root = ET.fromstring(svg)
    width, height = float(root.get("width")), float(root.get("height"))
    for node in root.iter(f"{SVG}rect"):
        x, y = float(node.get("x", 0)), float(node.get("y", 0))
        assert x >= 0 and x + float(node.get("width")) <= width
        assert y >= 0 and y + float(node.get("height")) <= height
    for node in root.iter(f"{SVG}text"):
        assert float(node.get("x")) + 7.23 * len(node.text) <= width + 1, node.text
        assert float(node.get("y")) < height


def test_both_programs_stand_side_by_side_with_their_marks():
    lines = joined(handmade.recording().step_svg(1))
    assert "j_0, j_1 = sch.split(loop=j, factors=[None, 8])" in lines
    assert "2.69 ms, 1.57 GFLOP/s, 0.626 % of peak, equals the original" in lines
    bare = [line.replace(" ", "") for line in lines]  # spaces are not drawn
    both = next(line for line in bare if "T.grid(128,128,128)" in line)
    assert "T.grid(128,16,8,128)" in both
    assert texts(handmade.recording().step_svg(1)).count("~") >= 2


def test_marks_are_those_of_the_lines():
    recording = handmade.recording()
    step = recording.steps[3]
    sides = [keyed(recording, program) for program in (step.before, step.after)]
    marks = [row[2:] for row in rows(*sides)]
    left, right = [m[0] for m in marks], [m[1] for m in marks]
    assert "removed" in left and "new" in right and "changed" in right


def test_a_refused_step_says_so_and_shows_one_program():
    lines = joined(handmade.recording().step_svg(4))
    assert "refused: no loop-carried dependence" in lines
    assert sum('with T.block("Y"):'.replace(" ", "") in li.replace(" ", "") for li in lines) == 1


def test_the_nest_shows_extents_kinds_and_regions():
    found = texts(handmade.recording().step_svg(6, "nest"))
    assert "~ j_1 : 8" in found and "vectorized" in found and "vj = j_0 * 8 + j_1_init" in found
    assert "A[vi, vk], B[vk, vj]" in " ".join(found)


def test_a_png_has_the_size_of_the_picture(tmp_path):
    pytest.importorskip("matplotlib")
    recording = handmade.recording()
    recording.step_png(2, tmp_path / "step.png", "nest", "dark", scale=2)
    data = (tmp_path / "step.png").read_bytes()
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    root = ET.fromstring(recording.step_svg(2, "nest"))
    assert abs(width - 2 * int(root.get("width"))) <= 2
    assert abs(height - 2 * int(root.get("height"))) <= 2


def test_what_there_is_not_is_refused_by_name():
    recording = handmade.recording()
    with pytest.raises(IndexError, match="steps 0 to 6"):
        recording.step_svg(7)
    with pytest.raises(ValueError, match="program, nest"):
        recording.step_svg(1, "photo")
    with pytest.raises(ValueError, match="light, dark"):
        recording.step_svg(1, theme="blue")


def test_a_search_that_goes_on_is_drawn_before_its_first_trial():
    board = {"title": "again", "sessions": [{"key": "old"}, {"key": "new"}],
             "trials": [{"session": "old", "time": time} for time in (2e-3, 1e-3, 3e-3)]}
    assert "3 trials" in " ".join(texts(picture.search(board)))
