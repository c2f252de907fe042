"""The start page of the lessons: its durations are true, its links lead somewhere, what is done is
kept; lessons run as far as they can without what is not installed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mlc_lab_widgets import course, start
from mlc_lab_widgets.start import lessons, minutes, parts, present, progress_file

ROOT = Path(__file__).resolve().parent.parent.parent
NOTEBOOKS = ROOT / "notebooks"
START = NOTEBOOKS / "00_start_here.ipynb"
ROW = re.compile(r"^\| (\d+) \| (?:\*\*start here:\*\* )?\[[^]]+\]\((\S+)\) \|.*\| (\d+) min \|$",
                 re.M)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))


def map_rows():
    cells = json.loads(START.read_text(encoding="utf-8"))["cells"]
    return ROW.findall("".join(cells[0]["source"]))


def markdown(text):
    return {"cell_type": "markdown", "source": [text]}


def code(text, count=None, *outputs):
    return {"cell_type": "code", "source": [text], "execution_count": count,
            "outputs": list(outputs)}


def write(folder, name, *cells):
    (folder / name).write_text(json.dumps({"cells": cells}), encoding="utf-8")


def test_the_map_has_every_lesson_with_its_duration():
    known = {str(one.number): (one.path.name, str(one.minutes)) for one in lessons(NOTEBOOKS)}
    assert {number: (file, time) for number, file, time in map_rows()} == known
    assert len(known) >= 12


def test_the_map_says_how_long_all_of_it_takes():
    told = re.search(r"All of them: about (\d+) hours", START.read_text(encoding="utf-8"))
    assert abs(int(told[1]) - sum(int(time) for _, _, time in map_rows()) / 60) <= 1


def test_the_map_says_where_to_start_and_is_first_in_the_folder():
    text = START.read_text(encoding="utf-8")
    assert text.count("start here:") == 1 and sorted(NOTEBOOKS.glob("*.ipynb"))[0] == START
    assert '"outputs": []' in text and '"execution_count": null' in text


def test_a_duration_counts_words_code_cells_and_exercises():
    assert minutes([markdown("word " * 450)]) == 5
    assert minutes([markdown("word " * 760)]) == 10
    assert minutes([markdown("循环嵌套，" * 290)]) == 5  # no spaces between words
    assert minutes([markdown("循环嵌套，" * 310)]) == 10
    assert minutes([code("x = 1\n" * 30)]) == 5
    asked = "## Exercises\n\n1. this\n2. that\n3. and that"
    assert minutes([markdown(asked)]) == 20
    answers = "\n\n<details><summary>Answers</summary>\n\n1. a\n2. b\n3. c\n\n</details>"
    assert minutes([markdown(f"## The rule\n\n{asked}{answers}\n\n## Origins\n\n1. one")]) == 20


def test_a_lesson_is_done_when_all_its_cells_were_run(tmp_path):
    write(tmp_path, "00_start_here.ipynb", markdown("# Start"))
    write(tmp_path, "01_one.ipynb", markdown("# 1. One"), code("x = 1", 1), code("", None))
    write(tmp_path, "02_two.ipynb", markdown("# 2. Two"), code("x = 1", 1), code("y = 2"))
    write(tmp_path, "03_three.ipynb", markdown("# 3. Three"),
          code("1 / 0", 1, {"output_type": "error"}))
    write(tmp_path, "04_none.ipynb")
    (tmp_path / "05_bad.ipynb").write_text("no notebook")
    page = course(folder=tmp_path)
    assert [one.number for one in page.lessons] == [1, 2, 3] and page.done == {1}
    assert page.next().number == 2
    assert "✓ done" in page._repr_html_() and "1 of 3 lessons" in page._repr_html_()
    write(tmp_path, "01_one.ipynb", markdown("# 1. One"), code("x = 1"))  # outputs were cleared
    assert course(folder=tmp_path).done == {1}


def test_a_reader_says_what_is_done_and_it_is_kept():
    assert course(done=[3], folder=NOTEBOOKS).done == {3}
    assert course(folder=NOTEBOOKS).done == {3}
    assert course(undone=[3], folder=NOTEBOOKS).done == set()
    assert json.loads(progress_file().read_text(encoding="utf-8")) == {"done": []}


@pytest.mark.parametrize("text", ["", "{", '{"done": "x"}', "[]", '{"done": [null]}'])
def test_a_spoilt_file_is_as_none(text):
    progress_file().parent.mkdir(parents=True)
    progress_file().write_text(text, encoding="utf-8")
    assert course(folder=NOTEBOOKS).done == set()


def test_what_cannot_be_kept_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "file"))
    assert "could not be kept" in course(done=[1], folder=NOTEBOOKS)._repr_html_()


def test_what_is_not_installed_is_named_with_its_command(monkeypatch):
    monkeypatch.setattr(start, "present", lambda name: name != "torch")
    page = course(folder=NOTEBOOKS)
    assert "needs torch, which is not installed" in repr(page).split("\n")[10]
    assert "<code>pip install torch</code>" in page._repr_html_()
    assert {name for name, *_ in parts()} == {"torch", "onnx", "sklearn", "matplotlib", "graphviz",
                                            "dot", "cc"}
    assert present("json") and not present("no_such_package")


def test_the_machine_is_described():
    facts = dict(course(folder=NOTEBOOKS).machine)
    assert "cores" in facts["processor"] and "bits" in facts["vectors"]
    assert "L1 " in facts["caches"] and "GFLOP/s" in facts["peak of one core"]


def test_lessons_that_need_torch_say_so_at_the_top():
    for one in lessons(NOTEBOOKS):
        cells = json.loads(one.path.read_text(encoding="utf-8"))["cells"]
        imports = [c for c in cells if re.search(r"^\s*(import|from) torch\b",
                                                 "".join(c["source"]), re.M)]
        assert ("torch" in one.needs) == bool(imports)
        if imports:
            assert "**It needs PyTorch**" in "".join(cells[0]["source"])
            assert all("".join(c["source"]).startswith("%%needs torch") for c in imports)


#: of lessons that need torch: how many of their cells do, and what those without it print
WITHOUT = {"11_frameworks": (6, ""), "23_a_small_language_model": (12, "right sentences: ")}


def test_each_lesson_that_needs_torch_is_tried_without():
    assert {one.path.stem for one in lessons(NOTEBOOKS) if "torch" in one.needs} == set(WITHOUT)


@pytest.mark.slow
@pytest.mark.parametrize("lesson", WITHOUT)
def test_a_lesson_runs_as_far_as_it_can_without_torch(tmp_path, lesson):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise ImportError('none here')")
    out = tmp_path / "out.ipynb"
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", ""), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "mlc_lab.cli", "run", str(NOTEBOOKS / f"{lesson}.ipynb"), "-o",
         str(out)], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr
    cells = json.loads(out.read_text(encoding="utf-8"))["cells"]
    said = ["".join("".join(o.get("text", "")) for o in c["outputs"])
            for c in cells if "".join(c["source"]).startswith("%%needs torch")]
    least, printed = WITHOUT[lesson]
    assert len(said) >= least and printed in "".join(
        "".join(o.get("text", "")) for c in cells for o in c.get("outputs", []))
    assert all("passed over: it needs torch" in text and "%pip install torch" in text
               for text in said)
    assert all(c.get("execution_count") for c in cells if c["cell_type"] == "code")
