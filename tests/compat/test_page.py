"""docs/compatibility.md says what is here."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_as_its_script_writes_it():
    done = subprocess.run([sys.executable, "docs/compatibility.py", "--check"], cwd=ROOT, text=True,
                          capture_output=True, timeout=240)
    assert done.returncode == 0, done.stderr[-500:]
