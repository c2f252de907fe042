"""A wrong element is traced to what went wrong before the statement that wrote it last."""

from mlc_lab import exercises
from mlc_lab.exercises.judging import marks

PROGRAM = """
@T.prim_func
def main(A: T.Buffer(({n}, {n}), "float32"), Y: T.Buffer(({n}, {n}), "float32")):
    S = T.alloc_buffer(({n},))
    for i, k in T.grid({n}, {n}):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            INIT
            S[vi] = S[vi] + A[vi, vk] * A[vi, vk]
    for i, j in T.grid({n}, {n}):
        with T.block("Y"):
            ui, uj = T.axis.remap("SS", [i, j])
            Y[ui, uj] = A[ui, uj] / (S[ui] + T.float32(1.0))
"""


def told(init):
    variant = exercises.get("02.4").variant("ada")
    program = PROGRAM.replace("{n}", str(variant.values.n)).replace("INIT", init)
    row = next(row for row in marks(variant, program).rows if row.kind == "equivalent")
    assert not row.passed
    return row


def test_a_sum_that_nobody_set_to_zero():
    row = told("pass")
    assert "before that, S[0] was read at i = 0, k = 0, and nothing had been written" in row.says
    assert "                ^^^^^\n" in row.place["text"] and row.place["text"].count("^ ") == 0


def test_a_buffer_in_between_that_has_other_values():
    row = told("with T.init():\n                S[vi] = T.float32(1)")
    assert "before that, S[0] became" in row.says and "in the reference" in row.says
    assert "at i = 0, k = 6" in row.says
    lines = row.place["text"].split("\n")
    marked = [lines[n - 1] for n, line in enumerate(lines) if set(line.strip()) == {"^"}]
    assert [line.strip()[0] for line in marked] == ["S", "Y"]


def test_an_output_that_is_added_to_what_was_there():
    variant = exercises.get("01.1").variant(2)
    v = variant.values
    found = marks(variant, f"""
@T.prim_func
def main(A: T.Buffer(({v.n}, {v.m}), "float32"), B: T.Buffer(({v.m},), "float32"),
         C: T.Buffer(({v.n}, {v.m}), "float32")):
    for i, j in T.grid({v.n}, {v.m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = C[vi, vj] + A[vi, vj] + B[vj]
""")
    assert "C[0, 0] was read at i = 0, j = 0, and nothing had been written to it" in str(found)


def test_what_is_only_written_wrongly_has_nothing_before():
    variant = exercises.get("01.1").variant(2)
    assert "before that" not in str(marks(variant, variant.reference.replace("+", "-")))


def test_a_store_outside_of_a_buffer_is_shown_as_a_line():
    variant = exercises.get("02.3").variant("ada")
    wrong = [line for line in variant.reference.split("\n") if "T.where" not in line]
    row = marks(variant, "\n".join(wrong)).rows[-1]
    assert row.says.endswith("in: C[vi, vj] = T.float32(0.0)") and "\n" not in row.says


def test_an_input_that_is_written_was_not_forgotten_before():
    variant = exercises.get("01.1").variant(2)
    v = variant.values
    found = str(marks(variant, f"""
@T.prim_func
def main(A: T.Buffer(({v.n}, {v.m}), "float32"), B: T.Buffer(({v.m},), "float32"),
         C: T.Buffer(({v.n}, {v.m}), "float32")):
    for i, j in T.grid({v.n}, {v.m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi, vj] + B[vj]
            C[vi, vj] = A[vi, vj]
"""))
    assert "A[0, 0] is" in found and "before that" not in found
