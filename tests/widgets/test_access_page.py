"""The access view as an exported page, in Chromium: what it says, how it is operated.

Every page is opened through `open_page`, which fails the test if a request leaves the machine or an
error is thrown.
"""

import pytest
from browser import open_page
from observe.programs import matmul, tiled

from mlc_lab.observe.access import accesses
from mlc_lab.script import from_source
from mlc_lab.tir import Schedule

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def trace():
    return accesses(matmul(8), title="product")


@pytest.fixture(scope="module")
def url(trace, tmp_path_factory):
    path = tmp_path_factory.mktemp("access") / "access.html"
    trace.html(path, "small", "Accesses")
    return path.as_uri()


@pytest.fixture
def page(chromium, url):
    with open_page(chromium, scheme="light") as page:
        page.goto(url)
        page.wait_for_selector(".mlc-access .readout .badge")
        yield page


def test_it_fits_on_a_telephone(chromium, url):
    with open_page(chromium, width=360) as page:
        page.goto(url)
        page.wait_for_selector(".mlc-access .readout .badge")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def go(page, number):
    page.locator("input[type=range]").fill(str(number))


def readout(page):
    return page.locator(".readout").inner_text()


def said(page, buffer):
    return page.locator(".buffer .said").nth(buffer).inner_text()


def pixel(page, buffer, row, column):
    """The colour in the upper left of a cell, which signs and crosses leave alone."""
    return page.evaluate(
        """([buffer, row, column]) => {
          const canvas = document.querySelectorAll('.buffer canvas')[buffer];
          const cell = (parseFloat(canvas.style.width) - 1) / 8;
          const at = [column * cell + 2, row * cell + 2].map(x => Math.round(x * devicePixelRatio));
          return [...canvas.getContext('2d').getImageData(...at, 1, 1).data].slice(0, 3);
        }""", [buffer, row, column])  # fmt: skip


def test_a_high_matrix_is_drawn_in_strips(chromium, tmp_path):
    mod = from_source("""
@T.prim_func
def main(A: T.Buffer((512, 4), "float32"), B: T.Buffer((4, 512), "float32")):
    for i, j in T.grid(512, 4):
        B[j, i] = A[i, j]
""")
    accesses(mod).html(tmp_path / "high.html")
    with open_page(chromium) as page:
        page.goto((tmp_path / "high.html").as_uri())
        page.wait_for_selector(".mlc-access .readout .badge")
        assert "in strips of 64 rows" in page.locator("figcaption").first.inner_text()
        assert "strips" not in page.locator("figcaption").nth(1).inner_text()
        box = page.locator(".buffer canvas").first.bounding_box()
        assert box["height"] <= 450
        # the last row of the first strip is above the first row of the second
        page.mouse.click(box["x"] + box["width"] * 0.5 / 32, box["y"] + box["height"] * 63.5 / 64)
        assert "A[63, 0]" in readout(page)
        page.mouse.click(box["x"] + box["width"] * 4.5 / 32, box["y"] + box["height"] * 0.5 / 64)
        assert "A[64, 0]" in readout(page)


def test_it_opens_on_the_first_access(page, trace):
    assert page.title() == "Accesses"
    assert page.locator(".count").inner_text() == f"1 / {len(trace):,}"
    assert "writes C[0, 0], 4 B" in readout(page)
    assert "found in memory; first use of its line" in readout(page)
    assert "i=0 j=0 p=0" in readout(page)
    here = page.locator(".program .here").inner_text()
    assert here.strip() == "C_1[i * 8 + j] = T.float32(0.0)"
    assert [said(page, n) for n in range(3)] == [
        "0 of 64 used, 0 in L1", "0 of 64 used, 0 in L1", "1 of 64 used, 1 in L1"]


