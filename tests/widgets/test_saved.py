"""What a notebook keeps of a view: the values, their limits, and the files of the extension."""

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path

import handmade
import pytest
from test_bundles import source, sources

from mlc_lab_widgets import extension, saved

pytest.importorskip("anywidget")

ROOT = Path(__file__).resolve().parent.parent.parent
OWN = ROOT / "widgets" / "labextension"


def view(**options):
    from mlc_lab_widgets import Stepper

    return Stepper(handmade.recording(), **options)


def bundle_of(shown):
    return shown._repr_mimebundle_()[0]


def unpacked(kept):
    packed = json.loads(gzip.decompress(base64.b64decode(kept["packed"])))
    return {**packed, **kept["values"], **kept["alone"]}


def test_all_values_are_kept_and_what_is_long_is_packed():
    shown = view(step=3)
    kept = bundle_of(shown)[saved.MIME]
    assert (kept["view"], kept["version"]) == ("stepper", saved.VERSION)
    assert kept["values"]["step"] == 3 and "recording" not in kept["values"]
    assert unpacked(kept) == json.loads(json.dumps(shown._values()))
    assert len(kept["packed"]) < len(json.dumps(shown.recording)) / 3


def test_what_only_a_kernel_has_is_not_kept():
    import mlc_lab
    from tests.observe.schedules import module

    bench = mlc_lab.workbench(module())
    bench.pick("Y/j")
    values = unpacked(bundle_of(bench)[saved.MIME])
    assert (values["live"], values["palette"]) == (False, {})
    assert values["selection"]["name"] == "j" and bench.palette and bench.live


def test_a_page_and_a_notebook_have_the_same_values():
    page = view().html()
    data = re.search(r'<script type="application/json" id="view-0">(.*?)</script>', page)[1]
    values = unpacked(bundle_of(view())[saved.MIME])
    assert json.loads(data).items() <= values.items()


def test_what_is_too_large_is_said(monkeypatch):
    monkeypatch.setattr(saved, "LIMIT", 1000)
    made = bundle_of(view())
    assert "packed" not in made[saved.MIME] and made[saved.MIME]["values"]
    assert '<p class="mlc-not-kept">The view is too large to be kept' in made["text/html"]


def test_a_picture_stands_above_the_text():
    html = bundle_of(view())["text/html"]
    assert html.startswith('<p><img alt="Stepper of main: 7 steps"')
    svg = base64.b64decode(re.search(r"base64,([^\"]*)", html)[1]).decode()
    assert "vectorized" in svg and "<script" not in svg
    hidden = bundle_of(view(guess=True))["text/html"]
    assert "vectorized" not in base64.b64decode(re.search(r"base64,([^\"]*)", hidden)[1]).decode()


def test_the_extension_is_made_of_the_files_as_they_are():
    digest = hashlib.sha256()
    for each in sorted(sources("labextension.js")):
        digest.update(f"{each}\n{source(each)}".encode())
    text = (OWN / "static" / "remoteEntry.js").read_text(encoding="utf-8")
    said = re.search(r"; sources (\w+)$", text.split("\n")[0]).group(1)
    assert said == digest.hexdigest()[:16], "`npm run build` makes the bundles anew"
    assert f'"{saved.MIME}"' in text and len(text) < 10_000
    constants = f"const SMALL = {saved.SMALL};"
    assert f"const VERSION = {saved.VERSION};" in source("kept.js")
    assert constants in source("labextension.js")


def test_the_extension_has_the_version_of_the_package(tmp_path):
    extension.copy(tmp_path)
    made = json.loads((tmp_path / "package.json").read_text(encoding="utf-8"))
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert made["version"] == re.search(r'^version = "(.*)"', project, re.M)[1]
    assert (tmp_path / made["jupyterlab"]["_build"]["load"]).is_file()
    assert (tmp_path / "static" / "stepper.js").is_file()
    assert (tmp_path / "static" / "stepper.css").is_file()


SEARCH = f"""\
import sys
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests")!r}]
from mlc_lab import meta_schedule as ms
from tests.meta_schedule.boards import Product

def space(sch):
    sch.split(sch.get_loops("C")[1], sch.sample_perfect_tile(sch.get_loops("C")[1], 2))

ms.tune_tir(Product, "llvm --num-cores=1", "tune", max_trials_global=2, num_trials_per_iter=2,
            space=ms.space_generator.ScheduleFn(space), strategy="replay-func", seed=1)"""


def test_the_board_of_a_search_is_kept_as_the_search_ended(tmp_path):
    """Without a browser: the output of the cell is written anew by the kernel."""
    nbclient = pytest.importorskip("nbclient")
    from nbformat import v4

    notebook = v4.new_notebook(cells=[v4.new_code_cell(SEARCH)])
    nbclient.NotebookClient(notebook, kernel_name="python3",
                            resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [o.data for o in notebook.cells[0].outputs if saved.MIME in o.get("data", {})]
    board = next(data for data in shown if data[saved.MIME]["view"] == "board")
    values = unpacked(board[saved.MIME])
    assert len(values["board"]["trials"]) == 2 and values["running"] is False
    assert "2 trials" in board["text/plain"] and '<img alt="' in board["text/html"]
