"""The notebook that the course's listings run in."""

import pytest

from .seeds import PRELUDE, Notebook


@pytest.fixture(autouse=True)
def _tvm_is_this_package(names_of_tvm):
    """Tests here import by TVM's names, whichever test was run before."""


@pytest.fixture
def notebook():
    """A notebook in which `import tvm` means this package."""
    cells = Notebook()
    cells(PRELUDE)
    return cells
