"""Answers as students write them: lines, words and numbers; and what else they may be."""

import pytest

from mlc_lab import exercises
from mlc_lab.exercises.catalogue import ExerciseError
from mlc_lab.exercises.command import exercise, from_text, shown
from mlc_lab.exercises.judging import marks


def test_a_prediction_is_written_in_lines():
    variant = exercises.get("11.3").variant(3)
    right = variant.reference
    lines = (f"first: {right['first']}\nwhy: {right['why']}\n"
             f"unknown: {', '.join(right['unknown'])}\n")
    assert marks(variant, from_text(variant, lines)).solved
    variant = exercises.get("10.1").variant("ada")
    lines = "".join(f"{name}: {trials}\n" for name, trials in variant.reference.items())
    assert marks(variant, from_text(variant, lines)).solved


def test_a_prediction_of_one_field_is_the_value_alone():
    variant = exercises.get("01.3").variant(4)
    assert marks(variant, from_text(variant, ", ".join(variant.reference) + "\n")).solved


def test_what_is_no_number_is_told_by_its_field():
    variant = exercises.get("10.1").variant("ada")
    name = next(iter(variant.reference))
    found = marks(variant, from_text(variant, f"{name}: many"))
    assert found.error["message"] == f"{name}: 'many' is no number" and found.error["hint"]


def test_the_statement_in_a_terminal_says_how_an_answer_is_written():
    variant = exercises.get("10.1").variant("ada")
    names = ", ".join(f"{name}: ..." for name in variant.reference)
    assert f"An answer has a line for each of them: {names}" in shown(variant)
    assert "  1 point: half" in shown(variant) and "  3 points: all" in shown(variant)


def test_kernels_of_an_exercise_are_fields_by_their_own_names():
    variant = exercises.get("10.1").variant("ada")
    assert all(f"`{field.name}`" in variant.statement for field in variant.fields)
    first = variant.fields[0].name
    assert f"nothing was filled in for {variant.fields[1].name}" in str(marks(variant, {first: 40}))


@pytest.mark.parametrize("text, says", [
    ("", "the answer is empty"), ("# nothing yet\n", "there is no program in the answer"),
    ("C = A + B\n", "there is no program in the answer"), ("def main(:", "no Python")])
def test_a_text_without_a_program_says_what_to_write(text, says):
    found = marks(exercises.get("01.1").variant(0), text)
    assert says in found.error["message"] and "%%" not in found.error["hint"]
    assert "no Python" in says or "@T.prim_func" in found.error["hint"]


class Given:
    """The arguments of the command line."""

    seed, hint, solution, give_up, json, folder = "0", None, False, False, False, None

    def __init__(self, id, answer):
        self.id, self.answer = id, answer


def test_a_file_that_is_no_text_is_refused_in_a_line(tmp_path, capsys):
    path = tmp_path / "answer.py"
    path.write_bytes(b"\xff\xfe\x00")
    assert exercise(Given("01.1", str(path))) == 2
    assert "no text in UTF-8" in capsys.readouterr().err


