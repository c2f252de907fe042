"""What a teacher needs: answers that were handed in, their marks, and what students are told.

`mlc-lab teach release` writes notebooks to hand out; `collect` finds what was handed in, in folders
and in what Moodle and Canvas hand out, `grade` grades it, `marks` and `feedback` write the marks as
a table and a page for each student. Answers are data: nothing that was handed in is executed, but
for answers of the kind "function", which are confined. `docs/teaching.md` goes through a term.

A reader's path: `roster.py` (who is who), `collect.py`, `grade.py`, `corrections.py`, `marks.py`,
`feedback.py`.
"""

from .collect import Handed, collect, write_collected
from .corrections import Correction, read_corrections
from .feedback import write_feedback
from .grade import Graded, grade, read_graded
from .handed_check import check_handed
from .in_cells import release_in_cells
from .marks import write_marks
from .new import write_exercise
from .release import release
from .roster import read_roster

__all__ = ["Correction", "Graded", "Handed", "check_handed", "collect", "grade",
           "read_corrections", "read_graded", "read_roster", "release", "release_in_cells",
           "write_collected", "write_exercise", "write_feedback", "write_marks"]
