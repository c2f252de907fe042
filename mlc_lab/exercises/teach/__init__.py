"""What a teacher needs: answers that were handed in, their marks, and what students are told.

`mlc-lab teach release` writes notebooks to hand out; `mlc-lab teach grade FOLDER` grades the files
of answers in a folder, and in zip archives there, as Moodle and Canvas hand them out; `marks` and
`feedback` write the marks as a table and a page for each student. Answers are data: nothing that
was handed in is executed, but for answers of the kind "function", which are confined.
"""

from .collect import Handed, collect
from .feedback import write_feedback
from .grade import Graded, grade, read_graded
from .marks import write_marks
from .new import write_exercise
from .release import release

__all__ = ["Graded", "Handed", "collect", "grade", "read_graded", "release",
           "write_exercise", "write_feedback", "write_marks"]
