"""The pages in docs/ and the README name files that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_files_that_a_page_names_exist(page):
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:mlc_lab|tests|benchmarks|widgets|docs)/[\w/]+\.\w+", text))
    assert [n for n in sorted(named) if not (ROOT / n).exists()] == []
