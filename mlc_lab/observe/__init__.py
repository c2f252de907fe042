"""Recordings of what the compiler did: steps, differences, timings, correctness.

A view never runs a pass: it draws a recording made here. `recording.py` has the format,
`session.py` gathers the schedules a program makes, `measure.py` times and checks their steps,
`flops.py` counts arithmetic, `doctor.py` examines the machine.
"""
