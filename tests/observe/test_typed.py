"""A text that is typed: what is read of it, what follows, and that no text does harm."""

import random

import pytest
from observe.programs import matmul

import mlc_lab as tvm
from mlc_lab.observe.counts import count_accesses
from mlc_lab.observe.typed import Typed
from mlc_lab.observe.typed_text import MOST_TEXT
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source

PROGRAM = '''\
from tvm.script import tir as T

N = 16

@T.prim_func
def main(A: T.Buffer((N, N), "float32"), B: T.Buffer((N, N), "float32"),
         C: T.Buffer((N, N), "float32")):
    for i, j, k in T.grid(N, N, N):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
'''
SCHEDULE = '''\
i, j, k = sch.get_loops("C")
j0, j1 = sch.split(j, factors=[None, live("tile", 8)])
sch.reorder(i, j0, k, j1)
sch.vectorize(j1)
sch.decompose_reduction("C", k)
'''
BOTH = f"{PROGRAM}\nsch = tvm.tir.Schedule(main)\n{SCHEDULE}"


def scheduled(mod, tile):
    sch = Schedule(mod)
    i, j, k = sch.get_loops("C")
    j0, j1 = sch.split(j, factors=[None, tile])
    sch.reorder(i, j0, k, j1)
    sch.vectorize(j1)
    sch.decompose_reduction("C", k)
    return text_of(sch.mod)


def text_of(mod):
    return mod.script().partition("\n\n")[2].rstrip()


def program(lab):
    return "\n".join(lab.lines(lab.at))


@pytest.fixture
def lab():
    made = Typed(BOTH, caches="1K:2, 8K:4")
    yield made
    made.close()


def test_a_text_is_a_program_a_schedule_or_both(lab):
    text = scheduled(from_source(PROGRAM), 8)
    assert lab.error is None and program(lab) == text
    assert program(Typed(PROGRAM)) == text_of(Schedule(from_source(PROGRAM)).mod)
    assert program(Typed(SCHEDULE, from_source(PROGRAM))) == text
    assert program(Typed(SCHEDULE, Schedule(from_source(PROGRAM)))) == text
    assert program(Typed("", matmul(8))) == text_of(Schedule(matmul(8)).mod)


def test_a_schedule_of_what_the_names_have():
    names = {"Product": matmul(16), "tile": 4, "T": tvm.tir}
    text = SCHEDULE.replace('live("tile", 8)', "tile")
    lab = Typed("sch = tvm.tir.Schedule(Product)\n" + text, names=names)
    assert lab.error is None and program(lab) == scheduled(matmul(16), 4)
    lab.set("sch = tvm.tir.Schedule(Produkt)\n" + text)
    assert lab.error["line"] == 1 and "'Product'" in lab.error["hint"]
    lab.set("sch = tvm.tir.Schedule(tile)\n" + text)
    assert "tile is a int, no module" in lab.error["message"]


def test_a_schedule_goes_on_from_where_it_is():
    sch = Schedule(matmul(16))
    i, j, k = sch.get_loops("C")
    lab = Typed("s.parallel(i)", sch, names={"i": i, "j": j}, name="s")
    assert lab.error is None and "T.parallel(16)" in program(lab)
    sch.split(i, [4, 4])  # a step after it: the page keeps what it was given
    lab.set("sch.vectorize(j)")
    assert lab.error is None and "T.vectorized(16)" in program(lab)


def test_constants_of_the_text_are_names_for_the_schedule():
    lab = Typed(BOTH.replace("N = 16", "N = 16\ntile = 4").replace('live("tile", 8)', "tile"))
    assert lab.error is None and "T.vectorized(4)" in program(lab)


def test_the_program_before_its_last_one_can_be_scheduled():
    other = PROGRAM.replace("def main", "def other").replace("N = 16", "N = 8")
    lab = Typed(f"{PROGRAM}{other}\nsch = tvm.tir.Schedule(main)\n{SCHEDULE}")
    assert lab.error is None and "(16, 16)" in program(lab)


