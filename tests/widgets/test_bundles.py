"""The bundles of the views' scripts: one for each view, current, and each asks for nothing."""

import hashlib
import importlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mlc_lab_widgets import bundle

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = ROOT / "widgets" / "js"
BUNDLES = ROOT / "widgets" / "bundles"
#: kB that the script of a view has at most: a notebook stores it once for every view it shows
LIMITS = {"stepper.js": 83, "card.js": 45, "live.js": 66, "passes.js": 44, "typed.js": 78,
          "workbench.js": 45, "report.js": 50, "room_teacher.js": 88}  # the last is only served
LIMIT = 40
OTHERS = ["kernel.js", "page.js", "site.js"]
IMPORT = re.compile(r'^(?:import|export)\b[^;"]*?\bfrom "\./([\w-]+\.js)";', re.M)


def source(name):
    return (SOURCES / name).read_text(encoding="utf-8")


def sources(entry):
    """Names of the files that a bundle is made of."""
    found, waiting = set(), [entry]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += IMPORT.findall(source(name))
    return found


def views():
    return sorted(p.name for p in SOURCES.glob("*.js")
                  if re.search(r"^export default ", source(p.name), re.M))  # fmt: skip


def test_each_view_has_a_bundle_and_no_bundle_is_left_over():
    assert sorted(p.name for p in BUNDLES.iterdir()) == sorted([*views(), *OTHERS])


@pytest.mark.parametrize("name", [*views(), *OTHERS])
def test_a_bundle_is_made_of_the_files_as_they_are(name):
    digest = hashlib.sha256()
    for each in sorted(sources(name)):
        digest.update(f"{each}\n{source(each)}".encode())
    said = re.search(r"; sources (\w+)$", bundle.script(name).split("\n")[0]).group(1)
    assert said == digest.hexdigest()[:16], "`npm run build` makes the bundles anew"


def test_esbuild_makes_the_same_bundles(tmp_path):
    if not shutil.which("node") or not (ROOT / "node_modules" / "esbuild").exists():
        pytest.skip("needs node and `npm ci`")
    made = tmp_path / "bundles"
    done = subprocess.run(["node", str(ROOT / "widgets" / "build.mjs"), str(made)],
                          capture_output=True, text=True, timeout=120)  # fmt: skip
    assert done.returncode == 0, done.stderr
    for path in BUNDLES.iterdir():
        assert (made / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.parametrize("name", views())
def test_a_bundle_is_one_module_that_asks_for_nothing(name):
    text = bundle.module(name)
    assert not re.search(r"\bimport\s*[({\"']", text)
    assert text.count("\nexport default ") == 1
    bare = text.replace("http://www.w3.org/2000/svg", "")  # the name of SVG, not an address to ask
    assert "http://" not in bare and "https://" not in bare
    assert len(bundle.script(name).encode()) < 1000 * LIMITS.get(name, LIMIT)
    assert "</script" not in text


@pytest.mark.parametrize("name", views())
def test_a_style_asks_for_nothing(name):
    style = SOURCES / name.replace(".js", ".css")
    text = style.read_text(encoding="utf-8") if style.exists() else ""
    assert "@import" not in text and "url(" not in text


@pytest.mark.parametrize("name, module", [
    ("access.js", "access.AccessView"), ("board.js", "board.TuningBoard"),
    ("card.js", "card.Card"),
    ("comparison.js", "comparison.Compare"), ("graph.js", "graph.GraphView"),
    ("live.js", "live.Live"), ("machine.js", "machine.MachineView"),
    ("passes.js", "passes.PassView"), ("stepper.js", "stepper.Stepper"),
    ("threads.js", "threads.ThreadsView"), ("typed.js", "typed.Typed"),
    ("workbench.js", "workbench.Workbench"),
])  # fmt: skip
def test_a_widget_has_the_bundle_of_its_view(name, module):
    pytest.importorskip("anywidget")
    file, cls = module.split(".")
    view = getattr(importlib.import_module(f"mlc_lab_widgets.{file}"), cls)
    assert view._esm == bundle.module(name, view._alone)
