"""The cell magic `%%live`, in an IPython of its own."""

import pytest
from observe.programs import matmul
from observe.test_typed import PROGRAM, SCHEDULE

from mlc_lab.reading import DataError
from mlc_lab.schedule import Schedule

pytest.importorskip("anywidget")


@pytest.fixture
def shell():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    yield shell
    shell.run_line_magic("unload_ext", "mlc_lab")
    assert shell.find_cell_magic("live") is None


def run(shell, line, cell):
    view = shell.run_cell_magic("live", line, cell)
    view.close()
    return view


def test_a_cell_is_read_among_the_names_of_the_notebook(shell, capsys):
    shell.run_line_magic("load_ext", "mlc_lab")
    view = run(shell, "", PROGRAM.replace("N = 16\n", "print('run')\n"))
    assert "imports, constants, functions" in view.error["message"]
    assert not capsys.readouterr().out
    shell.user_ns.update(N=8, Product=matmul(16), sch=Schedule(matmul(32)))
    view = run(shell, "", PROGRAM.replace("N = 16\n", ""))
    assert view.error is None and "(8, 8)" in view.mod.script()
    assert "sch.split" not in view.text and view.text == view.text.rstrip()
    view = run(shell, "Product", SCHEDULE)
    assert view.error is None and "T.vectorized(8)" in view.mod.script()
    view = run(shell, "sch --caches '1K:2' --sizes n=4 --trusted", SCHEDULE)
    assert view.error is None and "(32, 32)" in view.mod.script()
    assert len(view.source.at.home.hierarchy.to_dict()) == 1


@pytest.mark.parametrize("line, message", [
    ("Produkt", "did you mean Product?"), ("x", "no module"), ("--nothing", "unrecognized"),
    ("'", "No closing quotation"), ("--sizes n", "values to unpack"),
])  # fmt: skip
def test_a_line_that_says_nothing_known(shell, line, message):
    shell.run_line_magic("load_ext", "mlc_lab")
    shell.user_ns.update(Product=matmul(16), x=3)
    with pytest.raises(DataError, match=r"^%%live") as error:
        shell.run_cell_magic("live", line, SCHEDULE)
    assert message in str(error.value)