@pytest.mark.parametrize("old, new, line, column, message", [
    ("T.float32(0)", "T.float32(0", 12, 37, "this is no Python"),
    ("T.float32(0)", "T.float23(0)", 12, 30, "float23"),
    ("A[vi, vk]", "A[vi, vx]", 13, 42, "vx"),
    ("sch.vectorize(j1)", "sch.vectorise(j1)", 19, 0, "there is no primitive"),
    ("sch.vectorize(j1)", "for x in y: pass", 19, 0, "a for statement cannot be read"),
    ("sch.vectorize(j1)", "sch.vectorize(j2)", 19, 14, "'j2' is not defined"),
    ("sch.vectorize(j1)", "v = sch.ge", 19, 4, "there is no primitive 'ge'"),
    ("sch.vectorize(j1)", "sch.vec", 19, 0, "there is no primitive 'vec'"),
    ("sch.vectorize(j1)", "v = sch.get_block", 19, 4, "its arguments are missing"),
    ("sch.vectorize(j1)", "v = sch", 19, 4, "a primitive of sch is missing here"),
    ("sch.vectorize(j1)", "v = sc", 19, 4, "'sc' is not defined before this line"),
    ('live("tile", 8)', 'live("tile", 7)', 17, 9, "none of its choices"),
    ('live("tile", 8)', 'live("tile", N)', 17, 37, "both written out"),
    ('live("tile", 8)', 'live("tile", 8, choices=range(9))', 17, 61, "range"),
])  # fmt: skip
def test_a_mistake_is_told_at_its_place_and_the_last_program_stays(
        lab, old, new, line, column, message):
    before = lab.at
    lab.set(BOTH.replace(old, new))
    assert message in lab.error["message"]
    assert (lab.error["line"], lab.error["column"]) == (line, column), lab.error
    assert lab.at is before
    lab.set(BOTH)
    assert lab.error is None and lab.at is before


@pytest.mark.parametrize("typed, hint", [
    ("v = sch.ge", "so begin get_block, get_child_blocks"),
    ("sch.vec", "did you mean 'vectorize'?"),
    ("v = sch.vectorise", "did you mean 'vectorize'?"),
    ("v = sch.get_block", "write sch.get_block(...)"),
    ("v = sch.fuse(jj1)", "did you mean 'j1'?"),
    ("v = sc", "did you mean 'sch'?"),
    ("v = sch", 'as in sch.get_block("C")'),
])  # fmt: skip
def test_what_is_not_finished_is_told_with_the_names_that_are_near(lab, typed, hint):
    lab.set(BOTH.replace("sch.vectorize(j1)", typed))
    assert hint in lab.error["hint"], lab.error


def test_a_refused_primitive_is_told_under_its_line(lab):
    lab.set(BOTH.replace("sch.vectorize(j1)", "sch.vectorize(k)"))
    error = lab.error
    assert error["line"] == 19 and error["call"].startswith("sch.vectorize")
    assert error["rule"] == "parallel loops are spatial"
    assert "k = 0 and k = 1" in error["message"] and "rfactor" in error["message"]


def test_with_no_program_before_it_what_could_be_read_is_shown():
    lab = Typed(BOTH.replace("sch.vectorize(j1)", "sch.vectorize(k)"))
    assert lab.error is not None and "j_0" in program(lab) and "T.vectorized" not in program(lab)
    assert lab.count(lab.at) == {} and lab.measure(lab.at) == {}
    for text in ("", "x", "def", "N = 4"):
        lab = Typed(text)
        assert lab.error is not None and program(lab) == "" and lab.shown(lab.at)["lines"] == []
        lab.set(PROGRAM)
        assert lab.error is None and program(lab)


