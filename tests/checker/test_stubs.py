"""The stubs of T, R and the intrinsics are those that the objects give, and hold every name."""

import ast
import re

import make_stubs
import pytest

TEXTS = make_stubs.written()


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: str(p.relative_to(make_stubs.ROOT)))
def test_a_stub_is_current(path):
    assert path.read_text(encoding="utf-8") == TEXTS[path], "`python dev.py types` writes it anew"


def names(path):
    """The names that a stub defines."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            yield getattr(node, "targets", [getattr(node, "target", None)])[0].id


def test_a_stub_has_every_name_of_its_language():
    from mlc_lab.relax.script import names as R
    from mlc_lab.script import tir as T

    for module in (T, R):
        path = make_stubs.Path(module.__file__).with_suffix(".pyi")
        assert module.NAMES - set(names(path)) == set()


def test_a_package_gives_on_what_it_imports():
    """To a checker, `import a as b` in a stub is for the stub itself."""
    for path in (p for p in TEXTS if p.name == "__init__.pyi"):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"import (\w+) as (?!_|\1$)\w+$", text, re.M) == [], path


def test_a_word_of_a_script_has_its_arguments():
    text = next(t for p, t in TEXTS.items() if p.parts[-2:] == ("script", "tir.pyi"))
    assert re.search(r"^def grid\(\*extents: .*\) -> ", text, re.M)
    assert re.search(r"^    def remap\(kinds: _?str, bindings: ", text, re.M)
    assert re.search(r"^def block\(name: _?str = '', .*\) -> Scope:", text, re.M)
    assert "float32: DtypeName" in text and '"""e to the power x' in text
