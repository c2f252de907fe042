"""The lessons: kept without outputs, each with the parts that a reader who is alone needs."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote

import pytest

import mlc_lab as tvm
from mlc_lab import te
from mlc_lab.language import LANGUAGES, VARIABLE
from mlc_lab.observe import count_accesses
from mlc_lab.observe.live import Choices
from mlc_lab.observe.live_pages import PAGES

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SITE = "https://mlc-lab.github.io/mlc-lab/notebooks/"


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def prose(path):
    return "\n\n".join("".join(c["source"]) for c in cells(path) if c["cell_type"] == "markdown")


#: those that say what they take for granted, and what one can do afterwards
ALONE = [path for path in NOTEBOOKS if "Afterwards you can" in prose(path)]


def test_all_but_the_map_and_lessons_of_elsewhere_are_for_readers_who_are_alone():
    assert {path.stem[:2] for path in ALONE} >= {f"{number:02}" for number in range(24)}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_outputs_are_kept(path):
    assert not [c["id"] for c in cells(path)
                if c["cell_type"] == "code" and (c["outputs"] or c["execution_count"])]


def test_a_lesson_is_run_in_each_language_whatever_the_systems_is(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbmake")
    cell = "from mlc_lab.language import chosen; print(chosen(), file=open('seen', 'a'))"
    lesson = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    nbformat.write(lesson, tmp_path / "lesson.ipynb")
    shutil.copy(ROOT / "conftest.py", tmp_path)
    subprocess.run([sys.executable, "-m", "pytest", "-q", "--nbmake", tmp_path], check=True,
                   cwd=tmp_path, env={**os.environ, VARIABLE: "zh", "MLC_LAB_LESSONS": "all"})
    assert sorted((tmp_path / "seen").read_text().split()) == sorted(LANGUAGES)


@pytest.mark.parametrize("path", ALONE, ids=lambda path: path.stem)
def test_a_lesson_leads_to_its_page_of_the_site(path):
    assert f"({SITE}{path.stem}.html)" in "".join(cells(path)[0]["source"])


@pytest.mark.parametrize("path", ALONE, ids=lambda path: path.stem)
def test_a_lesson_has_its_parts_in_order(path):
    text = prose(path)
    parts = ["What it takes for granted", "Afterwards you can"]
    if path.stem[:2] != "00":
        parts += ["## What goes wrong", "## Exercises", "## Where the ideas come from"]
    places = [text.find(part) for part in parts]
    assert min(places) >= 0 and places == sorted(places), dict(zip(parts, places))
    assert re.search(r"\b(Predict|predict|Guess|guess|Prediction)\b", text)


@pytest.mark.parametrize("path", ALONE, ids=lambda path: path.stem)
def test_headings_are_in_order(path):
    levels = [len(marks) for marks in re.findall(r"^(#+) ", prose(path), re.M)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:]))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_pictures_say_what_they_show_to_those_who_do_not_see_them(path):
    for cell in cells(path):
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            assert source.count("<svg ") == source.count('<svg role="img" aria-label=')
            assert "plt.show" not in source  # it has no place for the words
            assert len(re.findall(r"plt\.(?:figure|subplots)\(", source)) == source.count('"alt":')
        else:
            assert not re.search(r"!\[\]|<img (?![^>]*alt=\"[^\"])", source)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_lessons_lead_to_files_that_are_there(path):
    for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", prose(path)):
        assert (path.parent / target).exists(), target


def test_the_text_that_lesson_23_trains_on_is_of_its_grammar_and_installed():
    text = files("mlc_lab.relax.training").joinpath("sentences.txt").read_text(encoding="utf-8")
    (lesson,) = [path for path in NOTEBOOKS if path.stem == "23_a_small_language_model"]
    (source,) = ["".join(cell["source"]) for cell in cells(lesson) if cell["id"] == "23grammar"]
    patterns = [ast.literal_eval(node.value.args[0]) for node in ast.parse(source).body
                if isinstance(node, ast.Assign) and node.targets[0].id == "GOOD"]
    assert all(re.fullmatch(patterns[0].rstrip() + r"\.", line) for line in text.splitlines())
    assert len(text.splitlines()) == 1000 and len(text.encode()) < 40_000
    assert '"*.txt"' in (ROOT / "setup.py").read_text(encoding="utf-8")


def test_the_misses_that_lesson_05_works_out_are_those_of_its_tiles():
    n, t, caches = 144, 16, "8K:8, 128K:8, 2M:16"
    k = te.reduce_axis((0, n), "k")
    a, b = (te.placeholder((n, n), name=name) for name in "AB")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    sch = tvm.tir.Schedule(te.create_prim_func([a, b, c]))
    i, j, k = sch.get_loops("C")
    (i_0, i_1), (j_0, j_1), (k_0, k_1) = (sch.split(loop, factors=[None, t]) for loop in (i, j, k))
    sch.reorder(i_0, j_0, k_0, i_1, k_1, j_1)
    misses = 2 * n**3 // (16 * t) + n**2 // 16
    assert count_accesses(sch, caches).level("L1").misses == misses
    (said,) = [path for path in NOTEBOOKS if path.stem == "05_memory_and_caches"]
    assert f"= {misses:,} misses" in prose(said)


#: those whose prose has numbers that drive a page
DRAGGED = [path for path in NOTEBOOKS if "](#live:" in prose(path)]


def open_numbers(source):
    """What the page that a cell shows calls its numbers, and what they say at first."""
    found = dict(re.findall(r'\blive\("([^"]+)", (\d+)', source))
    for name in re.findall(r'explore_live\("([^"]+)"', source):
        page = PAGES[name]
        made = Choices(page.make(), form=page.form, begin=page.begin)
        found |= {knob.name: knob.labels[value] for knob, value in zip(made.knobs, made.first)
                  if knob.kind in ("number", "form")}
        made.close()
    return found


def test_numbers_are_dragged_in_the_lessons_where_they_teach():
    assert {path.stem[:2] for path in DRAGGED} >= {"00", "03", "05", "20", "22"}


@pytest.mark.parametrize("path", DRAGGED, ids=lambda path: path.stem)
def test_a_number_in_prose_is_one_of_the_page_above_it_and_reads_as_it_begins(path):
    known = {}
    for cell in cells(path):
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            known = open_numbers(source) or known
        for words, name in re.findall(r"\[([^\]]*)\]\(#live:([^)\s]+)\)", source):
            assert known.get(unquote(name)) == words, (name, words)