def test_counts_are_those_of_the_program(lab):
    found = lab.count(lab.at)["counts"]
    expected = count_accesses(lab.module(lab.at), "1K:2, 8K:4").to_dict()
    assert found["levels"] == expected["levels"]
    before = lab.at
    lab.set(BOTH.replace("sch.vectorize(j1)\n", ""))
    assert lab.why(before, lab.at) == []  # until both are counted
    lab.count(lab.at)
    assert lab.why(before, lab.at)
    assert lab.measure(lab.at)["equal"] is True
    lab.set(BOTH + "# the same program\n")
    assert lab.cost(lab.at) is lab.cost(before)


def test_what_is_compared_with_is_the_program_as_it_is_now(lab):
    lab.measure(lab.at)
    lab.set(BOTH.replace("T.float32(0)", "T.float32(1)").replace("N = 16", "N = 8"))
    assert lab.measure(lab.at)["equal"] is True and len(lab.recording.programs) == 2
    lab.set(BOTH)
    lab.count(lab.at)
    assert lab.cost(lab.at)["time"]


def test_numbers_that_are_left_open_are_knobs(lab):
    (knob,) = lab.knobs
    assert (knob.name, knob.labels, knob.start) == ("tile", ("1", "2", "4", "8", "16"), 3)
    at = lab.at
    other = lab.point([4])
    assert lab.at is at and other.text == BOTH.replace('"tile", 8', '"tile", 16')
    assert "\n".join(lab.lines(other)) == scheduled(from_source(PROGRAM), 16)
    assert [lab.text_of(s) for s in lab.neighbours(lab.first, 0)][3] == BOTH
    assert lab.points.keys() == {at.key, other.key}
    lab.set(other.text)
    assert lab.at is other and lab.first == [4]


def test_a_number_in_two_places_is_one():
    text = SCHEDULE + 'k0, k1 = sch.split(k, factors=[None, tvm.live("tile", 8)])\n'
    lab = Typed(text.replace('sch.decompose_reduction("C", k)\n', ""), matmul(16))
    assert lab.error is None and len(lab.knobs) == 1
    assert lab.point([1]).text.count('"tile", 2)') == 2


def test_columns_are_those_of_a_browser():
    text = SCHEDULE.replace("sch.reorder", "'𝄞'; sch.reorder").replace('"tile"', '"𝄞é"')
    lab = Typed(text, matmul(16))
    assert lab.error is None and lab.point([4]).text == text.replace(", 8)", ", 16)")
    lab.set(text.replace("reorder(i", "reorder(x"))
    assert lab.error["column"] == 18


def test_windows_line_ends_are_read(lab):
    lab.set(BOTH.replace("\n", "\r\n"))
    assert lab.error is None and lab.text == BOTH


# --------------------------------------------------------------------------- whatever is typed


def check(lab, text):
    """A text gives a program, or an error at a line of it."""
    lab.set(text)
    if lab.error is None:
        assert lab.at.text == lab.text and lab.lines(lab.at)
    else:
        lines = lab.text.split("\n")
        assert 1 <= lab.error["line"] <= len(lines) and lab.error["message"]
        units = len(lines[lab.error["line"] - 1].encode("utf-16-le", "surrogatepass")) // 2
        assert 0 <= lab.error["column"] <= lab.error["end"] <= units
    lab.shown(lab.at)


@pytest.mark.parametrize("text, mod", [(BOTH, None), (SCHEDULE, 16)])
def test_typed_letter_by_letter(text, mod):
    lab = Typed("", matmul(mod) if mod else None)
    for end in range(len(text) + 1):
        check(lab, text[:end])
    assert lab.error is None


