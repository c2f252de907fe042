"""The kernels of the lessons on GPUs, run as WGSL by SwiftShader in the browser."""

import ast
import importlib.util
import json
import re
from pathlib import Path

import pytest
from browser import FLAGS, WEBGPU, chromium_path, open_page

import mlc_lab

pytestmark = pytest.mark.browser

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


def defines(node):
    """Whether a statement says what something is, and runs nothing."""
    if isinstance(node, ast.Assign):
        value = node.value
        return isinstance(value, ast.Constant) or isinstance(value, ast.Dict) and all(
            isinstance(item, ast.Lambda) for item in value.values)
    return isinstance(node, (ast.FunctionDef, ast.Import, ast.ImportFrom))


def lesson(number, folder):
    """What a lesson defines, as a module. (T.prim_func reads the text of a function, so there has
    to be a file.)"""
    (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
    kept = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            text = re.sub(r"(?m)^%.*$", "", "".join(cell["source"]))
            kept += [ast.get_source_segment(text, node) for node in ast.parse(text).body
                     if defines(node)]
    source = "\n\n".join(kept)
    source = source.replace("import tvm", "import mlc_lab as tvm").replace(
        "from tvm", "from mlc_lab")
    file = folder / f"lesson_{number}.py"
    file.write_text(source + "\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def adding(m):
    """The schedule that lesson 13 builds step by step."""
    sch = mlc_lab.tir.Schedule(m.add(1000))
    block, thread = sch.split(sch.get_loops("C")[0], factors=[None, 256])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    return sch


#: lesson -> pairs of programs that take the same arguments
PAIRS = {
    "13": lambda m: [(m.threads(64, "i"), m.threads(64, "j")),
                     (m.two_ways("t % 2 == 0"), m.two_ways("t % 2 == 0")),
                     (m.copy("b * 32 + 31 - t", 2048), m.copy("b * 32 + 31 - t", 2048)),
                     (adding(m), adding(m))],
    "14": lambda m: [(m.direct(64, "j"), m.staged(64, 1)), (m.direct(64, "i"), m.staged(64)),
                     (m.product(64, 8, 8, table=False), m.product(64, 16, 16, each=2, pad=1))],
    "15": lambda m: [(m.alone(32, 256), m.together(32, 256, 64)),
                     (m.several(32, 256, 32, 4), m.together(32, 256, 64, neighbours=True)),
                     (m.tree("neighbours"), m.tree("halves")),
                     (m.tree("spread"), m.tree("halves"))],
    "16": lambda m: [(m.product(64, 8, 2, 16), m.product(64, 16, 4, 16))],
}


@pytest.fixture(scope="module")
def with_gpu(chromium):
    """A browser with WebGPU."""
    flags = [flag for flag in FLAGS if flag != "--disable-gpu"] + WEBGPU
    browser = chromium.browser_type.launch(executable_path=chromium_path(), args=flags)
    yield browser
    browser.close()


@pytest.mark.parametrize("number", PAIRS)
def test_kernels_of_a_lesson_are_right_in_the_browser(with_gpu, number, tmp_path):
    """Each gives what the simulated device does."""
    found = lesson(number, tmp_path)
    for at, pair in enumerate(PAIRS[number](found)):
        made = mlc_lab.in_browser(*pair, names=["a", "b"], count=False)
        made.html(tmp_path / f"{at}.html")
        with open_page(with_gpu) as page:
            page.goto((tmp_path / f"{at}.html").as_uri())
            page.locator(".mlc-webgpu[data-gpu]").wait_for()
            assert "swiftshader" in page.locator(".where").inner_text()
            page.get_by_role("button", name="Run both").click()
            page.get_by_text("Done.").wait_for()
            for lane in page.locator(".lane").all():
                said = lane.locator(".facts").inner_text()
                assert "✓ equal" in said, (number, at, said)
