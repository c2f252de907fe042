"""Cards on the pages of the site: what a page says of an answer is what Python says of it."""

import json
import random
import sys
from pathlib import Path

import pytest
from browser import open_page

from mlc_lab import exercises, language
from mlc_lab.exercises.answers import AnswerError, read
from mlc_lab_widgets import page_card

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "website"))
PREDICTIONS = [e.id for e in exercises.catalogue() if e.kind == "prediction"]
#: those of which a row needs Python
ASKED_OF_PYTHON = {"10.1"}
#: numbers that are written in each of Python's ways
NUMBERS = (0, -3, 7, 2.5, -0.125, 1e-4, 2.5e-5, 1e-7, 123456789, 10**16, 1e22)
#: fills in the answer to a card as a reader does, and asks for its marks
FILL = """([n, values, kinds]) => {
  const card = document.querySelectorAll(".mlc-card")[n];
  const places = [...card.querySelectorAll(".answer > fieldset")];
  kinds.forEach(([name, kind, choices], at) => {
    const place = places[at], value = values[name];
    if (value === null) return;
    if (place.querySelector(".marking")) {
      place.querySelector(".hint button").click();
      const marked = new Set([value].flat());
      for (const mark of place.querySelectorAll("[data-mark]"))
        if (marked.has(mark.dataset.mark)) mark.click();
    } else if (kind === "number") {
      const input = place.querySelector("input");
      input.value = String(value);
      input.dispatchEvent(new Event("input"));
    } else if (kind === "order") {
      const now = () => [...place.querySelectorAll("li > span")].map((one) => one.textContent);
      value.forEach((choice, to) => {
        for (let from = now().indexOf(choice); from > to; from--)
          place.querySelectorAll("li")[from].querySelector("button").click();
      });
    } else
      for (const input of place.querySelectorAll("input")) {
        const chosen = [value].flat().includes(input.value);
        if (chosen || kind === "several") input.click();
        if (!chosen && kind === "several") input.click();  // what was chosen and is not any more
      }
  });
  card.querySelector(".check").click();
  return {
    points: card.querySelector(".points").textContent,
    rows: [...card.querySelectorAll(".marks > li")].map((row) => [
      row.classList.contains("yes"),
      row.children[1].firstChild.textContent,
      row.querySelector("small")?.textContent ?? "",
      row.querySelector(".of").textContent,
    ]),
  };
}"""


def page_of(folder, recordings):
    """A page of the site with these views."""
    import build

    build.statics(folder)
    places = "".join("".join(build.around(kept)) for kept in recordings)
    path = folder / "page.html"
    # one above the other: all are near to what is seen, and drawn
    path.write_text('<!doctype html><meta charset="utf-8">'
                    f'<style>.mlc-place {{ position: absolute; top: 0 }}</style>{places}'
                    '<script defer src="_static/views/site.js"></script>', encoding="utf-8")
    return path


def is_read(variant, answer):
    """Whether an answer is one that fields can hold: not two places where one is asked for."""
    try:
        return bool(read(variant, answer))
    except AnswerError:
        return False


def as_filled(variant, answer):
    """The value of each field that shows an answer; what nobody put in order is as it was."""
    plain = {f.name: None for f in variant.fields} if answer == {} else read(variant, answer).values
    made = {}
    for field in variant.fields:
        value = plain[field.name]
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
            value = int(value)  # a field says no difference
        made[field.name] = list(field.choices) if field.kind == "order" and value is None else value
    return made


def some_answer(variant, rng):
    """A random value of each field, near the right ones too."""
    right = as_filled(variant, variant.reference)
    made = {}
    for field in variant.fields:
        near = right[field.name]
        if field.kind == "number":
            value = rng.choice([near, near + 1, near * 2, *NUMBERS])
        elif field.kind == "choice":
            value = rng.choice(field.choices)
        elif field.kind == "order":
            value = rng.sample(field.choices, len(field.choices))
        else:
            changed = rng.sample(field.choices, rng.randint(0, min(6, len(field.choices))))
            start = rng.choice([set(), set(near)])
            value = [name for name in field.choices if (name in start) != (name in changed)]
        made[field.name] = value
    return as_filled(variant, made)


@pytest.mark.browser
@pytest.mark.parametrize("spoken", ["en", "zh"])
@pytest.mark.parametrize("id", [i for i in PREDICTIONS if i not in ASKED_OF_PYTHON])
def test_a_page_says_of_an_answer_what_python_says(chromium, tmp_path, monkeypatch, id, spoken):
    monkeypatch.setenv(language.VARIABLE, spoken)
    variant, rng = exercises.get(id).variant(0), random.Random(id)
    answers = [{}, variant.reference, *filter(lambda a: is_read(variant, a),
                                              (wrong.answer for wrong in variant.wrong)),
               *(some_answer(variant, rng) for _ in range(6))]
    kinds = [[f.name, f.kind, list(f.choices)] for f in variant.fields]
    path = page_of(tmp_path, [page_card.recorded(variant)] * len(answers))
    with open_page(chromium) as page:
        # as in a private window: and the cards of one exercise share no answer
        page.add_init_script("Storage.prototype.setItem = () => { throw new Error('no room'); }")
        page.goto(path.as_uri())
        page.locator(".mlc-card").nth(len(answers) - 1).wait_for()
        for n, answer in enumerate(answers):
            values = as_filled(variant, answer)
            found = page.evaluate(FILL, [n, values, kinds])
            marks = exercises.check(id, values, seed=0, on_row=lambda row: None)
            assert marks.error is None
            assert [row[1:] for row in found["rows"]] == [
                [language.filled(row.title, "exercises"), language.told(row.says, "checks"),
                 f"{row.points} / {row.of}"] for row in marks.rows], values
            assert [row[0] for row in found["rows"]] == [row.passed for row in marks.rows]
            assert f"{marks.points}" in found["points"] and f"{marks.of}" in found["points"]


def test_every_prediction_is_checked_on_a_page_but_those_that_need_python():
    for id in PREDICTIONS:
        found = page_card.page(exercises.get(id).variant(0))
        assert ("rows" in found) == (id not in ASKED_OF_PYTHON), id
        assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_only_the_site_tells_what_is_right(tmp_path):
    """A notebook and a page of a card have neither hints nor truth."""
    pytest.importorskip("anywidget")
    for id in ("02.2", "03.2", "03.6"):
        variant = exercises.get(id).variant(0)
        card = exercises.exercise(id)
        kept = card._repr_mimebundle_()[0]["application/vnd.mlc-lab.view+json"]
        told = json.dumps([card._values(), kept]) + card.html()
        assert not kept["alone"]["live"] and '"page"' not in told
        assert not any(json.dumps(hint)[1:-1] in told for hint in variant.hints)
        assert "page" in page_card.page(variant) or page_card.live(kept)["alone"]["live"]


def test_a_card_of_a_teachers_exercise_stays_as_it_is():
    kept = page_card.recorded(exercises.get("02.2").variant(0))
    task = {"id": "02.2", "seed": "0", "statement": "another one"}
    other = {**kept, "values": {"task": task}, "alone": {"live": False}}
    assert page_card.live(other) == other
    unknown = {**other, "values": {"task": {**task, "id": "99.1"}}}
    assert page_card.live(unknown) == unknown
