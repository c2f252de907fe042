"""Views in another language: a page speaks that in which it was made, and English otherwise."""

import json
import re
import runpy
from pathlib import Path

import handmade
import pytest
from browser import open_page

from mlc_lab import exercises, language
from mlc_lab_widgets import bundle

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = runpy.run_path(str(ROOT / "translations" / "build.py"))


@pytest.fixture
def zh(monkeypatch, tmp_path):
    monkeypatch.setenv(language.VARIABLE, "zh")
    monkeypatch.setenv("MLC_LAB_HOME", str(tmp_path))


def test_the_texts_of_a_script_are_found_in_it():
    script = """h("b", {}, t("One")); x.get("two"); t(
      "Three " +
        'of "{n}"',
      { n }), t(word)"""
    assert list(BUILD["said_in"](script)) == ["One", 'Three of "{n}"']


def test_every_text_of_the_scripts_stands_in_a_bundle():
    made = "".join(path.read_text(encoding="utf-8") for path in bundle.HERE.glob("bundles/*.js"))
    found = {message for _, message, where in BUILD["of_views"]() if where.startswith("widgets/js")}
    assert len(found) > 400
    assert sorted(message for message in found if message not in made) == []


def test_a_view_has_the_words_of_its_own_script(zh, monkeypatch):
    words = bundle.words("stepper.js")
    assert words[""] == "zh" and words["Next step"] == "下一步"
    assert "find an operator, shape, name" not in words
    assert len(json.dumps(words, ensure_ascii=False).encode()) < 25_000
    monkeypatch.setenv(language.VARIABLE, "en")
    assert bundle.words("stepper.js") == {}


def test_a_page_in_english_has_no_words(monkeypatch):
    monkeypatch.setenv(language.VARIABLE, "en")
    text = handmade.recording().html(None)
    assert '<html lang="en">' in text and '"words"' not in text.split("<script type=\"module\">")[0]


def test_a_widget_keeps_the_language_in_which_it_was_made(zh, monkeypatch):
    pytest.importorskip("anywidget")
    card = exercises.exercise("01.2", seed="ada")
    monkeypatch.setenv(language.VARIABLE, "en")
    other = exercises.exercise("01.2", seed="ada")
    assert card._values()["words"]["Check"] == "检查"
    assert "words" not in other._values() and other.words == {}


@pytest.mark.browser
def test_the_stepper_in_chinese(chromium, zh, tmp_path):
    path = tmp_path / "stepper.html"
    handmade.recording().html(path, "matmul and relu")
    with open_page(chromium) as page:
        page.goto(path.as_uri())
        assert page.locator("html").get_attribute("lang") == "zh"
        page.get_by_role("button", name="最后一步").click()
        assert page.locator(".count").inner_text() == "6 / 6"
        page.get_by_role("tab", name="循环嵌套").wait_for()
        assert page.locator("[aria-valuetext]").first.get_attribute("aria-valuetext") == (
            "6 / 6：vectorize")
        said = page.locator(".facts").inner_text()
        assert "时间" in said and "结果" in said
        assert not re.search(r"\b(Time|Result|Speed|Change|faster|slower)\b", said)
        assert page.locator(".cap select").first.locator("option").first.inner_text() == "之前"


def test_a_prediction_is_asked_in_chinese_and_answered_with_the_same_data(zh):
    pytest.importorskip("anywidget")
    field = exercises.exercise("14.1", seed="ada").task["fields"][-1]
    assert field["question"] == "是什么限制了不能更多？"
    assert "shared memory" in field["choices"] and "共享内存" in field["said"]


def test_what_stands_beside_a_view_without_a_kernel_has_words(zh):
    words = bundle.words("stepper.js")
    assert "内核" in words["This view has lost its kernel, which was restarted or has ended."]


@pytest.mark.browser
def test_the_card_in_chinese(chromium, zh, tmp_path):
    card = exercises.exercise("01.2", seed="ada")
    marks = card.check(card.source.wrong[0].answer)
    path = tmp_path / "card.html"
    card.html(path)
    with open_page(chromium) as page:
        page.goto(path.as_uri())
        view = page.locator(".mlc-card")
        assert page.locator("[data-mlc-view]").get_attribute("lang") == "zh"
        assert view.locator(".points").inner_text() == f"{marks.points} / {marks.of} 分"
        assert view.get_by_role("textbox", name="答案").count() == 1
        assert "分钟" in view.locator("header").inner_text()
