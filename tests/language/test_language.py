"""Texts in other languages: which language, lessons block by block, catalogues that are current."""

import argparse
import gettext
import io
import json
import os
import re
import runpy
from pathlib import Path

import pytest

from mlc_lab import cli, language
from mlc_lab.exercises.catalogue import catalogue as exercises
from mlc_lab.exercises.catalogue import get
from mlc_lab.exercises.judging import marks
from mlc_lab.language import lessons
from mlc_lab.observe import doctor

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = runpy.run_path(str(ROOT / "translations" / "build.py"))
TEMPLATES = BUILD["templates"]()
CATALOGUES = sorted((path.parent.name, path.stem)
                    for path in (ROOT / "translations").glob("*/*.po"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture
def chinese(tmp_path, monkeypatch):
    """Catalogues of the test's own: a function that writes one."""
    monkeypatch.setenv(language.VARIABLE, "zh")
    monkeypatch.setattr(language, "FOLDER", tmp_path)
    language._catalogue.cache_clear()
    language._templates.cache_clear()

    def write(domain, **texts):
        made = BUILD["Catalog"](locale="zh", domain=domain)
        for message, words in texts.items():
            made.add(message, words)
        target = tmp_path / "zh" / "LC_MESSAGES" / f"{domain}.mo"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(BUILD["mo"](made))

    yield write
    language._catalogue.cache_clear()
    language._templates.cache_clear()


@pytest.mark.parametrize("variables, expected", [
    ({}, "en"), ({"LANG": "zh_CN.UTF-8"}, "zh"), ({"LANG": "C.UTF-8"}, "en"),
    ({"LC_ALL": "zh-TW", "LANG": "en_US"}, "zh"), ({"LANGUAGE": "zh:en"}, "zh"),
    ({"LANG": "de_DE.UTF-8"}, "en"), ({"LANG": "zh_CN", "MLC_LAB_LANGUAGE": "en"}, "en"),
    ({"MLC_LAB_LANGUAGE": "zh"}, "zh"), ({"MLC_LAB_LANGUAGE": "../x"}, "en")])
def test_the_language_is_the_one_asked_for_or_the_systems(monkeypatch, variables, expected):
    for name in (language.VARIABLE, *language._SYSTEM):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert language.chosen() == expected


def test_what_has_no_translation_is_read_in_english(chinese):
    chinese("some", Yes="是")
    assert language.text("Yes", "some") == "是"
    assert language.text("Yes", "some", "en") == "Yes"
    assert language.text("No", "some") == "No" and language.text("Yes", "other") == "Yes"
    assert language.text("", "some") == ""


def test_a_text_that_was_filled_in_is_known_by_its_words(chinese):
    chinese("some", **{"at most {value} misses": "最多 {value} 次未命中", "why": "原因",
                       "step {value0}: {value1}": "第 {value0} 步：{value1}"})
    assert language.filled("at most 1,024 misses", "some") == "最多 1,024 次未命中"
    assert language.filled("step 2: {x}", "some") == "第 2 步：{x}"
    assert language.filled("why", "some") == "原因"
    assert language.filled("why not", "some") == "why not"
    assert language.filled("at most 3 misses", "some", "en") == "at most 3 misses"


def test_a_text_of_several_is_told_part_by_part(chinese):
    chinese("some", **{"{value0} {value1}; {value2} suffice": "{value0} {value1}；{value2} 就够了",
                       "{value} misses": "次 {value} 未命中", "in the loop:": "在循环里：",
                       "{value0} is {value1}, not {value2}": "{value0} 是 {value1}，不是 {value2}",
                       "nobody wrote it": "没有人写过它"})
    assert language.told("9 L1 misses; 3 suffice.", "some") == "9 次 L1 未命中；3 就够了。"
    assert language.told("x is 1, not 2; nobody wrote it", "some") == "x 是 1，不是 2；没有人写过它"
    assert language.told("in the loop: nobody wrote it", "some") == "在循环里：没有人写过它"
    assert language.told("Look there. nobody wrote it", "some") == "Look there。没有人写过它"
    for unknown in ("so it misses", "so it is", "a line\n  nobody wrote it", "",
                    "e.g. this; that."):
        assert language.told(unknown, "some") == unknown
    assert language.told("in the loop:\n  why: x\nnobody wrote it", "some") == (
        "在循环里：\n  why: x\n没有人写过它")
    assert language.told("x is 1, not 2: nobody wrote it", "some") == "x 是 1，不是 2：没有人写过它"
    assert language.told("nobody wrote it", "some", "en") == "nobody wrote it"
    # a name; and what stands in brackets stays in them
    assert language.told("x: nobody wrote it", "some") == "x：没有人写过它"
    assert language.told("so there: nobody wrote it", "some") == "so there: nobody wrote it"
    assert language.told("f (nobody wrote it; so. nobody wrote it); nobody wrote it", "some") == (
        "f（没有人写过它；so。没有人写过它）；没有人写过它")


@pytest.mark.parametrize("id", [
    "01.1", "01.5", "02.1", "02.2", "02.4", "03.1", "03.2", "04.4", "05.1", "05.2", "06.2", "08.3",
    "09.1", "09.2", "09.3", "10.1", "10.3", "11.2", "11.3", "12.4", "13.3", "14.3", "15.1", "15.2",
    "16.3"])
def test_what_answers_are_told_is_chinese(id):
    variant = get(id).variant(1)
    answers = [variant.reference, *(wrong.answer for wrong in variant.wrong)]
    said = {row.says for answer in answers for row in marks(variant, answer).rows if row.says}
    assert said
    for says in said - {says for says in said if "\n" in says}:  # errors are English
        found = language.told(says, "checks", "zh")
        assert not re.search(r"[A-Za-z]{2,} [A-Za-z]{2,} [A-Za-z]{2,}", found), found


def test_words_that_are_drawn_are_chinese(monkeypatch):
    monkeypatch.setenv(language.VARIABLE, "zh")
    for exercise in exercises():
        for seed in range(3):
            variant = exercise.variant(seed)
            for said in (variant.statement, *variant.hints):
                plain = re.sub(r"```.*?```|`[^`]*`", "", said, flags=re.S)
                assert not re.search(r"[a-z]{3,} [a-z]{2,} [a-z]{3,}", plain), plain


def test_what_exercises_check_and_ask_is_translated():
    for exercise in exercises():
        for seed in range(2):
            variant = exercise.variant(seed)
            said = [check.title for check in variant.checks] + [f.question for f in variant.fields]
            for message in said:
                if lessons.has_words(message) and not re.fullmatch(r"[\w.]+\(.*\)", message):
                    found = language.filled(message, "exercises", "zh")
                    assert re.search("[\u4e00-\u9fff]", found), (exercise.id, message)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_the_blocks_of_a_lesson_are_the_lesson(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        source = lessons.source_of(cell)
        if cell["cell_type"] == "markdown":
            joined = "\n\n".join(lessons.blocks(source))
            assert re.sub(r"\n\s*\n+", "\n\n", source.strip("\n")) == re.sub(
                r"\n\s*\n+", "\n\n", joined)
    there = lessons.in_language(notebook, path.stem, "zh")
    assert len(there["cells"]) == len(notebook["cells"])
    for mine, theirs in zip(there["cells"], notebook["cells"]):
        assert mine is theirs if theirs["cell_type"] == "code" else (
            mine["metadata"] is theirs["metadata"])


def test_code_formulas_and_pictures_are_no_words():
    text = ("# Loops\n\nA *loop*\nruns.\n\n```python\nx = 1\n\ny = 2\n```\n\n$$ a + b $$\n\n"
            "![p](p.svg)")
    found = lessons.blocks(text)
    assert found[2] == "```python\nx = 1\n\ny = 2\n```" and len(found) == 5
    assert [b for b in found if lessons.has_words(b)] == ["# Loops", "A *loop*\nruns."]


def test_lessons_are_copied_in_a_language(chinese, tmp_path):
    chinese("a", **{"# Loops": "# 循环"})
    source, target = tmp_path / "from", tmp_path / "to"
    source.mkdir()
    cells = [{"cell_type": "markdown", "id": "x", "metadata": {},
              "source": ["# Loops\n", "\n", "So."]},
             {"cell_type": "code", "id": "y", "metadata": {}, "source": "1", "outputs": [],
              "execution_count": None}]
    (source / "a.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}}), "utf-8")
    (source / "data.csv").write_text("1,2")
    assert cli.copy_notebooks(source, target, "zh") == 2
    made = json.loads((target / "a.ipynb").read_text(encoding="utf-8"))
    assert made["cells"][0]["source"] == "# 循环\n\nSo." and made["cells"][1] == cells[1]
    (target / "a.ipynb").write_text("mine")
    assert cli.copy_notebooks(source, target, "zh") == 0
    assert (target / "a.ipynb").read_text() == "mine"


def test_the_page_of_a_lesson_is_that_of_its_language():
    path = next(p for p in NOTEBOOKS if p.stem.startswith("05"))
    made = lessons.in_language(json.loads(path.read_text(encoding="utf-8")), path.stem, "zh")
    pages = re.findall(r"https://mlc-lab.github.io/[^)]*", json.dumps(made["cells"]))
    assert pages == [f"https://mlc-lab.github.io/mlc-lab/zh/notebooks/{path.stem}.html"]


def test_an_exercise_is_asked_in_the_readers_language(chinese):
    one = exercises()[0]
    chinese("exercises", **{one.title: "题", one.statement: one.statement + " 好"})
    variant = one.variant(1)
    assert variant.title == "题" and variant.statement.endswith(" 好")
    assert "{" + next(iter(vars(variant.values))) + "}" not in variant.statement


def test_the_command_line_helps_in_the_readers_language(chinese, capsys):
    chinese("command", **{"open JupyterLab on the notebooks": "打开课程"})
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert "打开课程" in capsys.readouterr().out
    assert isinstance(cli._parser(), argparse.ArgumentParser)


def test_the_doctor_reports_in_the_readers_language(monkeypatch):
    monkeypatch.setenv(language.VARIABLE, "zh")
    report = doctor.examine(measure=False)
    report["parts"]["numpy"] = None
    report["tools"]["cuda"]["path"] = None
    report["advice"] = list(doctor.advice(report))
    found = doctor.as_text(report)
    assert "模拟" in found and "缺少 numpy" in found and "核心" in found
    assert not re.search(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}", found.replace("pip install", ""))
    # what stands behind Chinese names is below what stands behind others
    begins = {doctor._columns(re.match(r".*? {2,}", line).group())
              for line in found.split("\n") if re.match(r"(CPU|核心|llvmlite) ", line)}
    assert len(begins) == 1


@pytest.mark.parametrize("name, domain", CATALOGUES)
def test_a_catalogue_has_the_texts_of_today(name, domain):
    """A text that has changed: `python dev.py texts`, and a look at what is marked fuzzy."""
    catalog, path = BUILD["read"](name, domain), BUILD["compiled"](name, domain)
    assert {m.id for m in catalog if m.id} == {m.id for m in TEMPLATES[domain] if m.id}
    if domain in BUILD["COMPLETE"].get(name, ()):
        assert BUILD["missing"](catalog) == []
    done = {m.id: m.string for m in catalog if m.id and m.string and not m.fuzzy}
    kept = {}
    if path.exists():
        found = gettext.GNUTranslations(io.BytesIO(path.read_bytes()))
        kept = {k: v for k, v in found._catalog.items() if k}
    assert kept == done


_SAME = (re.compile(r"`[^`\n]+`"), re.compile(r"\]\(([^)\s]+)\)"), re.compile(r"\{[a-z_]+\}"))


@pytest.mark.parametrize("name, domain", CATALOGUES)
def test_a_translation_keeps_code_links_and_places_for_values(name, domain):
    for message in BUILD["read"](name, domain):
        if not message.id or not message.string or message.fuzzy:
            continue
        for pattern in _SAME:
            assert sorted(set(pattern.findall(message.string))) == sorted(
                set(pattern.findall(message.id))), message.id
        heads = [len(re.match("#*", t).group()) for t in (message.id, message.string)]
        assert heads[0] == heads[1], message.id


def test_languages_are_those_of_the_command():
    action = next(a for verb in cli._parser()._subparsers._group_actions
                  for a in verb.choices["lab"]._actions if a.dest == "language")
    assert list(action.choices) == list(language.LANGUAGES)
    assert os.environ.get(language.VARIABLE, "en") == "en"
