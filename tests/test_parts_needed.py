"""A skipped test is not a passed one: where CI is set, only PyTorch and transformers may be
missing, and these not where they were promised."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
WHOLE = 'import pytest\npytest.importorskip("{0}")\ndef test_it(): pass\n'
INSIDE = 'import pytest\ndef test_it(): pytest.importorskip("{0}")\n'


@pytest.mark.parametrize("text", [WHOLE, INSIDE], ids=["a file", "a test"])
@pytest.mark.parametrize("part, ci, promised, passes", [
    ("no_such_part", "true", "", False), ("no_such_part", "", "", True),
    ("torch.no_such", "true", "", True), ("torch.no_such", "true", "cuda,torch", False)])
def test_a_part_that_is_missing_fails_where_ci_is_set(tmp_path, text, part, ci, promised, passes):
    (tmp_path / "test_one.py").write_text(text.format(part))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "parts_needed", "-p", "no:cacheprovider",
         "--rootdir", tmp_path, "test_one.py"], cwd=tmp_path, text=True, capture_output=True,
        env={**os.environ, "CI": ci, "MLC_LAB_MUST_HAVE": promised, "PYTHONPATH": str(HERE),
             "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    # 5: nothing was left to run
    assert (done.returncode in (0, 5)) is passes, done.stdout + done.stderr
    assert passes or f"{part} is missing" in done.stdout
