"""A first exercise of a teacher's own, which works as it is."""

from __future__ import annotations

from pathlib import Path

from ..exercise import ExerciseError

TEXT = '''\
"""{id}  An exercise of my own: say here what it is for."""

from mlc_lab.exercises import Exercise, Wrong, row
from mlc_lab.script import from_source


def program(v):
    """What the answer starts from; v has what `draw` gives."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({{v.n}},), "float32"), B: T.Buffer(({{v.n}},), "float32")):
    for i in range({{v.n}}):
        with T.block("B"):
            vi = T.axis.spatial({{v.n}}, i)
            B[vi] = A[vi] * T.float32(2)
""")


EXERCISE = Exercise(
    id="{id}",
    title="Eight lanes",
    level=1,
    minutes=5,
    kind="schedule",
    statement="Split the loop of block B, of {{n}} iterations, and vectorize 8 of them.",
    draw=lambda rng: {{"n": rng.choice([64, 96, 128])}},
    program=program,
    checks=lambda v: [
        row("equivalent", 1, "it computes the same"),
        row("structure", 2, "an inner loop of 8 lanes", nest={{"B": [None, "vectorized 8"]}}),
    ],
    hints=(
        "First there have to be two loops.",
        "sch.split(i, [None, 8]) gives an outer loop and an inner one of 8.",
        "i0, i1 = sch.split(i, [None, 8]), then sch.vectorize(i1).",
    ),
    reference=lambda v: """
i, = sch.get_loops("B")
i0, i1 = sch.split(i, [None, 8])
sch.vectorize(i1)""",
    wrong=lambda v: [
        Wrong("i, = sch.get_loops('B')\\nsch.vectorize(i)", 1, "the loops around block B are"),
        Wrong("i, = sch.get_loops('B')\\nsch.split(i, [None, 8])", 1, "asked for: any, vectorized"),
        Wrong("sch.vectorize(i)", 0, "i"),
    ],
)
'''


def write_exercise(path: str | Path, id: str = "90.1") -> Path:
    """Write the file. Raises ExerciseError where there is one, or where it would not be found."""
    path = Path(path)
    if path.exists():
        raise ExerciseError(f"there is a file {path} already")
    if not (path.name.startswith("ex_") and path.suffix == ".py"):
        raise ExerciseError(f"exercises are found in files ex_*.py, not {path.name!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TEXT.format(id=id), encoding="utf-8")
    return path


__all__ = ["write_exercise"]