def test_each_access_says_what_the_simulation_found(page, trace):
    result = trace.result("small")
    for number in (1, 3, 40, 777, len(trace) - 1):
        go(page, number)
        level = ["L1", "L2", "memory"][result.simulation.found[number]]
        assert f"found in {level}" in readout(page)
        assert page.locator(".readout .badge").inner_text().endswith(level)
        distance = result.reuse[number]
        assert ("first use" if distance < 0 else f"reuse distance {distance}") in readout(page)


def test_the_counts_in_the_end_are_the_exact_ones(page, trace):
    page.get_by_role("button", name="Last access").click()
    rows = page.locator(".levels tbody tr").all()
    counts = trace.result("small").counts
    for row, count in zip(rows, counts, strict=False):
        cells = row.locator("td").all_inner_texts()
        assert cells[0] == cells[1] == f"{count.hits:,}"
        assert cells[3:] == [f"{count.misses:,}", f"{count.bytes_in:,}", f"{count.bytes_out:,}"]
    assert rows[2].locator("td").all_inner_texts()[0] == f"{counts[1].misses:,}"


def test_the_cells_show_what_the_cache_holds(page, trace):
    go(page, len(trace) - 1)
    # Replayed from the list of what left: lines of 32 bytes are the rows of 8 words.
    result = trace.result("small")
    held = set()
    gone = {}
    for at, line in result.simulation.gone.tolist():
        gone.setdefault(at, []).append(line)
    for n, address in enumerate(trace.address.tolist()):
        held.add(address // 32)
        held -= set(gone.get(n, []))
    colours = {}
    for row in range(8):
        place = trace.places[1]
        colours.setdefault(tuple(pixel(page, 1, row, 4)), set()).add((place.base // 32 + row)
                                                                     in held)
    assert all(len(kinds) == 1 for kinds in colours.values())
    in_l1 = sum(((trace.places[1].base // 32 + row) in held) for row in range(8))
    assert said(page, 1) == f"64 of 64 used, {8 * in_l1} in L1"
    assert len(colours) == (1 if in_l1 in (0, 8) else 2)


def test_a_line_comes_whole(page, trace):
    """What nobody has asked for yet is in the cache with its neighbours, in a colour of its own."""
    go(page, next(n for n, at in enumerate(trace.site) if trace.sites[at].buffer.name == "A") + 1)
    first, second, below = (pixel(page, 0, row, column) for row, column in ((0, 0), (0, 5), (1, 0)))
    assert len({tuple(first), tuple(second), tuple(below)}) == 3
    assert said(page, 0) == "1 of 64 used, 1 in L1"


def test_going_back_shows_the_same_as_going_forward(page):
    go(page, 100)
    before = [readout(page), *(said(page, n) for n in range(3))]
    go(page, 900)
    go(page, 100)
    assert [readout(page), *(said(page, n) for n in range(3))] == before


def test_keys_move_and_play(page, trace):
    page.locator("input[type=range]").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    assert page.locator(".count").inner_text().startswith("2 /")
    page.keyboard.press("End")
    assert page.locator(".count").inner_text() == f"{len(trace):,} / {len(trace):,}"
    page.keyboard.press("Home")
    page.keyboard.press("m")
    found = trace.result("small").simulation.found
    first = next(n for n in range(1, len(trace)) if found[n])
    assert page.locator(".count").inner_text().startswith(f"{first + 1} /")
    page.keyboard.press("Home")
    page.keyboard.press(" ")
    page.get_by_role("button", name="Pause").wait_for()
    page.wait_for_function("parseInt(document.querySelector('.count').textContent) > 3")
    page.keyboard.press(" ")
    page.get_by_role("button", name="Play").wait_for()


def test_playing_ends_at_the_last_access(page, trace):
    go(page, len(trace) - 20)
    page.get_by_label("Speed").select_option("100")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function(
        "n => document.querySelector('.count').textContent.startsWith(n)", arg=f"{len(trace):,} /")
    page.get_by_role("button", name="Play").wait_for()


def test_recorded_caches_are_chosen_and_others_cannot_be_asked_for(page, trace):
    names = page.get_by_label("Caches").locator("option").all_inner_texts()
    assert names[0] == "small, 2-way LRU" and "this machine" in names
    go(page, len(trace) - 1)
    page.get_by_label("Caches").select_option(label="small, direct-mapped")
    hits = page.locator(".levels tbody tr").first.locator("td").nth(1).inner_text()
    assert hits == f"{trace.result('512:1:32, 2K:4:32').counts[0].hits:,}"
    page.get_by_text("Change the caches").click()
    assert page.get_by_role("button", name="Simulate").get_attribute("aria-disabled") == "true"
    assert "In a notebook the caches can be changed here" in page.locator(".caches").inner_text()


def test_an_element_is_found_by_name_and_by_click(page):
    page.get_by_text("Find an element").click()
    page.get_by_label("Element to find").fill("B[5, 2]")
    page.keyboard.press("Enter")
    assert "reads B[5, 2]" in readout(page)
    page.get_by_label("Element to find").fill("B[9, 9]")
    page.keyboard.press("Enter")
    assert page.get_by_label("Element to find").get_attribute("aria-invalid") == "true"
    box = page.locator(".buffer canvas").first.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 3.5 / 8, box["y"] + box["height"] * 2.5 / 8)
    assert "reads A[2, 3]" in readout(page)


def test_pictures_have_words_beside_them(page, trace):
    go(page, 500)
    labels = [c.get_attribute("aria-label") for c in page.locator("canvas[role=img]").all()]
    assert labels[0].startswith(f"Over time: {len(trace)} accesses")
    assert labels[1].startswith("A: ")
    page.get_by_text("Accesses around this one, as a table").click()
    row = page.locator(".near tr[aria-current]").inner_text().split("\t")
    assert row[0] == "501" and row[2].split("[")[0] in "ABC"
    page.get_by_text("Reuse distances as a table").click()
    cells = page.locator(".below table").nth(1).locator("tbody td:first-of-type").all_inner_texts()
    assert sum(int(c.replace(",", "")) for c in cells) == len(trace)
    assert page.locator("[role=status]").inner_text().startswith(("reads", "writes"))


def test_each_place_has_a_sign_beside_its_colour(page):
    legend = page.locator(".legend").inner_text()
    for text in ("● found in L1", "▲ found in L2", "■ found in memory"):
        assert text in legend


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_vectors_registers_and_threads_are_shown(chromium, tmp_path, scheme):
    sch = tiled(16, columns=8, parallel=True)
    accesses(sch, threads=2).html(tmp_path / "v.html", "small")
    with open_page(chromium, scheme=scheme) as page:
        page.goto((tmp_path / "v.html").as_uri())
        page.get_by_role("button", name="Last access").click()
        assert "a vector of 8 × 4 B, thread 1" in readout(page)
        assert "C_local: small and indexed by constants only" in page.locator(".mlc").inner_text()
        page.wait_for_function(
            "s => document.querySelector('.mlc').dataset.theme === s", arg=scheme)


def test_a_cut_trace_says_so(chromium, tmp_path):
    accesses(matmul(16), limit=50).html(tmp_path / "cut.html", "small")
    with open_page(chromium) as page:
        page.goto((tmp_path / "cut.html").as_uri())
        assert "the first 50 of 16,640 accesses" in page.locator(".mlc").inner_text()


def test_stepping_through_a_long_trace_is_quick(chromium, tmp_path):
    accesses(Schedule(matmul(16))).html(tmp_path / "long.html", "small")
    with open_page(chromium) as page:
        page.goto((tmp_path / "long.html").as_uri())
        page.wait_for_selector(".readout .badge")
        took = page.evaluate(
            """() => {
              const slider = document.querySelector('input[type=range]');
              const start = performance.now();
              for (let i = 0; i < 100; i++) {
                slider.value = 6000 + i * 37;
                slider.dispatchEvent(new Event('input'));
              }
              return (performance.now() - start) / 100;
            }""")  # fmt: skip
        assert took < 60, f"{took:.1f} ms a step"
