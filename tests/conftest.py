"""What every test can use: the packages of this checkout by their import names, and a browser."""

import builtins
import importlib.util
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(Path(__file__).resolve().parent))
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from cuda_tests import pytest_collection_modifyitems  # noqa: F401
from parts_needed import pytest_make_collect_report, pytest_runtest_makereport  # noqa: F401


def _widgets_from_checkout():
    """Make widgets/ importable as mlc_lab_widgets where the project is not installed."""
    if importlib.util.find_spec("mlc_lab_widgets") is not None:
        return
    folder = ROOT / "widgets"
    spec = importlib.util.spec_from_file_location(
        "mlc_lab_widgets", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["mlc_lab_widgets"] = module
    spec.loader.exec_module(module)


if (ROOT / "widgets" / "__init__.py").exists():
    _widgets_from_checkout()


@pytest.fixture(scope="session", autouse=True)
def _no_answers_at_home(tmp_path_factory):
    """What tests answer, and the servers and commands that they start, is kept for no user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLC_LAB_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("MLC_LAB_LANGUAGE", "en")  # whatever the system's
        yield


def _tvm_modules():
    return {n: m for n, m in list(sys.modules.items()) if n == "tvm" or n.startswith("tvm.")}


#: what an interactive shell that a test makes leaves behind: prompts say that somebody types
_OF_A_SHELL = ((sys, ("ps1", "ps2", "ps3", "excepthook", "displayhook")),
               (builtins, ("get_ipython", "display")))


@pytest.fixture(autouse=True)
def _interpreter_as_it_was():
    """After a test `import tvm` means what it meant before it and no shell is there, whichever test
    ran first."""
    finders, modules = list(sys.meta_path), _tvm_modules()
    shell = [(at, name, getattr(at, name, None)) for at, names in _OF_A_SHELL for name in names]
    yield
    sys.meta_path[:] = finders
    for name in _tvm_modules().keys() - modules.keys():
        del sys.modules[name]
    sys.modules.update(modules)
    for at, name, value in shell:
        if value is not None:
            setattr(at, name, value)
        elif hasattr(at, name):
            delattr(at, name)


@pytest.fixture
def names_of_tvm(_interpreter_as_it_was):
    """`import tvm` means this package in the test, also where a real TVM is imported."""
    from mlc_lab import compat

    for name in _tvm_modules():
        del sys.modules[name]
    compat.install()


@pytest.fixture(scope="session")
def chromium():
    """A running Chromium. Where CI is set, having none is a failure and not a skip."""
    from browser import FLAGS, chromium_path

    path = chromium_path()
    if path is None:
        message = "no Chromium: install one, or name it in the variable CHROMIUM"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()
