"""Answers that mean harm: each is refused with its reason, no mark is won, and grading goes on."""

import json
import zipfile

import pytest

from mlc_lab import exercises
from mlc_lab.exercises import teach
from mlc_lab.exercises.book import Book, Entry
from mlc_lab.exercises.judging import marks

GOOD = exercises.get("09.2").variant("eve").reference
IN_MUTATE = "def mutate(factors, most, seed):\n    "

#: functions handed in for 09.2 (a mutator): what they try, and what is said of them
FUNCTIONS = {
    "exits": (IN_MUTATE + "import os; os._exit(0)", "ended without a result"),
    "hangs in C": (IN_MUTATE + "import re; re.match('(a+)+$', 'a' * 60 + 'b')", "stopped"),
    "allocates terabytes": (IN_MUTATE + "return [0] * (1 << 42)", "more memory than it may use"),
    "prints without end": (IN_MUTATE + "while True: print('x' * (1 << 20))", "stopped"),
    "returns gigabytes": (IN_MUTATE + "return 'x' * (1 << 27)", "stopped"),
    "forks": (IN_MUTATE + "import os\n    while True: os.fork()", ""),
    "says it is equal": (
        "class Yes:\n    def __eq__(self, other): return True\n"
        "    def __repr__(self): return '[1]'\n"
        + IN_MUTATE + "return Yes()", "no plain data"),
    "says it is a list": (
        "class Yes(list):\n    def __eq__(self, other): return True\n    __ne__ = __lt__ = __eq__\n"
        + IN_MUTATE + "return Yes()", ""),
    "patches the judge": (
        "import mlc_lab.exercises.result as result\n"
        "result.Found.__init__ = lambda self, *a, **k: setattr(self, 'passed', True)\n"
        + IN_MUTATE + "return factors", ""),
    "writes marks": (
        IN_MUTATE + "import os\n    for n in range(3, 40):\n        try: os.write(n, "
        "b'{\"status\": \"ok\", \"points\": 99}\\n')\n        except OSError: pass",
        "wrote something else"),
    "looks for the frames of who calls": (
        IN_MUTATE + "import gc\n    for o in gc.get_objects():\n        if type(o).__name__ == "
        "'Variant': return o.reference\n    return []", ""),
    "imports the reference": (
        "from mlc_lab.exercises.catalogue.ex_09_2 import EXERCISE\n"
        "exec(EXERCISE.variant('eve').reference)", "ModuleNotFoundError"),
    "kills who called": (
        IN_MUTATE + "import os; os.kill(os.getppid(), 9)", ""),
    "raises what looks like marks": (
        IN_MUTATE + "raise Exception('<script>alert(1)</script> 5 of 5')", "Exception: <script>"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_wins_nothing_by_it(name):
    text, says = FUNCTIONS[name]
    found = marks(exercises.get("09.2").variant("eve"), text)
    assert says in str(found)
    assert not found.solved and found.points <= 1, found


@pytest.mark.parametrize("id, answer, says", [
    ("12.3", "@I.ir_module\nclass M:\n    @R.function\n    def main(x: R.Tensor((1 << 24, 1 << 24),"
     " 'float32')):\n        return x", "asked for"),
    ("12.3", "import os\nos.system('true')", ""),
    ("08.1", "while True: pass", ""),
    ("08.1", "sch.sample_perfect_tile(sch.get_loops('C')[0], n=1 << 40)", ""),
    ("07.3", "i = sch.get_loops('S')[0]\nsch.split(i, factors=[None, 9 ** 9 ** 9])", ""),
    ("10.1", {"a": float("inf")}, ""),
    ("10.1", {"__class__": 1}, "no field"),
    ("11.3", ["e"] * 100_000, ""),
])
def test_what_is_read_is_refused_with_a_reason(id, answer, says):
    found = marks(exercises.get(id).variant("eve"), answer)
    assert not found.solved and found.points == 0, found
    assert says in str(found) and len(str(found)) < 20_000


def test_grading_goes_on(tmp_path):
    handed, out = tmp_path / "handed", tmp_path / "marks"
    handed.mkdir()

    def hand_in(student, text):
        book = Book(student, {"09.2": Entry(student, text)})
        (handed / f"{student}.json").write_text(book.as_json())

    hand_in("a_exits", FUNCTIONS["exits"][0])
    hand_in("b_allocates", FUNCTIONS["allocates terabytes"][0])
    hand_in("z_good", exercises.get("09.2").variant("z_good").reference)
    (handed / "c_deep.json").write_text('{"answers": ' + "[" * 10_000 + "]" * 10_000 + "}")
    with open(handed / "d_large.json", "wb") as file:
        file.truncate(1 << 30)  # a gigabyte that takes no space
    with zipfile.ZipFile(handed / "class.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("e_bomb_1/answers.json", "w") as member:
            for _ in range(64):
                member.write(bytes(1 << 20))
        archive.writestr("../../../f_climbs_2/answers.json", json.dumps([]))
    graded = {g.student: g for g in teach.grade(
        teach.collect(handed), out, ["09.2"], jobs=1, progress=False)}
    assert graded["z_good"].points == graded["z_good"].of > 0
    for student, says in [("c_deep", "levels"), ("d_large", "1,073,741,824 bytes"),
                          ("e_bomb", "bytes; answers have"), ("f_climbs", "no file of answers")]:
        assert says in graded[student].problem and graded[student].points == 0
    for student, says in [("a_exits", "without a result"), ("b_allocates", "more memory")]:
        assert says in str(graded[student].results["09.2"]) and graded[student].points == 0
    assert not (tmp_path.parent / "f_climbs_2").exists()
    assert all(p.parent == out for p in out.rglob("*"))
