"""Look for wrong answers for as long as asked: `python dev.py fuzz --minutes 60`.

Targets take turns, a batch each, in worker processes with seeds that were not used before. What is
found is made small, printed, and written to a folder; the search goes on with the next batch. The
exit status is 1 if anything was found.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from . import harness
from .targets import TARGETS, load

ROOT = Path(__file__).resolve().parent.parent.parent


def options(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="dev.py fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10, help="how long (default: 10)")
    parser.add_argument("--only", action="append", choices=[*TARGETS], metavar="TARGET",
                        help=f"only this target, may be repeated: {', '.join(TARGETS)}")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once (default: 1)")
    parser.add_argument("--cases", type=int, default=100, help="cases a batch (default: 100)")
    parser.add_argument("--seed", type=int, help="the first seed (default: another each time)")
    parser.add_argument("--replay", metavar="INTEGERS",
                        help="run the one case that these integers describe, with --only")
    parser.add_argument("--found", type=Path, default=ROOT / "build" / "fuzz",
                        help="the folder for what is found (default: build/fuzz)")
    parser.add_argument("--worker", metavar="TARGET", help=argparse.SUPPRESS)
    parser.add_argument("--isolated", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(words)


def work(target: str, seed: int, cases: int, isolated: bool = False) -> harness.Batch:
    """A batch in a worker process. One that was lost is run again, a process for each case."""
    command = [sys.executable, "-m", __package__, "--worker", target, "--seed", str(seed),
               "--cases", str(cases)]
    # It runs in another folder: what was found through the present one is named.
    path = os.pathsep.join([str(ROOT / "tests"), str(ROOT), *filter(None, sys.path)])
    done = subprocess.run(command + ["--isolated"] * isolated, cwd=ROOT,
                          env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    if done.returncode == 0:
        fields = json.loads(done.stdout.rpartition("\n---\n")[2])
        finding = fields.pop("finding")
        return harness.Batch(finding=finding and harness.Finding(**finding), **fields)
    if not isolated and hasattr(os, "fork"):
        again = work(target, seed, cases, isolated=True)
        if again.finding:
            return again
    return harness.Batch(finding=harness.Finding(
        target, seed, f"the worker ended with {done.returncode}\n{done.stderr[-6000:]}",
        [f"again: python dev.py fuzz --only {target} --seed {seed}"], []))


def main(words: list[str] | None = None) -> int:
    given = options(words)
    if given.worker:
        gc.freeze()  # what is imported is no garbage
        gc.set_threshold(20_000, 20, 100)
        batch = harness.run(given.worker, load(given.worker).case, given.seed, given.cases,
                            given.isolated)
        print("\n---\n" + json.dumps(asdict(batch)))
        return 0
    names = given.only or [*TARGETS]
    if given.replay is not None:
        harness.replay(load(names[0]).case, [int(n) for n in given.replay.split(",") if n])
        print("the laws hold for this case")
        return 0
    return search(names, given)


def search(names: list[str], given: argparse.Namespace) -> int:
    """Give batches to the workers until the time is over; print what came of them."""
    seeds = random.Random(given.seed)
    until = time.monotonic() + 60 * given.minutes
    cases: Counter[str] = Counter()
    found: Counter[str] = Counter()
    counted: dict[str, Counter[str]] = {name: Counter() for name in names}
    seen: set[tuple] = set()  # findings; one fault is often found again

    def worker(turn: int) -> None:
        while time.monotonic() < until:
            name = names[turn % len(names)]
            turn += given.jobs
            batch = work(name, seeds.getrandbits(40), given.cases)
            cases[name] += batch.cases
            counted[name].update(batch.counts)
            key = batch.finding and (name, *(batch.finding.taken or [batch.finding.seed]))
            if key and key not in seen:
                seen.add(key)
                keep(batch.finding, given.found)
            found[name] += key is not None
            print(f"{name}: {cases[name]} cases, {found[name]} batches that found something",
                  flush=True)

    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(worker, range(given.jobs)))
    print(f"\nfound in all: {len(seen)} different cases")
    for name in names:
        print(f"{name}: {cases[name]} cases")
        for what, number in sorted(counted[name].items()):
            print(f"  {what:40} {number:8}")
    return int(any(found.values()))


def keep(finding: harness.Finding, folder: Path) -> None:
    """Print a finding and write it to a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{finding.target}-{finding.seed}.txt"
    path.write_text(finding.text() + "\n", encoding="utf-8")
    print(f"\n{'=' * 80}\n{finding.text()}\n{'=' * 80}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
