"""docs/teaching.md: its commands run, in the order in which they stand there."""

import json
import re
import shlex
from pathlib import Path

from mlc_lab import exercises
from mlc_lab.cli import main
from mlc_lab.exercises.book import Book, Entry

PAGE = Path(__file__).resolve().parents[2] / "docs" / "teaching.md"


def test_the_commands_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("class.txt").write_text("ada\nbob\n")
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) == 12
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "mlc-lab" and main(words[1:]) == 0, line
        if "handed-out" in words and words[2] == "release":
            _hand_in(json.loads(Path("handed-out/roster.json").read_text()))
    assert "ada,5,9" in Path("marks.csv").read_text() and "bob,0,9" in Path("marks.csv").read_text()
    assert any(Path("pages").glob("*.html")) and Path("source/loops/loops.ipynb").is_file()
    assert Path("for-github/.github/workflows/classroom.yml").is_file()


def _hand_in(seeds):
    """ada solves the second exercise; the file of bob is damaged."""
    for student in seeds:
        Path("handed-in", student).mkdir(parents=True)
    answer = exercises.get("01.2").variant(seeds["ada"]).reference
    book = Book("ada", {"01.2": Entry(seeds["ada"], answer)})
    Path("handed-in/ada/answers.json").write_text(book.as_json())
    Path("handed-in/bob/answers.json").write_text("{")
