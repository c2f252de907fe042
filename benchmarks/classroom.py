"""How long exercises take: to check an answer, to grade a class, to open a card.

    python benchmarks/classroom.py [check] [card] [class] [--students 100]

- `check`: the reference and the typical mistakes of each exercise, each in a process that has
  checked before (what a student waits for at the second press of *Check*), and the reference in a
  process that is new.
- `card`: from `exercise(id)` to what the notebook stores, in a Python that has shown a card and in
  a new one, and from the page's address to the card in a Chromium, if there is one.
- `class`: each student answers all exercises, in a variant of the student's: six of ten answers
  are the reference, three a typical mistake, one a reference without one of its lines. All are
  graded by two processes. `--students 10` measures a tenth and says what the whole would take.

How long the report of a class takes is measured by `class_report.py`. Times on a busy machine say
little: the load, and the time of the processors, are printed with them.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from mlc_lab import exercises
from mlc_lab.exercises import teach
from mlc_lab.exercises.book import Book, Entry, read_book
from mlc_lab.exercises.teach.collect import Handed

ROOT = Path(__file__).resolve().parent.parent
SEED = "ada"


def row(name: str, value: str, asked: str = "") -> None:
    """Print one figure."""
    print(f"{name:<48} {value:<72} {asked}", flush=True)


def spread(taken: dict[str, float]) -> str:
    """Median and slowest of some times, and which the slowest is."""
    slowest = max(taken, key=taken.__getitem__)
    return (f"{statistics.median(taken.values()):5.2f} s median, {taken[slowest]:5.2f} s slowest "
            f"({slowest})")


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What some work gives, and the seconds that it takes."""
    start = time.perf_counter()
    found = work()
    return found, time.perf_counter() - start


