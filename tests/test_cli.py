"""The command `mlc-lab`, each verb run as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HELLO = "import sys\nimport tvm\nprint('hello from', tvm.__name__, *sys.argv[1:])\n"


def mlc_lab(*words, timeout=120, cwd=None):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "mlc_lab.cli", *map(str, words)],
        capture_output=True, text=True, timeout=timeout, env=environment, cwd=cwd,
    )  # fmt: skip


def notebook(*cells):
    import nbformat.v4 as v4

    return v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in cells])


def test_without_a_verb_it_says_what_there_is():
    done = mlc_lab()
    assert done.returncode == 2
    for verb in ("lab", "run", "explain", "doctor"):
        assert verb in done.stdout


def test_run_executes_a_file_in_which_tvm_imports(tmp_path):
    file = tmp_path / "hello.py"
    file.write_text(HELLO)
    done = mlc_lab("run", file, "one", "--two")
    assert done.returncode == 0, done.stderr
    assert "hello from" in done.stdout and done.stdout.split()[-2:] == ["one", "--two"]


def test_run_gives_back_the_exit_status(tmp_path):
    file = tmp_path / "fail.py"
    file.write_text("raise SystemExit(7)\n")
    assert mlc_lab("run", file).returncode == 7


@pytest.mark.parametrize(("text", "first"), [
    ("import tvm\ndef f():\n    return tvm.tir.none_such\nf()\n", "line 4, in <module>"),
    ("x = (\n", "line 1"),
])
def test_run_shows_an_error_from_the_students_line_on(tmp_path, text, first):
    file = tmp_path / "wrong.py"
    file.write_text(text)
    done = mlc_lab("run", file)
    assert done.returncode == 1 and "runpy" not in done.stderr
    lines = done.stderr.splitlines()
    assert next(x for x in lines if x.startswith("  File")) == f'  File "{file}", {first}'


def test_run_shows_of_a_refusal_only_the_students_lines(tmp_path):
    (tmp_path / "steps.py").write_text(
        "def tile(sch):\n    j = sch.get_loops('A')[1]\n    sch.reorder(j, j)\n")
    file = tmp_path / "refused.py"
    file.write_text("""import tvm
from steps import tile
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = T.float32(0)

