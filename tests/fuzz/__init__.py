"""Generators that look for wrong answers: run for minutes in CI, for hours by `python dev.py fuzz`.

A target is one file with a function `case(draw)`. It makes one random case by what `draw` gives
and raises if a law does not hold for it. `harness.py` runs targets, shrinks what they find and
survives crashes; `targets.py` lists them.
"""
