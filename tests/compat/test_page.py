"""docs/compatibility.md says what is here."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_as_its_script_writes_it():
    done = subprocess.run([sys.executable, "docs/compatibility.py", "--check"], cwd=ROOT, text=True,
                          capture_output=True, timeout=240)
    assert done.returncode == 0, done.stderr[-500:]


def test_each_name_of_another_release_says_which_had_it():
    from mlc_lab.compat import dialect, early_operators, early_relax, relax_names
    from mlc_lab.compat.releases import RELEASES
    from mlc_lab.extensions import NAMES

    assert set(dialect.T_NAMES) <= set(RELEASES["T"])
    assert set(relax_names.NAMES) <= set(RELEASES["relax"])
    assert set(relax_names.R_NAMES) <= set(RELEASES["R"]) | set(RELEASES["relax.op"])
    assert set(early_relax.BARE) == set(RELEASES["annotations of Relax functions"])
    assert {name.removeprefix("relax.") for name in early_operators.EARLY_OPERATORS} == set(
        RELEASES["relax.op"])
    assert set(early_operators.RENAMED) <= set(early_operators.EARLY_OPERATORS)
    assert set(dialect.METHODS) <= set(RELEASES["tir.Schedule"])
    assert set(NAMES["meta_schedule"]) == set(RELEASES["meta_schedule"])
    assert {name.removeprefix("tvm.") for name in dialect.MODULE_NAMES} <= set(RELEASES["tvm"])
    words = " ".join(RELEASES["tir.Schedule"])
    assert all(parameter in words for table in dialect.PARAMETERS.values() for parameter in table)
