"""The search by its older interfaces: `autotvm` (templates) and `auto_scheduler`.

Both propose schedules in their own words and measure them as meta_schedule does: in worker
processes, with results checked against the unscheduled program.
"""
