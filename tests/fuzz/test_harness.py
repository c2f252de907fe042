"""What the harness promises: small findings, crashes and hangs survived, cases to run again."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from . import harness


def sums(draw):
    numbers = [draw.integer(0, 1000) for _ in range(draw.integer(0, 20))]
    harness.counts["numbers"] += len(numbers)
    harness.note(f"numbers {numbers}")
    assert sum(n > 100 for n in numbers) < 2


def killed(draw):
    harness.note("about to die")
    if draw.integer(0, 100) > 10 and draw.choice("ab") == "b":
        os.kill(os.getpid(), signal.SIGKILL)


def stuck(draw):
    while draw.integer(0, 9) > 3:
        signal.pause()


def test_a_failing_case_is_made_small():
    batch = harness.run("sums", sums, 1, 300)
    assert batch.finding.notes == ["numbers [101, 101]"]
    assert batch.finding.taken == [2, 101, 101]
    assert "assert" in batch.finding.error and "replay 2,101,101" in batch.finding.text()


def test_the_integers_of_a_case_run_it_again():
    with pytest.raises(AssertionError):
        harness.replay(sums, [2, 101, 101])
    harness.replay(sums, [2, 101, 100])
    harness.replay(sums, [])


def test_what_targets_count_comes_back():
    batch = harness.run("sums", lambda draw: harness.counts.update(seen=1), 1, 20)
    assert batch.finding is None
    assert batch.counts == {"seen": batch.cases}


def test_the_same_seed_draws_the_same_cases():
    def drawn():
        out = []
        harness.run("x", lambda draw: out.append(draw.permutation(range(5))), 7, 10)
        return out

    assert drawn() == drawn()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a case's own process is a fork")
@pytest.mark.parametrize("case, taken, error", [
    (killed, [11, 1], "SIGKILL"), (stuck, [4], "did not end"), (sums, [2, 101, 101], "assert")])
def test_a_lost_process_is_a_finding_and_made_small(case, taken, error, monkeypatch):
    if case is stuck:
        monkeypatch.setattr(harness, "CASE_SECONDS", 0.3)
    batch = harness.run("x", case, 1, 100, isolated=True)
    assert batch.finding.taken == taken
    assert error in batch.finding.error
    if case is killed:
        assert batch.finding.notes == ["about to die"]


def test_workers_are_found_from_any_folder(tmp_path):
    """A search that was begun in the folder of the tests has its workers in another."""
    tests = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", "--only", "numbers", "--minutes", "0.001", "--cases", "1",
         "--found", tmp_path], cwd=tests, env={**os.environ, "PYTHONPATH": str(tests.parent)},
        capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "numbers: 1 cases" in done.stdout
