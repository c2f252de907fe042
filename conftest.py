"""The root of the tests and of the lessons, which pytest runs from here.

nbmake makes a test of each lesson, which runs it in English. Where MLC_LAB_LESSONS=all, as
`python dev.py lessons` sets it, each becomes a test in the other languages too: the same cells,
with views, exercises and messages in that language. The tests of a change run the English ones
alone, for time.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbmake.pytest_items import NotebookFile, NotebookItem


class TranslatedLesson(NotebookFile):
    """A lesson in each language but English."""

    def collect(self) -> Iterator[NotebookItem]:
        from mlc_lab.language import LANGUAGES

        for language in LANGUAGES:
            if language != "en":
                yield InLanguage.from_parent(self, language=language)


class InLanguage(NotebookItem):
    """The run of a lesson in a language."""

    def __init__(self, parent: NotebookFile, language: str) -> None:
        pytest.Item.__init__(self, f"{parent.name}[{language}]", parent)
        self.filename, self.language = str(parent.path), language


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """One more collector beside nbmake's own."""
    wanted = os.environ.get("MLC_LAB_LESSONS") == "all"
    if wanted and file_path.suffix == ".ipynb" and parent.config.option.nbmake:
        return TranslatedLesson.from_parent(parent, path=file_path)
    return None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """The kernel of a lesson speaks the language of its test, whatever the system's is."""
    from mlc_lab.language import VARIABLE

    with pytest.MonkeyPatch.context() as patch:
        if isinstance(item, NotebookItem):
            patch.setenv(VARIABLE, getattr(item, "language", "en"))
        yield
