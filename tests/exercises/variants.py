"""Tries the laws of exercises on many variants: `python tests/exercises/variants.py --seeds 200`.

The reference has all points on each variant; each typical mistake has, on each, its points and is
told what it should be. Prints what is not so, and how long a check takes: the median and the worst.
"""

import argparse
import statistics
import sys
import time

from mlc_lab import exercises
from mlc_lab.exercises.judging import marks


def tried(exercise, seeds, mistakes_on):
    """What is wrong with an exercise, in lines, and the seconds that each check took.

    The mistakes are tried on the first `mistakes_on` seeds, the reference on all of them."""
    problems, seconds = [], []

    def timed(variant, answer):
        start = time.perf_counter()
        found = marks(variant, answer)
        seconds.append(time.perf_counter() - start)
        return found

    for number, seed in enumerate(seeds):
        variant = exercise.variant(seed)
        assert variant.statement and all(variant.hints) and (variant.program or True)
        found = timed(variant, variant.reference)
        if not found.solved:
            problems.append(f"variant {seed}: the reference\n{found}")
        for at, wrong in enumerate(variant.wrong if number < mistakes_on else ()):
            found = timed(variant, wrong.answer)
            if found.points != wrong.points or wrong.says not in str(found):
                problems.append(f"variant {seed}: mistake {at + 1} should have "
                                f"{wrong.points} points and be told {wrong.says!r}\n{found}")
    return problems, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("ids", nargs="*", help="exercises, as 03.2; by default all")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--mistakes", type=int, default=12,
                        help="on how many of the seeds typical mistakes are tried too")
    args = parser.parse_args()
    bad = 0
    for exercise in exercises.catalogue():
        if args.ids and exercise.id not in args.ids:
            continue
        problems, seconds = tried(exercise, range(args.seeds), args.mistakes)
        bad += len(problems)
        print(f"{exercise.id}  {len(seconds)} checks, {statistics.median(seconds):.2f} s median, "
              f"{max(seconds):.2f} s worst: {f'{len(problems)} PROBLEMS' if problems else 'good'}",
              flush=True)
        for problem in problems[:5]:
            print(problem)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
