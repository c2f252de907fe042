"""Kernels on the GPU of the browser: Chromium runs them by SwiftShader, which needs no GPU."""

import pytest
from browser import FLAGS, WEBGPU, chromium_path, open_page
from observe.gpu.programs import copies, square_tiles

import mlc_lab

pytestmark = pytest.mark.browser


def kernels(**options):
    return mlc_lab.in_browser(
        square_tiles(64, 16, 4), lambda tile, inner: square_tiles(64, tile, inner),
        choices={"tile": [16, 32, 64], "inner": [1, 4]}, names=["by hand", "tiles"],
        title="Product of 64", **options)


@pytest.fixture(scope="module")
def made():
    return kernels()


@pytest.fixture(scope="module")
def with_gpu(chromium):
    """A browser with WebGPU."""
    flags = [flag for flag in FLAGS if flag != "--disable-gpu"] + WEBGPU
    browser = chromium.browser_type.launch(executable_path=chromium_path(), args=flags)
    yield browser
    browser.close()


def opened(page, made, tmp_path):
    made.html(tmp_path / "page.html")
    page.goto((tmp_path / "page.html").as_uri())
    page.locator(".mlc-webgpu[data-gpu]").wait_for()


def test_two_schedules_race_and_are_right(with_gpu, made, tmp_path):
    with open_page(with_gpu) as page:
        opened(page, made, tmp_path)
        assert "swiftshader" in page.locator(".where").inner_text()
        page.get_by_role("button", name="Run both").click()
        page.get_by_text("Done.").wait_for()
        for lane in page.locator(".lane").all():
            said = lane.locator(".facts").inner_text()
            assert "✓ equal" in said and "GFLOP/s" in said
        assert "as fast as" in page.locator(".race").inner_text() or (
            "the same time" in page.locator(".race").inner_text())


def test_another_tile_is_chosen_by_keys(with_gpu, made, tmp_path):
    with open_page(with_gpu) as page:
        opened(page, made, tmp_path)
        right = page.locator(".lane").nth(1)
        assert "@workgroup_size(16, 16, 1)" in right.locator(".source").text_content()
        tile = right.get_by_label("tile, right")
        tile.focus()
        tile.press("ArrowDown")
        right.get_by_label("inner, right").select_option("4")
        assert "@workgroup_size(8, 8, 1)" in right.locator(".source").text_content()
        button = right.get_by_role("button", name="Run this one")
        button.focus()
        button.press("Enter")
        page.get_by_text("Done.").wait_for()
        assert "✓ equal" in right.locator(".facts").inner_text()
        tile.select_option("64")
        right.get_by_label("inner, right").select_option("1")
        assert "4096 threads" in right.locator(".facts").inner_text()


def test_a_wrong_result_and_a_kernel_that_does_not_compile_are_told(with_gpu, tmp_path):
    wrong = mlc_lab.in_browser(copies("t"), copies("t"), names=["a", "b"], count=False)
    wrong.data["arrays"][1]["expected"]["values"][3] = 7.0
    kernel = wrong.data["variants"][1]["kernels"][0]
    kernel["text"] = kernel["text"].replace("A[", "nowhere[")
    with open_page(with_gpu) as page:
        opened(page, wrong, tmp_path)
        page.get_by_role("button", name="Run both").click()
        page.get_by_text("Done.").wait_for()
        said = [lane.locator(".facts").inner_text() for lane in page.locator(".lane").all()]
        assert "✗ wrong: B: element 3 is" in said[0] and "and should be 7" in said[0]
        assert "failed: line" in said[1] and "nowhere" in said[1]


def test_a_page_says_its_title_once(chromium, made, tmp_path):
    with open_page(chromium) as page:
        opened(page, made, tmp_path)
        assert page.get_by_text("Product of 64", exact=True).count() == 1


def test_without_webgpu_the_counts_are_shown(chromium, made, tmp_path):
    with open_page(chromium) as page:
        opened(page, made, tmp_path)
        assert page.locator(".mlc-webgpu").get_attribute("data-gpu") == "none"
        assert "counts of the simulated device" in page.locator(".where").inner_text()
        assert page.get_by_text("bank conflicts").first.is_visible()
        page.get_by_role("button", name="Run both").press("Enter")
        assert "no GPU" in page.locator(".status").inner_text()


def test_the_widget_keeps_what_was_measured(made):
    view, seen = made.show(), []
    view.on_runs(seen.append)
    view.runs = [{"variant": 1, "device": "a GPU", "seconds": 1e-3, "clock": "", "fault": "",
                  "error": 0.0, "failure": ""}]
    view.right = 99
    assert len(seen) == 1 and view.right == 6
    data, _ = view._repr_mimebundle_()
    assert data["application/vnd.mlc-lab.view+json"]["values"]["runs"][0]["device"] == "a GPU"
    assert "bank conflicts" in data["text/plain"] and "@workgroup_size" in data["text/html"]
