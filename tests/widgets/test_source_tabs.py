"""The source of a step's kernels for GPUs, in an exported page in Chromium."""

import pytest
from backend.gpu_programs import tiled_schedule
from browser import open_page
from observe.schedules import schedule
from test_axe import problems
from test_code_tabs import lit, tab, whole
from test_stepper_page import CONTRAST

from mlc_lab.observe.session import record

pytestmark = pytest.mark.browser
LANGUAGES = ("CUDA", "OpenCL", "WGSL", "Metal")
UPDATE = "C_local[vi, vj] = C_local[vi, vj] + "


@pytest.fixture(scope="module")
def recording():
    return record(tiled_schedule()).recording


@pytest.fixture(scope="module")
def url(tmp_path_factory, recording):
    path = tmp_path_factory.mktemp("code") / "code.html"
    recording.html(path, code=True)
    return path.as_uri()


@pytest.fixture
def page(chromium, url):
    with open_page(chromium) as page:
        page.goto(url)
        yield page


def test_a_statement_lights_its_source_and_the_other_way_round(page, recording):
    for name in LANGUAGES:
        left, right = tab(page, name, len(recording.steps) - 1)
        left.get_by_text(UPDATE).hover()
        (line,) = lit(right, some=True)
        assert line.startswith("C_local[") and "A_shared[" in line
        memory = "A_shared : array" if name == "WGSL" else "float A_shared["
        whole(right).get_by_text(memory).hover()
        assert lit(left) == ['A_shared = T.alloc_buffer((32, 32), scope="shared")']


def test_a_statement_lights_its_instructions_in_ptx(page, recording):
    left, right = tab(page, "PTX", len(recording.steps) - 1)
    whole(right)
    left.get_by_text(UPDATE).hover()
    lines = lit(right)
    assert any(line.strip().startswith("fma.rn.f32") for line in lines)
    assert not any("bar.sync" in line for line in lines)
    whole(right).get_by_text("A_shared[512]").hover()
    assert lit(left) == ['A_shared = T.alloc_buffer((32, 32), scope="shared")']


def test_with_the_keyboard(page, recording):
    left, right = tab(page, "CUDA", len(recording.steps) - 1)
    right.focus()
    while "k_0" not in (right.locator(".l.cur").all_text_contents() or [""])[0]:
        page.keyboard.press("ArrowDown")
    assert lit(left) == ["for k_0 in range(4):"]
    page.keyboard.press("Enter")
    assert "2 lines of code" in page.locator(".sr[role=status]").inner_text()


def test_a_step_without_threads_says_which_step_binds_them(page, recording):
    _, right = tab(page, "WGSL", 2)
    at = next(n for n, step in enumerate(recording.steps) if step.op == "bind")
    said = right.inner_text()
    assert f"Step {at} has such loops" in said and 'thread_axis="blockIdx.y"' in said
    page.get_by_role("button", name=f"Go to step {at}: bind").click()
    right.get_by_text("blockIdx_y").first.wait_for()
    assert "fn main_kernel" in right.inner_text()


def test_programs_for_cpus_have_no_such_tabs(chromium, tmp_path):
    record(schedule()).recording.html(tmp_path / "cpu.html")
    with open_page(chromium) as page:
        page.goto((tmp_path / "cpu.html").as_uri())
        assert page.get_by_role("tab").all_inner_texts()[-1] == "Assembly"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_and_a_narrow_page_holds_it(chromium, url, recording, scheme):
    with open_page(chromium, scheme=scheme, width=480) as page:
        page.goto(url)
        page.wait_for_function(f"document.querySelector('.mlc').dataset.theme === '{scheme}'")
        for step in (1, len(recording.steps) - 1):
            tab(page, "CUDA", step)
            assert page.evaluate(CONTRAST) == []
            assert problems(page) == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
