"""The laws of every exercise: its reference has all points, each typical mistake what it should."""

import json
import os
import random
import re
from collections import Counter
from pathlib import Path

import pytest

from mlc_lab import exercises
from mlc_lab.exercises.answers import as_data
from mlc_lab.exercises.checks import CHECKS
from mlc_lab.exercises.judging import marks
from mlc_lab.exercises.result import told_error
from mlc_lab.language import speaking, told

CATALOGUE = exercises.catalogue()
NOTEBOOKS = Path(__file__).parent.parent.parent / "notebooks"
#: variants of each exercise: so many at least, and at most, as many as can be tried in the
#: processor's seconds. `python tests/exercises/variants.py` tries all
LEAST, MOST, SECONDS = 4, 200, 1.5
#: a character of a Chinese text; an English clause, and not the text of a program
CHINESE, SENTENCE = re.compile(r"[\u4e00-\u9fff]"), re.compile(r"([a-z]{2,}[ ,;:]+){4}[a-z]{2,}")


def processor_time():
    """Seconds of this process and of those that have ended: a function runs in one of its own."""
    return sum(os.times()[:4])


@pytest.mark.parametrize("exercise", CATALOGUE, ids=lambda e: e.id)
def test_the_reference_has_all_points_on_every_variant(exercise):
    end = processor_time() + SECONDS
    for seed in range(MOST):
        if seed >= LEAST and processor_time() > end:
            break
        variant = exercise.variant(seed)
        found = marks(variant, variant.reference)
        assert found.solved, f"variant {seed}\n{found}"


@pytest.mark.parametrize("exercise", CATALOGUE, ids=lambda e: e.id)
def test_typical_mistakes_have_their_points_and_are_told_why(exercise):
    variant = exercise.variant(1)
    assert len(variant.wrong) >= 3
    for wrong in variant.wrong:
        with speaking("zh"):
            found = marks(variant, wrong.answer)
            read = shown(found)
        assert wrong.says in str(found), found
        assert found.points == wrong.points < found.of, found
        # the same bytes for every reader, and each is told in the language he chose
        assert not CHINESE.search(found.as_json()), found
        assert all(CHINESE.search(line) or not SENTENCE.search(line) for line in read), read


def shown(found):
    """What marks say in the reader's language: of an error its first line, which names the rule."""
    error = told_error(found.error)["message"].split("\n")[:1] if found.error else []
    rows = [line for row in found.rows for line in told(row.says, "checks").split("\n")]
    return error + [line for line in rows if not line.startswith(" ")]


@pytest.mark.parametrize("exercise", CATALOGUE, ids=lambda e: e.id)
def test_a_variant_is_what_its_seed_says(exercise):
    one, same = exercise.variant("ada"), exercise.variant("ada")
    assert vars(one.values) == vars(same.values) and one.statement == same.statement
    assert len({str(vars(exercise.variant(n).values)) for n in range(30)}) > 1
    assert "{" not in "".join(one.hints) or one.exercise.kind != "schedule"
    assert all(check.kind in CHECKS for check in one.checks) and one.points > 0
    assert one.statement and one.exercise.minutes > 0


#: students of a class; how many different answers they have to give at least, and of how many
#: students' answers one may be; pairs of which one copies, and how many may have full marks by it
CLASS, ANSWERS, SAME, PAIRS, CARRIED = 40, 6, 13, 6, 1


@pytest.mark.parametrize("exercise", CATALOGUE, ids=lambda e: e.id)
def test_an_answer_cannot_be_copied(exercise):
    kind = exercise.kind
    answers = [as_data(kind, exercise.variant(n).reference) for n in range(CLASS)]
    texts = Counter(json.dumps(answer, sort_keys=True) for answer in answers)
    assert len(texts) >= ANSWERS and max(texts.values()) <= SAME, texts
    rng = random.Random(exercise.id)
    carried = []
    for _ in range(PAIRS):
        one, other = rng.sample(range(CLASS), 2)
        if marks(exercise.variant(other), answers[one]).solved:
            carried.append((one, other))
    assert len(carried) <= CARRIED, carried


def test_each_lesson_ends_in_its_exercises():
    for exercise in CATALOGUE:
        (lesson,) = NOTEBOOKS.glob(f"{exercise.id[:2]}_*.ipynb")
        assert f'exercise(\\"{exercise.id}\\")' in lesson.read_text(encoding="utf-8"), exercise.id
    count = Counter(exercise.lesson for exercise in CATALOGUE)
    assert min(count.values()) >= 3, count


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("[0-9]*.ipynb")), ids=lambda p: p.stem)
def test_exercises_of_a_lesson_are_checked_or_answered(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells]
    asked = "\n".join(s[s.index("## Exercises"):] for s in sources if "## Exercises" in s)
    if re.search(r"^1\. ", asked, re.M):
        assert "<summary>Answers, to compare with yours</summary>" in asked
    told = re.search(r"(\w+) are on cards", asked)
    cards = sum('exercise("' in source for source in sources)
    words = {"Two": 2, "Three": 3, "Four": 4}
    assert told is None or words[told[1]] == cards