@pytest.mark.parametrize("seed", range(4))
def test_texts_with_random_mistakes(seed):
    rng = random.Random(seed)
    lab = Typed(BOTH, names={"main": matmul(16)})
    letters = "()[]{}:,.=+-*/%@#\"'\\ \n\t\r\x00\x0c09aTj_𝄞é\ud800"
    words = ["sch.", "live(", "T.", "main", "None", "[", "T.grid(", "10**9", "lambda ", "-1", "\n"]
    for _ in range(60):
        text = BOTH
        for _ in range(rng.randint(1, 4)):
            at, to = sorted(rng.randrange(len(text) + 1) for _ in range(2))
            text = rng.choice([
                text[:at] + text[min(to, at + 8):],
                text[:at] + rng.choice(letters) + text[at:],
                text[:at] + rng.choice(words) + text[at:],
                text[:at] + text[at:to][::-1][:9] + text[at:],
            ])
        check(lab, text)


@pytest.mark.parametrize("text", [
    "(" * 5000,
    "x = " + "-" * 100_000 + "1",
    "x = [" + "[" * 50_000,
    PROGRAM.replace("N = 16", "N = 9 ** 9 ** 9"),
    PROGRAM.replace("N = 16", "N = 10 ** 30"),
    BOTH.replace("N = 16", "N = 2 ** 62"),
    BOTH.replace("N = 16", "N = 2 ** 30"),
    BOTH.replace('live("tile", 8)', 'live("tile", 8, choices=[8] * 10 ** 9)'),
    SCHEDULE.replace("8)", "9 ** 9 ** 9)"),
    "a = [1]\n" + "a = [a, a]\n" * 64,
    "import os\nos.system('true')",
    "__import__('os').system('true')",
    "sch = tvm.tir.Schedule(__import__('os'))",
    PROGRAM.replace("T.float32(0)", "print('run')"),
    "x" * (MOST_TEXT + 1),
    "class A:\n" * 500,
    "\ud800", "\x00", "\x0c", "\t x\n y", "%%live\n", "é = 1\nsch.vectorize(é)", "sch = sch",
    "sch = tvm.tir.Schedule()", "sch, x = tvm.tir.Schedule(main)", "sch.work_on(5)",
    "sch.split(*[1] * 9)", "sch.get_loops('C', **{})", "live()", "live('a', 1)", "sch.mod",
])  # fmt: skip
def test_hostile_texts(text, capsys):
    lab = Typed(PROGRAM)
    check(lab, text)
    lab.set(PROGRAM)
    assert lab.error is None and not capsys.readouterr().out


def test_of_a_program_that_runs_long_the_beginning_is_counted():
    lab = Typed(PROGRAM.replace("N = 16", "N = 4096"))
    assert 0 < lab.count(lab.at)["counts"]["part"] < 0.01
    assert not lab.partly(lab.at)  # the whole takes for ever
    lab.close()


def test_what_calls_code_outside_is_run_only_if_trusted():
    text = PROGRAM.replace("                C[vi, vj] = T.float32(0)", (
        '                C[vi, vj] = T.call_extern("float32", "nobody", A[vi, vk])'))
    lab = Typed(text.replace("A[vi, vk])", "T.float32(0))"))
    assert lab.error is None
    assert "trusted" in lab.count(lab.at)["counts"]["message"]
    assert "trusted" in lab.measure(lab.at)["message"]
    lab.close()


def test_of_many_texts_the_last_ones_are_kept(monkeypatch):
    from mlc_lab.observe import typed

    monkeypatch.setattr(typed, "_TEXTS", 8)
    monkeypatch.setattr(typed, "_STARTS", 3)
    monkeypatch.setattr(typed, "_MOST", 4)
    lab = Typed(PROGRAM)
    for n in range(4, 24):
        lab.set(BOTH.replace("N = 16", f"N = {8 * n}"))
        assert lab.error is None
    assert len(lab._points) == 8 and len(lab._starts) == 3
    for n in range(12):
        lab.set(f"{BOTH}sch.annotate(j0, 'n', {n})\n")
        assert lab.error is None
    assert len(lab.at.home.modules) <= 6
    lab.count(lab.at)
    lab.close()
