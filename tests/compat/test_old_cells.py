"""Cells of notebooks that were written for TVM, in an IPython of its own."""

import urllib.error
import urllib.request

import pytest

pytest.importorskip("IPython")

NOTE = "not installed, MLC Lab stands in for TVM here"


@pytest.fixture
def shell():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "mlc_lab")
    yield shell
    shell.run_line_magic("unload_ext", "mlc_lab")


def read(shell, text):
    """A cell as it runs, shell commands still as they were written."""
    lines = text.splitlines(keepends=True)
    for step in shell.input_transformers_cleanup:
        lines = step(lines)
    return "".join(lines)


@pytest.mark.parametrize("line, left", [
    ("!python3 -m pip install mlc-ai-nightly -f https://mlc.ai/wheels", ""),
    ("!pip install --pre mlc-ai-nightly-cu121 -f https://mlc.ai/wheels", ""),
    ("%pip install 'apache-tvm==0.14' --find-links=https://mlc.ai/wheels", ""),
    ("!pip3 install tlcpack-nightly-cu102 -f https://tlcpack.ai/wheels", ""),
    ("!pip install torch mlc-ai-nightly -f https://mlc.ai/wheels",
     "!pip install torch"),
    ("%pip install -i https://pypi.org/simple mlc-ai-nightly numpy",
     "%pip install -i https://pypi.org/simple numpy"),
    ("!python -m pip install \\\n    mlc-ai-nightly \\\n    -f https://mlc.ai/wheels", ""),
])
def test_what_installs_tvm_installs_the_rest_only(shell, line, left):
    text = read(shell, f"if True:\n    {line}\nx = 1\n")
    assert NOTE in text and "mlc.ai/wheels" not in text and text.endswith("\nx = 1\n")
    assert [one.strip() for one in text.splitlines() if "install " in one] == (
        [left] if left else [])
    compile(shell.transform_cell(text), "cell", "exec")


@pytest.mark.parametrize("cell", [
    "!pip install torch\n", "x = 'pip install mlc-ai-nightly'\n", "%%bash\npip install mlc-ai\n",
    "!echo 'open\n", "!wget https://example.invalid/a.bin\n", "!pip install mlc-ai-tools-of-mine\n",
    "!ls\n", "",
])
def test_other_cells_stay_as_they_are(shell, cell):
    assert read(shell, cell) == cell


def test_downloads_are_answered_from_a_folder(tmp_path, monkeypatch, capsys):
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setenv("MLC_LAB_DOWNLOADS", str(tmp_path / "given"))
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "params.pkl").write_bytes(b"numbers")
    monkeypatch.chdir(tmp_path)
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "mlc_lab")
    url = "https://example.invalid/main/params.pkl"
    try:
        for cell, made in [(f"!wget -q {url}", "params.pkl"), (f"!curl -LO {url}", "params.pkl"),
                           (f"!wget {url} -O mine.pkl", "mine.pkl")]:
            shell.run_cell(cell).raise_error()
            assert (tmp_path / made).read_bytes() == b"numbers"
            (tmp_path / made).unlink()
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD")) as answer:
            assert answer.status == 200 and answer.url == url
        urllib.request.urlretrieve(url, tmp_path / "again.pkl")
        assert (tmp_path / "again.pkl").read_bytes() == b"numbers"
        assert shell.transform_cell(f"!curl {url}").startswith("get_ipython().system(")
    finally:
        shell.run_line_magic("unload_ext", "mlc_lab")
    assert urllib.request._opener is None


def test_a_missing_package_is_named_with_what_installs_it(shell, capsys, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "tabulate", None)
    shell.run_cell("import tabulate")
    assert "%pip install tabulate" in capsys.readouterr().out
    shell.run_cell("import a_module_of_nobody")
    assert "pip install" not in capsys.readouterr().out