def test_a_file_with_the_mark_of_an_editor_is_read(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MLC_LAB_HOME", str(tmp_path))
    path = tmp_path / "answer.py"
    path.write_text(exercises.get("01.1").variant("0").reference, encoding="utf-8-sig")
    assert exercise(Given("01.1", str(path))) == 0
    assert "4 of 4" in capsys.readouterr().out


@pytest.mark.parametrize("id, close", [("1.1", "01.1"), ("3.9", "03.1"), ("03.9", "03.1")])
def test_an_id_that_there_is_not_names_those_of_its_lesson(id, close):
    with pytest.raises(ExerciseError, match=f"there are {close}"):
        exercises.get(id)


def test_two_blocks_of_one_name_are_two():
    variant = exercises.get("01.1").variant(2)
    v = variant.values
    twice = f"""
@T.prim_func
def main(A: T.Buffer(({v.n}, {v.m}), "float32"), B: T.Buffer(({v.m},), "float32"),
         C: T.Buffer(({v.n}, {v.m}), "float32")):
    for i, j in T.grid({v.n}, {v.m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]
    for i, j in T.grid({v.n}, {v.m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = C[vi, vj] + B[vj]
"""
    found = marks(variant, twice)
    assert found.points == 3 and "blocks: 2; asked for: 1" in str(found)


def test_a_step_through_padded_rows_has_the_padding_in_it():
    variant = exercises.get("05.2").variant("ada")
    v = variant.values
    n, distance = v.n, (2 * v.n, v.n // 2)  # rows of a length that is no multiple of the first
    found = str(marks(variant, f'sch.storage_align("{v.M}", 0, 0, {distance[0]}, {distance[1]})'))
    bytes_on = 4 * next(d for d in range(n, 4 * n) if d % distance[0] == distance[1])
    assert f"it goes {bytes_on} bytes on; that is down a column of {v.M}" in found


def test_a_number_that_is_none_is_told_so():
    found = marks(exercises.get("09.1").variant("ada"), "def predict(f):\n    return float('nan')")
    assert "it returned NaN or an infinity, and numbers are asked for" in str(found)


def test_rows_after_one_that_decides_say_so():
    variant = exercises.get("12.2").variant("ada")
    answer = ("def pattern():\n    return is_op('relax.nn.relu')(is_op('relax.add')("
              "is_op('relax.matmul')(wildcard(), wildcard()), wildcard()))")
    found = str(marks(variant, answer))
    assert "no points: a row above comes first" in found and "something else" not in found


def test_a_maximum_that_begins_with_zero_is_wrong_on_negative_numbers(tmp_path):
    (tmp_path / "ex_max.py").write_text(OWN, encoding="utf-8")
    variant = exercises.get("91.1", tmp_path).variant(0)
    assert marks(variant, variant.reference).solved
    wrong = variant.reference.replace('T.min_value("float32")', "T.float32(0)")
    found = str(marks(variant, wrong))
    assert "S[0] is 0, and should be -1" in found and "numbers of the input are negative" in found


OWN = '''
from mlc_lab.exercises import Exercise, row

EXERCISE = Exercise(
    id="91.1", title="Maxima", level=2, minutes=10, kind="program",
    statement="The largest number of each row.",
    draw=lambda rng: {"n": rng.choice([4, 5]), "m": rng.choice([6, 7])},
    checks=lambda v: [row("structure", 1, "one block", blocks=1),
                      row("equivalent", 3, "it computes the maximum")],
    hints=("1", "2", "3"),
    reference=lambda v: f"""
@T.prim_func
def main(A: T.Buffer(({v.n}, {v.m}), "float32"), S: T.Buffer(({v.n},), "float32")):
    for i, k in T.grid({v.n}, {v.m}):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.min_value("float32")
            S[vi] = T.max(S[vi], A[vi, vk])
""")
'''


@pytest.mark.parametrize("text, by, says", [
    ('row("equivalent"', 'row("equivalnt"', "no check 'equivalnt'; is 'equivalent' meant"),
    ("blocks=1", "block=1", "'structure' has no option 'block'; it has nest"),
    ("row(\"equivalent\", 3", "row(\"equivalent\", '3'", "are a whole number, not '3'"),
    ('"m": rng', '"q": rng', "reference= of exercise 91.1: .*no attribute 'm'"),
    ("T.max(", "T.maximum(", "T has no name 'maximum'"), ("rng.choice", "rng.chose", "draw= of")])
def test_a_mistake_of_a_teachers_is_not_told_to_students(tmp_path, text, by, says):
    (tmp_path / "ex_max.py").write_text(OWN.replace(text, by), encoding="utf-8")
    with pytest.raises(ExerciseError, match=f"ex_max.py: .*{says}"):
        exercises.get("91.1", tmp_path)
