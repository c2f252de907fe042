"""Writes docs/compatibility.md: what of TVM 0.18's public Python names is here.

    python docs/compatibility.py            # --check: only say whether the page is as it should be

`tvm_names.json` has the names by namespace; whether one is here is found by asking for it.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import mlc_lab.compat
from mlc_lab.compat.not_planned import reason
from mlc_lab.compat.releases import RELEASES

HERE = Path(__file__).parent
PAGE = HERE / "compatibility.md"

#: what is here and differs: what, and how
DIFFERS = [
    ("`import tvm`", "after `mlc_lab.compat.install()` or `%load_ext mlc_lab`; never where a real "
     "TVM is imported"),
    ("a notebook of the time", "after `%load_ext mlc_lab`: lines that install TVM install the rest "
     "only, and downloads are answered from the folder `MLC_LAB_DOWNLOADS` where the file lies "
     "there"),
    ("nodes", "are immutable Python objects; lists in them are tuples"),
    ("TVMScript", "is parsed, never executed; names of the user's scope are looked up"),
    ("errors", "have other words than TVM's, and say what would be right; `tvm.TVMError` is the "
     "base of them, but for those of a kernel that is called with what does not fit: `TypeError` "
     "and `ValueError`"),
    ("`te` schedules", "are replayed on a `tir.Schedule`; `tvm.lower` prints its program"),
    ("`topi.x86`, `topi.cuda`, ...", "have one schedule for each kind of stage, not for each "
     "operator"),
    ("GPUs", "that are not there are simulated: results are the same, times are a model's"),
    ("`tvm.testing`", "runs tests for `llvm` unless TVM_TEST_TARGETS names more"),
    ("`autotvm`, `auto_scheduler`", "are names over the search of `meta_schedule`"),
    ("passes over TensorIR", "that are called one by one leave `T.decl_buffer` where TVM drops it, "
     "and `SplitHostDevice` needs no regions marked for it; the programs mean the same"),
    ("`T.vscale()`", "in the extent of a vectorized loop leaves the vectors to LLVM"),
    ("`arith`", "gives expressions of equal value, not always of the same form"),
]


def found(namespace: str) -> Any:
    """The module or class of that name, or None."""
    try:
        return importlib.import_module(namespace)
    except ImportError:
        module, _, name = namespace.rpartition(".")
        try:
            return getattr(importlib.import_module(module), name, None)
        except ImportError:
            return None


def is_here(namespace: str, name: str) -> bool:
    """Whether a namespace has a name, as an attribute or as a module below it."""
    owner = found(namespace)
    if owner is None:
        return False
    try:
        if hasattr(owner, name):
            return True
        importlib.import_module(f"{namespace}.{name}")
    except ImportError:
        return False
    return True


def names() -> dict[str, list[str]]:
    """TVM's public names by namespace."""
    data = json.loads((HERE / "tvm_names.json").read_text(encoding="utf-8"))
    return {namespace: text.split() for namespace, text in data.items()}


def other_releases() -> list[str]:
    """A row for each place and release, with the names."""
    rows = []
    for where, table in RELEASES.items():
        by_release: dict[str, list[str]] = {}
        for name, release in table.items():
            by_release.setdefault(release, []).append(f"`{name}`")
        rows += [f"| `{where}` | {', '.join(found)} | {release} |" if "." in where or (
            " " not in where) else f"| {where} | {', '.join(found)} | {release} |"
            for release, found in by_release.items()]
    return rows


def text() -> str:
    """The page."""
    rows, lacking, total, have = [], [], 0, 0
    unplanned: dict[str, list[str]] = {}
    for namespace, known in names().items():
        missing = [name for name in known if not is_here(namespace, name)]
        total, have = total + len(known), have + len(known) - len(missing)
        later = [name for name in missing if not reason(namespace, name)]
        for name in missing:
            if name not in later:
                unplanned.setdefault(reason(namespace, name), []).append(f"{namespace}.{name}")
        rows.append(f"| `{namespace}` | {len(known) - len(missing)} of {len(known)} |")
        if later:
            lacking.append(f"- `{namespace}`: " + ", ".join(f"`{name}`" for name in later))
    differs = [f"| {what} | {how} |" for what, how in DIFFERS]
    reasons = [f"- {why}: " + ", ".join(f"`{name}`" for name in sorted(every))
               for why, every in unplanned.items()]
    return "\n".join([
        "# What of TVM is here", "",
        f"TVM 0.18 has {total} public names in the namespaces below; {have} of them are here.",
        "A name that is missing says so by its own name when it is asked for; one that is not",
        "planned says why too.", "",
        "This page is written by `python docs/compatibility.py`, which asks for each.", "",
        "| namespace | here |", "|---|---|", *rows, "",
        "## What differs", "", "| what | how |", "|---|---|", *differs, "",
        "## Names of other releases", "",
        "Beside those of 0.12 to 0.18 these are understood, by the tables in `mlc_lab/compat`.", "",
        "| where | name | had it |", "|---|---|---|", *other_releases(), "",
        "## What is not here yet", "", *lacking, "",
        "## What is not planned", "",
        "Names of which nothing here would make sense, by the reason.", "", *reasons, ""])


if __name__ == "__main__":
    mlc_lab.compat.install()
    if "--check" not in sys.argv:
        PAGE.write_text(text(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != text():
        sys.exit("docs/compatibility.md is out of date: run python docs/compatibility.py")
