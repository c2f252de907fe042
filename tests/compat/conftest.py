"""The notebook that the course's listings run in."""

import sys

import pytest

from mlc_lab import compat

from .seeds import PRELUDE, Notebook


@pytest.fixture
def notebook():
    """A notebook in which `import tvm` means this package."""
    foreign = {n: m for n, m in sys.modules.items() if n == "tvm" or n.startswith("tvm.")}
    for name in foreign:
        del sys.modules[name]
    compat.install()
    cells = Notebook()
    cells(PRELUDE)
    yield cells
    compat.uninstall()
    sys.modules.update(foreign)
