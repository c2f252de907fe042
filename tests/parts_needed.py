"""Where CI is set, a test that is skipped for want of a part is a failure.

`python dev.py setup` installs every part that the tests use but PyTorch and transformers. So a part
that is missing there was lost, and its tests with it, which nobody would see. So was one that
MLC_LAB_MUST_HAVE names, as CI does where it has installed these two.
"""

import os
import re

import pytest

#: parts that are used where they are present, and have a job of their own
OPTIONAL = {"torch", "transformers"}


def lost(report):
    """The part for want of which a test was skipped where it may not be, or nothing."""
    found = report.skipped and re.search(r"could not import '([\w.]+)'", str(report.longrepr))
    if not found:
        return ""
    name = found[1].split(".")[0]
    must = os.environ.get("CI") and name not in OPTIONAL
    return found[1] if must or name in os.environ.get("MLC_LAB_MUST_HAVE", "").split(",") else ""


def _failed(report):
    part = lost(report)
    if part:
        report.outcome = "failed"
        report.longrepr = (f"{part} is missing. Where CI is set, its tests must run: "
                           "python dev.py setup installs it (of PyTorch and transformers, pip).")


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    """A file that is skipped as a whole."""
    outcome = yield
    _failed(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A test that is skipped."""
    outcome = yield
    _failed(outcome.get_result())