def processors() -> float:
    """Seconds of the processors that this process and those that it has ended have used."""
    return sum(sum(resource.getrusage(who)[:2])
               for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def load() -> None:
    """Print how busy the machine is."""
    row("load of the machine", f"{os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")


# ------------------------------------------------------------------------------------ a check


def answers_of(variant: exercises.Variant) -> list[Any]:
    """The reference, and the typical mistakes."""
    return [variant.reference, *(wrong.answer for wrong in variant.wrong)]


def checks() -> None:
    """What a check takes, of each exercise."""
    fresh: dict[str, float] = {}
    warm: dict[str, float] = {}
    start = processors()
    for one in exercises.catalogue():
        variant = one.variant(SEED)
        answers = answers_of(variant)
        with exercises.Judge() as judge:
            first, fresh[one.id] = timed(partial(judge.check, one.id, answers[0], SEED))
            assert first.solved, first
            for number, answer in enumerate(answers):
                what = f"{one.id}, mistake {number}" if number else f"{one.id}, the reference"
                _, warm[what] = timed(partial(judge.check, one.id, answer, SEED))
    count = len(fresh) + len(warm)
    row(f"a check, of {len(warm)} answers to {len(fresh)} exercises", spread(warm),
        "<= 3 s median, <= 10 s")
    row("the reference, in a new process", spread(fresh), "<= 3 s median, <= 10 s")
    row("the processors' time of a check", f"{(processors() - start) / count:5.2f} s on average")
    load()


# ------------------------------------------------------------------------------------ a card


#: opens a card in a new Python, and prints seconds of both
_NEW = """
import time
start = time.perf_counter()
from mlc_lab import exercises
loaded = time.perf_counter()
exercises.exercise({id!r}, seed="ada")._repr_mimebundle_()
print(loaded - start, time.perf_counter() - loaded)
"""


def cards() -> None:
    """What it takes until a card is there."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["MLC_LAB_HOME"] = home  # no answers of the user's
        made: dict[str, Any] = {}
        taken: dict[str, float] = {}
        used: dict[str, float] = {}
        exercises.exercise("01.1", seed=SEED)._repr_mimebundle_()
        for one in exercises.catalogue():
            def opened(id: str = one.id) -> Any:
                card = exercises.exercise(id, seed=SEED)
                card._repr_mimebundle_()
                return card
            start = time.process_time()
            made[one.id], taken[one.id] = timed(opened)
            used[one.id] = time.process_time() - start
        row(f"a card of {len(taken)}", spread(taken), "<= 1 s")
        row("the processor's time of a card", spread(used))
        slowest = max(taken, key=taken.__getitem__)
        said = subprocess.run([sys.executable, "-c", _NEW.format(id=slowest)], check=True,
                              capture_output=True, text=True, cwd=ROOT).stdout.split()
        row(f"the first card of a new Python ({slowest})",
            f"{float(said[1]):5.2f} s, and {float(said[0]):.2f} s for the import", "<= 1 s")
        drawn(made, Path(home))
    load()


def drawn(made: dict[str, Any], folder: Path) -> None:
    """What a browser takes to draw the cards."""
    sys.path.insert(0, str(ROOT / "tests"))
    from browser import FLAGS, chromium_path, open_page

    path = chromium_path()
    if path is None:
        row("a card in the browser", "no Chromium was found")
        return
    from playwright.sync_api import sync_playwright

    taken: dict[str, float] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        for id, card in made.items():
            card.html(folder / "card.html")
            with open_page(browser) as page:
                def shown(page: Any = page) -> None:
                    page.goto((folder / "card.html").as_uri())
                    page.locator(".mlc-card").wait_for()
                _, taken[id] = timed(shown)
        browser.close()
    row("a card's page in the browser", spread(taken), "<= 1 s")


# ------------------------------------------------------------------------------------ a class


def without_a_line(answer: Any, dice: random.Random) -> Any:
    """An answer that something was left out of."""
    if not isinstance(answer, str):
        return answer
    lines = answer.strip("\n").split("\n")
    lines.pop(dice.randrange(len(lines)))
    return "\n".join(lines)


def answer_of(variant: exercises.Variant, dice: random.Random) -> Any:
    """What a student answers."""
    kind = dice.random()
    if kind < 0.6 or (kind < 0.9 and not variant.wrong):
        return variant.reference
    if kind < 0.9:
        return dice.choice(variant.wrong).answer
    return without_a_line(variant.reference, dice)


def grading(students: int, jobs: int = 2, whole: int = 100) -> None:
    """What it takes to grade a class."""
    dice = random.Random(1)
    catalogue = exercises.catalogue()
    handed = []
    for number in range(students):
        name = f"student {number:03}"
        book = Book(name, {one.id: Entry(name, answer_of(one.variant(name), dice))
                           for one in catalogue})
        handed.append(Handed(name, f"{name}.json", read_book(book.as_json())))
    ids = [one.id for one in catalogue]
    with tempfile.TemporaryDirectory() as out:
        start = processors()
        graded, took = timed(lambda: teach.grade(handed, out, ids, jobs=jobs, progress=False))
        used = processors() - start
        first = {path.name: path.read_bytes() for path in Path(out).iterdir()}
        start = processors()
        _, again = timed(lambda: teach.grade(handed, out, ids, jobs=jobs, progress=False))
        used_again = processors() - start
        assert first == {path.name: path.read_bytes() for path in Path(out).iterdir()}
    count = students * len(ids)
    what = f"{students} students, {len(ids)} exercises, {jobs} processes"
    row(f"grading {what}", f"{took / 60:5.1f} min, {used / 60:.1f} min of the processors",
        f"<= {10 * count / (whole * 40):.1f} min (10 for 4,000 answers)")
    row("an answer", f"{1e3 * took / count:5.0f} ms, {1e3 * used / count:.0f} ms of a processor",
        "<= 150 ms")
    if students != whole:
        row(f"so {whole} students would take", f"{whole / students * took / 60:5.1f} min")
    row(f"and with {jobs} cores to themselves",
        f"{whole / students * used / jobs / 60:5.1f} min for {whole} students")
    row("grading again, when nothing has changed",
        f"{again:5.1f} s, {used_again:.1f} s of the processors")
    points = sum(one.points for one in graded) / sum(one.of for one in graded)
    row("points that were reached", f"{100 * points:.0f}%")
    load()




def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    # Python 3.11's argparse refuses an empty list where there are `choices`.
    parser.add_argument("parts", nargs="*", metavar="{check,card,class}",
                        help="what to measure; by default all")
    parser.add_argument("--students", type=int, default=100)
    args = parser.parse_args()
    parts = args.parts or ["check", "card", "class"]
    if unknown := set(parts) - {"check", "card", "class"}:
        parser.error(f"there is no part {', '.join(sorted(unknown))}: check, card, class")
    if "check" in parts:
        checks()
    if "card" in parts:
        cards()
    if "class" in parts:
        grading(args.students)


if __name__ == "__main__":
    main()
