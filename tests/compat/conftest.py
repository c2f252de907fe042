"""The notebook that the course's listings run in."""

import pytest

from .seeds import PRELUDE, Notebook


@pytest.fixture
def notebook(names_of_tvm):
    """A notebook in which `import tvm` means this package."""
    cells = Notebook()
    cells(PRELUDE)
    return cells