tile(tvm.tir.Schedule(main))
""")
    done = mlc_lab("run", file)
    shown = [line.strip() for line in done.stderr.splitlines() if line.startswith("  File")]
    assert done.returncode == 1 and "loop j is given twice" in done.stderr
    assert shown == [f'File "{file}", line 12, in <module>',
                     f'File "{tmp_path / "steps.py"}", line 3, in tile']


def test_run_stops_at_the_time_limit(tmp_path):
    file = tmp_path / "forever.py"
    file.write_text("while True: pass\n")
    done = mlc_lab("run", "--time-limit", "2", file)
    assert done.returncode == 124
    assert "stopped after 2 seconds" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals are of POSIX")
def test_run_reports_a_crash(tmp_path):
    file = tmp_path / "crash.py"
    file.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    done = mlc_lab("run", file)
    assert done.returncode == 128 + 11
    assert "signal 11" in done.stderr


def test_run_refuses_what_it_cannot_run(tmp_path):
    assert "there is no file" in mlc_lab("run", tmp_path / "none.py").stderr
    (tmp_path / "a.txt").write_text("")
    assert "neither" in mlc_lab("run", tmp_path / "a.txt").stderr


def test_run_executes_a_notebook_and_keeps_it(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    file, out = tmp_path / "lesson.ipynb", tmp_path / "out.ipynb"
    nbformat.write(notebook("import tvm", "print('hello from', tvm.__name__)"), file)
    done = mlc_lab("run", file, "-o", out)
    assert done.returncode == 0, done.stderr
    assert "hello from" in done.stdout
    assert "hello from" in nbformat.read(out, 4).cells[1].outputs[0].text


def test_run_fails_where_a_cell_fails(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbformat.write(notebook("1 / 0"), tmp_path / "bad.ipynb")
    done = mlc_lab("run", tmp_path / "bad.ipynb")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr


def test_doctor_reports_the_machine_as_json():
    done = mlc_lab("doctor", "--json", "--quick")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["cpu"]["cores"] >= 1
    assert report["cpu"]["name"]
    assert report["parts"]["llvmlite"]
    assert set(report["tools"]) >= {"chromium", "dot", "cc", "cuda"}
    assert report["measured"] is None


def test_doctor_measures_peak_and_bandwidth():
    pytest.importorskip("mlc_lab.machine.peak")
    done = mlc_lab("doctor", "--json")
    measured = json.loads(done.stdout)["measured"]
    assert measured["peak_gflops"]["float32"] > 1
    assert measured["bandwidth_gbs"]["L1"] > 1
    assert measured["bandwidth_gbs"]["memory"] > 0.5


def test_lab_opens_on_the_start_page_unless_another_is_asked_for(monkeypatch):
    pytest.importorskip("jupyterlab")
    import subprocess

    from mlc_lab import cli

    commands = []
    monkeypatch.setattr(subprocess, "call", lambda command, **_: commands.append(command) or 0)
    assert cli.main(["lab"]) == 0
    assert cli.main(["lab", "--LabApp.default_url=/doc"]) == 0
    start = "--LabApp.default_url=/lab/tree/00_start_here.ipynb"
    assert start in commands[0] and start not in commands[1]
    assert (cli.find_notebooks()[0] / cli.START).is_file()


def test_lab_copies_lessons_but_never_over_a_students_work(tmp_path):
    from mlc_lab.cli import copy_notebooks

    source, target = tmp_path / "from", tmp_path / "to"
    (source / "data").mkdir(parents=True)
    (source / "01.ipynb").write_text("new")
    (source / "data" / "x.txt").write_text("x")
    target.mkdir()
    (target / "01.ipynb").write_text("my work")
    assert copy_notebooks(source, target) == 1
    assert (target / "01.ipynb").read_text() == "my work"
    assert (target / "data" / "x.txt").read_text() == "x"


def test_the_lab_neither_fetches_news_nor_asks_whether_to(monkeypatch, tmp_path):
    from mlc_lab import cli

    pytest.importorskip("jupyterlab")
    seen = {}

    def call(command, env):
        for folder in env["JUPYTER_CONFIG_PATH"].split(os.pathsep):
            for file in Path(folder).glob("labconfig/default_setting_overrides.json"):
                seen.update(json.loads(file.read_text()))
        return 0

    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(tmp_path))
    monkeypatch.setattr(subprocess, "call", call)
    assert cli.main(["lab", "--no-browser"]) == 0
    assert seen["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"


SCHEDULES = '''
import sys
import tvm
from tvm.script import tir as T


@T.prim_func
def add(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] + T.float32(1)


for factor in (4, 8):
    sch = tvm.tir.Schedule(add)
    (i,) = sch.get_loops(sch.get_block("B"))
    i0, i1 = sch.split(i, factors=[None, factor])
    sch.vectorize(i1)
if "fail" in sys.argv:
    raise SystemExit(3)
'''


def test_explain_writes_one_page_with_every_schedule(tmp_path):
    file, page = tmp_path / "schedules.py", tmp_path / "out.html"
    file.write_text(SCHEDULES)
    done = mlc_lab("explain", file, "-o", page, "--budget", "5")
    assert done.returncode == 0, done.stderr
    assert "2 schedule(s), 6 step(s)" in done.stdout
    text = page.read_text(encoding="utf-8")
    assert text.count('type="application/json"') == 2
    assert "factors=[None, 4]" in text and "factors=[None, 8]" in text
    assert text.count('"equal":true') == 6
    assert text.count('"code":{"gzip":') == 2


def test_explain_can_let_the_viewer_guess_first(tmp_path):
    file = tmp_path / "file.py"
    file.write_text(SCHEDULES, encoding="utf-8")
    page = tmp_path / "guess.html"
    done = mlc_lab("explain", file, "-o", page, "--no-measure", "--no-code", "--guess")
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    assert "steps to guess" in text and "\"guess\":true" in text


def test_explain_shows_what_a_failing_file_did_and_tells_its_status(tmp_path):
    file = tmp_path / "schedules.py"
    file.write_text(SCHEDULES)
    done = mlc_lab("explain", file, "--no-measure", "--no-code", "--", "fail")
    assert done.returncode == 3
    assert "the file itself failed" in done.stdout
    assert (tmp_path / "schedules.html").exists()


def test_explain_says_when_there_is_nothing_to_explain(tmp_path):
    file = tmp_path / "none.py"
    file.write_text("print('no schedule here')\n")
    done = mlc_lab("explain", file)
    assert done.returncode == 2
    assert "nothing to explain" in done.stderr
