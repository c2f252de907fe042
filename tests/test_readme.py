"""The README's promises: its two commands, its links and its listing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")


def test_the_two_commands_come_first():
    first, second = FENCE.findall(README)[:2]
    assert first == ("", "python dev.py lab\n")
    assert second == ("", "python dev.py test\n")
    assert README.index("dev.py test") < README.index("\n## ")


@pytest.mark.parametrize("verb", ["lab", "test"])
def test_the_bootstrap_knows_the_commands(verb):
    source = (ROOT / "dev.py").read_text(encoding="utf-8")
    assert f'if verb == "{verb}":' in source


def test_the_bootstrap_needs_only_the_standard_library():
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(ROOT / "dev.py"), "help"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "dev.py test" in done.stdout


@pytest.mark.parametrize("target", LINK.findall(FENCE.sub("", README)))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()


@pytest.mark.parametrize("source", [text for kind, text in FENCE.findall(README) if kind])
def test_the_listing_runs(source, tmp_path):
    listing = tmp_path / "listing.py"
    listing.write_text(source, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(listing)], capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_verb_of_the_command_is_in_the_readme():
    from mlc_lab import cli

    help_text = cli._parser().format_help()
    for verb in ("lab", "run", "explain", "doctor"):
        assert verb in help_text
        assert f"`mlc-lab {verb}" in README
