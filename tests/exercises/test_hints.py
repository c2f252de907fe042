"""What a wrong answer is told of the student's own program: the access, the step, what it costs."""

from mlc_lab import exercises
from mlc_lab.exercises.judging import marks


def told(id, answer, seed=1):
    return str(marks(exercises.get(id).variant(seed), answer))


def test_a_walk_down_a_column_is_told_with_its_bytes_and_its_misses_a_step():
    v = exercises.get("03.2").variant(1).values
    assert (f"the innermost loop k to the next it goes {v.n * 4} bytes on; that is down a column "
            "of B; a line of the cache has 64; 0.98 misses a step, where 0.06 are possible along a "
            "row.") in told("03.2", f'sch.get_loops("{v.C}")')


def test_a_walk_along_a_row_is_no_walk_down_a_column():
    v = exercises.get("03.2").variant(1).values
    found = told("03.2", f'{v.loops} = sch.get_loops("{v.C}")\nsch.reorder(i, k, j)')
    assert "it goes 4 bytes on." in found and "column" not in found and "a step" not in found


def test_a_wrong_element_is_told_with_the_iteration_and_the_statement_that_wrote_it():
    task = exercises.get("02.1").variant(1)
    result = marks(task, task.wrong[0].answer)
    place = next(row.place for row in result.rows if row.kind == "equivalent")
    assert place["element"].startswith("Y[") and place["expected"] != place["found"]
    assert set(place["iteration"]) >= {"i", "j"} and "^" in place["text"]


def test_results_that_hold_memory_are_told_by_their_names_in_the_model():
    task = exercises.get("06.3").variant(1)
    assert "still needed: wide0 (" in told("06.3", task.wrong[0].answer)


def test_a_function_of_a_symbol_is_told_for_the_smallest_size_that_fails():
    task = exercises.get("02.5").variant(1)
    answer = task.reference.replace(
        "X[vi, vk] * W[vk]", "T.if_then_else(vi < 2, X[vi, vk] * W[vk], T.float32(0))")
    assert answer != task.reference
    row = next(r for r in marks(task, answer).rows if r.kind == "equivalent")
    assert "(for n = 3)" in row.says and row.place["sizes"] == {"n": 3}
    assert row.place["element"] == "Y[2]"


def test_a_long_program_is_told_with_its_iteration_and_its_statement_too():
    task = exercises.get("01.1").variant(1)
    v = task.values
    answer = f"""
@T.prim_func
def main(A: T.Buffer(({v.n}, {v.m}), "float32"), B: T.Buffer(({v.m},), "float32"),
         C: T.Buffer(({v.n}, {v.m}), "float32")):
    for r, i, j in T.grid(3000, {v.n}, {v.m}):
        with T.block("C"):
            vr, vi, vj = T.axis.remap("SSS", [r, i, j])
            C[vi, vj] = A[vi, vj] - B[vj]
"""
    row = next(r for r in marks(task, answer).rows if r.kind == "equivalent")
    assert row.place["iteration"]["r"] == 2999 and "written last at r = 2999" in row.says
    assert "C[vi, vj] = A[vi, vj] - B[vj]" in row.place["text"] and "^" in row.place["text"]
