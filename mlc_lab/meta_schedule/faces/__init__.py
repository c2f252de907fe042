"""The older faces of the search: `autotvm` (templates) and `auto_scheduler`, as the notes use them.

Both propose schedules in their own words and measure them as meta_schedule does: in worker
processes, with results checked against the unscheduled program.
"""
